"""What events are sent to: one small protocol, and one of each kind.

target = target_of(sink, about)
pieces = target.pieces(event, number)        # of which requests are made
reply = target.send(pieces)                  # never raises for what the other side does
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from seatrial.journal.events import Event
from seatrial.machine.sinks import Sink, path_of
from seatrial.sinks.about import About

Fate = Literal["taken", "again", "smaller"]


class Reply(NamedTuple):
    """What became of a request. ``again``: later, after ``wait`` seconds at least; ``smaller``: in
    smaller pieces, and never where it is one already. ``lost`` are the pieces of a request that was
    taken which were not. ``why`` is for people."""

    fate: Fate
    why: str = ""
    lost: int = 0
    wait: float = 0.0


class Target(Protocol):
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


def planned(sink: Sink) -> str:
    """What people are shown of a sink's target before there is one."""
    if sink.kind == "file":
        return str(path_of(sink.path))
    if sink.url.startswith(("env:", "file:")):
        return sink.url
    from urllib.parse import urlsplit

    from seatrial.sinks.post import shown_url

    try:
        return shown_url(urlsplit(sink.url))
    except ValueError:  # told when it is used
        return ""


def target_of(sink: Sink, about: About) -> Target:
    """The target that a machine's file describes. Raises UsageError where its secrets or its
    certificates are not to be had."""
    if sink.kind == "influxdb":
        from seatrial.sinks.influxdb import InfluxDB

        return InfluxDB(sink, about)
    if sink.kind == "webhook":
        from seatrial.sinks.webhook import Webhook

        return Webhook(sink)
    from seatrial.sinks.lines_file import LinesFile

    return LinesFile(sink, about.tag)
