"""Which trials a command begins after the one that it drives: for the dead man's alarm.

    write_next(folder, ["frost-stability"])      # before ``folder`` is driven; [] where it is last
    not_begun(folder, record, limit=600)         # in another process: NotBegun, or None

Between two components of a plan no driver is alive, so no heartbeat tells that the command died.
The file ``next`` in the folder of the first one tells what was to come.
"""

import contextlib
import time
from collections.abc import Sequence
from typing import NamedTuple

from seatrial.files import read_regular, remove_file, replace_file
from seatrial.journal.trial_life import TrialState
from seatrial.log import logger
from seatrial.trial.folder import TrialFolder
from seatrial.trial.heartbeat import last_beat
from seatrial.trial.life import life_of
from seatrial.trial.record import Record

_log = logger(__name__)

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
        if tags:
            text = "".join(f"{tag}\n" for tag in tags)
            replace_file(folder.next, text.encode(), follow=True)
        else:
            remove_file(folder.next, missing_ok=True, follow=True)
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
