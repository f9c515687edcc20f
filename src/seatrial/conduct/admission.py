"""Whether a run may start now, and on which target: everything that can hold a launch back.

    admission = Admission(policy)            # a fold over events
    desk = admission.desk(now, counts)       # to try things out on, within one decision
    target = desk.admit(entry, nodes)        # None where it may not start, else it counts

A desk goes on from what was already chosen, so that a whole decision keeps every cap.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.conduct.flights import Counts
from seatrial.conduct.policy import Policy, Window
from seatrial.conduct.stagger import Bucket
from seatrial.conduct.targets import Targets
from seatrial.conduct.throttle import Throttle
from seatrial.journal.events import Event
from seatrial.units import SECOND_NS


class Admission:
    """Caps, staggered starts, throttles, blackouts and targets of one trial."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.start = 0  # of the trial, ns
        self.targets = Targets(policy.targets, policy.placement, policy.caps)
        self.bucket = Bucket(policy.stagger) if policy.stagger else None
        self.throttles = [Throttle(about) for about in policy.throttles]
        self.stopped: dict[int, str] = {}  # entries that are launched no more, and why

    # ---- events in ------------------------------------------------------------------------

    def launch(self, entry: int, event: Event) -> None:
        if self.bucket is not None and self.policy.entries[entry].io != "light":
            self.bucket.take(event.time)
        if event.target:
            self.targets.place(event.target)

    def gauge(self, event: Event) -> None:
        for throttle in self.throttles:
            if throttle.about.gauge == event.alias:
                throttle.apply(event)

    # ---- what holds launches back ---------------------------------------------------------

    def desk(self, now: int, counts: Counts) -> Desk:
        return Desk(self, now, counts.copy())

    def throttled(self, now: int) -> bool:
        return any(throttle.closed(now, self.start) for throttle in self.throttles)

    def blackouts(self, now: int, entry: int) -> Iterator[Window]:
        """The blackouts that hold an entry back now."""
        for window in self.policy.blackouts:
            if window.entries and entry not in window.entries:
                continue
            start, end = self.span(window)
            if start <= now < end:
                yield window

    def span(self, window: Window) -> tuple[int, int]:
        """Its first time, and the first one behind it."""
        since = 0 if window.absolute else self.start
        return since + round(window.start * SECOND_NS), since + round(window.end * SECOND_NS)

    def held(self, now: int, entry: int) -> bool:
        """Whether an entry may not start for a while, whatever else there is."""
        if entry in self.stopped:
            return True
        if self.policy.entries[entry].io != "light" and self.throttled(now):
            return True
        return any(True for _ in self.blackouts(now, entry))

    def next_times(self, now: int) -> Iterator[int]:
        """Times at which it may admit what it does not admit now, though nothing happens."""
        if self.bucket is not None and self.bucket.level(now) < 1:
            yield self.bucket.next(now)
        for throttle in self.throttles:
            yield throttle.stale_at(self.start)
        for window in self.policy.blackouts:
            yield self.span(window)[1]


class Desk:
    """One decision's view of the trial: as if what was chosen so far had been launched."""

    def __init__(self, admission: Admission, now: int, counts: Counts) -> None:
        self.counts = counts
        self.now = now
        self._admission = admission
        self._targets = admission.targets.copy()
        self._caps = admission.policy.caps
        self._entries = admission.policy.entries
        self._held: dict[int, bool] = {}
        bucket = admission.bucket
        self._tokens = bucket.whole(now, 0) if bucket is not None else None

    def held(self, entry: int) -> bool:
        if entry not in self._held:
            self._held[entry] = self._admission.held(self.now, entry)
        return self._held[entry]

    def admit(self, entry: int, nodes: int) -> str | None:
        """The target of a run that may start now ("" where it needs none), or None. What is
        admitted counts from here on."""
        about = self._entries[entry]
        counts, caps = self.counts, self._caps
        if self.held(entry):
            return None
        if about.most and counts.in_flight[entry] >= about.most:
            return None
        if caps.machine and counts.total >= caps.machine:
            return None
        light = about.io == "light"
        if not light and self._tokens is not None and self._tokens < 1:
            return None
        target = ""
        if about.file_system:
            if self._full(about.file_system, about.bytes):
                return None
            if self._targets.has(about.file_system):
                chosen = self._targets.choose(about, counts)
                if chosen is None:
                    return None
                target = chosen
                self._targets.place(target)
        if not light and self._tokens is not None:
            self._tokens -= 1
        counts.launch(entry, nodes, target)
        return target

    def _full(self, file_system: str, more: int) -> bool:
        caps, counts = self._caps, self.counts
        runs, space = caps.file_systems.get(file_system, 0), caps.bytes.get(file_system, 0)
        if runs and counts.on_file_system[file_system] >= runs:
            return True
        return bool(space and more and counts.bytes[file_system] + more > space)
