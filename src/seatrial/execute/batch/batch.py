"""A backend that runs jobs as job arrays of a batch system: what Slurm, PBS and Grid
Engine share.

One poll at an interval asks for the states of all jobs. If a command fails, hangs or prints
something unexpected, the trouble is reported and the command repeated with back-off; no job counts
as ended. A job has ended if the scheduler says so, or if the scheduler does not know it any more
and its own events have an end. A job that the scheduler does not know, without an end, is lost
after ``lost_after``.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from seatrial.errors import BackendError
from seatrial.execute import backends
from seatrial.execute.backends import Bundles, BundleWatch, allocation_of
from seatrial.execute.background import BackgroundTasks
from seatrial.execute.batch.scheduler_client import (
    ENDED,
    CommandOutages,
    SchedulerClient,
    SubmissionRefused,
    TaskKey,
    TaskState,
    Unanswered,
)
from seatrial.execute.batch.submitter import (
    FORGOTTEN,
    NO_PLACE,
    BatchTask,
    DoubledJobs,
    JobReadings,
    NodeWatch,
    Submitter,
    arrange,
    places,
    tasks_of,
)
from seatrial.execute.directory import JobEvents
from seatrial.execute.runs import nodes_in_order
from seatrial.hooks import load
from seatrial.model.codes import CANCELLED, LOST
from seatrial.model.machine import Machine
from seatrial.model.schedulers import scheduler_of

SHORTEST_POLL = 0.5
POLL_SHARE = 20.0  # minimum wait after a poll, in durations of that poll


class BatchBackend:
    """Runs jobs through a scheduler. ``submissions`` is the folder for batch scripts, one folder
    for each submission."""

    room = 0
    gpus = 0
    jobs = 1000

    def __init__(
        self,
        machine: Machine,
        client: Callable[[Machine, Callable[[str], None]], SchedulerClient],
        submissions: Path,
    ) -> None:
        self.machine = machine
        self.settings = machine.batch
        self.submissions = submissions
        self.inbox: asyncio.Queue[Any] = asyncio.Queue()
        self._report = self.inbox.put_nowait
        self._outages = CommandOutages(self._report)
        self.client = client(machine, self._outages.answered)
        self._outages.scheduler = self.client.scheduler.title
        self._tasks: dict[str, BatchTask] = {}  # by run, or by submission of a bundle
        self._bundles = Bundles[BatchTask](self._report)
        self._handed: list[backends.Submission] = []  # that are being submitted, or looked for
        self._cancels: dict[str, bool] = {}  # run id -> whether only while it is pending
        self._changed = asyncio.Event()
        self._nodes: NodeWatch | None = None
        self._seen: Counter[str] = Counter()  # number of tasks in each state at the last poll
        self._work = BackgroundTasks(self._fail)
        self._readings = JobReadings()
        self._doubles = DoubledJobs(self.client, self._readings, self._report)
        self._submitter = Submitter(self.client, submissions, self._cancels, self._wait_out)

    async def open(self) -> None:
        self.client.require_programs()
        await self._submitter.learn_config()
        self._work.spawn(self._poll_for_ever())

    def arrange(self, jobs: Sequence[backends.Job]) -> list[backends.Submission]:
        return arrange(jobs, self.client.largest_array)

    def free_directory(self, path: Path) -> None:
        """The scheduler may have a job there that this driver does not know; that job keeps it."""

    def write(self, submission: backends.Submission) -> None:
        self.client.write(self.submissions / submission.name, submission)

    # ---- submitting and finding again -----------------------------------------------------

    async def submit(self, submission: backends.Submission) -> None:
        """Submit in the background, and repeat that where it may help."""
        self._spawn(submission, self._submit(submission))

    def _spawn(self, submission: backends.Submission, work: Coroutine[None, None, None]) -> None:
        self._handed.append(submission)
        task = self._work.spawn(work)
        task.add_done_callback(lambda _: self._handed.remove(submission))

    def followed(self) -> set[str]:
        handed = {job.run_id for submission in self._handed for job in submission.jobs}
        return handed | self._tasks.keys() | self._bundles.keys()

    async def _submit(self, submission: backends.Submission) -> None:
        try:
            array = await self._submitter.submit(submission)
        except SubmissionRefused as error:
            for job in submission.jobs:
                self._report(backends.Refused(job.run_id, str(error)))
            return
        if array is not None:
            self._register(submission, array)
            return
        for job in submission.jobs:
            self._end(job, CANCELLED.number, "never submitted")

    def _register(self, submission: backends.Submission, array: int) -> None:
        """Watch the jobs of a submission."""
        if submission.is_bundle:
            tasks = [self._follow(submission, array)] * len(submission.jobs)
        else:
            tasks = tasks_of(submission, array, self.submissions / submission.name)
            self._tasks |= {task.job.run_id: task for task in tasks}
        for job, task in zip(submission.jobs, tasks, strict=True):
            self._report(backends.Queued(job.run_id, self._id(task)))
        if unplaced := tuple(task.job.run_id for task in tasks if task.index == NO_PLACE):
            self._report(backends.Unfollowed(submission.name, unplaced))
        self._changed.set()

    def _follow(self, submission: backends.Submission, array: int) -> BatchTask:
        """Watch the job of a bundle."""
        folder = self.submissions / submission.name
        watch = BundleWatch(folder, submission.jobs)
        job = allocation_of(submission, folder)
        task = BatchTask(job, submission.name, array, 0, True, bundle=watch)
        self._tasks[job.run_id] = task
        self._bundles |= dict.fromkeys(watch.left, task)
        for pending_only in (False, True):  # before it was submitted
            unwanted = [run for run in watch.left if self._cancels.pop(run, None) is pending_only]
            self._cancel_of_bundle(task, unwanted, pending_only)
        return task

    def _id(self, task: BatchTask) -> str:
        return self.client.task_id(task.array, task.index, task.alone)

    async def find(self, submissions: Sequence[backends.Submission], known: dict[str, str]) -> None:
        for submission in submissions:
            ids = {job.run_id: known[job.run_id] for job in submission.jobs if job.run_id in known}
            if submission.is_bundle and ids:
                array, _ = self.client.parse_task_id(next(iter(ids.values())))
                self._register(submission, array)
            elif submission.is_bundle or len(ids) < len(submission.jobs):
                self._spawn(submission, self._find(submission))
            if not submission.is_bundle:
                self._watch(submission, ids)

    def _watch(self, submission: backends.Submission, ids: Mapping[str, str]) -> None:
        """Watch the jobs of an array whose ids are known, by run."""
        alone = len(places(self.submissions / submission.name)) == 1
        for job in submission.jobs:
            if job_id := ids.get(job.run_id):
                array, index = self.client.parse_task_id(job_id)
                single = alone or self.client.is_alone(job_id)
                self._tasks[job.run_id] = BatchTask(job, submission.name, array, index, single)
        self._changed.set()

    async def _find(self, submission: backends.Submission) -> None:
        """Report the state of a submission that was announced before a restart."""
        array = await self._submitter.find(submission)
        if array is not None:
            self._register(submission, array)
            return
        for job in submission.jobs:
            self._report(backends.NeverStarted(job.run_id))

    # ---- polling --------------------------------------------------------------------------

    async def _poll_for_ever(self) -> None:
        longest = self.settings.poll.seconds
        wait = SHORTEST_POLL
        while True:
            await self._wait(wait)
            began = time.monotonic()
            try:
                changed = await self._poll()
            except Unanswered as error:
                self._wait_out(error)
                wait = min(2 * wait, longest)
                continue
            took = time.monotonic() - began
            if self._cancels or (changed and self.client.next_poll is None):
                wait = SHORTEST_POLL
            else:
                wait = self.client.next_poll or 1.5 * wait
            wait = min(max(wait, POLL_SHARE * self.client.poll_weight * took), longest)

    async def _wait(self, wait: float) -> None:
        """Wait for the next poll. New jobs and cancellations make it earlier."""
        while not self._tasks:
            await self._changed.wait()
            self._changed.clear()
            wait = SHORTEST_POLL
        # asyncio.wait_for of Python 3.11 loses a cancellation that comes with the result.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._changed.wait()
                await asyncio.sleep(SHORTEST_POLL)
        self._changed.clear()

    async def _poll(self) -> bool:
        """Ask for the states of all jobs. Returns whether one has changed."""
        await self._submitter.learn_config()
        await self._repeat_cancels()
        ids = [self._id(task) for task in self._tasks.values() if task.array != FORGOTTEN]
        states = {state.key: state for state in await self.client.queue(ids)}
        await self._look_at_nodes(states)
        await self._doubles.settle(self._tasks.values(), states)
        states |= await self._cancelled(states)
        missing: list[BatchTask] = []
        seen: Counter[str] = Counter()
        for task in list(self._tasks.values()):
            state = task.state_in(states)
            seen["left"] += self._look_at_bundle(task, state)
            seen[state.state if state else "missing"] += 1
            if state is None:
                missing.append(task)
            else:
                task.missing_since = 0.0
                self._conclude(task, state)
        await self._look_for(missing)
        changed, self._seen = seen != self._seen, seen
        return changed

    async def _repeat_cancels(self) -> None:
        """Cancel what is to be cancelled and has not ended."""
        for pending_only in (False, True):
            ids = [
                self._id(task)
                for run_id, task in self._tasks.items()
                if task.array != FORGOTTEN and self._cancels.get(run_id) is pending_only
            ]
            if ids:
                await self.client.cancel(ids, pending_only)

    def _look_at_bundle(self, task: BatchTask, state: TaskState | None) -> int:
        """Report what the runs of a bundle did. Returns how many are left, and have not begun. Of a
        bundle that is first seen as it completes, the nodes are told with its end."""
        if task.bundle is None:
            return 0
        nodes = state.nodes if state is not None else ""
        completes = state is not None and state.state == "COMPLETING"
        if nodes or task.bundle.nodes or not completes:
            self._bundles.report(task.bundle.look(nodes))
        return len(task.bundle.left) + len(task.bundle.left.keys() - task.bundle.begun)

    async def _cancelled(self, states: Mapping[TaskKey, TaskState]) -> dict[TaskKey, TaskState]:
        """Return the states of jobs that others cancelled, with their accounts: squeue does not
        tell them."""
        cancelled = [
            state
            for run_id, task in self._tasks.items()
            if (state := task.state_in(states)) is not None
            and state.state == "CANCELLED"
            and run_id not in self._cancels
        ]
        return await self.client.with_accounts(cancelled)

    async def _look_at_nodes(self, states: Mapping[TaskKey, TaskState]) -> None:
        """Look at the nodes if a node failed under a run, so that the node is known before the end
        of the run."""
        ours = (task.state_in(states) for task in self._tasks.values())
        if self._nodes is not None and any(s and s.state == "NODE_FAIL" for s in ours):
            await self._nodes.look()

    def _conclude(self, task: BatchTask, state: TaskState) -> bool:
        """Report the start of a task, or its end. Returns whether it has ended. A job that the
        scheduler keeps is cancelled first: it could be run again over the output of this run."""
        run_id = task.job.run_id
        kept = state.state in self.client.kept
        if kept and self._cancels.get(run_id, True):
            task.kept = state
            self._cancels[run_id] = False
        if state.state == "RUNNING" and not task.started:
            self._start(task, state.nodes)
        if state.active or kept:
            return False
        if state.state == "CANCELLED":
            state = task.kept or state
        code = ENDED[state.state]
        if code is None and task.may_appear(self.settings.visible_after.seconds):
            return False
        words = f"{state.state} by {state.by}" if state.by else state.state
        self._end(task.job, code, words, state.exit_code, state.nodes)
        return True

    def _start(self, task: BatchTask, nodes: str) -> None:
        """Report the start of a task. What was cancelled only while it was pending goes on."""
        run_id = task.job.run_id
        task.started = True
        if self._cancels.get(run_id):
            del self._cancels[run_id]
        if task.bundle is None:
            self._report(backends.Started(run_id, nodes))

    async def _look_for(self, missing: Sequence[BatchTask]) -> None:
        """Find out about jobs that the controller does not show any more, by the accounting and by
        their own events."""
        arrays = {task.array for task in missing if task.array != FORGOTTEN}
        accounted = {state.key: state for state in await self.client.accounts(arrays)}
        await self._look_at_nodes(accounted)
        # Of a job with an active state here, the accounting has not received the end.
        states = [(task, task.state_in(accounted)) for task in missing]
        unknown = [
            task for task, state in states if state is None or not self._conclude(task, state)
        ]
        await self._look_at_events(unknown)

    async def _look_at_events(self, unknown: Sequence[BatchTask]) -> None:
        """Find out by their own events about jobs that neither the controller nor the accounting
        shows. After ``lost_after`` the controller is asked for each by itself."""
        events = await self._readings.read(task.job for task in unknown)
        now = time.monotonic()
        for task in unknown:
            own = events.get(task.job.run_id)
            if own is None:  # its file system does not answer
                continue
            task.missing_since = task.missing_since or now
            if self._conclude_by_events(task, own):
                continue
            if now - task.missing_since >= self.settings.lost_after.seconds:
                await self._look_by_id(task)

    def _conclude_by_events(self, task: BatchTask, own: JobEvents) -> bool:
        """Report the end of a job that nobody shows any more, by its own events or as it was
        cancelled. Returns whether it has ended."""
        run_id = task.job.run_id
        if own.end is not None:
            self._end(task.job, None, "gone", own.exit_code)
        elif run_id in self._cancels and not (self._cancels[run_id] and own.claimed):
            code = ENDED[task.kept.state] if task.kept else CANCELLED.number
            self._end(task.job, code, "gone")
        else:
            return False
        return True

    async def _look_by_id(self, task: BatchTask) -> None:
        """Ask the controller for one job, and report it as lost only if the controller does not
        have it: the queue may be configured to hide it."""
        state = await self.client.job(self._id(task)) if task.array != FORGOTTEN else None
        if state is None or state.key != (task.name, task.array, task.index):
            self._end(task.job, LOST.number, "gone")
        else:
            task.missing_since = 0.0
            self._conclude(task, state)

    def _end(
        self,
        job: backends.Job,
        code: int | None,
        state: str,
        exit_code: int | None = None,
        nodes: str = "",
    ) -> None:
        task = self._tasks.pop(job.run_id, None)
        self._cancels.pop(job.run_id, None)
        if task is not None and task.bundle is not None:
            self._bundles.report(task.bundle.settle(code, state, exit_code, nodes))
            return
        output = None
        if task is not None:
            output = self.client.output(self.submissions / task.name, task.index)
        self._report(backends.JobEnd(job.run_id, code, state, exit_code, nodes, output))

    # ---- the rest of the protocol ---------------------------------------------------------

    async def cancel(self, run_ids: Collection[str], pending_only: bool = False) -> None:
        """Cancel runs at every poll until they have ended; with ``pending_only`` until they have
        ended or started."""
        for task in self._bundles.holders(run_ids):
            self._cancel_of_bundle(task, run_ids, pending_only)
        for run_id in run_ids:
            if run_id not in self._bundles:
                self._cancels[run_id] = pending_only and self._cancels.get(run_id, True)
        self._changed.set()

    def _cancel_of_bundle(
        self, task: BatchTask, run_ids: Collection[str], pending_only: bool
    ) -> None:
        """Cancel runs of a bundle; its job where no other run is left in it."""
        key = task.job.run_id
        if task.bundle is not None and task.bundle.cancel(run_ids, pending_only) and run_ids:
            self._cancels[key] = pending_only and self._cancels.get(key, True)

    def recovered(self) -> list[backends.Trouble]:
        return self._outages.recovered()

    async def close(self) -> None:
        await self._work.end()

    async def inspect(self, job: backends.Job, script: str) -> str:
        task = self._tasks.get(job.run_id) or self._bundles.get(job.run_id)
        if task is None or task.array == FORGOTTEN:
            return ""
        words = ("bash", script, job.run_id, str(job.path))
        with contextlib.suppress(Unanswered):  # it is no outage: the job may just have ended
            return nodes_in_order(await self.client.on_each_node(self._id(task), job.nodes, words))
        return ""

    def watch_nodes(self, down: Collection[str]) -> None:
        self._nodes = NodeWatch(self.client, down, self._report, self._outages)
        self._work.spawn(self._nodes.look_for_ever(self.settings.poll.seconds))

    def _wait_out(self, error: Unanswered) -> None:
        self._outages.failed(error.command, f"{error}; waiting, no job is ended by this")

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, OSError):
            error = BackendError(
                f"{error.filename or self.submissions}: {error.strerror}; correct that, "
                "then resume the trial"
            )
        self._report(error)


def require_scheduler(machine: Machine) -> None:
    """Raise BackendError where this host does not have the commands of the machine's scheduler.
    Call it before a trial is created. A trial waits for a scheduler that does not answer."""
    if machine.jobs_run_elsewhere:
        client_of(machine).require_programs()


def client_of(machine: Machine) -> type[SchedulerClient]:
    """Return the client of a machine's batch system; that of Slurm where jobs are started here."""
    name = machine.scheduler if machine.jobs_run_elsewhere else "slurm"
    client: type[SchedulerClient] = load(scheduler_of(name).client)
    return client
