"""Carrying out the commands of a decision, in one order for the driver and for the rehearsal.

for step in carry_out(conductor.decide(now), executor):
    await step                                # a rehearsal has nothing to wait for
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from seatrial.conduct.commands import (
    Alert,
    Cancel,
    Command,
    ExcludeNodes,
    Launch,
    Recall,
    Reject,
    StartBuild,
    StopTest,
)
from seatrial.journal.events import AlertRaised, Event, NodeExcluded, TestStopped

T = TypeVar("T", covariant=True)


class Executor(Protocol[T]):
    """Carries out commands. What ``launch``, ``cancel`` and ``recall`` return is awaited by the
    driver."""

    def start_build(self, key: str) -> None: ...

    def reject(self, command: Reject) -> None: ...

    def note(self, event: Event) -> None:
        """Record an event, which lacks its time and its trial."""

    def launch(self, launches: Sequence[Launch]) -> T: ...

    def cancel(self, run_ids: Sequence[str]) -> T: ...

    def recall(self, run_ids: Sequence[str]) -> T: ...


def carry_out(commands: Sequence[Command], executor: Executor[T]) -> Iterator[T]:
    """Carry out commands: first those that are done by recording them, then launches, cancellations
    and recalls, each kind together. Yields what these three return. ``Wake`` and ``Finish`` are the
    caller's."""
    launches: list[Launch] = []
    cancels: list[str] = []
    recalls: list[str] = []
    for command in commands:
        match command:
            case Launch():
                launches.append(command)
            case Cancel():
                cancels.append(command.run_id)
            case Recall():
                recalls.append(command.run_id)
            case StartBuild():
                executor.start_build(command.key)
            case Reject():
                executor.reject(command)
            case StopTest():
                executor.note(TestStopped(test=command.test, reason=command.reason))
            case ExcludeNodes():
                executor.note(NodeExcluded(nodes=command.nodes, reason=command.reason))
            case Alert():
                kind, subject = command.kind, command.subject
                executor.note(AlertRaised(kind=kind, subject=subject, text=command.text))
    yield executor.launch(launches)
    yield executor.cancel(cancels)
    yield executor.recall(recalls)
