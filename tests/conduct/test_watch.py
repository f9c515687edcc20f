from __future__ import annotations

from typing import Any

from seatrial.conduct.commands import Alert, Cancel, Wake
from seatrial.conduct.conductor import Conductor, Limits
from seatrial.conduct.policy import Entry, Policy, Watch, Window
from seatrial.journal.codes import CANCELLED, HUNG, Name
from seatrial.journal.events import Event

from .world import a_run

NS = 10**9


class Told:
    """A sustained trial of one test on 8 nodes, and what it tells."""

    def __init__(self, copies: int = 2, watch: Watch | None = None, **more: Any) -> None:
        entry = Entry(name="t", copies=copies, most=copies, **more.pop("entry", {}))
        policy = Policy(
            kind="sustained",
            entries=[entry],
            entry_of=[0],
            duration=1e6,
            nodes=8,
            watch=watch or Watch(),
            **more,
        )
        self.conductor = Conductor("tag", [a_run(0, "t")], Limits(), policy)
        self.note(1, Name.TRIAL_START)

    def note(self, time: float, name: str, run_id: str = "", **more: Any) -> None:
        case = "case0" if run_id else ""
        event = Event(time=round(time * NS), event=name, case=case, run_id=run_id, **more)
        self.conductor.apply(event)

    def alerts(self, time: float) -> list[tuple[str, str, str]]:
        found = self.conductor.decide(round(time * NS))
        alerts = [tuple(each) for each in found if isinstance(each, Alert)]
        for kind, subject, _ in alerts:
            self.note(time, Name.ALERT, alias=kind, test=subject)
        return alerts  # type: ignore[return-value]

    def wake(self, time: float) -> float | None:
        found = self.conductor.decide(round(time * NS))
        return next((each.time / NS for each in found if isinstance(each, Wake)), None)


def test_a_test_that_is_short_for_long_is_told_and_again_after_a_while() -> None:
    told = Told(watch=Watch(short_for=60, again=100))
    told.note(10, Name.SUBMIT_START, "r1")
    assert told.wake(11) == 61
    assert told.alerts(60.9) == []
    assert told.alerts(61) == [("short", "t", "t: 1 in flight instead of 2 for more than 1 m 0 s")]
    assert told.wake(62) == 161
    assert [kind for kind, _, _ in told.alerts(161)] == ["short"]
    told.note(170, Name.SUBMIT_START, "r2")
    assert told.alerts(400) == []


def test_what_a_blackout_holds_back_is_not_short() -> None:
    told = Told(watch=Watch(short_for=60), blackouts=[Window(start=20, end=500)])
    assert told.wake(2) == 21, "what is launched now may still wait then, and is taken back"
    assert told.wake(21) == 501
    assert told.alerts(560.9) == []
    assert told.alerts(561)


def test_after_a_pause_what_is_there_is_not_short() -> None:
    told = Told(copies=1, watch=Watch(short_for=60))
    told.note(2, Name.SUBMIT_START, "r1")
    told.note(50, Name.TRIAL_PAUSE)
    told.note(500, Name.TRIAL_RESUME)
    assert told.alerts(700) == []


def test_silence_is_told_but_not_in_a_planned_outage() -> None:
    told = Told(copies=1, watch=Watch(silent_for=60), outages=[Window(start=100, end=200)])
    told.note(2, Name.SUBMIT_START, "r1")
    told.note(30, Name.METRIC, "r1")
    text = "nothing has happened for 1 m 0 s, though 1 run are under way"
    assert told.alerts(90) == [("silent", "", text.replace("are", "is"))]
    told.note(95, Name.METRIC, "r1")
    quiet = Told(copies=1, watch=Watch(silent_for=60), outages=[Window(start=49, end=199)])
    quiet.note(2, Name.SUBMIT_START, "r1")
    assert (quiet.alerts(259), len(quiet.alerts(260))) == ([], 1)


def test_a_wait_out_of_proportion_is_told() -> None:
    told = Told(copies=3, watch=Watch(wait_factor=5, wait_least=30))
    for run, queued, started in (("a", 10, 20), ("b", 10, 20), ("c", 20, None)):
        told.note(queued, Name.SUBMIT_START, run)
        told.note(queued, Name.JOB_QUEUED, run)
        if started:
            told.note(started, Name.JOB_START, run)
    assert told.alerts(69) == []
    ((kind, subject, text),) = told.alerts(70)
    assert (kind, subject) == ("wait", "t")
    assert "run c has waited in the queue for more than 50.0 s; usual is 10.0 s" in text


def test_a_hung_run_is_told_once_and_ended_if_so_wanted() -> None:
    for ends in (True, False):
        told = Told(copies=1, entry={"end_quiet": ends})
        told.note(2, Name.SUBMIT_START, "r1")
        told.note(3, Name.OUTPUT_QUIET, "r1", value=100.0)
        cancels = [c for c in told.conductor.decide(4 * NS) if isinstance(c, Cancel)]
        assert cancels == [Cancel("r1")] * ends
        assert told.conductor.ended_for("r1") == (HUNG.number if ends else None)
        assert [kind for kind, _, _ in told.alerts(4)] == ["hung"]
        told.note(5, Name.OUTPUT_QUIET, "r1", value=200.0)
        assert not ends or told.alerts(6) == []
        told.note(7, Name.CHECK_END, "r1", value=CANCELLED.number)
        assert not any(isinstance(c, Cancel) for c in told.conductor.decide(8 * NS))


def test_stops_and_exclusions_are_told_once_and_again_after_they_were_taken_back() -> None:
    told = Told()
    for _ in range(2):
        told.note(2, Name.TEST_STOP, test="t", text="broken")
        told.note(2, Name.NODE_EXCLUDE, nodes="n[1-2]", text="bad")
        assert sorted(each[:2] for each in told.alerts(3)) == [
            ("excluded", "n[1-2]"),
            ("stopped", "t"),
        ]
        assert told.alerts(99999) == []
        told.note(4, Name.TEST_ADMIT, test="t")
        told.note(4, Name.NODE_ADMIT, nodes="n[1-2]")
