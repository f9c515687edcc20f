"""The builds of a trial, in the background."""

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Awaitable, Callable
from functools import cached_property
from pathlib import Path

from msgspec.structs import replace

from seatrial.escaping import shell_word
from seatrial.execute import backends, builds, shared_builds
from seatrial.execute import builds as build_files
from seatrial.execute.backends import Update
from seatrial.execute.background import Tasks
from seatrial.execute.batch.scheduler_client import PREFIX
from seatrial.execute.builds import BuildResult, build
from seatrial.execute.directory import job_events
from seatrial.execute.environment import write_script
from seatrial.execute.ledger import Ledger
from seatrial.execute.toolchains import read_compiler_facts
from seatrial.execute.trial_folder import TrialFolder
from seatrial.execute.trial_paths import BUILD_LOG
from seatrial.files import make_folder
from seatrial.journal.events import BuildEnded, BuildStarted
from seatrial.model.build import is_in_job, job_options_of
from seatrial.model.codes import CANCELLED, TIMEOUT
from seatrial.model.machine import Machine
from seatrial.model.test import Case, Test
from seatrial.units import show_seconds


class Building:
    """Starts builds, and reports the end of each to the inbox. ``in_jobs`` makes those that ask for
    a job; None where the machine has no scheduler."""

    def __init__(
        self, folder: TrialFolder, ledger: Ledger, tasks: Tasks, in_jobs: "JobBuilds | None"
    ) -> None:
        self._folder = folder.builds
        self._trial = folder.path
        self._ledger = ledger
        self._in_jobs = in_jobs
        self._tasks = tasks
        # All cases with one key share a build; the first of them names it.
        cases = ledger.conductor.state.cases
        self._cases = {case.build: case for case in reversed(cases) if case.build}
        self._cancelled = False
        self._told = False  # that builds are not shared
        self._running: dict[str, asyncio.Task[None]] = {}

    @property
    def given(self) -> frozenset[str]:
        """The jobs of builds that the backend has, by the runs that stand for them."""
        return self._in_jobs.given if self._in_jobs is not None else frozenset()

    def start(self, key: str) -> None:
        case, folder, record = self._cases[key], self._folder / key, self._ledger.record
        self._ledger.note(BuildStarted(key=key, test=case.test, path=str(folder)))

        async def work() -> None:
            built = await self._made(folder, record.tests[case.test], case)
            self._running.pop(key, None)
            test = case.test
            ended = BuildEnded(
                key=key,
                test=test,
                path=str(folder),
                code=built.result.code,
                log=built.result.text,
                facts=built.facts or None,
                made_by=built.made_by,
                anew=built.anew,
            )
            if built.unshared and not self._told:
                self._told = True
                text = (
                    f"builds stay in this trial, as others' programs are not run: {built.unshared}"
                )
                self._tasks.alert("shared builds", test, text)
            self._tasks.put(ended)

        self._running[key] = self._tasks.spawn(work())

    @cached_property
    def _shared(self) -> "shared_builds.SharedBuilds | None":
        """The builds that trials of the machine share; None where they share none."""
        machine, rebuild = self._ledger.record.machine, self._ledger.record.asked.rebuild
        if not machine.builds.shared:
            return None
        folder = Path(machine.builds.folder or self._trial.parent / shared_builds.FOLDER)
        return shared_builds.SharedBuilds(folder, self._trial, machine, rebuild)

    async def _made(self, folder: Path, test: Test, case: Case) -> "shared_builds.BuildOutcome":
        machine, in_jobs = self._ledger.record.machine, self._in_jobs

        async def make(directory: Path) -> BuildResult:
            if in_jobs is not None and is_in_job(test, machine):
                return await in_jobs.build(directory, test, case)
            return await build(directory, test, case, machine)

        if not self._shared or (test.build is not None and test.build.of_others):
            return shared_builds.BuildOutcome(await make(folder), read_compiler_facts(folder))
        return await self._shared.build(folder, test, case, make)

    def receive(self, update: Update) -> bool:
        """Take an update of the backend; return False if it is about no build."""
        return self._in_jobs is not None and self._in_jobs.receive(update)

    async def end(self) -> None:
        """Cancel the jobs of builds, if builds were cancelled; else they go on without a driver.
        Call it when nobody takes the updates of the backend."""
        if self._cancelled and self._in_jobs is not None:
            await self._in_jobs.cancel()

    def cancel(self) -> None:
        self._cancelled = True
        for task in self._running.values():
            task.cancel()


