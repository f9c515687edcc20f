"""The cache of everything that the server keeps: bounded by number, by size and by age.

    cache: LruCache[str, bytes] = LruCache(max_items=64, max_size=32 << 20, size_of=len)
    cache.put("/runs", body)
    cache.get("/runs")                          # None if it was dropped

What was used longest ago is dropped first. The item that was put last is kept whatever its size.
"""

import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

ITEM_BYTES = 1000  # of a tuple, besides its arrays


class LruCache(Generic[K, V]):
    """Items by key, to be used by several threads. ``size_of`` gives the size of an item,
    ``max_age_s`` is the time in seconds after which an item is not returned any more. Items for
    whose key ``is_pinned`` is true are not dropped."""

    def __init__(
        self,
        max_items: float = math.inf,
        max_size: float = math.inf,
        max_age_s: float = math.inf,
        size_of: Callable[[V], int] = lambda _: 0,
        is_pinned: Callable[[K], bool] = lambda _: False,
    ) -> None:
        self.max_items = max_items
        self.max_size = max_size
        self.max_age_s = max_age_s
        self._size_of = size_of
        self._is_pinned = is_pinned
        self._items: OrderedDict[K, tuple[V, int, float]] = OrderedDict()  # value, size, time
        self._size = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: K) -> bool:
        return key in self._items

    def get(self, key: K) -> V | None:
        """Return the item of this key, None if there is none or it is too old."""
        with self._lock:
            item = self._items.get(key)
            if item is None:
                return None
            if monotonic() - item[2] > self.max_age_s:
                self._remove(key)
                return None
            self._items.move_to_end(key)
            return item[0]

    def put(self, key: K, value: V) -> None:
        """Keep an item in place of an older one of the same key."""
        size = self._size_of(value)
        with self._lock:
            if key in self._items:
                self._remove(key)
            self._items[key] = (value, size, monotonic())
            self._size += size
            self._drop()

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """Return the item of this key; make and keep it if there is none."""
        value = self.get(key)
        if value is None:
            value = make()
            self.put(key, value)
        return value

    def measure(self) -> None:
        """Measure all items again, because they have grown, and drop what is too much."""
        with self._lock:
            for key, (value, _, put) in self._items.items():
                self._items[key] = (value, self._size_of(value), put)
            self._size = sum(size for _, size, _ in self._items.values())
            self._drop()

    def _remove(self, key: K) -> None:
        self._size -= self._items.pop(key)[1]

    def _drop(self) -> None:
        for key in list(self._items)[:-1]:
            if len(self._items) <= self.max_items and self._size <= self.max_size:
                return
            if not self._is_pinned(key):
                self._remove(key)


def array_bytes(value: Any) -> int:
    """Return about how many bytes the arrays in a tuple, or in tuples within it, take."""
    if isinstance(value, tuple):
        return sum(map(array_bytes, value)) + ITEM_BYTES
    return int(getattr(value, "nbytes", 0))
