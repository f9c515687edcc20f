"""A rehearsal fed by what a trial measured."""

from __future__ import annotations

import pytest

from seatrial.errors import UsageError
from seatrial.journal.events import RunJudged, ScriptEnded, ScriptStarted
from seatrial.plugins.rehearsal.plan_rehearsal import measured_in
from seatrial.plugins.rehearsal.report import rehearse_plan
from tests.plugins.rehearsal.stage import SECOND, Played, Stage


def elapsed(played: Played) -> set[int]:
    """Milliseconds of the scripts of runs that passed."""
    passed = {event.run_id for event in played.of(RunJudged) if event.verdict == "pass"}
    starts = {e.run_id: e.time for e in played.of(ScriptStarted)}
    ends = {e.run_id: e.time for e in played.of(ScriptEnded)}
    return {round((ends[run] - starts[run]) * 1000 / SECOND) for run in passed}


def test_elapsed_times_of_yesterdays_trial_are_drawn_from(stage: Stage) -> None:
    stage.test("work")
    stage.behave("work", elapsed={"mean": 60, "sd": 10}, wrong="20%")
    stage.component("c", tests=["work"], repeat=40)
    yesterday = stage.play(name="yesterday")
    stage.behave("work", elapsed={"trial": "yesterday"})
    path, store = stage.write(), stage.trials / "store.sqlite"
    report = rehearse_plan(path, trials=stage.trials, store=store, seed=2)
    today = stage.read(report.first[0])
    assert len(today.of(RunJudged)) == 40
    assert elapsed(today) < elapsed(yesterday)
    measured = measured_in(store, stage.trials)
    assert len(measured("yesterday", "work")) == yesterday.verdicts()["pass"]


def test_a_trial_that_has_no_good_run_of_a_test_is_told(stage: Stage) -> None:
    stage.test("work")
    stage.behave("work", elapsed="1m", fails=1)
    stage.component("c", tests=["work"])
    stage.play(name="yesterday")
    measured = measured_in(stage.trials / "store.sqlite", stage.trials)
    with pytest.raises(UsageError, match="trial yesterday has no run of work whose answer"):
        measured("yesterday", "work")
    with pytest.raises(UsageError, match="no trial 'never'"):
        measured("never", "work")
