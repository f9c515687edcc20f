"""The jobs of a machine, replayed: started again by a simulated batch system.

    record = record_of(jobs, "franklin", since, until)
    fit = fitted(record)                         # the policy that comes nearest, on the first half
    starts = replays(record.load, fit.policy, 8) # when each job would have started, eight times
    errors = starts - record.starts              # on the second half: how far it is off

A queue is chaotic: a job that comes a minute later changes which jobs can overtake, and a day later
all starts are others. What happened is one of many courses that could have been as well. So a
replay is repeated with the order shifted by up to a minute, and answers are means of these courses.

A replay knows what the batch system accounts for: when jobs were eligible, what they asked for, and
how long they ran. It does not know shares of users, nodes that were down, or dependencies that are
not accounted for. So what it says is worth as much as it comes near to what happened.

What it takes from the record beside the jobs:

- the size of the machine, from its file, or the most that was in use at once;
- times in which nothing started though jobs waited that had room (`pauses`);
- priorities of classes of jobs: who was passed over by whom (`learned`).
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.lazy import Bools, Indices, Ints, np
from seatrial.model.machine import Machine, NodeGroup
from seatrial.model.node_set import unfold
from seatrial.plugins.usage.jobs import NONE, UNFINISHED, Jobs
from seatrial.plugins.usage.simulation import (
    BACKFILLS,
    UNFORESEEN,
    Backfill,
    Closure,
    Workload,
    simulate,
)
from seatrial.units import count

Unit = Literal["nodes", "cores"]

COLUMNS = frozenset(
    (
        *("machine", "job", "submitted", "attempt", "eligible", "started", "ended", "suspended_s"),
        *("limit_s", "state", "user", "queue", "reservation", "nodes", "cores", "asked"),
    )
)
"""The columns of jobs that a record needs."""

WHOLE_NODES = 0.95
"""From this share of the core-seconds on whole nodes, nodes are counted, else cores."""

# ---- records -----------------------------------------------------------------------------------


class Size(NamedTuple):
    """How many units a machine has, and who says so."""

    units: int
    told_by: str


class Load(Struct, frozen=True):
    """Jobs as a batch system orders them: a row for each, in the order of eligibility."""

    work: Workload
    #: Jobs that go first: those of reservations.
    reserved: Bools
    #: The class of each job: by queue, and by its part of the machine.
    queue: Indices
    size: Indices
    #: Tells jobs apart, also where a part of them goes to another machine.
    number: Ints

    @property
    def started_here(self) -> Bools:
        """Which jobs are started by a replay: those that did not run before."""
        are: Bools = self.work.fixed == NONE
        return are

    def only(self, chosen: Bools) -> Load:
        """Return some of its jobs."""
        return Load(self.work.only(chosen), *(column[chosen] for column in self._columns))

    def joined(self, other: Load) -> Load:
        """Return its jobs and then those of another load, on its own machine."""
        pairs = zip(self._columns, other._columns, strict=True)
        return Load(self.work.joined(other.work), *map(np.concatenate, pairs))

    @property
    def _columns(self) -> tuple[Any, ...]:
        return self.reserved, self.queue, self.size, self.number


class Record(Struct, frozen=True, kw_only=True):
    """What a machine did. Arrays have a row for each job, in the order of eligibility."""

    machine: str
    jobs: Jobs
    asked: Asked
    unit: Unit
    #: Cores of a node; 0 if that is not known.
    per_node: int
    size: Size
    #: The most units in use at once.
    peak: int
    load: Load
    #: When each started.
    starts: Ints
    queues: tuple[str, ...]
    #: The span, in s: jobs that ran before it are not started again.
    since: int
    until: int
    #: What is to be said of it: rows that are left out, what is assumed.
    remarks: tuple[str, ...]

    @property
    def counted(self) -> Bools:
        """Which jobs have a wait that the batch system decides."""
        return self.load.started_here & ~self.load.reserved

    @property
    def waits(self) -> Ints:
        """How long each job waited, in s."""
        waited: Ints = self.starts - self.load.work.eligible
        return waited

    def only(self, chosen: Bools) -> Record:
        """Return the record of some of its jobs."""
        return replace(
            self,
            jobs=self.jobs.only(chosen),
            load=self.load.only(chosen),
            starts=self.starts[chosen],
        )


class Asked(Struct, frozen=True, kw_only=True):
    """What people say of a machine, in place of what is found."""

    size: int = 0
    unit: Unit | None = None
    #: The machine as its file describes it.
    site: Machine | None = None
    #: Whether a part of its jobs is a machine of its own, and the partitions whose nodes it has.
    is_part: bool = False
    partitions: tuple[str, ...] = ()

    def nodes(self) -> list[NodeGroup]:
        """Return the kinds of nodes that a file tells of it."""
        groups = self.site.nodes if self.site is not None else []
        return [each for each in groups if not self.is_part or each.partition in self.partitions]


def record_of(jobs: Jobs, machine: str, since: int, until: int, asked: Asked) -> Record:
    """Return the record of a machine from its jobs that were in the queue or ran in a span. Raises
    UsageError where nothing can be replayed."""
    remarks: list[str] = []
    jobs = _usable(jobs, remarks)
    if not len(jobs):
        raise UsageError(
            f"{machine}: no job that started is known in this time; `seatrial usage import` brings "
            "jobs in, --since and --until choose the time"
        )
    per_node = _cores_per_node(asked, jobs)
    kinds = {group.cores for group in asked.nodes()} or {per_node}
    unit = asked.unit or _unit(jobs, kinds)
    units = _units(jobs, unit, per_node)
    if not (units > 0).all():
        left = int((units <= 0).sum())
        remarks.append(f"{count(left, 'job')} with no known number of {unit}: not replayed")
        jobs, units = jobs.only(units > 0), units[units > 0]
    eligible = _eligible(jobs)
    order = np.argsort(eligible, kind="stable")
    jobs, units, eligible = jobs.only(order), units[order], eligible[order]
    starts, run, limit = _times(jobs, until, remarks)
    fixed = np.where(starts < since, starts, NONE)
    peak = max(_peak(starts, starts + run, units), int(units.max()))
    size = _size(machine, asked, unit, peak, remarks)
    closures = tuple(pauses(eligible, starts, starts + run, units, limit, peak, jobs))
    if closures:
        hours = sum(each.end - each.begin for each in closures) / 3600
        remarks.append(
            f"nothing started in {count(len(closures), 'time')} of {hours:.0f} h together though "
            "jobs waited that had room: taken as down or held"
        )
    closures = tuple(
        each if each.units == UNFORESEEN else each._replace(units=size.units) for each in closures
    )
    codes, queues = jobs.words["queue"]
    return Record(
        machine=machine,
        jobs=jobs,
        asked=asked,
        unit=unit,
        per_node=per_node,
        size=size,
        peak=peak,
        load=Load(
            Workload(eligible, units, run, limit, fixed, size.units, closures),
            _has_word(jobs, "reservation"),
            codes.astype(np.intp),
            size_classes(units, size.units),
            np.arange(len(units)),
        ),
        starts=starts,
        queues=queues,
        since=since,
        until=until,
        remarks=tuple(remarks),
    )


def _usable(jobs: Jobs, remarks: list[str]) -> Jobs:
    """Return the jobs that started and whose times are possible."""
    started, ended = jobs.numbers["started"], jobs.numbers["ended"]
    never = started == NONE
    unfinished = jobs.words["state"].are(UNFINISHED)
    lost = ~never & (ended == NONE) & ~unfinished
    wrong = ~never & (ended != NONE) & (ended < started)
    asked = jobs.numbers["asked"]
    later = ~never & (asked > 0) & (np.maximum(started, ended) > asked + DAY)
    for those, what in (
        (never, "never started"),
        (lost, "said to be over without the time of the end"),
        (wrong, "said to have ended before the start"),
        (later, "said to have ended after the records were asked for"),
    ):
        if those.any():
            remarks.append(f"{count(int(those.sum()), 'job')} {what}: not replayed")
    return jobs.only(~(never | lost | wrong | later))


def _cores_per_node(asked: Asked, jobs: Jobs) -> int:
    """Return the cores of a node: by the machine's file, else of most core-seconds; 0 if no job
    tells."""
    if groups := asked.nodes():
        return max(group.cores for group in groups)
    nodes, cores = jobs.numbers["nodes"], jobs.numbers["cores"]
    known = (nodes > 0) & (cores > 0)
    if not known.any():
        return 0
    ratio, place = np.unique(cores[known] // nodes[known], return_inverse=True)
    weight = np.bincount(place, cores[known].astype(float))
    return int(ratio[weight.argmax()])


def _unit(jobs: Jobs, kinds: set[int]) -> Unit:
    """Return nodes where nearly all hours were on whole nodes, of one of the kinds of cores."""
    nodes, cores = jobs.numbers["nodes"], jobs.numbers["cores"]
    if not (nodes > 0).any():
        return "cores"
    seconds = jobs.numbers["ended"] - jobs.numbers["started"]
    held = np.maximum(cores, nodes) * np.maximum(seconds, 1).astype(float)
    each = cores // np.maximum(nodes, 1)
    whole = (nodes > 0) & ((cores <= 0) | np.isin(each, [*kinds]) | (each > max(kinds)))
    return "nodes" if held[whole].sum() >= WHOLE_NODES * held.sum() else "cores"


def _units(jobs: Jobs, unit: Unit, per_node: int) -> Ints:
    """Return the units of each job; 0 where they are not known."""
    nodes, cores = jobs.numbers["nodes"], jobs.numbers["cores"]
    if unit == "nodes":
        told = -(-cores // per_node) if per_node else np.zeros_like(cores)
        units: Ints = np.where(nodes > 0, nodes, np.maximum(told, 0))
    else:
        units = np.where(cores > 0, cores, np.maximum(nodes, 0) * per_node)
    return units


def _eligible(jobs: Jobs) -> Ints:
    """Return when each job could start: as the batch system says, else when it was submitted; a
    later attempt not before the end of the one before it, a job of a reservation when it did."""
    submitted, started = jobs.numbers["submitted"], jobs.numbers["started"]
    eligible = np.where(jobs.numbers["eligible"] == NONE, submitted, jobs.numbers["eligible"])
    again = np.flatnonzero(jobs.numbers["attempt"] > 0)
    job, ended = jobs.words["job"].codes, jobs.numbers["ended"]
    again = again[again > 0]
    same = again[(job[again] == job[again - 1]) & (submitted[again] == submitted[again - 1])]
    eligible[same] = np.maximum(eligible[same], ended[same - 1])
    eligible = np.where(_has_word(jobs, "reservation"), started, eligible)
    at_start: Ints = np.minimum(eligible, started)
    return at_start


def _times(jobs: Jobs, until: int, remarks: list[str]) -> tuple[Ints, Ints, Ints]:
    """Return the starts, the run times and the time limits."""
    starts, ended = jobs.numbers["started"], jobs.numbers["ended"]
    run = np.maximum(ended - starts - jobs.numbers["suspended_s"], 0)
    limit = jobs.numbers["limit_s"].copy()
    unlimited = limit <= 0
    if unlimited.any():
        runs = np.where(ended == NONE, 0, run)
        queue = jobs.words["queue"].codes
        longest = np.zeros(queue.max() + 1, dtype=np.int64)
        np.maximum.at(longest, queue, np.maximum(limit, runs))
        limit[unlimited] = longest[queue[unlimited]]
        remarks.append(
            f"{count(int(unlimited.sum()), 'job')} without a time limit: the longest of the queue "
            "is taken"
        )
    running = ended == NONE
    if running.any():
        asked = jobs.numbers["asked"]
        known = np.where(asked > 0, np.minimum(asked, until), until)
        run = np.where(running, np.maximum(limit, known - starts), run)
        remarks.append(f"{count(int(running.sum()), 'job')} not over: they run to their time limit")
    return starts, run, np.maximum(np.maximum(limit, run), 1)


def _peak(starts: Ints, ends: Ints, units: Ints) -> int:
    """Return the most units in use at once. A job that ends makes room at that second."""
    return int(_use(starts, ends, units)[1].max(initial=1))


def _use(starts: Ints, ends: Ints, units: Ints) -> tuple[Ints, Ints]:
    """Return the times at which the units in use change, and how many they are from then on."""
    times, place = np.unique(np.concatenate([starts, ends]), return_inverse=True)
    change = np.zeros(len(times), dtype=np.int64)
    np.add.at(change, place, np.concatenate([units, -units]))
    return times, np.cumsum(change)


def _size(machine: str, asked: Asked, unit: Unit, peak: int, remarks: list[str]) -> Size:
    """Return the size of the machine: as asked, by its file, or the most in use at once."""
    if asked.size:
        if asked.size < peak:
            raise UsageError(
                f"--size {asked.size}: {machine} had {peak} {unit} in use at once; give at least "
                "that, or --unit, or another time by --since and --until"
            )
        return Size(asked.size, "--size")
    groups = [(len(unfold(group.names)), group.cores) for group in asked.nodes()]
    if groups:
        told = sum(nodes * (1 if unit == "nodes" else cores) for nodes, cores in groups)
        if told >= peak:
            return Size(told, "the machine's file")
        remarks.append(
            f"the file of {machine} has {told} {unit}, but {peak} were in use at once: that counts"
        )
    return Size(peak, "the most in use at once")


def _has_word(jobs: Jobs, column: str) -> Bools:
    codes, names = jobs.words[column]
    has: Bools = np.array([bool(name) for name in names], dtype=bool)[codes]
    return has


PARTS = (512, 64, 8)
"""Jobs are told apart by their part of the machine: to 1/512 of it, to 1/64, to 1/8, above."""
SIZES = len(PARTS) + 1


def size_classes(units: Ints, total: int) -> Indices:
    """Return the class of each job by its part of the machine."""
    return np.searchsorted(_edges(total), units).astype(np.intp)


def size_names(total: int, unit: str) -> list[str]:
    """Return the names of these classes: ``1 node``, ``2-12 nodes``, ``more than 800 nodes``."""
    edges = _edges(total)
    pairs = zip([1, *(edge + 1 for edge in edges)], edges, strict=False)
    inside = [f"{a}-{b} {unit}" if a < b else count(b, unit.removesuffix("s")) for a, b in pairs]
    return [*inside, f"more than {count(edges[-1], unit.removesuffix('s'))}"]


def _edges(total: int) -> list[int]:
    return [total // part for part in PARTS]


# ---- times in which nothing starts -------------------------------------------------------------

SHORTEST_PAUSE = 1800
"""In s; a shorter time without a start is the batch system's own delay."""
TOGETHER = 60
"""In s: jobs that start so soon after one another start together."""
HELD_UP = 3
"""So many jobs, of two users, must have waited though they had room."""
DAY = 86400


