"""The demand of a trial that runs each case its number of times: the oldest that fits is next."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from seatrial.conduct.admission import Shape
from seatrial.conduct.demand import Candidate, Demand, Offer
from seatrial.conduct.in_flight import InFlightCounts
from seatrial.conduct.run_queue import RunQueue
from seatrial.suite.model import Case


class Once(Demand):
    """Cases wait until there is room. ``grouped``: something else than room can hold cases back;
    then cases that the same thing holds back wait in one queue."""

    def __init__(self, cases: Sequence[Case], shapes: Sequence[Shape], grouped: bool) -> None:
        self._cases = cases
        self.wanted = sum(case.repeat for case in cases)
        self._shapes = shapes
        self._grouped = grouped
        self._waiting = RunQueue()

    def __len__(self) -> int:
        return len(self._waiting)

    def runs_of(self, case: int) -> int:
        return self._cases[case].repeat

    def ready(self, case: int) -> None:
        self._wait(case, self._cases[case].repeat)

    def again(self, case: int) -> None:
        self._wait(case, 1)

    def left(self) -> Collection[int]:
        return self._waiting.heads()

    def launched(self, case: int, time: int) -> None:
        shape = self._shapes[case]
        self._waiting.remove(case, shape.size, self._group(shape))

    def wants(self, counts: InFlightCounts, room: int, nodes: int) -> bool:
        return self._waiting.fits(room)

    def choose(self, offer: Offer) -> Iterator[Candidate]:
        room, places = offer.room, offer.places
        if offer.lets_all:
            return (Candidate(case) for case in self._waiting.choose(room, places))
        taken: list[Candidate] = []

        def admit(case: int) -> bool:
            choice = offer.take(case)
            if choice is not None:
                taken.append(choice)
            return choice is not None

        self._waiting.choose(room, places, admit)
        return iter(taken)

    def _wait(self, case: int, runs: int) -> None:
        shape = self._shapes[case]
        self._waiting.add(case, shape.size, runs, self._group(shape))

    def _group(self, shape: Shape) -> object:
        return (shape.entry, shape.nodes, shape.gpus, shape.unfit) if self._grouped else None
