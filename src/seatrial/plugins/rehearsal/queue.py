"""The queue of a simulated cluster: which waiting job starts next, and on which nodes.

Jobs that ask for the same (nodes, walltime, pool) stand in one *line*. If the first job of a line
cannot start, no other job of the line can; so thousands of waiting jobs with few shapes cost as
little as a few. The lines are the entries for which ``easy`` decides, in the order of their first
jobs.

A *pool* is a set of nodes that jobs may use: a partition, less the nodes that a job avoids, or the
one node that a job asks for. A planned outage closes its nodes for jobs that would run into it.
"""

import math
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import NamedTuple, Protocol, TypeVar

from msgspec import Struct

from seatrial.execute.backends import JobEnd
from seatrial.model.machine import FileSystem, Machine
from seatrial.plugins.rehearsal.keys import FileSystemModel, capacity_of
from seatrial.plugins.rehearsal.node_names import choose
from seatrial.units import FAR_FUTURE_NS, SECOND_NS

# ---- jobs ----------------------------------------------------------------------------------------
#
# The jobs that a simulated cluster accepts, its records of them, and the updates that only it
# reports.


class SimulatedJob(Struct, frozen=True):
    """A run as the simulated cluster sees it: its request, and its course if nothing disturbs it.
    Times are in seconds."""

    run_id: str
    nodes: int
    walltime: float
    #: The time of its script, alone on its servers.
    elapsed: float
    #: Those that it takes of a shared node; 0 elsewhere.
    cores: int = 0
    #: That of its script.
    exit_code: int = 0
    #: Whether its script does not end by itself.
    hangs: bool = False
    #: How long it keeps its nodes after its script.
    keeps: float = 0.0
    #: Nodes that it must not get, folded.
    avoid: str = ""
    #: The nodes that it must get.
    node: str = ""
    partition: str = ""
    file_system: str = ""
    #: Its metadata target.
    target: str = ""
    #: Files that it holds open on its metadata target.
    opens: float = 0.0
    #: The share of its time that it spends on its metadata target.
    metadata: float = 0.0
    #: The share of its time that it spends on the object targets.
    objects: float = 0.0
    #: GB/s that it asks of the object targets.
    bandwidth: float = 0.0
    #: Why the scheduler refuses it; "" if it does not.
    refused: str = ""
    #: The scheduler does not start it before this time (ns).
    held_until: int = 0


class Hangs(Struct, frozen=True):
    """The script of a run has started, and will not end by itself."""

    run_id: str


class FinishedJob(JobEnd, frozen=True):
    """A job is over. Has also the start and the end of its script (ns; 0: there was none)."""

    script_started: int = 0
    script_ended: int = 0


class JobRecord(Struct, eq=False):
    """A job of the cluster. Times are in ns."""

    job: SimulatedJob
    #: Whether its updates are reported, unlike those of background jobs.
    ours: bool
    elapsed: int
    keeps: int
    walltime: int
    #: So many nodes, or cores of a shared node.
    need: int
    id: int
    #: Its nodes as bits, see ``node_names``; 0 before it starts.
    nodes: int = 0
    #: The same as text.
    where: str = ""
    #: The end of its walltime.
    limit: int = 0
    #: These are set as soon as they are known; ``over_at`` is when it ends by itself.
    script_started: int = 0
    script_ended: int = 0
    over_at: int = 0
    #: Whether it has ended; its remaining events are ignored.
    over: bool = False
    #: The group of a script that shares a file system.
    group: "SpeedGroup | None" = None
    queue: "Queue | None" = None
    pool: int = 0
    line: int = 0
    number: int = 0


# ---- queue ---------------------------------------------------------------------------------------


class SimulatedOutage(NamedTuple):
    """Nodes that are out of service from ``start`` to ``end`` (ns)."""

    start: int
    end: int
    nodes: int


class _Counts(dict[int, int]):
    """Numbers by pool, each counted when it is first asked for."""

    def __init__(self, count: Callable[[int], int]) -> None:
        super().__init__()
        self._count = count

    def __missing__(self, pool: int) -> int:
        number = self[pool] = self._count(pool)
        return number