def pauses(
    eligible: Ints, starts: Ints, ends: Ints, units: Ints, limit: Ints, total: int, jobs: Jobs
) -> Iterator[Closure]:
    """Yield the times in which nothing started though jobs had room: the machine was down, drained
    or held. Half an hour before its end all jobs that waited must have had room, so that a machine
    that drains for a large job has no pause. A pause was known ahead if no job of the day before
    had a limit that reaches to its end, and nothing ran then: it begins at the last such limit."""
    order = np.argsort(starts, kind="stable")
    began = starts[order]
    times, used = _use(starts, ends, units)
    user = jobs.words["user"].codes
    for place in np.flatnonzero(np.diff(began) >= SHORTEST_PAUSE).tolist():
        last, end = int(began[place]), int(began[place + 1])
        before = end - SHORTEST_PAUSE
        first, beyond = np.searchsorted(began, [end, end + TOGETHER])
        starters = order[first:beyond]
        room = total - _used_at(times, used, before)
        held = starters[eligible[starters] <= before]
        if len(held) < HELD_UP or (units[starters] > room).any():
            continue
        if units[(eligible <= before) & (starts >= end)].max() > room:
            continue
        if len(np.unique(user[held])) < 2 and len(jobs.words["user"].names) > 1:
            continue
        begin = _room_since(
            times, used, total, max(last + 1, int(eligible[held].min())), units[held]
        )
        latest = order[np.searchsorted(began, begin - DAY) : place + 1]
        edge = int((starts[latest] + limit[latest]).max(initial=0))
        if edge <= before and len(latest) >= HELD_UP and _used_at(times, used, end - 1) == 0:
            yield Closure(max(begin, edge), end, total)
        else:
            yield Closure(begin, end, UNFORESEEN)


