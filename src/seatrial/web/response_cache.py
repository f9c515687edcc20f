"""Responses made in worker threads: few at a time, each once, none for too long.

    response = await ResponseCache().make(key, generation, work)

Two hundred open pages that show the same ask for it at the same moment: it is made once and given
to all. A response of an older generation (the store has news since), or older than MAX_AGE_S, is
made anew.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from seatrial.web.state.cache import LruCache

WORKERS = 4
MAX_WAITING = 64
MAX_SECONDS = 20.0
MAX_KEPT = 64
MAX_AGE_S = 2.0
MAX_BYTES = 4 << 20  # of a response that is kept
MAX_KEPT_BYTES = 32 << 20
MAX_REPLACED = 16  # how often threads that do not come back are replaced


class Overloaded(Exception):
    """Too many requests wait, or one took too long."""


class Answer(NamedTuple):
    """The status and the body of a response."""

    status: int
    body: bytes


Key = tuple[str, int]  # of a response: what was asked for, and the generation


class ResponseCache:
    """The threads that make responses, and the latest responses."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(WORKERS, thread_name_prefix="page")
        self._stuck: set[asyncio.Future[Answer]] = set()
        self._replaced = 0
        self._kept: LruCache[Key, Answer] = LruCache(
            MAX_KEPT, MAX_KEPT_BYTES, MAX_AGE_S, size_of=lambda answer: len(answer.body)
        )
        self._making: dict[Key, asyncio.Future[Answer]] = {}

    async def make(self, name: str, generation: int, work: Callable[[], Answer]) -> Answer:
        """Return the response of this name and generation, which ``work`` makes in a thread. Raises
        Overloaded."""
        key = (name, generation)
        if kept := self._kept.get(key):
            return kept
        making = self._making.get(key)
        if making is None:
            if len(self._making) >= MAX_WAITING:
                raise Overloaded("too many pages are being made at this moment; try again")
            making = asyncio.get_running_loop().run_in_executor(self._threads, work)
            self._making[key] = making
            making.add_done_callback(lambda _: self._making.pop(key, None))
        try:
            async with asyncio.timeout(MAX_SECONDS):
                answer = await asyncio.shield(making)
        except TimeoutError:
            self._leave(making)
            raise Overloaded(
                f"this took longer than {MAX_SECONDS:g} s; narrow it: a trial, a shorter time"
            ) from None
        if answer.status == 200 and len(answer.body) <= MAX_BYTES:
            self._kept.put(key, answer)
        return answer

    def _leave(self, making: asyncio.Future[Answer]) -> None:
        """Count a thread that does not come back. When none is left, start new ones."""
        self._stuck.add(making)
        making.add_done_callback(self._stuck.discard)
        if len(self._stuck) >= WORKERS and self._replaced < MAX_REPLACED:
            self._replaced += 1
            self._stuck.clear()
            self._threads.shutdown(wait=False)
            self._threads = ThreadPoolExecutor(WORKERS, thread_name_prefix="page")

    def close(self) -> None:
        """End the threads without waiting for what they are making."""
        self._threads.shutdown(wait=False, cancel_futures=True)
