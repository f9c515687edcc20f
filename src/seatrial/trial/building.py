"""The builds of a trial, in the background."""

from __future__ import annotations

import asyncio

from seatrial.journal.events import BuildEnded, BuildStarted
from seatrial.runs.builds import build
from seatrial.trial.folder import TrialFolder
from seatrial.trial.ledger import Ledger
from seatrial.trial.tasks import Tasks


class Building:
    """Starts builds, and reports the end of each to the inbox."""

    def __init__(self, folder: TrialFolder, ledger: Ledger, tasks: Tasks) -> None:
        self._folder = folder.builds
        self._ledger = ledger
        self._tasks = tasks
        # All cases with one key share a build; the first of them names it.
        cases = ledger.conductor.state.cases
        self._cases = {case.build: case for case in reversed(cases) if case.build}
        self._running: dict[str, asyncio.Task[None]] = {}

    def start(self, key: str) -> None:
        case, folder, record = self._cases[key], self._folder / key, self._ledger.record
        self._ledger.note(BuildStarted(key=key, test=case.test, path=str(folder)))

        async def work() -> None:
            result = await build(folder, record.tests[case.test], case, record.machine)
            self._running.pop(key, None)
            ended = BuildEnded(
                key=key, test=case.test, path=str(folder), code=result.code, log=result.text
            )
            self._tasks.put(ended)

        self._running[key] = self._tasks.spawn(work())

    def cancel(self) -> None:
        for task in self._running.values():
            task.cancel()
