"""The demand of a tuning: the runs of the blocks of its race, each block in one allocation.

The race decides after each block which settings run in the next one (``race``). Settings are cases:
those of one group of the policy share the allocation of a block, as a bundle (``bundles``); others
run one after the other.
"""

from collections.abc import Collection, Iterator, Sequence

from seatrial.conduct.admission import Shape
from seatrial.conduct.demand import Candidate, Demand, Offer
from seatrial.conduct.in_flight import InFlightCounts, RunInFlight
from seatrial.conduct.largest import LargestSearch
from seatrial.conduct.policy import Policy
from seatrial.conduct.race import Race
from seatrial.conduct.race_rules import RaceRules
from seatrial.journal.codes import CUT_OFF, PASS, PERFORMANCE, code_of
from seatrial.suite.model import Case
from seatrial.verify.figures import ELAPSED

RIGHT = (PASS.number, PERFORMANCE.number)  # the answer was right, so the figure counts


class RaceDemand(Demand):
    """The runs of a race. ``waiting`` are those of the current block that are to be launched, as
    (case, round) in their order."""

    def __init__(
        self, cases: Sequence[Case], policy: Policy, shapes: Sequence[Shape], rules: RaceRules
    ) -> None:
        self.race = LargestSearch(rules) if rules.search == "largest" else Race(rules)
        self._shapes = shapes
        self._groups = policy.bundle_of or [0] * len(cases)
        self._unready = set(range(len(cases)))
        self._waiting: list[tuple[int, int]] = []
        self._rounds: dict[tuple[int, int], int] = {}  # of runs in flight, by case and attempt
        self._launched = [0] * len(cases)
        self._again = False  # whether the run that just ended is to be repeated
        self._planned = 0  # runs of all blocks
        self.over = False

    @property
    def wanted(self) -> int:  # type: ignore[override]
        """The runs of all blocks; the most that there can be while the race goes on."""
        return self._planned if self.over else max(self._planned, self.race.rules.runs)

    # ---- events in ------------------------------------------------------------------------

    def ready(self, case: int) -> None:
        self._unready.discard(case)
        self._go_on()

    def unbuilt(self, case: int) -> None:
        self.race.exclude(case, "build failed")
        self._planned += 1  # its verdict
        self.ready(case)

    def again(self, case: int) -> None:
        self._again = True

    def launched(self, case: int, time: int) -> None:
        place = next((n for n, each in enumerate(self._waiting) if each[0] == case), None)
        if place is not None:  # else an older version of Seatrial chose it
            self._rounds[case, self._launched[case]] = self._waiting.pop(place)[1]
        self._launched[case] += 1

    def ended(self, flight: RunInFlight, seconds: float) -> None:
        case, again, self._again = flight.case, self._again, False
        number = self._rounds.pop((case, flight.attempt), None)
        if number is not None and again:
            self._waiting.append((case, number))
        elif number is not None:
            self._record(case, number, flight)
        self._go_on()

    def _record(self, case: int, number: int, flight: RunInFlight) -> None:
        figure = flight.figure
        if figure is None and self.race.rules.metric == ELAPSED:
            figure = flight.elapsed  # its script's own time, as everywhere else
        if self.race.rules.search == "largest":
            figure = 1.0  # it works
        if flight.code not in RIGHT:
            reason = f": {flight.reason}" if flight.reason else ""
            cause = f"{code_of(flight.code).name}{reason}"
            told = self.race.cut_off if flight.code in CUT_OFF else self.race.fail
            told(case, number, cause)
        elif figure is None:
            self.race.fail(case, number, f"no figure of {self.race.rules.metric}")
        else:
            self.race.record(case, number, figure)

    def _go_on(self) -> None:
        """End the block that has run, and begin the next."""
        race = self.race
        if self.over or self._unready or self._waiting or self._rounds:
            return
        if race.blocks:
            race.end_block()
        block = race.next_block()
        first = race.rounds_begun
        self._waiting = [(case, n) for n, order in enumerate(block, first) for case in order]
        self._planned += len(self._waiting)
        self.over = not block

    # ---- choices out ----------------------------------------------------------------------

    def __len__(self) -> int:
        return int(bool(self._waiting) and not self._rounds)

    def left(self) -> Collection[int]:
        return [case for case, _ in self._waiting[:1]]

    def wants(self, counts: InFlightCounts, room: int, nodes: int) -> bool:
        return bool(len(self))

    def choose(self, offer: Offer) -> Iterator[Candidate]:
        """Yield the runs of the next allocation, whole, or the next run alone. Nothing runs beside
        it: that would be measured, too."""
        if not len(self):
            return
        group = self._groups[self._waiting[0][0]]
        if not group:
            choice = offer.take(self._waiting[0][0])
            if choice is not None:
                yield choice
            return
        cases = [case for case, _ in self._waiting if self._groups[case] == group]
        largest = max(self._shapes[case].size for case in cases)  # one runs at a time
        if offer.take_together(cases, largest):
            yield from (Candidate(case, bundle=1) for case in cases)
