"""How long runs take: by those that passed, else by their walltimes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seatrial.conduct.admission import Shape
from seatrial.conduct.in_flight import RunInFlight
from seatrial.suite.model import Case
from seatrial.units import ns


class RunTimes:
    """The time (ns) within which runs of an entry end: that of its longest run that passed, its
    longest walltime before one has."""

    def __init__(self, cases: Sequence[Case], shapes: Sequence[Shape], entries: int) -> None:
        self._walltime = [0] * entries
        for case, shape in zip(cases, shapes, strict=True):
            self._walltime[shape.entry] = max(self._walltime[shape.entry], ns(case.walltime))
        self._longest = [0] * entries

    def passed(self, flight: RunInFlight) -> None:
        """Record a run that passed."""
        self._longest[flight.entry] = max(self._longest[flight.entry], ns(flight.seconds))

    def of(self, entry: int) -> int:
        return self._longest[entry] or self._walltime[entry]

    def next_end(self, runs: Iterable[RunInFlight], latest: int) -> int:
        """Return when a run should be over next, of those that should not have been at ``latest``;
        0: there is none."""
        ends = (run.job_started + self.of(run.entry) for run in runs if run.job_started)
        return min((end for end in ends if end > latest), default=0)

    def longest(self, runs: Iterable[RunInFlight]) -> int:
        """Return the longest time of the runs that have started."""
        return max((self.of(run.entry) for run in runs if run.job_started), default=0)
