"""Watch the journals in one thread, and send news to every open page by server-sent events.

    watch = JournalWatch(state)
    watch.start()                          # in the server's event loop
    async for number in watch.news():      # a number at once, another whenever there is news
        ...

A listener holds only the number that it saw last. A slow one costs no memory, and misses only
numbers that newer ones have replaced.
"""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator

from seatrial.errors import SeatrialError
from seatrial.log import logger
from seatrial.web.state.server_state import ServerState

_log = logger(__name__)

EVERY_S = 0.2  # between looks while somebody is there
IDLE_S = 5.0  # between looks while nobody is
LINGER_S = 60.0  # somebody is there for so long after a request
BEAT_S = 15.0  # between two messages of an open stream without news
MAX_LISTENERS = 250


class TooMany(Exception):
    """No more streams can be opened."""


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
        Raises TooMany."""
        if len(self.listeners) >= MAX_LISTENERS:
            raise TooMany(f"{MAX_LISTENERS} pages are open already")
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
        from seatrial.web.nodes.view import read_ahead  # numpy: the server starts before

        try:
            read_ahead(self.state)
        except SeatrialError as error:
            _log.info("nothing is read ahead: %s", error)

    def _tell(self) -> None:
        for bell in self.listeners:
            bell.set()
