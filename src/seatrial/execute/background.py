"""Background tasks of a driver, until they are done or all are ended; what they ask of the site."""

import asyncio
import contextlib
import math
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from seatrial.execute.backends import Update
from seatrial.execute.beside_loop import CommandResult, Shell, run_in_thread
from seatrial.execute.requests import WaitingRequest
from seatrial.files import replace_file
from seatrial.journal.events import AlertRaised, Event, GaugeRead
from seatrial.judge.file_use import job_number, sums_of_job, text_of_sums
from seatrial.model.machine import FileUse, Gauge, Machine
from seatrial.model.policy import Policy
from seatrial.model.run_settings import JOB_STATS_FILE


class BackgroundTasks:
    """Tasks of the running loop. ``on_failure`` gets the error of each that fails."""

    def __init__(self, on_failure: Callable[[BaseException], None]) -> None:
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(error)

    async def end(self) -> None:
        """Cancel all tasks, and wait for them."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# ---- tasks ---------------------------------------------------------------------------------------
#
# The background tasks of a driver, and the inbox through which they report to its loop.


News = Update | Event | WaitingRequest | None
"""None makes the loop ask the conductor again, though there is nothing to record."""


class Tasks(BackgroundTasks):
    """The background tasks, whose failure ends the drive, and the inbox of updates, events and
    failures: that of the backend."""

    def __init__(self, inbox: asyncio.Queue[Any]) -> None:
        super().__init__(self.fail)
        self.inbox: asyncio.Queue[News | BaseException] = inbox

    def put(self, update: Update | Event | WaitingRequest) -> None:
        self.inbox.put_nowait(update)

    def alert(self, kind: str, subject: str, text: str) -> None:
        self.put(AlertRaised(kind=kind, subject=subject, text=text))

    def fail(self, error: BaseException) -> None:
        """End the drive with an error, after the updates that came before."""
        self.inbox.put_nowait(error)

    def nudge(self) -> None:
        self.inbox.put_nowait(None)


# ---- counters of jobs ----------------------------------------------------------------------------
#
# What Lustre's servers counted for the jobs of runs, asked by a command of the site.
#
#     stats = JobStats(machine.file_use, tasks)
#     await stats.collect(run_directory)      # job_stats.txt has the sums of the run's job
#
# Runs that end at the same time share an answer: the first one that was asked for after they ended.


LONGEST_ANSWER = 64 << 20  # bytes; an entry of a job has 1 to 2 KiB on each target


class JobStats:
    """Asks for the counters of jobs, one command at a time. If it fails, runs have no such figures,
    and people are told once."""

    def __init__(self, about: FileUse, tasks: Tasks) -> None:
        self._form = about.job_id
        self._shell = Shell(about.job_stats, about.timeout.seconds, LONGEST_ANSWER)
        self._tasks = tasks
        self._turn = asyncio.Lock()
        self._asked = -1.0  # when the last answer was asked for
        self._answer = CommandResult("", "")
        self._sharing = 0
        self._told = False

    async def collect(self, folder: Path) -> None:
        """Write the sums of the job of the run in ``folder``, which has ended, to its directory."""
        number = await run_in_thread(lambda: job_number(folder), "job_stats")
        if not number:
            return
        answer = await self._after(asyncio.get_running_loop().time())
        if answer.failure:
            self._tell(answer.failure)
            return

        def keep() -> None:
            _keep(folder, number, sums_of_job(answer.output, self._form, number))

        try:
            await run_in_thread(keep, "job_stats")
        except OSError as error:
            self._tell(f"{folder / JOB_STATS_FILE}: {error.strerror}")

    async def _after(self, time: float) -> CommandResult:
        """Return an answer that was asked for at a time of the loop's clock or later."""
        self._sharing += 1
        try:
            async with self._turn:
                if self._asked <= time:
                    self._asked = asyncio.get_running_loop().time()
                    self._answer = await self._shell.run()
                    if len(self._answer.output) >= LONGEST_ANSWER:
                        reason = f"it printed more than {LONGEST_ANSWER >> 20} MiB"
                        self._answer = CommandResult("", reason)
                return self._answer
        finally:
            self._sharing -= 1
            if not self._sharing:  # it may be large
                self._answer = CommandResult("", "")

    def _tell(self, reason: str) -> None:
        if not self._told:
            self._told = True
            text = f"file_use.job_stats: {reason}; runs have no figures of Lustre's servers"
            self._tasks.alert("job_stats", "", text)


def _keep(folder: Path, number: str, sums: dict[str, int]) -> None:
    """Write job_stats.txt. Raises OSError."""
    replace_file(folder / JOB_STATS_FILE, text_of_sums(number, sums).encode())


# ---- gauges --------------------------------------------------------------------------------------
#
# Reads the gauges of a trial in the background: those of its throttles and metadata targets, and
# those that are to be sampled.


LONGEST_QUOTE = 60


class GaugeWatch:
    """Reads gauges of a machine, each at its interval."""

    def __init__(self, machine: Machine, tasks: Tasks) -> None:
        self._gauges = machine.all_gauges
        self._tasks = tasks
        self._watched: set[str] = set()

    def watch(self, policy: Policy) -> None:
        """Start to read the gauges of a policy that are not read yet. Others are read on: a change
        of the policy may need them again."""
        throttling = {each.gauge for each in policy.throttles}
        for name in policy.gauges:
            if name not in self._watched:
                self._watched.add(name)
                tell = self._tell_failure if name not in throttling else _tell_nobody
                self._tasks.spawn(_watch(name, self._gauges.get(name), self._tasks, tell))

    def _tell_failure(self, name: str, reason: str) -> None:
        """Tell people of a gauge that no throttle goes by; the conductor tells of others."""
        text = f"gauge {name} fails: {reason}; its readings have a gap"
        self._tasks.alert("gauge", name, text)


Tell = Callable[[str, str], None]


def _tell_nobody(name: str, reason: str) -> None:
    """Do nothing."""


async def _watch(name: str, gauge: Gauge | None, tasks: Tasks, tell: Tell) -> None:
    """Read a gauge at its interval. ``tell`` gets each failure that follows a good reading."""
    if gauge is None:  # the description of the machine has changed
        reason = f"the machine has no gauge {name}"
        tasks.put(GaugeRead(gauge=name, reason=reason))
        tell(name, reason)
        return
    shell = Shell(gauge.command, gauge.timeout.seconds)
    every = gauge.every.seconds
    loop = asyncio.get_running_loop()
    failed = False
    while True:
        began = loop.time()
        value, reason = reading_of(await shell.run())
        took = round(loop.time() - began, 3)
        tasks.put(GaugeRead(gauge=name, value=value, reason=reason, seconds=took))
        if reason and not failed:
            tell(name, reason)
        failed = bool(reason)
        await asyncio.sleep(max(0.0, began + every - loop.time()))


def reading_of(result: CommandResult) -> tuple[float | None, str]:
    """Return the number that a gauge printed, and ""; or None, and the reason."""
    if result.failure:
        return None, result.failure
    first = result.output.strip().partition("\n")[0].strip()
    with contextlib.suppress(ValueError):
        if math.isfinite(value := float(first)):
            return value, ""
    quoted = first[:LONGEST_QUOTE] + ("..." if len(first) > LONGEST_QUOTE else "")
    return None, f"it printed {quoted!r}, which is no number" if first else "it printed nothing"