class Queue:
    """Nodes that share a queue, with their jobs."""

    def __init__(self, nodes: int, outages: Sequence[SimulatedOutage] = ()) -> None:
        self.nodes = nodes
        self.free = nodes
        self.waits = 0
        self._outages = [outage for outage in outages if outage.nodes & nodes]
        self._pools: list[tuple[int, int]] = []
        self._pool_of: dict[tuple[int, int], int] = {}

        # By the number of the line:
        self._lines: list[deque[JobRecord]] = []
        self._need: list[int] = []
        self._walltime: list[int] = []
        self._pool: list[int] = []
        self._unused: list[int] = []
        self._line_of: dict[tuple[int, int, int], int] = {}

        # Lines that are not empty, by the numbers of their first jobs:
        self._order: list[int] = []
        self._firsts: list[int] = []
        self._joined = 0

        # Running jobs, by the ends of their walltimes:
        self._running: list[JobRecord] = []
        self._ends: list[int] = []
        self._held: list[int] = []
        self.timeout = FAR_FUTURE_NS  # when the cluster looks for jobs at their walltimes

        self._now = 0
        self._blocked = False
        self._fresh = 0  # entries before this one were considered since a node became free
        self._shadow = FAR_FUTURE_NS
        self._extra = 0
        self._first_pool = 0
        self._free_in = _Counts(self._count_free)
        self._outside = _Counts(self._count_outside)

    # ---- events ---------------------------------------------------------------------------

    def join(self, record: JobRecord, pool: int) -> None:
        """Queue a job for nodes of a pool."""
        self._joined += 1
        self.waits += 1
        record.number = self._joined
        record.pool = pool
        record.line = line = self._line_number(record)
        queue = self._lines[line]
        queue.append(record)
        if len(queue) == 1:
            self._order.append(line)
            self._firsts.append(record.number)

    def leave(self, record: JobRecord) -> None:
        """Remove a job that waits. Its ``over`` must be set."""
        self.waits -= 1
        line = record.line
        if self._lines[line][0] is record:
            self._step(bisect_left(self._firsts, record.number))
            self.look_again()

    def release(self, record: JobRecord) -> None:
        """Free the nodes of a job that ran."""
        place = bisect_left(self._ends, record.limit)
        while self._running[place] is not record:
            place += 1
        del self._running[place], self._ends[place], self._held[place]
        self.free |= record.nodes
        self.look_again()

    def on(self, node: int) -> JobRecord | None:
        """Return the job that runs on a node."""
        return next((record for record in self._running if record.nodes & node), None)

    def next_limit(self) -> int:
        """Return when the next job reaches its walltime."""
        return self._ends[0] if self._ends else FAR_FUTURE_NS

    def at_limit(self, now: int) -> list[JobRecord]:
        """Return the jobs that are at their walltimes, and do not end by themselves just now."""
        there = self._running[: bisect_right(self._ends, now)]
        return [record for record in there if record.over_at != now]

    def look_again(self) -> None:
        """Consider all waiting jobs again, as nodes were added to or removed from ``free``."""
        self._blocked = False

    # ---- starts ---------------------------------------------------------------------------

    def start_ready(self, now: int) -> list[JobRecord]:
        """Start all jobs that can start now, and give each its nodes and its limit. Returns
        them."""
        started: list[JobRecord] = []
        order = self._order
        if not order or not self.free:
            return started
        self._now = now
        self._free_in.clear()
        self._outside.clear()
        if not self._blocked:
            while order and self._need[order[0]] <= self._free_in[self._pool[order[0]]]:
                started.append(self._start(0, 0))
            if not order:
                return started
            self._reserve()
            self._fresh = 1
        self._start_behind(started)
        return started

    def _reserve(self) -> None:
        """Make the reservation of the first job, which cannot start now."""
        self._blocked = True
        line = self._order[0]
        need, pool = self._need[line], self._pool[line]
        ends, held = self._to_come(pool)
        self._shadow, self._extra = reservation(
            need, self._free_in[pool], ends, held, len(ends), FAR_FUTURE_NS
        )
        self._first_pool = pool
        self._outside.clear()

    def _start_behind(self, started: list[JobRecord]) -> None:
        """Start jobs by backfill. Entries that were considered before cannot start now: it is
        later, and no node became free since."""
        order, position = self._order, self._fresh
        usable = self._pools[self._first_pool][0]
        while True:
            position = next_start(
                self._now,
                position,
                order,
                len(order),
                self._need,
                self._walltime,
                self._pool,
                self._free_in,
                self._outside,
                self._shadow,
                self._extra,
            )
            if position < 0:
                break
            line = order[position]
            self._extra = extra_left(
                self._extra,
                self._now + self._walltime[line],
                self._need[line],
                self._outside[self._pool[line]],
                self._shadow,
            )
            started.append(self._start(position, usable))
        self._fresh = len(order)

    def _start(self, position: int, spared: int) -> JobRecord:
        """Start the first job of a line, if possible on nodes outside of ``spared``."""
        line = self._order[position]
        record = self._lines[line][0]
        usable = self._usable(record.pool)
        need = record.need
        if spared and (others := usable & ~spared):
            apart = min(need, others.bit_count())
            chosen = choose(others, apart)
            if apart < need:
                chosen |= choose(usable & spared, need - apart)
        else:
            chosen = choose(usable, need)
        record.nodes = chosen
        record.limit = self._now + record.walltime
        self.free &= ~chosen
        if len(self._pools) == 1:
            self._free_in[record.pool] -= need  # which was counted just before
        else:
            self._free_in.clear()
            self._outside.clear()
        self.waits -= 1
        place = bisect_right(self._ends, record.limit)
        self._ends.insert(place, record.limit)
        self._held.insert(place, need)
        self._running.insert(place, record)
        self._step(position)
        return record

    # ---- lines ----------------------------------------------------------------------------

    def _line_number(self, record: JobRecord) -> int:
        shape = (record.need, record.walltime, record.pool)
        if (line := self._line_of.get(shape)) is not None:
            return line
        if self._unused:
            line = self._unused.pop()
            self._need[line], self._walltime[line], self._pool[line] = shape
        else:
            line = len(self._lines)
            self._lines.append(deque())
            self._need.append(record.need)
            self._walltime.append(record.walltime)
            self._pool.append(record.pool)
        self._line_of[shape] = line
        return line

    def _step(self, position: int) -> None:
        """Remove the first job of a line, and move the line to the position of its next job."""
        line = self._order.pop(position)
        del self._firsts[position]
        queue = self._lines[line]
        queue.popleft()
        while queue and queue[0].over:
            queue.popleft()
        if queue:
            place = bisect_left(self._firsts, queue[0].number)
            self._order.insert(place, line)
            self._firsts.insert(place, queue[0].number)
        else:
            del self._line_of[self._need[line], self._walltime[line], self._pool[line]]
            self._unused.append(line)

    # ---- pools ----------------------------------------------------------------------------

    def pool(self, usable: int, walltime: int) -> int:
        """Return the number of the pool of these nodes. Where there are outages, each walltime has
        a pool of its own."""
        key = (usable, walltime if self._outages else 0)
        if (pool := self._pool_of.get(key)) is None:
            pool = self._pool_of[key] = len(self._pools)
            self._pools.append(key)
        return pool

    def _usable(self, pool: int) -> int:
        """Return the free nodes of a pool, without those that an outage closes for its jobs."""
        nodes, walltime = self._pools[pool]
        usable = nodes & self.free
        if self._outages:
            usable &= ~self._closed(self._now, self._now + walltime)
        return usable

    def _count_free(self, pool: int) -> int:
        if self._outages:
            return self._usable(pool).bit_count()
        return (self._pools[pool][0] & self.free).bit_count()

    def _count_outside(self, pool: int) -> int:
        if pool == self._first_pool:
            return 0
        return (self._usable(pool) & ~self._pools[self._first_pool][0]).bit_count()

    def _closed(self, start: int, end: int) -> int:
        closed = 0
        for outage in self._outages:
            if outage.start < end and start < outage.end:
                closed |= outage.nodes
        return closed

    def _to_come(self, pool: int) -> tuple[list[int], list[int]]:
        """Return the times at which nodes of a pool become free, and their numbers: by the
        walltimes of running jobs, and by the outages."""
        nodes, walltime = self._pools[pool]
        if self._outages and (moments := self._moments(walltime)):
            return moments, self._changes(moments, pool)
        if nodes == self.nodes:
            return self._ends, self._held
        return self._ends, [(record.nodes & nodes).bit_count() for record in self._running]

    def _moments(self, walltime: int) -> list[int]:
        """Return the times at which more nodes may become free for a job of a walltime; none where
        no outage is near."""
        latest = max(self._now, self._ends[-1] if self._ends else 0) + walltime
        near = [o for o in self._outages if o.end > self._now and o.start < latest]
        if not near:
            return []
        return sorted({*self._ends, *(outage.end for outage in near)})

    def _changes(self, moments: Sequence[int], pool: int) -> list[int]:
        """Return the change, at each moment, in the number of nodes that jobs of a pool can use."""
        nodes, walltime = self._pools[pool]
        idle, before = self.free & nodes, self._free_in[pool]
        place, changes = 0, []
        for moment in moments:
            while place < len(self._ends) and self._ends[place] <= moment:
                idle |= self._running[place].nodes & nodes
                place += 1
            after = (idle & ~self._closed(moment, moment + walltime)).bit_count()
            changes.append(after - before)
            before = after
        return changes


