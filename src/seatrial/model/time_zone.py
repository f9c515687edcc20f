"""Time zones, by the names that people write in files and options."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def zone_of(name: str) -> ZoneInfo | None:
    """Return the time zone of a name; None for "". Raises ValueError with a remedy."""
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # unknown, absolute, a folder
        text = f"{name[:40]!r} is no time zone; write e.g. UTC or Europe/Berlin"
        raise ValueError(text) from None
