r"""Write InfluxDB's line protocol: one point a line, escaped as InfluxData specifies it.

    line("events", tag_text({"app": "x y"}), field_text({"value": 1.5, "why": 'a "b"'}), 10)
    # events,app=x\ y value=1.5,why="a \"b\"" 10

A backslash escapes comma, blank and equals sign in measurements, keys and tags, and quotes and
backslashes in strings. What the protocol cannot hold is replaced: control characters in keys and
tags become blanks, and a backslash that would escape the next character becomes a slash. Empty tags
and numbers that are not finite are omitted.
"""

import math
from collections.abc import Mapping
from functools import lru_cache

from seatrial.lazy import regex

LONGEST_STRING = 65_000  # bytes; InfluxDB accepts 64 KiB
LONGEST_TAG = 512

_PLAIN = regex(r"[A-Za-z0-9_.:/+@%-]*")
_CONTROL = regex(r" *[\x00-\x1f\x7f\x85\u2028\u2029][\x00-\x20\x7f\x85\u2028\u2029]*")
_ESCAPING = regex(r"\\(?=[,= \"\\]|$)")
_SPECIAL = regex(r"([,= ])")
_INTEGER_LIMIT = 1 << 63


def tag_text(tags: Mapping[str, str]) -> str:
    """Return ``,key=value`` for each tag that is not empty, sorted, as InfluxDB recommends."""
    return "".join(
        f",{key_text(key)}={text}"
        for key, value in sorted(tags.items())
        if (text := key_text(value))
    )


def field_text(fields: Mapping[str, str | int | float | bool | None]) -> str:
    """Return ``key=value`` for every field that has a value, joined by commas; "" for none. Numbers
    are written as floats, so that a field never changes its type."""
    texts = []
    for key, value in fields.items():
        if isinstance(value, str):
            texts.append(f"{key_text(key)}={string_text(value)}")
        elif isinstance(value, bool):
            texts.append(f"{key_text(key)}={'true' if value else 'false'}")
        elif value is not None and (number := _number_text(value)):
            texts.append(f"{key_text(key)}={number}")
    return ",".join(texts)


def line(measurement: str, tags: str, fields: str, time: int) -> bytes:
    """Return the line of a point, without a line end; ``time`` in ns since the epoch."""
    return f"{measurement}{tags} {fields} {time}".encode("utf-8", "replace")


@lru_cache(maxsize=4096)  # the same keys and tags are in every line
def key_text(text: str) -> str:
    """Return the key or value of a tag, or the key of a field, escaped."""
    if _PLAIN.fullmatch(text) and len(text) <= LONGEST_TAG:
        return text
    text = _CONTROL.sub(" ", text[:LONGEST_TAG]).strip()
    return _SPECIAL.sub(r"\\\1", _ESCAPING.sub("/", text))


def string_text(text: str) -> str:
    text = text[:LONGEST_STRING].replace("\0", "")
    if 4 * len(text) > LONGEST_STRING:
        text = text.encode(errors="replace")[:LONGEST_STRING].decode(errors="ignore")
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _number_text(value: float) -> str:
    if isinstance(value, int):
        return str(value) if -_INTEGER_LIMIT < value < _INTEGER_LIMIT else ""
    return repr(value) if math.isfinite(value) else ""
