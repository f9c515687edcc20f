"""Times of files: with a time zone of their own, or in one that is said."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from seatrial.errors import UsageError

LATEST = 1 << 33  # s since 1970, in the year 2242
_UNITS = {"seconds": 1, "milliseconds": 1000}


class NoZone(UsageError):
    """A time has no zone, and none was said."""


class Moment(NamedTuple):
    """A time in s since 1970. ``later``: that of the second hour, where clocks were put back and
    the time is there twice; else None."""

    time: int
    later: int | None = None


def time_reader(form: str, zone: tzinfo | None) -> Callable[[str], Moment]:
    """Return what reads times in a form: ``seconds`` or ``milliseconds`` since 1970, a format of
    strptime, or "": ISO 8601, or seconds since 1970. It raises ValueError for what is none, and
    NoZone."""

    def read(text: str) -> Moment:
        if form in _UNITS or (not form and _is_number(text)):
            return Moment(_bounded(_seconds(text, _UNITS.get(form, 1)), text))
        try:
            found = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
        except ValueError:
            expected = f"as {form!r}" if form else "such as 2026-11-20T14:03:00+01:00"
            raise ValueError(f"{text[:40]!r} is no time {expected}") from None
        moment = _with_zone(found, zone, text)
        return moment._replace(time=_bounded(moment.time, text))

    return read


def _is_number(text: str) -> bool:
    return text.isascii() and text.replace(".", "", 1).isdecimal() and len(text) != len("20261120")


def _seconds(text: str, unit: int) -> int:
    try:
        return int(float(text) // unit)
    except (ValueError, OverflowError):
        raise ValueError(f"{text[:40]!r} is no number of seconds") from None


def _bounded(time: int, text: str) -> int:
    if not 0 < time < LATEST:
        raise ValueError(f"{text[:40]!r} is not between the years 1970 and 2242: another unit?")
    return time


def _with_zone(found: datetime, zone: tzinfo | None, text: str) -> Moment:
    """Return a time that was read. Raises NoZone, and ValueError for one that clocks left out."""
    if found.tzinfo is not None:
        return Moment(int(found.timestamp()))
    if zone is None:
        raise NoZone(f"{text[:40]!r} has no time zone; say it, such as --zone Europe/Berlin")
    first, second = found.replace(tzinfo=zone, fold=0), found.replace(tzinfo=zone, fold=1)
    if first.utcoffset() == second.utcoffset():
        return Moment(int(first.timestamp()))
    if _local(first, zone) != found:
        raise ValueError(f"{text[:40]!r} does not exist in {zone}: clocks were put forward then")
    return Moment(int(first.timestamp()), int(second.timestamp()))


def _local(moment: datetime, zone: tzinfo) -> datetime:
    """Return the local time of a moment, by way of UTC."""
    return moment.astimezone(UTC).astimezone(zone).replace(tzinfo=None, fold=0)
