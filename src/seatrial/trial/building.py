"""The builds of a trial, beside its loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from seatrial.journal.events import BuildEnded, BuildStarted
from seatrial.runs.builds import build
from seatrial.suite.model import Case
from seatrial.trial.folder import Record, TrialFolder
from seatrial.trial.ledger import Ledger
from seatrial.trial.tasks import Tasks


class Building:
    """Starts builds; the end of each comes to the inbox."""

    def __init__(
        self, folder: TrialFolder, record: Record, cases: Sequence[Case], tasks: Tasks
    ) -> None:
        self._folder = folder.builds
        self._record = record
        self._tasks = tasks
        # The first case of each build stands for all that share it.
        self._cases = {case.build: case for case in reversed(cases) if case.build}
        self._running: dict[str, asyncio.Task[None]] = {}

    def start(self, key: str, ledger: Ledger) -> None:
        """Announce a build and start it."""
        case, folder = self._cases[key], self._folder / key
        ledger.note(BuildStarted(key=key, test=case.test, path=str(folder)))

        async def work() -> None:
            test, machine = self._record.tests[case.test], self._record.machine
            result = await build(folder, test, case, machine)
            self._running.pop(key, None)
            ended = BuildEnded(
                key=key, test=case.test, path=str(folder), code=result.code, log=result.text
            )
            self._tasks.put(ended)

        self._running[key] = self._tasks.spawn(work())

    def cancel(self) -> None:
        """End all that runs."""
        for task in self._running.values():
            task.cancel()
