"""A record and cases that somebody else wrote, and that no plan makes: refused with a message."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import TrialError
from seatrial.execute.trial_folder import TrialFolder
from tests.programs import Workplace

Change = Callable[[dict[str, Any], list[dict[str, Any]]], object]

CHANGES: dict[str, tuple[Change, str]] = {
    "a record without its tests": (lambda r, _: r["tests"].clear(), "the test 'a', which trial"),
    "a case of another test": (lambda _, c: c[0].update(test="zz"), "the test 'zz', which trial"),
    "a duration": (
        lambda r, _: r["policy"].update(duration=1e308),
        "Expected `float` < 4.611686018427388e+18 - at `$.policy.duration`",
    ),
    "a watch": (lambda r, _: r["policy"]["watch"].update(again=1e308), "at `$.policy.watch.again`"),
    "a window": (
        lambda r, _: r["policy"].update(blackouts=[{"start": 0, "end": 1e300}]),
        "policy.blackouts.end is",
    ),
    "a list": (lambda r, _: r["policy"].update(unfit_of=[3, 3]), "policy.unfit_of names a number"),
    "a short list": (lambda r, _: r["policy"].update(bundle_of=[1]), "and 1 in policy.bundle_of"),
    "a walltime": (lambda _, c: c[0].update(walltime=1e308), "has the walltime 1e+308"),
    "nodes": (lambda _, c: c[1].update(nodes=10**18), "has nodes 1000000000000000000"),
    "repeats": (lambda _, c: c[1].update(repeat=-1), "has repeat -1"),
    "cores": (lambda r, _: r["machine"]["nodes"][0].update(cores=10**18), "here has 10000"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    place = Workplace(tmp_path_factory.mktemp("made"))
    place.local(cores=2)
    place.test("a", parameters={"n": [1, 2]})
    assert place.run("--name", "t").code == 0
    return place


@pytest.mark.parametrize("name", CHANGES)
def test_what_no_plan_makes_is_refused_with_a_message(
    made: Workplace, tmp_path: Path, name: str
) -> None:
    change, message = CHANGES[name]
    folder = shutil.copytree(made.trials / "t", tmp_path / "t", symlinks=True)
    record = json.loads((folder / "trial.json").read_text())
    cases = [json.loads(line) for line in (folder / "cases.jsonl").read_text().splitlines()]
    change(record, cases)
    lines = "".join(json.dumps(case, separators=(",", ":")) + "\n" for case in cases).encode()
    record |= {"cases_bytes": len(lines), "cases_sha256": hashlib.sha256(lines).hexdigest()}
    (folder / "trial.json").write_text(json.dumps(record))
    (folder / "cases.jsonl").write_bytes(lines)
    for words in (["report", "t", "-o", str(tmp_path / "r.html")], ["judge", "t"], ["resume", "t"]):
        done = made.seatrial("--trials", str(tmp_path), *words)
        assert "Traceback" not in done.err and done.code in (2, 3), done.said
        assert message in done.err, (words, done.said)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text + "\n", "it has"),
        (lambda text: text.replace('"test":"a"', '"test":"b"'), "it was changed after"),
    ],
)
def test_cases_that_were_changed_are_refused(
    made: Workplace, tmp_path: Path, change: Callable[[str], str], message: str
) -> None:
    folder = shutil.copytree(made.trials / "t", tmp_path / "t", symlinks=True)
    cases = folder / "cases.jsonl"
    cases.write_text(change(cases.read_text()))
    with pytest.raises(TrialError, match=rf"cases\.jsonl: {message}"):
        TrialFolder(folder).cases()
