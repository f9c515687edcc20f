"""A backend that runs jobs as job arrays of Slurm.

One poll at an interval asks for the states of all jobs. If a command of Slurm fails, hangs or
prints something unexpected, the trouble is reported and the command repeated with back-off; no job
counts as ended. A job has ended if Slurm says so, or if Slurm does not know it any more and its own
events have an end. A job that Slurm does not know, without an end, is lost after ``lost_after``.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections import Counter
from collections.abc import Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.backends import slurm_batch, slurm_parse
from seatrial.backends.protocol import (
    Ended,
    Job,
    NeverStarted,
    Queued,
    Refused,
    Started,
    Submission,
    Update,
)
from seatrial.backends.slurm_client import DEFAULT_ARRAY, Config, SlurmClient, Unanswered
from seatrial.backends.slurm_nodes import NodeWatch
from seatrial.backends.slurm_outages import SlurmOutages
from seatrial.backends.slurm_parse import TaskState
from seatrial.backends.update_queue import UpdateQueue
from seatrial.errors import BackendError
from seatrial.journal.codes import CANCELLED, LOST
from seatrial.machine.model import Machine
from seatrial.runs.directory import job_events
from seatrial.units import seconds

SHORTEST_POLL = 0.5
POLL_SHARE = 20.0  # minimum wait after a poll, in durations of that poll
LONGEST_BACK_OFF = 60.0

_Key = tuple[str, int, int | None]  # name of the job, job id of the array, task number


@dataclass(slots=True)
class _Task:
    """A run that Slurm has, as far as is known. ``alone``: its array has one task.
    ``missing_since`` is by the monotonic clock. ``kept`` is the state in which the job ended and
    Slurm kept it; then the job is being cancelled."""

    job: Job
    name: str
    array: int
    index: int
    alone: bool
    missing_since: float = 0.0
    started: bool = False
    kept: TaskState | None = None

    @property
    def job_id(self) -> str:
        return f"{self.array}_{self.index}"

    @property
    def key(self) -> _Key:
        return (self.name, self.array, self.index)

    def state_in(self, states: Mapping[_Key, TaskState]) -> TaskState | None:
        """Return the state of the task. Where it has none, return that of its array without a
        task's number, if the array has one task."""
        state = states.get(self.key)
        return states.get((self.name, self.array, None)) if state is None and self.alone else state


def _key(state: TaskState) -> _Key:
    return (state.name, state.array, state.task)


def require_commands() -> None:
    """Raise BackendError where this host does not have the commands of Slurm."""
    for program in ("sbatch", "squeue", "scancel", "scontrol"):
        if shutil.which(program) is None:
            raise BackendError(f"{program} is not on PATH; run this on a Slurm login node")


