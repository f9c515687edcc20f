"""The jobs that a simulated cluster accepts, its records of them, and the updates that only it
reports."""

from typing import TYPE_CHECKING

from msgspec import Struct

from seatrial.backends.protocol import Ended

if TYPE_CHECKING:
    from seatrial.backends.simulated.queue import Queue
    from seatrial.backends.simulated.sharing import SpeedGroup


class SimulatedJob(Struct, frozen=True):
    """A run as the simulated cluster sees it: its request, and its course if nothing disturbs it.

    ``cores`` are those that it takes of a shared node, 0 elsewhere. ``walltime``, ``elapsed`` (of
    its script, alone on its servers) and ``keeps`` (for which it keeps its nodes after that) are in
    seconds; ``hangs``: the script does not end by itself; ``exit_code`` is that of its script. The
    share ``metadata`` of its time is spent on its metadata target, where it holds ``opens`` files
    open. The share ``objects`` is spent on the object targets of its file system, of which it asks
    ``bandwidth`` GB/s. The scheduler refuses it for the reason ``refused``, or does not start it
    before ``held_until`` (ns).
    """

    run_id: str
    nodes: int
    walltime: float
    elapsed: float
    cores: int = 0
    exit_code: int = 0
    hangs: bool = False
    keeps: float = 0.0
    avoid: str = ""
    node: str = ""
    partition: str = ""
    file_system: str = ""
    target: str = ""
    opens: float = 0.0
    metadata: float = 0.0
    objects: float = 0.0
    bandwidth: float = 0.0
    refused: str = ""
    held_until: int = 0


class Hangs(Struct, frozen=True):
    """The script of a run has started, and will not end by itself."""

    run_id: str


class FinishedJob(Ended, frozen=True):
    """A job is over. Has also the start and the end of its script (ns; 0: there was none)."""

    script_started: int = 0
    script_ended: int = 0


class JobRecord(Struct, eq=False):
    """A job. Times are in ns. ``ours``: its updates are reported, unlike those of background jobs.
    ``nodes`` are bits, see ``names``, 0 before it starts; ``where`` has the same as text. ``limit``
    is the end of its walltime. ``script_started``, ``script_ended`` and ``over_at``, the time at
    which it ends by itself, are set as soon as they are known. ``group`` is that of a script that
    shares a file system. ``over``: the job has ended, and its remaining events are ignored."""

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
    over_at: int = 0
    over: bool = False
    group: "SpeedGroup | None" = None
    queue: "Queue | None" = None
    pool: int = 0
    line: int = 0
    number: int = 0
