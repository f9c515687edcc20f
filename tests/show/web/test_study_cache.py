"""Judgements beside the pages: kept, few, and never too many at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from seatrial.errors import UsageError
from seatrial.show.web.server_state import MAX_STUDIES, MAX_WAITING, StudyAnswer, StudyCache
from tests.programs import LONG_S, until


@pytest.fixture
def studies(monkeypatch: pytest.MonkeyPatch) -> Iterator[StudyCache]:
    """A cache that waits for what it makes, whatever this machine does."""
    monkeypatch.setattr("seatrial.show.web.caches.MAX_QUICK_S", LONG_S)
    monkeypatch.setattr("seatrial.show.web.caches.MAX_FIRST_WAIT_S", LONG_S)
    opened = StudyCache(lambda: None)
    yield opened
    opened.close()


def test_what_was_made_is_kept_until_its_version_changes(studies: StudyCache) -> None:
    made = []

    def make() -> int:
        made.append(1)
        return len(made)

    assert [studies.latest("a", version, make) for version in (1, 1, 2, 2)] == [1, 1, 2, 2]
    assert studies.latest("b", 1, make) == 3


def test_what_was_asked_for_longest_ago_is_forgotten(studies: StudyCache) -> None:
    for number in range(MAX_STUDIES + 1):
        assert studies.latest(number, 1, lambda: "old") == "old"
    assert studies.latest(0, 1, lambda: "new") == "new"
    assert studies.latest(MAX_STUDIES, 1, lambda: "new") == "old"


def test_a_refusal_is_raised_again(studies: StudyCache) -> None:
    def refuse() -> None:
        raise UsageError("no such trial")

    for _ in range(2):
        with pytest.raises(UsageError, match="no such trial"):
            studies.latest("a", 1, refuse)


def test_too_many_that_wait_are_not_begun(
    studies: StudyCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatrial.show.web.caches.MAX_FIRST_WAIT_S", 0.0)
    gate = threading.Event()

    def wait() -> str:
        gate.wait()
        return "made"

    begun: list[int] = []
    for number in range(MAX_WAITING):
        assert studies.latest(number, 1, wait) is None
    assert studies.latest("one more", 1, lambda: begun.append(1)) is None
    gate.set()
    until(lambda: studies.latest(MAX_WAITING - 1, 1, wait) == "made", "the last of them")
    assert begun == []
    until(lambda: studies.latest("one more", 1, lambda: "made then") == "made then", "one more")


def test_large_ones_are_kept_apart(studies: StudyCache) -> None:
    assert studies.latest("small", 1, lambda: "old") == "old"
    for number in range(MAX_STUDIES):
        assert studies.latest(number, 1, lambda: "large", large=True) == "large"
    assert studies.latest(0, 1, lambda: "made again", large=True) == "made again"
    assert studies.latest("small", 1, lambda: "new") == "old"


def test_a_form_learns_why_there_is_no_answer(studies: StudyCache) -> None:
    def refuse() -> None:
        raise UsageError("no such trial")

    assert studies.answer("a", 1, refuse) == StudyAnswer(None, "refused", "no such trial")
    assert studies.answer("b", 1, lambda: "made") == StudyAnswer("made", "judged")
