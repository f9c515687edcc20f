"""Carrying out commands: each kind once, in one order."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.conduct.commands import (
    Alert,
    Cancel,
    Command,
    ExcludeNodes,
    Finish,
    Launch,
    Recall,
    Reject,
    StartBuild,
    StopTest,
    Wake,
)
from seatrial.conduct.executor import carry_out
from seatrial.journal.events import AlertRaised, Event, NodeExcluded, TestStopped


class Recorder:
    """An executor that only writes down what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def start_build(self, key: str) -> None:
        self.asked.append(("build", key))

    def reject(self, command: Reject) -> None:
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


def test_what_is_recorded_comes_before_launches_cancellations_and_recalls() -> None:
    launches = [Launch(0, "r1"), Launch(1, "r2", target="scratch/a")]
    reject = Reject(3, "r3", 31, "no compiler")
    commands: list[Command] = [
        Recall("r4"),
        Cancel("r5"),
        launches[0],
        reject,
        StopTest("stream", "wrong"),
        ExcludeNodes("n1", "bad"),
        StartBuild("k"),
        launches[1],
        Cancel("r6"),
        Alert("idle", "stream", "nothing starts"),
        Wake(5),
    ]
    recorder = Recorder()
    assert list(carry_out(commands, recorder)) == ["launched", "cancelled", "recalled"]
    assert recorder.asked == [
        reject,
        TestStopped(test="stream", reason="wrong"),
        NodeExcluded(nodes="n1", reason="bad"),
        ("build", "k"),
        AlertRaised(kind="idle", subject="stream", text="nothing starts"),
        launches,
        ("cancel", "r5", "r6"),
        ("recall", "r4"),
    ]


def test_each_step_waits_for_the_one_before() -> None:
    recorder = Recorder()
    steps = carry_out([Launch(0, "r1"), Cancel("r2")], recorder)
    assert recorder.asked == []
    assert next(steps) == "launched"
    assert recorder.asked == [[Launch(0, "r1")]]
    assert next(steps) == "cancelled"
    assert recorder.asked[1:] == [("cancel", "r2")]


def test_the_end_is_the_drivers() -> None:
    recorder = Recorder()
    list(carry_out([Finish(True, "")], recorder))
    assert recorder.asked == [[], ("cancel",), ("recall",)]
