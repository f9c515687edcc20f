"""One thing in which two sides of a comparison differ, and the records of a side's trials."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from seatrial.store.rows import TrialRow
from seatrial.studies.selection import Side

if TYPE_CHECKING:
    from seatrial.trial.record import Record

LONGEST = 60


class Difference(Struct, frozen=True):
    """One thing that is not the same: of what, which part, and how it is on each side. Where the
    sides cannot be shown in a few words, ``first`` and ``second`` are ""."""

    subject: str
    what: str
    first: str = ""
    second: str = ""


class SideRecords(Struct):
    """What is known of a side's trials; ``unread`` are trials whose record could not be read."""

    side: Side
    records: "list[tuple[TrialRow, Record]]"
    unread: list[str]


BothSides = tuple[SideRecords, SideRecords]


def told_difference(
    subject: str, what: str, one: Iterable[Any], other: Iterable[Any]
) -> Iterator[Difference]:
    """A difference of two sets of values, unless a side has none."""
    first, second = set(one), set(other)
    if first and second and first != second:
        yield Difference(subject, what, in_short(first), in_short(second))


def in_short(values: Iterable[Any]) -> str:
    text = ", ".join(sorted(value_text(value) for value in values))
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def value_text(value: Any) -> str:
    if isinstance(value, str | int | float):
        return str(value) or "none"
    return msgspec.json.encode(value).decode() if value else "none"
