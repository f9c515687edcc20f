"""Work in the background: its latest results, made seldom, and waited for only if that is quick."""

from __future__ import annotations

import threading
import time

import pytest

from seatrial.show.web.caches import (
    MAX_STUCK,
    BackgroundCompute,
    ComputedResult,
    ResultSlots,
    in_time,
)
from tests.programs import LONG_S, until


def test_what_takes_long_is_not_waited_for_and_told_when_it_is_there() -> None:
    updated, go_on = threading.Event(), threading.Event()
    background, slots = BackgroundCompute(updated.set), ResultSlots()

    def slow() -> str:
        assert go_on.wait(LONG_S)
        return "made"

    assert background.latest(slots, "x", 1, slow, wait_s=0.2) is None
    assert background.latest(slots, "x", 1, slow, wait_s=0.01) is None
    go_on.set()
    assert updated.wait(LONG_S)
    assert background.latest(slots, "x", 1, lambda: "not made again") == "made"
    assert background.latest(slots, "x", 2, lambda: "newer") == "made", (
        "what took long is left alone"
    )
    background.close()


def test_what_is_quick_is_made_for_each_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.show.web.caches.MAX_QUICK_S", LONG_S)
    background, slots = BackgroundCompute(lambda: None), ResultSlots()
    made: list[int] = []

    def make() -> int:
        made.append(len(made))
        return made[-1]

    found = [background.latest(slots, "x", version, make, LONG_S) for version in (1, 2, 2, 3)]
    assert found == [0, 1, 1, 2]
    background.close()


def test_what_was_quick_is_waited_for_longer_than_what_was_never_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("seatrial.show.web.caches.MAX_QUICK_S", LONG_S)
    monkeypatch.setattr("seatrial.show.web.caches.MAX_FIRST_WAIT_S", 0.001)
    background, slots, go_on = BackgroundCompute(lambda: None), ResultSlots(), threading.Event()
    assert background.latest(slots, "x", 1, lambda: go_on.wait(LONG_S)) is None
    go_on.set()
    until(lambda: not slots.tasks, "the first")
    began = threading.Event()
    later = threading.Timer(0.05, began.set)
    later.start()
    assert background.latest(slots, "x", 2, lambda: began.wait(LONG_S) and "second") == "second"
    background.close()


def test_an_order_that_comes_while_an_older_is_made_is_made_after_it() -> None:
    updated, go_on, begun = threading.Event(), threading.Event(), threading.Event()
    background, slots = BackgroundCompute(updated.set), ResultSlots()

    def first() -> int:
        begun.set()
        assert go_on.wait(LONG_S)
        return 1

    assert background.latest(slots, "x", 1, first, wait_s=0.01) is None
    assert begun.wait(LONG_S)
    assert background.latest(slots, "x", 2, lambda: 2, wait_s=0.01) is None
    go_on.set()
    until(lambda: background.latest(slots, "x", 2, lambda: 2) == 2, "the later order")
    assert updated.is_set()
    background.close()


def test_what_cannot_be_made_says_why_each_time_and_can_be_made_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("seatrial.show.web.caches.MAX_QUICK_S", LONG_S)
    background, slots = BackgroundCompute(lambda: None), ResultSlots()

    def broken() -> None:
        raise OSError("the disk is gone")

    for _ in range(2):
        with pytest.raises(OSError, match="the disk is gone"):
            background.latest(slots, "x", 1, broken, LONG_S)
    assert background.latest(slots, "x", 2, lambda: "well", LONG_S) == "well"
    background.close()


def test_nothing_is_waited_for_behind_what_takes_long_at_first() -> None:
    background, slots, goes_on = BackgroundCompute(lambda: None), ResultSlots(), threading.Event()
    assert not slots.is_behind()
    background.latest(slots, "long", 1, goes_on.wait, wait_s=0)
    until(slots.is_behind, "it takes long")
    goes_on.set()
    until(lambda: not slots.tasks, "it is there")
    background.latest(slots, "long", 2, goes_on.wait, wait_s=0)
    assert not slots.is_behind()
    background.close()


def test_a_result_that_is_being_made_anew_is_not_dropped() -> None:
    background, slots, go_on = BackgroundCompute(lambda: None), ResultSlots(2), threading.Event()
    slots.results.put("a", ComputedResult(1, time.monotonic(), 0.0, "old", None))
    assert background.latest(slots, "a", 2, lambda: go_on.wait(LONG_S) and "new", 0) == "old"
    for name in ("b", "c", "d"):
        assert background.latest(slots, name, 1, lambda: "made", LONG_S) == "made"
    assert [name for name in "abcd" if name in slots.results] == ["a", "d"]
    go_on.set()
    until(lambda: not slots.tasks, "the new one")
    assert background.latest(slots, "a", 2, lambda: "not made again") == "new"
    background.close()


def test_a_file_system_that_hangs_is_given_up_and_asked_no_more_for_a_while() -> None:
    go_on = threading.Event()

    def hang() -> str:
        go_on.wait(LONG_S)
        return "read"

    for _ in range(MAX_STUCK):
        assert in_time(hang, "too slow", 0.001) == "too slow"
    assert in_time(lambda: "quick", "not begun", LONG_S) == "not begun"
    go_on.set()
    until(lambda: in_time(lambda: "quick", "not begun", LONG_S) == "quick", "the threads")
    with pytest.raises(OSError, match="gone"):
        in_time(_gone, None)


def _gone() -> None:
    raise OSError("gone")
