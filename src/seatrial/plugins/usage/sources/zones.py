"""The option that names the time zone of a log whose times have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from seatrial.cli.options import Parsed, value_option


def _zone(name: str) -> ZoneInfo:
    """Return a time zone by its name. Raises ValueError with a remedy."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"no time zone {name!r}; write e.g. Europe/Zurich") from error


def timezone_option(of: str) -> Callable[..., Any]:
    """Return the option ``--timezone``."""
    line = f"Time zone of {of}."
    return value_option("--timezone", "NAME", line, type=Parsed(_zone), default=None)
