"""The builds of a trial, in the background."""

import asyncio
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.backends.protocol import Update
from seatrial.journal.events import BuildEnded, BuildStarted
from seatrial.lazy import LazyModule
from seatrial.runs.builds import BuildResult, build
from seatrial.runs.compiler_versions import read_found
from seatrial.suite.build_key import is_in_job
from seatrial.suite.model import Case, Test
from seatrial.trial.folder import TrialFolder
from seatrial.trial.ledger import Ledger
from seatrial.trial.tasks import Tasks

if TYPE_CHECKING:
    from seatrial.runs import shared_builds
    from seatrial.trial.job_builds import JobBuilds
else:  # for tests that are built
    shared_builds = LazyModule("seatrial.runs.shared_builds")


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
            return shared_builds.BuildOutcome(await make(folder), read_found(folder))
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
