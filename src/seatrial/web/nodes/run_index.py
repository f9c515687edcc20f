"""Which runs were on which nodes of a machine, kept in memory and brought up to date by the news.

    fleet = fleet_of(site, "frost")          # one for each machine, kept while the server runs
    with fleet.fresh(store, trials) as held:
        held.counts(mask)                    # of the runs that are chosen, so many on each node

A run's nodes are spans of places in the machine's order of nodes: n[001-128] is one span, however
many nodes it has. Sums over nodes are then sums over the ends of spans, so that a hundred thousand
runs on a thousand nodes are counted in milliseconds. A distinct node set is read once.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from seatrial.machine.facts import unfold_or_empty
from seatrial.store import node_runs
from seatrial.store.node_runs import NodeCase, NodeRuns
from seatrial.store.queries import MEASURED
from seatrial.store.rows import TrialRow
from seatrial.store.schema import Store
from seatrial.web.state.cache import LruCache, array_bytes
from seatrial.web.state.server_state import ServerState

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Figures = NDArray[np.float64]
    Mask = NDArray[np.bool_]

MOST_SETS = 500_000  # distinct node sets whose spans are kept
MOST_REMEMBERED = 64 << 20  # bytes of what was made of the runs of a machine
NEVER = -1

T = TypeVar("T")

_SIMPLE = re.compile(r"([A-Za-z0-9._-]*?)\[([0-9,-]+)\]([A-Za-z0-9._-]*)")
_COLUMNS = ("row", "case", "code", "created", "script_started", "judged")

Span = tuple[int, int]


class Columns(NamedTuple):
    """Runs as columns: times in ns (-1: none), ``elapsed`` NaN where there is none. The spans of
    all runs are three more: whose they are (a place in these columns), first and last node."""

    row: Numbers
    case: Numbers
    code: Numbers
    created: Numbers
    script_started: Numbers
    judged: Numbers
    elapsed: Figures
    owner: Numbers
    first: Numbers
    last: Numbers


class Names:
    """The nodes of a machine by their places: those of its description first, in its order."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.described = len(self.names)
        self.places = {name: place for place, name in enumerate(self.names)}
        self._spans: dict[str, tuple[Span, ...]] = {}

    def spans(self, folded: str) -> tuple[Span, ...]:
        """The places of a node set; none of what is no node set."""
        found = self._spans.get(folded)
        if found is None:
            if len(self._spans) >= MOST_SETS:
                self._spans.clear()
            found = self._spans[folded] = tuple(self._read(folded))
        return found

    def _read(self, folded: str) -> list[Span]:
        simple = _SIMPLE.fullmatch(folded)
        if simple is None:
            return self._merged(folded)
        before, ranges, after = simple.groups()
        found: list[Span] = []
        for part in ranges.split(","):
            first, _, last = part.partition("-")
            low = self.places.get(f"{before}{first}{after}")
            high = self.places.get(f"{before}{last or first}{after}")
            more = int(last or first or 0) - int(first or 0)
            if low is None or high is None or high - low != more:
                return self._merged(folded)
            if more < 0 or (found and low <= found[-1][1]):  # written backwards, or twice
                return self._merged(folded)
            found.append((low, high))
        return found

    def _merged(self, folded: str) -> list[Span]:
        """The spans of any node set, name by name; a node that no description has gets a place."""
        found: list[Span] = []
        for place in sorted({self._place(name) for name in unfold_or_empty(folded)}):
            if found and found[-1][1] == place - 1:
                found[-1] = (found[-1][0], place)
            else:
                found.append((place, place))
        return found

    def _place(self, name: str) -> int:
        place = self.places.get(name)
        if place is None:
            place = self.places[name] = len(self.names)
            self.names.append(name)
        return place


