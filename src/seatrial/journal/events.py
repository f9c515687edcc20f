"""An event: one immutable fact with a time, about a run or a trial; one line of JSON each."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``time`` is in nanoseconds since the epoch, UTC. ``value`` is a number for codes and figures.

    ``case`` and ``run_id`` are empty for events about the trial or a build; a build's ``path`` is
    its directory and its ``alias`` the build's key; that of an event that was asked for is the
    request's file. ``unit`` and ``better`` belong to metrics;
    ``again`` to a verdict that does not stand, as the case runs again. ``target`` is the metadata
    target that a run was placed on, ``stage`` the part of an isolated-then-full component that it
    belongs to (``alone`` or ``full``); both come with ``submit_start``.
    """

    time: int
    event: str
    trial: str = ""
    machine: str = ""
    app: str = ""
    test: str = ""
    case: str = ""
    run_id: str = ""
    value: int | float | str | None = None
    alias: str = ""
    text: str = ""
    path: str = ""
    job_id: str = ""
    nodes: str = ""
    unit: str = ""
    better: str = ""
    again: bool = False
    target: str = ""
    stage: str = ""


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Event).decode

_LATEST = 1 << 62  # what a database can hold, and twice as late as any clock


def decode_lines(lines: Iterable[bytes]) -> tuple[list[Event], int]:
    """The events of the lines that are some, and how many others there are, blank ones aside."""
    events: list[Event] = []
    damaged = 0
    for line in lines:
        try:
            event = decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            damaged += bool(line.strip())
            continue
        if 0 <= event.time < _LATEST:
            events.append(event)
        else:
            damaged += 1
    return events, damaged
