"""Records that the ranks of a program wrote of what they sent, and the pattern that they make.

    merged = PatternMerger(ranks=4)
    merged.add(parsed_record(text))     # of each rank: what suite/seatrial_pattern.c writes
    pattern = merged.pattern()          # ranks without a record are its ``missing``

Each program has many ranks, so only the pairs with the most bytes are kept.
"""

from msgspec import Struct
from msgspec.structs import replace

from seatrial.arrays import Ints
from seatrial.layout import patterns
from seatrial.layout.orders import MAX_RANKS
from seatrial.lazy import np

HEAD = "seatrial record 1"
MAX_CALLS = 1 << 13
_LARGEST = 1 << 48  # bytes or messages of a line: sums of some thousand fit in 63 bits
_MOST = 1 << 62
_FORMAT = "the library that wrote it is of another version, or the file was changed"
_HEADS = ("rank", "ranks", "host", "outside", "pairs", "calls")


class RankRecord(Struct, frozen=True):
    """What one rank sent: rows of sender, receiver, messages and bytes, one of the two itself."""

    rank: int
    ranks: int
    host: str
    outside: patterns.Traffic
    pairs: Ints
    calls: tuple[patterns.PatternCall, ...]


def parsed_record(text: str) -> RankRecord:
    """Return the record of a rank. Raises ValueError with the line."""
    lines = text.splitlines()
    if not lines or lines[0] != HEAD:
        raise ValueError(f"line 1 is not {HEAD!r}: {_FORMAT}")
    told = {name: patterns.head_line(lines, at, name, _FORMAT) for at, name in enumerate(_HEADS, 1)}
    rank, ranks, pairs, calls = (
        patterns.integers(told[name], 1 + _HEADS.index(name), 1, _FORMAT)[0]
        for name in ("rank", "ranks", "pairs", "calls")
    )
    if not rank < ranks <= MAX_RANKS or pairs > 2 * ranks or calls > MAX_CALLS:
        raise ValueError(f"rank {rank} of {ranks}, {pairs} pairs, {calls} calls cannot be")
    if not patterns.is_name(told["host"]):
        raise ValueError(f"line 4: {told['host'][:40]!r} is no name of a host: {_FORMAT}")
    first = 1 + len(_HEADS)
    if len(lines) != first + pairs + calls + 1 or lines[-1] != "end":
        raise ValueError(
            f"was cut short: {pairs} pairs and {calls} calls make {first + pairs + calls + 1} "
            f"lines with `end` as the last, and there are {len(lines)}"
        )
    rows = patterns.pair_rows(lines, first, pairs, _FORMAT)
    patterns.pattern_of(ranks, rows)
    if len(rows) and (rows[:, 2:].max() > _LARGEST or not (rows[:, :2] == rank).any(axis=1).all()):
        raise ValueError(f"has a pair without rank {rank}, or more than 2^48 bytes: {_FORMAT}")
    found = tuple(patterns.calls_of(lines, first + pairs, calls, _FORMAT))
    outside = patterns.Traffic(*patterns.integers(told["outside"], 4, 2, _FORMAT))
    return RankRecord(rank, ranks, told["host"], outside, rows, found)


class PatternMerger:
    """Adds up the records of ranks. ``keep``: so many pairs are kept."""

    def __init__(self, ranks: int, keep: int = patterns.MAX_PAIRS) -> None:
        self._ranks = ranks
        self._keep = keep
        self._rows: list[Ints] = []
        self._held = 0
        self._hosts: dict[str, set[int]] = {}
        self._calls: dict[tuple[str, int], tuple[int, int]] = {}
        self._outside = self._dropped = patterns.Traffic()
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
                patterns.Traffic(*self._calls.get(key, (0, 0))),
                patterns.Traffic(call.number, call.volume),
            )
        self._rows.append(record.pairs)
        self._held += len(record.pairs)
        if self._held > 2 * self._keep:
            self._reduce()

    def pattern(self) -> patterns.Pattern:
        """Return the sum of all records."""
        self._reduce()
        calls = [patterns.PatternCall(*key, *of) for key, of in sorted(self._calls.items())]
        placed: set[int] = set()
        nodes = []
        for host in sorted(self._hosts):  # of a rank that was on two hosts, the first counts
            nodes.append(patterns.NodeRanks(host, tuple(sorted(self._hosts[host] - placed))))
            placed |= self._hosts[host]
        return replace(
            patterns.pattern_of(self._ranks, self._rows[0], calls),
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
            self._dropped = _sum(self._dropped, patterns.Traffic(len(left), sum(left.tolist())))
            found = found[np.sort(order[: self._keep])]
        self._rows, self._held = [found], len(found)


def _sum(one: patterns.Traffic, other: patterns.Traffic) -> patterns.Traffic:
    number, volume = one.number + other.number, one.volume + other.volume
    return patterns.Traffic(min(number, _MOST), min(volume, _MOST))