# ---- job builds ----------------------------------------------------------------------------------
#
# Builds in jobs of the machine's scheduler: ``build: {where: job}``.
#
# A build's job goes to the nodes that the runs of its case would get. Its folder is that of its
# submission, its output is the log of the build. A job that an earlier driver submitted is found
# again, as those of runs are; one that a node failed under is submitted again.


MAX_ATTEMPTS = 3  # of a build whose jobs end for reasons of the machine
LOOK_SECONDS = 0.2
CANCEL_SECONDS = 30.0

# The claim: a job that was submitted twice builds once.
_SCRIPT = """\
#!/bin/bash
set -C
: > events.jsonl || exit 93
set +C
exec 9> /dev/null
bash {script} 9 > {log} 2>&1
_code=$?
printf '{{"time":%s,"event":"binary_execute_end","value":%d}}\\n' "$(date +%s%N)" "$_code" \\
  >> events.jsonl
exit "$_code"
"""

BuildUpdate = backends.JobEnd | backends.Refused | backends.NeverStarted


class JobBuilds:
    """The builds of one trial that run as jobs. ``unique`` tells the trial from others, ``avoid``
    which nodes their jobs must not get now."""

    def __init__(
        self,
        folder: TrialFolder,
        machine: Machine,
        backend: backends.Backend,
        unique: str,
        avoid: Callable[[], str],
    ) -> None:
        self._folder = folder
        self._machine = machine
        self._backend = backend
        self._unique = unique
        self._avoid = avoid
        self._news: dict[str, asyncio.Queue[BuildUpdate]] = {}  # by run id
        self._with_backend: set[str] = set()  # run ids of which the backend will tell the end

    @property
    def given(self) -> frozenset[str]:
        """The runs that stand for builds, which were given to the backend and have no end."""
        return frozenset(self._with_backend)

    def receive(self, update: backends.Update) -> bool:
        """Take an update of the backend; return False if it is about no build."""
        news = self._news.get(getattr(update, "run_id", ""))
        if news is not None and isinstance(update, BuildUpdate):
            self._with_backend.discard(update.run_id)
            news.put_nowait(update)
        return news is not None

    async def build(self, directory: Path, test: Test, case: Case) -> BuildResult:
        """Build in a job, or return the result of an earlier build. Raises TrialError as
        ``builds.build`` does."""
        failures = 0
        for number in range(1000):
            if (done := builds.result_of(directory)) is not None:
                return await builds.kept(directory, done)
            submission = self._submission(test, case, number)
            (job,) = submission.jobs
            exists = job.path.exists()
            if exists:
                ended = await self._end_of(job, self._backend.find([submission], {}))
            if not exists or isinstance(ended, backends.NeverStarted):
                if (fault := builds.prepared(directory, test, case, self._machine)) is not None:
                    return fault
                self._write(job, directory)
                ended = await self._end_of(job, self._backend.submit(submission))
            if (done := await self._judged(ended, directory, test, exists)) is not None:
                return await builds.kept(directory, done)
            failures += not (isinstance(ended, backends.JobEnd) and ended.code == CANCELLED.number)
            if failures == MAX_ATTEMPTS:
                break
        return BuildResult(1, f"its jobs ended {failures} times: {_state(ended)}")

    async def _end_of(self, job: backends.Job, handed_over: Awaitable[None]) -> BuildUpdate:
        """Return the end of a job, once the backend was told to submit or to find it."""
        news = self._news[job.run_id] = asyncio.Queue()
        self._with_backend.add(job.run_id)
        try:
            await handed_over
        except BaseException:
            self._with_backend.discard(job.run_id)
            raise
        ended = await news.get()
        del self._news[job.run_id]
        return ended

    def _submission(self, test: Test, case: Case, number: int) -> backends.Submission:
        assert test.build is not None
        text = f"{self._unique} {case.build} {number}"
        run_id = "b" + hashlib.sha256(text.encode()).hexdigest()[:12]
        job = backends.Job(
            run_id=run_id,
            path=Path(),
            avoid=self._avoid(),
            nodes=1,
            tasks=1,
            tasks_per_node=1,
            threads=test.build.cores,
            walltime=test.build.timeout.seconds,
            node="",
            exclusive=False,
            features=tuple(test.requires.features),
            options=replace(
                job_options_of(case, self._machine),
                gpus_per_node=min(case.gpus, 1),
                gpus_per_task=0,
            ),
        )
        ((name, _),) = self._backend.arrange([job])
        return backends.Submission(
            name, (job._replace(path=self._folder.submissions / name / "build"),)
        )

    def _write(self, job: backends.Job, directory: Path) -> None:
        make_folder(job.path)
        script = _SCRIPT.format(
            script=shell_word(str(directory / build_files.JOB)),
            log=shell_word(str(directory / BUILD_LOG)),
        )
        write_script(job.path / "job.sh", script)

    async def _judged(
        self, ended: BuildUpdate, directory: Path, test: Test, found: bool
    ) -> BuildResult | None:
        """Return the result of a build whose job is over; None where it is to be built again.
        ``found``: an earlier driver submitted the job, and may have cancelled it."""
        assert test.build is not None
        if isinstance(ended, backends.Refused):
            return BuildResult(1, ended.reason)
        if isinstance(ended, backends.NeverStarted):
            return None
        if ended.code is None:
            return await self._visible(directory, ended)
        if ended.code == TIMEOUT.number:
            limit = show_seconds(test.build.timeout.seconds)
            return BuildResult(
                TIMEOUT.number, f"not done after {limit}\n{builds.log_tail(directory)}"
            )
        if ended.code == CANCELLED.number and not found:
            return BuildResult(1, "its job was cancelled by a person or the scheduler")
        return None

    async def _visible(self, directory: Path, ended: backends.JobEnd) -> BuildResult:
        """Return the result that a job wrote, as soon as it is seen on this host."""
        until = time.monotonic() + self._machine.batch.visible_after.seconds
        while (done := builds.result_of(directory)) is None:
            if time.monotonic() > until:
                log = builds.log_tail(directory)
                return BuildResult(1, f"it left no result: {_state(ended)}\n{log}".strip())
            await asyncio.sleep(LOOK_SECONDS)
        return done

    async def cancel(self) -> None:
        """Cancel the jobs of builds, also those of an earlier driver, and wait a while for their
        ends. Call it when nobody else takes the updates of the backend."""
        paths = self._folder.submissions.glob(f"{PREFIX}b*/build")
        left = {
            path.parent.name.removeprefix(PREFIX): path
            for path in paths
            if job_events(path).end is None
        }
        unknown = [
            backends.Submission(
                PREFIX + run_id, (backends.Job(run_id, path, 1, 1, 1, 1, 60.0, "", False),)
            )
            for run_id, path in left.items()
            if run_id not in self._with_backend
        ]
        if not left:
            return
        await self._backend.find(unknown, {})
        await self._backend.cancel(left)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CANCEL_SECONDS):
                while left:
                    update = await self._backend.inbox.get()
                    if isinstance(update, BuildUpdate):
                        left.pop(update.run_id, None)


def _state(update: BuildUpdate) -> str:
    if isinstance(update, backends.JobEnd):
        return f"{update.state}, exit code {update.exit_code}"
    return update.reason if isinstance(update, backends.Refused) else "never started"
