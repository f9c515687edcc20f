"""The builds of a trial, in the background."""

from __future__ import annotations

import asyncio

from seatrial.backends.protocol import Update
from seatrial.journal.events import BuildEnded, BuildStarted
from seatrial.runs.builds import build
from seatrial.trial.folder import TrialFolder
from seatrial.trial.job_builds import JobBuilds
from seatrial.trial.ledger import Ledger
from seatrial.trial.tasks import Tasks


class Building:
    """Starts builds, and reports the end of each to the inbox. ``in_jobs`` makes those that ask for
    a job; None where the machine has no scheduler."""

    def __init__(
        self, folder: TrialFolder, ledger: Ledger, tasks: Tasks, in_jobs: JobBuilds | None
    ) -> None:
        self._folder = folder.builds
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
            test = record.tests[case.test]
            if self._in_jobs is not None and test.build is not None and test.build.where == "job":
                result = await self._in_jobs.build(test, case)
            else:
                result = await build(folder, test, case, record.machine)
            self._running.pop(key, None)
            ended = BuildEnded(
                key=key, test=case.test, path=str(folder), code=result.code, log=result.text
            )
            self._tasks.put(ended)

        self._running[key] = self._tasks.spawn(work())

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
