"""Report how far behind each sink of a trial is, and why.

    for each in sink_lags(trials / tag):
        each.name, each.behind.events, each.behind.seconds, each.error

The report is made of the cursors and the journal's end, so it is right even if the delivering
process has died.
"""

import os
import time
from pathlib import Path

from msgspec import Struct

from seatrial.files import open_regular
from seatrial.journal.encoding import decode_lines
from seatrial.sinks.cursor import Behind, Cursor, folder_of, read_cursor
from seatrial.sinks.lock import holder
from seatrial.structs import copied
from seatrial.trial.folder import TrialFolder
from seatrial.units import SECOND_NS

LOOK_AT = 4 << 20  # unsent bytes in which events are counted; beyond, their number is estimated
MAX_SINKS = 100


class SinkLag(Struct, frozen=True, kw_only=True):
    """One sink of a trial: its cursor, and how far ``behind`` it is now. ``sent``: events;
    ``working``: a process delivers now."""

    name: str
    kind: str
    to: str
    sent: int
    refused: int
    damaged: int
    behind: Behind
    error: str
    since: int
    tries: int
    told: str
    answered: int
    working: bool


def sink_lags(trial: Path | TrialFolder) -> list[SinkLag]:
    """Return the sinks of a trial to which something was sent or tried, ordered by name."""
    folder = trial if isinstance(trial, TrialFolder) else TrialFolder(trial)
    try:
        files = sorted(folder_of(folder).glob("[!.]*.json"))[:MAX_SINKS]
    except OSError:
        return []
    cursors = [cursor for file in files if (cursor := read_cursor(file)) is not None]
    working = bool(cursors) and holder(folder) != ""
    return [_lag(folder, cursor, working) for cursor in cursors]


def _lag(folder: TrialFolder, cursor: Cursor, working: bool) -> SinkLag:
    told = {"behind": behind(folder, cursor), "working": working}
    return copied(SinkLag, cursor, name=cursor.sink, sent=cursor.read, **told)


def behind(folder: TrialFolder, cursor: Cursor) -> Behind:
    """Return what of the journal was not sent yet; only complete lines count."""
    try:
        with open_regular(folder.journal) as journal:
            size = os.fstat(journal.fileno()).st_size
            journal.seek(min(cursor.offset, size))
            ahead = journal.read(LOOK_AT)
    except OSError:
        return Behind()
    whole = ahead[: ahead.rfind(b"\n") + 1]
    if not whole:
        return Behind()
    rest = max(0, size - cursor.offset)
    lines = whole.count(b"\n")
    if rest > len(ahead):
        lines = round(lines * rest / len(whole))
    else:
        rest = len(whole)
    return Behind(rest, lines, _waiting(whole))


def _waiting(lines: bytes) -> float:
    """Return the seconds since the first event, by the clocks of the driver and of this host."""
    events, _ = decode_lines(lines.split(b"\n", 20)[:20])
    return max(0.0, (time.time_ns() - events[0].time) / SECOND_NS) if events else 0.0
