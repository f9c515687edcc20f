"""A job as the simulated cluster keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.backends.simulated.jobs import SimulatedJob

if TYPE_CHECKING:
    from seatrial.backends.simulated.queue import Queue
    from seatrial.backends.simulated.sharing import SpeedGroup


class JobRecord:
    """Times are ns. ``told`` is whether anybody outside asked for the job (background jobs are
    nobody's). ``nodes`` are bits, see ``names``; 0 before it starts; ``where`` the same as text.
    ``limit`` is when its walltime ends; ``began`` and ``left`` are of its script, as soon as they
    are known. ``group`` is where its script shares a file system. ``over``: it has ended, and
    events of it that still come mean nothing."""

    __slots__ = (
        "began",
        "elapsed",
        "group",
        "id",
        "job",
        "keeps",
        "left",
        "limit",
        "line",
        "need",
        "nodes",
        "number",
        "over",
        "pool",
        "queue",
        "told",
        "walltime",
        "where",
    )

    def __init__(
        self, job: SimulatedJob, told: bool, elapsed: int, keeps: int, walltime: int
    ) -> None:
        self.job = job
        self.told = told
        self.elapsed = elapsed
        self.keeps = keeps
        self.walltime = walltime
        self.need = job.nodes
        self.nodes = 0
        self.where = ""
        self.limit = self.began = self.left = 0
        self.over = False
        self.group: SpeedGroup | None = None
        self.queue: Queue | None = None
        self.id = self.pool = self.line = self.number = 0