class SlurmBackend:
    """Runs jobs through Slurm. ``submissions`` is the folder for batch scripts, one folder for each
    submission."""

    room = 0
    durable = True
    jobs = 1000

    def __init__(self, machine: Machine, submissions: Path) -> None:
        self.machine = machine
        self.slurm = machine.slurm
        self.submissions = submissions
        self._updates = UpdateQueue()
        self._troubles = SlurmOutages(self._updates.report)
        self.client = SlurmClient(machine, self._troubles.answered)
        self.config = Config(DEFAULT_ARRAY, False)
        self._config_known = False
        self._tasks: dict[str, _Task] = {}
        self._to_cancel: set[str] = set()
        self._to_recall: set[str] = set()  # to be cancelled unless they have started
        self._changed = asyncio.Event()
        self._nodes: NodeWatch | None = None
        self._seen: Counter[str] = Counter()  # number of tasks in each state at the last poll
        self._work: set[asyncio.Task[None]] = set()
        self._submitting = asyncio.Lock()

    async def open(self) -> None:
        require_commands()
        await self._learn_config()
        self._spawn(self._poll_for_ever())

    async def _learn_config(self) -> None:
        try:
            self.config = await self.client.config()
            self._config_known = True
        except Unanswered as error:
            self._say_trouble(error.command, str(error))

    def arrange(self, jobs: Sequence[Job]) -> list[Submission]:
        return slurm_batch.arrange(jobs, self.config.largest_array)

    def free_directory(self, path: Path) -> None:
        """Slurm may have a job there that this driver does not know; that job keeps it."""

    def write(self, submission: Submission) -> None:
        slurm_batch.write(self.submissions / submission.name, submission, self.machine)

    # ---- submitting and finding again -----------------------------------------------------

    async def submit(self, submission: Submission) -> None:
        """Submit in the background, and repeat that where it may help."""
        self._spawn(self._submit(submission))

    async def _submit(self, submission: Submission) -> None:
        folder = self.submissions / submission.name
        self.write(submission)
        delay = SHORTEST_POLL
        while not self._dropped(submission):
            async with self._submitting:
                answer = await self.client.submit(folder, submission)
            if answer.job_id is None and answer.temporary:
                self._say_trouble("sbatch", answer.reason)
                await asyncio.sleep(delay)
                delay = min(2 * delay, LONGEST_BACK_OFF)
                # Slurm may have the submission although sbatch did not answer.
                job_id = await self._find_by_name(submission, folder)
                answer = answer._replace(job_id=job_id)
            else:
                self._troubles.answered("sbatch")
            if answer.job_id is not None:
                self._register(submission, answer.job_id)
                return
            if not answer.temporary:
                self._refuse(submission, answer.reason)
                return

    def _dropped(self, submission: Submission) -> bool:
        """Return whether all jobs of a submission were cancelled before Slurm had it, and report
        that they ended."""
        unwanted = self._to_cancel | self._to_recall
        if not all(job.run_id in unwanted for job in submission.jobs):
            return False
        for job in submission.jobs:
            self._to_cancel.discard(job.run_id)
            self._to_recall.discard(job.run_id)
            self._updates.report(Ended(job.run_id, CANCELLED.number, "never submitted", None))
        return True

    def _refuse(self, submission: Submission, reason: str) -> None:
        for job in submission.jobs:
            self._updates.report(Refused(job.run_id, reason))

    def _register(self, submission: Submission, array: int) -> None:
        alone = self._is_alone(submission.name)
        for index, job in enumerate(submission.jobs):
            if not job.run_id:
                continue
            task = self._tasks[job.run_id] = _Task(job, submission.name, array, index, alone)
            self._updates.report(Queued(job.run_id, task.job_id))
        self._changed.set()

    async def find(self, submissions: Sequence[Submission], known: dict[str, str]) -> None:
        for submission in submissions:
            named = [job for job in submission.jobs if job.run_id in known]
            alone = self._is_alone(submission.name)
            for job in named:
                array, _, index = known[job.run_id].partition("_")
                task = _Task(job, submission.name, int(array), int(index or 0), alone)
                self._tasks[job.run_id] = task
            self._changed.set()
            if len(named) < len(submission.jobs):
                self._spawn(self._find(submission))

    async def _find(self, submission: Submission) -> None:
        """Report the state of a submission that was announced before a restart. An sbatch that
        still runs is awaited; then its answer is read; then the scheduler is asked. If none of them
        knows the submission, it never reached the scheduler."""
        folder = self.submissions / submission.name
        await self.client.wait_for_sbatch(folder)
        array = await self._find_by_name(submission, folder)
        whole = self._as_written(folder, submission)
        if array is not None:
            self._register(whole, array)
        elif any(job_events(job.path).claimed for job in whole.jobs):
            # Its jobs ran, and the scheduler has forgotten them: their own events decide.
            self._register(whole, 0)
        else:
            for job in submission.jobs:
                self._updates.report(NeverStarted(job.run_id))

    def _as_written(self, folder: Path, submission: Submission) -> Submission:
        """Return the jobs of a submission in the order of its array. Jobs that the driver left out,
        as they have a verdict, have an empty run id."""
        try:
            paths = (folder / "runs").read_text().splitlines()
        except OSError:
            return submission
        jobs = {str(job.path): job for job in submission.jobs}
        order = [jobs.get(path) or submission.jobs[0]._replace(run_id="") for path in paths]
        return submission._replace(jobs=tuple(order))

    def _is_alone(self, submission: str) -> bool:
        """Return whether the array of a submission has one task; False where that cannot be
        read."""
        try:
            return (self.submissions / submission / "runs").read_bytes().count(b"\n") == 1
        except OSError:
            return False

    async def _find_by_name(self, submission: Submission, folder: Path) -> int | None:
        """Return the job id of a submission; None where the scheduler has none. Repeats the
        question until the scheduler answers."""
        delay = SHORTEST_POLL
        while True:
            if (array := self.client.answer(folder)) is not None:
                return array
            try:
                if not self._config_known:
                    await self._learn_config()
                since = folder.stat().st_mtime - 86400 if folder.exists() else time.time() - 86400
                return await self.client.find(submission.name, since, self.config.accounting)
            except Unanswered as error:
                self._say_trouble(error.command, str(error))
                await asyncio.sleep(delay)
                delay = min(2 * delay, LONGEST_BACK_OFF)

    # ---- polling --------------------------------------------------------------------------

    async def _poll_for_ever(self) -> None:
        longest = seconds(self.slurm.poll)
        wait = SHORTEST_POLL
        while True:
            await self._wait(wait)
            began = time.monotonic()
            try:
                changed = await self._poll()
            except Unanswered as error:
                self._say_trouble(error.command, str(error))
                wait = min(2 * wait, longest)
                continue
            took = time.monotonic() - began
            pressing = changed or self._to_cancel or self._to_recall
            wait = SHORTEST_POLL if pressing else min(1.5 * wait, longest)
            wait = min(max(wait, POLL_SHARE * took), longest)

    async def _wait(self, wait: float) -> None:
        """Wait for the next poll. New jobs and cancellations make it earlier."""
        while not self._tasks:
            await self._changed.wait()
            self._changed.clear()
            wait = SHORTEST_POLL
        due = time.monotonic() + wait
        while (left := due - time.monotonic()) > 0:
            # asyncio.wait_for of Python 3.11 loses a cancellation that comes with the result.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._changed.wait()
            if self._changed.is_set():
                self._changed.clear()
                due = min(due, time.monotonic() + SHORTEST_POLL)

    async def _poll(self) -> bool:
        """Ask for the states of all jobs. Returns whether one has changed."""
        if not self._config_known:
            await self._learn_config()
        if cancelled := self._ids(self._to_cancel):
            await self.client.cancel(cancelled)
        if recalled := self._ids(self._to_recall - self._to_cancel):
            await self.client.cancel(recalled, pending_only=True)
        states = {_key(state): state for state in await self.client.queue()}
        await self._look_at_nodes(states)
        missing: list[_Task] = []
        seen: Counter[str] = Counter()
        for task in list(self._tasks.values()):
            state = task.state_in(states)
            seen[state.state if state else "missing"] += 1
            if state is None:
                missing.append(task)
            else:
                task.missing_since = 0.0
                self._conclude(task, state)
        await self._look_for(missing)
        changed, self._seen = seen != self._seen, seen
        return changed

    def _ids(self, run_ids: Collection[str]) -> list[str]:
        """Return the job ids of those runs that Slurm has."""
        if not run_ids:
            return []
        return [t.job_id for run, t in self._tasks.items() if run in run_ids and t.array]

    async def _look_at_nodes(self, states: Mapping[_Key, TaskState]) -> None:
        """Look at the nodes if a node failed under a run, so that the node is known before the end
        of the run."""
        ours = (states.get(task.key) for task in self._tasks.values())
        if self._nodes is not None and any(s and s.state == "NODE_FAIL" for s in ours):
            await self._nodes.look()

    def _conclude(self, task: _Task, state: TaskState) -> bool:
        """Report the start of a task, or its end. Returns whether it has ended. A job that Slurm
        keeps is cancelled first, as Slurm could run it again over the output of this run."""
        if state.state in slurm_parse.KEPT and task.job.run_id not in self._to_cancel:
            task.kept = state
            self._to_cancel.add(task.job.run_id)
        if state.state == "RUNNING" and not task.started:
            task.started = True
            self._to_recall.discard(task.job.run_id)
            self._updates.report(Started(task.job.run_id, state.nodes))
        if state.active or state.state in slurm_parse.KEPT:
            return False
        if state.state == "CANCELLED":
            state = task.kept or state
        code = slurm_parse.ENDED[state.state]
        self._end(task, Ended(task.job.run_id, code, state.state, state.exit_code, state.nodes))
        return True

    async def _look_for(self, missing: Sequence[_Task]) -> None:
        """Find out about jobs that the controller does not show any more, by the accounting and by
        their own events."""
        accounted: dict[_Key, TaskState] = {}
        if missing and self.config.accounting:
            arrays = {task.array for task in missing if task.array}
            accounted = {_key(state): state for state in await self.client.accounts(arrays)}
            await self._look_at_nodes(accounted)
        now = time.monotonic()
        for task in missing:
            # Of a job with an active state here, the accounting has not received the end.
            state = task.state_in(accounted)
            run_id = task.job.run_id
            if state is not None and self._conclude(task, state):
                continue
            own = job_events(task.job.path)
            task.missing_since = task.missing_since or now
            if own.end is not None:
                self._end(task, Ended(task.job.run_id, None, "gone", own.exit_code))
            elif run_id in self._to_cancel or (run_id in self._to_recall and not own.claimed):
                code = slurm_parse.ENDED[task.kept.state] if task.kept else CANCELLED.number
                self._end(task, Ended(task.job.run_id, code, "gone", None))
            elif now - task.missing_since >= seconds(self.slurm.lost_after):
                await self._look_by_id(task)

    async def _look_by_id(self, task: _Task) -> None:
        """Ask the controller for one job, and report it as lost only if the controller does not
        have it: squeue may be configured to hide it."""
        state = await self.client.job(task.job_id) if task.array else None
        if state is None or _key(state) != task.key:
            self._end(task, Ended(task.job.run_id, LOST.number, "gone", None))
        else:
            task.missing_since = 0.0
            self._conclude(task, state)

    def _end(self, task: _Task, ended: Ended) -> None:
        self._tasks.pop(task.job.run_id, None)
        self._to_cancel.discard(task.job.run_id)
        self._to_recall.discard(task.job.run_id)
        self._updates.report(ended)

    # ---- the rest of the protocol ---------------------------------------------------------

    async def cancel(self, run_ids: Collection[str], pending_only: bool = False) -> None:
        """Cancel runs at every poll until they have ended; with ``pending_only`` until they have
        ended or started."""
        (self._to_recall if pending_only else self._to_cancel).update(run_ids)
        self._changed.set()

    async def updates(self) -> list[Update]:
        return await self._updates.take()

    async def close(self) -> None:
        for work in list(self._work):
            work.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    def watch_nodes(self, down: Collection[str]) -> None:
        self._nodes = NodeWatch(self.client, down, self._updates.report, self._troubles)
        self._spawn(self._nodes.look_for_ever(seconds(self.slurm.poll)))

    def _say_trouble(self, command: str, text: str) -> None:
        self._troubles.failed(command, f"{text}; waiting, no job is ended by this")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._work.add(task)
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._work.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, OSError):
            error = BackendError(
                f"{error.filename or self.submissions}: {error.strerror}; correct that, "
                "then resume the trial"
            )
        self._updates.fail(error)
