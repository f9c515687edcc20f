"""What the conductor asks for. A driver carries it out and answers with events."""

from __future__ import annotations

from msgspec import Struct


class StartBuild(Struct, frozen=True):
    """Start the build of that key."""

    key: str


class Launch(Struct, frozen=True):
    """Give a new run of a case to the backend. ``case`` is its position in the trial; ``target``
    the metadata target that it is placed on; ``avoid`` are nodes that it must not get; ``stage``
    is ``alone`` or ``full`` where that matters."""

    case: int
    run_id: str
    target: str = ""
    avoid: str = ""
    stage: str = ""


class Reject(Struct, frozen=True):
    """Record a run that cannot start, with its verdict code and why."""

    case: int
    run_id: str
    code: int
    why: str


class Cancel(Struct, frozen=True):
    """End a run that is in flight."""

    run_id: str


class Recall(Struct, frozen=True):
    """Recall a run that waits at the scheduler; one that has started is left alone."""

    run_id: str


class StopTest(Struct, frozen=True):
    """Record that a test is launched no more (``test_stop``)."""

    test: str
    why: str


class ExcludeNodes(Struct, frozen=True):
    """Record that nodes get no more runs of this trial (``node_exclude``)."""

    nodes: str
    why: str


class Alert(Struct, frozen=True):
    """Tell people. ``kind`` and ``subject`` say what it is about: the same is not told again for a
    while, which the alert's event (``alias`` kind, ``test`` subject) makes known."""

    kind: str
    subject: str
    text: str


class Wake(Struct, frozen=True):
    """Nothing may happen, yet at ``time`` (ns) there will be something to decide."""

    time: int


class Finish(Struct, frozen=True):
    """Nothing is left to do; ``complete`` is False where cases remain that were not started."""

    complete: bool
    why: str


Command = (
    StartBuild | Launch | Reject | Cancel | Recall | StopTest | ExcludeNodes | Alert | Wake | Finish
)
