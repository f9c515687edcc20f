"""Watch the journals in one thread, and send news to every open page by server-sent events.

    watch = JournalWatch(state)
    watch.start()                          # in the server's event loop
    async for number in watch.news():      # a number at once, another whenever there is news
        ...

A listener holds only the number that it saw last. A slow one costs no memory, and misses only
numbers that newer ones have replaced.
"""

import asyncio
import os
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from threading import Thread

from seatrial.errors import SeatrialError
from seatrial.execute.alerts import alarms, silent_for, to_begin, told_of
from seatrial.execute.trial_folder import TrialFolder
from seatrial.execute.trial_paths import tags
from seatrial.files import opened_folder
from seatrial.log import logger
from seatrial.show.web.nodes import read_ahead
from seatrial.show.web.page import Overloaded
from seatrial.show.web.server_state import ServerState

_log = logger(__name__)

EVERY_S = 0.2  # between looks while somebody is there
IDLE_S = 5.0  # between looks while nobody is
LINGER_S = 60.0  # somebody is there for so long after a request
BEAT_S = 15.0  # between two messages of an open stream without news
MAX_LISTENERS = 250


class JournalWatch:
    """The thread that refreshes the state, and the listeners."""

    def __init__(self, state: ServerState) -> None:
        self.state = state
        self.listeners: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._wake = threading.Event()
        self._looked = threading.Condition()
        self._looks = 0
        self._last_look = 0.0
        self._last_asked = time.monotonic()
        self._told = -1  # the generation that listeners know
        self._stopped = False

    def start(self) -> None:
        """Start to watch. To be called in the event loop of the listeners."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def hang_up(self) -> None:
        """End every stream. To be called before the server waits for its connections to end; a
        signal handler may do so."""
        self._stopped = True
        self._wake.set()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell)

    def stop(self) -> None:
        """End the thread and every stream."""
        self.hang_up()
        self._thread.join(timeout=EVERY_S * 10)

    def fresh(self, wait_s: float = 1.0) -> None:
        """Wait until the journals were looked at a moment ago, at most ``wait_s``. To be called in
        a page's thread."""
        self._last_asked = time.monotonic()
        if self._last_asked - self._last_look < EVERY_S * 3:
            return
        self._wake.set()
        with self._looked:
            seen = self._looks
            self._looked.wait_for(lambda: self._looks != seen, wait_s)

    async def news(self) -> AsyncGenerator[int]:
        """Yield the generation at once, then at each news, and again after BEAT_S without any.
        Raises Overloaded."""
        if len(self.listeners) >= MAX_LISTENERS:
            raise Overloaded(f"{MAX_LISTENERS} pages are open already")
        bell = asyncio.Event()
        self.listeners.add(bell)
        self._wake.set()
        try:
            while not self._stopped:
                bell.clear()
                yield self.state.generation
                try:
                    async with asyncio.timeout(BEAT_S):
                        await bell.wait()
                except TimeoutError:
                    continue
        finally:
            self.listeners.discard(bell)

    def _run(self) -> None:
        ahead = False
        while not self._stopped:
            self._wake.clear()
            self.state.refresh()
            with self._looked:
                self._looks += 1
                self._last_look = time.monotonic()
                self._looked.notify_all()
            # The generation also grows when a result of the background is ready.
            new, self._told = self._told != self.state.generation, self.state.generation
            if new and self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._tell)
            if not ahead:
                ahead = True
                self._read_ahead()
            watched = self.listeners or self._last_look - self._last_asked < LINGER_S
            if watched:
                time.sleep(EVERY_S)
            else:
                self._wake.wait(IDLE_S)
        self.state.close()

    def _read_ahead(self) -> None:
        try:
            read_ahead(self.state)
        except SeatrialError as error:
            _log.info("nothing is read ahead: %s", error)

    def _tell(self) -> None:
        for bell in self.listeners:
            bell.set()


# ---- driver watch --------------------------------------------------------------------------------
#
# A server's dead man's alarm: tells people of trials whose drivers are silent.


_driver_watch_log = logger(__name__)

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
            look_at_drivers(trials, limit, looked_at)
        except OSError as error:
            _driver_watch_log.warning("the trials cannot be looked at: %s", error)
        except Exception:  # an alarm that has ended alarms nobody
            _driver_watch_log.exception("the trials cannot be looked at")
        time.sleep(min(LOOK_SECONDS, limit))


def look_at_drivers(trials: Path, limit: float, looked_at: dict[str, _State]) -> None:
    """Tell people of trials that are silent since the last look. ``looked_at`` keeps the silent
    ones, which are not looked at again until something of them changes."""
    for folder, state in _worth_a_look(trials, limit):
        if looked_at.get(folder.tag) == state:
            continue
        silent = _is_silent(folder, limit)
        alarms_told = list(alarms([folder], limit))
        for alarm in alarms_told:
            _driver_watch_log.error("%s%s", alarm.text, alarm.failure and f": {alarm.failure}")
        if silent and not any(alarm.failure for alarm in alarms_told):
            looked_at[folder.tag] = state


def _is_silent(folder: TrialFolder, limit: float) -> bool:
    """Return whether a trial is silent by the clock by which the alarm decides: one that is so by
    the clock of this host only has its alarm still to come."""
    try:
        return silent_for(folder, folder.record(), limit).seconds > limit
    except SeatrialError:
        return True  # the alarm tells why


def _worth_a_look(trials: Path, limit: float) -> Iterator[tuple[TrialFolder, _State]]:
    """Yield the trials of this user that seem silent, complete ones among them, and those of whose
    silence people were told."""
    for tag in tags(trials):
        folder = TrialFolder(trials / tag)
        try:
            beat = _last_beat(folder)
            begun = not to_begin(folder)
            state = (beat, folder.journal.stat().st_mtime, begun)
        except (OSError, SeatrialError):
            continue
        seems_silent = abs(time.time() - beat) > limit
        if (seems_silent or told_of(folder)) and _is_own(folder):
            yield folder, state


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
