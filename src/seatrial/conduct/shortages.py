"""The tests that have too few runs in flight, and since when.

    shortages = Shortages(dues, excused)
    shortages.count(entry, in_flight, time)     # after each event that changes what is in flight
    shortages.since                             # entry -> time (ns)

Of a test with copies all are due. Of one with a part of the machine half of the runs that its part
holds are due: others may have their turn. It is not short while that is normal for the mix, which
``excused`` says: its build goes on, a throttle or a person holds it back, one of its runs waits at
the scheduler, or no nodes are free for it and none of the others was launched out of turn.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from seatrial.conduct.admission import Shape
from seatrial.conduct.expected_runs import expected_runs
from seatrial.conduct.policy import Policy, fitting
from seatrial.suite.model import Case
from seatrial.units import ns


class Due(NamedTuple):
    """When people are told that an entry is short: fewer than ``least`` of its ``expected`` runs
    are in flight for longer than the policy's ``short_for`` and ``gap`` (ns)."""

    expected: int
    least: int
    gap: int = 0


def dues_of(cases: Sequence[Case], shapes: Sequence[Shape], policy: Policy, room: int) -> list[Due]:
    """Return what each entry is due. Where the part of an entry holds less than two runs, gaps of
    two walltimes over that number are usual. ``room`` is the cores of a shared node, 0 where there
    is none."""
    entries = policy.entries
    widest, walltime = [1] * len(entries), [0.0] * len(entries)
    fit = [0] * len(entries)  # the nodes that its cases can use
    for case, shape in zip(cases, shapes, strict=True):
        entry = shape.entry
        widest[entry] = max(widest[entry], shape.width)
        walltime[entry] = max(walltime[entry], case.walltime)
        fit[entry] = max(fit[entry], fitting(policy, shape.unfit))
    dues = []
    for number, (runs, share) in enumerate(expected_runs(policy, widest, room or policy.nodes)):
        if entries[number].copies:
            dues.append(Due(runs, runs))
            continue
        if not room and 0 < fit[number] < policy.nodes:
            runs = min(runs, fit[number] // widest[number])
        gap = 2 * walltime[number] / share if 0 < share < 2 else 0.0
        dues.append(Due(runs, (runs + 1) // 2, ns(gap)))
    return dues


class Shortages:
    """``since`` has the time (ns) since which an entry is short, and may not be."""

    def __init__(self, dues: Sequence[Due], excused: Callable[[int, int], bool]) -> None:
        self._dues = dues
        self._excused = excused
        self.low: set[int] = set()  # entries with fewer runs than are due, excused or not
        self.passed_over: set[int] = set()
        self.since: dict[int, int] = {}

    def count(self, entry: int, in_flight: int, time: int) -> None:
        """Record the number of runs in flight of an entry."""
        if in_flight < self._dues[entry].least:
            self.low.add(entry)
        elif self.low:
            self.low.discard(entry)
            self.since.pop(entry, None)

    def look(self, time: int) -> bool:
        """Find out which entries are excused now. Returns whether one is no longer."""
        before = len(self.since)
        for entry in self.low:
            if self._excused(entry, time):
                before -= self.since.pop(entry, None) is not None
            else:
                self.since.setdefault(entry, time)
        return len(self.since) > before

    def change(self, dues: Sequence[Due], in_flight: Sequence[int], time: int) -> None:
        """Follow other dues: an entry that is short by both was short before, too."""
        self._dues = dues
        for entry, runs in enumerate(in_flight):
            self.count(entry, runs, time)
        self.look(time)

    def restart(self, entry: int, in_flight: int, time: int) -> None:
        """Count from now how long an entry is short."""
        self.since.pop(entry, None)
        self.count(entry, in_flight, time)
        self.look(time)
