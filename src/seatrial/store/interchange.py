"""Values as text for other programs: times, JSON."""

import functools
from datetime import UTC, datetime
from typing import Any

import msgspec

from seatrial.lazy import regex
from seatrial.units import SECOND_NS

_UNSAFE_IN_JSON = regex("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def iso(time: int) -> str:
    """Return a time (ns) as ISO 8601 in UTC, to the microsecond."""
    whole, rest = divmod(time, SECOND_NS)
    return f"{_second(whole)}.{rest // 1000:06d}Z"


@functools.lru_cache(maxsize=20_000)  # a live page shows the same times again and again
def _second(time: int) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat()[:19]


def to_json(value: Any) -> str:
    """Return JSON text in which every control character is escaped, so that a terminal can show
    it."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"
