"""A backend that runs jobs as processes of this host, each in a session of its own.

Jobs outlive the driver. A new driver finds them among the running processes by the file of their
job script, and waits for them by the kernel's process file descriptors.

To end a job the backend sends SIGTERM to all its processes, and SIGKILL after a grace time. A
launcher may have put some of them into process groups or sessions of their own.
"""

import asyncio
import contextlib
import os
import re
import shlex
import signal
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.errors import BackendError
from seatrial.execute.bundles import (
    PROGRESS,
    Bundles,
    BundleWatch,
    allocation_of,
    arranged,
    bundle_files,
)
from seatrial.execute.directory import holds_output, job_events, set_aside
from seatrial.execute.environment import write_script
from seatrial.execute.hung_processes import COLLECT_SECONDS, MAX_BYTES
from seatrial.execute.job_processes import (
    LocalGpus,
    TooFewGpus,
    age_of,
    end_rest,
    handle_of,
    is_over,
    job_processes,
    jobs_by_identity,
    of_run,
    pids,
    reap,
    script_identity,
    showing,
    signal_run,
    start,
)
from seatrial.execute.protocol import (
    Disturbed,
    Job,
    JobEnd,
    NeverStarted,
    Queued,
    Refused,
    Started,
    Submission,
    Trouble,
)
from seatrial.execute.shell import Shell
from seatrial.files import is_of_host, make_folder, remove_file
from seatrial.model.codes import CANCELLED, LOST, TIMEOUT

GRACE_SECONDS = 5.0
SHORTEST_PAUSE = 0.02
LOOK_SECONDS = 0.05
LONGEST_PAUSE = 0.5  # between two looks at a bundle

_OF_TRIAL = re.compile(r"/runs/[^/]+/[^/]+$")  # a run's directory in the folder of its trial

_STATES: dict[int | None, str] = {TIMEOUT.number: "timeout", CANCELLED.number: "cancelled"}


@dataclass(eq=False)
class _Process:
    """A running job: its process, the pidfd (None where the kernel has none), the time of its start
    by the loop's clock, the verdict code for which it is being ended, and its GPUs; for a bundle
    what it follows its runs by, and when it looks next."""

    job: Job
    pid: int
    handle: int | None
    began: float
    walltime: asyncio.TimerHandle = field(init=False)
    look: asyncio.Handle | None = None
    ending: int | None = None
    end: asyncio.Task[None] | None = None
    exited: asyncio.Event = field(default_factory=asyncio.Event)
    gpus: list[str] = field(default_factory=list)
    bundle: BundleWatch | None = None
    progress: asyncio.TimerHandle | None = None


