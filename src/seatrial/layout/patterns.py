"""Communication patterns: how many messages and bytes each rank sent to each other.

    pattern = parsed(text)              # of a pattern file
    graph = graph_of(pattern)           # bytes in both directions, by neighbours of each rank

A pattern file is text. Its head has the number of ranks, of pairs and of calls, so that a file
that was cut short is noticed; then, where they are known, the number of ``nodes``, the ``missing``
ranks, what went ``outside``, and what was ``dropped``. Then each pair has a line ``FROM TO MESSAGES
BYTES``, each kind of call and size ``NAME SIZE NUMBER BYTES``, each node ``NAME RANKS``. The last
line is ``end``.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.arrays import Floats, Ints
from seatrial.layout.node import spans
from seatrial.layout.orders import MAX_RANKS
from seatrial.lazy import np, regex

HEAD = "seatrial pattern 1"
MAX_PAIRS = 1 << 21
"""Pairs that a recorded pattern keeps: those with the most bytes."""
_FORMAT = "docs/how-to/placement.md has the format"
_LARGEST = 1 << 62
_NAME = regex(r"[\w.:-]{1,256}", re.ASCII)


class PatternCall(NamedTuple):
    """Calls of an MPI function with a message of at most ``size`` bytes, over all ranks: their
    number, and their bytes."""

    name: str
    size: int
    number: int
    volume: int = 0


class NodeRanks(NamedTuple):
    """A node and the ranks that were on it, ascending."""

    node: str
    ranks: tuple[int, ...]


class Traffic(NamedTuple):
    """A number of messages or of pairs, and their bytes."""

    number: int = 0
    volume: int = 0


class Pattern(Struct, frozen=True):
    """Who sent how much to whom: sender, receiver, messages and bytes of each pair.

    ``nodes`` are those of the run that was recorded. Of ``missing`` ranks there is no record.
    ``outside`` are messages to ranks that are not in MPI_COMM_WORLD, ``dropped`` are pairs with few
    bytes that were left out.
    """

    ranks: int
    senders: Ints
    receivers: Ints
    messages: Ints
    volumes: Ints
    calls: tuple[PatternCall, ...] = ()
    nodes: tuple[NodeRanks, ...] = ()
    missing: tuple[int, ...] = ()
    outside: Traffic = Traffic()
    dropped: Traffic = Traffic()


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
    ranks: int, rows: "Sequence[Sequence[int]] | Ints", calls: Sequence[PatternCall] = ()
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
    columns = (pattern.senders, pattern.receivers, pattern.messages, pattern.volumes)
    pairs = (" ".join(map(str, row)) for row in np.stack(columns, axis=1).tolist())
    lines = [HEAD, f"ranks {pattern.ranks}", f"pairs {len(pattern.senders)}"]
    lines.append(f"calls {len(pattern.calls)}")
    lines += [f"nodes {len(pattern.nodes)}"] if pattern.nodes else []
    lines += [f"missing {spans(pattern.missing)}"] if pattern.missing else []
    for name in ("outside", "dropped"):
        told: Traffic = getattr(pattern, name)
        lines += [f"{name} {told.number} {told.volume}"] if told.number else []
    lines += pairs
    lines += [" ".join(map(str, call)) for call in pattern.calls]
    lines += [f"{node} {spans(ranks)}" for node, ranks in pattern.nodes]
    return "\n".join([*lines, "end\n"])


def parsed(text: str) -> Pattern:
    """Return the pattern that a file has. Raises ValueError with the line and the remedy."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != HEAD:
        raise ValueError(f"is no pattern file: the first line is not {HEAD!r}; {_FORMAT}")
    ranks, pairs, calls = (
        integers(head_line(lines, at, name), at, 1, _FORMAT)[0] for at, name in _HEADS
    )
    missing: tuple[int, ...] = ()
    told = {"nodes": [0], "outside": [0, 0], "dropped": [0, 0]}
    first = 4
    while first < len(lines) and (name := lines[first].partition(" ")[0]) in (*told, "missing"):
        rest = head_line(lines, first, name)
        if name == "missing":
            missing = ranks_of(rest, first, ranks)
        else:
            told[name] = integers(rest, first, len(told[name]), _FORMAT)
        first += 1
    nodes = told["nodes"][0]
    expected = first + pairs + calls + nodes + 1
    if len(lines) != expected or lines[-1].strip() != "end":
        raise ValueError(
            f"was cut short or changed: {pairs} pairs, {calls} calls and {nodes} nodes make "
            f"{expected} lines with `end` as the last, and there are {len(lines)}; {_FORMAT}"
        )
    rows = pair_rows(lines, first, pairs, _FORMAT)
    pattern = pattern_of(ranks, rows, [*calls_of(lines, first + pairs, calls, _FORMAT)])
    return replace(
        pattern,
        nodes=tuple(_nodes(lines, first + pairs + calls, nodes, ranks)),
        missing=missing,
        outside=Traffic(*told["outside"]),
        dropped=Traffic(*told["dropped"]),
    )


