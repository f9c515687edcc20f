r"""InfluxDB's line protocol: one point a line, escaped as InfluxData specifies it.

    line("events", tag_text({"app": "x y"}), field_text({"value": 1.5, "why": 'a "b"'}), 10)
    # events,app=x\ y value=1.5,why="a \"b\"" 10

A measurement escapes comma and blank, keys and tags the equals sign, too, with a backslash; strings
escape quotes and backslashes. What the protocol cannot hold is made good: control characters of
keys and tags become blanks, a backslash where it would escape what follows becomes a slash, empty
tags and numbers that are not finite are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache

LONGEST_STRING = 16_000  # characters, of 4 bytes at most; InfluxDB takes 64 KiB
LONGEST_TAG = 512

_PLAIN = re.compile(r"[A-Za-z0-9_.:/+@%-]*")
_CONTROL = re.compile(r"[\x00-\x20\x7f\x85\u2028\u2029]+")
_ESCAPING = re.compile(r"\\(?=[,= \"\\]|$)")
_SPECIAL = re.compile(r"([,= ])")
_INTEGER_LIMIT = 1 << 63


def tag_text(tags: Mapping[str, str]) -> str:
    """``,key=value`` of every tag that is not empty, in the order of their keys, which InfluxDB
    likes best."""
    return "".join(
        f",{key_text(key)}={text}"
        for key, value in sorted(tags.items())
        if (text := key_text(value))
    )


def field_text(fields: Mapping[str, str | int | float | bool | None]) -> str:
    """``key=value`` of every field that has one, joined by commas; "" where there is none. Numbers
    are floats, so that a field never changes its type."""
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
    """A point's line, without its end; ``time`` in ns since the epoch."""
    return f"{measurement}{tags} {fields} {time}".encode("utf-8", "replace")


@lru_cache(maxsize=4096)  # the same keys and tags come in every line
def key_text(text: str) -> str:
    """A tag's key or value, or a field's key."""
    if _PLAIN.fullmatch(text) and len(text) <= LONGEST_TAG:
        return text
    text = _CONTROL.sub(" ", text[:LONGEST_TAG]).strip()
    return _SPECIAL.sub(r"\\\1", _ESCAPING.sub("/", text))


def string_text(text: str) -> str:
    """A field's string, with its quotes."""
    text = text[:LONGEST_STRING].replace("\0", "")
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _number_text(value: float) -> str:
    if isinstance(value, int):
        return str(value) if -_INTEGER_LIMIT < value < _INTEGER_LIMIT else ""
    return repr(value) if math.isfinite(value) else ""
