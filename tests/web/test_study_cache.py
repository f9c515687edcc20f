"""Judgements beside the pages: kept, few, and never too many at a time."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import pytest

from seatrial.errors import UsageError
from seatrial.web.server_state import ServerState
from seatrial.web.study_cache import KEPT, MOST_WAITING, computed

from ..programs import LONG_S, until

waited_for = partial(computed, wait_s=LONG_S)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServerState:
    monkeypatch.setattr("seatrial.web.background.MAX_QUICK_S", LONG_S)  # whatever this machine does
    return ServerState(tmp_path, tmp_path / "store.sqlite")


def test_what_was_made_is_kept_until_its_version_changes(site: ServerState) -> None:
    made = []

    def make() -> int:
        made.append(1)
        return len(made)

    assert [waited_for(site, "a", version, make) for version in (1, 1, 2, 2)] == [1, 1, 2, 2]
    assert waited_for(site, "b", 1, make) == 3


def test_what_was_asked_for_longest_ago_is_forgotten(site: ServerState) -> None:
    for number in range(KEPT + 1):
        assert waited_for(site, number, 1, lambda: "old") == "old"
    assert waited_for(site, 0, 1, lambda: "new") == "new"
    assert waited_for(site, KEPT, 1, lambda: "new") == "old"


def test_a_refusal_is_raised_again(site: ServerState) -> None:
    def refuse() -> None:
        raise UsageError("no such trial")

    for _ in range(2):
        with pytest.raises(UsageError, match="no such trial"):
            waited_for(site, "a", 1, refuse)


def test_too_many_that_wait_are_not_begun(site: ServerState) -> None:
    gate = threading.Event()

    def wait() -> str:
        gate.wait()
        return "made"

    begun: list[int] = []
    for number in range(MOST_WAITING):
        assert computed(site, number, 1, wait, wait_s=0) is None
    assert computed(site, "one more", 1, lambda: begun.append(1), wait_s=0) is None
    gate.set()
    until(lambda: computed(site, MOST_WAITING - 1, 1, wait) == "made", "the last of them")
    assert begun == []
    assert computed(site, "one more", 1, lambda: "made then", wait_s=60) == "made then"
