"""Answers that are kept while they fit into so many bytes: those that were asked for last.

kept = ByteLru(64 << 20)
kept.put(("figures", "triad"), figures)
kept.get(("figures", "triad"))              # None: it had to go
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

OTHERS = 1000  # bytes that an answer takes besides its arrays


class ByteLru:
    """The answers, at most so many bytes of them; the last one is kept whatever its size."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._answers: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Any | None:
        """The answer under this key."""
        with self._lock:
            found = self._answers.get(key)
            if found is None:
                return None
            self._answers.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, answer: Any) -> None:
        """Keep an answer, instead of an older one of the same key."""
        size = _bytes_of(answer)
        with self._lock:
            self._size += size - self._answers.pop(key, (None, 0))[1]
            self._answers[key] = (answer, size)
            while self._size > self._most and len(self._answers) > 1:
                self._size -= self._answers.popitem(last=False)[1][1]


def _bytes_of(answer: Any) -> int:
    """About what it takes: the arrays in tuples, and little else."""
    if isinstance(answer, tuple):
        return sum(map(_bytes_of, answer)) + OTHERS
    return int(getattr(answer, "nbytes", 0))
