"""The nodes of machines by number, and the nodes of each run as spans of these numbers.

    places = NodePlaces(writer, "frost")
    places.add(["n001", "n002"])                     # those of its description, in their order
    places.spans({"n[001-128]", "n007,n009"})        # {"n[001-128]": [(0, 127)], ...}
    keep_nodes(writer, trial, runs, changed)         # rows of ``run_nodes``

A job of neighbouring nodes is one span, however many nodes it has. So a row a span costs as much as
a row a run, where a row a node would cost a hundred times that for large jobs.
"""

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence

from seatrial.lazy import regex
from seatrial.machine.node_sets import unfold_or_empty
from seatrial.store.schema import Writer, chunks, marks

LONGEST_NODE_NAME = 200
MAX_NODE_SETS = 10_000  # whose ends are remembered, as many jobs have the same nodes

Span = tuple[int, int]

_NAME = regex(r"[A-Za-z0-9._-]+")
_RANGE = "[0-9]+(?:-[0-9]+)?"
_SIMPLE = regex(rf"([A-Za-z0-9._-]*)\[({_RANGE}(?:,{_RANGE})*)\]([A-Za-z0-9._-]*)")
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
        chain, before = start, ""
        rows = []
        for place, name in enumerate(new, start):
            chain = chain if _follows(name, before) else place
            rows.append((self._machine, place, name, chain))
            self._places[name] = (place, chain)
            before = name
        self._writer.insert("nodes", ("machine", "place", "name", "chain"), rows)

    def spans(self, node_sets: Collection[str]) -> dict[str, list[Span]]:
        """Return the spans of places of each node set; none of what is no node set. Nodes that have
        no place yet get one."""
        ends = {folded: _ends_of(folded) for folded in node_sets}
        self._look_up({name for own in ends.values() for pair in own for name in pair})
        return {
            folded: self._spans_between(own) or self._spans_of_names(folded)
            for folded, own in ends.items()
        }

    def _spans_between(self, ends: Sequence[tuple[str, str]]) -> list[Span]:
        """Return the spans between known nodes of one chain each; none where there are others, or
        these are out of order."""
        found: list[Span] = []
        for first, last in ends:
            low, chain = self._places.get(first, (-1, -1))
            high, other = self._places.get(last, (-1, -2))
            if chain != other or high < low or (found and low <= found[-1][1]):
                return []
            found.append((low, high))
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


@functools.lru_cache(maxsize=MAX_NODE_SETS)
def _ends_of(folded: str) -> Sequence[tuple[str, str]]:
    """Return the first and the last node of each range of a node set with one pair of brackets, or
    one node twice; none of any other."""
    if _NAME.fullmatch(folded):
        return [(folded, folded)]
    simple = _SIMPLE.fullmatch(folded)
    if simple is None:
        return []
    before, ranges, after = simple.groups()
    ends = [part.partition("-")[::2] for part in ranges.split(",")]
    return [(before + first + after, before + (last or first) + after) for first, last in ends]


def _follows(name: str, before: str) -> bool:
    """Return whether the number of a name is the next one after that of another."""
    own, other = _NUMBERED.fullmatch(name), _NUMBERED.fullmatch(before)
    if own is None or other is None:
        return False
    following = str(int(other[2]) + 1).zfill(len(other[2]))
    return own.groups() == (other[1], following, other[3])


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
        (trial, run, first, last)
        for run, folded in nodes_of.items()
        for first, last in spans[folded]
    )
    writer.insert("run_nodes", ("trial", "run", "first", "last"), rows)
