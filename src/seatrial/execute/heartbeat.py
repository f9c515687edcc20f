"""The heartbeat of a driver: a file in the trial's folder that it touches every few seconds.

    beat(folder)                               # in the driver, before it writes into the journal
    tasks.spawn(beat_regularly(folder))
    silence(folder, record, limit=600)         # in another process: Silence(712.4), or None

A driver that was killed, or whose host is gone, writes nothing into the journal. So whoever watches
it looks at the age of this file. The age needs no lock, so it is right on every host that sees the
folder.
"""

import asyncio
import errno
import time
from collections.abc import Callable
from typing import NamedTuple

from seatrial.execute.ledger import life_of
from seatrial.execute.trial_folder import TrialFolder
from seatrial.execute.trial_record import Record
from seatrial.files import file_clock, remove_file, touch
from seatrial.journal.journal import read_mark
from seatrial.journal.trial import TrialState
from seatrial.log import logger
from seatrial.units import SECOND_NS, show_seconds

_log = logger(__name__)

BEAT_SECONDS = 15.0
# It is of another member, who drove the trial before; or a link, FIFO or device.
_NO_OWN_FILE = frozenset((errno.EACCES, errno.EPERM, errno.ELOOP, errno.EINVAL))


def beat(folder: TrialFolder) -> None:
    """Touch the file; what is no file of the own goes. Where it cannot be touched, the journal
    cannot be written either, which ends the drive."""
    try:
        try:
            touch(folder.heartbeat)
        except OSError as error:
            if error.errno not in _NO_OWN_FILE:
                raise
            remove_file(folder.heartbeat, follow=True)
            touch(folder.heartbeat)
    except OSError as error:
        _log.warning("%s: %s", folder.heartbeat, error.strerror)


async def beat_regularly(folder: TrialFolder, require_own: Callable[[], None]) -> None:
    """Touch the file now and then, until the task is cancelled. The event loop of a driver that
    hangs does not come to it. ``require_own`` raises Owned where another driver has the trial."""
    while True:
        require_own()
        beat(folder)
        await asyncio.sleep(BEAT_SECONDS)


def last_beat(folder: TrialFolder) -> float | None:
    """Return when the driver was last alive (seconds since the epoch); None where no driver of a
    version that has a heartbeat has driven the trial."""
    try:
        return folder.heartbeat.lstat().st_mtime
    except OSError:
        return None


class Silence(NamedTuple):
    """For how many seconds a driver has given no sign of life. ``doubt``: why its heartbeat tells
    nothing, or ""."""

    seconds: float
    doubt: str = ""


def silence(folder: TrialFolder, record: Record, limit: float) -> Silence | None:
    """Return how long the driver of a trial has been silent, if that is longer than ``limit``
    seconds and the trial should run: it was started, and neither ended nor paused, cancelled or
    abandoned. Else None. A heartbeat that is missing or of a time to come is no sign of life, and
    a journal that lost all of its events does not say that it should not run. Raises
    JournalError."""
    silent = silent_for(folder, record, limit)
    if silent.seconds <= limit or record.rehearsed:
        return None
    life = life_of(folder, record.policy.duration)
    if life.state is TrialState.NEW and _is_emptied(folder):
        return silent._replace(doubt="all events of its journal are missing")
    return silent if life.clock_runs else None


def _is_emptied(folder: TrialFolder) -> bool:
    """Return whether the journal had events by its mark, and has no byte now."""
    try:
        size = folder.journal.stat().st_size
    except OSError:
        size = 0
    return not size and read_mark(folder.journal) is not None


def silent_for(folder: TrialFolder, record: Record, limit: float) -> Silence:
    """Return for how long nothing was heard of a trial's driver, whether it should run or not.
    Where it may be more than ``limit`` seconds, the clock of its file server decides."""
    at = last_beat(folder)
    if at is None:
        return Silence(time.time() - record.created / SECOND_NS, "its heartbeat is missing")
    age = _age(folder, at, limit)
    if age < 0:
        ahead = f"its heartbeat is {show_seconds(-age)} in the future: a clock was set"
        return Silence(-age, ahead)
    return Silence(age)


def _age(folder: TrialFolder, at: float, limit: float) -> float:
    """Return how many seconds ago the file was touched. Where it seems to be long ago, or in the
    future, the clock of its file server is asked: it may differ from ours."""
    age = time.time() - at
    if -BEAT_SECONDS <= age <= limit:
        return age
    now = file_clock(folder.path)
    return age if now is None else now - at
