"""A job in a simulated cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.backends.simulated.jobs import SimulatedJob

if TYPE_CHECKING:
    from seatrial.backends.simulated.queue import Queue
    from seatrial.backends.simulated.sharing import SpeedGroup


class JobRecord:
    """A job. Times are in ns. ``ours``: its updates are reported, unlike those of background jobs.
    ``nodes`` are bits, see ``names``, 0 before it starts; ``where`` has the same as text. ``limit``
    is the end of its walltime. ``script_started`` and ``script_ended`` are set as soon as they are
    known. ``group`` is that of a script that shares a file system. ``over``: the job has ended, and
    its remaining events are ignored."""

    __slots__ = (
        "elapsed",
        "group",
        "id",
        "job",
        "keeps",
        "limit",
        "line",
        "need",
        "nodes",
        "number",
        "ours",
        "over",
        "pool",
        "queue",
        "script_ended",
        "script_started",
        "walltime",
        "where",
    )

    def __init__(
        self, job: SimulatedJob, ours: bool, elapsed: int, keeps: int, walltime: int
    ) -> None:
        self.job = job
        self.ours = ours
        self.elapsed = elapsed
        self.keeps = keeps
        self.walltime = walltime
        self.need = job.nodes
        self.nodes = 0
        self.where = ""
        self.limit = self.script_started = self.script_ended = 0
        self.over = False
        self.group: SpeedGroup | None = None
        self.queue: Queue | None = None
        self.id = self.pool = self.line = self.number = 0
