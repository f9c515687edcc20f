"""Where nodes are, by their names: ``c{cabinet}-{row}c{chassis}s{router}n{node}``.

    pattern = NamePattern("c{cabinet}-{row}c{chassis}s{router}n{node}")
    pattern.numbers("c1-0c2s15n3")                # (1, 0, 2, 15, 3)
    positions(rows)                               # a number of each node

A field is a number; fields go from the largest to the smallest unit. The position of a node counts
the nodes before it, as if every unit had as many as the fullest.
"""

import re
from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct

from seatrial.lazy import regex

_FIELD = regex(r"\{([A-Za-z_]\w*)\}")
EXAMPLE = "write e.g. c{cabinet}-{row}c{chassis}s{router}n{node}"


class NamePattern(Struct, frozen=True, dict=True):
    """A pattern of names, and its fields in their order."""

    text: str
    fields: tuple[str, ...]

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """Return the number of each field of a name; None if it does not fit."""
        found = self._expression.fullmatch(name)
        return tuple(map(int, found.groups())) if found else None

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        parts = _FIELD.split(self.text)  # texts and fields in turn
        return re.compile(
            "".join(r"([0-9]{1,9})" if i % 2 else re.escape(part) for i, part in enumerate(parts))
        )


def name_pattern(text: str) -> NamePattern:
    """Return a pattern. Raises ValueError if it has no field, or one twice."""
    fields = tuple(_FIELD.findall(text))
    if not fields:
        raise ValueError(f"{text!r} has no field; {EXAMPLE}")
    if twice := [field for field in fields if fields.count(field) > 1]:
        raise ValueError(f"{text!r} has {{{twice[0]}}} twice; {EXAMPLE}")
    if rest := re.search(r"[{}]", _FIELD.sub("", text)):
        raise ValueError(f"{text!r}: {rest[0]!r} is no part of a field; {EXAMPLE}")
    return NamePattern(text, fields)


def positions(rows: Sequence[Sequence[int]]) -> list[int]:
    """Return the position of each node: ``rows`` are its numbers, that of the largest unit first.
    Each field counts from 0 to the greatest number that is there."""
    lengths = [max(column) + 1 for column in zip(*rows, strict=True)]
    found = []
    for row in rows:
        position = 0
        for number, length in zip(row, lengths, strict=True):
            position = position * length + number
        found.append(position)
    return found
