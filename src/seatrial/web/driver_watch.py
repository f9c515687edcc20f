"""A server's dead man's alarm: tells people of trials whose drivers are silent.

watch_drivers(trials, limit=600)     # in a thread of its own, until the process ends
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

from seatrial.errors import SeatrialError
from seatrial.files import opened_folder
from seatrial.log import logger
from seatrial.trial.alarm import alarms, told_of
from seatrial.trial.folder import TrialFolder, tags
from seatrial.trial.next_trials import to_begin

_log = logger(__name__)

LOOK_SECONDS = 30.0
_State = tuple[float, float, bool]  # times of heartbeat and journal; whether the next has begun


def watch_drivers(trials: Path, limit: float) -> None:
    """Look at the trials of this user every half minute, or as often as ``limit`` (s) says if that
    is shorter. Others' trials are left out: the command of their alerts would run under this user's
    name."""
    Thread(target=_watch, args=(trials, limit), name="drivers", daemon=True).start()


def _watch(trials: Path, limit: float) -> None:
    looked_at: dict[str, _State] = {}  # of silent trials
    while True:
        try:
            for folder, state, silent in _worth_a_look(trials, limit):
                if looked_at.get(folder.tag) == state:
                    continue
                found = list(alarms([folder], limit))
                for alarm in found:
                    _log.error("%s%s", alarm.text, alarm.failure and f": {alarm.failure}")
                if silent and not any(alarm.failure for alarm in found):
                    looked_at[folder.tag] = state
        except OSError as error:
            _log.warning("the trials cannot be looked at: %s", error)
        except Exception:  # an alarm that has ended alarms nobody
            _log.exception("the trials cannot be looked at")
        time.sleep(min(LOOK_SECONDS, limit))


def _worth_a_look(trials: Path, limit: float) -> Iterator[tuple[TrialFolder, _State, bool]]:
    """Yield the trials of this user that are silent, complete ones among them, and those of whose
    silence people were told."""
    for tag in tags(trials):
        folder = TrialFolder(trials / tag)
        try:
            beat = _last_beat(folder)
            begun = not to_begin(folder)
            state = (beat, folder.journal.stat().st_mtime, begun)
        except (OSError, SeatrialError):
            continue
        silent = abs(time.time() - beat) > limit
        if (silent or told_of(folder)) and _is_own(folder):
            yield folder, state, silent


def _last_beat(folder: TrialFolder) -> float:
    """Return the time of the heartbeat itself, whatever a link there leads to; 0 for one that is
    missing, which is no sign of life."""
    try:
        return folder.heartbeat.lstat().st_mtime
    except FileNotFoundError:
        return 0.0


def _is_own(folder: TrialFolder) -> bool:
    """Return whether a trial is this user's, by its folder: what is in it may be a link."""
    try:
        with opened_folder(folder.path, follow=True) as opened:
            return os.fstat(opened).st_uid == os.getuid()
    except OSError:
        return False
