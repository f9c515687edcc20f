"""Moments in plans, and spans between two: a time since the start of the trial, or a date with its
time zone."""

from datetime import date, datetime
from typing import Annotated, NamedTuple

from seatrial.file_model import Duration, FileModel, doc
from seatrial.lazy import regex
from seatrial.units import span_of

_DATE = regex(r"[0-9]{4}-[0-9]{2}-")

AskedMoment = Annotated[Duration | str, doc("time since the trial began, or 2026-05-01T08:00Z")]


class TimeSpan(FileModel, frozen=True, rename={"start": "from", "end": "to"}):
    """A span of time, such as a maintenance."""

    start: AskedMoment
    end: AskedMoment
    why: Annotated[str, doc("the reason")] = ""
    nodes: Annotated[str, doc("its nodes; default: all")] = ""
    tests: Annotated[list[str], doc("its tests; default: all")] = []


class Moment(NamedTuple):
    """A time in seconds since the start of the trial or, if ``absolute``, since 1970 in UTC."""

    seconds: float
    absolute: bool


def moment_of(text: str | int | float) -> Moment:
    """Return the moment of ``90m``, ``2d`` or ``2026-05-01T08:00Z``. Raises ValueError with a
    remedy."""
    if not (isinstance(text, str) and _DATE.match(text)):
        return Moment(span_of(text), absolute=False)
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a date; write e.g. 2026-05-01T08:00Z") from error
    if found.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; write e.g. 2026-05-01T08:00Z or +02:00")
    return Moment(found.timestamp(), absolute=True)


def day_of(text: str) -> None:
    """Raise ValueError if a text is no date such as 2026-05-01."""
    try:
        date.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a date; write e.g. 2026-05-01") from error
