"""The interface of the systems that events are sent to.

pieces = target.pieces(event, number)        # a request consists of some pieces
reply = target.send(pieces)                  # failures of the other side do not raise
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from seatrial.journal.encoding import encode
from seatrial.journal.events import Event

BEGINNING = b'{"seq":'  # of a record

CaseName = Callable[[str], str]  # the name of a case by its id, "" if it is not known
Fate = Literal["taken", "again", "smaller"]


class Reply(NamedTuple):
    """What became of a request. ``fate``: "taken", "again" (send it again after ``wait`` seconds or
    more) or "smaller" (send it in halves; a single piece is refused). ``lost``: how many pieces of
    a request that was taken were refused. ``why``: the reason, for people."""

    fate: Fate
    why: str = ""
    lost: int = 0
    wait: float = 0.0


class SinkTarget:
    """A system that events are sent to: as JSON records, unless it makes other ``pieces``.
    ``shown``: its host or file, without secrets. ``folds``: the pieces of an event depend on the
    events before it, so that it must be passed all of them."""

    shown: str
    folds = False

    def pieces(self, event: Event, number: int) -> list[bytes]:
        """Return what is sent for an event, the ``number``-th of its journal."""
        return [record(event, number)]

    def send(self, pieces: Sequence[bytes]) -> Reply:
        """Send pieces in one request; return what became of it."""
        raise NotImplementedError

    def close(self) -> None:
        pass


def record(event: Event, number: int) -> bytes:
    """Return an event's record in the journal as JSON, with its number as ``seq``."""
    return BEGINNING + b"%d," % number + encode(event)[1:]
