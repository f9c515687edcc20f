"""Bundles of a rehearsal: one job of the simulated cluster each, in which runs take turns.

    job = bundles.begin("b1", jobs, at_once, cores)     # the job that the cluster is given
    bundles.receive(now, update)                        # what the cluster says of it

Each run takes the time that it was drawn to take, and has the events of a run with a job of its
own. Runs that share an allocation do not slow each other down on file systems here.
"""

from collections.abc import Callable, Sequence
from heapq import heapify, heapreplace

from msgspec import Struct
from msgspec.structs import replace

from seatrial.backends.protocol import Queued, Refused, Started
from seatrial.backends.simulated.cluster import SimulatedUpdate
from seatrial.backends.simulated.jobs import FinishedJob, SimulatedJob
from seatrial.journal.codes import CANCELLED, LOST, TIMEOUT
from seatrial.rehearse.rehearsed_run import RehearsedRun
from seatrial.rehearse.simulated_runs import At, SimulatedRuns
from seatrial.runs.bundle import walltime_of
from seatrial.units import ns

LAST_SECONDS = 1.0  # for which the job of a bundle goes on after its last run


class _Bundle(Struct, eq=False):
    """The runs of a bundle that are left, by id: those that wait, and those that run, with their
    starts (ns). ``over``: its job has ended."""

    waiting: dict[str, SimulatedJob]
    at_once: int
    running: dict[str, tuple[SimulatedJob, int]] = {}
    nodes: str = ""
    over: bool = False


class SimulatedBundles:
    """The bundles of a trial whose jobs have not ended. ``again`` submits runs that never began, in
    a bundle of their own."""

    def __init__(
        self, runs: SimulatedRuns, at: At, again: Callable[[int, Sequence[str]], None]
    ) -> None:
        self._runs = runs
        self._at = at
        self._again = again
        self._bundles: dict[str, _Bundle] = {}  # by the id of the job
        self._of_run: dict[str, str] = {}  # the ids of jobs

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._of_run

    def begin(
        self, key: str, jobs: Sequence[SimulatedJob], at_once: int, cores: int
    ) -> SimulatedJob:
        """Return the job of a bundle of runs, with this id. ``cores`` are those that it takes of a
        shared node."""
        self._bundles[key] = _Bundle({job.run_id: job for job in jobs}, at_once)
        self._of_run |= {job.run_id: key for job in jobs}
        ends = [0.0] * at_once
        heapify(ends)
        for job in jobs:
            heapreplace(ends, ends[0] + _time_of(job))
        return replace(
            jobs[0],
            run_id=key,
            cores=cores,
            walltime=walltime_of([job.walltime for job in jobs], at_once),
            elapsed=max(ends) + LAST_SECONDS,
            exit_code=0,
            hangs=False,
            keeps=0.0,
            opens=0.0,
            metadata=0.0,
            objects=0.0,
        )

    def receive(self, now: int, update: SimulatedUpdate) -> bool | None:
        """Make events of an update about a bundle; return whether there may be something to decide.
        Return None for one that is about no bundle."""
        key = getattr(update, "run_id", "")
        bundle = self._bundles.get(key)
        if bundle is None:
            return None
        if isinstance(update, Queued | Refused):
            news = [self._runs.receive(now, replace(update, run_id=run)) for run in bundle.waiting]
            if isinstance(update, Refused):
                self._drop(key)
            return any(news)
        if isinstance(update, Started):
            bundle.nodes = update.nodes
            return self._start(now, bundle)
        if isinstance(update, FinishedJob):
            return self._finish(now, key, update)
        return False

    def _start(self, now: int, bundle: _Bundle) -> bool:
        """Begin as many of the runs that wait as may run."""
        while bundle.waiting and len(bundle.running) < bundle.at_once:
            run_id = next(iter(bundle.waiting))
            job = bundle.waiting.pop(run_id)
            bundle.running[run_id] = job, now
            self._runs.receive(now, Started(run_id, bundle.nodes))
            self._at(now + ns(_time_of(job)), self._end, (bundle, run_id))
        return True

    def _end(self, now: int, what: tuple[_Bundle, str]) -> bool:
        """End a run by itself, or at its walltime; begin the next one."""
        bundle, run_id = what
        if bundle.over or run_id not in bundle.running:
            return False
        job, began = bundle.running.pop(run_id)
        late = job.hangs or job.elapsed > job.walltime
        code, state = (TIMEOUT.number, "timeout") if late else (None, "exited")
        self._over(now, run_id, code, state, bundle.nodes, began, 0 if late else now)
        return self._start(now, bundle)

    def _over(
        self,
        now: int,
        run_id: str,
        code: int | None,
        state: str,
        nodes: str,
        began: int = 0,
        ended: int = 0,
    ) -> None:
        del self._of_run[run_id]
        exit_code = 0 if code is None else None
        finished = FinishedJob(
            run_id, code, state, exit_code, nodes, script_started=began, script_ended=ended
        )
        self._runs.receive(now, finished)

    def _finish(self, now: int, key: str, update: FinishedJob) -> bool:
        """End what is left with the job; submit again what never began, unless nothing did."""
        bundle = self._bundles.pop(key)
        bundle.over = True
        code = update.code if update.code is not None else LOST.number
        any_began = bool(bundle.nodes)
        for run_id, (_, began) in bundle.running.items():
            self._over(now, run_id, code, update.state, update.nodes, began)
        again = []
        for run_id in bundle.waiting:
            if any_began and not self._unwanted(run_id):
                del self._of_run[run_id]
                again.append(run_id)
            else:
                self._over(now, run_id, CANCELLED.number if any_began else code, update.state, "")
        if again:
            self._again(now, again)
        return True

    def _unwanted(self, run_id: str) -> bool:
        run: RehearsedRun = self._runs.runs[run_id]
        return run.cancelled or run.recalled

    def cancel(self, now: int, run_ids: Sequence[str], pending_only: bool = False) -> list[str]:
        """End runs of bundles. Return the ids of the jobs in which no other run is left, which the
        cluster is to cancel."""
        whole = []
        of_job: dict[str, list[str]] = {}
        for run_id in run_ids:
            of_job.setdefault(self._of_run[run_id], []).append(run_id)
        for key, asked in of_job.items():
            bundle = self._bundles[key]
            left = len(bundle.waiting) + len(bundle.running)
            if len(asked) == left and not (pending_only and bundle.nodes):
                whole.append(key)
                continue
            for run_id in asked:
                if bundle.waiting.pop(run_id, None) is not None:
                    self._over(now, run_id, CANCELLED.number, "never started", "")
                elif not pending_only and run_id in bundle.running:
                    _, began = bundle.running.pop(run_id)
                    self._over(now, run_id, CANCELLED.number, "cancelled", bundle.nodes, began)
            if bundle.nodes:
                self._start(now, bundle)
        return whole

    def _drop(self, key: str) -> None:
        for run_id in self._bundles.pop(key).waiting:
            del self._of_run[run_id]


def _time_of(job: SimulatedJob) -> float:
    """Return the seconds that a run takes in its bundle."""
    return job.walltime if job.hangs else min(job.elapsed, job.walltime)
