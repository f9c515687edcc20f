"""What is asked of Grid Engine, by its commands."""

import os
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from seatrial.account import name_of
from seatrial.backends import gridengine_batch, gridengine_parse
from seatrial.backends.protocol import Submission
from seatrial.backends.qdel_client import QdelClient
from seatrial.backends.scheduler_client import Unanswered
from seatrial.backends.task_states import TaskKey, TaskState
from seatrial.lazy import regex
from seatrial.machine.gridengine_hosts import COMMAND
from seatrial.machine.model import Machine

PATIENCE = 30.0  # seconds for an account beyond those after which it is written

# Variables that a job has, which would be those of a job that submits jobs.
_MISLEADING = regex(r"SGE_(TASK_\w+|O_\w+|ND|DEBUG_LEVEL|LONG_QNAMES)|JOB_\w+|PE\w*")
_TASK = regex(r"(-?[0-9]+)\.([0-9]+)")


class GridEngineClient(QdelClient):
    """The client of one cell of Grid Engine."""

    name = "Grid Engine"
    programs = ("qsub", "qstat", "qdel", "qacct", "qhost", "qconf")
    submits = "qsub"
    temporary = gridengine_parse.TEMPORARY
    unknown = gridengine_parse.UNKNOWN
    kept = frozenset({"LAUNCH_FAILED"})  # Eqw: it would start if somebody clears the error

    def __init__(self, machine: Machine, on_answer: Callable[[str], None]) -> None:
        super().__init__(machine, on_answer, _MISLEADING)
        self.settings: gridengine_parse.CellSettings | None = None
        self._nodes: dict[TaskKey, str] = {}  # of tasks that were seen while they ran
        self._has_accounts = False  # whether qacct could read them when it was last asked
        self._over_since: dict[TaskKey, float] = {}  # of tasks without an account

    @property
    def largest_array(self) -> int:
        return (self.settings or gridengine_parse.CellSettings()).largest_array

    async def learn_config(self) -> None:
        if self.settings is None:
            asked = ("qconf", "-sconf")
            self.settings = await self._ask(gridengine_parse.parse_configuration, *asked)

    def write(self, folder: Path, submission: Submission) -> None:
        gridengine_batch.write(folder, submission, self.machine)

    def line(self, folder: Path, submission: Submission) -> list[str]:
        return gridengine_batch.qsub_line(folder, submission, self.machine)

    def output(self, folder: Path, index: int) -> Path:
        return super().output(folder, index + 1)

    def parse_answer(self, text: str) -> int | None:
        return gridengine_parse.parse_job_id(text)

    def task_id(self, array: int, index: int, alone: bool) -> str:
        return f"{array}.{index + 1}"

    def parse_task_id(self, text: str) -> tuple[int, int]:
        found = _TASK.fullmatch(text)
        return (int(found[1]), int(found[2]) - 1) if found else (0, 0)

    def first_words(self, text: str) -> str:
        return gridengine_parse.first_words(text)

    # ---- asking ---------------------------------------------------------------------------

    async def queue(self, tasks: Iterable[str]) -> list[TaskState]:
        """Return all tasks of this user that Grid Engine has; none of those that have ended."""
        states = await self._listed("prs")
        self._nodes |= {state.key: state.nodes for state in states if state.nodes}
        return states

    async def _listed(self, which: str) -> list[TaskState]:
        line = ("qstat", "-xml", "-g", "dt", "-s", which, "-u", name_of(os.geteuid()))
        return await self._ask(gridengine_parse.parse_qstat, *line)

    async def accounts(self, arrays: Iterable[int]) -> list[TaskState]:
        """Return the tasks of these arrays that have ended: by the accounting, and those that were
        deleted while they waited, of which it has no account."""
        wanted = sorted(arrays)
        found: list[TaskState] = []
        for array in wanted:
            found += await self._accounted(str(array))
        return [*found, *await self._deleted(wanted, {state.key for state in found})]

    async def _deleted(
        self, arrays: Collection[int], accounted: Collection[TaskKey]
    ) -> list[TaskState]:
        """Return the tasks of these arrays that are over, and whose account would have been written
        if they had run."""
        settings = self.settings
        if not arrays or settings is None or not (settings.accounting and self._has_accounts):
            return []
        now, longest = time.monotonic(), settings.account_within + PATIENCE
        over = [state for state in await self._listed("z") if state.array in arrays]
        over = [state for state in over if state.key not in accounted]
        self._over_since = {state.key: self._over_since.get(state.key, now) for state in over}
        return [
            state._replace(state="CANCELLED")
            for state in over
            if now - self._over_since[state.key] > longest
        ]

    async def _accounted(self, which: str) -> list[TaskState]:
        """Return the tasks of a job, by its number or its name, that have ended; none where it has
        none, or the site keeps no accounting."""
        code, out, errors = await self._output("qacct", "-j", which)
        self._has_accounts = not gridengine_parse.NO_ACCOUNTING.search(errors)
        if code != 0 and (gridengine_parse.NO_ACCOUNT.search(errors) or not self._has_accounts):
            self._on_answer("qacct")
            return []
        if code != 0:
            message = self.first_words(errors.strip() or out)
            raise Unanswered("qacct", f"qacct failed: {message}")
        states = self._parsed(gridengine_parse.parse_qacct, "qacct", out)
        return [each._replace(nodes=self._nodes.get(each.key, each.nodes)) for each in states]

    async def find(self, name: str, since: float) -> int | None:
        tasks = [*await self.queue([]), *await self._accounted(name)]
        return max((task.array for task in tasks if task.name == name), default=None)

    async def nodes(self) -> dict[str, str]:
        there = await self._ask(gridengine_parse.parse_nodes, *COMMAND)
        return self.of_machine(there)
