"""What the gauges of a trial read over time.

spans = gauge_spans(history, "mds_load", now)     # spans with a reading each; gaps between them
use = gauge_use(spans, window, bounds.contains)   # how long it was inside bounds, or not read
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from seatrial.model.machine import Machine
from seatrial.results.outages import Span
from seatrial.results.trial_history import TrialHistory
from seatrial.results.utilisation import LevelSpan, levels
from seatrial.units import SECOND_NS

UNKNOWN = 60.0  # seconds for which the reading of a gauge holds that the machine no longer has
LATE = 1.0  # seconds by which a reading may be late on a busy host
_GOOD, _BAD = 1.0, 2.0


def holds_of_gauges(machine: Machine) -> dict[str, float]:
    """Return for how long (seconds) a reading of each gauge holds: as long as it may take from a
    reading to the next."""
    gauges = machine.all_gauges.items()
    return {name: gauge.every.seconds + gauge.timeout.seconds for name, gauge in gauges}


def _begun(starts: Sequence[int], time: int) -> int:
    """Return the latest of the starts, which ascend, at or before a time; where none is, the
    time."""
    before = bisect_right(starts, time)
    return starts[before - 1] if before else time


def gauge_spans(history: TrialHistory, gauge: str, now: int) -> list[LevelSpan]:
    """Return the spans (ns) in which a reading of a gauge holds, each with the value: from the
    reading to the next one, but no longer than the gauge may take from one to the next. The first
    after a start of the trial holds from that start on. A failed reading begins a gap."""
    holds = round((history.gauge_holds.get(gauge, UNKNOWN) + LATE) * SECOND_NS)
    starts = [span.start for span in history.spans]
    readings = history.readings.get(gauge, [])
    ends = [*(time for time, _ in readings[1:]), *([now] if readings else [])]
    found: list[LevelSpan] = []
    last = 0  # time of the reading before
    for (time, value), following in zip(readings, ends, strict=True):
        if value is not None:
            begun = _begun(starts, time)
            is_first = last < begun and time - begun <= holds
            start = begun if is_first else time
            end = min(max(following, time), time + holds)
            if end > start:
                found.append(LevelSpan(start, end, value))
        last = time
    return found


class GaugeUse(NamedTuple):
    """For how long (ns) a gauge was inside its bounds, outside of them, and not read; its longest
    gap, and the least and the highest reading, None where there is none."""

    good: int
    bad: int
    gap: int
    longest_gap: int
    least: float | None
    highest: float | None
    readings: int

    @property
    def whole(self) -> int:
        return self.good + self.bad + self.gap

    @property
    def sampled(self) -> int:
        return self.good + self.bad


def gauge_use(
    spans: Sequence[LevelSpan],
    window: Sequence[Span],
    without: Sequence[Span],
    is_good: Callable[[float], bool],
) -> GaugeUse:
    """Return the use of the time of a window, without that of outages."""
    classes = [(span.start, span.end, _GOOD if is_good(span.value) else _BAD) for span in spans]
    time = {_GOOD: 0, _BAD: 0, 0.0: 0}
    longest = 0
    for start, end, value in levels(classes, window, without):
        time[value] += end - start
        if not value:
            longest = max(longest, end - start)
    inside = [span.value for span in _inside(spans, window)]
    return GaugeUse(
        time[_GOOD],
        time[_BAD],
        time[0.0],
        longest,
        min(inside, default=None),
        max(inside, default=None),
        len(inside),
    )


def _inside(spans: Sequence[LevelSpan], window: Sequence[Span]) -> Iterator[LevelSpan]:
    """Yield the spans that overlap a window."""
    for span in spans:
        if any(span.start < end and span.end > start for start, end in window):
            yield span
