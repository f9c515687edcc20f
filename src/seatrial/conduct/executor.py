"""Carrying out a decision, in one order for the driver and for the rehearsal.

for step in carry_out(conductor.decide(now), executor):
    await step                                # a rehearsal has nothing to wait for
"""

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from seatrial.conduct.commands import BuildVerdict, Decision, Launch
from seatrial.journal.events import Event

T = TypeVar("T", covariant=True)


class Executor(Protocol[T]):
    """Carries out a decision. What ``launch``, ``cancel`` and ``recall`` return is awaited by the
    driver."""

    def start_build(self, key: str) -> None: ...

    def judge_by_build(self, command: BuildVerdict) -> None: ...

    def note(self, event: Event) -> None:
        """Record an event, which lacks its time and its trial."""

    def launch(self, launches: Sequence[Launch]) -> T: ...

    def cancel(self, run_ids: Sequence[str]) -> T: ...

    def recall(self, run_ids: Sequence[str]) -> T: ...


def carry_out(decision: Decision, executor: Executor[T]) -> Iterator[T]:
    """Carry out a decision: first what is done by recording it, then launches, cancellations and
    recalls. Yields what these three return. ``wake`` and ``finish`` are the caller's."""
    for command in decision.by_build:
        executor.judge_by_build(command)
    for stop in decision.stops:
        executor.note(stop)
    for key in decision.builds:
        executor.start_build(key)
    for alert in decision.alerts:
        executor.note(alert)
    yield executor.launch(decision.launches)
    if decision.cancels:
        yield executor.cancel(decision.cancels)
    if decision.recalls:
        yield executor.recall(decision.recalls)
