"""The checksums of a journal's lines.

    {"event":"job_start","time":1795293735585925870,...,"nodes":"n001","crc":"1c291ca3"}

The last member of a line is the CRC-32 of the line up to that member, continued from the end of the
line before it. So it is the CRC-32 of the whole journal up to there, from its first line with a
checksum or the latest one without. A line is wrong where a bit of it changed, and where it does not
follow the line that it was written after: lines are missing between them, or stand there twice.

To check many lines takes one pass over their bytes. To check one takes the 19 bytes before it.
Lines without a checksum (of version 0.1, or written by a job) are not checked.
"""

import re
import zlib

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
