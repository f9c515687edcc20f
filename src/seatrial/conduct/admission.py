"""Whether a run may start now, and on which target: everything that can hold a launch back.

    admission = Admission(policy)               # a fold over events
    desk = admission.desk(now, counts, nodes)   # to try things out on, within one decision
    target = desk.admit(shape)                  # None where it may not start, else it counts

A desk goes on from what was already chosen, so that a whole decision keeps every cap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from seatrial.conduct.flights import Counts
from seatrial.conduct.policy import Policy, Window
from seatrial.conduct.stagger import Bucket
from seatrial.conduct.targets import Targets
from seatrial.conduct.throttle import Throttle
from seatrial.journal.events import Event
from seatrial.machine.facts import unfold
from seatrial.units import SECOND_NS, show_seconds


class Shape(NamedTuple):
    """What a run of a case is to the machine: its entry, its nodes, the room that it takes on a
    shared node (0 where there is none), and its width: what it takes of the machine, which is that
    room or its nodes."""

    entry: int
    nodes: int
    size: int
    width: int


class Shut(NamedTuple):
    """Nodes that get no new runs of some entries (none: of all) for a span of time (ns)."""

    start: int
    end: int
    nodes: frozenset[str]
    entries: list[int]

    def holds(self, now: int, entry: int) -> bool:
        return self.start <= now < self.end and (not self.entries or entry in self.entries)


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
        self._closings: list[list[tuple[int, int]]] = []  # by entry: times of its blackouts
        self._reopenings: list[int] = []  # when blackouts end, and begin
        self._closing_times: list[int] = []
        self.shut: list[Shut] = []  # blackouts of some nodes
        self.stopped: dict[int, str] = {}  # entries that are launched no more, and why
        self.heavy = {n for n, entry in enumerate(policy.entries) if entry.io != "light"}
        self._gates = _any_gate(policy)
        self.go(0, 0)

    # ---- events in ------------------------------------------------------------------------

    def go(self, start: int, time: int) -> None:
        """The trial, which began at ``start``, starts or goes on."""
        self.start, self.since = start, time
        spans = [(window, self._span(window)) for window in self.policy.blackouts]
        blackouts = [(window.entries, span) for window, span in spans if not window.nodes]
        self.shut = [
            Shut(*span, frozenset(unfold(window.nodes)), window.entries)
            for window, span in spans
            if window.nodes
        ]
        self._closings = [
            [span for entries, span in blackouts if not entries or entry in entries]
            for entry in range(len(self.policy.entries))
        ]
        self._reopenings = [end for _, (_, end) in spans]
        self._closing_times = [start for _, (start, _) in spans]
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

    def desk(
        self, now: int, counts: Counts, nodes: int | None, fewer: Mapping[int, int] | None = None
    ) -> Desk:
        """``nodes`` is the most that a run may ask for, None where that is not known; one of some
        entries so many ``fewer``."""
        return Desk(self, now, counts, nodes, fewer or {})

    @property
    def lets_all(self) -> bool:
        """Whether nothing can hold a launch back."""
        return not self._gates and not self.stopped

    def throttled(self, now: int) -> bool:
        return any(throttle.closed(now, self.since) for throttle in self.throttles)

    def windows_of(self, entry: int) -> list[tuple[int, int]]:
        """The times of the blackouts that are about an entry: the first, and the first behind."""
        return self._closings[entry]

    def _span(self, window: Window) -> tuple[int, int]:
        since = 0 if window.absolute else self.start
        return since + round(window.start * SECOND_NS), since + round(window.end * SECOND_NS)

    def blacked_out(self, now: int, entry: int) -> bool:
        """Whether an entry is in a blackout."""
        closings = self._closings[entry]
        return bool(closings) and any(start <= now < end for start, end in closings)

    def shut_nodes(self, now: int, entry: int) -> frozenset[str]:
        """The nodes that a blackout keeps from an entry; of none (-1): from all of them."""
        live = [each.nodes for each in self.shut if each.holds(now, entry)]
        return frozenset().union(*live)

    def shut_since(self, now: int, entry: int, launched: int) -> bool:
        """Whether a run may get nodes that a blackout has closed since it was launched."""
        return any(each.holds(now, entry) and launched < each.start for each in self.shut)

    def held_back(self, now: int) -> set[int]:
        """Entries of which nothing is to start now, not even what waits at the scheduler."""
        held = set(self.stopped)
        if self.throttles and self.throttled(now):
            held |= self.heavy
        if self._closing_times:
            held |= {n for n in range(len(self._closings)) if self.blacked_out(now, n)}
        return held

    def next_hold(self, now: int) -> int | None:
        """When more may be held back, though nothing happens."""
        times = self._closing_times + [each.stale_at(self.since) for each in self.throttles]
        return min([time for time in times if time > now], default=None)

    def why_held(self, now: int) -> str:
        """What holds launches back, for people; "" where it is none of what it knows."""
        why = [
            f"gauge {each.about.gauge} is closed"
            for each in self.throttles
            if each.closed(now, self.since)
        ]
        for window in self.policy.blackouts:
            start, end = self._span(window)
            if start <= now < end:
                left = show_seconds((end - now) / SECOND_NS)
                on = f" of {window.nodes}" if window.nodes else ""
                for_what = f" ({window.why})" if window.why else ""
                why.append(f"a blackout{on}{for_what} ends in {left}")
        why += [f"{self.policy.entries[n].name} is stopped" for n in sorted(self.stopped)]
        return "; ".join(why)

    def next_times(self, now: int, starts: Sequence[int]) -> list[int]:
        """Times at which it may admit what it does not admit now, though nothing happens but the
        starts that are decided now (of these entries)."""
        times = [throttle.stale_at(self.since) for throttle in self.throttles]
        times += self._reopenings
        if self.bucket is not None:
            taken = sum([entry in self.heavy for entry in starts])
            if self.bucket.whole(now) <= taken:
                times.append(self.bucket.next(now, taken))
        return times


class Desk:
    """One decision's view of the trial: as if what was chosen so far had been launched. What is
    true of the trial itself is not touched, but copied when the first run is admitted."""

    def __init__(
        self,
        admission: Admission,
        now: int,
        counts: Counts,
        nodes: int | None,
        fewer: Mapping[int, int],
    ) -> None:
        self.counts = counts
        self.now = now
        self._nodes = nodes
        self._fewer = fewer
        self._admission = admission
        self._targets = admission.targets
        self._copied = False
        self._caps = admission.policy.caps
        self._entries = admission.policy.entries
        self._capped = bool(self._caps.file_systems or self._caps.bytes)
        self._bucket = admission.bucket
        self._tokens = self._bucket.whole(now) if self._bucket is not None else 0
        throttled = bool(admission.throttles) and admission.throttled(now)
        self._heavy_waits = throttled or (self._bucket is not None and self._tokens < 1)

    @property
    def lets_all(self) -> bool:
        """Whether it refuses nothing, and gives no target."""
        return self._nodes is None and self._admission.lets_all

    def shut(self) -> set[int]:
        """Entries of which surely no run may start now."""
        stopped = self._admission.stopped.keys()
        return self._admission.heavy | stopped if self._heavy_waits else set(stopped)

    def may(self, shape: Shape) -> bool:
        """Whether a run may start now, targets aside."""
        entry, admission, counts = shape.entry, self._admission, self.counts
        if entry in admission.stopped:
            return False
        if self._nodes is not None and shape.nodes > self._nodes - self._fewer.get(entry, 0):
            return False
        about, most = self._entries[entry], self._caps.machine
        if self._heavy_waits and about.io != "light":
            return False
        if about.most and counts.in_flight[entry] >= about.most:
            return False
        if (most and counts.total >= most) or admission.blacked_out(self.now, entry):
            return False
        return not (self._capped and self._full(about.file_system, about.bytes))

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
        if self._bucket is not None and about.io != "light":
            self._tokens -= 1
            self._heavy_waits = self._tokens < 1
        self.counts.launch(shape.entry, shape.width, target)
        return target

    def _full(self, file_system: str, more: int) -> bool:
        if not file_system:
            return False
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
