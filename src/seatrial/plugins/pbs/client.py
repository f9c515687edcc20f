"""What is asked of OpenPBS and PBS Pro, by their commands."""

import asyncio
import functools
import math
import re
import shlex
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from seatrial.execute.batch.scheduler_client import QdelClient, TaskState, Unanswered
from seatrial.execute.batch.submitter import write_submission
from seatrial.execute.bundles import allocation_of
from seatrial.execute.protocol import Job, Submission
from seatrial.hooks import value_of
from seatrial.model.job_options import effective
from seatrial.model.machine import Machine
from seatrial.model.test import JobOptions
from seatrial.plugins.pbs import Pbs, PbsScheduler, answers

QUESTIONS_AT_ONCE = 8
LISTING_SHARE = 20.0  # minimum age of a listing of an array, in durations of that listing
NEAR_END = 0.1  # seconds between polls at the end of an array

# Variables that change what commands print, or how they submit.
_MISLEADING = re.compile(r"PBS_(DPREFIX|QSTAT_\w+|JOBID|JOBCOOKIE|ARRAY_\w+)|QSUB_\w+")
_TASK = re.compile(r"(-?[0-9]+)(?:\[([0-9]+)\])?(?:\..*)?")


class _Listing(NamedTuple):
    """The tasks of an array as they were at a time of the monotonic clock, and how long the server
    took to tell them."""

    states: list[TaskState]
    counts: answers.ArrayCounts
    at: float
    took: float


