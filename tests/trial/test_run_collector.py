"""Judging the runs that have ended: beside the trial where it takes long, and never a pass for a
script that did not run."""

from __future__ import annotations

import asyncio
import signal
from functools import partial

import pytest

from seatrial.backends.protocol import Ended
from seatrial.journal.events import RunJudged, TrialCancelled, TrialPaused
from seatrial.runs.directory import JobEvents
from seatrial.trial.driver import Driver
from seatrial.trial.outcome import TWICE
from seatrial.trial.run_collector import CollectedRun, EndedRun
from tests.programs import LONG_S, Driving, Workplace, until


def test_a_long_judgement_holds_up_no_walltime(place: Workplace) -> None:
    place.constants = {"verify.search.SEARCH_SECONDS": 6}
    print_xs = "head -c 20000 /dev/zero | tr '\\0' x"
    place.test("endless", print_xs, verify=[{"matches": "(x+x+)+y"}])
    place.test("long", "sleep 1000", run={"walltime": "1s"})
    done = place.run("--name", "t")
    assert place.verdicts() == {"endless": "check error", "long": "timeout"}, done.said
    ended = [event.test for event in place.events("t", RunJudged)]
    assert ended == ["long", "endless"]
    place.audit()


def _exited(run_id: str, _: JobEvents) -> Ended:
    return Ended(run_id, None, "exited", 0)


def test_only_what_is_surely_quick_is_judged_at_once(place: Workplace) -> None:
    check = {"contains": "x"}
    place.test("nothing")
    place.test("small", verify=[check])
    place.test("page", "big", verify=[check])
    place.test("big_but_not_read", "big")
    place.test("hash", verify=[{"identical": "x", "sha256": "0" * 64}])
    place.test("file", verify=[{**check, "in": "x"}])
    metric = {"find": r"(\S+)", "unit": "1", "better": "higher", "in": "x"}
    place.test("metric", metrics={"rate": metric})
    folder = place.test("function", metrics={"python": "figures.py:read"})
    (folder / "figures.py").touch()
    assert place.run("--name", "t", "--dry-run").code == 0
    driver = Driver(place.trial())
    quick = set()
    for case in driver.conductor.state.cases:
        (run,) = place.trial().path.glob(f"runs/{case.test}/*")
        (run / "stdout").write_bytes(
            b"x" * (10_000 if "big" in (run / "job.sh").read_text() else 9)
        )
        if case.test == "page":
            (run / "stdout").write_bytes(b"x" * 10_000)
        ended = EndedRun(case, run, "", partial(_exited, run.name))
        collected = driver._collector.collect(ended)
        if isinstance(collected, CollectedRun):
            quick.add(case.test)
        else:
            collected.close()
    assert quick == {"nothing", "small", "big_but_not_read"}


def test_a_script_that_never_ran_does_not_pass(place: Workplace) -> None:
    place.local(setup="exit 0")
    place.test("skipped")
    assert place.run("--name", "t").code == 1
    assert place.verdicts() == {"skipped": "failed"}
    assert "the job script ended before the test's own did" in place.why("skipped")


# ---- leaving -----------------------------------------------------------------------------------


def _judged_long(place: Workplace) -> Driving:
    """A trial that judges for long, the first time."""
    begun = place.folder / "begun"
    code = f"""
import time, pathlib
def read(folder):
    begun = pathlib.Path({str(begun)!r})
    if not begun.exists():
        begun.touch()
        time.sleep(600)
    return {{"rate": 1.0}}
"""
    folder = place.test("a", metrics={"python": "figures.py:read"})
    (folder / "figures.py").write_text(code)
    driving = place.start_run("--name", "t")
    driving.until(begun.exists, "the judgement")
    return driving


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_does_not_wait_for_a_judgement(
    place: Workplace, number: signal.Signals
) -> None:
    with _judged_long(place) as driving:
        driving.send(number)
        done = driving.end()
    assert done.code == 3, done.said
    assert not place.count(RunJudged)
    assert "seatrial resume t" in done.err
    assert place.resume().code == 0
    place.audit()


def test_ctrl_c_three_times_leaves_at_once(place: Workplace) -> None:
    with _judged_long(place) as driving:
        driving.send(signal.SIGINT)
        until(lambda: place.count(TrialPaused) == 1, "the pause")
        driving.send(signal.SIGINT)
        until(lambda: place.count(TrialCancelled) == 1, "the cancellation")
        assert place.events("t", TrialCancelled)[0].reason == TWICE
        driving.send(signal.SIGINT)
        done = driving.end()
    assert done.code == 3, done.said
    assert not place.count(RunJudged)
    assert "three times" in done.err
    assert place.resume().code == 0
    place.audit()


def test_a_driver_that_waits_for_a_frozen_scheduler_can_be_stopped(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seatrial.trial.driver import Stop

    place.test("a")
    assert place.run("--name", "t", "--dry-run").code == 0
    driver = Driver(place.trial())

    async def frozen(*_: object) -> None:
        await asyncio.sleep(1000)

    monkeypatch.setattr(driver.backend, "submit", frozen)

    async def drive() -> None:
        asyncio.get_running_loop().call_later(0.1, driver.stop)
        await asyncio.wait_for(driver.drive(), LONG_S)

    with pytest.raises(Stop):
        asyncio.run(drive())
    assert place.resume().code == 0
    place.audit()