def _used_at(times: Ints, used: Ints, time: int) -> int:
    place = int(np.searchsorted(times, time, side="right")) - 1
    return int(used[place]) if place >= 0 else 0


def _room_since(times: Ints, used: Ints, total: int, first: int, units: Ints) -> int:
    """Return from when on, and not before ``first``, there is room for the smallest of jobs."""
    if total - _used_at(times, used, first) >= units.min():
        return first
    place = int(np.searchsorted(times, first))
    later = np.flatnonzero(total - used[place:] >= units.min())
    return int(times[place + later[0]])


# ---- policies ----------------------------------------------------------------------------------


class Policy(Struct, frozen=True, kw_only=True):
    """In which order jobs start: by eligibility, where jobs of a class count as if they had waited
    for its boost longer."""

    backfill: Backfill
    #: What tells classes apart: "", "queue", "size" or "queue and size".
    by: str = ""
    #: In s, by queue and size class.
    boosts: tuple[tuple[int, ...], ...] = ()
    #: The units that are there.
    total: int

    @property
    def words(self) -> str:
        order = f"by priorities of {self.by}" if self.by else "first come, first served"
        return f"{order}, {BACKFILL_WORDS[self.backfill]}"


BACKFILL_WORDS = {
    "none": "nobody overtakes",
    "easy": "with backfill (EASY)",
    "any": "whatever fits may overtake",
}


