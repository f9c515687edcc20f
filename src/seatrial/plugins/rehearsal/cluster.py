"""A cluster in virtual time: it accepts jobs, and reports updates about them.

    cluster = SimulatedCluster(machine, nodes, seed=1, start_ns=start)
    cluster.submit(now, jobs)
    while (now := cluster.next_time()) is not None:
        for time, update in cluster.advance(now):
            ...

Nothing here waits, or reads the clock. The same machine, seed and calls give the same updates.
Failures, slow nodes and the jobs of others have separate random streams, so that a change to one
does not change the others.
"""

import gzip
import io
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from seatrial.errors import UsageError
from seatrial.execute.backends import NodesDown, NodesUp, Queued, Refused, Started
from seatrial.files import open_regular
from seatrial.model import codes
from seatrial.model.machine import Machine
from seatrial.model.policy import Window
from seatrial.plugins.rehearsal.keys import Background, model_of
from seatrial.plugins.rehearsal.node_names import NodeNames, SharedNode
from seatrial.plugins.rehearsal.queue import (
    FileSystems,
    FinishedJob,
    Hangs,
    JobRecord,
    Queue,
    SimulatedJob,
    SimulatedOutage,
)
from seatrial.units import FAR_FUTURE_NS, count, ns

# ---- failures ------------------------------------------------------------------------------------
#
# Random failures and repairs of nodes, and the choice of slow nodes, from separate streams.


def failures(
    nodes: int, between: float, repair: float, random: Random
) -> Iterator[tuple[float, tuple[int, float]]]:
    """Yield failures without end: when, of which node by its position, and after how long it is
    back (seconds). Each node fails after an exponential time with mean ``between``,
    and is down for an exponential time with mean ``repair``. The failures of all nodes together are
    one Poisson process of ``nodes`` times the rate. The caller skips a failure of a node that is
    down; that gives the same distribution, as exponential times have no memory."""
    time = 0.0
    while True:
        time += random.expovariate(nodes / between)
        yield time, (random.randrange(nodes), random.expovariate(1 / repair))


def slow_nodes(nodes: int, share: float, random: Random) -> int:
    """Return a random share of the nodes, as bits."""
    return sum(1 << node for node in random.sample(range(nodes), round(share * nodes)))


# ---- swf -----------------------------------------------------------------------------------------
#
# Reads logs in the Standard Workload Format 2.2, as in the Parallel Workloads Archive.
#
#     log = swf.read(Path("theta.swf.gz"))
#     log.jobs[0].run_time
#     log.damaged                # number of lines that are no jobs
#
# A line is a job: 18 numbers, -1 where one is missing. Lines that begin with ``;`` are comments.


FIELDS = 18
_COLUMNS = (0, 1, 3, 4, 7, 8)  # of the fields of ``SwfJob``
_LONGEST_LINE = 10_000
_MAX_NUMBER = 4e9  # seconds, beyond times since the epoch, and processors


class SwfJob(NamedTuple):
    """The fields of a job that a simulation needs. Times are in seconds; -1: missing."""

    number: float
    submit: float
    run_time: float
    processors: float
    asked_processors: float
    asked_time: float


class SwfLog(NamedTuple):
    """A log: its jobs in the order of the file, and the number of lines that are no jobs."""

    jobs: list[SwfJob]
    damaged: int


def read(path: Path) -> SwfLog:
    """Read a log, compressed (``.gz``) or not. Raises UsageError."""
    try:
        compressed = path.suffix == ".gz"
        with open_regular(path) as file, gzip.open(file) if compressed else file as data:
            return parse(io.TextIOWrapper(data, encoding="utf-8", errors="replace"))
    except (OSError, EOFError) as error:
        raise UsageError(f"{path}: the workload cannot be read: {error}") from error


def parse(lines: Iterable[str]) -> SwfLog:
    """Parse the lines of a log."""
    texts = (line[:_LONGEST_LINE].strip() for line in lines)
    jobs = [_job(text) for text in texts if text and not text.startswith(";")]
    return SwfLog([job for job in jobs if job], jobs.count(None))


def _job(text: str) -> SwfJob | None:
    try:
        numbers = [float(word) for word in text.split()]
    except ValueError:
        return None
    if len(numbers) != FIELDS or not all(map(math.isfinite, numbers)):
        return None
    job = SwfJob(*(numbers[column] for column in _COLUMNS))
    return job if max(job[1:]) <= _MAX_NUMBER else None


