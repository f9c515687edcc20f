"""Admission: everything that can hold a launch back.

    admission = Admission(policy)       # a fold over events
    gates = admission.gates(now)        # what the time and the gauges hold back now
    gates.held, gates.next_hold

An ``Offer`` (``demand``) is what one decision may launch, caps and targets included.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from seatrial.decide.in_flight import InFlightCounts
from seatrial.decide.race import Dropped
from seatrial.decide.targets import Targets
from seatrial.journal.events import GaugeRead, RunSubmitted, finite
from seatrial.model import policy
from seatrial.model.node_set import unfold
from seatrial.model.policy import Policy, RaceRules
from seatrial.model.test import Case
from seatrial.model.topology import NodeWish
from seatrial.units import FAR_FUTURE_NS, SECOND_NS, show_seconds

# ---- largest -------------------------------------------------------------------------------------
#
# Bisect for the largest size at which a program works.
#
#     search = LargestSearch(rules)       # of the sizes in order; used as a race is: see ``race``
#
# The program is taken to work up to some size, and to fail above it. So each run halves the sizes
# that are left: of 31 sizes the largest is found in five runs. Each run is a block of its own.


MAX_CUTS = 3


class LargestSearch:
    """A search over settings whose sizes rise: a fold over its runs, as ``Race`` is. ``runs``,
    ``failures`` and ``cuts`` are by setting; ``dropped`` are settings that failed, or are larger
    than one that did."""

    def __init__(self, rules: RaceRules) -> None:
        count = len(rules.levels)
        self.rules = rules
        self.runs = [0] * count
        self.failures: list[list[str]] = [[] for _ in range(count)]
        self.cuts: list[list[str]] = [[] for _ in range(count)]
        self.dropped: dict[int, Dropped] = {}
        self.blocks: list[list[list[int]]] = []
        self._works, self._fails = -1, count
        self._unbuilt: set[int] = set()

    @property
    def rounds_begun(self) -> int:
        """The number of rounds before the current block."""
        return max(0, len(self.blocks) - 1)

    @property
    def largest(self) -> int | None:
        """The largest setting that is known to work; None if none is."""
        return self._works if self._works >= 0 else None

    def record(self, setting: int, number: int, figure: float) -> None:
        """Record that a setting works."""
        self.runs[setting] += 1
        self._works = max(self._works, setting)

    def fail(self, setting: int, number: int, cause: str) -> None:
        """Record that a setting does not work, and why."""
        self.runs[setting] += 1
        self.failures[setting].append(cause)
        self.dropped[setting] = Dropped(len(self.blocks), cause=cause)
        self._fails = min(self._fails, setting)

    def cut_off(self, setting: int, number: int, cause: str) -> None:
        """Record that a run was ended from outside, and why: it is run again, unless that happened
        too often."""
        self.runs[setting] += 1
        self.cuts[setting].append(cause)
        if len(self.cuts[setting]) == MAX_CUTS:
            self.exclude(setting, f"{MAX_CUTS} runs had no result: {cause}")

    def exclude(self, setting: int, cause: str) -> None:
        """Record that a setting cannot run at all, and why."""
        self.dropped[setting] = Dropped(len(self.blocks), cause=cause)
        self._unbuilt.add(setting)

    def end_block(self) -> None:
        """A block has run."""

    def next_block(self) -> list[list[int]]:
        """Begin the next block: the middle of the sizes that are left; none if none is."""
        left = [n for n in range(self._works + 1, self._fails) if n not in self._unbuilt]
        if not left:
            return []
        block = [[left[len(left) // 2]]]
        self.blocks.append(block)
        return block


# ---- throttle ------------------------------------------------------------------------------------
#
# A throttle by a gauge with hysteresis: it closes above ``high`` and opens below ``low``.


class ThrottleState:
    """The state of one throttle, a fold over the readings of its gauge."""

    def __init__(self, about: policy.ThrottleRule, former: "ThrottleState | None" = None) -> None:
        """``former`` is the throttle by the same gauge that this one replaces."""
        self.about = about
        self._stale_after = round(about.stale_after * SECOND_NS)
        self._closed: bool | None = None  # None before the first good reading
        self._read = 0  # time of the latest good reading
        self._value: float | None = None  # the latest good reading
        self.failure = ""  # reason why the latest reading failed
        if former is not None:
            self._closed, self._read = former._closed, former._read
            self._value, self.failure = former._value, former.failure
            self._set()

    def apply(self, event: GaugeRead) -> None:
        """Record a reading of the gauge; a reading without a finite number is a failure."""
        value = finite(event.value)
        if value is None:
            self.failure = event.reason or "it gave no number"
            return
        self.failure = ""
        self._read = event.time
        self._value = value
        self._set()

    def _set(self) -> None:
        """Close or open by the latest good reading."""
        value = self._value
        if value is None:
            return
        if value > self.about.high:
            self._closed = True
        elif value < self.about.low or self._closed is None:
            self._closed = False

    def closed(self, now: int, since: int) -> bool:
        """Return whether launches are held back, in a trial that last started or was resumed at
        ``since``."""
        if self.failing(now, since) or self._closed is None:
            return self.about.on_failure == "closed"
        return self._closed

    def failing(self, now: int, since: int) -> bool:
        """Return whether there has been no good reading for too long."""
        return now >= self.stale_at(since)

    def stale_at(self, since: int) -> int:
        """Return the time (ns) from which the latest good reading is too old. The gauge is not read
        while the trial is paused, so ``since`` counts if it is later."""
        return (self._read if self._read > since else since) + self._stale_after

    def trouble(self, now: int, since: int) -> str:
        """Return the alert about the gauge, "" if it works."""
        about, failing = self.about, self.failing(now, since)
        if not failing and not self.failure:
            return ""
        reason = self.failure or f"no reading for {show_seconds(about.stale_after)}"
        if failing or self._closed is None:
            follows = f"launches of what is not light are {about.on_failure} until it works"
        else:
            follows = f"what it said last holds for {show_seconds(about.stale_after)}"
        return f"gauge {about.gauge} fails: {reason}; {follows}"


# ---- admission -----------------------------------------------------------------------------------


class Shape(NamedTuple):
    """The size of a run of a case: its entry, its number of nodes, the room that it takes on a
    shared node (0 where there is none), its width: the part of the machine that it takes, which
    is that room or its nodes, the GPUs that it takes of a shared node, the number of its set
    of ``unfit`` nodes in the policy (0: none), and of its wish for a place in the network (0:
    none)."""

    entry: int
    nodes: int
    size: int
    width: int
    gpus: int = 0
    unfit: int = 0
    wish: int = 0


def shapes_of(cases: Sequence[Case], policy: Policy, room: int, gpus: int = 0) -> list[Shape]:
    """Return the shape of each case; equal shapes are one object. ``room`` and ``gpus`` are
    those of a shared node, 0 where there is none."""
    alike: dict[Shape, Shape] = {}
    found = []
    sets = policy.unfit_of or [0] * len(cases)
    wishes: dict[NodeWish, int] = {}
    for case, entry, unfit in zip(cases, policy.entry_of, sets, strict=True):
        size = 0
        if room:
            size = room if case.exclusive else min(case.tasks_per_node * case.threads, room)
        taken = gpus and min(case.gpus, gpus)
        wish = wishes.setdefault(case.place, len(wishes) + 1) if case.place else 0
        shape = Shape(entry, case.nodes, size, size or case.nodes, taken, unfit, wish)
        found.append(alike.setdefault(shape, shape))
    return found


class Shut(NamedTuple):
    """Nodes (none: all) that get no new runs of some entries (none: of all) for a span of time
    (ns)."""

    start: int
    end: int
    nodes: frozenset[str]
    entries: list[int]

    def concerns(self, entry: int) -> bool:
        return not self.entries or entry in self.entries

    def holds(self, now: int, entry: int) -> bool:
        return self.start <= now < self.end and self.concerns(entry)


class Gates(Struct, frozen=True):
    """What the time and the gauges hold back, from ``start`` to before ``end`` (ns) unless an event
    changes it. Runs of the entries ``held`` must not start, not even those that wait at the
    scheduler: the entries are stopped, throttled or in a blackout. At ``next_hold`` more may be
    held back, at ``next_start`` less, even if no event comes. ``failing`` are throttles of which
    people must be alerted."""

    start: int
    end: int
    held: frozenset[int]
    next_hold: int | None
    next_start: int | None
    failing: list[ThrottleState]


class Admission:
    """Caps, staggered starts, throttles, blackouts and targets of one trial."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.start = 0  # when the trial started first, ns
        self.since = 0  # when the trial was last started or resumed, ns
        self.targets = Targets(policy.targets, policy.placement, policy.caps)
        self.bucket = TokenBucket(policy.stagger) if policy.stagger else None
        self.throttles = [ThrottleState(about) for about in policy.throttles]
        self.outages: list[tuple[int, int]] = []  # planned ones of the whole machine
        self._blackouts: list[Shut] = []  # of all nodes
        self.shut: list[Shut] = []  # blackouts of some nodes
        self.stopped: dict[int, str] = {}  # entries that are launched no more, with reasons
        self.held: dict[int, str] = {}  # entries that a person holds, with reasons
        self.heavy_held: str | None = None  # reason why all whose I/O is not light are held
        self.shelved: frozenset[int] = frozenset()  # those of which people let no run start
        self.heavy = {n for n, entry in enumerate(policy.entries) if entry.io != "light"}
        self._any_gate = _any_gate(policy)
        self._gates: Gates | None = None
        self.go(0, 0)

    # ---- events in ------------------------------------------------------------------------

    def go(self, start: int, time: int) -> None:
        """Record that the trial, which first started at ``start``, starts or is resumed."""
        self.start, self.since = start, time
        self.targets.forget()
        shut = []
        for window in self.policy.blackouts:
            nodes = frozenset(unfold(window.nodes)) if window.nodes else frozenset[str]()
            shut.append(Shut(*window.span(start), nodes, window.entries))
        self._blackouts = [each for each in shut if not each.nodes]
        self.shut = [each for each in shut if each.nodes]
        outages = (window for window in self.policy.outages if not window.nodes)
        self.outages = [window.span(start) for window in outages]
        self._gates = None

    def launch(self, entry: int, event: RunSubmitted) -> None:
        if self.bucket is not None and self.policy.entries[entry].io != "light":
            self.bucket.take(event.time)
        if event.target:
            self.targets.place(event.target, self.policy.entries[entry].opens)

    def gauge(self, event: GaugeRead) -> None:
        self.targets.read(event)
        for throttle in self.throttles:
            if throttle.about.gauge == event.gauge:
                throttle.apply(event)
                self._gates = None

    def stop(self, entry: int, reason: str) -> None:
        """Record that an entry is launched no more."""
        self.stopped[entry] = reason
        self._shelve()

    def admit(self, entry: int) -> None:
        """Record that a stopped entry may be launched again."""
        self.stopped.pop(entry, None)
        self._shelve()

    def hold(self, entries: Iterable[int], reason: str) -> None:
        """Record that a person holds entries: they are not launched until they are released."""
        self.held.update(dict.fromkeys(entries, reason))
        self._shelve()

    def release(self, entries: Iterable[int]) -> None:
        """Record that held entries may be launched again."""
        for entry in entries:
            self.held.pop(entry, None)
        self._shelve()

    def hold_heavy(self, reason: str | None) -> None:
        """Record that a person holds all entries whose I/O is not light; None: no longer."""
        self.heavy_held = reason
        self._shelve()

    def _shelve(self) -> None:
        """Find out which entries are stopped or held."""
        heavy = self.heavy if self.heavy_held is not None else ()
        self.shelved = frozenset((*self.stopped, *self.held, *heavy))
        self._gates = None

    def change(self, policy: Policy, now: int) -> None:
        """Follow another policy from ``now`` (ns) on."""
        before, self.policy = self.policy, policy
        self.targets = self.targets.changed(policy.targets, policy.placement, policy.caps)
        if policy.stagger != before.stagger:
            self.bucket = TokenBucket(policy.stagger) if policy.stagger else None
        former = {throttle.about.gauge: throttle for throttle in self.throttles}
        self.throttles = [
            ThrottleState(about, former.get(about.gauge)) for about in policy.throttles
        ]
        self.heavy = {n for n, entry in enumerate(policy.entries) if entry.io != "light"}
        self._any_gate = _any_gate(policy)
        self._shelve()
        self.go(self.start, self.since)

    # ---- what holds launches back ---------------------------------------------------------

    def gates(self, now: int) -> Gates:
        """Return what is held back at a time; cached while it holds."""
        gates = self._gates
        if gates is None or not gates.start <= now < gates.end:
            gates = self._gates = self._gates_at(now)
        return gates

    def _gates_at(self, now: int) -> Gates:
        held, failing = self.shelved, []
        holds, starts = [], []
        for throttle in self.throttles:
            if (stale := throttle.stale_at(self.since)) > now:
                holds.append(stale)
                starts.append(stale)
            if throttle.closed(now, self.since):
                held |= self.heavy
            if throttle.trouble(now, self.since):
                failing.append(throttle)
        for window in self._blackouts:
            if window.start <= now < window.end:
                held |= set(window.entries or range(len(self.policy.entries)))
        for window in self._blackouts + self.shut:
            if window.start > now:
                holds.append(window.start)
            if window.end > now:
                starts.append(window.end)
        next_hold = min(holds) if holds else None
        next_start = min(starts) if starts else None
        end = min(next_hold or FAR_FUTURE_NS, next_start or FAR_FUTURE_NS)
        return Gates(now, end, held, next_hold, next_start, failing)

    def has_place(self, entry: int, counts: InFlightCounts) -> bool:
        """Return whether a metadata target can take one more run of an entry, if it needs one."""
        about = self.policy.entries[entry]
        if not (about.file_system and self.targets.has(about.file_system)):
            return True
        return self.targets.has_place(about, counts)

    @property
    def lets_all(self) -> bool:
        """Whether nothing can hold a launch back."""
        return not self._any_gate and not self.shelved

    def windows_of(self, entry: int) -> list[tuple[int, int]]:
        """Return the spans (ns) of the blackouts of an entry."""
        return [(each.start, each.end) for each in self._blackouts if each.concerns(entry)]

    def shut_nodes(self, now: int, entry: int) -> frozenset[str]:
        """Return the nodes that a blackout closes for an entry; for -1 those closed for all
        entries."""
        live = [each.nodes for each in self.shut if each.holds(now, entry)]
        return frozenset().union(*live)

    def shut_since(self, now: int, entry: int, launched: int) -> bool:
        """Return whether a run may get nodes that a blackout has closed since the run was
        launched."""
        return any(each.holds(now, entry) and launched < each.start for each in self.shut)

    def why_held(self, now: int) -> str:
        """Return what holds launches back, for people; "" where it is something else."""
        reason = [
            f"gauge {each.about.gauge} is closed"
            for each in self.throttles
            if each.closed(now, self.since)
        ]
        for window in self.policy.blackouts:
            start, end = window.span(self.start)
            if start <= now < end:
                left = show_seconds((end - now) / SECOND_NS)
                on = f" of {window.nodes}" if window.nodes else ""
                for_what = f" ({window.reason})" if window.reason else ""
                reason.append(f"a blackout{on}{for_what} ends in {left}")
        reason += [f"{self.policy.entries[n].name} is stopped" for n in sorted(self.stopped)]
        reason += [f"{self.policy.entries[n].name} is held" for n in sorted(self.held)]
        reason += ["tests whose I/O is not light are held"] * (self.heavy_held is not None)
        return "; ".join(reason)

    def next_token(self, now: int, launches: Sequence[Shape]) -> int | None:
        """Return the time at which there is a token for a start (now if there is one), if runs of
        these shapes are launched now; None where none is needed."""
        if self.bucket is None:
            return None
        heavy = [shape for shape in launches if shape.entry in self.heavy]
        return self.bucket.next(now, len(heavy))


