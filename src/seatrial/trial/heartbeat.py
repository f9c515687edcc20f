"""The heartbeat of a driver: a file in the trial's folder that it touches every few seconds; and
the trials that its command begins after this one.

    beat(folder)                               # in the driver, before it writes into the journal
    tasks.spawn(beat_regularly(folder))
    silence(folder, record, limit=600)         # in another process: seconds, or None
    write_next(folder, ["frost-stability"])    # before ``folder`` is driven; [] where it is last
    not_begun(folder, record, limit=600)       # in another process: NotBegun, or None

A driver that was killed, or whose host is gone, writes nothing into the journal. So whoever watches
it looks at the age of this file. The age needs no lock, so it is right on every host that sees the
folder. Between two components of a plan no driver is alive, so no heartbeat tells that the command
died: the file ``next`` in the folder of the first one tells what was to come.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import NamedTuple

from seatrial.files import read_regular
from seatrial.journal.lifecycle import TrialState
from seatrial.log import logger
from seatrial.trial.folder import Record, TrialFolder
from seatrial.trial.plan_trials import life_of

_log = logger(__name__)

BEAT_SECONDS = 15.0


def beat(folder: TrialFolder) -> None:
    """Touch the file. Where it cannot be touched, the journal cannot be written either, which ends
    the drive."""
    try:
        try:
            folder.heartbeat.touch()
        except PermissionError:  # it is of another member, who drove the trial before
            folder.heartbeat.unlink()
            folder.heartbeat.touch()
    except OSError as error:
        _log.warning("%s: %s", folder.heartbeat, error.strerror)


async def beat_regularly(folder: TrialFolder) -> None:
    """Touch the file now and then, until the task is cancelled. The event loop of a driver that
    hangs does not come to it."""
    while True:
        beat(folder)
        await asyncio.sleep(BEAT_SECONDS)


def last_beat(folder: TrialFolder) -> float | None:
    """Return when the driver was last alive (seconds since the epoch); None where no driver of a
    version that has a heartbeat has driven the trial."""
    try:
        return folder.heartbeat.stat().st_mtime
    except OSError:
        return None


def silence(folder: TrialFolder, record: Record, limit: float) -> float | None:
    """Return for how many seconds the driver of a trial has been silent, if that is longer than
    ``limit`` and the trial should run: it was started, and neither ended nor paused, cancelled or
    abandoned. Else None. Raises JournalError."""
    at = last_beat(folder)
    age = 0.0 if at is None else time.time() - at
    if age <= limit or record.rehearsed:
        return None
    return age if life_of(folder, record.policy.duration).clock_runs else None


# ---- what begins next ---------------------------------------------------------------------

MAX_NEXT_BYTES = 64 << 10


class NotBegun(NamedTuple):
    """Trials that should have begun, and for how many seconds their predecessor's driver has been
    silent."""

    tags: list[str]
    seconds: float


def write_next(folder: TrialFolder, tags: Sequence[str]) -> None:
    """Write which trials begin after this one. Where the file cannot be written, nobody is told if
    they do not."""
    try:
        folder.next.unlink(missing_ok=True)  # it may be of another member
        if tags:
            folder.next.write_text("".join(f"{tag}\n" for tag in tags))
    except OSError as error:
        _log.warning("%s: %s", folder.next, error.strerror)


def next_of(folder: TrialFolder) -> list[str]:
    """Return the tags of the trials that begin after this one."""
    with contextlib.suppress(OSError):
        return read_regular(folder.next, MAX_NEXT_BYTES).decode(errors="replace").split()
    return []


def to_begin(folder: TrialFolder) -> list[str]:
    """Return those of the next trials that have not begun. Raises JournalError, TrialError."""
    beside = folder.path.parent
    return [
        tag
        for tag in next_of(folder)
        if life_of(TrialFolder(beside / tag), 0.0).state is TrialState.NEW
    ]


def not_begun(folder: TrialFolder, record: Record, limit: float) -> NotBegun | None:
    """Return the next trials, if this one is complete, they have not begun, and its driver has been
    silent for more than ``limit`` seconds. Raises JournalError, TrialError."""
    at = last_beat(folder)
    if at is None or time.time() - at <= limit or not (tags := to_begin(folder)):
        return None
    if not life_of(folder, record.policy.duration).complete:
        return None
    return NotBegun(tags, time.time() - at)
