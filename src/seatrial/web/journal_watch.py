"""What is new, told to every open page: one thread looks at the journals, server-sent events tell.

    watch = JournalWatch(state)
    watch.start()                          # in the server's event loop
    async for number in watch.news():      # a number at once, another whenever there is news
        ...

A listener holds nothing but the number that it saw last, so a slow one costs no memory and misses
only what newer news has replaced.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator

from seatrial.web.state.server_state import ServerState

EVERY_S = 0.2  # between looks while somebody is there
IDLE_S = 5.0  # and while nobody is
LINGER_S = 60.0  # who asked so lately is there still
BEAT_S = 15.0  # an open stream says that it lives
MAX_LISTENERS = 250
PREPARE_AFTER_S = 2.0  # when the first page is out


class TooMany(Exception):
    """No more streams can be opened."""


class JournalWatch:
    """The one thread that refreshes the state, and those who listen."""

    def __init__(self, state: ServerState) -> None:
        self.state = state
        self.listeners: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._preparing = threading.Timer(PREPARE_AFTER_S, _prepare, (state,))
        self._preparing.daemon = True
        self._wake = threading.Event()
        self._looked = threading.Condition()
        self._looks = 0
        self._last_look = 0.0
        self._last_asked = time.monotonic()
        self._told = -1  # the generation that listeners know of
        self._stopped = False

    def start(self) -> None:
        """Begin to watch; to be called in the event loop that is told."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        self._preparing.start()

    def hang_up(self) -> None:
        """End every stream: to be called before the server waits for its connections to end, even
        by a signal's handler."""
        self._stopped = True
        self._wake.set()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell)

    def stop(self) -> None:
        """End the thread and every stream."""
        self.hang_up()
        self._preparing.cancel()
        self._thread.join(timeout=EVERY_S * 10)

    def fresh(self, wait_s: float = 1.0) -> None:
        """Called by a page's thread: returns when the journals were looked at a moment ago, or
        after ``wait_s``, whichever is first."""
        self._last_asked = time.monotonic()
        if self._last_asked - self._last_look < EVERY_S * 3:
            return
        self._wake.set()
        with self._looked:
            seen = self._looks
            self._looked.wait_for(lambda: self._looks != seen, wait_s)

    async def news(self) -> AsyncGenerator[int]:
        """The site's generation at once, then at each news; the last number again after BEAT_S
        without any. Raises TooMany."""
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
        while not self._stopped:
            self._wake.clear()
            self.state.refresh()
            with self._looked:
                self._looks += 1
                self._last_look = time.monotonic()
                self._looked.notify_all()
            # Beside the journals' news there is what was made for pages in the meantime.
            new, self._told = self._told != self.state.generation, self.state.generation
            if new and self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._tell)
            watched = self.listeners or self._last_look - self._last_asked < LINGER_S
            if watched:
                time.sleep(EVERY_S)
            else:
                self._wake.wait(IDLE_S)
        self.state.close()

    def _tell(self) -> None:
        for bell in self.listeners:
            bell.set()


def _prepare(state: ServerState) -> None:
    """What would keep the first who asks waiting: read while nobody asks."""
    from seatrial.web.nodes.node_figures import prepare

    prepare(state)
