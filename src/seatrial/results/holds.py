"""What holds launches back now, and what the gauges of a trial read over time.

    holds = Holds(history)
    for event in journal:
        history.apply(event)
        holds.apply(event)
    holds.held(now)

Closed gauges and blackouts hold launches back. The conductor decides by the same throttles. Here
they are reported with their numbers and times.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from seatrial.decide.admission import ThrottleState, declared, fits_in, sentence, unseen
from seatrial.decide.in_flight import planned_for, unbuilt
from seatrial.journal import events
from seatrial.journal.trial import end_by
from seatrial.model.machine import Machine
from seatrial.model.policy import Policy
from seatrial.results.trial_history import RunHistory, Span, TrialHistory
from seatrial.results.utilisation import LevelSpan, levels
from seatrial.units import SECOND_NS, show_seconds


class Hold(Struct, frozen=True, kw_only=True):
    """One thing that holds launches back. ``kind`` is ``gauge``, ``blackout``, ``excluded``
    (nodes), ``stopped`` or ``held`` (a test), or ``unbuilt`` (tests); ``what`` names it. Times in
    ns, None if not known. ``value`` is the gauge's last good reading, ``low`` and ``high`` are its
    bounds."""

    kind: str
    what: str
    text: str
    since: int | None = None
    until: int | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None


class Holds:
    """The throttles of a trial, beside its history."""

    def __init__(self, history: TrialHistory) -> None:
        self._history = history
        self._throttles = [ThrottleState(about) for about in history.policy.throttles]
        self._closed: list[int | None] = [None] * len(self._throttles)  # since when
        self._values: dict[str, float] = {}  # by gauge

    def apply(self, event: events.Event) -> None:
        """Follow an event that the history has folded."""
        if isinstance(event, events.GaugeRead):
            self._read(event)
        elif isinstance(event, events.PolicyChanged):
            self._follow(self._history.policy)

    @property
    def _since(self) -> int:
        """When the trial started last, or went on."""
        opened = self._history.opened
        return opened.time if opened is not None else 0

    def _follow(self, policy: Policy) -> None:
        closed = dict(
            zip((each.about.gauge for each in self._throttles), self._closed, strict=True)
        )
        former = {throttle.about.gauge: throttle for throttle in self._throttles}
        self._throttles = [
            ThrottleState(about, former.get(about.gauge)) for about in policy.throttles
        ]
        self._closed = [closed.get(about.gauge) for about in policy.throttles]

    def unbuilt(self) -> list[Hold]:
        """Return the tests of which no case could be built, those with the same failure
        together."""
        failed = self._history.failed_builds.items()
        logs = {key: build.log or "no log" for key, build in failed}
        return [
            Hold(kind="unbuilt", what=", ".join(tests), text=f"{', '.join(tests)}: {cause}")
            for cause, tests in unbuilt(self._history.cases, logs).items()
        ]

    def _read(self, event: events.GaugeRead) -> None:
        for number, throttle in enumerate(self._throttles):
            if throttle.about.gauge != event.gauge:
                continue
            stale = self._stale(throttle, event.time)
            throttle.apply(event)
            if (value := events.finite(event.value)) is not None:
                self._values[event.gauge] = value
            if not throttle.closed(event.time, self._since):
                self._closed[number] = None
            elif self._closed[number] is None:
                self._closed[number] = event.time if stale is None else stale

    def _stale(self, throttle: ThrottleState, now: int) -> int | None:
        """Return since when a gauge is closed because nobody reads it; None where it is not."""
        if throttle.failing(now, self._since) and throttle.closed(now, self._since):
            return throttle.stale_at(self._since)
        return None

    def held(self, now: int) -> list[Hold]:
        """Return what holds launches back at ``now`` (ns)."""
        gauges = [
            self._gauge(throttle, self._closed[number], now)
            for number, throttle in enumerate(self._throttles)
            if throttle.closed(now, self._since)
        ]
        return [*gauges, *self._full(now), *self._blackouts(now)]

    def _full(self, now: int) -> Iterator[Hold]:
        """Yield the throttles with a target that leave no room for a run of some tests."""
        entries = self._history.policy.entries
        for throttle in self._throttles:
            if throttle.about.target is None or not throttle.is_known(now, self._since):
                continue
            if throttle.closed(now, self._since):
                continue  # it is told as closed
            gauge, value = throttle.about.gauge, throttle.value or 0.0
            loads = declared(entries, gauge)
            since = unseen(throttle, loads, self._starts(len(loads)))
            room = throttle.about.target - value - since
            tests = [
                entry.name
                for entry, load in zip(entries, loads, strict=True)
                if entry.io != "light" and not fits_in(load, room)
            ]
            if tests:
                text = f"gauge {gauge} leaves no room for a run of {', '.join(tests)}: "
                yield Hold(
                    kind="gauge",
                    what=gauge,
                    text=text + sentence(throttle, since),
                    value=value,
                    high=throttle.about.target,
                )

    def _starts(self, entries: int) -> Iterator[tuple[int, int | None]]:
        """Yield the entry and the start of each run in flight of so many entries."""
        for run in self._history.runs:
            if run.in_flight and run.entry < entries:
                yield run.entry, run.job_started or run.script_started

    def _gauge(self, throttle: ThrottleState, since: int | None, now: int) -> Hold:
        about = throttle.about
        value = self._values.get(about.gauge)
        if since is None:
            since = self._stale(throttle, now)
        shown = "it gave no number yet" if value is None else f"{value:g}"
        text = f"gauge {about.gauge} is closed: {shown}; "
        if about.target is not None:
            text += f"its target is {about.target:g}"
        else:
            text += f"it closes above {about.highest:g} and opens below {about.lowest:g}"
        if trouble := throttle.trouble(now, self._since):
            text += f"; {trouble}"
        return Hold(
            kind="gauge",
            what=about.gauge,
            text=text,
            since=self._since if since is None else since,
            value=value,
            low=about.low,
            high=about.high if about.target is None else about.target,
        )

    def _blackouts(self, now: int) -> list[Hold]:
        found = []
        policy = self._history.policy
        for window in policy.blackouts:
            start, end = window.span(self._history.start or 0)
            if not start <= now < end:
                continue
            about = policy.subject_of(window)
            reason = f" ({window.reason})" if window.reason else ""
            text = f"blackout of {about}{reason} ends in {show_seconds((end - now) / SECOND_NS)}"
            found.append(Hold(kind="blackout", what=about, text=text, since=start, until=end))
        return found


# ---- stopped tests -------------------------------------------------------------------------------
#
# The runs that were not made because their test was stopped, so that a stop improves no rate.
#
#     shield = StopShield(history, now, tests)
#     shield.unmade["cm4"], shield.weights(runs)
#
# A test that is stopped makes no more failed runs, and the other tests get its nodes. So the runs
# that it would have made count as not passed, and those that the others made meanwhile count for
# less.


class StopShield:
    """The stops of some tests of a trial up to ``now`` (ns). ``unmade``: the number of runs that
    each of them was kept from making, by test; those that were never stopped have none."""

    def __init__(
        self,
        history: TrialHistory,
        now: int,
        tests: Collection[str],
        counted: Collection[RunHistory],
    ) -> None:
        self._history = history
        self._spans = {
            test: [(start, end_by(end, now)) for start, end in spans]
            for test, spans in history.stops.items()
            if test in tests
        }
        self._parts = self._planned() if self._spans else {}
        ended = Counter(history.test_of(run) for run in counted)
        self.unmade = {test: self._unmade(test, ended[test], now) for test in self._spans}

    def _planned(self) -> dict[str, float]:
        history = self._history
        if history.policy.kind != "sustained":
            return {}
        shares = planned_for(history.cases, history.policy, history.room).shares
        return {
            entry.name: share for entry, share in zip(history.policy.entries, shares, strict=True)
        }

    def _unmade(self, test: str, ended: int, now: int) -> int:
        """Return how many runs a test was kept from making: at the pace of the time in which it was
        not stopped, or those that are planned for it where it has a number of runs."""
        history = self._history
        if history.policy.kind != "sustained":
            planned = self._planned_runs(test) if test in history.stopped else 0
            return max(0, planned - ended)
        window = history.window(now)
        whole = sum(end - start for start, end in window)
        stopped = sum(_overlap(span, each) for span in self._spans[test] for each in window)
        return math.ceil(ended * stopped / max(1, whole - stopped))

    def _planned_runs(self, test: str) -> int:
        """Return how many runs a test has in a component that is not sustained, with one a wave."""
        cases, policy = self._history.cases, self._history.policy
        if policy.kind == "once":
            return sum(case.repeat for case in cases if case.test == test)
        entries = [policy.entries[number] for number in policy.entry_of]
        return sum(
            entry.alone + entry.full
            for case, entry in zip(cases, entries, strict=True)
            if case.test == test
        )

    def weights(self, runs: Iterable[RunHistory]) -> Iterator[float]:
        """Yield how much each run that passed counts in a rate of several tests."""
        return (self._weight(run) if self._spans else 1.0 for run in runs if run.passed)

    def _weight(self, run: RunHistory) -> float:
        """Return less than 1 for a run that started while another test was stopped: that test's
        planned share of the machine is taken off."""
        start = run.job_started or run.submitted or run.judged or 0
        own = self._history.test_of(run)
        lent = sum(
            self._parts.get(test, 0.0)
            for test, spans in self._spans.items()
            if test != own and any(begin <= start < end for begin, end in spans)
        )
        return max(0.0, 1.0 - lent)


def _overlap(one: Span, other: Span) -> int:
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))


# ---- readings of gauges --------------------------------------------------------------------------
#
# What the gauges of a trial read over time.
#
# spans = gauge_spans(history, "mds_load", now)     # spans with a reading each; gaps between them
# use = gauge_use(spans, window, bounds.contains)   # how long it was inside bounds, or not read


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


class GaugeUse(Struct, frozen=True):
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
