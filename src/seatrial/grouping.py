"""Groups of things that share a key."""

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K")


def grouped(things: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the things by their key. Keys are in the order of their first thing, and the things of
    a key in the order in which they came."""
    groups: dict[K, list[T]] = {}
    for one in things:
        groups.setdefault(key(one), []).append(one)
    return groups
