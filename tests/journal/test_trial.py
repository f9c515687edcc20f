"""The fold of a trial's events."""

from typing import Any

from seatrial.journal import events
from seatrial.journal.trial import RECORDED_KINDS, Down, RecordedRun, RunLife, RunState, Trial


def trial_of(*told: events.Event, nodes: list[str] | None = None) -> Trial[RunLife]:
    trial = Trial(lambda event: None if event.follows_verdict else RunLife(), nodes=nodes)
    for event in told:
        trial.apply(event)
    return trial


def test_a_run_begins_with_its_first_event_and_follows_the_others() -> None:
    trial = trial_of(
        events.RunSubmitted(time=1, run_id="r1"),
        events.JobStarted(time=2, run_id="r1", nodes="n1"),
        events.OutputRemoved(time=3, run_id="r2", files=1),
    )
    assert list(trial.runs_by_id) == ["r1"]
    assert trial.runs_by_id["r1"].state is RunState.RUNNING
    assert trial.last == 3


def test_a_recorded_run_keeps_what_is_said_of_its_job_and_its_output() -> None:
    run: dict[str, Any] = {"run_id": "r1", "test": "a", "case": "c"}
    ends = events.JobEnded(time=5, **run, code=0), events.ScriptEnded(time=4, **run, exit_code=1)
    rate = events.MetricRecorded(time=6, **run, metric="rate", value=2.0)
    removed = events.OutputRemoved(time=8, **run, files=1)
    trial = Trial(RecordedRun.begin, kinds={*RECORDED_KINDS, events.MetricRecorded})
    for event in (
        *ends,
        rate,
        events.RunJudged(time=7, **run, code=2, sha256={"x": "5d"}),
        removed,
    ):
        trial.apply(event)
    trial.apply(events.RunJudged(time=9, **run, code=2))
    (recorded,) = trial.runs_by_id.values()
    assert (recorded.run_id, recorded.test, recorded.case) == ("r1", "a", "c")
    assert (recorded.job_end, recorded.script_end) == ends
    assert recorded.ended_by_itself
    assert (recorded.figures, recorded.removals) == ({"rate": rate}, [removed])
    assert (recorded.code, recorded.sha256) == (2, {"x": "5d"}), "the first sums stand"


def test_nodes_that_the_trial_does_not_have_do_not_count() -> None:
    told = (
        events.NodeDown(time=1, nodes="n[1-2]"),
        events.NodeUp(time=4, nodes="n1"),
        events.NodeExcluded(time=5, nodes="n[1-3]", reason="slow"),
        events.NodeAdmitted(time=6, nodes="n3"),
    )
    trial = trial_of(*told, nodes=["n1", "n3"])
    assert trial.downs == [Down("n1", 1, 4)]
    assert trial.excluded == {"n1": "slow"}
    assert trial_of(*told).downs == [Down("n1", 1, 4), Down("n2", 1, None)]


def test_tests_are_stopped_and_held_until_a_person_lets_them_go_on() -> None:
    held = events.TestHeld(time=2, test="b", by="mara")
    trial = trial_of(
        events.TestStopped(time=1, test="a", reason="wrong"),
        held,
        events.TestHeld(time=3, io="heavy"),
        events.TestAdmitted(time=5, test="a"),
        events.TestReleased(time=6, io="heavy"),
        events.TestStopped(time=7, test="a"),
    )
    assert trial.stopped == {"a": ""}
    assert trial.stops == {"a": [(1, 5), (7, None)]}
    assert trial.held == {"b": held}


def test_builds_that_fail_gauges_alerts_and_corrections_are_kept() -> None:
    failed = events.BuildEnded(time=1, key="k", code=1, log="no such header")
    corrected = events.ReferencesCorrected(time=90, references="sha")
    alert = events.AlertRaised(time=5, kind="hung", subject="r1", text="it hangs", active=0)
    trial = trial_of(
        failed,
        events.BuildEnded(time=1, key="l", code=1),
        events.BuildEnded(time=2, key="l", code=0),
        events.GaugeRead(time=3, gauge="load", value=2),
        events.GaugeRead(time=4, gauge="load", reason="no answer"),
        alert,
        corrected,
    )
    assert trial.failed_builds == {"k": failed}
    assert trial.readings == {"load": [(3, 2.0), (4, None)]}
    assert trial.alerts == [alert] and alert.over
    assert trial.corrections == [corrected]
    assert trial.last == 5, "what people record later is no sign of life"
