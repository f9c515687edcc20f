"""Communication patterns: how many messages and bytes each rank sent to each other.

    pattern = parsed(text)              # of a pattern file
    graph = graph_of(pattern)           # bytes in both directions, by neighbours of each rank

A pattern file is text. Its head has the number of ranks, of pairs and of calls, so that a file
that was cut short is noticed; then, where they are known, the number of ``nodes``, the ``missing``
ranks, what went ``outside``, and what was ``dropped``. Then each pair has a line ``FROM TO MESSAGES
BYTES``, each kind of call and size ``NAME SIZE NUMBER BYTES``, each node ``NAME RANKS``. The last
line is ``end``.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.execute.run_collector import RunReader
from seatrial.execute.runs import RunUnderWay
from seatrial.execute.wrappers import PATTERN_FOLDER, PATTERN_START
from seatrial.files import read_regular, remove_file, replace_file
from seatrial.lazy import Bools, Floats, Ints, np
from seatrial.model.nodes import spans
from seatrial.model.orders import MAX_RANKS
from seatrial.model.suite import PATTERN_FILE
from seatrial.model.test import Test
from seatrial.units import count

HEAD = "seatrial pattern 1"
MAX_PAIRS = 1 << 21
"""Pairs that a recorded pattern keeps: those with the most bytes."""
_FORMAT = "docs/how-to/placement.md has the format"
_LARGEST = 1 << 62
_NAME = r"[\w.:-]{1,256}"


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
    ranks: int, rows: Sequence[Sequence[int]] | Ints, calls: Sequence[PatternCall] = ()
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
    values = {"nodes": [0], "outside": [0, 0], "dropped": [0, 0]}
    first = 4
    while first < len(lines) and (name := lines[first].partition(" ")[0]) in (*values, "missing"):
        rest = head_line(lines, first, name)
        if name == "missing":
            missing = ranks_of(rest, first, ranks)
        else:
            values[name] = integers(rest, first, len(values[name]), _FORMAT)
        first += 1
    nodes = values["nodes"][0]
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
        outside=Traffic(*values["outside"]),
        dropped=Traffic(*values["dropped"]),
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
    members: list[int] = []
    for span in text.split(","):
        first, dash, last = span.partition("-")
        low, high = integers(f"{first} {last if dash else first}", at, 2, _FORMAT)
        if not (members[-1] if members else -1) < low <= high < ranks:
            raise ValueError(
                f"line {at + 1}: {span[:40]!r}: ranks go up, from 0 to {ranks - 1}; {_FORMAT}"
            )
        members += range(low, high + 1)
    return tuple(members)


def integers(text: str, at: int, count: int, remedy: str) -> list[int]:
    """Return so many numbers of a line, none above 2^62. Raises ValueError with the line."""
    words = text.split()
    if len(words) != count or not all(map(_is_number, words)):
        raise ValueError(f"line {at + 1}: {text[:40]!r} are not {count} numbers; {remedy}")
    return [*map(int, words)]


def is_name(word: str) -> bool:
    """Return whether a word can be the name of a call or a host."""
    return re.fullmatch(_NAME, word, re.ASCII) is not None


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


# ---- pattern records -----------------------------------------------------------------------------
#
# Records that the ranks of a program wrote of what they sent, and the pattern that they make.
#
#     merged = PatternMerger(ranks=4)
#     merged.add(parsed_record(text))     # of each rank: what suite/seatrial_pattern.c writes
#     pattern = merged.pattern()          # ranks without a record are its ``missing``
#
# Each program has many ranks, so only the pairs with the most bytes are kept.


RECORD_HEAD = "seatrial record 1"
MAX_CALLS = 1 << 13
_LARGEST_RECORD = 1 << 48  # bytes or messages of a line: sums of some thousand fit in 63 bits
_MOST = 1 << 62
_RECORD_FORMAT = "the library that wrote it is of another version, or the file was changed"
_RECORD_HEADS = ("rank", "ranks", "host", "outside", "pairs", "calls")


class RankRecord(Struct, frozen=True):
    """What one rank sent: rows of sender, receiver, messages and bytes, one of the two itself."""

    rank: int
    ranks: int
    host: str
    outside: Traffic
    pairs: Ints
    calls: tuple[PatternCall, ...]


def parsed_record(text: str) -> RankRecord:
    """Return the record of a rank. Raises ValueError with the line."""
    lines = text.splitlines()
    if not lines or lines[0] != RECORD_HEAD:
        raise ValueError(f"line 1 is not {RECORD_HEAD!r}: {_RECORD_FORMAT}")
    values = {
        name: head_line(lines, at, name, _RECORD_FORMAT) for at, name in enumerate(_RECORD_HEADS, 1)
    }
    rank, ranks, pairs, calls = (
        integers(values[name], 1 + _RECORD_HEADS.index(name), 1, _RECORD_FORMAT)[0]
        for name in ("rank", "ranks", "pairs", "calls")
    )
    if not rank < ranks <= MAX_RANKS or pairs > 2 * ranks or calls > MAX_CALLS:
        raise ValueError(f"rank {rank} of {ranks}, {pairs} pairs, {calls} calls cannot be")
    host = values["host"]
    if not is_name(host):
        raise ValueError(f"line 4: {host[:40]!r} is no name of a host: {_RECORD_FORMAT}")
    first = 1 + len(_RECORD_HEADS)
    if len(lines) != first + pairs + calls + 1 or lines[-1] != "end":
        raise ValueError(
            f"was cut short: {pairs} pairs and {calls} calls make {first + pairs + calls + 1} "
            f"lines with `end` as the last, and there are {len(lines)}"
        )
    rows = _pairs_of_rank(lines, first, pairs, rank, ranks)
    calls_made = tuple(calls_of(lines, first + pairs, calls, _RECORD_FORMAT))
    outside = Traffic(*integers(values["outside"], 4, 2, _RECORD_FORMAT))
    return RankRecord(rank, ranks, host, outside, rows, calls_made)


def _pairs_of_rank(lines: Sequence[str], first: int, pairs: int, rank: int, ranks: int) -> Ints:
    """Return the rows of pairs, one of each of which is the rank. Raises ValueError."""
    rows = pair_rows(lines, first, pairs, _RECORD_FORMAT)
    pattern_of(ranks, rows)
    has_rank = (rows[:, :2] == rank).any(axis=1)
    if not has_rank.all() or rows[:, 2:].max(initial=0) > _LARGEST_RECORD:
        raise ValueError(
            f"has a pair without rank {rank}, or more than 2^48 bytes: {_RECORD_FORMAT}"
        )
    return rows


class PatternMerger:
    """Adds up the records of ranks. ``keep``: so many pairs are kept."""

    def __init__(self, ranks: int, keep: int = MAX_PAIRS) -> None:
        self._ranks = ranks
        self._keep = keep
        self._rows: list[Ints] = []
        self._held = 0
        self._hosts: dict[str, set[int]] = {}
        self._calls: dict[tuple[str, int], tuple[int, int]] = {}
        self._outside = self._dropped = Traffic()
        self._seen: set[int] = set()

    def add(self, record: RankRecord) -> None:
        """Add the record of a rank; a rank may have one of each start of the program. Raises
        ValueError for one of another number of ranks."""
        if record.ranks != self._ranks:
            raise ValueError(f"is of {record.ranks} ranks; the others are of {self._ranks}")
        self._seen.add(record.rank)
        self._hosts.setdefault(record.host, set()).add(record.rank)
        self._outside = _sum(self._outside, record.outside)
        for call in record.calls:
            key = (call.name, call.size)
            self._calls[key] = _sum(
                Traffic(*self._calls.get(key, (0, 0))),
                Traffic(call.number, call.volume),
            )
        self._rows.append(record.pairs)
        self._held += len(record.pairs)
        if self._held > 2 * self._keep:
            self._reduce()

    def pattern(self) -> Pattern:
        """Return the sum of all records."""
        self._reduce()
        calls = [PatternCall(*key, *of) for key, of in sorted(self._calls.items())]
        placed: set[int] = set()
        nodes = []
        for host in sorted(self._hosts):  # of a rank that was on two hosts, the first counts
            nodes.append(NodeRanks(host, tuple(sorted(self._hosts[host] - placed))))
            placed |= self._hosts[host]
        return replace(
            pattern_of(self._ranks, self._rows[0], calls),
            nodes=tuple(node for node in nodes if node.ranks),
            missing=tuple(sorted(set(range(self._ranks)) - self._seen)),
            outside=self._outside,
            dropped=self._dropped,
        )

    def _reduce(self) -> None:
        """Add up the rows of the same pair, and drop those with the fewest bytes."""
        rows = np.concatenate([np.zeros((0, 4), np.int64), *self._rows])
        keys, inverse = np.unique(rows[:, 0] * self._ranks + rows[:, 1], return_inverse=True)
        sums = np.zeros((len(keys), 2), np.int64)
        np.add.at(sums, inverse, rows[:, 2:])
        found = np.column_stack([keys // self._ranks, keys % self._ranks, sums])
        if len(found) > self._keep:
            order = np.argsort(-found[:, 3], kind="stable")
            left = found[order[self._keep :], 3]
            self._dropped = _sum(self._dropped, Traffic(len(left), sum(left.tolist())))
            found = found[np.sort(order[: self._keep])]
        self._rows, self._held = [found], len(found)


def _sum(one: Traffic, other: Traffic) -> Traffic:
    number, volume = one.number + other.number, one.volume + other.volume
    return Traffic(min(number, _MOST), min(volume, _MOST))


# ---- pattern summary -----------------------------------------------------------------------------
#
# What a communication pattern says in a few figures: totals, the share that left its node, the
# pairs with the most bytes, and a map of bytes from ranks to ranks.


class PairTraffic(NamedTuple):
    """What one rank sent to another."""

    sender: int
    receiver: int
    messages: int
    volume: int


class PatternSummary(Struct, frozen=True, kw_only=True):
    """``sent`` is all that was sent, ``to_itself`` what ranks sent to themselves, ``off_node`` what
    went to another node (None: the nodes are not known). ``top`` are the pairs with the most
    bytes, of ``pairs``."""

    ranks: int
    pairs: int
    sent: Traffic
    to_itself: Traffic
    off_node: Traffic | None
    outside: Traffic
    dropped: Traffic
    top: list[PairTraffic]
    calls: list[PatternCall]
    nodes: list[NodeRanks]
    missing: list[int]


def summary_of(pattern: Pattern, top: int = 10) -> PatternSummary:
    """Return the figures of a pattern."""
    own = pattern.senders == pattern.receivers
    order = np.lexsort((pattern.receivers, pattern.senders, -pattern.volumes))[:top]
    columns = (pattern.senders, pattern.receivers, pattern.messages, pattern.volumes)
    rows = np.stack([column[order] for column in columns], axis=1).tolist()
    return PatternSummary(
        ranks=pattern.ranks,
        pairs=len(own),
        sent=_traffic(pattern, np.ones(len(own), np.bool_)),
        to_itself=_traffic(pattern, own),
        off_node=_off_node(pattern),
        outside=pattern.outside,
        dropped=pattern.dropped,
        top=[PairTraffic(*row) for row in rows],
        calls=list(pattern.calls),
        nodes=list(pattern.nodes),
        missing=list(pattern.missing),
    )


def _off_node(pattern: Pattern) -> Traffic | None:
    if not pattern.nodes:
        return None
    node_of = np.full(pattern.ranks, -1)
    for number, node in enumerate(pattern.nodes):
        node_of[list(node.ranks)] = number
    a, b = node_of[pattern.senders], node_of[pattern.receivers]
    return _traffic(pattern, (a != b) & (a >= 0) & (b >= 0))


def _traffic(pattern: Pattern, chosen: Bools) -> Traffic:
    """Return the sums over chosen pairs, as integers of any size."""
    messages, volumes = pattern.messages[chosen], pattern.volumes[chosen]
    return Traffic(sum(messages.tolist()), sum(volumes.tolist()))


def rank_map(pattern: Pattern, max_rows: int) -> tuple[Floats, int]:
    """Return the bytes from ranks (rows) to ranks (columns), shape (k, k) with k at most ``most``,
    and how many ranks a row stands for."""
    per = -(-pattern.ranks // max_rows)
    cells = -(-pattern.ranks // per)
    places = pattern.senders // per * cells + pattern.receivers // per
    sums = np.bincount(places, pattern.volumes.astype(np.float64), cells * cells)
    return sums.astype(np.float64).reshape(cells, cells), per


# ---- pattern collector ---------------------------------------------------------------------------
#
# The communication pattern of a run, by what its ranks recorded.
#
#     collect(run)                   # the records of its ranks become pattern.txt
#     faults_of(run, pattern)        # what is missing, and why
#
# Records that were added up are removed; what cannot be read stays.


MAX_FILE_BYTES = 1 << 28  # of a pattern file
_MAX_RECORD_BYTES = 1 << 26
_MAX_TOLD = 5
_OTHER_MPI = "other-mpi"
_RECORD = r"([0-9a-f]{16})\.(begin|\d{1,7})"


def collect(run: Path) -> None:
    """Add up the records of the ranks of a run, and write its pattern. Nothing is written where no
    rank left a record. Raises OSError."""
    begun, records = _found(run)
    ranks = max(begun.values(), default=0)
    merger, read = PatternMerger(ranks), []
    for launch, number in begun.items():
        for rank, path in records.get(launch, {}).items() if number == ranks else ():
            with contextlib.suppress(OSError, ValueError):
                merger.add(_record(path, rank))
                read.append(path)
    if not read:
        return
    replace_file(run / PATTERN_FILE, written(merger.pattern()).encode())
    for path in read:
        remove_file(path, missing_ok=True)
    with contextlib.suppress(OSError):  # a record that cannot be read stays
        for launch in begun:
            remove_file(run / PATTERN_FOLDER / f"{launch}.begin", missing_ok=True)
        (run / PATTERN_FOLDER).rmdir()  # plain: an empty folder alone


def pattern_of_run(run: Path) -> Pattern:
    """Return the pattern of a run. Raises ValueError where it has none, with the reason."""
    path = run / PATTERN_FILE
    try:
        return read_pattern(path)
    except FileNotFoundError:
        raise ValueError(f"{path} is not there: {_reason(run)}") from None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_pattern(path: Path) -> Pattern:
    """Return the pattern of a file. Raises OSError, ValueError."""
    return parsed(read_regular(path, MAX_FILE_BYTES).decode(errors="replace"))


def faults_of(run: Path, pattern: Pattern) -> list[str]:
    """Return sentences about what a recorded pattern lacks."""
    if not pattern.missing:
        return []
    _, records = _found(run)
    torn = {rank: path for own in records.values() for rank, path in own.items()}
    unread = [(torn[rank], rank) for rank in pattern.missing if rank in torn][:_MAX_TOLD]
    faults = [
        f"{path}: {reason}; record the run again"
        for path, rank in unread
        if (reason := _fault(path, rank))
    ]
    silent = [rank for rank in pattern.missing if rank not in torn]
    if silent:
        noun = f"{count(len(silent), 'rank')} left no record: {_cut(spans(silent))}"
        faults.append(f"{noun}; a rank writes it in MPI_Finalize, see whether the program calls it")
    return faults


def _reason(run: Path) -> str:
    """Return why a run has no pattern."""
    if not (run / PATTERN_START).exists():
        return "the run was not recorded; `seatrial pattern record` does, or `run.pattern: true`"
    with contextlib.suppress(OSError):
        other = read_regular(run / PATTERN_FOLDER / _OTHER_MPI, 1 << 16, follow=False)
        version = other.decode(errors="replace").split("\n")[0]
        return f"the program has another MPI than the toolchain's mpicc: {_cut(version)}"
    begun, records = _found(run)
    if not begun:
        return (
            "no MPI program began under the library; the script must start it by $LAUNCH, and a "
            "static program cannot be recorded"
        )
    for own in records.values():
        for rank, path in own.items():
            if reason := _fault(path, rank):
                return f"{path}: {reason}"
    began = count(max(begun.values()), "rank")
    return f"{began} began and none left a record; a rank writes it in MPI_Finalize"


def _found(run: Path) -> tuple[dict[str, int], dict[str, dict[int, Path]]]:
    """Return the starts of programs with their numbers of ranks, and the records of each."""
    begun: dict[str, int] = {}
    records: dict[str, dict[int, Path]] = {}
    for path in _entries(run / PATTERN_FOLDER):
        launch, _, kind = path.name.partition(".")
        if kind != "begin":
            records.setdefault(launch, {})[int(kind)] = path
            continue
        with contextlib.suppress(OSError, ValueError):
            number = int(read_regular(path, 32, follow=False))
            if 1 <= number <= MAX_RANKS:
                begun[launch] = number
    return begun, records


def _entries(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if re.fullmatch(_RECORD, entry.name, re.ASCII):
                    yield Path(entry.path)
    except OSError:
        return


def _fault(path: Path, rank: int) -> str:
    """Return why the record of a rank cannot be read; "" if it can."""
    try:
        _record(path, rank)
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def _record(path: Path, rank: int) -> RankRecord:
    data = read_regular(path, _MAX_RECORD_BYTES, follow=False)
    record = parsed_record(data.decode(errors="replace"))
    if record.rank != rank:
        raise ValueError(f"has the record of rank {record.rank}")
    return record


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}..."


class PatternReader(RunReader):
    """Makes the pattern of a run whose test asks for it."""

    def is_slow(self, test: Test) -> bool:
        return bool(test.run.pattern)

    def collect(self, run: RunUnderWay) -> None:
        if run.test.run.pattern:
            with contextlib.suppress(OSError):
                collect(run.path)