# ---- sharing -------------------------------------------------------------------------------------
#
# File systems that runs share: how much longer a run takes when others use its servers.
#
# The model is *processor sharing with a full-speed limit*, in its fluid form. A metadata target
# serves up to C open files at full speed. With a load of L > C all its users share it equally, so
# that each gets C/L of its demand; the object targets of a file system likewise share their
# bandwidth W among a demand of B. A run that spends the share m of its time on its metadata
# target, the share o on the objects, and the rest on neither, then has the speed
#
#     1 / ((1 - m - o) + m max(1, L/C) + o max(1, B/W))
#
# and ends when its speed over time adds up to its elapsed time without others.
#
# Reasons for this model: a file server has no queue that is served in order; it works on all
# requests at once. The standard model of that is egalitarian processor sharing (M/G/1-PS). Its
# mean response time depends on the sizes of requests only by their mean (insensitivity), and only
# the mean is known here. Runs issue millions of requests, so that fluctuations average out, and
# the fluid limit remains. Waiting below capacity (the 1/(1 - rho) of the queue) is not modelled:
# measured elapsed times contain it.
#
# Runs with the same shares on the same target always have the same speed. They form a *group* that
# counts its progress once: a run ends when the progress has grown by its elapsed time. A change of
# load costs one step for each group, not for each run, and none where speeds stay the same.


