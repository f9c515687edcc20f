"""Events as lines of JSON, and lines as events.

    encode(event)                       # b'{"event":"job_start","time":...,"nodes":"n001"}'
    decode(line)                        # an event of the kind that its member `event` names
    events, damaged = decode_block(data)       # of a journal: their checksums are checked

A member of a wrong type takes its default, so that one bad member does not cost its line; a line of
an unknown kind becomes an ``UnknownEvent``, which keeps it.
"""

import contextlib
import functools
from collections.abc import Callable, Iterable
from operator import attrgetter, or_
from typing import Any

import msgspec

from seatrial.journal.checksum import ENDING, all_hold, holds, seed_of, unsealed
from seatrial.journal.events import (
    EVENT_KINDS,
    BuildEnded,
    Event,
    RunJudged,
    RunJudgedAgain,
    TrialEnded,
    UnknownEvent,
)
from seatrial.model.codes import CHECK_ERROR, FAILED
from seatrial.model.decoding import DAMAGED, decoder

_MAX_TIME = 1 << 62  # what a database can hold, and twice as late as any clock

# What a required member is taken for where a line has none, or one of another type.
_SUBSTITUTES: dict[tuple[type[Event], str], Any] = {
    (RunJudged, "code"): CHECK_ERROR.number,
    (RunJudgedAgain, "code"): CHECK_ERROR.number,
    (BuildEnded, "code"): FAILED.number,
    (TrialEnded, "failed"): 1,
}

_encoder = msgspec.json.Encoder()


@functools.cache
def _decoder() -> msgspec.json.Decoder[Event]:
    """Return the decoder of all kinds, made at the first use: to make it takes 15 ms,
    which a command that reads no journal does not pay."""
    return decoder(functools.reduce(or_, EVENT_KINDS.values()))


def encode(event: Event) -> bytes:
    """Return the event's line, without its end."""
    return event.raw if isinstance(event, UnknownEvent) else _encoder.encode(event)


def encode_lines(events: Iterable[Event]) -> bytes:
    """Return the lines of events of known kinds, each with its end."""
    return _encoder.encode_lines(events)


def decode(line: bytes) -> Event:
    """Decode one line. A member of a wrong type takes its default. Raises one of ``DAMAGED`` where
    the line is no JSON object with a ``time`` and an ``event``."""
    try:
        event = _decoder().decode(line)
    except msgspec.ValidationError:
        return _decode_leniently(line)
    if not event.time:
        _require_time(msgspec.json.decode(line))
    return event


def _decode_leniently(line: bytes) -> Event:
    """Decode a line of an unknown kind, or one with members of a wrong type."""
    written: Any = msgspec.json.decode(line)
    _require_time(written)
    name = written.get("event")
    if not isinstance(name, str):
        raise msgspec.ValidationError("no event")
    kind = EVENT_KINDS.get(name, UnknownEvent)
    values: dict[str, Any] = (
        {"kind": name, "raw": unsealed(line.strip())} if kind is UnknownEvent else {}
    )
    for about in _members_of(kind):
        if about.encode_name in written and about.name not in values:
            with contextlib.suppress(msgspec.ValidationError):
                values[about.name] = msgspec.convert(written[about.encode_name], about.type)
        if about.required and about.name not in values:
            values[about.name] = _SUBSTITUTES.get((kind, about.name), 0)
    return kind(**values)


@functools.cache
def _members_of(kind: type[Event]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def _require_time(written: Any) -> None:
    time = written.get("time") if isinstance(written, dict) else None
    if not isinstance(time, int) or isinstance(time, bool):
        raise msgspec.ValidationError("no time")


def decode_lines(lines: Iterable[bytes], seed: int = 0) -> tuple[list[Event], int]:
    """Decode JSON lines of a journal; ``seed`` is that of the first. Returns the events and the
    number of damaged lines: neither an event nor blank, or with a wrong checksum."""
    events: list[Event] = []
    damaged = 0
    for line in lines:
        expected, seed = seed, seed_of(line[1 - ENDING :] + b"\n")
        if not holds(line, expected):
            damaged += 1
            continue
        try:
            event = decode(line)
        except DAMAGED:
            damaged += bool(line.strip())
            continue
        if 0 <= event.time < _MAX_TIME:
            events.append(event)
        else:
            damaged += 1
    return events, damaged


def decode_block(data: bytes, seed: int = 0) -> tuple[list[Event], int]:
    """Decode whole lines with their ends, as ``decode_lines`` does: all at once where each line is
    one event of a known kind, which takes half as long."""
    sealed = all_hold(data, seed)  # then each line is an object, as the journal wrote it
    if sealed or (b',"crc":"' not in data and _are_objects(data)):
        try:
            events = _decoder().decode_lines(data)
        except DAMAGED:
            return decode_lines(data.split(b"\n"), seed)
        times = [event.time for event in events]
        whole = sealed or len(events) == data.count(b"\n")
        if whole and min(times) > 0 and max(times) < _MAX_TIME:
            return events, 0
    return decode_lines(data.split(b"\n"), seed)


def _are_objects(data: bytes) -> bool:
    """Return whether each of some whole lines is an object, if all of them are valid JSON: within
    an object no "{" follows a "}"."""
    ends = data.count(b"\n") - 1
    return data[:1] == b"{" and data[-2:] == b"}\n" and data.count(b"}\n{") == ends


def members(kind: type[Event], *names: str) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that reads two members or more of an event of this kind by their names on
    disk, such as ``value``, ``alias`` and ``text``, or of a property of its own: None for what the
    kind does not have."""
    attributes = {about.encode_name: about.name for about in msgspec.structs.fields(kind)}
    named = (attributes.get(name, name if name in vars(kind) else "nothing") for name in names)
    return attrgetter(*named)
