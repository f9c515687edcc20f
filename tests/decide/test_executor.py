"""Carrying out a decision: each kind once, in one order."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.decide.conductor import BuildVerdict, Decision, Finish, Launch, carry_out
from seatrial.journal.events import AlertRaised, Event, NodeExcluded, TestStopped


class Recorder:
    """An executor that only writes down what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def start_build(self, key: str) -> None:
        self.asked.append(("build", key))

    def judge_by_build(self, command: BuildVerdict) -> None:
        self.asked.append(command)

    def note(self, event: Event) -> None:
        self.asked.append(event)

    def launch(self, launches: Sequence[Launch]) -> str:
        self.asked.append(list(launches))
        return "launched"

    def cancel(self, run_ids: Sequence[str]) -> str:
        self.asked.append(("cancel", *run_ids))
        return "cancelled"

    def recall(self, run_ids: Sequence[str]) -> str:
        self.asked.append(("recall", *run_ids))
        return "recalled"


LAUNCHES = [Launch(0, "r1"), Launch(1, "r2", target="scratch/a")]
REJECT = BuildVerdict(3, "r3", 31, "no compiler")
STOPS: list[TestStopped | NodeExcluded] = [
    TestStopped(test="stream", reason="wrong"),
    NodeExcluded(nodes="n1", reason="bad"),
]
ALERT = AlertRaised(kind="idle", subject="stream", text="nothing starts")


def test_what_is_recorded_comes_before_launches_cancellations_and_recalls() -> None:
    decision = Decision(
        by_build=[REJECT],
        stops=STOPS,
        builds=["k"],
        alerts=[ALERT],
        launches=LAUNCHES,
        cancels=["r5", "r6"],
        recalls=["r4"],
        wake=5,
    )
    recorder = Recorder()
    assert list(carry_out(decision, recorder)) == ["launched", "cancelled", "recalled"]
    assert recorder.asked == [
        REJECT,
        *STOPS,
        ("build", "k"),
        ALERT,
        LAUNCHES,
        ("cancel", "r5", "r6"),
        ("recall", "r4"),
    ]
    assert list(decision.acts()) == [
        ("by_build", REJECT),
        *[("stops", each) for each in STOPS],
        ("builds", "k"),
        ("alerts", ALERT),
        *[("launches", each) for each in LAUNCHES],
        ("cancels", "r5"),
        ("cancels", "r6"),
        ("recalls", "r4"),
    ]
    assert not decision.idle


def test_each_step_waits_for_the_one_before() -> None:
    recorder = Recorder()
    steps = carry_out(Decision(launches=LAUNCHES, cancels=["r2"]), recorder)
    assert recorder.asked == []
    assert next(steps) == "launched"
    assert recorder.asked == [LAUNCHES]
    assert next(steps) == "cancelled"
    assert recorder.asked[1:] == [("cancel", "r2")]


def test_the_end_is_the_drivers() -> None:
    recorder = Recorder()
    decision = Decision(wake=5, finish=Finish(True, ""))
    assert decision.idle
    list(carry_out(decision, recorder))
    assert recorder.asked == [[]], "what an earlier driver announced is launched all the same"
