"""Submits arrays to a scheduler, and finds them again after a restart.

    array = await submitter.submit(submission)      # the job id of its array
    array = await submitter.find(submission)        # announced by an earlier driver

A command that fails, hangs or prints something unexpected is reported as trouble and repeated with
back-off: the scheduler may have the submission although it did not answer.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from seatrial.backends.batch_task import FORGOTTEN
from seatrial.backends.protocol import Submission
from seatrial.backends.scheduler_client import SchedulerClient, Unanswered
from seatrial.runs.bundle import read_progress
from seatrial.runs.daemon_thread import run_in_thread
from seatrial.runs.directory import job_events

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