class PbsClient(QdelClient):
    """The client of one server of PBS."""

    scheduler = PbsScheduler
    programs = ("qsub", "qstat", "qselect", "qdel", "pbsnodes")
    directive = "#PBS"
    temporary = answers.TEMPORARY
    unknown = answers.UNKNOWN

    def __init__(self, machine: Machine, on_answer: Callable[[str], None]) -> None:
        super().__init__(machine, on_answer, _MISLEADING)
        self.settings: answers.ServerSettings | None = None
        self._asking = asyncio.Semaphore(QUESTIONS_AT_ONCE)
        self._listings: dict[str, _Listing] = {}

    @staticmethod
    def request_words(job: Job, machine: Machine) -> list[str]:
        return request_words(job, machine)

    @property
    def largest_array(self) -> int:
        return (self.settings or answers.ServerSettings()).largest_array

    async def learn_config(self) -> None:
        if self.settings is None:
            line = ("qstat", "-B", "-f", "-F", "json")
            self.settings = await self._ask(answers.parse_server, *line)

    def write(self, folder: Path, submission: Submission) -> None:
        line = self.line(folder, submission)
        write_submission(folder, submission, "${PBS_ARRAY_INDEX:-0}", line)

    def line(self, folder: Path, submission: Submission) -> list[str]:
        """Return the qsub command of a submission. PBS has no array of one task, and takes no array
        that must not be run again: a job script that is run again finds its run claimed. ``-f``
        keeps qsub from leaving a process in the background, which would hold the file of its
        answer. ``-k d`` spares a copy of the output at each end. With the host localhost the path
        of the output is each node's own: PBS would copy to this host by scp."""
        job = allocation_of(submission, folder)
        tasks = 1 if submission.is_bundle else len(submission.jobs)
        output = f"localhost:{folder}" if _qsub_keeps_localhost() else str(folder)
        line = ["qsub", "-f", "-N", submission.name, "-S", "/bin/bash", "-m", "n", "-j", "oe"]
        if self.settings is not None and self.settings.writes_directly:
            line += ["-k", "doe"]
        if tasks > 1:
            line += ["-J", f"0-{tasks - 1}", "-o", f"{output}/^array_index^.out"]
        else:
            line += ["-r", "n", "-o", f"{output}/0.out"]
        return [*line, *request_words(job, self.machine), str(folder / "job.sh")]

    def request(self, folder: Path, submission: Submission) -> str:
        job = allocation_of(submission, folder)
        return shlex.join(request_words(job, self.machine))

    def parse_answer(self, text: str) -> int | None:
        return answers.parse_job_id(text)

    def task_id(self, array: int, index: int, alone: bool) -> str:
        return str(array) if alone else f"{array}[{index}]"

    def is_alone(self, task: str) -> bool:
        return "[" not in task

    def parse_task_id(self, text: str) -> tuple[int, int]:
        parts = _TASK.fullmatch(text)
        return (int(parts[1]), int(parts[2] or 0)) if parts else (0, 0)

    def first_words(self, text: str) -> str:
        return answers.first_words(text)

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
            counts = self._parsed(answers.parse_counts, "qstat", await self._about(job))
            age = time.monotonic() - last.at
            if counts == last.counts and age < self.machine.batch.poll.seconds:
                return last
            if counts.words and not counts.over and age < LISTING_SHARE * last.took:
                self._expect(LISTING_SHARE * last.took - age, last, counts, age)
                return last
        began = time.monotonic()
        text = await self._about("-t", job)
        states = self._parsed(answers.parse_qstat, "qstat", text)
        now = time.monotonic()
        listing = _Listing(states, answers.parse_counts(text), now, now - began)
        if last is not None and listing.counts != last.counts:
            self._expect(LISTING_SHARE * listing.took, last, listing.counts, now - last.at)
        return listing

    def _expect(
        self, listing: float, last: _Listing, counts: answers.ArrayCounts, age: float
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
        lines = [each for each in errors.splitlines() if each.strip()]
        if code != 0 and "not configured to maintain job history" in errors:
            self.settings = None  # it was turned off
            raise Unanswered("qstat", "qstat: the server keeps no history any more")
        if code != 0 and not (lines and all(map(answers.UNKNOWN.search, lines))):
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
        jobs = await self._ask(answers.parse_qselect, "qselect", *history, "-N", name)
        return min(jobs, default=None)

    async def nodes(self) -> dict[str, str]:
        line = ("pbsnodes", "-a", "-F", "json")
        nodes = await self._ask(answers.parse_pbsnodes, *line)
        return self.of_machine(nodes)


# ---- what a job asks for -------------------------------------------------------------------------


@functools.cache
def _qsub_keeps_localhost() -> bool:
    """Return whether the canonical name of localhost is localhost. qsub writes the canonical name,
    such as localhost.localdomain, and the nodes take that for another host."""
    try:
        return socket.getaddrinfo("localhost", None, flags=socket.AI_CANONNAME)[0][3] == "localhost"
    except OSError:
        return False


def request_words(job: Job, machine: Machine) -> list[str]:
    """Return the options of qsub by which a job asks for its nodes, its time and its queue."""
    pbs = value_of(machine, "pbs", Pbs)
    options = effective(pbs, job.options)
    words = ["-l", f"select={_select(job, options, pbs.select)}"]
    words += ["-l", f"place={_place(job, pbs.place)}"]
    words += ["-l", f"walltime={max(1, math.ceil(job.walltime))}"]
    for option, value in (
        ("-q", options.reservation or options.partition),
        ("-A", options.account),
        ("-P", pbs.project),
    ):
        words += [option, value] if value else []
    return [*words, *options.options]


def _select(job: Job, options: JobOptions, more: str) -> str:
    """Return the chunks of a job: one for each of its nodes."""
    chunk = [
        f"{job.nodes}:ncpus={job.tasks_per_node * job.threads}",
        f"mpiprocs={job.tasks_per_node}",
        f"ompthreads={job.threads}",
    ]
    gpus = options.gpus_per_node or options.gpus_per_task * job.tasks_per_node
    chunk += [f"ngpus={gpus}"] if gpus else []
    chunk += [f"mem={math.ceil(options.memory / 2**20)}mb"] if options.memory else []
    chunk += [feature if "=" in feature else f"{feature}=True" for feature in job.features]
    chunk += [f"host={job.node}"] if job.node else []
    return ":".join([*chunk, *filter(None, re.split(":", more))])


def _place(job: Job, place: str) -> str:
    return f"{place}:excl" if job.exclusive and "excl" not in place else place
