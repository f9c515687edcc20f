"""Submits arrays to a scheduler, and finds them again after a restart.

    array = await submitter.submit(submission)      # the job id of its array
    array = await submitter.find(submission)        # announced by an earlier driver

A command that fails, hangs or prints something unexpected is reported as trouble and repeated with
back-off: the scheduler may have the submission although it did not answer.
"""

import asyncio
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from seatrial.escaping import shell_word
from seatrial.execute.backends import (
    BundleWatch,
    Doubled,
    Job,
    NodesDown,
    NodesUp,
    Queued,
    Submission,
    Update,
    arranged,
    bundle_files,
    read_progress,
)
from seatrial.execute.batch.scheduler_client import (
    PREFIX,
    CommandOutages,
    SchedulerClient,
    TaskKey,
    TaskState,
    Unanswered,
)
from seatrial.execute.beside_loop import run_in_thread
from seatrial.execute.directory import JobEvents, job_events
from seatrial.execute.environment import write_script
from seatrial.files import make_folder, read_regular, sync_folder, write_durably
from seatrial.model.node_set import fold

SHORTEST_BACK_OFF = 0.5
LONGEST_BACK_OFF = 60.0


class Submitter:
    """Submits to one scheduler, one submission at a time. ``folder`` has a folder for each;
    ``cancelled`` are the runs that nobody wants any more; ``on_outage`` is told each failure."""

    def __init__(
        self,
        client: SchedulerClient,
        folder: Path,
        cancelled: Collection[str],
        on_outage: Callable[[Unanswered], None],
    ) -> None:
        self.client = client
        self.folder = folder
        self._cancelled = cancelled
        self._on_outage = on_outage
        self._submitting = asyncio.Lock()

    async def learn_config(self) -> None:
        """Ask the scheduler for its settings, once: whoever needs them asks again."""
        try:
            await self.client.learn_config()
        except Unanswered as error:
            self._on_outage(error)

    async def submit(self, submission: Submission) -> int | None:
        """Return the job id of the array of a submission; None where all its runs were cancelled
        before the scheduler had it. Raises SubmissionRefused."""
        folder = self.folder / submission.name
        await self._learn_features(submission)
        await run_in_thread(lambda: self.client.write(folder, submission), "submission")
        array: int | None = None
        for pause in _pauses():
            await asyncio.sleep(pause)
            if pause:
                array = await self._find_by_name(submission, folder)
            if array is not None or self._is_cancelled(submission):
                return array
            try:
                async with self._submitting:
                    return await self.client.submit(folder, submission)
            except Unanswered as error:
                self._on_outage(error)
        return None

    async def _learn_features(self, submission: Submission) -> None:
        """Ask the scheduler which features it knows until it answers, or nobody wants the jobs."""
        pauses = _pauses()
        while self.client.lacks_features(submission):
            await asyncio.sleep(next(pauses))
            if self._is_cancelled(submission):
                return
            try:
                await self.client.learn_features()
            except Unanswered as error:
                self._on_outage(error)

    def _is_cancelled(self, submission: Submission) -> bool:
        return all(job.run_id in self._cancelled for job in submission.jobs)

    async def find(self, submission: Submission) -> int | None:
        """Return the job id of a submission that was announced before a restart; FORGOTTEN where
        its jobs ran, and the scheduler has forgotten them; None where it never had them. A command
        that still submits it is awaited; then its answer is read; then the scheduler is asked."""
        folder = self.folder / submission.name
        await self.client.wait_for_submitting(folder)
        array = await self._find_by_name(submission, folder)
        if array is None and await run_in_thread(lambda: _is_claimed(submission, folder), "events"):
            return FORGOTTEN
        return array

    async def _find_by_name(self, submission: Submission, folder: Path) -> int | None:
        """Return the job id of a submission; None where the scheduler has none. Repeats the
        question until the scheduler answers."""
        pauses = _pauses()
        while True:
            await asyncio.sleep(next(pauses))
            if (array := self.client.answer(folder)) is not None:
                return array
            try:
                await self.learn_config()
                since = folder.stat().st_mtime - 86400 if folder.exists() else time.time() - 86400
                return await self.client.find(submission.name, since)
            except Unanswered as error:
                self._on_outage(error)


def _is_claimed(submission: Submission, folder: Path) -> bool:
    """Return whether a job of a submission has begun; does not return while its file system
    hangs."""
    if submission.is_bundle:
        return read_progress(folder) is not None
    return any(job_events(job.path).claimed for job in submission.jobs)


