"""The builds of a trial, in the background."""

import asyncio
from pathlib import Path

from seatrial.backends.protocol import Update
from seatrial.journal.events import BuildEnded, BuildStarted
from seatrial.machine.model import Machine
from seatrial.runs.builds import BuildResult, build
from seatrial.runs.compiler_versions import read_found
from seatrial.runs.shared_builds import FOLDER, BuildOutcome, SharedBuilds
from seatrial.suite.build_key import is_in_job
from seatrial.suite.model import Case, Test
from seatrial.trial.folder import TrialFolder
from seatrial.trial.job_builds import JobBuilds
from seatrial.trial.ledger import Ledger
from seatrial.trial.tasks import Tasks


def shared_folder(folder: TrialFolder, machine: Machine) -> Path:
    """Return the folder of the builds that trials of a machine share."""
    return Path(machine.builds.folder or folder.path.parent / FOLDER)


class Building:
    """Starts builds, and reports the end of each to the inbox. ``in_jobs`` makes those that ask for
    a job; None where the machine has no scheduler."""

    def __init__(
        self, folder: TrialFolder, ledger: Ledger, tasks: Tasks, in_jobs: JobBuilds | None
    ) -> None:
        self._folder = folder.builds
        machine, rebuild = ledger.record.machine, ledger.record.asked.rebuild
        shared = shared_folder(folder, machine)
        self._shared = machine.builds.shared and SharedBuilds(shared, folder.path, machine, rebuild)
        self._ledger = ledger
        self._in_jobs = in_jobs
        self._tasks = tasks
        # All cases with one key share a build; the first of them names it.
        cases = ledger.conductor.state.cases
        self._cases = {case.build: case for case in reversed(cases) if case.build}
        self._cancelled = False
        self._running: dict[str, asyncio.Task[None]] = {}

    def start(self, key: str) -> None:
        case, folder, record = self._cases[key], self._folder / key, self._ledger.record
        self._ledger.note(BuildStarted(key=key, test=case.test, path=str(folder)))

        async def work() -> None:
            built = await self._made(folder, record.tests[case.test], case)
            self._running.pop(key, None)
            ended = BuildEnded(
                key=key,
                test=case.test,
                path=str(folder),
                code=built.result.code,
                log=built.result.text,
                facts=built.facts or None,
                made_by=built.made_by,
            )
            self._tasks.put(ended)

        self._running[key] = self._tasks.spawn(work())

    async def _made(self, folder: Path, test: Test, case: Case) -> BuildOutcome:
        machine, in_jobs = self._ledger.record.machine, self._in_jobs

        async def make(directory: Path) -> BuildResult:
            if in_jobs is not None and is_in_job(test, machine):
                return await in_jobs.build(directory, test, case)
            return await build(directory, test, case, machine)

        if not self._shared or (test.build is not None and test.build.of_others):
            return BuildOutcome(await make(folder), read_found(folder))
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
