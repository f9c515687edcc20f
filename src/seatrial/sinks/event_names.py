"""The names that the OLCF Test Harness gives an event: its file, type and subtype."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from seatrial.journal.events import EVENT_KINDS
from seatrial.units import SECOND_NS

NO_VALUE = "[NO_VALUE]"

# Every field of an event in that harness, in its order.
FIELDS = (
    "build_directory",
    "event_filename",
    "event_name",
    "event_subtype",
    "event_time",
    "event_type",
    "event_value",
    "check_alias",
    "hostname",
    "job_account_id",
    "job_id",
    "path_to_rgt_package",
    "rgt_path_to_sspace",
    "rgt_system_log_tag",
    "run_archive",
    "user",
    "workdir",
    "comment",
    "output_txt",
)


class EventName(NamedTuple):
    """``Event_170_binary_execute_start.txt``, ``binary_execute``, ``start``."""

    file: str
    type: str
    subtype: str


@lru_cache(maxsize=256)
def event_name(name: str) -> EventName:
    """Return the names of an event, whether it is in the registry or not."""
    kind, _, subtype = name.rpartition("_")
    known = EVENT_KINDS.get(name)
    file = f"Event_{name}.txt" if known is None else f"Event_{known.number}_{name}.txt"
    return EventName(file, kind or name, subtype if kind else "")


def time_text(time: int) -> str:
    """Return a time (ns since the epoch) in ISO 8601, in UTC, to the nanosecond."""
    seconds, rest = divmod(time, SECOND_NS)
    try:
        return f"{_second_text(seconds)}.{rest:09d}Z"
    except (ValueError, OverflowError, OSError):  # beyond the year 9999
        return f"{time} ns"


@lru_cache(maxsize=64)
def _second_text(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"
