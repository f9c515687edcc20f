"""Whether a run may start now, and on which target: everything that can hold a launch back.

    admission = Admission(policy)               # a fold over events
    desk = admission.desk(now, counts, nodes)   # to try things out on, within one decision
    target = desk.admit(shape)                  # None where it may not start, else it counts

A desk goes on from what was already chosen, so that a whole decision keeps every cap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from seatrial.conduct.flights import Counts
from seatrial.conduct.policy import Policy, Window
from seatrial.conduct.stagger import Bucket
from seatrial.conduct.targets import Targets
from seatrial.conduct.throttle import Throttle
from seatrial.journal.events import Event
from seatrial.units import SECOND_NS


class Shape(NamedTuple):
    """What a run of a case is to the machine: its entry, its nodes, the room that it takes on a
    shared node (0 where there is none), and its width: what it takes of the machine, which is that
    room or its nodes."""

    entry: int
    nodes: int
    size: int
    width: int


class Admission:
    """Caps, staggered starts, throttles, blackouts and targets of one trial."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.start = 0  # of the trial, ns
        self.since = 0  # when the trial started last, or went on
        self.targets = Targets(policy.targets, policy.placement, policy.caps)
        self.bucket = Bucket(policy.stagger) if policy.stagger else None
        self.throttles = [Throttle(about) for about in policy.throttles]
        self.outages: list[tuple[int, int]] = []  # planned, of the whole machine
        self._blackouts: list[tuple[int, int]] = []
        self.stopped: dict[int, str] = {}  # entries that are launched no more, and why
        self._gates = _any_gate(policy)
        self.go(0, 0)
        self._timed = bool(policy.throttles or policy.blackouts)

    # ---- events in ------------------------------------------------------------------------

    def go(self, start: int, time: int) -> None:
        """The trial, which began at ``start``, starts or goes on."""
        self.start, self.since = start, time
        self._blackouts = [self._span(window) for window in self.policy.blackouts]
        outages = (window for window in self.policy.outages if not window.nodes)
        self.outages = [self._span(window) for window in outages]

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

    def desk(self, now: int, counts: Counts, nodes: int | None) -> Desk:
        """``nodes`` is the most that a run may ask for, None where that is not known."""
        return Desk(self, now, counts, nodes)

    @property
    def lets_all(self) -> bool:
        """Whether nothing can hold a launch back."""
        return not self._gates and not self.stopped

    def throttled(self, now: int) -> bool:
        return any(throttle.closed(now, self.since) for throttle in self.throttles)

    def windows_of(self, entry: int) -> Iterator[tuple[int, int]]:
        """The times of the blackouts that are about an entry: the first, and the first behind."""
        for window, span in zip(self.policy.blackouts, self._blackouts, strict=True):
            if not window.entries or entry in window.entries:
                yield span

    def _span(self, window: Window) -> tuple[int, int]:
        since = 0 if window.absolute else self.start
        return since + round(window.start * SECOND_NS), since + round(window.end * SECOND_NS)

    def held(self, now: int, entry: int) -> bool:
        """Whether an entry may not start for a while, whatever else there is."""
        if entry in self.stopped:
            return True
        if not self._timed:
            return False
        if self.throttles and self.policy.entries[entry].io != "light" and self.throttled(now):
            return True
        return any(start <= now < end for start, end in self.windows_of(entry))

    def next_times(self, now: int, starts: Sequence[int]) -> Iterator[int]:
        """Times at which it may admit what it does not admit now, though nothing happens but the
        starts that are decided now (of these entries)."""
        if self.bucket is not None:
            taken = sum(self.policy.entries[entry].io != "light" for entry in starts)
            if self.bucket.whole(now) <= taken:
                yield self.bucket.next(now, taken)
        for throttle in self.throttles:
            yield throttle.stale_at(self.since)
        for _, end in self._blackouts:
            yield end


class Desk:
    """One decision's view of the trial: as if what was chosen so far had been launched. What is
    true of the trial itself is not touched, but copied when the first run is admitted."""

    def __init__(self, admission: Admission, now: int, counts: Counts, nodes: int | None) -> None:
        self.counts = counts
        self.now = now
        self._nodes = nodes
        self._admission = admission
        self._targets = admission.targets
        self._copied = False
        self._caps = admission.policy.caps
        self._entries = admission.policy.entries
        self._held: dict[int, bool] = {}
        bucket = admission.bucket
        self._tokens = bucket.whole(now) if bucket is not None else 0
        self._staggered = bucket is not None

    @property
    def lets_all(self) -> bool:
        """Whether it refuses nothing, and gives no target."""
        return self._nodes is None and self._admission.lets_all

    def stopped(self, entry: int) -> bool:
        return entry in self._admission.stopped

    def held(self, entry: int) -> bool:
        held = self._held.get(entry)
        if held is None:
            held = self._held[entry] = self._admission.held(self.now, entry)
        return held

    def may(self, shape: Shape) -> bool:
        """Whether a run may start now, targets aside."""
        about = self._entries[shape.entry]
        counts, caps = self.counts, self._caps
        if self.held(shape.entry) or (self._nodes is not None and shape.nodes > self._nodes):
            return False
        if about.most and counts.in_flight[shape.entry] >= about.most:
            return False
        if caps.machine and counts.total >= caps.machine:
            return False
        if self._staggered and self._tokens < 1 and about.io != "light":
            return False
        return not (about.file_system and self._full(about.file_system, about.bytes))

    def admit(self, shape: Shape) -> str | None:
        """The target of a run that may start now ("" where it needs none), or None. What is
        admitted counts from here on."""
        if not self.may(shape):
            return None
        about = self._entries[shape.entry]
        target = ""
        if about.file_system and self._targets.has(about.file_system):
            chosen = self._targets.choose(about, self.counts)
            if chosen is None:
                return None
            target = chosen
        if not self._copied:
            self._copied = True
            self.counts, self._targets = self.counts.copy(), self._targets.copy()
        if target:
            self._targets.place(target)
        if about.io != "light":
            self._tokens -= 1
        self.counts.launch(shape.entry, shape.width, target)
        return target

    def _full(self, file_system: str, more: int) -> bool:
        caps, counts = self._caps, self.counts
        runs, space = caps.file_systems.get(file_system, 0), caps.bytes.get(file_system, 0)
        if runs and counts.on_file_system.get(file_system, 0) >= runs:
            return True
        return bool(space and more and counts.bytes.get(file_system, 0) + more > space)


def _any_gate(policy: Policy) -> bool:
    """Whether anything but room, and people, can hold a launch back."""
    gates = policy.caps.machine or policy.targets or policy.stagger or policy.throttles
    own = any(entry.most or entry.file_system for entry in policy.entries)
    return bool(gates or own or policy.blackouts)