# ---- background ----------------------------------------------------------------------------------
#
# The jobs of others: from a log in the Standard Workload Format, or generated at random.


SIZES = (1, 4, 16, 64)  # nodes of random jobs
OVERRATED = (1.0, 3.0)  # range of walltime over elapsed time of random jobs


Arrival = tuple[float, SimulatedJob]
"""When somebody else submits a job, in seconds from the start, and the job."""


def background(
    model: Background, nodes: int, random: Random
) -> tuple[Iterator[Arrival], list[str]]:
    """Return the jobs of others on so many nodes, and remarks on them for people. A log is read at
    once (raises UsageError); random jobs are generated one by one, without end."""
    if model.swf:
        return logged(read(Path(model.swf)), model, nodes)
    return made(model, nodes, random), []


def logged(log: SwfLog, model: Background, nodes: int) -> tuple[Iterator[Arrival], list[str]]:
    """Return the jobs of a log that ran; the first arrives at time 0. Their walltimes are the
    requested times, or where these are missing the run times."""
    arrivals: list[Arrival] = []
    large = none = 0
    first = log.jobs[0].submit if log.jobs else 0.0
    time = 0.0
    for job in log.jobs:
        processors = job.processors if job.processors > 0 else job.asked_processors
        if processors <= 0 or job.run_time <= 0:
            none += 1  # cancelled before it ran, or unknown
            continue
        size = math.ceil(processors / model.cores_per_node)
        if size > nodes:
            large += 1
            continue
        time = max(time, job.submit - first)
        walltime = job.asked_time if job.asked_time > 0 else job.run_time
        name = f"background-{job.number:.0f}"
        arrivals.append((time, SimulatedJob(name, size, walltime, job.run_time)))
    left_out = [
        (log.damaged, "damaged line", "not 18 numbers"),
        (none, "job", "no run time or processors"),
        (large, "job", f"more than {nodes} nodes"),
    ]
    remarks = [
        f"{model.swf}: {count(n, what)} left out: {reason}" for n, what, reason in left_out if n
    ]
    return iter(arrivals), remarks


def made(model: Background, nodes: int, random: Random) -> Iterator[Arrival]:
    """Yield a Poisson process of jobs that ask for a mean ``load`` of the nodes. Their sizes are
    drawn evenly from ``model.nodes``; their elapsed times are exponential."""
    sizes = [size for size in model.nodes or SIZES if size <= nodes]
    load, mean = model.load.fraction, model.elapsed.seconds
    if not sizes or not load:
        return
    rate = load * nodes / (mean * sum(sizes) / len(sizes))
    time, number = 0.0, 0
    while True:
        time += random.expovariate(rate)
        number += 1
        elapsed = random.expovariate(1 / mean)
        walltime = elapsed * random.uniform(*OVERRATED)
        size = random.choice(sizes)
        yield time, SimulatedJob(f"background-{number}", size, walltime, elapsed)


# ---- cluster -------------------------------------------------------------------------------------


SimulatedUpdate = Queued | Refused | Started | Hangs | FinishedJob | NodesDown | NodesUp
_MAX_SECONDS = 10 * 366 * 86400.0
_Event = tuple[int, int, Callable[..., object], object]


