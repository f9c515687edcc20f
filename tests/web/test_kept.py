"""What is kept of answers: no more than fits, and what was asked for last."""

from __future__ import annotations

import numpy as np

from seatrial.web.nodes.lru import OTHERS, ByteLru

ROOM = 3 * (800 + OTHERS)  # for three answers of a hundred figures each


def answer(number: int, size: int = 100) -> tuple[int, np.ndarray]:
    return number, np.zeros(size)


def test_what_was_asked_for_longest_ago_goes() -> None:
    kept = ByteLru(ROOM)
    for number in range(3):
        kept.put(number, answer(number))
    assert kept.get(0) is not None
    kept.put(3, answer(3))
    assert [number for number in range(4) if kept.get(number) is not None] == [0, 2, 3]


def test_an_answer_takes_the_place_of_its_older_one() -> None:
    kept = ByteLru(ROOM)
    kept.put("other", answer(0))
    for number in range(50):
        kept.put("one", answer(number))
    found = kept.get("one")
    assert found is not None and found[0] == 49
    assert kept.get("other") is not None


def test_the_last_answer_is_kept_whatever_its_size_and_goes_with_the_next() -> None:
    kept = ByteLru(ROOM)
    kept.put("small", answer(0))
    kept.put("large", answer(1, 10_000))
    assert kept.get("small") is None
    assert kept.get("large") is not None
    kept.put("small", answer(0))
    assert kept.get("large") is None


def test_arrays_within_tuples_count() -> None:
    kept = ByteLru(ROOM)
    kept.put("small", answer(0))
    kept.put("nested", ("seen", (np.zeros(5), np.zeros(10_000))))
    assert kept.get("small") is None