def _pauses() -> Iterator[float]:
    """Yield the pauses before attempts: none, then longer and longer ones."""
    yield 0.0
    pause = SHORTEST_BACK_OFF
    while True:
        yield pause
        pause = min(2 * pause, LONGEST_BACK_OFF)


# ---- job readings --------------------------------------------------------------------------------
#
# Read what jobs wrote where file systems may hang.
#
#     found = await readings.read(jobs)      # run id -> its events, of the file systems that answer
#
# Jobs in the trial's own folder are read at once: where that hangs, the driver cannot go on
# anyway.


ANSWER_SECONDS = 2.0


class JobReadings:
    """Readings of the events of jobs, one at a time on each file system."""

    def __init__(self) -> None:
        self._under_way: dict[str, asyncio.Task[dict[str, JobEvents]]] = {}

    async def read(self, jobs: Iterable[Job]) -> dict[str, JobEvents]:
        """Return the events of jobs, without those of file systems that do not answer within
        ``ANSWER_SECONDS``, or where an earlier reading still hangs."""
        places: dict[str, list[Job]] = {}
        for job in jobs:
            places.setdefault(job.file_system, []).append(job)
        readings = _read(places.pop("", ()))
        begun = {
            asyncio.create_task(run_in_thread(partial(_read, group), "events")): place
            for place, group in places.items()
            if place not in self._under_way
        }
        if begun:
            self._under_way |= {place: task for task, place in begun.items()}
            for task in begun:
                task.add_done_callback(partial(self._on_done, begun[task]))
            done, _ = await asyncio.wait(begun, timeout=ANSWER_SECONDS)
            for task in done:
                readings |= task.result()
        return readings

    def _on_done(self, place: str, task: asyncio.Task[dict[str, JobEvents]]) -> None:
        del self._under_way[place]


def _read(jobs: Iterable[Job]) -> dict[str, JobEvents]:
    return {job.run_id: job_events(job.path) for job in jobs}


# ---- node watch ----------------------------------------------------------------------------------
#
# Watches the nodes of a cluster, once at each poll interval.


MAX_REASON = 200


class NodeWatch:
    """Reports nodes that go down or come back; ``known`` are down as far as the trial knows. Where
    the scheduler does not answer, nothing changes."""

    def __init__(
        self,
        client: SchedulerClient,
        known: Collection[str],
        report: Callable[[NodesDown | NodesUp], None],
        outages: CommandOutages,
    ) -> None:
        self._client = client
        self._down = set(known)
        self._report = report
        self._outages = outages
        self._looking = asyncio.Lock()

    async def look_for_ever(self, interval: float) -> None:
        while True:
            await self.look()
            await asyncio.sleep(interval)

    async def look(self) -> None:
        """Ask once, and report changes."""
        async with self._looking:
            try:
                nodes = await self._client.nodes()
            except Unanswered as error:
                text = f"{error}; the nodes are assumed to be unchanged"
                self._outages.failed(error.command, text)
                return
            for update in changes(self._down, nodes):
                self._report(update)
            self._down = {node for node in self._down if node not in nodes}
            self._down |= {node for node, reason in nodes.items() if reason}


def changes(down: Collection[str], nodes: dict[str, str]) -> list[NodesDown | NodesUp]:
    """Return the changes since ``down`` were the nodes that are down. ``nodes`` has the reason why
    each node is down, "" where it is up. A node that ``nodes`` lacks is unchanged."""
    back = [node for node in down if nodes.get(node) == ""]
    ups: list[NodesDown | NodesUp] = [NodesUp(fold(back))] if back else []
    fallen: dict[str, list[str]] = {}
    for node, reason in nodes.items():
        if reason and node not in down:
            fallen.setdefault(reason[:MAX_REASON], []).append(node)
    return ups + [NodesDown(fold(names), reason) for reason, names in fallen.items()]


# ---- batch task ----------------------------------------------------------------------------------
#
# A run, or a bundle of runs, as a task of an array that the scheduler has.


FORGOTTEN = -1  # stands for the job id of an array that the scheduler does not know any more
NO_PLACE = -1  # stands for the number of a task that the list of its submission does not have