class SimulatedCluster:
    """``nodes`` are those of the machine, in order. ``outages`` are planned; the scheduler knows
    them from the start. After ``horizon_s`` seconds there are no more random events.
    Where jobs share the ``cores`` of a single node, these are placed as nodes are elsewhere.
    ``on_start`` is called when a job of Seatrial gets its nodes; it may return another course of
    that job."""

    def __init__(
        self,
        machine: Machine,
        nodes: Sequence[str],
        seed: int | str,
        start_ns: int,
        outages: Sequence[Window] = (),
        horizon_s: float = math.inf,
        cores: int = 0,
        on_start: Callable[[int, JobRecord], SimulatedJob | None] | None = None,
    ) -> None:
        model = model_of(machine)
        self._on_start = on_start
        self._names = SharedNode(nodes[0], cores) if cores else NodeNames(nodes)
        self._start = start_ns
        self.now = start_ns  # the time (ns) up to which the cluster has advanced
        self._submit_delay = ns(model.submit_delay.seconds)
        self._start_delay = ns(model.start_delay.seconds)
        self._poll = ns(model.poll.seconds)
        self._events: list[_Event] = []
        self._number = 0  # of events
        self._given = 0  # of jobs
        self._updates: list[tuple[int, SimulatedUpdate]] = []
        self._is_news = False  # whether one of them tells more than that a job is queued
        self._late: list[SimulatedUpdate] = []
        self._changed = False  # whether jobs may be able to start
        self._jobs: dict[str, JobRecord] = {}
        self._down = 0
        self._planned = [self._outage(window) for window in outages]
        sets = {name: self._names.mask(nodes) for name, nodes in model.partitions.items()}
        self._partitions = sets or {"": self._names.all}
        self._queues = [Queue(mask, self._planned) for mask in joined(self._partitions.values())]
        self._places: dict[tuple[str, str, str, int], tuple[Queue, int, int]] = {}
        for outage in self._planned:
            self._at(outage.end, self._changed_queues, outage.nodes)
        self.files = FileSystems(machine, start_ns, self._at, self._script_ended)
        self._slow_by = model.slow_by
        slow = slow_nodes(len(nodes), model.slow_nodes.fraction, Random(f"{seed}: slow nodes"))
        self._slow = self._names.all if cores and slow else slow
        self._last = start_ns + ns(min(horizon_s, _MAX_SECONDS))
        self._failures: Iterator[tuple[float, tuple[int, float]]] = iter(())
        if between := model.node_failures.seconds:
            chance = Random(f"{seed}: failures")
            self._failures = failures(len(nodes), between, model.repair.seconds, chance)
        self._others: Iterator[Arrival] = iter(())
        self.remarks: list[str] = []  # about the jobs of others, for people
        if model.background is not None:
            size = next(iter(self._partitions.values())).bit_count()
            chance = Random(f"{seed}: background")
            self._others, self.remarks = background(model.background, size, chance)
        self._plan(self._failures, self._failed)
        self._plan(self._others, self._other_queued)

    # ---- calls ----------------------------------------------------------------------------

    def submit(self, now: int, jobs: Sequence[SimulatedJob]) -> None:
        """Submit jobs; the scheduler has them after the submission delay."""
        self._at(now + self._submit_delay, self._queued, [self._record(job) for job in jobs])

    def cancel(self, now: int, run_ids: Collection[str], pending_only: bool = False) -> None:
        """End jobs; with ``pending_only`` only those that wait. Jobs that are over stay so."""
        records = [record for run_id in run_ids if (record := self._jobs.get(run_id))]
        if records:
            self._at(now, self._recalled if pending_only else self._cancelled, records)

    def next_time(self) -> int | None:
        """Return the time of the next event; None where there is none."""
        return self._events[0][0] if self._events else None

    def advance(
        self, until: int | None, to_news: bool = False
    ) -> list[tuple[int, SimulatedUpdate]]:
        """Return the updates up to and including a time, in order. With ``to_news`` stop at the
        time of the first update, those aside that a job is queued."""
        events, latest = self._events, FAR_FUTURE_NS if until is None else until
        while events and events[0][0] <= latest:
            self.now, _, happen, what = heappop(events)
            happen(what)
            if events and events[0][0] == self.now:
                continue
            if self._changed:
                self._schedule()
            if to_news and self._is_news and not (events and events[0][0] == self.now):
                break
        else:
            self.now = max(self.now, until or 0)
        updates, self._updates, self._is_news = self._updates, [], False
        return updates

    # ---- events ---------------------------------------------------------------------------

    def _at(self, time: int, happen: Callable[..., object], what: object) -> None:
        self._number += 1
        heappush(self._events, (time, self._number, happen, what))

    def _schedule(self) -> None:
        self._changed = False
        for queue in self._queues:
            if queue.waits and (started := queue.start_ready(self.now)):
                for record in started:
                    self._started(record)
                self._plan_timeout(queue)

    def _queued(self, records: list[JobRecord]) -> None:
        self._changed = True
        for record in records:
            if record.over:
                continue
            if reason := self._why_refused(record):
                record.over = True
                if record.ours:
                    del self._jobs[record.job.run_id]
                    self._tell(Refused(record.job.run_id, reason))
                continue
            if record.ours:
                self._updates.append((self.now, Queued(record.job.run_id, str(record.id))))
            if record.job.held_until > self.now:
                self._at(record.job.held_until, self._released, record)
            else:
                self._join(record)

    def _released(self, record: JobRecord) -> None:
        """Let a job start that was held, unless it was cancelled."""
        if not record.over:
            self._changed = True
            self._join(record)

    def _join(self, record: JobRecord) -> None:
        queue, _, pool = self._where(record)
        record.queue = queue
        queue.join(record, pool)

    def _why_refused(self, record: JobRecord) -> str:
        """Return why the scheduler refuses a job; "" if it does not."""
        job, (_, usable, _) = record.job, self._where(record)
        if job.refused or usable >= record.need:
            return job.refused
        if job.partition and job.partition not in self._partitions:
            return f"no partition {job.partition}; there are {', '.join(self._partitions)}"
        unit = "cores" if job.cores else "nodes"
        return f"{record.need} {unit} asked for, of {usable} that the job may use"

    def _started(self, record: JobRecord) -> None:
        if record.ours:
            record.where = self._names.text(record.nodes)
            self._tell_at_poll(Started(record.job.run_id, record.where))
            if self._on_start is not None and (job := self._on_start(self.now, record)) is not None:
                record.job, record.elapsed, record.keeps = job, ns(job.elapsed), ns(job.keeps)
        job, start = record.job, self.now + self._start_delay
        if record.nodes & self._slow:
            record.elapsed = round(record.elapsed * self._slow_by)
        if start < record.limit:
            if job.hangs or job.file_system:
                self._at(start, self._script_started, record)
            else:
                self._runs(start, record)

    def _script_started(self, record: JobRecord) -> None:
        if record.over:
            return
        job, now = record.job, self.now
        if job.hangs and record.ours:
            self._tell(Hangs(job.run_id))
        entered = bool(job.file_system) and self.files.enter(now, record)
        if not entered and not job.hangs:
            self._runs(now, record)
            return
        record.script_started = now

    def _runs(self, start: int, record: JobRecord) -> None:
        """Start a script that shares no file system, so that its end is known now."""
        record.script_started, end = start, start + record.elapsed
        if end <= record.limit:
            self._leaves(end, record)

    def _script_ended(self, record: JobRecord) -> None:
        """End the script of a run that shared a file system."""
        if not record.over:
            self.files.leave(self.now, record)
            self._leaves(self.now, record)

    def _leaves(self, end: int, record: JobRecord) -> None:
        """End a script at a time; the job may keep its nodes after that."""
        record.script_ended, over = end, end + self._start_delay + record.keeps
        if over <= record.limit:
            record.over_at = over
            if over > self.now:
                self._at(over, self._ended, record)
            else:
                self._ended(record)

    def _ended(self, record: JobRecord) -> None:
        status = record.job.exit_code
        self._over(record, None, "FAILED" if status else "COMPLETED", status)

    def _plan_timeout(self, queue: Queue) -> None:
        """Plan the time at which the next job of a queue reaches its walltime. Most jobs end before
        that, so one is planned for all."""
        limit = queue.next_limit()
        if limit < queue.timeout:
            queue.timeout = limit
            self._at(limit, self._time_out, queue)

    def _time_out(self, queue: Queue) -> None:
        """End the jobs that are at their walltimes, unless an earlier time was planned since."""
        if self.now == queue.timeout:
            queue.timeout = FAR_FUTURE_NS
            for record in queue.at_limit(self.now):
                self._over(record, codes.TIMEOUT.number, "TIMEOUT", None)
            self._plan_timeout(queue)

    def _cancelled(self, records: list[JobRecord]) -> None:
        for record in records:
            self._over(record, codes.CANCELLED.number, "CANCELLED", None)

    def _recalled(self, records: list[JobRecord]) -> None:
        self._cancelled([record for record in records if not record.nodes])

    def _over(self, record: JobRecord, code: int | None, state: str, status: int | None) -> None:
        """End a job that waits or runs. Its nodes are free at once; the update comes at the next
        poll."""
        if record.over:
            return
        record.over = self._changed = True
        if record.group is not None:
            self.files.leave(self.now, record)
        queue = record.queue
        if queue is not None and record.nodes:
            queue.release(record)
            if self._down:
                queue.free &= ~self._down
        elif queue is not None:
            queue.leave(record)
        if record.ours:
            run_id, now = record.job.run_id, self.now
            del self._jobs[run_id]
            # A start or end of the script that was planned for later does not happen any more.
            start = record.script_started if record.script_started <= now else 0
            end = record.script_ended if record.script_ended <= now else 0
            self._tell_at_poll(
                FinishedJob(run_id, code, state, status, record.where, None, start, end)
            )

    def _changed_queues(self, nodes: int) -> list[Queue]:
        """Return the queues that have some of these nodes, which consider their jobs again."""
        self._changed = True
        queues = [queue for queue in self._queues if queue.nodes & nodes]
        for queue in queues:
            queue.look_again()
        return queues

    def _plan(self, stream: Iterator[tuple[float, Any]], happen: Callable[..., None]) -> None:
        """Plan the next event of a random stream, unless it comes too late."""
        if (event := next(stream, None)) is not None:
            seconds, what = event
            time = self._start + ns(seconds)
            if time <= self._last:
                self._at(time, happen, what)

    def _failed(self, failure: tuple[int, float]) -> None:
        """Fail a node and the job on it."""
        self._plan(self._failures, self._failed)
        place, repair = failure
        node = self._names.bits(place)
        if self._down & node:
            return
        name = self._names.names[place]
        self._down |= node
        for queue in self._changed_queues(node):
            queue.free &= ~node
            while (record := queue.on(node)) is not None:
                self._over(record, codes.NODE_FAILURE.number, "NODE_FAIL", None)
        self._tell_at_poll(NodesDown(name, "it failed"))
        self._at(self.now + ns(repair), self._repaired, place)

    def _repaired(self, place: int) -> None:
        node = self._names.bits(place)
        self._down &= ~node
        for queue in self._changed_queues(node):
            queue.free |= node
        self._tell_at_poll(NodesUp(self._names.names[place]))

    def _other_queued(self, job: SimulatedJob) -> None:
        """Queue a job of somebody else."""
        self._plan(self._others, self._other_queued)
        self._queued([self._record(job, ours=False)])

    # ---- updates --------------------------------------------------------------------------

    def _tell(self, update: SimulatedUpdate) -> None:
        self._updates.append((self.now, update))
        self._is_news = True

    def _tell_at_poll(self, update: SimulatedUpdate) -> None:
        """Report an update at the next poll of Seatrial."""
        wait = (self._start - self.now) % self._poll if self._poll else 0
        if not wait:
            self._tell(update)
            return
        if not self._late:
            self._at(self.now + wait, self._tell_late, None)
        self._late.append(update)

    def _tell_late(self, _: None) -> None:
        self._updates += [(self.now, update) for update in self._late]
        self._is_news = True
        self._late.clear()

    # ---- jobs and nodes -------------------------------------------------------------------

    def has_nodes(self, record: JobRecord, nodes: str) -> bool:
        """Return whether a job has one of the nodes of a node set."""
        return bool(record.nodes & self._names.mask(nodes))

    def _record(self, job: SimulatedJob, ours: bool = True) -> JobRecord:
        self._given += 1
        times = ns(job.elapsed), ns(job.keeps) if job.keeps else 0, ns(job.walltime)
        record = JobRecord(job, ours, *times, job.cores or job.nodes, self._given)
        if ours:
            self._jobs[job.run_id] = record
        return record

    def _where(self, record: JobRecord) -> tuple[Queue, int, int]:
        """Return (queue, number of nodes that the job may use, their pool in the queue)."""
        job = record.job
        key = (job.partition, job.avoid, job.node, record.walltime if self._planned else 0)
        if (known := self._places.get(key)) is None:
            usable = self._partitions.get(job.partition or next(iter(self._partitions)), 0)
            queue = next((q for q in self._queues if q.nodes & usable), self._queues[0])
            if job.node:
                usable &= self._names.mask(job.node)
            usable &= ~self._names.mask(job.avoid)
            pool = queue.pool(usable, record.walltime)
            known = self._places[key] = queue, usable.bit_count(), pool
        return known

    def _outage(self, window: Window) -> SimulatedOutage:
        nodes = self._names.mask(window.nodes) if window.nodes else self._names.all
        return SimulatedOutage(*window.span(self._start), nodes)


def joined(sets: Collection[int]) -> list[int]:
    """Return sets of nodes in which sets that overlap are united."""
    united: list[int] = []
    for nodes in sets:
        for other in [each for each in united if each & nodes]:
            united.remove(other)
            nodes |= other
        united.append(nodes)
    return united