SHIFT = 60
"""In s: by so much at most the order of jobs is shifted from course to course."""


def replays(load: Load, policy: Policy, courses: int) -> Ints:
    """Return when each job starts under a policy, in several courses: shape (courses, n). A load
    with some jobs less has the same shifts for the others."""
    work = replace(load.work, total=policy.total)
    orders = (order_of(load, policy, course) for course in range(courses))
    return np.array([simulate(work, order, policy.backfill) for order in orders])


def order_of(load: Load, policy: Policy, course: int) -> Indices:
    """Return the jobs by their priority, the highest first."""
    key = load.work.eligible + _shifts(load.number, course)
    if policy.boosts:
        key = key - np.array(policy.boosts)[load.queue, load.size]
    order: Indices = np.lexsort((key, ~load.reserved))
    return order


def _shifts(number: Ints, course: int) -> Ints:
    """Return the shift of each job, in s: always the same for one number and course, by the mixing
    function of splitmix64 (Steele, Lea and Flood 2014)."""
    mixed = number.astype(np.uint64) * np.uint64(64) + np.uint64(course)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    shifts: Ints = (mixed >> np.uint64(33)).astype(np.int64) % (2 * SHIFT + 1) - SHIFT
    return shifts


# ---- priorities that are learned ---------------------------------------------------------------

