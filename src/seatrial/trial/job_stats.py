"""What Lustre's servers counted for the jobs of runs, asked by a command of the site.

    stats = JobStats(machine.file_use, tasks)
    await stats.collect(run_directory)      # job_stats.txt has the sums of the run's job

Runs that end at the same time share an answer: the first one that was asked for after they ended.
"""

import asyncio
from pathlib import Path

from seatrial.files import replace_file
from seatrial.machine.model import FileUse
from seatrial.runs.daemon_thread import run_in_thread
from seatrial.runs.shell import CommandResult, Shell
from seatrial.suite.run_settings import JOB_STATS_FILE
from seatrial.trial.tasks import Tasks
from seatrial.verify.file_use import job_number, sums_of_job, text_of_sums

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
                        why = f"it printed more than {LONGEST_ANSWER >> 20} MiB"
                        self._answer = CommandResult("", why)
                return self._answer
        finally:
            self._sharing -= 1
            if not self._sharing:  # it may be large
                self._answer = CommandResult("", "")

    def _tell(self, why: str) -> None:
        if not self._told:
            self._told = True
            text = f"file_use.job_stats: {why}; runs have no figures of Lustre's servers"
            self._tasks.alert("job_stats", "", text)


def _keep(folder: Path, number: str, sums: dict[str, int]) -> None:
    """Write job_stats.txt. Raises OSError."""
    replace_file(folder / JOB_STATS_FILE, text_of_sums(number, sums).encode())
