"""What is in flight: launched and without a verdict, with the sums that caps are about."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Self

from seatrial.conduct.policy import Entry


@dataclass(slots=True)
class Flight:
    """A run that was launched and has no verdict yet. Times in ns; ``on`` are its nodes when they
    are known. ``holds_room`` until its job has ended; ``ended_for`` is why we end it, a verdict's
    code, None while we do not."""

    case: int
    entry: int
    size: int
    nodes: int
    launched: int
    target: str = ""
    stage: str = ""
    started: int = 0
    ended: int = 0
    on: str = ""
    holds_room: bool = True
    cancelled: bool = False
    ended_for: int | None = None


class Counts:
    """Sums over the runs whose jobs have not ended, by entry, target and file system."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries
        self.total = 0
        self.queued = 0  # those that have not started
        self.queued_nodes: Counter[int] = Counter()  # how many runs of that many nodes are queued
        self.running_nodes = 0
        self.in_flight = [0] * len(entries)
        self.nodes = [0] * len(entries)
        self.waiting = [0] * len(entries)
        self.on_target: Counter[str] = Counter()
        self.opens: Counter[str] = Counter()
        self.on_file_system: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()

    def copy(self) -> Self:
        """One to try things out on."""
        other = object.__new__(type(self))
        for name, value in vars(self).items():
            setattr(other, name, value if isinstance(value, int) else value.copy())
        other._entries = self._entries
        return other

    def launch(self, entry: int, nodes: int, target: str) -> None:
        self.queued += 1
        self.queued_nodes[nodes] += 1
        self.waiting[entry] += 1
        self._add(entry, nodes, target, 1)

    def start(self, entry: int, nodes: int) -> None:
        """A queued run has started."""
        self.queued -= 1
        self._unqueue(nodes)
        self.waiting[entry] -= 1
        self.running_nodes += nodes

    def end(self, entry: int, nodes: int, target: str, started: bool) -> None:
        """A run's job is over."""
        if started:
            self.running_nodes -= nodes
        else:
            self.queued -= 1
            self._unqueue(nodes)
            self.waiting[entry] -= 1
        self._add(entry, nodes, target, -1)

    def _unqueue(self, nodes: int) -> None:
        self.queued_nodes[nodes] -= 1
        if not self.queued_nodes[nodes]:
            del self.queued_nodes[nodes]

    def _add(self, entry: int, nodes: int, target: str, sign: int) -> None:
        about = self._entries[entry]
        self.total += sign
        self.in_flight[entry] += sign
        self.nodes[entry] += sign * nodes
        if target:
            self.on_target[target] += sign
            self.opens[target] += sign * about.opens  # type: ignore[assignment]
        if about.file_system:
            self.on_file_system[about.file_system] += sign
            self.bytes[about.file_system] += sign * about.bytes