STARTS_LOOKED_AT = 1500
PASSED_OVER = 8
"""Jobs that are looked at of all that a start passed over."""
FEW_OF_A_CLASS = 20
NEARLY = 0.01
"""A boost that is nearer to 0 counts if so small a part of the pairs speaks against it."""
ROUNDS = 4


class _Passed(NamedTuple):
    """Pairs of jobs: the first one started while the second one waited and could have started. So
    the boost of its class is larger by at least ``ahead``, the time for which the second one had
    waited longer, if only boosts and waits count."""

    first: Indices
    second: Indices
    ahead: Ints


def passed_over(record: Record, until: int) -> _Passed:
    """Return pairs of starts until a time, at most some thousand, drawn evenly."""
    work, starts, reserved = record.load.work, record.starts, record.load.reserved
    rng = np.random.default_rng(20100301)
    chosen = np.flatnonzero(record.counted & (starts < until))
    if len(chosen) > STARTS_LOOKED_AT:
        chosen = np.sort(rng.choice(chosen, STARTS_LOOKED_AT, replace=False))
    times, used = _use(starts, starts + work.run, work.units)
    longest = int(record.waits.max(initial=0))
    firsts, seconds = list[Indices](), list[Indices]()
    for job in chosen.tolist():
        now = int(starts[job])
        room = record.peak - _used_at(times, used, now) + int(work.units[job])
        low, high = np.searchsorted(work.eligible, [now - longest, now])
        waits = np.arange(low, high)
        could = (
            (starts[low:high] > now)
            & (work.units[low:high] <= room)
            & (work.limit[low:high] <= work.limit[job])
            & ~reserved[low:high]
        )
        others = waits[could]
        if len(others) > PASSED_OVER:
            others = rng.choice(others, PASSED_OVER, replace=False)
        firsts.append(np.full(len(others), job))
        seconds.append(others)
    first, second = (
        np.concatenate([*each, np.zeros(0, dtype=np.intp)]) for each in (firsts, seconds)
    )
    first, second = first.astype(np.intp), second.astype(np.intp)
    return _Passed(first, second, work.eligible[first] - work.eligible[second])


