"""Admission: everything that can hold a launch back.

    admission = Admission(policy, trial)
    gates = admission.gates(now)        # what the time and the gauges hold back now
    gates.held, gates.next_hold

A ``Budget`` (``demand``) is what one decision may launch, caps and targets included.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

from msgspec import Struct

from seatrial.decide.in_flight import InFlightCounts, Requests, RunInFlight
from seatrial.journal.events import (
    GaugeRead,
    RunSubmitted,
    TestAdmitted,
    TestHeld,
    TestReleased,
    TestStopped,
    finite,
)
from seatrial.journal.trial import Trial
from seatrial.model import policy
from seatrial.model.node_set import unfold
from seatrial.model.policy import Caps, Entry, Placement, Policy, PolicyTarget, ThrottleRule
from seatrial.units import FAR_FUTURE_NS, SECOND_NS, show_number, show_seconds


class Shut(Struct, frozen=True):
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

    def __init__(self, policy: Policy, trial: Trial[Any]) -> None:
        self.policy = policy
        self._trial = trial
        self.start = 0  # when the trial started first, ns
        self.since = 0  # when the trial was last started or resumed, ns
        self.targets = Targets(policy.targets, policy.placement, policy.caps)
        self.bucket = TokenBucket(policy.stagger) if policy.stagger else None
        self.throttles = [ThrottleState(about) for about in policy.throttles]
        #: of the throttles with a target
        self.load_limits = self._load_limits()
        self.outages: list[tuple[int, int]] = []  # planned ones of the whole machine
        self._blackouts: list[Shut] = []  # of all nodes
        self.shut: list[Shut] = []  # blackouts of some nodes
        self.heavy = {n for n, entry in enumerate(policy.entries) if entry.io != "light"}
        self._any_gate = _any_gate(policy)
        self._gates: Gates | None = None
        #: entries that are launched no more, and why
        self.stopped: dict[int, str] = {}
        #: entries that are stopped, or that a person holds
        self.closed: frozenset[int] = frozenset()
        self._close()
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
        for limit in self.load_limits:
            limit.launch(event.run_id, entry)

    def started(self, run_id: str, time: int) -> None:
        """Record that the job of a run started."""
        for limit in self.load_limits:
            limit.started(run_id, time)

    def ended(self, run_id: str) -> None:
        """Record that the job of a run is over."""
        for limit in self.load_limits:
            limit.ended(run_id)

    def gauge(self, event: GaugeRead) -> None:
        self.targets.read(event)
        for throttle in self.throttles:
            if throttle.about.gauge == event.gauge:
                throttle.apply(event)
                self._gates = None
        for limit in self.load_limits:
            if limit.throttle.about.gauge == event.gauge and not limit.throttle.failure:
                limit.read()

    def apply(self, event: TestStopped | TestAdmitted | TestHeld | TestReleased) -> None:
        """Follow what Seatrial or people decide about tests."""
        self._trial.apply(event)
        self._close()

    def _close(self) -> None:
        """Find out which entries are stopped or held."""
        trial = self._trial
        names = [(n, entry.name) for n, entry in enumerate(self.policy.entries) if entry.name]
        self.stopped = {n: trial.stopped[name] for n, name in names if name in trial.stopped}
        self._held = [n for n, name in names if name in trial.held]
        self._heavy_held = "" in trial.held
        heavy = self.heavy if self._heavy_held else ()
        self.closed = frozenset((*self.stopped, *self._held, *heavy))
        self._gates = None

    def change(self, policy: Policy, flights: Mapping[str, RunInFlight]) -> None:
        """Follow another policy from now on; ``flights`` are the runs in flight, by their ids."""
        before, self.policy = self.policy, policy
        self.targets = self.targets.changed(policy.targets, policy.placement, policy.caps)
        if policy.stagger != before.stagger:
            self.bucket = TokenBucket(policy.stagger) if policy.stagger else None
        former = {throttle.about.gauge: throttle for throttle in self.throttles}
        self.throttles = [
            ThrottleState(about, former.get(about.gauge)) for about in policy.throttles
        ]
        self.load_limits = self._load_limits()
        for limit in self.load_limits:
            limit.take_up(flights)
        self.heavy = {n for n, entry in enumerate(policy.entries) if entry.io != "light"}
        self._any_gate = _any_gate(policy)
        self._close()
        self.go(self.start, self.since)

    def _load_limits(self) -> list[LoadLimit]:
        entries = self.policy.entries
        by_target = (each for each in self.throttles if each.about.target is not None)
        return [LoadLimit(throttle, entries) for throttle in by_target]

    # ---- what holds launches back ---------------------------------------------------------

    def gates(self, now: int) -> Gates:
        """Return what is held back at a time; cached while it holds."""
        gates = self._gates
        if gates is None or not gates.start <= now < gates.end:
            gates = self._gates = self._gates_at(now)
        return gates

    def _gates_at(self, now: int) -> Gates:
        windows = self._blackouts + self.shut
        stale = [throttle.stale_at(self.since) for throttle in self.throttles]
        holds = [time for time in [*stale, *(window.start for window in windows)] if time > now]
        starts = [time for time in [*stale, *(window.end for window in windows)] if time > now]
        return Gates(
            start=now,
            end=min([FAR_FUTURE_NS, *holds, *starts]),
            held=self._held_at(now),
            next_hold=min(holds, default=None),
            next_start=min(starts, default=None),
            failing=[each for each in self.throttles if each.trouble(now, self.since)],
        )

    def _held_at(self, now: int) -> frozenset[int]:
        """Return the entries that are stopped, throttled or in a blackout."""
        held = self.closed
        if any(throttle.closed(now, self.since) for throttle in self.throttles):
            held |= self.heavy
        for window in self._blackouts:
            if window.start <= now < window.end:
                held |= set(window.entries or range(len(self.policy.entries)))
        return held

    def has_place(self, entry: int, counts: InFlightCounts) -> bool:
        """Return whether a metadata target can take one more run of an entry, if it needs one."""
        about = self.policy.entries[entry]
        if not (about.file_system and self.targets.has(about.file_system)):
            return True
        return self.targets.has_place(about, counts)

    def rooms(self, now: int) -> list[float]:
        """Return what may be started besides, by each throttle with a target."""
        return [limit.room(now, self.since) for limit in self.load_limits]

    def has_room(self, entry: int, rooms: list[float]) -> bool:
        """Return whether a run of an entry may start in these rooms."""
        pairs = zip(self.load_limits, rooms, strict=True)
        return all(limit.fits(entry, room) for limit, room in pairs)

    def excess(self, now: int) -> set[str]:
        """Return the runs that wait at the scheduler, and must not start by a throttle with a
        target, as its reading has risen since they were launched."""
        found: set[str] = set()
        for limit in self.load_limits:
            found |= limit.excess(now, self.since)
        return found

    @property
    def lets_all(self) -> bool:
        """Whether nothing can hold a launch back."""
        return not self._any_gate and not self.closed

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
        for limit, room in zip(self.load_limits, self.rooms(now), strict=True):
            if 0 <= room < max(limit.loads, default=0.0):
                stands = sentence(limit.throttle, limit.since)
                reason.append(f"gauge {limit.throttle.about.gauge} leaves little room: {stands}")
        for window in self.policy.blackouts:
            start, end = window.span(self.start)
            if start <= now < end:
                left = show_seconds((end - now) / SECOND_NS)
                on = f" of {window.nodes}" if window.nodes else ""
                for_what = f" ({window.reason})" if window.reason else ""
                reason.append(f"a blackout{on}{for_what} ends in {left}")
        reason += [f"{self.policy.entries[n].name} is stopped" for n in self.stopped]
        reason += [f"{self.policy.entries[n].name} is held" for n in self._held]
        reason += ["tests whose I/O is not light are held"] * self._heavy_held
        return "; ".join(reason)

    def next_token(self, now: int, launches: Requests) -> int | None:
        """Return the time at which there is a token for a start (now if there is one), if runs of
        these requests are launched now; None where none is needed."""
        if self.bucket is None:
            return None
        heavy = [request for request in launches if request.entry in self.heavy]
        return self.bucket.next(now, len(heavy))


def _any_gate(policy: Policy) -> bool:
    """Return whether anything but cores, and people, can hold a launch back."""
    gates = policy.targets or policy.stagger or policy.throttles or policy.blackouts
    own = any(entry.most or entry.file_system for entry in policy.entries)
    return bool(gates or own or policy.caps != Caps())


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


# ---- targets -------------------------------------------------------------------------------------
#
# The metadata target of a run.


STALE_NS = 600 * SECOND_NS
_ROUNDING = 1e-9  # loads are sums of floats
_LAST = (math.inf, 0.0, 0.0)


class TargetReading(NamedTuple):
    """The load of a target as a gauge read it at a time (ns), and the open files of the runs that
    were placed since."""

    time: int
    load: float
    placed: float = 0.0


class Targets(Struct):
    """The targets of each file system. ``round_robin`` takes turns, ``weighted`` takes turns in
    proportion to the weights, ``least_loaded`` takes the target with the fewest open files: by
    what the gauges of the targets read, with those of the runs that were placed since; where a
    target of the file system has no fresh reading, by the runs in flight alone.

    Turns are those of start-time fair queueing (Goyal, Vin and Cheng 1996): each target has the
    time of its next turn, which a placement delays by 1 / weight. A target that was full for long
    does not get the turns that it missed, as all runs would then go there at once.
    """

    targets: list[PolicyTarget]
    placement: Placement
    caps: Caps
    _by_name: dict[str, PolicyTarget] = {}
    _by_file_system: dict[str, list[PolicyTarget]] = {}
    _names: dict[str, set[str]] = {}
    _have_gauges: bool = False
    _turn: dict[str, float] = {}
    #: turn of the latest placement, by file system
    _time: dict[str, float] = {}
    _measured: dict[str, TargetReading] = {}

    def __post_init__(self) -> None:
        self._by_name = {target.name: target for target in self.targets}
        self._have_gauges = any(target.gauge for target in self.targets)
        self._turn = dict.fromkeys(self._by_name, 0.0)
        for target in self.targets:
            self._by_file_system.setdefault(target.file_system, []).append(target)
        self._names = {
            name: {target.name for target in members}
            for name, members in self._by_file_system.items()
        }

    def changed(self, targets: list[PolicyTarget], placement: Placement, caps: Caps) -> Targets:
        """Return the targets by another policy; turns that were taken stay."""
        other = Targets(targets, placement, caps)
        other._turn |= {name: turn for name, turn in self._turn.items() if name in other._turn}
        other._time = self._time.copy()
        other._measured = {name: x for name, x in self._measured.items() if name in other._turn}
        return other

    def read(self, event: GaugeRead) -> None:
        """Record the reading of a gauge. One that failed, or is old, does not count."""
        if not self._have_gauges:
            return
        value = finite(event.value)
        for name, target in self._by_name.items():
            if target.gauge == event.gauge:
                self._measured.pop(name, None)
                if value is not None:
                    self._measured[name] = TargetReading(event.time, value)
        oldest = event.time - STALE_NS
        self._measured = {name: x for name, x in self._measured.items() if x.time >= oldest}

    def forget(self) -> None:
        """Record that nobody read the gauges for a while."""
        self._measured.clear()

    def place(self, name: str, opens: float = 0.0) -> None:
        """Record that a run with so many open files was placed on a target."""
        target = self._by_name.get(name)
        if target is not None:
            if (known := self._measured.get(name)) is not None:
                self._measured[name] = known._replace(placed=known.placed + opens)
            turn, latest = self._turn[name], self._time.get(target.file_system, 0.0)
            turn = self._time[target.file_system] = turn if turn > latest else latest
            weight = target.weight if self.placement == "weighted" else 1.0
            self._turn[name] = turn + 1 / weight

    def copy(self) -> Targets:
        """Return a copy to try placements on."""
        other = copy(self)
        other._turn, other._time = self._turn.copy(), self._time.copy()
        other._measured = self._measured.copy()
        return other

    def has(self, file_system: str) -> bool:
        return file_system in self._by_file_system

    def has_place(self, entry: Entry, counts: InFlightCounts) -> bool:
        """Return whether a target can take a run of an entry now."""
        return next(self._open(entry, counts), None) is not None

    def _open(self, entry: Entry, counts: InFlightCounts) -> Iterator[PolicyTarget]:
        """Yield the targets that can take a run of an entry now."""
        max_runs, on_target, opens = self.caps.per_target, counts.on_target, counts.opens
        for target in self._by_file_system[entry.file_system]:
            name, safe = target.name, target.safe
            if max_runs and on_target.get(name, 0) >= max_runs:
                continue
            if not safe or opens.get(name, 0.0) + entry.opens <= safe * (1 + _ROUNDING):
                yield target

    def choose(self, entry: Entry, counts: InFlightCounts) -> str | None:
        """Return the target for a run of an entry; None where none can take it now."""
        least_loaded, measured = self.placement == "least_loaded", self._measured
        opens, on_target, turns = counts.opens, counts.on_target, self._turn
        latest = self._time.get(entry.file_system, 0.0)
        chosen, first = None, _LAST
        by_gauge = least_loaded and measured.keys() >= self._names[entry.file_system]
        for target in self._open(entry, counts):
            name, weight = target.name, target.weight
            turn = turns[name] if turns[name] > latest else latest
            if least_loaded:
                load = sum(measured[name][1:]) if by_gauge else opens.get(name, 0.0)
                order = load / weight, on_target.get(name, 0) / weight, turn
            else:
                order = 0.0, 0.0, turn
            if order < first:
                chosen, first = name, order
        return chosen


# ---- throttles -----------------------------------------------------------------------------------
#
# What holds starts back by a gauge of the machine.
#
#     throttle = ThrottleState(rule)
#     throttle.apply(reading)
#     throttle.closed(now, since)
#
#     limit = LoadLimit(throttle, entries)     # of a rule with a target
#     limit.launch(run_id, entry); limit.started(run_id, time); limit.ended(run_id)
#     limit.room(now, since)                   # what may be started besides
#
# A rule with ``high`` and ``low`` has hysteresis: it closes above the one and opens below the
# other. A rule with a ``target`` lets starts follow the load: a run starts where the latest
# reading, the declared loads of all runs that the reading cannot show yet, and its own stay at or
# below it.


class ThrottleState:
    """The state of one throttle, a fold over the readings of its gauge."""

    def __init__(self, about: ThrottleRule, former: ThrottleState | None = None) -> None:
        """``former`` is the throttle by the same gauge that this one replaces."""
        self.about = about
        self._lowest, self._highest = about.lowest, about.highest
        self._stale_after = round(about.stale_after * SECOND_NS)
        self._closed: bool | None = None  # None before the first good reading
        self._read = 0  # time of the latest good reading
        self._began = 0  # when its command was started
        self.value: float | None = None  # the latest good reading
        self.failure = ""  # reason why the latest reading failed
        if former is not None:
            self._closed, self._read, self._began = former._closed, former._read, former._began
            self.value, self.failure = former.value, former.failure
            self._set()

    def apply(self, event: GaugeRead) -> None:
        """Record a reading of the gauge; a reading without a finite number is a failure."""
        value = finite(event.value)
        if value is None:
            self.failure = event.reason or "it gave no number"
            return
        self.failure = ""
        self._read = event.time
        self._began = event.time - round(max(0.0, event.seconds) * SECOND_NS)
        self.value = value
        self._set()

    def _set(self) -> None:
        """Close or open by the latest good reading."""
        value, about = self.value, self.about
        if value is None:
            return
        if about.target is not None:
            self._closed = value > about.target
        elif value > self._highest:
            self._closed = True
        elif value < self._lowest or self._closed is None:
            self._closed = False

    def closed(self, now: int, since: int) -> bool:
        """Return whether launches are held back, in a trial that last started or was resumed at
        ``since``."""
        if not self.is_known(now, since):
            return self.about.on_failure == "closed"
        return bool(self._closed)

    def is_known(self, now: int, since: int) -> bool:
        """Return whether the latest good reading counts. To one with a target, a reading from
        before a pause says nothing: nobody knows what was started meanwhile."""
        if self._closed is None or self.failing(now, since):
            return False
        return self.about.target is None or self._read >= since

    def failing(self, now: int, since: int) -> bool:
        """Return whether there has been no good reading for too long."""
        return now >= self.stale_at(since)

    def stale_at(self, since: int) -> int:
        """Return the time (ns) from which the latest good reading is too old. The gauge is not read
        while the trial is paused, so ``since`` counts if it is later."""
        return (self._read if self._read > since else since) + self._stale_after

    def shows(self, started: int | None) -> bool:
        """Return whether the latest reading has the load of a run whose job started then (ns; None:
        not yet): the reading began after that, and after the time that the run takes until its
        load is there."""
        if started is None or self.value is None:
            return False
        return started + round(self.about.settle * SECOND_NS) < self._began

    def trouble(self, now: int, since: int) -> str:
        """Return the alert about the gauge, "" if it works."""
        about, failing = self.about, self.failing(now, since)
        if not failing and not self.failure:
            return ""
        reason = self.failure or f"no reading for {show_seconds(about.stale_after)}"
        if failing or not self.is_known(now, since):
            follows = f"launches of what is not light are {about.on_failure} until it works"
        else:
            follows = f"what it said last holds for {show_seconds(about.stale_after)}"
        return f"gauge {about.gauge} fails: {reason}; {follows}"


# ---- throttles with a target ---------------------------------------------------------------------


def declared(entries: Sequence[Entry], gauge: str) -> list[float]:
    """Return what a run of each entry adds to the reading of a gauge, as its plan declares it."""
    return [entry.load_on(gauge) for entry in entries]


class LoadLimit:
    """The runs whose loads the latest reading of a throttle with a target cannot show, in the order
    of their launches: those that wait, that started since it, or that have not settled yet."""

    def __init__(self, throttle: ThrottleState, entries: Sequence[Entry]) -> None:
        self.throttle = throttle
        self.loads = declared(entries, throttle.about.gauge)
        self._light = [entry.io == "light" for entry in entries]
        self._runs: dict[str, tuple[int, int | None]] = {}  # entry, start of the job
        self._number = [0] * len(entries)  # of these runs, by entry
        self._shown: dict[str, int] = {}  # the entries of those that the reading shows
        self._others = throttle.value or 0.0  # what the reading has beside these

    def take_up(self, flights: Mapping[str, RunInFlight]) -> None:
        """Take the runs in flight for those that count, as a changed policy does."""
        for run_id, flight in flights.items():
            started = flight.job_started or flight.script_started
            if flight.has_job:
                self.launch(run_id, flight.entry)
                if started is not None:
                    self.started(run_id, started)
        self._look()

    def launch(self, run_id: str, entry: int) -> None:
        self._runs[run_id] = entry, None
        self._number[entry] += 1

    def started(self, run_id: str, time: int) -> None:
        if run_id in self._runs:
            self._runs[run_id] = self._runs[run_id][0], time

    def ended(self, run_id: str) -> None:
        self._shown.pop(run_id, None)
        self._drop(run_id)

    def _drop(self, run_id: str) -> int | None:
        entry, _ = self._runs.pop(run_id, (None, None))
        if entry is not None:
            self._number[entry] -= 1
        return entry

    def read(self) -> None:
        """Follow a reading that the throttle has applied."""
        self._look()
        own = math.fsum(self.loads[entry] for entry in self._shown.values())
        self._others = max(0.0, (self.throttle.value or 0.0) - own)

    def _look(self) -> None:
        """Find out which runs the latest reading shows."""
        shown = [run for run, (_, time) in self._runs.items() if self.throttle.shows(time)]
        for run_id in shown:
            if (entry := self._drop(run_id)) is not None:
                self._shown[run_id] = entry

    @property
    def since(self) -> float:
        """The declared load of these runs."""
        return math.fsum(
            number * load for number, load in zip(self._number, self.loads, strict=True)
        )

    def room(self, now: int, since: int) -> float:
        """Return what may be started besides: the target without the reading and the declared loads
        since; infinity where no reading counts, as then the throttle is open or closed."""
        throttle = self.throttle
        if throttle.value is None or not throttle.is_known(now, since):
            return math.inf
        assert throttle.about.target is not None
        return throttle.about.target - throttle.value - self.since

    def fits(self, entry: int, room: float) -> bool:
        """Return whether a run of an entry may start in this room. One with light I/O always
        may."""
        return self._light[entry] or fits_in(self.loads[entry], room)

    def will_fit(self, entry: int) -> bool:
        """Return whether a run of an entry would fit if it were the only one of the trial: by the
        latest reading without what the runs that it shows declare."""
        target = self.throttle.about.target or 0.0
        return self._light[entry] or fits_in(self.loads[entry], target - self._others)

    def excess(self, now: int, since: int) -> set[str]:
        """Return the runs that wait at the scheduler and no longer fit, as the reading has risen
        since they were launched: the latest of them."""
        room = self.room(now, since)
        if fits_in(0.0, room):
            return set()
        room += math.fsum(self.loads[entry] for entry in self._waiting().values())
        found = set()
        for run_id, entry in self._waiting().items():
            if fits_in(self.loads[entry], room):
                room -= self.loads[entry]
            elif self.loads[entry]:
                found.add(run_id)
        return found

    def _waiting(self) -> dict[str, int]:
        """Return the runs that wait at the scheduler, and can be held back, with their entries."""
        return {
            run_id: entry
            for run_id, (entry, started) in self._runs.items()
            if started is None and not self._light[entry]
        }


def fits_in(load: float, room: float) -> bool:
    """Return whether a load fits, within rounding."""
    return load <= room or math.isclose(load, room, rel_tol=_ROUNDING, abs_tol=_ROUNDING)


def sentence(state: ThrottleState, since: float) -> str:
    """Return how a throttle with a target stands, where ``since`` is the declared load of what the
    latest reading cannot show."""
    about = state.about
    assert about.target is not None
    shown = "no number yet" if state.value is None else f"{show_number(state.value)} read"
    return f"{shown}, {show_number(since)} started since; its target is {show_number(about.target)}"


def unseen(
    state: ThrottleState, loads: Sequence[float], runs: Iterable[tuple[int, int | None]]
) -> float:
    """Return the declared load of runs in flight (entry, start of the job in ns) that the latest
    reading cannot show."""
    return math.fsum(loads[entry] for entry, started in runs if not state.shows(started))