@dataclass(slots=True)
class BatchTask:
    """A run that the scheduler has, as far as is known, or a bundle of runs."""

    job: Job
    #: The name of its submission.
    name: str
    #: The id of its array, and its number there.
    array: int
    index: int
    #: Whether the array has one task.
    alone: bool
    #: Since when the scheduler does not show it, by the monotonic clock; 0.0: it does.
    missing_since: float = 0.0
    started: bool = False
    #: The state in which the job ended, if the scheduler kept it; then it is being cancelled.
    kept: TaskState | None = None
    bundle: BundleWatch | None = None
    #: Since when the job of a bundle is over of which not all is seen yet, by the same clock.
    ended_since: float = 0.0

    def state_in(self, states: Mapping[TaskKey, TaskState]) -> TaskState | None:
        """Return the state of the task. Where it has none, return that of its array without a
        task's number, if the array has one task."""
        state = states.get((self.name, self.array, self.index))
        return states.get((self.name, self.array, None)) if state is None and self.alone else state

    def may_appear(self, longest: float) -> bool:
        """Return whether ends of runs of a bundle, whose job has ended by itself, may still appear
        through a shared file system. They do within ``longest`` seconds."""
        if self.bundle is None or not self.bundle.left:
            return False
        self.ended_since = self.ended_since or time.monotonic()
        return time.monotonic() - self.ended_since < longest


# ---- doubled jobs --------------------------------------------------------------------------------
#
# Finds jobs that a scheduler has twice: two arrays of one name.
#
# A submission has a name of its own, and is submitted once. Where it was submitted twice
# nevertheless (by a command whose answer was lost twice, by a person who ran it by hand), the job
# that claimed the run's directory is the run; the other one is cancelled, or has ended with 93
# already.


Choice = Literal["ours", "twin", "later"]


def twins(arrays: Mapping[tuple[str, int], int], states: Iterable[TaskState]) -> list[TaskState]:
    """Return the tasks that the scheduler has besides ours, ended ones, too. ``arrays``: the array
    of each task of ours, by the name of the job and the number of the task."""
    found = []
    for state in states:
        if state.task is not None:
            array = arrays.get((state.name, state.task))
            if array is not None and array >= 0 and array != state.array:
                found.append(state)
    return found


def chosen(
    own: JobEvents, ours: TaskState | None, job_id: str, twin: TaskState, twin_id: str
) -> Choice:
    """Return which of two tasks is the run: the one whose job started the script; else the one that
    is ahead. ``own``: the events that the job wrote. ``later``: both run, and it is not known yet
    which has claimed the directory."""
    started = own.start.job_id if own.start is not None else ""
    if started == twin_id:
        return "twin"
    if started == job_id or twin.state == "PENDING":
        return "ours"
    if ours is None or not ours.active or ours.state == "PENDING":
        return "twin"
    return "later"


class DoubledJobs:
    """Settles the jobs that a scheduler has twice. ``report`` gets an update for each array that is
    doubled, and for each run that follows another job."""

    def __init__(
        self, client: SchedulerClient, readings: JobReadings, report: Callable[[Update], None]
    ) -> None:
        self._client = client
        self._readings = readings
        self._report = report
        self._told: set[tuple[int, ...]] = set()  # arrays of one name

    async def settle(self, tasks: Iterable[BatchTask], states: Mapping[TaskKey, TaskState]) -> None:
        """Keep one job of each run that was submitted twice: the one that is further.

        The other one is cancelled while it is pending. Once it started, it exits by itself, because
        the run's directory is claimed: of one that has ended so between two polls people are told,
        too. Raises Unanswered.
        """
        ours = {(task.name, task.index): task for task in tasks}
        arrays = {key: task.array for key, task in ours.items()}
        found = twins(arrays, states.values())
        for twin in found:
            self._tell(ours[twin.name, twin.task or 0], twin)
        doubled = {(twin.name, twin.task): twin for twin in found if twin.active}
        events = await self._readings.read(ours[name, task or 0].job for name, task in doubled)
        others: list[str] = []
        for twin in doubled.values():
            task = ours[twin.name, twin.task or 0]
            if (own := events.get(task.job.run_id)) is None:
                continue  # its file system does not answer
            others += self._to_cancel(task, task.state_in(states), twin, own)
        if others:
            await self._client.cancel(others, pending_only=True)

    def _to_cancel(
        self, task: BatchTask, state: TaskState | None, twin: TaskState, own: JobEvents
    ) -> list[str]:
        """Return the job that is not the run, if it is to be cancelled; follow the other one."""
        ours, other = self._id(task, task.array), self._id(task, twin.array)
        choice = chosen(own, state, ours, twin, other)
        if choice != "twin":
            return [other] if choice == "ours" else []
        task.array, task.started, task.missing_since = twin.array, False, 0.0
        self._report(Queued(task.job.run_id, other))
        return [ours] if state is not None and state.active else []

    def _id(self, task: BatchTask, array: int) -> str:
        return self._client.task_id(array, task.index, task.alone)

    def _tell(self, task: BatchTask, twin: TaskState) -> None:
        arrays = tuple(sorted((task.array, twin.array)))
        if arrays not in self._told:
            self._told.add(arrays)
            self._report(Doubled(task.name, arrays))