def learned(record: Record, pairs: _Passed, by: str) -> tuple[tuple[int, ...], ...]:
    """Return the boosts by queue and size with which the fewest pairs are in the wrong order."""
    cells = _cells(len(record.queues), by)
    cell = cells[record.load.queue, record.load.size]
    number = int(cells.max()) + 1
    few = np.bincount(cell, minlength=number) < FEW_OF_A_CLASS
    first, second = cell[pairs.first], cell[pairs.second]
    boosts = np.zeros(number, dtype=np.int64)
    for _ in range(ROUNDS):
        before = boosts.copy()
        for one in np.flatnonzero(~few).tolist():
            above, below = (first == one) & (second != one), (second == one) & (first != one)
            least = boosts[second[above]] + pairs.ahead[above]
            most = boosts[first[below]] - pairs.ahead[below]
            boosts[one] = _best_boost(least, most)
        if (before == boosts).all():
            break
    return tuple(tuple(row) for row in boosts[cells].tolist())


def _cells(queues: int, by: str) -> Indices:
    """Return the number of the class of each queue and size."""
    queue, size = np.indices((queues, SIZES))
    cells: Indices = (queue * ("queue" in by)) * (SIZES if "size" in by else 1) + size * (
        "size" in by
    )
    return cells


def _best_boost(least: Ints, most: Ints) -> int:
    """Return the boost that is above as many of ``least`` and below as many of ``most`` as can be,
    or nearly; of several, the one that is nearest to 0."""
    least, most = np.sort(least), np.sort(most)
    tried = np.unique(np.concatenate([[0], least + 1, most - 1]))
    wrong = len(least) - np.searchsorted(least, tried) + np.searchsorted(most, tried, side="right")
    good = tried[wrong <= wrong.min() + NEARLY * (len(least) + len(most))]
    return int(good[np.abs(good).argmin()])


# ---- the policy that comes nearest -------------------------------------------------------------

BRIEF = 60
"""In s: waits that differ by less are the same to people."""
LEAST_JOBS = 40
COURSES = 3
"""In which a policy is tried."""
MOST_JOBS = 20_000
"""By which a policy is chosen: the latest of the first half."""


class Fit(Struct, frozen=True):
    """The policy that comes nearest to the waits of the first half."""

    policy: Policy
    #: From when on jobs are of the second half, by which it is judged, in s.
    half: int
    #: What was tried, with its misfit: the best first.
    tried: tuple[tuple[float, Policy], ...]


def fitted(record: Record) -> Fit:
    """Return the policy that fits the jobs of the first half best. Raises UsageError where they are
    too few."""
    eligible = record.load.work.eligible[record.counted]
    half = int(np.median(eligible)) if len(eligible) else 0
    if 2 * int((eligible < half).sum()) < LEAST_JOBS:
        raise UsageError(
            f"{record.machine}: {count(len(eligible), 'job')} of this time had a wait that the "
            f"batch system decides: too few to tell how it orders them; {LEAST_JOBS}, at different "
            "times, are needed"
        )
    before = eligible[eligible < half]
    first = _between(record, int(before[-MOST_JOBS:].min(initial=half)), half)
    pairs = passed_over(first, half)
    orders: list[tuple[str, tuple[tuple[int, ...], ...]]] = [("", ())]
    for by in ("queue", "size", "queue and size"):
        boosts = learned(record, pairs, by)
        if any(map(any, boosts)):
            orders.append((by, boosts))
    total = record.size.units
    policies = [
        Policy(backfill=backfill, by=by, boosts=boosts, total=total)
        for by, boosts in orders
        for backfill in BACKFILLS
    ]
    tried = [(_misfit(first, policy), policy) for policy in policies]
    if record.peak < total:
        smaller = replace(min(tried, key=_first)[1], total=record.peak)
        tried.append((_misfit(first, smaller), smaller))
    tried.sort(key=_first)
    return Fit(tried[0][1], half, tuple(tried))


_first = itemgetter(0)


def _between(record: Record, since: int, until: int) -> Record:
    """Return the record of the jobs that ran or waited from a time on and were eligible before
    another one."""
    starts, work = record.starts, record.load.work
    part = record.only(
        (work.eligible < until) & (np.maximum(starts, starts + work.run - 1) >= since)
    )
    fixed = np.where(part.starts < since, part.starts, NONE)
    work = replace(part.load.work, fixed=fixed)
    return replace(part, load=replace(part.load, work=work))


def _misfit(record: Record, policy: Policy) -> float:
    """Return by how much waits differ, as a mean of logarithms."""
    chosen = record.counted
    waits = replays(record.load, policy, COURSES)[:, chosen] - record.load.work.eligible[chosen]
    expected = np.log(waits + BRIEF).mean(axis=0)
    return float(np.abs(expected - np.log(record.waits[chosen] + BRIEF)).mean())
