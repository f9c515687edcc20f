"""What a simulated cluster is given, and what it tells beside a backend's usual updates."""

from __future__ import annotations

from msgspec import Struct


class SimulatedJob(Struct, frozen=True):
    """A run as the simulated cluster sees it: what it asks for, and how it turns out if nothing
    comes between.

    ``walltime``, ``elapsed`` (of its script, with nobody beside it) and ``keeps`` (how long it
    keeps its nodes after that) are in seconds; ``hangs``: the script does not end by itself;
    ``exit_code`` is its script's. Of its time the share ``metadata`` is spent on its metadata
    target, where it holds ``opens`` files open, and the share ``objects`` on the object targets of
    its file system, of which it asks ``bandwidth`` GB/s.
    """

    run_id: str
    nodes: int
    walltime: float
    elapsed: float
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


class Hangs(Struct, frozen=True):
    """The script of a run has started that will not end by itself."""

    run_id: str


class FinishedJob(Struct, frozen=True):
    """A job is over: what ``Ended`` says of it, and what its script wrote: when it began, and when
    it ended by itself (ns; 0: it did not)."""

    run_id: str
    code: int | None
    state: str
    exit_code: int | None
    nodes: str = ""
    began: int = 0
    left: int = 0