_ROUNDING = 1 + 1e-9  # loads are sums of floats

At = Callable[[int, Callable[..., None], object], None]


def stretch(load: float, capacity: float) -> float:
    """Return the factor by which work on a server takes longer; 1 where the capacity is unknown
    (0)."""
    return load / capacity if capacity and load > capacity else 1.0


def speed(metadata: float, objects: float, slow_metadata: float, slow_objects: float) -> float:
    """Return the speed of a run, by its shares and the factors of its servers."""
    return 1 / (1 - metadata - objects + metadata * slow_metadata + objects * slow_objects)


class SpeedGroup:
    """Runs of one speed. ``progress`` is in ns of elapsed time without others."""

    def __init__(
        self, shared: "SharedFileSystem", target: "SimulatedTarget", metadata: float, objects: float
    ) -> None:
        self.shared, self.target = shared, target
        self.metadata, self.objects = metadata, objects
        self.speed = speed(metadata, objects, target.slow, shared.slow)
        self.progress = 0.0
        self.since = 0
        self.ends: list[tuple[float, int, JobRecord]] = []
        self.planned = -1  # time of the next planned end

    def move(self, now: int) -> None:
        """Add the progress since the last call."""
        self.progress += (now - self.since) * self.speed
        self.since = now

    def next_end(self) -> int | None:
        """Return the time (ns) at which the next run of the group ends if nothing changes."""
        while self.ends and self.ends[0][2].over:
            heappop(self.ends)
        if not self.ends:
            self.progress = 0.0  # to keep the precision
            return None
        left = self.ends[0][0] - self.progress
        return self.since + math.ceil(left / self.speed) if left > 0 else self.since


class TargetLoad(NamedTuple):
    """The load of a metadata target: the ``highest``, by Seatrial's runs and others, and the share
    of the time in which it was ``above`` the ``safe`` load (0: unknown)."""

    file_system: str
    target: str
    highest: float
    safe: float
    above: float


