"""The number of runs of each test that a sustained trial keeps in flight."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from seatrial.conduct.admission import Shape
from seatrial.conduct.in_flight import RunInFlight
from seatrial.conduct.policy import Policy
from seatrial.conduct.shares import planned_shares
from seatrial.suite.model import Case
from seatrial.units import ns


class ExpectedRuns(NamedTuple):
    """What is expected of an entry: the number of its ``runs`` in flight, 0 where nothing is
    expected; and how many runs its part of the machine holds (``share``), caps aside."""

    runs: int
    share: float


def expected_runs(policy: Policy, widths: Sequence[int], whole: int) -> list[ExpectedRuns]:
    """Return what is expected of each entry: its copies, or as many runs as its part of the machine
    holds and one at least, but no more than its cap. ``widths`` has what the widest case of each
    entry takes of the ``whole`` machine: of its nodes, or of the cores of a shared node."""
    entries = policy.entries
    if policy.kind != "sustained":
        return [ExpectedRuns(0, 0.0)] * len(entries)
    planned = planned_shares(policy, widths, whole)
    expected = []
    for entry, width, part in zip(entries, widths, planned.shares, strict=True):
        share = part * whole / max(width, 1)
        runs = entry.copies
        if not runs and share > 0:
            runs = max(1, int(share + 1e-9))
        expected.append(ExpectedRuns(min(runs, entry.most or runs), share))
    return expected


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
        time = ns(flight.seconds)
        if time > self._longest[flight.entry]:
            self._longest[flight.entry] = time

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
