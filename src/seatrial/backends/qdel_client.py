"""What PBS and Grid Engine share: jobs that ``qdel`` deletes, in whatever state they are."""

import re
from collections.abc import Sequence
from typing import ClassVar

from seatrial.backends.scheduler_client import SchedulerClient, groups
from seatrial.backends.task_states import TaskState
from seatrial.machine.facts import node_names


class QdelClient(SchedulerClient):
    """The client of a scheduler whose jobs are deleted by ``qdel``."""

    unknown: ClassVar[re.Pattern[str]]
    """Errors of qdel about jobs that are over, or that the scheduler does not have."""

    async def fresh(self, tasks: Sequence[str]) -> list[TaskState]:
        """Return these tasks as they are now, and perhaps others."""
        return await self.queue(tasks)

    async def job(self, job_id: str) -> TaskState | None:
        found = await self.fresh([job_id])
        key = self.parse_task_id(job_id)
        return next((each for each in found if (each.array, each.task) == key), None)

    async def cancel(self, tasks: Sequence[str], pending_only: bool = False) -> None:
        """Delete tasks. qdel cannot be told to delete waiting ones alone, so their states are asked
        right before; a task that starts between is deleted, too."""
        if pending_only:
            states = await self.fresh(tasks)
            waiting = {(each.array, each.task) for each in states if each.state == "PENDING"}
            tasks = [task for task in tasks if self.parse_task_id(task) in waiting]
        for some in groups(tasks):
            await self._tell(self.unknown, "qdel", *some)

    async def on_each_node(self, task: str, nodes: int, words: Sequence[str]) -> str:
        """Return nothing: programs beside a job are started from within the job alone."""
        return ""

    def of_machine(self, reasons: dict[str, str]) -> dict[str, str]:
        """Return the nodes of the machine alone, each with the reason why it takes no jobs."""
        ours = set(node_names(self.machine))
        return {node: reason for node, reason in reasons.items() if node in ours}
