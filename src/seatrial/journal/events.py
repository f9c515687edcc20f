"""An event: one immutable fact with a time, about a run or a trial; one line of JSON each."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from seatrial.decoding import DAMAGED


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


_encoder = msgspec.json.Encoder()
encode, encode_lines = _encoder.encode, _encoder.encode_lines
_decoder = msgspec.json.Decoder(Event)
decode, _decode_all = _decoder.decode, _decoder.decode_lines

_LATEST = 1 << 62  # what a database can hold, and twice as late as any clock


def finite(value: int | float | str | None) -> float | None:
    """An event's value as a number; None where it is none, or not finite."""
    if value is None or isinstance(value, str):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def decode_lines(lines: Iterable[bytes]) -> tuple[list[Event], int]:
    """The events of the lines that are some, and how many others there are, blank ones aside."""
    events: list[Event] = []
    damaged = 0
    for line in lines:
        try:
            event = decode(line)
        except DAMAGED:
            damaged += bool(line.strip())
            continue
        if 0 <= event.time < _LATEST:
            events.append(event)
        else:
            damaged += 1
    return events, damaged


def decode_block(data: bytes) -> tuple[list[Event], int]:
    """As ``decode_lines``, of whole lines with their ends: all at once where each line is one
    event, which takes half as long."""
    count = data.count(b"\n")
    # Within an object no "{" follows a "}", so each line is whole; then there are as many as lines.
    if data[:1] == b"{" and data[-2:] == b"}\n" and data.count(b"}\n{") == count - 1:
        try:
            events = _decode_all(data)
        except DAMAGED:
            return decode_lines(data.split(b"\n"))
        times = [event.time for event in events]
        if len(events) == count and min(times) >= 0 and max(times) < _LATEST:
            return events, 0
    return decode_lines(data.split(b"\n"))
