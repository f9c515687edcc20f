"""What is still wanted, and what of it is chosen next: ``once``, ``waves`` or ``mix``.

A demand is a fold like the conductor that it belongs to. ``choose`` changes nothing: it takes from
an offer, which goes on from what it gave already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from seatrial.conduct.admission import Desk
from seatrial.conduct.flights import Counts, Flight


class Choice(NamedTuple):
    """A case to launch, with its target and stage."""

    case: int
    target: str = ""
    stage: str = ""


class Offer:
    """What there is for a demand to take: room on a shared node (``room``; ``sizes`` are what cases
    take of it), places at the backend, and what the desk admits. ``nodes`` are usable ones."""

    def __init__(
        self,
        desk: Desk,
        room: int,
        places: int,
        nodes: int,
        size: Callable[[int], int],
        entry_and_nodes: Callable[[int], tuple[int, int]],
    ) -> None:
        self.desk = desk
        self.room = room
        self.places = places
        self.nodes = nodes
        self._size = size
        self._entry_and_nodes = entry_and_nodes

    @property
    def counts(self) -> Counts:
        return self.desk.counts

    def take(self, case: int, stage: str = "") -> Choice | None:
        """The case to launch, or None where it may not start now."""
        size = self._size(case)
        if self.places < 1 or size > self.room:
            return None
        target = self.desk.admit(*self._entry_and_nodes(case))
        if target is None:
            return None
        self.room -= size
        self.places -= 1
        return Choice(case, target, stage)


class Demand(Protocol):
    """Which runs are wanted. ``wanted`` is their number in all, 0 where time decides."""

    wanted: int

    def ready(self, case: int, runs: int) -> None:
        """Runs of a case can start: its build is done, or a run of it is to be made good."""

    def __len__(self) -> int:
        """How many runs wait; not more than could be launched now."""

    def launched(self, case: int, stage: str) -> None: ...

    def ended(self, flight: Flight, seconds: float, again: bool) -> None:
        """A run has its verdict, after so many seconds on its nodes."""

    def choose(self, offer: Offer) -> Iterator[Choice]: ...
