"""Read times as other tools write them."""

from datetime import datetime

from seatrial.units import SECOND_NS

EARLIEST_S, LATEST_S = 1e8, 4e9  # seconds since the epoch: from 1973 to 2096
MILLI, MICRO, NANO = 1e3, 1e6, 1e9


def time_of(text: str) -> int:
    """Return a time in ns since the epoch. ``text`` is ISO 8601 (``2026-11-20 14:03:05``, with or
    without a zone; the zone of this host if it has none), or a number of seconds, milliseconds,
    microseconds or nanoseconds since the epoch. Raises ValueError."""
    written = text.strip()
    try:
        number = float(written)
    except ValueError:
        pass
    else:
        for unit in (1.0, MILLI, MICRO, NANO):
            if EARLIEST_S <= number / unit < LATEST_S and not _is_day(written):
                return _exact_ns(written, number, unit)
    try:
        moment = datetime.fromisoformat(written).astimezone()
    except (ValueError, OverflowError):
        example = "write 2026-11-20T14:03:05, or seconds since 1970"
        raise ValueError(f"{written[:40]!r} is no time; {example}") from None
    return int(moment.timestamp()) * SECOND_NS + moment.microsecond * 1000


def _is_day(written: str) -> bool:
    """Return whether a number is a day without hyphens, such as 20261120."""
    return len(written) == len("20261120") and written.isdecimal()


def _exact_ns(written: str, number: float, unit: float) -> int:
    scale = round(SECOND_NS / unit)
    return int(written) * scale if written.isdecimal() else round(number * scale)