class SimulatedTarget:
    """A metadata target: its load by Seatrial's runs (``own``) and by others (``production``), and
    its groups."""

    def __init__(self, safe: float) -> None:
        self.own = self.production = 0.0
        self.slow = 1.0
        self.groups: dict[tuple[float, float], SpeedGroup] = {}
        self.safe = safe
        self._highest = 0.0  # of loads that lasted
        self._latest = 0.0
        self._changed = 0  # when the load changed last
        self._above = 0  # ns above the safe load, until then

    @property
    def load(self) -> float:
        return self.own + self.production

    @property
    def highest(self) -> float:
        """The highest load so far, except loads that lasted no time."""
        return self._highest if self._highest > self._latest else self._latest

    def watch(self, now: int) -> None:
        """Record a change of the load."""
        if now > self._changed:
            self._above = self.above(now)
            if self._latest > self._highest:
                self._highest = self._latest
            self._changed = now
        self._latest = self.own + self.production

    def above(self, now: int) -> int:
        """Return the time in ns for which the load was above the safe load."""
        is_above = self.safe and self._latest > self.safe * _ROUNDING
        return self._above + (now - self._changed if is_above else 0)


class SharedFileSystem:
    """A file system: its metadata targets, and the bandwidth that runs ask of its objects."""

    def __init__(self, file_system: FileSystem, model: FileSystemModel) -> None:
        names = [target.name for target in file_system.metadata_targets] or [""]
        self.targets = {name: SimulatedTarget(file_system.safe_load) for name in names}
        self.first = next(iter(self.targets.values()))
        self.model = model
        self.asked = 0.0
        self.slow = 1.0


class FileSystems:
    """The file systems of a machine. ``at`` plans events; ``ended`` is called at the end of the
    script of a run."""

    def __init__(
        self, machine: Machine, start: int, at: At, ended: Callable[[JobRecord], None]
    ) -> None:
        self._at, self._ended, self._start = at, ended, start
        self._shared = {
            name: SharedFileSystem(each, capacity_of(each))
            for name, each in machine.file_systems.items()
        }
        self._entered = 0
        for shared in self._shared.values():
            for level in shared.model.production:
                when = start + round(level.since.seconds * SECOND_NS)
                at(when, self._produce, (shared, when, level.target, level.load))

    def load(self, name: str, target: str = "") -> float:
        """Return the open files on a target, of Seatrial's runs and others; without a target, the
        highest number."""
        targets = self._shared[name].targets
        chosen = [targets[target]] if target else targets.values()
        return max([each.load for each in chosen])

    def loads(self, now: int) -> list[TargetLoad]:
        """Return the load of each target so far."""
        span = max(1, now - self._start)
        return [
            TargetLoad(name, target, each.highest, each.safe, each.above(now) / span)
            for name, shared in self._shared.items()
            for target, each in shared.targets.items()
        ]

    def enter(self, now: int, record: JobRecord) -> bool:
        """Start the script of a run on its file system. Returns False where that is unknown. A run
        without a target is on the first one."""
        job = record.job
        shared = self._shared.get(job.file_system)
        if shared is None:
            return False
        target = shared.targets.get(job.target, shared.first)
        key = (job.metadata, job.objects)
        if (group := target.groups.get(key)) is None:
            group = target.groups[key] = SpeedGroup(shared, target, *key)
        record.group = group
        group.move(now)
        if not job.hangs:
            self._entered += 1
            heappush(group.ends, (group.progress + record.elapsed, self._entered, record))
        self._lay(now, group, job.opens, job.bandwidth)
        self._plan(group)
        return True

    def leave(self, now: int, record: JobRecord) -> None:
        """End the script of a run."""
        group, record.group = record.group, None
        if group is not None:
            self._lay(now, group, -record.job.opens, -record.job.bandwidth)

    def _produce(self, what: tuple[SharedFileSystem, int, str, float]) -> None:
        """Change the load by others."""
        shared, now, name, load = what
        for target in [shared.targets[name]] if name else shared.targets.values():
            target.production = load
            self._weigh(now, shared, target)

    def _lay(self, now: int, group: SpeedGroup, opens: float, bandwidth: float) -> None:
        shared = group.shared
        group.target.own += opens
        if opens:
            self._weigh(now, shared, group.target)
        if bandwidth:
            shared.asked += bandwidth
            slow = stretch(shared.asked, shared.model.objects * shared.model.bandwidth)
            if slow != shared.slow:
                shared.slow = slow
                for target in shared.targets.values():
                    self._change(now, target)

    def _weigh(self, now: int, shared: SharedFileSystem, target: SimulatedTarget) -> None:
        target.watch(now)
        slow = stretch(target.own + target.production, shared.model.metadata)
        if slow != target.slow:
            target.slow = slow
            self._change(now, target)

    def _change(self, now: int, target: SimulatedTarget) -> None:
        """Update the speeds of the groups of a target."""
        for group in target.groups.values():
            new = speed(group.metadata, group.objects, target.slow, group.shared.slow)
            if new != group.speed:
                group.move(now)
                group.speed = new
                self._plan(group)

    def _plan(self, group: SpeedGroup) -> None:
        end = group.next_end()
        if end is not None and end != group.planned:
            self._at(end, self._due, (group, end))
        group.planned = -1 if end is None else end

    def _due(self, what: tuple[SpeedGroup, int]) -> None:
        """End the next run of a group, unless the plan for that has changed."""
        group, now = what
        if now != group.planned:
            return
        group.move(now)
        ends = group.ends
        while ends and (ends[0][2].over or ends[0][0] <= group.progress + 0.5):
            record = heappop(ends)[2]
            if not record.over:
                self._ended(record)
        self._plan(group)


