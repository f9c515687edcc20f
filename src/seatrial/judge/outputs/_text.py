"""Helpers of several parsers."""

import re
from collections.abc import Iterable, Iterator
from typing import TypeVar

from seatrial.model.figures import shown

T = TypeVar("T")

_PERCENTAGE = re.compile(r"[0-9.]+ ?%")


class UniqueValues(dict[str, T]):
    """Values by name. Raises ValueError for a second value of a name, and for a missing name."""

    def __setitem__(self, name: str, value: T) -> None:
        if name in self:
            raise ValueError(f"it has {shown(name)} twice; judge one run at a time")
        super().__setitem__(name, value)

    def __missing__(self, name: str) -> T:
        raise ValueError(f"its {name!r} is missing, or not whole")


def once(pattern: re.Pattern[str], text: str, what: str) -> re.Match[str]:
    """Return the only match. Raises ValueError that names ``what`` if there is none, or several."""
    matches = pattern.finditer(text)
    match = next(matches, None)
    if match is None:
        raise ValueError(f"its {what} is missing, or not whole")
    if next(matches, None) is not None:
        raise ValueError(f"it has more than one {what}; judge one run at a time")
    return match


def whole(pattern: re.Pattern[str], line: str) -> re.Match[str]:
    """Return the match of a whole line. Raises ValueError for a line that is cut or damaged."""
    match = pattern.fullmatch(line)
    if match is None:
        raise ValueError(f"a line of it is not whole: {shown(line)}")
    return match


def is_row(line: str) -> bool:
    """Return whether a line begins with a number, as the rows of many tables do. A percentage is
    the progress of something else."""
    word = line.lstrip(" \t")
    return word[:1].isdigit() and not _PERCENTAGE.match(word)


def not_rows(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines above the last row that are neither rows nor blank nor begin with #."""
    others: list[str] = []
    for line in lines:
        if is_row(line):
            yield from others
            others = []
        elif line.lstrip(" \t")[:1] not in ("", "#"):
            others.append(line)


def end_whole(text: str) -> None:
    """Raise ValueError if no newline ends a text: its last line was cut. For formats without a
    closing line."""
    if text and not text.endswith("\n"):
        raise ValueError(f"its last line is cut: {shown(text[text.rfind(chr(10)) + 1 :])}")


def json_in(text: str) -> str:
    """Return the JSON object of a text, "" if it has none. A launcher may print above it and below
    it."""
    start = 0 if text.lstrip().startswith("{") else text.find("\n{\n")
    end = text.rfind("\n}")
    return text[start : end + 2 if end > start else None] if start >= 0 else ""