_HEADS = ((1, "ranks"), (2, "pairs"), (3, "calls"))


def head_line(lines: Sequence[str], at: int, name: str, remedy: str = _FORMAT) -> str:
    """Return what follows the name in a line of a head. Raises ValueError where another name is
    there."""
    line = lines[at] if at < len(lines) else ""
    word, _, rest = line.partition(" ")
    if word != name:
        raise ValueError(f"line {at + 1}: {line[:40]!r} is not `{name} NUMBER`; {remedy}")
    return rest


def pair_rows(lines: Sequence[str], first: int, number: int, remedy: str) -> Ints:
    """Return the rows of so many pairs: sender, receiver, messages and bytes. Raises ValueError
    with the line."""
    own = lines[first : first + number]
    words = " ".join(own).split()
    whole = all(line.count(" ") == 3 for line in own) and len(words) == 4 * number
    if not whole or not all(map(_is_number, words)):
        rows = [integers(lines[at], at, 4, remedy) for at in range(first, first + number)]
        return np.array(rows, dtype=np.int64).reshape(-1, 4)
    return np.array([*map(int, words)], dtype=np.int64).reshape(-1, 4)


def calls_of(lines: Sequence[str], first: int, number: int, remedy: str) -> Iterator[PatternCall]:
    """Yield so many calls. A line may end after its number. Raises ValueError with the line."""
    for at in range(first, first + number):
        name, _, rest = lines[at].partition(" ")
        if not is_name(name):
            raise ValueError(f"line {at + 1}: {lines[at][:40]!r} is no name of a call; {remedy}")
        yield PatternCall(name, *integers(rest, at, 2 + (rest.count(" ") > 1), remedy))


def _nodes(lines: Sequence[str], first: int, number: int, ranks: int) -> Iterator[NodeRanks]:
    seen: set[int] = set()
    for at in range(first, first + number):
        name, _, rest = lines[at].partition(" ")
        own = ranks_of(rest, at, ranks)
        if not is_name(name) or not seen.isdisjoint(own):
            raise ValueError(
                f"line {at + 1}: {lines[at][:40]!r} is no node with ranks of its own; {_FORMAT}"
            )
        seen.update(own)
        yield NodeRanks(name, own)


def ranks_of(text: str, at: int, ranks: int) -> tuple[int, ...]:
    """Return ranks in ascending spans such as ``0-2,6``. Raises ValueError with the line for what
    is none, or goes beyond the last of so many ranks."""
    found: list[int] = []
    for span in text.split(","):
        first, dash, last = span.partition("-")
        low, high = integers(f"{first} {last if dash else first}", at, 2, _FORMAT)
        if not (found[-1] if found else -1) < low <= high < ranks:
            raise ValueError(
                f"line {at + 1}: {span[:40]!r}: ranks go up, from 0 to {ranks - 1}; {_FORMAT}"
            )
        found += range(low, high + 1)
    return tuple(found)


def integers(text: str, at: int, count: int, remedy: str) -> list[int]:
    """Return so many numbers of a line, none above 2^62. Raises ValueError with the line."""
    words = text.split()
    if len(words) != count or not all(map(_is_number, words)):
        raise ValueError(f"line {at + 1}: {text[:40]!r} are not {count} numbers; {remedy}")
    return [*map(int, words)]


def is_name(word: str) -> bool:
    """Return whether a word can be the name of a call or a host."""
    return _NAME.fullmatch(word) is not None


def _is_number(word: str) -> bool:
    return word.isdigit() and word.isascii() and len(word) < 20 and int(word) <= _LARGEST


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
