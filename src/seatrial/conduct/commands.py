"""The commands of the conductor. A driver carries them out, and answers with events."""

from __future__ import annotations

from msgspec import Struct


class StartBuild(Struct, frozen=True):
    """Start the build with this key."""

    key: str


class Launch(Struct, frozen=True):
    """Give a new run of a case to the backend. ``case`` is its position in the trial, ``target``
    the metadata target of its directory. ``avoid`` are nodes that it must not get; ``stage`` is
    ``alone`` or ``full`` in a component that compares the two."""

    case: int
    run_id: str
    target: str = ""
    avoid: str = ""
    stage: str = ""


class Reject(Struct, frozen=True):
    """Record a run that cannot start, with its verdict code and the reason."""

    case: int
    run_id: str
    code: int
    reason: str


class Cancel(Struct, frozen=True):
    """End a run that is in flight."""

    run_id: str


class Recall(Struct, frozen=True):
    """Take back a run that waits at the scheduler; a run that has started goes on."""

    run_id: str


class StopTest(Struct, frozen=True):
    """Record that a test is launched no more (``test_stop``)."""

    test: str
    reason: str


class ExcludeNodes(Struct, frozen=True):
    """Record that nodes get no more runs of this trial (``node_exclude``)."""

    nodes: str
    reason: str


class Alert(Struct, frozen=True):
    """Raise an alert. ``kind`` and ``subject`` say what it is about; an alert of the same kind and
    subject is raised again only after a while, which the event of the first makes known."""

    kind: str
    subject: str
    text: str


class Wake(Struct, frozen=True):
    """Decide again at ``time`` (ns), even if no event comes before."""

    time: int


class Finish(Struct, frozen=True):
    """End the drive. ``complete`` is False where cases remain that were not started."""

    complete: bool
    reason: str


Command = (
    StartBuild | Launch | Reject | Cancel | Recall | StopTest | ExcludeNodes | Alert | Wake | Finish
)
