"""Communication patterns: how many messages and bytes each rank sent to each other.

    pattern = parsed(text)              # of a pattern file
    graph = graph_of(pattern)           # bytes in both directions, by neighbours of each rank

A pattern file is text. Its head has the number of ranks, of pairs and of calls, so that a file
that was cut short is noticed. Then each pair has a line ``FROM TO MESSAGES BYTES``, and each kind
of call and size ``NAME BYTES COUNT``. The last line is ``end``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from seatrial.arrays import Floats, Ints
from seatrial.layout.orders import MAX_RANKS
from seatrial.lazy import np

HEAD = "seatrial pattern 1"
_FORMAT = "docs/placement.md has the format"
_LARGEST = 1 << 62


class PatternCall(NamedTuple):
    """Calls of an MPI function with a message of so many bytes, over all ranks."""

    name: str
    size: int
    number: int


class Pattern(Struct, frozen=True):
    """Who sent how much to whom: sender, receiver, messages and bytes of each pair."""

    ranks: int
    senders: Ints
    receivers: Ints
    messages: Ints
    volumes: Ints
    calls: tuple[PatternCall, ...] = ()


class RankGraph(Struct, frozen=True):
    """The neighbours of each rank, and the bytes to and from each: those of rank r are at
    ``starts[r]`` to ``starts[r + 1]``. Nobody is its own neighbour."""

    starts: Ints
    neighbours: Ints
    weights: Floats

    @property
    def ranks(self) -> int:
        return len(self.starts) - 1


def pattern_of(
    ranks: int, rows: Sequence[Sequence[int]], calls: Sequence[PatternCall] = ()
) -> Pattern:
    """Return the pattern of rows of sender, receiver, messages and bytes. Raises ValueError with
    the row that cannot be."""
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    if not 1 <= ranks <= MAX_RANKS:
        raise ValueError(f"{ranks} ranks: there can be 1 to {MAX_RANKS}")
    outside = np.flatnonzero((table[:, :2] >= ranks).any(axis=1) | (table < 0).any(axis=1))
    if len(outside):
        row = " ".join(map(str, table[outside[0]]))
        raise ValueError(f"the pair {row!r} does not fit: ranks go from 0 to {ranks - 1}")
    return Pattern(ranks, table[:, 0], table[:, 1], table[:, 2], table[:, 3], tuple(calls))


def written(pattern: Pattern) -> str:
    """Return the text of a pattern file."""
    head = f"{HEAD}\nranks {pattern.ranks}\npairs {len(pattern.senders)}\n"
    columns = (pattern.senders, pattern.receivers, pattern.messages, pattern.volumes)
    pairs = (" ".join(map(str, row)) + "\n" for row in np.stack(columns, axis=1).tolist())
    calls = (f"{call.name} {call.size} {call.number}\n" for call in pattern.calls)
    return "".join((head, f"calls {len(pattern.calls)}\n", *pairs, *calls, "end\n"))


def parsed(text: str) -> Pattern:
    """Return the pattern that a file has. Raises ValueError with the line and the remedy."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != HEAD:
        raise ValueError(f"is no pattern file: the first line is not {HEAD!r}; {_FORMAT}")
    ranks, pairs, calls = (_head(lines, at, name) for at, name in _HEADS)
    if len(lines) != 5 + pairs + calls or lines[-1].strip() != "end":
        raise ValueError(
            f"was cut short or changed: {pairs} pairs and {calls} calls make {5 + pairs + calls} "
            f"lines with `end` as the last, and there are {len(lines)}; {_FORMAT}"
        )
    rows = [_numbers(lines, at, 4) for at in range(4, 4 + pairs)]
    found = []
    for at in range(4 + pairs, 4 + pairs + calls):
        name, _, rest = lines[at].partition(" ")
        size, number = _integers(rest, at, 2)
        found.append(PatternCall(name, size, number))
    return pattern_of(ranks, rows, found)


_HEADS = ((1, "ranks"), (2, "pairs"), (3, "calls"))


def _head(lines: Sequence[str], at: int, name: str) -> int:
    line = lines[at] if at < len(lines) else ""
    word, _, rest = line.partition(" ")
    if word != name:
        raise ValueError(f"line {at + 1}: {line[:40]!r} is not `{name} NUMBER`; {_FORMAT}")
    return _integers(rest, at, 1)[0]


def _numbers(lines: Sequence[str], at: int, count: int) -> list[int]:
    return _integers(lines[at], at, count)


def _integers(text: str, at: int, count: int) -> list[int]:
    words = text.split()
    good = all(word.isascii() and word.isdigit() and len(word) < 20 for word in words)
    if len(words) != count or not good or max(map(int, words)) > _LARGEST:
        raise ValueError(f"line {at + 1}: {text[:40]!r} are not {count} numbers; {_FORMAT}")
    return [*map(int, words)]


# ---- as a graph ---------------------------------------------------------------------------


def graph_of(pattern: Pattern) -> RankGraph:
    """Return the graph of a pattern: bytes to and from each neighbour added up."""
    volumes = pattern.volumes.astype(np.float64)
    return graph_of_edges(pattern.ranks, pattern.senders, pattern.receivers, volumes)


def graph_of_edges(ranks: int, a: Ints, b: Ints, weights: Floats) -> RankGraph:
    """Return the graph of edges; those of the same two ends are added up, in both directions."""
    apart = (a != b) & (weights > 0)
    a, b, weights = a[apart], b[apart], weights[apart]
    keys = np.concatenate([a * ranks + b, b * ranks + a])
    unique, inverse = np.unique(keys, return_inverse=True)
    total = np.bincount(inverse, np.concatenate([weights, weights]), len(unique)).astype(np.float64)
    starts = np.searchsorted(unique, np.arange(ranks + 1) * ranks)
    return RankGraph(starts.astype(np.int64), unique % ranks, total)


# ---- made by rule -------------------------------------------------------------------------


def stencil(shape: Sequence[int], volume: int = 1, periodic: bool = True) -> Pattern:
    """Return the halo exchange of a grid, row-major: each rank sends ``volume`` bytes to both
    neighbours in each dimension."""
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    senders, receivers = [], []
    for axis, length in enumerate(shape):
        for step in (1, -1) if length > 2 else (1,) if length == 2 else ():
            moved = np.roll(numbers, step, axis)
            keep = np.ones(shape, dtype=bool)
            if not periodic and length > 2:
                edge = [slice(None)] * len(shape)
                edge[axis] = slice(0, 1) if step == 1 else slice(length - 1, length)
                keep[tuple(edge)] = False
            senders.append(numbers[keep])
            receivers.append(moved[keep])
    a = np.concatenate(senders) if senders else np.zeros(0, np.int64)
    b = np.concatenate(receivers) if receivers else a
    ones = np.ones(len(a), np.int64)
    return Pattern(numbers.size, a.astype(np.int64), b.astype(np.int64), ones, ones * volume)
