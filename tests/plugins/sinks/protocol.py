"""InfluxDB's line protocol read back, by the rules that InfluxData publishes.

    point = parse(b'events,app=x\\ y value=1,why="a" 10')
    point.measurement, point.tags, point.fields, point.time

A backslash escapes comma, blank and (but in a measurement) equals sign outside of strings, quote
and backslash in them; before anything else it is itself.
"""

from __future__ import annotations

from typing import NamedTuple

Value = str | float | bool


class Point(NamedTuple):
    """A point; without its fields it is what InfluxDB knows it by."""

    measurement: str
    tags: tuple[tuple[str, str], ...]
    time: int
    fields: dict[str, Value]

    @property
    def identity(self) -> tuple[object, ...]:
        return (self.measurement, self.tags, self.time)

    def row(self) -> dict[str, object]:
        """As ``SELECT *`` gives it."""
        return {"time": self.time, **dict(self.tags), **self.fields}


def parse(line: bytes) -> Point:
    """The point of one line. Raises AssertionError where it is none."""
    text = line.decode()
    head, at = _until(text, 0, " ")
    measurement, *tags = _split(head, ",")
    pairs = tuple(_pair(tag) for tag in tags)
    assert len(dict(pairs)) == len(pairs), "a tag is there twice"
    fields: dict[str, Value] = {}
    at += 1
    while True:
        key, at = _until(text, at, "=")
        value, at = _value(text, at + 1)
        assert _plain(key) not in fields, "a field is there twice"
        fields[_plain(key)] = value
        assert at < len(text), "no time"
        at += 1
        if text[at - 1] == " ":
            break
    assert text[at:].lstrip("-").isdigit(), text[at:]
    assert fields
    return Point(_plain(measurement, "="), pairs, int(text[at:]), fields)


def _until(text: str, at: int, stop: str) -> tuple[str, int]:
    """The text up to a letter that is not escaped, and where that is."""
    start = at
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        assert text[at] != "\n", "a line ends where it must not"
        if text[at] == stop:
            return text[start:at], at
        at += 1
    raise AssertionError(f"no {stop!r} in {text[start:]!r}")


def _split(text: str, at: str) -> list[str]:
    parts, rest = [], text + at
    while rest:
        part, end = _until(rest, 0, at)
        parts.append(part)
        rest = rest[end + 1 :]
    return parts


def _pair(tag: str) -> tuple[str, str]:
    key, value = _split(tag, "=")
    assert key
    assert value, f"the tag {key} is empty"
    return _plain(key), _plain(value)


def _plain(text: str, but: str = "") -> str:
    for letter in ", =":
        if letter not in but:
            text = text.replace("\\" + letter, letter)
    return text


def _value(text: str, at: int) -> tuple[Value, int]:
    if text[at] != '"':
        end = at
        while end < len(text) and text[end] not in ", ":
            end += 1
        word = text[at:end]
        return (word == "true" if word in ("true", "false") else float(word)), end
    found, at = "", at + 1
    while text[at] != '"':
        if text[at] == "\\" and text[at + 1] in '"\\':
            at += 1
        found += text[at]
        at += 1
    return found, at + 1