# ---- easy ----------------------------------------------------------------------------------------
#
# EASY backfill: two functions that decide when a waiting job starts.
#
# Jobs start in the order of their submission. If the first job does not fit, it gets a
# reservation: at its *shadow time* enough running jobs will have reached their walltimes. A later
# job may start before it if it ends by then, or if it takes only *extra* nodes, which the first
# job does not need even then. So no job delays the first one (Lifka 1995; Mu'alem and Feitelson
# 2001).
#
# The cluster of a rehearsal runs this source in the interpreter, the bare simulation (``batch``)
# compiles it. So it takes plain indexed values: lists, arrays or mappings.
#
# A queue is a sequence of *entries* in the order of their submission. Their requests are given by
# entry: ``need`` (nodes), ``walltime``, ``pool`` (the set of nodes that it may use). By pool are
# given ``free`` (the number of nodes that are free now) and ``outside`` (the number of those that
# the first job cannot use).


Time = TypeVar("Time", int, float)
_Value = TypeVar("_Value", covariant=True)


class Indexed(Protocol[_Value]):
    """A list, an array or a mapping with integer keys."""

    def __getitem__(self, index: int, /) -> _Value: ...


def reservation(
    need: int, free: int, ends: Indexed[Time], held: Indexed[int], count: int, never: Time
) -> tuple[Time, int]:
    """Return (shadow time, extra nodes) of a job that needs more nodes than are free. ``ends`` are,
    in order, the times at which running jobs reach their walltimes; ``held`` are the numbers of
    their nodes. All jobs that end at the shadow time count. Returns (``never``, 0) where there will
    not be enough nodes."""
    index = 0
    while index < count:
        end = ends[index]
        while index < count and ends[index] == end:
            free += held[index]
            index += 1
        if free >= need:
            return end, free - need
    return never, 0


def next_start(
    now: Time,
    first: int,
    queue: Indexed[int],
    count: int,
    need: Indexed[int],
    walltime: Indexed[Time],
    pool: Indexed[int],
    free: Indexed[int],
    outside: Indexed[int],
    shadow: Time,
    extra: int,
) -> int:
    """Return the position of the first entry in ``queue[first:count]`` that may start before the
    reservation; -1 where there is none."""
    for position in range(first, count):
        entry = queue[position]
        nodes = need[entry]
        nodes_of = pool[entry]
        if nodes <= free[nodes_of] and (
            now + walltime[entry] <= shadow or nodes <= outside[nodes_of] + extra
        ):
            return position
    return -1


def extra_left(extra: int, end: Time, nodes: int, outside: int, shadow: Time) -> int:
    """Return the number of extra nodes that are left after a job has started before the
    reservation."""
    if end <= shadow or nodes <= outside:
        return extra
    return extra - (nodes - outside)
