"""What is asked of OpenPBS and PBS Pro, by their commands."""

import asyncio
import re
import shlex
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from seatrial.backends import pbs_batch, pbs_parse
from seatrial.backends.bundles import allocation_of
from seatrial.backends.protocol import Submission
from seatrial.backends.qdel_client import QdelClient
from seatrial.backends.scheduler_client import Unanswered
from seatrial.backends.task_states import TaskState
from seatrial.lazy import regex
from seatrial.machine.model import Machine
from seatrial.units import seconds

QUESTIONS_AT_ONCE = 8
LISTING_SHARE = 20.0  # minimum age of a listing of an array, in durations of that listing
NEAR_END = 0.1  # seconds between polls at the end of an array

# Variables that change what commands print, or how they submit.
_MISLEADING = regex(r"PBS_(DPREFIX|QSTAT_\w+|JOBID|JOBCOOKIE|ARRAY_\w+)|QSUB_\w+")
_TASK = regex(r"(-?[0-9]+)(?:\[([0-9]+)\])?(?:\..*)?")


class _Listing(NamedTuple):
    """The tasks of an array as they were at a time of the monotonic clock, and how long the server
    took to tell them."""

    states: list[TaskState]
    counts: pbs_parse.ArrayCounts
    at: float
    took: float


class PbsClient(QdelClient):
    """The client of one server of PBS."""

    name = "PBS"
    programs = ("qsub", "qstat", "qselect", "qdel", "pbsnodes")
    submits = "qsub"
    temporary = pbs_parse.TEMPORARY
    unknown = pbs_parse.UNKNOWN

    def __init__(self, machine: Machine, on_answer: Callable[[str], None]) -> None:
        super().__init__(machine, on_answer, _MISLEADING)
        self.settings: pbs_parse.ServerSettings | None = None
        self._asking = asyncio.Semaphore(QUESTIONS_AT_ONCE)
        self._listings: dict[str, _Listing] = {}

    @property
    def largest_array(self) -> int:
        return (self.settings or pbs_parse.ServerSettings()).largest_array

    async def learn_config(self) -> None:
        if self.settings is None:
            asked = ("qstat", "-B", "-f", "-F", "json")
            self.settings = await self._ask(pbs_parse.parse_server, *asked)

    def write(self, folder: Path, submission: Submission) -> None:
        pbs_batch.write(folder, submission, self.machine, self._writes_directly)

    def line(self, folder: Path, submission: Submission) -> list[str]:
        return pbs_batch.qsub_line(folder, submission, self.machine, self._writes_directly)

    def request(self, folder: Path, submission: Submission) -> str:
        job = allocation_of(submission, folder)
        return shlex.join(pbs_batch.request_words(job, self.machine))

    @property
    def _writes_directly(self) -> bool:
        return self.settings is not None and self.settings.writes_directly

    def parse_answer(self, text: str) -> int | None:
        return pbs_parse.parse_job_id(text)

    def task_id(self, array: int, index: int, alone: bool) -> str:
        return str(array) if alone else f"{array}[{index}]"

    def is_alone(self, task: str) -> bool:
        return "[" not in task

    def parse_task_id(self, text: str) -> tuple[int, int]:
        found = _TASK.fullmatch(text)
        return (int(found[1]), int(found[2] or 0)) if found else (0, 0)

    def first_words(self, text: str) -> str:
        return pbs_parse.first_words(text)

    # ---- asking ---------------------------------------------------------------------------

    async def queue(self, tasks: Iterable[str]) -> list[TaskState]:
        """Return the tasks of the arrays of these tasks. In JSON, qstat tells the first alone of
        the jobs that it is asked for; so each array is a question of its own. A listing of all
        tasks is much work for the server, which starts no jobs meanwhile: it is asked for again
        when the counts of the array have changed."""
        arrays = sorted({re.sub(r"\[.*", "[]", task) for task in tasks})
        self.next_poll = None
        listings = await asyncio.gather(*map(self._listing, arrays))
        self._listings = dict(zip(arrays, listings, strict=True))
        # Most polls of arrays ask for counts alone, and these listings are limited already.
        self.poll_weight = 0.05 if all(each.counts.words for each in listings) else 0.2
        return [state for listing in listings for state in listing.states]

    async def _listing(self, job: str) -> _Listing:
        """Return the tasks of an array, or a job: as last listed, where nothing has changed, or
        where it has changed, but it was listed just before."""
        last = self._listings.get(job)
        if last is not None and last.counts.words:
            counts = self._parsed(pbs_parse.parse_counts, "qstat", await self._about(job))
            age = time.monotonic() - last.at
            if counts == last.counts and age < seconds(self.machine.pbs.poll):
                return last
            if counts.words and not counts.over and age < LISTING_SHARE * last.took:
                self._expect(LISTING_SHARE * last.took - age, last, counts, age)
                return last
        began = time.monotonic()
        text = await self._about("-t", job)
        states = self._parsed(pbs_parse.parse_qstat, "qstat", text)
        now = time.monotonic()
        found = _Listing(states, pbs_parse.parse_counts(text), now, now - began)
        if last is not None and found.counts != last.counts:
            self._expect(LISTING_SHARE * found.took, last, found.counts, now - last.at)
        return found

    def _expect(
        self, listing: float, last: _Listing, counts: pbs_parse.ArrayCounts, age: float
    ) -> None:
        """Set the time of the next poll: in ``listing`` seconds, when the tasks of an array may be
        listed again, or in half the time in which the array will be over, if its tasks end as they
        did since its last listing. So few polls find that the array is over, and find it soon."""
        ended = last.counts.left - counts.left
        rest = max(counts.left / ended * age / 2, NEAR_END) if ended > 0 else listing
        self.next_poll = min(listing, rest, self.next_poll or listing)

    async def _about(self, *words: str) -> str:
        """Return the answer of qstat about a job; one without jobs where the server does not know
        it."""
        await self.learn_config()
        history = ("-x",) if self.settings is None or self.settings.history else ()
        line = ("qstat", *history, "-f", "-F", "json", *words)
        async with self._asking:
            code, out, errors = await self._output(*line)
        said = [each for each in errors.splitlines() if each.strip()]
        if code != 0 and "not configured to maintain job history" in errors:
            self.settings = None  # it was turned off
            raise Unanswered("qstat", "qstat: the server keeps no history any more")
        if code != 0 and not (said and all(map(pbs_parse.UNKNOWN.search, said))):
            message = self.first_words(errors.strip() or out)
            raise Unanswered("qstat", f"qstat failed: {message}")
        return out

    async def fresh(self, tasks: Sequence[str]) -> list[TaskState]:
        self._listings.clear()
        return await self.queue(tasks)

    async def accounts(self, arrays: Iterable[int]) -> list[TaskState]:
        """Return nothing: the history is asked with the queue."""
        return []

    async def find(self, name: str, since: float) -> int | None:
        await self.learn_config()
        history = ("-x",) if self.settings is None or self.settings.history else ()
        found = await self._ask(pbs_parse.parse_qselect, "qselect", *history, "-N", name)
        return min(found, default=None)

    async def nodes(self) -> dict[str, str]:
        line = ("pbsnodes", "-a", "-F", "json")
        there = await self._ask(pbs_parse.parse_pbsnodes, *line)
        return self.of_machine(there)
