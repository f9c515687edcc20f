"""Loads of links by the pairs of nodes whose messages take them, and sums along paths.

    for use in uses:                        # of each kind of link
        load = use.loads(volumes)           # of each link
        strain = use.sums(load, pairs)      # of each pair, over the links of its path

A torus has a use for each axis and direction. The links that a path takes there follow each other
on a ring, so loads are sums of differences along the ring, and sums along paths are differences of
sums.
"""

from typing import NamedTuple, Protocol

from seatrial.arrays import Floats, Ints
from seatrial.lazy import np


class LinkUse(Protocol):
    """Which pairs of nodes take which links of one kind."""

    def loads(self, volumes: Floats) -> Floats:
        """Return the bytes over each link. ``volumes``: those of each pair."""

    def sums(self, values: Floats, number: int) -> Floats:
        """Return the sum of the values of the links that each of so many pairs takes. Links without
        a value have 0."""


class SingleLinks(NamedTuple):
    """Pairs that take one link each; ``links`` are their numbers."""

    pairs: Ints
    links: Ints

    def loads(self, volumes: Floats) -> Floats:
        return np.bincount(self.links, volumes[self.pairs]).astype(np.float64)

    def sums(self, values: Floats, number: int) -> Floats:
        of_link = np.zeros(max(len(values), int(self.links.max(initial=0)) + 1))
        of_link[: len(values)] = values
        return np.bincount(self.pairs, of_link[self.links], number).astype(np.float64)


class RingLinks(NamedTuple):
    """Pairs that take links which follow each other on rings of this ``length``. Each ring is there
    twice, one behind the other, so that a path around its end has a start and an end, too."""

    pairs: Ints
    starts: Ints
    ends: Ints
    rings: int
    length: int

    def loads(self, volumes: Floats) -> Floats:
        own, size = volumes[self.pairs], 2 * self.rings * self.length
        change = np.bincount(self.starts, own, size + 1) - np.bincount(self.ends, own, size + 1)
        twice = np.cumsum(change)[:size].reshape(self.rings, 2, self.length)
        found: Floats = twice.sum(axis=1).reshape(-1)
        return found

    def sums(self, values: Floats, number: int) -> Floats:
        rings = values.reshape(self.rings, 1, self.length)
        total = np.concatenate([[0.0], np.cumsum(np.repeat(rings, 2, axis=1))])
        found = np.bincount(self.pairs, total[self.ends] - total[self.starts], number)
        return found.astype(np.float64)