def _any_gate(policy: Policy) -> bool:
    """Return whether anything but room, and people, can hold a launch back."""
    gates = policy.caps.machine or policy.targets or policy.stagger or policy.throttles
    own = any(entry.most or entry.file_system for entry in policy.entries)
    return bool(gates or own or policy.blackouts)


# ---- launches within a time ----------------------------------------------------------------------


class TokenBucket:
    """Holds at most ``starts`` tokens, and gets as many in each ``per`` seconds; it starts full.

    It counts in integers, so that rounding makes no token: a token is worth ``per`` ns, and each ns
    brings ``starts``.
    """

    def __init__(self, stagger: policy.RateLimit) -> None:
        self._rate = stagger.starts
        self._token = max(1, round(stagger.per * SECOND_NS))
        self._most = self._rate * self._token
        self._level = self._most
        self._time = 0

    def take(self, time: int) -> None:
        """Record a start. It may have been decided a moment before ``time``."""
        self._level = max(0, self._at(time) - self._token)
        if time > self._time:
            self._time = time

    def whole(self, now: int) -> int:
        """Return how many starts can be made now."""
        return self._at(now) // self._token

    def next(self, now: int, taken: int = 0) -> int:
        """Return the time at which there is a whole token if ``taken`` are taken now; now if there
        is one."""
        missing = (taken + 1) * self._token - self._at(now)
        return now + -(-missing // self._rate) if missing > 0 else now

    def _at(self, now: int) -> int:
        level = self._level
        if now > self._time:
            level += (now - self._time) * self._rate
        return level if level < self._most else self._most


# ---- shares --------------------------------------------------------------------------------------
#
# The share of the machine that each test of a sustained trial is to get.


ROUNDING = 1e-9


class PlannedShares(NamedTuple):
    """The share of the machine's node-hours of each entry; ``left`` is the share that no entry
    has, and ``fills`` are the entries without a claim of their own, which divide what the others
    leave."""

    shares: list[float]
    left: float
    fills: list[int]


def planned_shares(policy: Policy, widths: Sequence[int], whole: int) -> PlannedShares:
    """Return the planned share of each entry. ``widths`` has what the widest case of each entry
    takes of the ``whole`` machine (0: unknown): of its nodes, or of the cores of a shared node.
    Claims of more than the machine are scaled down to it."""
    entries = policy.entries
    unit = max(whole, 1)
    claims = [
        max(0.0, entry.weight or entry.copies * width / unit)
        for entry, width in zip(entries, widths, strict=True)
    ]
    total = sum(claims)
    fills = [number for number, claim in enumerate(claims) if not claim]
    if total > 1 or (total and not fills and not whole):
        return PlannedShares([claim / total for claim in claims], 0.0, fills)
    left = 1 - total if total < 1 - ROUNDING else 0.0
    for number in fills:
        claims[number] = left / len(fills)
    return PlannedShares(claims, 0.0 if fills else left, fills)


def planned_for(cases: Sequence[Case], policy: Policy, room: int) -> PlannedShares:
    """Return the planned shares for the cases of a trial. ``room`` is the cores of a host whose
    cores runs share, 0 where there is none."""
    widths = widest_of(shapes_of(cases, policy, room), len(policy.entries))
    return planned_shares(policy, widths, room or policy.nodes)


def widest_of(shapes: Sequence[Shape], entries: int) -> list[int]:
    """Return the width of the widest case of each of so many entries, 1 where it has none."""
    widths = [1] * entries
    for shape in shapes:
        widths[shape.entry] = max(widths[shape.entry], shape.width)
    return widths
