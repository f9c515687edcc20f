"""What events are sent to: one small protocol.

pieces = target.pieces(event, number)        # of which requests are made
reply = target.send(pieces)                  # never raises for what the other side does
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from seatrial.journal.events import Event

Fate = Literal["taken", "again", "smaller"]


class Reply(NamedTuple):
    """What became of a request. ``again``: later, after ``wait`` seconds at least; ``smaller``: in
    smaller pieces, and never where it is one already. ``lost`` are the pieces of a request that was
    taken which were not. ``why`` is for people."""

    fate: Fate
    why: str = ""
    lost: int = 0
    wait: float = 0.0


class SinkTarget(Protocol):
    """``shown`` is what people may see of it; ``folds``: what it makes of an event depends on the
    events before, so it must be told all of them."""

    shown: str
    folds: bool

    def pieces(self, event: Event, number: int) -> list[bytes]:
        """What is sent of an event, the ``number``-th of its journal."""
        ...

    def send(self, pieces: Sequence[bytes]) -> Reply:
        """Send some pieces in one request."""
        ...

    def close(self) -> None: ...
