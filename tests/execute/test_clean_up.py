"""`keep:` of tests and components: what stays of a run, what goes, and when."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from seatrial.journal.events import OutputRemoved, RunJudged
from seatrial.journal.journal import Journal
from tests.execute.plans import accept, short, write_plan
from tests.programs import Workplace, until

WRITES = """
mkdir -p out/deep
head -c 100000 /dev/zero > out/deep/field.dat
echo 1 > energy.csv
seq 1 30000
echo the end >&2
"""


def left_of(place: Workplace, test: str) -> set[str]:
    """The files of the latest run of a test, with their folders."""
    folder = place.run_folder(test)
    return {
        str((Path(root) / name).relative_to(folder))
        for root, folders, names in os.walk(folder)
        for name in (*names, *folders)
    }


def test_outputs_of_passed_runs_are_removed_and_the_end_of_stdout_stays(place: Workplace) -> None:
    place.test("good", WRITES, keep="failed")
    place.test("bad", WRITES + "exit 7", keep="failed")
    place.test("whole", WRITES)
    done = place.run("--name", "t")
    assert done.code == 1 and place.verdicts() == {"good": "pass", "bad": "failed", "whole": "pass"}
    assert left_of(place, "good") == {"job.sh", "events.jsonl", "stdout.tail", "stderr"}
    tail = (place.run_folder("good") / "stdout.tail").read_bytes()
    assert len(tail) == 64 << 10 and tail.endswith(b"\n29999\n30000\n")
    everything = {"job.sh", "events.jsonl", "stdout", "stderr", "energy.csv"}
    everything |= {"out", "out/deep", "out/deep/field.dat"}
    assert left_of(place, "bad") == left_of(place, "whole") == everything
    (removed,) = place.events("t", OutputRemoved)
    assert (removed.test, removed.files, removed.keep) == ("good", 3, "failed")
    assert removed.names == ["energy.csv", "out/deep/field.dat", "stdout"]
    assert removed.size > 100_000
    place.audit()

    shown = place.seatrial("show", f"t/{removed.run_id}").out
    assert "was removed by `keep`" in shown and "stdout.tail, its last 10 lines" in shown
    assert "3 files removed by keep: failed" in shown
    assert shown.index("stdout.tail, its last") < shown.index("logging_start")


def test_patterns_say_what_goes_and_what_stays(place: Workplace) -> None:
    keep: dict[str, Any] = {"runs": "none", "remove": ["*.dat", "stdout"], "tail": 0}
    place.test("some", WRITES + "echo 2 > big.dat; echo 3 > out/keep.dat", keep=keep)
    place.test("bad", WRITES + "exit 7", keep={"runs": "none", "files": ["out/*", "stdout"]})
    keep["files"] = ["out/keep.dat"]
    place.test("some", WRITES + "echo 2 > big.dat; echo 3 > out/keep.dat", keep=keep)
    assert place.run("--name", "t").code == 1
    common = {"job.sh", "events.jsonl", "stderr"}
    assert left_of(place, "some") == common | {"energy.csv", "out", "out/keep.dat"}
    out = {"stdout", "out", "out/deep", "out/deep/field.dat"}
    assert left_of(place, "bad") == common | out


def test_keep_of_a_component_is_stronger_than_that_of_a_test(place: Workplace) -> None:
    short(place, "good", "echo 1 > out; sleep 0.1", keep="all")
    write_plan(place, tests=["good"], keep="none")
    assert accept(place).code == 0
    (journal,) = (place.folder / "trials").glob("*/journal.jsonl")
    removed = place.events(journal.parent.name, OutputRemoved)
    assert {(event.test, event.keep) for event in removed} == {("good", "none")}
    assert not list(journal.parent.glob("runs/good/*/out"))


def test_nothing_is_removed_through_a_link(place: Workplace) -> None:
    outside = place.folder / "outside"
    outside.mkdir()
    (outside / "precious").write_text("1")
    script = f"ln -s {outside} there; ln -s {outside}/precious file; rm stdout"
    place.test("links", f"{script}; ln -s {outside}/precious stdout", keep="none")
    gone = f'cd ..; rm -r "$SEATRIAL_RUN"; ln -s {outside} "$SEATRIAL_RUN"'
    place.test("swapped", gone, keep="none")
    place.run("--name", "t")
    assert (outside / "precious").read_text() == "1"
    assert {"there", "file", "stdout"} <= left_of(place, "links")
    (swapped,) = place.trial().path.glob("runs/swapped/*")
    assert swapped.is_symlink()


def test_killed_before_files_go_it_goes_on_when_it_is_resumed(place: Workplace) -> None:
    """A second test runs on, so that the driver lives when it is killed; outputs of the first are
    found by the next driver, though it never judged them."""
    place.test("good", WRITES, keep="failed")
    place.test("long", "sleep 600")
    with place.start_run("--name", "t") as driving:
        driving.until(lambda: place.count(OutputRemoved) == 1, "outputs are removed")
        folder = place.run_folder("good")
        until(lambda: not (folder / "stdout").exists(), "stdout is gone")
        driving.kill()
    (folder / "stdout").write_text("as if it had been killed before\n" * 4000)
    with place.start("resume", "t") as driving:
        driving.until(lambda: place.count(OutputRemoved) == 2, "outputs are removed again")
        until(lambda: not (folder / "stdout").exists(), "stdout is gone")
        driving.send(signal.SIGTERM)
        driving.end()
    place.seatrial("cancel", "t")
    assert len([e for e in place.events("t", RunJudged) if e.test == "good"]) == 1


def test_files_go_after_the_verdict_is_on_the_disk(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    from seatrial.execute import kept_files as keep
    from seatrial.execute.creation import create, suite_record
    from seatrial.execute.driver import Driver
    from seatrial.execute.prepare import prepare_trial
    from seatrial.execute.trial_folder import TrialFolder
    from seatrial.model.test import TrialOptions

    place.test("good", WRITES, keep="failed")
    asked = TrialOptions(suites=[str(place.suite)])
    prepared = prepare_trial(asked, str(place.machine))
    folder: TrialFolder = create(place.trials, suite_record(prepared, "t"), prepared.cases)
    order: list[str] = []
    real_sync, real_remove = Journal.sync, keep.remove

    def sync(self: Journal) -> None:
        names = [json.loads(line)["event"] for line in folder.journal.read_text().splitlines()]
        order.append("sync " + names[-1])
        real_sync(self)

    def remove(*given: Any) -> None:
        order.append("remove")
        real_remove(*given)

    monkeypatch.setattr(Journal, "sync", sync)
    monkeypatch.setattr("seatrial.execute.jobs.remove", remove)
    asyncio.run(Driver(folder).drive())
    at = order.index("remove")
    assert at and order[at - 1] in ("sync output_remove", "sync trial_end")


@pytest.mark.parametrize(
    ("keep", "said"),
    [
        ("passed", "'passed' is not one of all, failed, none"),
        ({"tail": "much"}, "'much' is not a size"),
        ({"files": ["../x"]}, "is no pattern of paths inside the run directory"),
        ({"remove": ["/etc/*"]}, "is no pattern of paths inside the run directory"),
        ({"run": "all"}, "did you mean 'runs'"),
    ],
)
def test_faults_are_told(place: Workplace, keep: object, said: str) -> None:
    place.test("bad", keep=keep)
    done = place.run("--name", "t")
    assert done.code == 2 and said in done.err and "keep" in done.err


def test_what_keep_removed_is_not_judged_again(place: Workplace) -> None:
    place.test("good", WRITES, keep="failed", verify=[{"contains": "29999"}])
    assert place.run("--name", "t").code == 0
    place.test("good", WRITES, keep="failed", verify=[{"contains": "no such line"}])
    done = place.seatrial("judge", "t")
    assert "removed by keep" in done.out and "none changed" in done.out, done.said
    assert place.verdicts() == {"good": "pass"}