# ---- job arrays ----------------------------------------------------------------------------------
#
# Submissions to a batch system: jobs of one shape as a job array, and its files.
#
#     arrange(jobs, largest)                              # jobs of one shape are an array
#     write_submission(folder, submission, index, line)   # its list of runs and its batch script
#     tasks_of(submission, array, folder)                 # the task of each of its runs


MAX_LIST_BYTES = 1 << 28

# The shell of the scheduler runs job.sh itself, because another bash would take a millisecond. It
# calls itself (`$0`) as one that was started for job.sh would; one before bash 5.0 cannot do that.
_SCRIPT = """\
#!/bin/bash
# One task of the array is one run: its directory is the line of its index in the list `runs`
mapfile -t -s "{index}" -n 1 _place < {runs}
cd "${{_place[0]:?is not in the list}}" || exit
BASH_ARGV0=./job.sh
[ "$0" = ./job.sh ] || exec bash ./job.sh >> stdout 2>> stderr < /dev/null
. ./job.sh >> stdout 2>> stderr < /dev/null
"""


def arrange(jobs: Sequence[Job], largest: int) -> list[Submission]:
    """Group jobs by shape into arrays of at most ``largest`` tasks; a bundle is one task. A
    submission has the name of its first run, which is unique, and known before the submission."""
    return arranged(jobs, lambda alone: _arrays(alone, largest), PREFIX)


def _arrays(jobs: Sequence[Job], largest: int) -> list[Submission]:
    shapes: dict[object, list[Job]] = {}
    for job in jobs:
        shape = job._replace(run_id="", path=Path())
        shapes.setdefault(shape, []).append(job)
    return [
        Submission(PREFIX + group[start].run_id, tuple(group[start : start + largest]))
        for group in shapes.values()
        for start in range(0, len(group), largest)
    ]


def write_submission(
    folder: Path, submission: Submission, index: str, line: Sequence[str], job_id: str = ""
) -> None:
    """Write the list of runs and the batch script, so that they are on the disk itself before the
    jobs are submitted, and, for people, the command ``line`` that submits it. ``index`` is the
    variable of bash with the number of a task in its array, ``job_id`` the text of bash with the id
    of a job that the scheduler may run again."""
    make_folder(folder)
    if submission.is_bundle:
        files = bundle_files(folder, submission, job_id)
    else:
        runs = "".join(f"{job.path}\n" for job in submission.jobs)
        script = _SCRIPT.format(runs=shell_word(str(folder / "runs")), index=index)
        files = {"runs": runs, "job.sh": script}
    for name, text in files.items():
        write_durably(folder / name, text.encode("utf-8", errors="surrogateescape"))
    sync_folder(folder)
    sync_folder(folder.parent)
    write_script(folder / "submit.sh", f"{shlex.join(line)}\n")


def places(folder: Path) -> dict[str, int]:
    """Return the runs of an array by their ids, each with the number of its task; none where the
    list is not there. The id is the last part of the path of a run's directory: what is before it
    differs where the trial is seen by another path. The first run gave the submission its name.
    Raises OSError."""
    try:
        data = read_regular(folder / "runs", MAX_LIST_BYTES)
        text = data.decode(errors="surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    ids = [line.rpartition("/")[2] for line in text.split("\n")[:-1]]
    if folder.name.startswith(PREFIX):
        ids[:1] = [folder.name.removeprefix(PREFIX)][: len(ids)]
    return {run_id: index for index, run_id in enumerate(ids)}


def tasks_of(submission: Submission, array: int, folder: Path) -> list[BatchTask]:
    """Return the task of each run of an array. The driver may have left some runs out, as they have
    a verdict; the batch script's list of runs tells the places of the others. A run that has no
    place there has no task that is known: its own events decide. Raises OSError."""
    indices = places(folder)
    alone = len(indices) == 1
    return [
        BatchTask(job, submission.name, array, index, alone)
        if (index := indices.get(job.run_id)) is not None
        else BatchTask(job, submission.name, FORGOTTEN, NO_PLACE, False)
        for job in submission.jobs
    ]
