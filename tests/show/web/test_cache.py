"""The cache: what is kept is the latest that fits, by number, size and age."""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.show.web import caches
from seatrial.show.web.caches import ITEM_BYTES, LruCache, array_bytes

KEYS = st.integers(0, 6)
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "get", "grow", "later"]), KEYS, st.integers(0, 40)),
    max_size=60,
)


class Item:
    def __init__(self, size: int) -> None:
        self.size = size


class Model:
    """The same rules, written a second time: the items in the order of their use."""

    def __init__(self, items: int, size: int, age: float, pinned: set[int]) -> None:
        self.items, self.size, self.age, self.pinned = items, size, age, pinned
        self.kept: OrderedDict[int, tuple[Item, int, float]] = OrderedDict()

    def get(self, key: int, now: float) -> Item | None:
        if key in self.kept and now - self.kept[key][2] > self.age:
            del self.kept[key]
        if key not in self.kept:
            return None
        self.kept.move_to_end(key)
        return self.kept[key][0]

    def put(self, key: int, item: Item, now: float) -> None:
        self.kept.pop(key, None)
        self.kept[key] = (item, item.size, now)
        self.drop()

    def measure(self) -> None:
        self.kept.update({k: (item, item.size, at) for k, (item, _, at) in self.kept.items()})
        self.drop()

    def is_too_much(self) -> bool:
        total = sum(size for _, size, _ in self.kept.values())
        return len(self.kept) > self.items or total > self.size

    def drop(self) -> None:
        while self.is_too_much():
            old = [key for key in list(self.kept)[:-1] if key not in self.pinned]
            if not old:
                return
            del self.kept[old[0]]


@given(STEPS, st.integers(1, 5), st.integers(1, 80), st.integers(1, 50), st.sets(KEYS, max_size=2))
def test_what_is_kept_is_what_was_used_last_and_fits(
    steps: list[tuple[str, int, int]], items: int, size: int, age: int, pinned: set[int]
) -> None:
    now = 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(caches, "monotonic", lambda: now)
        model = Model(items, size, age, pinned)
        kept: LruCache[int, Item] = LruCache(
            items, size, age, size_of=lambda item: item.size, is_pinned=pinned.__contains__
        )
        for step, key, number in steps:
            if step == "put":
                item = Item(number)
                kept.put(key, item)
                model.put(key, item, now)
                assert key in kept, "the last one is kept whatever its size"
            elif step == "get":
                assert kept.get(key) is model.get(key, now)
            elif step == "grow":
                found = kept.get(key)
                assert found is model.get(key, now)
                if found is not None:
                    found.size += number
                kept.measure()
                model.measure()
            else:
                now += number
            assert len(kept) == len(model.kept)
            assert all(key in kept for key in model.kept)


def test_an_item_that_is_there_is_not_made_again() -> None:
    kept: LruCache[str, str] = LruCache()
    assert kept.get_or_make("a", lambda: "made") == "made"
    assert kept.get_or_make("a", lambda: "made again") == "made"


def test_several_threads_may_use_it() -> None:
    kept: LruCache[int, int] = LruCache(max_items=20, max_size=300, size_of=lambda item: item % 50)

    def work(start: int) -> None:
        for number in range(2000):
            kept.put((start + number) % 57, number)
            kept.get(number % 31)

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept.put(1000, 0)
    assert len(kept) <= 20
    sizes = [size for _, size, _ in kept._items.values()]
    assert kept._size == sum(sizes) <= 300


def test_arrays_within_tuples_count() -> None:
    nested = ("seen", (np.zeros(5), np.zeros(1000)))
    assert array_bytes(nested) == 8 * 1005 + 2 * ITEM_BYTES
