"""The demand of a trial that runs each case its number of times: the oldest that fits is next.

Repeats take turns, in rounds; cases that share an allocation are launched together (``bundles``).
"""

from collections.abc import Collection, Iterator, Sequence

from seatrial.conduct.admission import Shape
from seatrial.conduct.bundles import BundleQueue
from seatrial.conduct.demand import Candidate, Demand, Offer
from seatrial.conduct.in_flight import InFlightCounts, RunInFlight
from seatrial.conduct.policy import Policy
from seatrial.conduct.rounds import Rounds
from seatrial.conduct.run_queue import RunQueue
from seatrial.suite.model import Case


class Once(Demand):
    """Cases wait until there is room. ``grouped``: something else than room can hold cases back;
    then cases that the same thing holds back wait in one queue. ``seed`` draws the order of rounds
    after the first; ``room`` is all that of a shared node."""

    def __init__(
        self,
        cases: Sequence[Case],
        policy: Policy,
        shapes: Sequence[Shape],
        grouped: bool,
        seed: str,
        room: int,
    ) -> None:
        self._cases = cases
        self.wanted = sum(case.repeat for case in cases)
        self._shapes = shapes
        self._grouped = grouped
        self._waiting = RunQueue(Rounds(len(cases), seed).place)
        self._bundles = BundleQueue(cases, policy, shapes, seed, room)

    def __len__(self) -> int:
        return len(self._waiting) + len(self._bundles)

    def runs_of(self, case: int) -> int:
        return self._cases[case].repeat

    def ready(self, case: int) -> None:
        if case in self._bundles:
            self._bundles.ready(case)
        else:
            self._wait(case, self._cases[case].repeat)

    def unbuilt(self, case: int) -> None:
        if case in self._bundles:
            self._bundles.unbuilt(case)

    def again(self, case: int) -> None:
        if case in self._bundles:
            self._bundles.again(case)
        else:
            self._wait(case, 1)

    def left(self) -> Collection[int]:
        return [*self._waiting.heads(), *self._bundles.left()]

    def launched(self, case: int, time: int) -> None:
        if case in self._bundles:
            self._bundles.launched(case)
            return
        shape = self._shapes[case]
        self._waiting.remove(case, shape.size, self._group(shape))

    def ended(self, flight: RunInFlight, seconds: float) -> None:
        if flight.case in self._bundles:
            self._bundles.ended(flight.case)

    def wants(self, counts: InFlightCounts, room: int, nodes: int) -> bool:
        return self._waiting.fits(room) or self._bundles.fits(room)

    def choose(self, offer: Offer) -> Iterator[Candidate]:
        yield from self._bundles.choose(offer)
        room, places = offer.room, offer.places
        if offer.lets_all:
            yield from (Candidate(case) for case in self._waiting.choose(room, places))
            return
        taken: list[Candidate] = []

        def admit(case: int) -> bool:
            choice = offer.take(case)
            if choice is not None:
                taken.append(choice)
            return choice is not None

        self._waiting.choose(room, places, admit)
        yield from taken

    def _wait(self, case: int, runs: int) -> None:
        shape = self._shapes[case]
        self._waiting.add(case, shape.size, runs, self._group(shape))

    def _group(self, shape: Shape) -> object:
        return (
            (shape.entry, shape.nodes, shape.gpus, shape.unfit, shape.wish)
            if self._grouped
            else None
        )
