"""Moments in plans, and spans between two: a time since the start of the trial, or a date with its
time zone; days, and time zones by their names."""

import re
from datetime import date, datetime
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from seatrial.model.file_model import FileModel, Quantity, WrittenDuration, checked, doc
from seatrial.model.node_set import NodeSetOrNone
from seatrial.units import span_of

_DATE = r"[0-9]{4}-[0-9]{2}-"


class Moment(Quantity):
    """A time: ``90m`` or ``2d`` since the start of the trial, or ``2026-05-01T08:00Z``. Its
    ``seconds`` are since that start or, if ``absolute``, since 1970 in UTC."""

    form = Annotated[WrittenDuration | str, doc("time since the trial began, or 2026-05-01T08:00Z")]
    __slots__ = ("absolute", "seconds")

    def __init__(self, written: int | float | str) -> None:
        super().__init__(written)
        self.absolute = isinstance(written, str) and bool(re.match(_DATE, written))
        self.seconds = _since_1970(str(written)) if self.absolute else span_of(written)


def _since_1970(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a date; write e.g. 2026-05-01T08:00Z") from error
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; write e.g. 2026-05-01T08:00Z or +02:00")
    return moment.timestamp()


class TimeSpan(FileModel, frozen=True, rename={"start": "from", "end": "to", "reason": "why"}):
    """A span of time, such as a maintenance."""

    start: Moment
    end: Moment
    reason: Annotated[str, doc("the reason")] = ""
    nodes: Annotated[NodeSetOrNone, doc("its nodes; default: all")] = ""
    tests: Annotated[list[str], doc("its tests; default: all")] = []


def day_of(text: str) -> None:
    """Raise ValueError if a text is no date such as 2026-05-01."""
    try:
        date.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a date; write e.g. 2026-05-01") from error


Day = Annotated[str, checked(day_of)]
DayOrNone = Annotated[str, checked(lambda text: text and day_of(text))]


def zone_of(name: str) -> ZoneInfo | None:
    """Return the time zone of a name; None for "". Raises ValueError with a remedy."""
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # unknown, absolute, a folder
        text = f"{name[:40]!r} is no time zone; write e.g. UTC or Europe/Berlin"
        raise ValueError(text) from None
