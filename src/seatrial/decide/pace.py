"""The pace of tests whose shares leave a part of the machine idle.

A test may always start a run where its runs in flight then hold no more nodes than its share. A
share that is no whole number of runs is kept in time: a further run starts when the runs so far, at
their usual time, have used up the share up to now (the generic cell rate algorithm, ITU-T I.371).
Time that was lost before is made up for by one run at most.
"""

import math
from collections.abc import Mapping, Sequence

from seatrial.decide.admission import ROUNDING, Shape
from seatrial.decide.in_flight import InFlightCounts
from seatrial.units import SECOND_NS


class Pace:
    """The share of each entry in ``nodes`` (of a shared node: in cores), and what it has started.

    Since ``_base`` (ns) the runs that were launched have a width of ``_width`` together."""

    def __init__(
        self, nodes: Sequence[float], widths: Sequence[int], copies: Sequence[int]
    ) -> None:
        self._nodes = [each + ROUNDING for each in nodes]
        fitting = [int(each // width) for each, width in zip(self._nodes, widths, strict=True)]
        # tests with copies alone keep to them; others may make up for lost time by one run
        self._most = [
            number if 0 < runs <= number else runs + 1
            for number, runs in zip(copies, fitting, strict=True)
        ]
        self._widths = widths
        self._base = [0] * len(nodes)  # 0 before the first launch
        self._width = [0] * len(nodes)
        self._known: list[tuple[float, int] | None] = [None] * len(nodes)

    def launched(self, entry: int, width: int, time: int, usual: float) -> None:
        """Record the launch of a run. ``usual`` is the time of a run of the entry in seconds."""
        earliest = self._earliest(entry, time, usual)
        if earliest > self._base[entry] + self._span(entry, self._width[entry], usual):
            self._base[entry], self._width[entry] = earliest, 0
        self._width[entry] += width
        self._known[entry] = None

    def due(self, entry: int, now: int, usual: float, ahead: int = 0) -> int:
        """Return when the share will be used up (ns) by the runs so far, and by runs of the width
        ``ahead`` that are launched now."""
        due = self._used_up(entry, usual)
        if due < now and (earliest := self._earliest(entry, now, usual)) > due:
            return earliest + self._span(entry, ahead, usual)
        if not ahead:
            return due
        return self._base[entry] + self._span(entry, self._width[entry] + ahead, usual)

    def _used_up(self, entry: int, usual: float) -> int:
        """Return when the share is used up by the runs that were launched (ns); kept, as it is
        asked for often between two launches."""
        known = self._known[entry]
        if known is None or known[0] != usual:
            span = self._span(entry, self._width[entry], usual)
            known = self._known[entry] = usual, self._base[entry] + span
        return known[1]

    def _earliest(self, entry: int, now: int, usual: float) -> int:
        """Return the time before which nothing is made up for: that of one run, none at first."""
        if not self._base[entry]:
            return now
        return now - self._span(entry, self._widths[entry], usual)

    def _span(self, entry: int, width: int, usual: float) -> int:
        """Return in what time (ns) the share of an entry comes to a run of a width."""
        return math.ceil(width * usual * SECOND_NS / self._nodes[entry])

    def allowed(
        self,
        entries: Sequence[int],
        widths: Sequence[int],
        counts: InFlightCounts,
        now: int,
        usual: Sequence[float],
        ahead: Mapping[int, int],
    ) -> list[int]:
        """Return those of some entries of which a run of their width may start now, after runs of
        the widths ``ahead`` that are launched with it. ``counts`` includes these."""
        in_flight, held, most, nodes = counts.in_flight, counts.width, self._most, self._nodes
        return [
            n
            for n, width in zip(entries, widths, strict=True)
            if in_flight[n] < most[n]
            and (held[n] + width <= nodes[n] or self.due(n, now, usual[n], ahead.get(n, 0)) <= now)
        ]

    def next_start(
        self, now: int, launches: Sequence[Shape], counts: InFlightCounts, usual: Sequence[float]
    ) -> int | None:
        """Return the earliest time after now (ns) at which a share is used up, if runs of these
        shapes are launched now; None if there is none."""
        runs, ahead = counts.in_flight, [0] * len(usual)
        if launches:
            runs = list(runs)
            for shape in launches:
                ahead[shape.entry] += shape.width
                runs[shape.entry] += 1
        earliest = None
        for entry, most in enumerate(self._most):
            if runs[entry] < most:
                due = self.due(entry, now, usual[entry], ahead[entry])
                if due > now and (earliest is None or due < earliest):
                    earliest = due
        return earliest
