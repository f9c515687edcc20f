"""A trial of somebody else whose every text would control a terminal: no command shows one."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import msgspec
import pytest

from seatrial.journal.events import AlertRaised, Event
from seatrial.journal.journal import Journal, read
from tests.programs import Workplace

ODD = "\x1b]0;t\x07\u202e\u2028x\x9b2J"
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

# What tells runs, cases and trials apart stays, so that there is something to show.
KEPT = {"run_id", "case", "key", "trial", "test", "path", "name", "submission", "bundle", "boot"}
KEPT |= {"verdict", "better"}

COMMANDS = """
trials
runs
runs --format json
runs --format csv
show RUN
show RUN --events
report t -o r.html
report t -o r.md --format md
report verify r.html
report t -o -
matrix t
variability t
history
compare t t
judge t
export t --format junit
export t --format json
best --by n t
ratio --of n=1,2 --x n t
suspects t
diary
store info
sink t
resume t
cancel t
reference accept t --yes
facts t
list suite
judge t --again --reason x
accept status
note hello
""".strip().splitlines()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workplace, str]:
    """A place with such a trial, and the id of a run."""
    place = Workplace(tmp_path_factory.mktemp("hostile"))
    place.local(cores=2)
    metrics = {"speed": {"find": "speed (.+)", "unit": "s", "better": "higher"}}
    place.test("a", "echo speed 5", parameters={"n": [1, 2]}, metrics=metrics)
    assert place.run("--name", "t").code == 0
    folder, events = place.trial().path, place.events("t")
    record = json.loads((folder / "trial.json").read_text())
    for name in ("user", "host", "version", "plan"):
        record[name] += ODD
    record["machine"]["machine"] += ODD
    record["left_out"] = [[f"a{ODD}", f"why{ODD}"]]
    for test in record["tests"].values():
        test |= {"app": f"app{ODD}", "about": f"about{ODD}"}
    del record["cases_bytes"], record["cases_sha256"]
    (folder / "trial.json").write_text(json.dumps(record))
    lines = (folder / "cases.jsonl").read_text().splitlines()
    cases = [json.loads(line) for line in lines]
    for case in cases:
        case["parameters"][f"p{ODD}"] = f"v{ODD}"
    text = "".join(json.dumps(case, separators=(",", ":")) + "\n" for case in cases)
    (folder / "cases.jsonl").write_text(text)
    for file in folder.glob("journal*"):
        file.unlink()
    with Journal.take(folder / "journal.jsonl") as journal:
        for event in events:
            journal.append(_odd(event))
        odd = AlertRaised(kind=f"k{ODD}", subject=f"s{ODD}", text=f"t{ODD}")
        journal.append(msgspec.structs.replace(odd, time=journal.now(), trial="t"))
    for file in place.folder.glob("*.sqlite*"):
        file.unlink()
    shutil.rmtree(place.folder / "store", ignore_errors=True)
    return place, next(event.run_id for event in events if getattr(event, "run_id", ""))


def _odd(event: Event) -> Event:
    texts = {
        field.name: text + ODD
        for field in msgspec.structs.fields(type(event))
        if field.name not in KEPT and (text := getattr(event, field.name)) and isinstance(text, str)
    }
    return msgspec.structs.replace(event, **texts)


def test_nothing_of_it_controls_a_terminal(hostile: tuple[Workplace, str]) -> None:
    place, run = hostile
    for file in place.trials.glob("store.sqlite*"):
        file.unlink()
    assert list(read(place.trial().journal))
    shown = ""
    for command in COMMANDS:
        done = place.seatrial(*command.replace("RUN", run).split())
        assert "Traceback" not in done.err, (command, done.err)
        assert not CONTROLS.search(done.said), (command, done.said)
        shown += done.said
    assert r"\x1b]0;t\x07\u202e" in shown, "it was shown, and escaped"


def test_nor_does_a_report_of_it(hostile: tuple[Workplace, str]) -> None:
    place, _ = hostile
    for form in ("html", "md"):
        assert place.seatrial("report", "t", "-o", f"x.{form}").code == 0
        assert not CONTROLS.search(Path(place.folder / f"x.{form}").read_text())