class TrialRuns:
    """The runs of one trial: those that are over are read once."""

    def __init__(self, trial: TrialRow) -> None:
        self.trial = trial
        self.seen: object = None
        self._last = 0
        self._open: list[int] = []
        self._over: Columns | None = None
        self._ends: dict[int, str] = {}
        self.columns: Columns | None = None
        self.cases: dict[int, NodeCase] = {}

    def refresh(self, store: Store, names: Names) -> None:
        """Read what is new. Where a verdict changed that was there before, all is read again."""
        import numpy as np

        self._read(store, names)
        told = node_runs.codes_of(store, self.trial.row)
        columns = self.columns
        assert columns is not None
        codes, counts = np.unique(columns.code, return_counts=True)
        if dict(zip(codes.tolist(), counts.tolist(), strict=True)) != told:
            self._last, self._open, self._over = 0, [], None
            self._read(store, names)
        rows = self.columns.row if self.columns is not None else columns.row
        ends = [int(rows.min()), int(rows.max())] if len(rows) else []
        self._ends = node_runs.run_ids_of(store, ends)

    def still(self, store: Store) -> bool:
        """Whether the rows are those of the same runs: a store that was rebuilt has others."""
        return node_runs.run_ids_of(store, list(self._ends)) == self._ends

    def _read(self, store: Store, names: Names) -> None:
        found = node_runs.runs_after(store, self.trial.row, self._last, self._open)
        self._last = max(found.row, default=self._last)
        if not self.cases.keys() >= set(found.case):
            cases = node_runs.cases_of(store, self.trial.row)
            self.cases = {case.row: case for case in cases}
        new = columns_of(found, names)
        is_over = new.judged != NEVER
        self._open = new.row[~is_over].tolist()
        over = new if is_over.all() else chosen(new, is_over)
        self._over = over if self._over is None else joined([self._over, over])
        going = [chosen(new, ~is_over)] if self._open else []
        self.columns = joined([self._over, *going]) if going else self._over


def columns_of(runs: NodeRuns, names: Names) -> Columns:
    """Runs as columns of numbers. Each distinct node set is looked up once."""
    import numpy as np

    number = {nodes: place for place, nodes in enumerate(dict.fromkeys(runs.nodes))}
    spans = [names.spans(nodes) for nodes in number]
    ends = np.array([span for own in spans for span in own], dtype=np.int64).reshape(-1, 2)
    lengths = np.array([len(own) for own in spans], dtype=np.int64)
    begins = np.cumsum(lengths) - lengths
    which = np.array([number[nodes] for nodes in runs.nodes], dtype=np.int64)
    own = lengths[which]
    owner = np.repeat(np.arange(len(which)), own)
    at = np.arange(len(owner)) + np.repeat(begins[which] - (np.cumsum(own) - own), own)
    first, last = ends[at].T.copy()
    whole = (np.array(column, dtype=np.int64) for column in runs[: len(_COLUMNS)])
    return Columns._make((*whole, np.array(runs.elapsed, dtype=float), owner, first, last))


def nothing(names: Names) -> Columns:
    """No runs."""
    return columns_of(NodeRuns(*([] for _ in NodeRuns._fields)), names)


def chosen(columns: Columns, mask: Mask) -> Columns:
    """The runs of a mask."""
    import numpy as np

    own = mask[columns.owner]
    owner = (np.cumsum(mask) - 1)[columns.owner[own]]
    runs = (column[mask] for column in columns[: len(_COLUMNS) + 1])
    return Columns._make((*runs, owner, columns.first[own], columns.last[own]))


def joined(parts: Sequence[Columns]) -> Columns:
    """Columns below each other."""
    import numpy as np

    offsets = np.cumsum([0, *(len(part.row) for part in parts[:-1])])
    moved = [
        part._replace(owner=part.owner + offset)
        for part, offset in zip(parts, offsets, strict=True)
    ]
    return Columns(*(np.concatenate(column) for column in zip(*moved, strict=True)))


