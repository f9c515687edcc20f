"""Answers made beside the event loop: few at a time, each once, none for too long.

    answer = await ResponseCache().make(key, generation, work)

Two hundred open pages that show the same ask for it at the same moment: it is made once and given
to all. What is older than a moment, or than the last news, is made anew.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

WORKERS = 4
MOST_WAITING = 64
LONGEST_S = 20.0
KEPT = 64
KEPT_S = 2.0
LARGEST_KEPT = 4 << 20
MOST_KEPT = 32 << 20  # bytes, of all together
MOST_LEFT = 16  # times that all threads may be left behind


class Overloaded(Exception):
    """Too many questions wait, or one took too long."""


class Answer(NamedTuple):
    """What is sent."""

    status: int
    body: bytes


class _Kept(NamedTuple):
    generation: int
    made: float
    answer: Answer


class ResponseCache:
    """The threads that make answers, and the answers made lately."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(WORKERS, thread_name_prefix="page")
        self._stuck: set[asyncio.Future[Answer]] = set()
        self._left = 0
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._making: dict[tuple[str, int], asyncio.Future[Answer]] = {}

    async def make(self, key: str, generation: int, work: Callable[[], Answer]) -> Answer:
        """The answer to ``key``; ``work`` makes it in a thread. Raises Busy."""
        kept = self._kept.get(key)
        if (
            kept
            and kept.generation == generation
            and kept.answer.status == 200
            and time.monotonic() - kept.made < KEPT_S
        ):
            return kept.answer
        making = self._making.get((key, generation))
        if making is None:
            if len(self._making) >= MOST_WAITING:
                raise Overloaded("too many pages are being made at this moment; try again")
            making = asyncio.get_running_loop().run_in_executor(self._threads, work)
            self._making[key, generation] = making
            making.add_done_callback(lambda _: self._making.pop((key, generation), None))
        try:
            async with asyncio.timeout(LONGEST_S):
                answer = await asyncio.shield(making)
        except TimeoutError:
            self._leave(making)
            raise Overloaded(
                f"this took longer than {LONGEST_S:g} s; narrow it: a trial, a shorter time"
            ) from None
        self._keep(key, _Kept(generation, time.monotonic(), answer))
        return answer

    def _keep(self, key: str, made: _Kept) -> None:
        if len(made.answer.body) > LARGEST_KEPT:
            return
        self._kept.pop(key, None)
        self._kept[key] = made
        size = sum(len(kept.answer.body) for kept in self._kept.values())
        while len(self._kept) > KEPT or size > MOST_KEPT:
            size -= len(self._kept.popitem(last=False)[1].answer.body)

    def _leave(self, making: asyncio.Future[Answer]) -> None:
        """Count a thread that does not come back; when none is left, others take their place."""
        self._stuck.add(making)
        making.add_done_callback(self._stuck.discard)
        if len(self._stuck) >= WORKERS and self._left < MOST_LEFT:
            self._left += 1
            self._stuck.clear()
            self._threads.shutdown(wait=False)
            self._threads = ThreadPoolExecutor(WORKERS, thread_name_prefix="page")

    def close(self) -> None:
        """End the threads; what they are making is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)
