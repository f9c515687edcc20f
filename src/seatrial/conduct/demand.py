"""What is still wanted, and what of it is chosen next: ``once``, ``waves`` or ``mix``.

A demand is a fold like the conductor that it belongs to. ``choose`` changes nothing: it takes from
an offer, which goes on from what it gave already.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple, Protocol

from seatrial.conduct.admission import Desk, Shape
from seatrial.conduct.flights import Counts, Flight


class Choice(NamedTuple):
    """A case to launch, with its target and stage."""

    case: int
    target: str = ""
    stage: str = ""


class Offer:
    """What there is for a demand to take: room on a shared node, places at the backend, and what
    the desk admits. ``nodes`` are those that can be used now, 0 where their number is unknown."""

    def __init__(
        self, desk: Desk, room: int, places: int, nodes: int, shape: Callable[[int], Shape]
    ) -> None:
        self.desk = desk
        self.room = room
        self.places = places
        self.nodes = nodes
        self.shape = shape

    @property
    def counts(self) -> Counts:
        return self.desk.counts

    def take(self, case: int, stage: str = "") -> Choice | None:
        """The case to launch, or None where it may not start now."""
        shape = self.shape(case)
        if self.places < 1 or shape.size > self.room:
            return None
        target = self.desk.admit(shape)
        if target is None:
            return None
        self.room -= shape.size
        self.places -= 1
        return Choice(case, target, stage)


class Demand(Protocol):
    """Which runs are wanted. ``wanted`` is their number in all, 0 where time decides."""

    wanted: int

    def runs_of(self, case: int) -> int:
        """How many runs of a case are wanted in all; each has a verdict if its build fails."""

    def ready(self, case: int) -> None:
        """The runs of a case can start: its build is done."""

    def again(self, case: int, stage: str) -> None:
        """A run of a case is to be made good."""

    def __len__(self) -> int:
        """How many runs wait; not more than could be launched now."""

    def left(self) -> Collection[int]:
        """The cases of which runs wait that can start as far as builds go; of some of them, one
        for each entry and number of nodes is enough."""

    def launched(self, case: int, stage: str) -> None: ...

    def ended(self, flight: Flight, seconds: float) -> None:
        """A run has its verdict, after so many seconds on its nodes."""

    def wants(self, counts: Counts, room: int, nodes: int) -> bool:
        """False where ``choose`` would surely choose nothing, so that nobody need ask."""

    def choose(self, offer: Offer) -> Iterable[Choice]: ...
