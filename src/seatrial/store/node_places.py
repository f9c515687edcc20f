"""The nodes of machines by number, and the nodes of each run as spans of these numbers.

    places = NodePlaces(writer, "frost")
    places.add(["n001", "n002"])                     # those of its description, in their order
    places.spans({"n[001-128]", "n007,n009"})        # {"n[001-128]": [(0, 127)], ...}
    keep_nodes(writer, trial, runs, changed)         # rows of ``run_nodes``

A job of neighbouring nodes is one span, however many nodes it has. So a row a span costs as much as
a row a run, where a row a node would cost a hundred times that for large jobs.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from seatrial.lazy import regex
from seatrial.machine.node_sets import unfold_or_empty
from seatrial.store.schema import Writer, chunks, marks
from seatrial.store.tables import NODES, RUN_NODES, NodeSpan, StoredNode

LONGEST_NODE_NAME = 200

Span = tuple[int, int]

_RANGE = regex("[0-9]+(?:-[0-9]+)?")
_NUMBERED = regex(r"(.*?)([0-9]+)([^0-9]*)")


class NodePlaces:
    """The places of the nodes of a machine: 0, 1, ... in the order in which they became known.

    A ``chain`` is a row of places whose nodes have consecutive numbers, such as n007, n008, n009;
    it is named by its first place. So the ends of a range tell whether it is one span."""

    def __init__(self, writer: Writer, machine: str) -> None:
        self._writer = writer
        self._machine = machine
        self._places: dict[str, Span] = {}  # of each name its place and its chain

    def add(self, names: Iterable[str]) -> None:
        """Give places to those nodes that have none."""
        wanted = list(dict.fromkeys(map(_bounded, names)))
        self._look_up(wanted)
        if all(name in self._places for name in wanted):
            return
        self._writer.lock("names")  # no two writers give one place to two nodes
        self._look_up(wanted)
        new = [name for name in wanted if name not in self._places]
        query = "SELECT coalesce(max(place) + 1, 0) FROM nodes WHERE machine = ?"
        ((start,),) = self._writer.rows(query, (self._machine,))
        chain, before = start, None
        nodes = []
        for place, name in enumerate(new, start):
            numbered = _NUMBERED.fullmatch(name)
            chain = chain if _follows(numbered, before) else place
            nodes.append(StoredNode(self._machine, place, name, chain))
            self._places[name] = (place, chain)
            before = numbered
        self._writer.insert(NODES, nodes)

    def spans(self, node_sets: Collection[str]) -> dict[str, list[Span]]:
        """Return the spans of places of each node set; none of what is no node set. Nodes that have
        no place yet get one."""
        ranges = [(folded, *_ranges_of(folded)) for folded in node_sets]
        wanted: dict[_Around, set[str]] = {}
        for _, around, parts in ranges:
            wanted.setdefault(around, set()).update(parts)
        spans = self._spans_of_ranges(wanted)
        return {
            folded: _joined(spans[around], parts) or self._spans_of_names(folded)
            for folded, around, parts in ranges
        }

    def _spans_of_ranges(
        self, wanted: Mapping["_Around", Collection[str]]
    ) -> dict["_Around", dict[str, Span]]:
        """Return the spans of ranges whose ends are known and of one chain. Many jobs have the same
        ranges, so each is looked at once."""
        ends = {around: _ends_of(around, parts) for around, parts in wanted.items()}
        self._look_up({name for own in ends.values() for pair in own.values() for name in pair})
        found: dict[_Around, dict[str, Span]] = {}
        for around, own in ends.items():
            spans = found[around] = {}
            for part, (first, last) in own.items():
                low, chain = self._places.get(first, (-1, -1))
                high, other = self._places.get(last, (-1, -2))
                if chain == other and low <= high:
                    spans[part] = (low, high)
        return found

    def _spans_of_names(self, folded: str) -> list[Span]:
        names = [_bounded(name) for name in unfold_or_empty(folded)]
        self.add(names)
        found: list[Span] = []
        for place in sorted({self._places[name][0] for name in names}):
            if found and found[-1][1] == place - 1:
                found[-1] = (found[-1][0], place)
            else:
                found.append((place, place))
        return found

    def _look_up(self, names: Collection[str]) -> None:
        query = "SELECT name, place, chain FROM nodes WHERE machine = ? AND name IN"
        for some in chunks([name for name in names if name not in self._places]):
            rows = self._writer.rows(f"{query} ({marks(len(some))})", (self._machine, *some))
            self._places |= {name: (place, chain) for name, place, chain in rows}


_Around = tuple[str, str] | None  # the text before and behind brackets; None: there are none


def _ranges_of(folded: str) -> tuple[_Around, list[str]]:
    """Return the ranges of a node set with one pair of brackets. Any other is a range of its own;
    it is known if it is the name of a node."""
    before, bracket, rest = folded.partition("[")
    inside, end, after = rest.partition("]")
    return ((before, after), inside.split(",")) if bracket and end else (None, [folded])


def _ends_of(around: _Around, ranges: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return the names of the first and the last node of each range, without what is none."""
    if around is None:
        return {name: (name, name) for name in ranges}
    before, after = around
    found = {}
    for part in ranges:
        if _RANGE.fullmatch(part):
            first, _, last = part.partition("-")
            found[part] = (before + first + after, before + (last or first) + after)
    return found


def _joined(spans: Mapping[str, Span], ranges: Sequence[str]) -> list[Span]:
    """Return the spans of ranges; none where one is not known, or they are out of order."""
    found: list[Span] = []
    end = -1
    for part in ranges:
        span = spans.get(part)
        if span is None or span[0] <= end:
            return []
        found.append(span)
        end = span[1]
    return found


def _follows(name: re.Match[str] | None, before: re.Match[str] | None) -> bool:
    """Return whether the number of a name is the next one after that of another."""
    if name is None or before is None:
        return False
    following = str(int(before[2]) + 1).zfill(len(before[2]))
    return name.groups() == (before[1], following, before[3])


def _bounded(name: str) -> str:
    """Return a name that either database can hold."""
    return name[:LONGEST_NODE_NAME].replace("\0", "\ufffd")


def keep_nodes(
    writer: Writer, trial: int, nodes_of: Mapping[int, str], changed: Collection[int]
) -> None:
    """Keep which nodes runs of a trial had, ``nodes_of`` each as a node set. ``changed`` are those
    of them that had others before."""
    ((machine,),) = writer.rows("SELECT machine FROM trials WHERE id = ?", (trial,))
    spans = NodePlaces(writer, machine).spans(set(nodes_of.values()))
    for run in changed:
        writer.execute("DELETE FROM run_nodes WHERE trial = ? AND run = ?", (trial, run))
    rows = (
        NodeSpan(trial, run, first, last)
        for run, folded in nodes_of.items()
        for first, last in spans[folded]
    )
    writer.insert(RUN_NODES, rows)
