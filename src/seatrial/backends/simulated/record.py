"""A job in a simulated cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.backends.simulated.jobs import SimulatedJob

if TYPE_CHECKING:
    from seatrial.backends.simulated.queue import Queue
    from seatrial.backends.simulated.sharing import SpeedGroup


@dataclass(slots=True, eq=False)
class JobRecord:
    """A job. Times are in ns. ``ours``: its updates are reported, unlike those of background jobs.
    ``nodes`` are bits, see ``names``, 0 before it starts; ``where`` has the same as text. ``limit``
    is the end of its walltime. ``script_started`` and ``script_ended`` are set as soon as they are
    known. ``group`` is that of a script that shares a file system. ``over``: the job has ended, and
    its remaining events are ignored."""

    job: SimulatedJob
    ours: bool
    elapsed: int
    keeps: int
    walltime: int
    need: int
    id: int
    nodes: int = 0
    where: str = ""
    limit: int = 0
    script_started: int = 0
    script_ended: int = 0
    over: bool = False
    group: SpeedGroup | None = None
    queue: Queue | None = None
    pool: int = 0
    line: int = 0
    number: int = 0
