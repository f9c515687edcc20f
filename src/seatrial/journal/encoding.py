"""Events as lines of JSON, lines as events, and the checksums of lines.

    encode(event)                       # b'{"event":"job_start","time":...,"nodes":"n001"}'
    decode(line)                        # an event of the kind that its member `event` names
    events, damaged = decode_block(data)       # of a journal: their checksums are checked

A member of a wrong type takes its default, so that one bad member does not cost its line; a line of
an unknown kind becomes an ``UnknownEvent``, which keeps it.
"""

import contextlib
import functools
import re
import zlib
from collections.abc import Callable, Iterable
from operator import attrgetter, or_
from typing import Any

import msgspec

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
from seatrial.model.file_model import DAMAGED, decoder

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


# ---- checksums -----------------------------------------------------------------------------------
#
#     {"event":"job_start","time":1795293735585925870,...,"nodes":"n001","crc":"1c291ca3"}
#
# The last member of a line is the CRC-32 of the line up to that member, continued from the end of
# the line before it. So it is the CRC-32 of the whole journal up to there, from its first line with
# a checksum or the latest one without. A line is wrong where a bit of it changed, and where it does
# not follow the line that it was written after: lines are missing between them, or stand there
# twice.
#
# To check many lines takes one pass over their bytes. To check one takes the 19 bytes before it.
# Lines without a checksum (of version 0.1, or written by a job) are not checked.


_MEMBER = re.compile(rb',"crc":"([0-9a-f]{8})"\}\n?')
_WITHOUT_END = len(b',"crc":"01234567"}')
ENDING = _WITHOUT_END + 1  # bytes: the checksum of a line and the line's end


def seal(lines: bytes, seed: int) -> tuple[bytes, int]:
    """Add the checksums to whole lines of JSON objects. ``seed`` is that of what they are appended
    to. Returns the lines and the seed of what follows."""
    crc32 = zlib.crc32
    objects = lines.split(b"}\n")
    del objects[-1]  # behind the last line
    sealed = []
    crc, ending = seed, b""
    for object_ in objects:  # often 100,000 of them a second
        piece = ending + object_
        crc = crc32(piece, crc)
        ending = b',"crc":"%08x"}\n' % crc
        sealed.append(piece)
    sealed.append(ending)
    return b"".join(sealed), crc32(ending, crc)


def seed_of(before: bytes) -> int:
    """Return the seed of a line. ``before``: the ``ENDING`` bytes before it, or all if they are
    fewer."""
    stated = _stated(before)
    return 0 if stated is None else zlib.crc32(before, stated)


def unsealed(line: bytes) -> bytes:
    """Return a line, without its end, as it was before its checksum was added."""
    return line if _stated(line[-_WITHOUT_END:]) is None else line[:-_WITHOUT_END] + b"}"


def all_hold(lines: bytes, seed: int) -> bool:
    """Return whether each of some whole lines has a checksum, and all of these are right."""
    stated = _stated(lines[-ENDING:])
    return stated is not None and zlib.crc32(memoryview(lines)[:-ENDING], seed) == stated


def holds(line: bytes, seed: int) -> bool:
    """Return whether a line, without its end, agrees with its checksum. One that has none does."""
    stated = _stated(line[-_WITHOUT_END:])
    return stated is None or zlib.crc32(line[:-_WITHOUT_END], seed) == stated


def _stated(ending: bytes) -> int | None:
    match = _MEMBER.fullmatch(ending)
    return int(match[1], 16) if match else None