class RunSelection(NamedTuple):
    """What is asked of: the runs of some trials on a machine, and its nodes. ``memory`` is for what
    was made of them; it is new when there is news. ``rebuilt`` counts how often the store was found
    to have its runs in other rows."""

    names: list[str]
    described: int
    columns: Columns
    cases: dict[int, NodeCase]
    place_of: dict[str, int]
    memory: LruCache[Hashable, Any]
    rebuilt: int

    def remembered(self, key: Hashable, make: Callable[[], T]) -> T:
        """What was made under this key, or is made now."""
        found: T = self.memory.get_or_make(key, make)
        return found

    def tests(self) -> dict[str, int]:
        """The tests, each with the row of its latest run with a right answer (-1: it has none)."""
        import numpy as np

        right = np.isin(self.columns.code, MEASURED)
        rows: dict[str, int] = {case.test: NEVER for case in self.cases.values()}
        cases, place = np.unique(self.columns.case[right], return_inverse=True)
        latest = np.full(len(cases), NEVER)
        np.maximum.at(latest, place, self.columns.row[right])
        for case, row in zip(cases.tolist(), latest.tolist(), strict=True):
            test = self.cases[case].test
            rows[test] = max(rows[test], row)
        return rows

    def counts(self, mask: Mask) -> Numbers:
        """How many of the chosen runs were on each node."""
        import numpy as np

        chosen = mask[self.columns.owner]
        size = len(self.names) + 1
        begin = np.bincount(self.columns.first[chosen], minlength=size)
        end = np.bincount(self.columns.last[chosen] + 1, minlength=size)
        found: Numbers = np.cumsum(begin - end)[:-1]
        return found

    def on(self, place: int) -> Mask:
        """Which runs were on a node."""
        import numpy as np

        here = (self.columns.first <= place) & (place <= self.columns.last)
        mask = np.zeros(len(self.columns.row), dtype=bool)
        mask[self.columns.owner[here]] = True
        return mask

    def sizes(self) -> Numbers:
        """How many nodes each run had."""
        import numpy as np

        width = self.columns.last - self.columns.first + 1
        sums = np.bincount(self.columns.owner, width, minlength=len(self.columns.row))
        found: Numbers = sums.astype(np.int64)
        return found

    def medians(self, values: Figures, most: int) -> tuple[Figures, Numbers, int]:
        """The median of the runs' values on each node (NaN of none) and how many there were; a run
        without a value has NaN. Where runs times nodes are more than ``most``, of the latest runs
        alone: the third is how many runs those are."""
        import numpy as np

        columns = self.columns
        known = np.flatnonzero(np.isfinite(values))
        newest = known[np.argsort(columns.created[known], kind="stable")[::-1]]
        kept = newest[np.cumsum(self.sizes()[newest]) <= most]
        rank = np.full(len(values), -1)
        ordered = kept[np.argsort(values[kept], kind="stable")]
        rank[ordered] = np.arange(len(ordered))
        spans = np.flatnonzero(rank[columns.owner] >= 0)
        spans = spans[np.argsort(rank[columns.owner[spans]], kind="stable")]
        width = columns.last[spans] - columns.first[spans] + 1
        run = np.repeat(columns.owner[spans], width)
        starts = np.cumsum(width) - width
        node = np.arange(len(run)) - np.repeat(starts - columns.first[spans], width)
        order = np.argsort(node.astype(narrow(len(self.names))), kind="stable")
        counts = np.bincount(node, minlength=len(self.names))
        begin = np.cumsum(counts) - counts
        found = np.full(len(self.names), np.nan)
        there = np.flatnonzero(counts)
        figures = values[run[order]]
        low = figures[begin[there] + (counts[there] - 1) // 2]
        found[there] = (low + figures[begin[there] + counts[there] // 2]) / 2
        return found, counts, len(kept)


def narrow(count: int) -> type[np.uint16] | type[np.int64]:
    """The kind of numbers below ``count`` that is sorted fastest: two bytes are, by radix."""
    import numpy as np

    return np.uint16 if count < 1 << 16 else np.int64


class NodeRunIndex:
    """The nodes of one machine and the runs of its trials. Used by one thread at a time."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = Names(names)
        self._trials: dict[str, TrialRuns] = {}
        self._turn = threading.Lock()
        self._joined: tuple[object, Columns, LruCache[Hashable, Any]] | None = None
        self._rebuilt = 0

    def held(self, store: Store, trials: Sequence[TrialRow]) -> RunSelection:
        """The runs of these trials as they are now."""
        with self._turn:
            kept = [self._kept(store, trial) for trial in trials]
            key = [(id(one), one.seen) for one in kept]
            if self._joined is None or self._joined[0] != key:
                parts = [one.columns for one in kept if one.columns is not None]
                columns = parts[0] if len(parts) == 1 else joined([*parts, nothing(self.names)])
                self._joined = (
                    key,
                    columns,
                    LruCache(max_size=MOST_REMEMBERED, size_of=array_bytes),
                )
            cases = {row: case for one in kept for row, case in one.cases.items()}
            names, known = self.names, list(self.names.names)
            _, columns, memory = self._joined
            return RunSelection(
                *(known, names.described, columns, cases, names.places, memory, self._rebuilt)
            )

    def _kept(self, store: Store, trial: TrialRow) -> TrialRuns:
        one = self._trials.get(trial.path)
        if one is None or one.trial.row != trial.row or one.trial.created != trial.created:
            one = self._trials[trial.path] = TrialRuns(trial)
        elif not one.still(store):
            one = self._trials[trial.path] = TrialRuns(trial)
            self._rebuilt += 1
        seen = (trial.last, trial.passed, trial.failed, trial.running, trial.waiting, trial.damaged)
        if one.seen != seen:
            one.refresh(store, self.names)
            one.seen = seen
        return one


def fleet_of(site: ServerState, machine: str, names: Sequence[str]) -> NodeRunIndex:
    """The fleet of a machine with those nodes; made anew where its description changed."""
    found: NodeRunIndex | None = site.node_runs.get(machine)
    if found is None or found.names.names[: found.names.described] != list(names):
        found = NodeRunIndex(names)
        site.node_runs.put(machine, found)
    return found
