"""The demand of a trial that runs every case its number of times: the oldest that fits is next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from seatrial.conduct.demand import Choice, Offer
from seatrial.conduct.flights import Flight
from seatrial.conduct.packing import Waiting
from seatrial.suite.model import Case


class Once:
    """Cases wait until there is room; ``plain`` where nothing but room holds them back."""

    def __init__(self, cases: Sequence[Case], size: Callable[[int], int], plain: bool) -> None:
        self.wanted = sum(case.repeat for case in cases)
        self._size = size
        self._plain = plain
        self._waiting = Waiting()

    def __len__(self) -> int:
        return len(self._waiting)

    def ready(self, case: int, runs: int) -> None:
        self._waiting.add(case, self._size(case), runs)

    def launched(self, case: int, stage: str) -> None:
        self._waiting.remove(case, self._size(case))

    def ended(self, flight: Flight, seconds: float, again: bool) -> None:
        pass

    def choose(self, offer: Offer) -> Iterator[Choice]:
        room, places = offer.room, offer.places
        if self._plain:
            return (Choice(case) for case in self._waiting.choose(room, places))
        taken: list[Choice] = []

        def admit(case: int) -> bool:
            choice = offer.take(case)
            if choice is not None:
                taken.append(choice)
            return choice is not None

        self._waiting.choose(room, places, admit)
        return iter(taken)