class LocalBackend:
    """Runs jobs on this host. ``cores`` are the cores that runs share; ``environment`` is what
    jobs get, by default that of this process; ``gpus`` is the number of GPUs, of which each job is
    shown those that it asks for; ``submissions`` is the folder for the scripts of bundles."""

    jobs = 0

    def __init__(
        self,
        cores: int,
        environment: Mapping[str, str] | None = None,
        gpus: int = 0,
        submissions: Path = Path("submissions"),
    ) -> None:
        self.room = cores
        self._submissions = submissions
        self.gpus = gpus
        self._running: dict[str, _Process] = {}
        self._unwanted: set[str] = set()  # cancelled before they were running
        self.inbox: asyncio.Queue[Any] = asyncio.Queue()
        self._report = self.inbox.put_nowait
        self._bundles = Bundles[_Process](self._report)
        self._null = -1
        given = os.environ if environment is None else environment
        # Bytes are not encoded anew for each run.
        self._environment = {os.fsencode(name): os.fsencode(text) for name, text in given.items()}
        self._gpus = LocalGpus(gpus, given)

    async def open(self) -> None:
        self._null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def arrange(self, jobs: Sequence[Job]) -> list[Submission]:
        return arranged(jobs, lambda alone: [Submission(job.run_id, (job,)) for job in alone])

    def write(self, submission: Submission) -> None:
        """Write the script of a bundle; for other jobs there are no files but theirs."""
        if submission.is_bundle:
            folder = self._submissions / submission.name
            make_folder(folder)
            for name, text in bundle_files(folder, submission).items():
                write_script(folder / name, text)

    async def submit(self, submission: Submission) -> None:
        unwanted = [job for job in submission.jobs if job.run_id in self._unwanted]
        for job in unwanted:
            self._report(JobEnd(job.run_id, CANCELLED.number, "never started", None))
        jobs = tuple(job for job in submission.jobs if job not in unwanted)
        if jobs and submission.is_bundle:
            self._submit_bundle(submission._replace(jobs=jobs))
        else:
            for job in jobs:
                if (started := self._start(job, [job])) is not None:
                    self._watch(job, *started)
                    self._report(Started(job.run_id))

    def _submit_bundle(self, submission: Submission) -> None:
        folder = self._submissions / submission.name
        try:
            self.write(submission)
            # It has no process now: what is there, is of one that never began a run.
            for left in (folder / PROGRESS, *folder.glob("cancel.*"), *folder.glob("skip.*")):
                remove_file(left, missing_ok=True)
        except OSError as error:
            raise BackendError(
                f"{folder}: the bundle cannot be written: {error.strerror}; correct that, then "
                "resume the trial"
            ) from error
        job = allocation_of(submission, folder)
        if (started := self._start(job, submission.jobs)) is not None:
            self._watch(job, *started, BundleWatch(folder, submission.jobs))

    def _start(self, job: Job, runs: Sequence[Job]) -> tuple[int, float, list[str]] | None:
        """Start the process of a job that does these runs. Return its id, its age, and its GPUs;
        None where it is refused."""
        self._look_for_others(job)
        try:
            gpus = self._gpus.take(job)
            environment = {**self._environment, **showing(gpus)} if gpus else self._environment
            pid = start(job.path, environment, self._null)
        except TooFewGpus as error:
            self._refuse(runs, str(error))
            return None
        except OSError as error:
            if is_of_host(error):
                raise BackendError(
                    f"{job.path}: the run cannot be started: {error.strerror}; "
                    "see to this host, then resume the trial"
                ) from error
            self._refuse(runs, f"{job.path}: bash cannot be started there: {error.strerror}")
            return None
        for run in runs:
            self._report(Queued(run.run_id, str(pid)))
        return pid, 0.0, gpus

    def _refuse(self, runs: Sequence[Job], reason: str) -> None:
        for run in runs:
            self._report(Refused(run.run_id, reason))

    def free_directory(self, path: Path) -> Path | None:
        if not holds_output(path):
            return None
        if pid := jobs_by_identity().get(script_identity(path)):
            raise BackendError(
                f"{path}: process {pid} runs there, of which the journal knows nothing; "
                "end it, then resume the trial"
            )
        return set_aside(path)

    def _look_for_others(self, job: Job) -> None:
        """Report the other trials whose jobs run beside a run that is to be alone."""
        if not job.exclusive:
            return
        ours = {one.pid for one in self._running.values()}
        beside = (each for each in job_processes() if each.pid not in ours)
        directories = {os.path.realpath(each.script).rpartition("/")[0] for each in beside}
        for other in sorted({_OF_TRIAL.sub("", each) for each in directories}):
            self._report(Disturbed(job.run_id, other))

    def _watch(
        self, job: Job, pid: int, age: float, gpus: list[str], bundle: BundleWatch | None = None
    ) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time() - age
        process = _Process(job, pid, handle_of(pid), began, gpus=gpus, bundle=bundle)
        self._running[job.run_id] = process
        if bundle is not None:
            self._bundles |= dict.fromkeys(bundle.left, process)
            self._follow(process, bundle, SHORTEST_PAUSE)
        process.walltime = loop.call_at(process.began + job.walltime, self._on_walltime, process)
        if process.handle is None:
            process.look = loop.call_soon(self._look, process)
        else:
            loop.add_reader(process.handle, self._on_exit, process)

    def _follow(self, process: _Process, bundle: BundleWatch, pause: float) -> None:
        """Report what the runs of a bundle do, at intervals that grow while nothing happens."""
        updates = bundle.look()
        self._bundles.report(updates)
        pause = SHORTEST_PAUSE if updates else min(2 * pause, LONGEST_PAUSE)
        loop = asyncio.get_running_loop()
        process.progress = loop.call_later(pause, self._follow, process, bundle, pause)

    def _look(self, process: _Process) -> None:
        """Check at intervals whether a process has ended."""
        if is_over(process.pid):
            self._on_exit(process)
        else:
            loop = asyncio.get_running_loop()
            process.look = loop.call_later(LOOK_SECONDS, self._look, process)

    def _on_exit(self, process: _Process) -> None:
        """Handle the exit of the shell of a job. Its process id cannot be reused, and can be
        signalled safely, until it is reaped."""
        self._unwatch(process)
        if process.ending is None:
            lived = asyncio.get_running_loop().time() - process.began
            others = {other.pid for other in self._running.values() if other is not process}
            end_rest(process.pid, process.job.run_id, lived, others)
            if _outlived(process.job, lived):
                process.ending = TIMEOUT.number
            self._conclude(process)
        else:
            process.exited.set()

    def _on_walltime(self, process: _Process) -> None:
        """End a job that has reached its walltime. After this process was stopped for a while
        (SIGSTOP, a suspended host) the loop calls timers before it sees the ends of jobs; a job
        that has ended is therefore judged by its own times."""
        if is_over(process.pid):
            self._on_exit(process)
        else:
            self._end(process, TIMEOUT.number)

    def _unwatch(self, process: _Process) -> None:
        if process.handle is not None:
            asyncio.get_running_loop().remove_reader(process.handle)
            os.close(process.handle)
        elif process.look is not None:
            process.look.cancel()
        if process.progress is not None:
            process.progress.cancel()
        process.walltime.cancel()

    def _conclude(self, process: _Process) -> None:
        self._look_for_others(process.job)
        del self._running[process.job.run_id]
        self._gpus.give_back(process.gpus)
        exit_code = reap(process.pid)
        if process.bundle is not None:
            code, state = process.ending, _STATES.get(process.ending, "exited")
            self._bundles.report(process.bundle.settle(code, state, exit_code))
            return
        if exit_code is None:  # a child of an earlier driver
            exit_code = job_events(process.job.path).exit_code
        self._report(_ended(process.job, process.ending, exit_code))

    def _end(self, process: _Process, code: int) -> None:
        if process.ending is None:
            process.ending = code
            process.end = asyncio.get_running_loop().create_task(self._end_session(process))

    async def _end_session(self, process: _Process) -> None:
        """End the processes of a job with SIGTERM, and after the grace time with SIGKILL. The grace
        time is for all of them, also when the shell exits at once: mpirun may have to clean up."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + GRACE_SECONDS
        signal_run(process.pid, process.job.run_id, signal.SIGTERM)
        pause = SHORTEST_PAUSE
        while of_run(process.pid, process.job.run_id, pids()) and loop.time() < deadline:
            await asyncio.sleep(max(0.0, min(pause, deadline - loop.time())))
            pause *= 2
        signal_run(process.pid, process.job.run_id, signal.SIGKILL)
        await process.exited.wait()
        self._conclude(process)

    async def find(self, submissions: Sequence[Submission], known: dict[str, str]) -> None:
        alive = jobs_by_identity()
        for submission in submissions:
            if submission.is_bundle:
                folder = self._submissions / submission.name
                watch = BundleWatch(folder, submission.jobs)
                if not self._adopt(allocation_of(submission, folder), alive, watch):
                    self._bundles.report(watch.settle(None, "vanished", restarts=True))
                continue
            for job in submission.jobs:
                if self._adopt(job, alive):
                    continue
                events = job_events(job.path)
                if events.claimed:
                    self._report(_ended(job, None, events.exit_code))
                else:
                    self._report(NeverStarted(job.run_id))

    def _adopt(
        self, job: Job, alive: Mapping[tuple[int, int], int], bundle: BundleWatch | None = None
    ) -> bool:
        """Watch a job that an earlier driver started. Returns whether it runs; ``alive`` are the
        jobs of this host."""
        pid = alive.get(script_identity(job.path))
        if pid is None:
            return False
        for run_id in bundle.left if bundle is not None else (job.run_id,):
            self._report(Queued(run_id, str(pid)))
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):  # it has just ended
            self._watch(job, pid, age_of(pid), self._gpus.take_over(job, pid), bundle)
            return True
        return False

    async def cancel(self, run_ids: Collection[str], pending_only: bool = False) -> None:
        for one in self._bundles.holders(run_ids):
            if one.bundle and one.bundle.cancel(run_ids, pending_only) and not pending_only:
                self._end(one, CANCELLED.number)
        for run_id in run_ids:
            if run_id in self._bundles:
                continue
            if process := self._running.get(run_id):
                if not pending_only:
                    self._end(process, CANCELLED.number)
            else:
                self._unwanted.add(run_id)

    async def inspect(self, job: Job, script: str) -> str:
        line = shlex.join(["exec", "bash", script, job.run_id, str(job.path)])
        shell = Shell(line, COLLECT_SECONDS / 2, MAX_BYTES)
        return (await shell.run()).output

    def watch_nodes(self, down: Collection[str]) -> None:
        pass  # this host itself is up

    def followed(self) -> set[str]:
        return self._running.keys() | self._bundles.keys()

    def recovered(self) -> list[Trouble]:
        return []

    async def close(self) -> None:
        for process in self._running.values():
            if process.end is not None:
                process.end.cancel()
            if not process.exited.is_set():
                self._unwatch(process)
        self._running.clear()
        if self._null >= 0:
            os.close(self._null)
            self._null = -1


def _ended(job: Job, ending: int | None, exit_code: int | None) -> JobEnd:
    if ending is not None:
        return JobEnd(job.run_id, ending, _STATES[ending], exit_code)
    if exit_code is None:
        return JobEnd(job.run_id, LOST.number, "vanished", None)
    return JobEnd(job.run_id, None, "exited", exit_code)


def _outlived(job: Job, lived: float) -> bool:
    """Return whether a job ended after its walltime. A busy loop may see the end of a job before it
    sees the timeout, and both late; so the job's own time of its end decides."""
    longest = job.walltime + LOOK_SECONDS
    if lived <= longest:
        return False
    end = job_events(job.path).end
    return end is None or lived - (time.time() - end.time / 1e9) > longest
