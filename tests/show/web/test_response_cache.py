"""Responses: each made once for all who ask at the same moment, and anew when there is news."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from seatrial.show.web import page
from seatrial.show.web.page import (
    MAX_BYTES,
    MAX_WAITING,
    WORKERS,
    Answer,
    Overloaded,
    ResponseCache,
)
from tests.programs import LONG_S


@pytest.fixture
def cache() -> Iterator[ResponseCache]:
    opened = ResponseCache()
    yield opened
    opened.close()


class Maker:
    """Makes answers that say how many were made."""

    def __init__(self, status: int = 200, size: int = 0) -> None:
        self.made = 0
        self.status, self.size = status, size

    def __call__(self) -> Answer:
        self.made += 1
        return Answer(self.status, b"%d" % self.made + b" " * self.size)


def test_a_response_is_made_anew_when_there_is_news(cache: ResponseCache) -> None:
    work = Maker()

    async def ask() -> list[bytes]:
        return [(await cache.make("/runs", generation, work)).body for generation in (1, 1, 2, 2)]

    assert asyncio.run(ask()) == [b"1", b"1", b"2", b"2"]


def test_a_response_is_made_anew_after_a_while(
    cache: ResponseCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Maker()

    async def ask() -> bytes:
        return (await cache.make("/runs", 1, work)).body

    assert asyncio.run(ask()) == b"1"
    monkeypatch.setattr(cache._kept, "max_age_s", -1.0)
    assert asyncio.run(ask()) == b"2"


@pytest.mark.parametrize("work", [Maker(status=404), Maker(size=MAX_BYTES)])
def test_a_failure_or_a_large_response_is_not_kept(cache: ResponseCache, work: Maker) -> None:
    async def ask() -> None:
        for _ in range(2):
            await cache.make("/runs", 1, work)

    asyncio.run(ask())
    assert work.made == 2


def test_what_is_asked_at_the_same_moment_is_made_once_and_not_for_other_news(
    cache: ResponseCache,
) -> None:
    go_on, work = threading.Event(), Maker()

    def slow() -> Answer:
        assert go_on.wait(LONG_S)
        return work()

    async def ask() -> set[bytes]:
        asking = [cache.make("/runs", generation, slow) for generation in (1, 1, 1, 2, 2)]
        tasks = [asyncio.ensure_future(one) for one in asking]
        await asyncio.sleep(0)
        go_on.set()
        return {answer.body for answer in await asyncio.gather(*tasks)}

    assert asyncio.run(ask()) == {b"1", b"2"}


@pytest.fixture
def hang(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Answer]]:
    """Work that takes longer than a response may; it ends with the test."""
    monkeypatch.setattr(page, "MAX_SECONDS", 0.1)
    go_on = threading.Event()

    def wait() -> Answer:
        go_on.wait(LONG_S)
        return Answer(200, b"")

    yield wait
    go_on.set()


def test_too_many_that_wait_are_refused(cache: ResponseCache, hang: Callable[[], Answer]) -> None:
    async def ask() -> list[object]:
        asking = [cache.make(f"/runs?n={number}", 1, hang) for number in range(MAX_WAITING + 1)]
        return await asyncio.gather(*asking, return_exceptions=True)

    found = asyncio.run(ask())
    assert all(isinstance(one, Overloaded) for one in found)
    assert "too many" in str(found[-1])
    assert "took longer" in str(found[0])


def test_threads_that_hang_are_replaced(cache: ResponseCache, hang: Callable[[], Answer]) -> None:
    async def ask() -> bytes:
        asking = [cache.make(f"/runs?n={number}", 1, hang) for number in range(WORKERS)]
        await asyncio.gather(*asking, return_exceptions=True)
        return (await cache.make("/now", 1, Maker())).body

    assert asyncio.run(ask()) == b"1"
