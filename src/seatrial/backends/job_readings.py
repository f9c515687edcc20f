"""Read what jobs wrote where file systems may hang.

    found = await readings.read(jobs)      # run id -> its events, of the file systems that answer

Jobs in the trial's own folder are read at once: where that hangs, the driver cannot go on anyway.
"""

import asyncio
from collections.abc import Iterable
from functools import partial

from seatrial.backends.protocol import Job
from seatrial.runs.daemon_thread import run_in_thread
from seatrial.runs.directory import JobEvents, job_events

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
        found = _read(places.pop("", ()))
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
                found |= task.result()
        return found

    def _on_done(self, place: str, task: asyncio.Task[dict[str, JobEvents]]) -> None:
        del self._under_way[place]


def _read(jobs: Iterable[Job]) -> dict[str, JobEvents]:
    return {job.run_id: job_events(job.path) for job in jobs}
