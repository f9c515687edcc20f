"""Removes outputs of judged runs, as far as ``keep:`` of a test or a component says so.

First the verdict and an event that announces the removal are on the disk itself, then files go. So
whoever misses a file finds out why, whatever happens to this host in between.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from seatrial.execute.background import Tasks
from seatrial.execute.daemon_thread import run_in_thread
from seatrial.execute.kept_files import RemovalRule, RemovedFiles, removal_rule, remove, removed_by
from seatrial.execute.ledger import Ledger
from seatrial.execute.runs import RunUnderWay
from seatrial.journal.events import OutputRemoved
from seatrial.log import logger
from seatrial.model.codes import Code

AT_ONCE = 200  # runs whose removal one write of the journal announces
LONGEST_END_SECONDS = 300.0

_log = logger(__name__)


_Waiting = tuple[RunUnderWay, RemovalRule]
"""A run that is judged, and which of its outputs are to be removed."""


class CleanUp:
    """Removes outputs in the background, in one thread for each place, as a file system may
    hang."""

    def __init__(self, ledger: Ledger, tasks: Tasks) -> None:
        self._ledger = ledger
        self._tasks = tasks
        self._waiting: dict[Path, deque[_Waiting]] = {}  # by the directory of the runs' tests
        self._workers: dict[Path, asyncio.Task[None]] = {}
        self._alerted = False

    def on_judged(self, run: RunUnderWay, verdict: Code) -> None:
        """Have the outputs of a run removed, once its verdict is on the disk."""
        rule = removal_rule(self._ledger.record.keep_of(run.test.name), verdict)
        if rule is None:
            return
        place = run.path.parent
        self._waiting.setdefault(place, deque()).append((run, rule))
        if place not in self._workers or self._workers[place].done():
            self._workers[place] = self._tasks.spawn(self._work(self._waiting[place]))

    async def _work(self, waiting: deque[_Waiting]) -> None:
        while waiting:
            batch = [waiting.popleft() for _ in range(min(AT_ONCE, len(waiting)))]
            removed = await run_in_thread(partial(_look, batch), "keep")
            reported = [each for each, files in zip(batch, removed, strict=True) if files.files]
            if not reported:
                continue
            for (run, rule), files in zip(batch, removed, strict=True):
                if files.files:
                    self._announce(run, rule, files)
            self._ledger.journal.flush()
            await run_in_thread(self._ledger.journal.sync, "sync")
            failed = await run_in_thread(partial(_remove, reported), "keep")
            if failed and not self._alerted:
                self._alerted = True
                self._tasks.alert("keep", "", f"outputs could not be removed: {failed}")

    def _announce(self, run: RunUnderWay, rule: RemovalRule, removed: RemovedFiles) -> None:
        event = OutputRemoved(
            run_id=run.launch.run_id,
            keep=rule.word,
            files=removed.files,
            size=removed.size,
            names=removed.names,
        )
        self._ledger.note(event, run.case)

    async def end(self) -> None:
        """Wait up to 5 minutes for what is being removed."""
        if working := [task for task in self._workers.values() if not task.done()]:
            await asyncio.wait(working, timeout=LONGEST_END_SECONDS)


def _look(runs: Sequence[_Waiting]) -> list[RemovedFiles]:
    """Return what is removed of each run: nothing where its directory cannot be read, as when a
    person removed it."""
    removed = []
    for run, rule in runs:
        try:
            removed.append(removed_by(run.path, rule))
        except OSError as error:
            _log.info("%s: is not cleaned up: %s", run.path, error)
            removed.append(RemovedFiles(0, 0, []))
    return removed


def _remove(runs: Sequence[_Waiting]) -> str:
    """Remove the outputs of runs; return why the first failed that did, or ""."""
    failed = ""
    for run, rule in runs:
        try:
            remove(run.path, rule)
        except OSError as error:
            _log.warning("%s: outputs could not be removed: %s", run.path, error)
            failed = failed or f"{run.path}: {error.strerror or error}"
    return failed
