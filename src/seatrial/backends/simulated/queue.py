"""The queue of a simulated cluster: which waiting job starts next, and on which nodes.

Jobs that ask for the same (nodes, walltime, pool) stand in one *line*. If the first job of a line
cannot start, no other job of the line can; so thousands of waiting jobs with few shapes cost as
little as a few. The lines are the entries for which ``easy`` decides, in the order of their first
jobs.

A *pool* is a set of nodes that jobs may use: a partition, less the nodes that a job avoids, or the
one node that a job asks for. A planned outage closes its nodes for jobs that would run into it.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from seatrial.backends.simulated.easy import extra_left, next_start, reservation
from seatrial.backends.simulated.jobs import JobRecord
from seatrial.backends.simulated.names import choose
from seatrial.units import FAR_FUTURE_NS


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
