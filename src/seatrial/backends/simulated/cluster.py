"""A cluster in virtual time: it takes jobs and tells what becomes of them.

cluster = SimulatedCluster(machine, nodes, seed=1, start_ns=start)
cluster.submit(now, jobs)
while (now := cluster.next_time()) is not None:
    for time, update in cluster.advance(now):
        ...

Nothing here waits, or knows the real time. The same machine, seed and calls give the same updates;
each kind of chance (failures, slow nodes, jobs of others) has a stream of its own, so that one does
not change another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from heapq import heappop, heappush
from random import Random

from seatrial.backends.protocol import NodesDown, NodesUp, Queued, Refused, Started
from seatrial.backends.simulated.background import Arrival, background
from seatrial.backends.simulated.failures import NodeFailure, failures, slow_nodes
from seatrial.backends.simulated.jobs import FinishedJob, Hangs, SimulatedJob
from seatrial.backends.simulated.names import NodeNames
from seatrial.backends.simulated.queue import Queue, SimulatedOutage
from seatrial.backends.simulated.record import JobRecord
from seatrial.backends.simulated.sharing import FileSystems, TargetLoad
from seatrial.conduct.policy import Window
from seatrial.journal import codes
from seatrial.machine.model import Machine
from seatrial.units import SECOND_NS, seconds, share_of, span_of

SimulatedUpdate = Queued | Refused | Started | Hangs | FinishedJob | NodesDown | NodesUp
_LONGEST = 10 * 366 * 86400.0  # seconds
_Event = tuple[int, int, Callable[..., None], object]


def ns(time: float) -> int:
    return round(time * SECOND_NS)


class SimulatedCluster:
    """``nodes`` are the machine's, in order; ``outages`` are planned ones, known to its scheduler
    from the start; after ``horizon_s`` nothing happens by chance any more."""

    def __init__(
        self,
        machine: Machine,
        nodes: Sequence[str],
        seed: int,
        start_ns: int,
        outages: Sequence[Window] = (),
        horizon_s: float = math.inf,
    ) -> None:
        model = machine.rehearsal
        self._names = NodeNames(nodes)
        self._start = self._now = start_ns
        self._submit_delay = ns(span_of(model.submit_delay))
        self._start_delay = ns(span_of(model.start_delay))
        self._poll = ns(span_of(model.poll))
        self._events: list[_Event] = []
        self._number = 0  # of events
        self._given = 0  # of jobs
        self._told: list[tuple[int, SimulatedUpdate]] = []
        self._late: list[SimulatedUpdate] = []
        self._changed = False  # since jobs were last looked at
        self._jobs: dict[str, JobRecord] = {}
        self._down = 0
        self._planned = [self._outage(window) for window in outages]
        self._partitions = self._masks(model.partitions)
        self._queues = [Queue(mask, self._planned) for mask in joined(self._partitions.values())]
        self._places: dict[tuple[str, str, str, int], tuple[Queue, int, int]] = {}
        for outage in self._planned:
            self._at(outage.end, self._outage_over, outage.nodes)
        self._files = FileSystems(machine, start_ns, self._at, self._script_ended)
        self._slow_by = model.slow_by
        self._slow = slow_nodes(
            len(nodes), share_of(model.slow_nodes), Random(f"{seed}: slow nodes")
        )
        self._last = start_ns + ns(min(horizon_s, _LONGEST))
        self._failures: Iterator[NodeFailure] = iter(())
        if between := span_of(model.node_failures):
            chance = Random(f"{seed}: failures")
            self._failures = failures(len(nodes), between, seconds(model.repair), chance)
        self._others: Iterator[Arrival] = iter(())
        self.remarks: list[str] = []  # what a person must know of the jobs of others
        if model.background is not None:
            size = next(iter(self._partitions.values())).bit_count()
            chance = Random(f"{seed}: background")
            self._others, self.remarks = background(model.background, size, chance)
        self._next_failure()
        self._next_other()

    # ---- from outside ---------------------------------------------------------------------

    def submit(self, now: int, jobs: Sequence[SimulatedJob]) -> None:
        """Jobs are given to the scheduler; it has them after the submission delay."""
        self._at(now + self._submit_delay, self._queued, [self._record(job) for job in jobs])

    def cancel(self, now: int, run_ids: Collection[str], pending_only: bool = False) -> None:
        """Jobs are to end, or only those that wait. What is over is left as it is."""
        records = [record for run_id in run_ids if (record := self._jobs.get(run_id))]
        if records:
            self._at(now, self._taken_back if pending_only else self._cancelled, records)

    def next_time(self) -> int | None:
        """When something happens next that may be told; None: nothing is to come."""
        return self._events[0][0] if self._events else None

    @property
    def now(self) -> int:
        """Up to when it has advanced."""
        return self._now

    def advance(
        self, until: int | None, to_news: bool = False
    ) -> list[tuple[int, SimulatedUpdate]]:
        """What happened up to and including that time, in order; ``to_news``: up to the first time
        at which something is told."""
        events = self._events
        while events and (until is None or events[0][0] <= until):
            self._now, _, happen, what = heappop(events)
            happen(what)
            if not events or events[0][0] != self._now:
                if self._changed:
                    self._schedule()
                if to_news and self._told and not (events and events[0][0] == self._now):
                    break
        else:
            self._now = max(self._now, until or 0)
        told, self._told = self._told, []
        return told

    def load(self, file_system: str, target: str = "") -> float:
        """Open files on a metadata target now; of none: the highest of the file system's."""
        return self._files.load(file_system, target)

    def target_loads(self) -> list[TargetLoad]:
        """What each metadata target has borne so far."""
        return self._files.loads(self._now)

    def free_nodes(self) -> int:
        """Nodes that nothing runs on and that are not down."""
        return sum(queue.free.bit_count() for queue in self._queues)

    # ---- events ---------------------------------------------------------------------------

    def _at(self, time: int, happen: Callable[..., None], what: object) -> None:
        self._number += 1
        heappush(self._events, (time, self._number, happen, what))

    def _schedule(self) -> None:
        self._changed = False
        for queue in self._queues:
            if queue.waits:
                for record in queue.start_ready(self._now):
                    self._started(record)

    def _queued(self, records: list[JobRecord]) -> None:
        self._changed = True
        for record in records:
            if record.over:
                continue
            queue, usable, pool = self._where(record)
            if usable < record.need:
                self._refused(record, usable)
                continue
            record.queue = queue
            queue.join(record, pool)
            if record.told:
                self._tell(Queued(record.job.run_id, str(record.id)))

    def _refused(self, record: JobRecord, usable: int) -> None:
        record.over = True
        if record.told:
            job = record.job
            del self._jobs[job.run_id]
            why = f"{job.nodes} nodes asked for, of {usable} that the job may use"
            if job.partition and job.partition not in self._partitions:
                why = f"no partition {job.partition}; there are {', '.join(self._partitions)}"
            self._tell(Refused(job.run_id, why))

    def _started(self, record: JobRecord) -> None:
        if record.told:
            record.where = self._names.text(record.nodes)
            self._tell_at_poll(Started(record.job.run_id, record.where))
        job, start = record.job, self._now + self._start_delay
        if record.nodes & self._slow:
            record.elapsed = round(record.elapsed * self._slow_by)
        if start >= record.limit:
            self._at(record.limit, self._timed_out, record)
        elif job.hangs or job.file_system:
            self._at(start, self._script_started, record)
        else:
            self._runs(start, record)

    def _script_started(self, record: JobRecord) -> None:
        if record.over:
            return
        job, now = record.job, self._now
        if job.hangs and record.told:
            self._tell(Hangs(job.run_id))
        entered = bool(job.file_system) and self._files.enter(now, record)
        if not entered and not job.hangs:
            self._runs(now, record)
            return
        record.began = now
        self._at(record.limit, self._timed_out, record)

    def _runs(self, start: int, record: JobRecord) -> None:
        """A script that shares no file system: when it ends is known as it starts."""
        record.began, end = start, start + record.elapsed
        if end <= record.limit:
            self._leaves(end, record)
        else:
            self._at(record.limit, self._timed_out, record)

    def _script_ended(self, record: JobRecord) -> None:
        """The script of a run that shared a file system ends."""
        if not record.over:
            self._files.leave(self._now, record)
            self._leaves(self._now, record)

    def _leaves(self, end: int, record: JobRecord) -> None:
        """A script ends at a time; the job keeps its nodes for a while."""
        record.left, over = end, end + self._start_delay + record.keeps
        if over > record.limit:
            self._at(record.limit, self._timed_out, record)
        elif over > self._now:
            self._at(over, self._ended, record)
        else:
            self._ended(record)

    def _ended(self, record: JobRecord) -> None:
        status = record.job.exit_code
        self._over(record, None, "FAILED" if status else "COMPLETED", status)

    def _timed_out(self, record: JobRecord) -> None:
        self._over(record, codes.TIMEOUT.number, "TIMEOUT", None)

    def _cancelled(self, records: list[JobRecord]) -> None:
        for record in records:
            self._over(record, codes.CANCELLED.number, "CANCELLED", None)

    def _taken_back(self, records: list[JobRecord]) -> None:
        self._cancelled([record for record in records if not record.nodes])

    def _over(self, record: JobRecord, code: int | None, state: str, status: int | None) -> None:
        """A job ends, wherever it was: its nodes are free at once, but that is told late."""
        if record.over:
            return
        record.over = self._changed = True
        if record.group is not None:
            self._files.leave(self._now, record)
        queue = record.queue
        if queue is not None and record.nodes:
            queue.release(record)
            if self._down:
                queue.free &= ~self._down
        elif queue is not None:
            queue.leave(record)
        if record.told:
            run_id, now = record.job.run_id, self._now
            del self._jobs[run_id]
            # What was to come of its script does not, now that it is over.
            began = record.began if record.began <= now else 0
            left = record.left if record.left <= now else 0
            self._tell_at_poll(FinishedJob(run_id, code, state, status, record.where, began, left))

    def _outage_over(self, nodes: int) -> None:
        self._changed = True
        for queue in self._queues:
            if queue.nodes & nodes:
                queue.look_again()

    def _next_failure(self) -> None:
        if (failure := next(self._failures, None)) is not None:
            time = self._start + ns(failure.time)
            if time <= self._last:
                self._at(time, self._failed, failure)

    def _failed(self, failure: NodeFailure) -> None:
        """A node fails, and the job on it with it."""
        self._next_failure()
        node = 1 << failure.node
        if self._down & node:
            return
        name = self._names.names[failure.node]
        self._down |= node
        for queue in self._queues:
            if queue.nodes & node:
                queue.free &= ~node
                queue.look_again()
                if (record := queue.on(node)) is not None:
                    self._over(record, codes.NODE_FAILURE.number, "NODE_FAIL", None)
        self._changed = True
        self._tell_at_poll(NodesDown(name, "it failed"))
        self._at(self._now + ns(failure.repair), self._repaired, failure.node)

    def _repaired(self, place: int) -> None:
        node = 1 << place
        self._down &= ~node
        for queue in self._queues:
            if queue.nodes & node:
                queue.free |= node
                queue.look_again()
        self._changed = True
        self._tell_at_poll(NodesUp(self._names.names[place]))

    def _next_other(self) -> None:
        if (arrival := next(self._others, None)) is not None:
            time = self._start + ns(arrival.time)
            if time <= self._last:
                self._at(time, self._other_queued, arrival.job)

    def _other_queued(self, job: SimulatedJob) -> None:
        """Somebody else's job comes."""
        self._next_other()
        self._queued([self._record(job, told=False)])

    # ---- what is told ---------------------------------------------------------------------

    def _tell(self, update: SimulatedUpdate) -> None:
        self._told.append((self._now, update))

    def _tell_at_poll(self, update: SimulatedUpdate) -> None:
        """Tell it when seatrial asks next."""
        wait = (self._start - self._now) % self._poll if self._poll else 0
        if not wait:
            self._tell(update)
            return
        if not self._late:
            self._at(self._now + wait, self._tell_late, None)
        self._late.append(update)

    def _tell_late(self, _: None) -> None:
        self._told += [(self._now, update) for update in self._late]
        self._late.clear()

    # ---- jobs and nodes -------------------------------------------------------------------

    def _record(self, job: SimulatedJob, told: bool = True) -> JobRecord:
        record = JobRecord(job, told, ns(job.elapsed), ns(job.keeps), ns(job.walltime))
        self._given += 1
        record.id = self._given
        if told:
            self._jobs[job.run_id] = record
        return record

    def _where(self, record: JobRecord) -> tuple[Queue, int, int]:
        """(queue, number of nodes that the job may use, their pool in the queue)."""
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

    def _masks(self, partitions: dict[str, str]) -> dict[str, int]:
        masks = {name: self._names.mask(nodes) for name, nodes in partitions.items()}
        return masks or {"": self._names.all}

    def _outage(self, window: Window) -> SimulatedOutage:
        nodes = self._names.mask(window.nodes) if window.nodes else self._names.all
        return SimulatedOutage(*window.span(self._start), nodes)


def joined(sets: Collection[int]) -> list[int]:
    """Sets of nodes, with those that overlap made one."""
    found: list[int] = []
    for nodes in sets:
        for other in [each for each in found if each & nodes]:
            found.remove(other)
            nodes |= other
        found.append(nodes)
    return found
