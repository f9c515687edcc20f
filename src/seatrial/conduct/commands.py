"""What the conductor asks for. A driver carries it out and answers with events."""

from __future__ import annotations

from typing import NamedTuple


class StartBuild(NamedTuple):
    """Start the build of that key."""

    key: str


class Launch(NamedTuple):
    """Give a new run of a case to the backend. ``case`` is its position in the trial."""

    case: int
    run_id: str


class Reject(NamedTuple):
    """Record a run that cannot start, with its verdict code and why."""

    case: int
    run_id: str
    code: int
    why: str


class Cancel(NamedTuple):
    """End a run that is in flight."""

    run_id: str


class Finish(NamedTuple):
    """Nothing is left to do; ``complete`` is False where cases remain that were not started."""

    complete: bool
    why: str


Command = StartBuild | Launch | Reject | Cancel | Finish
