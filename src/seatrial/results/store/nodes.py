"""The runs of trials and the nodes that they were on, as arrays; what pages of nodes ask.

runs_of_trial(store, trial.row)                    # the runs, and the spans of nodes of each
figures_of(store, metrics, trial.row)              # the figures of those with a right answer
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from seatrial.lazy import Floats, Ints, np
from seatrial.model.figures import place_of
from seatrial.model.identifiers import node_suffix
from seatrial.model.node_set import unfold_or_empty
from seatrial.results.store.queries import MEASURED, NEWEST, run_rows, sql_list
from seatrial.results.store.schema import Store, Writer, marks
from seatrial.results.store.tables import NODES, RUN_NODES, NodeSpan, RunRow, StoredNode, chunks
from seatrial.units import SECOND_NS

NO_TIME = -1
STAGES = ("", "alone", "full")


class TrialRuns(NamedTuple):
    """The runs of trials as columns, and their spans of nodes. Times are in ns."""

    row: Ints
    #: its row
    case: Ints
    #: a place in STAGES
    stage: Ints
    code: Ints
    created: Ints
    #: that of the start, or of the creation
    time: Ints
    #: may be NO_TIME
    elapsed: Ints
    #: of a span of nodes, with its first and last place
    run: Ints
    first: Ints
    last: Ints


def runs_of_trial(store: Store, trial: int) -> TrialRuns:
    """Return the runs of a trial. The index by tests holds all that is asked for."""
    start = "coalesce(script_started, created)"
    took = f"coalesce(CAST(round(elapsed * {SECOND_NS}) AS BIGINT), {NO_TIME})"
    stage = "CASE stage WHEN 'alone' THEN 1 WHEN 'full' THEN 2 ELSE 0 END"
    with store.reading():
        of_runs = store.numbers(
            f"SELECT id, case_row, {stage}, code, created, {start}, {took} FROM runs"
            " WHERE test IN (SELECT test FROM cases WHERE cases.trial = ?) AND trial = ?",
            (trial, trial),
        )
        spans = "SELECT run, first, last FROM run_nodes WHERE trial = ?"
        of_nodes = store.numbers(spans, (trial,))
    return TrialRuns(*of_runs, *of_nodes)


def versions_of(store: Store, machine: str) -> dict[int, tuple[int, ...]]:
    """Return for each trial on a machine (its row) numbers that change when there is news, and when
    a rebuilt store has its runs in other rows."""
    run = "coalesce((SELECT runs.id FROM runs WHERE trial = trials.id ORDER BY {} LIMIT 1), 0)"
    first = run.format("runs.created, runs.id")
    last = run.format("runs.created DESC, runs.id DESC")
    columns = f"id, created, ingested, fingerprint, {first}, {last}"
    rows = store.rows(f"SELECT {columns} FROM trials WHERE machine = ?", (machine,))
    return {trial: (trial, *numbers) for trial, *numbers in rows}


def names_of(store: Store, machine: str) -> list[str]:
    """Return the names of a machine's nodes in the order of their places."""
    sql = "SELECT name FROM nodes WHERE machine = ? ORDER BY place"
    return [name for (name,) in store.rows(sql, (machine,))]


class NodeCase(NamedTuple):
    """A case. Runs of one ``kind`` (its name without its node) should go alike."""

    row: int
    test: str
    kind: str


def cases_of(store: Store, trial: int) -> list[NodeCase]:
    """Return the cases of a trial."""
    sql = (
        "SELECT cases.id, tests.name, cases.name, node FROM cases"
        " JOIN tests ON tests.id = cases.test WHERE cases.trial = ?"
    )
    return [
        NodeCase(row, test, name.removesuffix(node_suffix(node)))
        for row, test, name, node in store.rows(sql, (trial,))
    ]


def metrics_by_test(store: Store, trials: Sequence[int]) -> dict[str, list[str]]:
    """Return the metrics of each test: those of a run with a right answer, in the latest of the
    trials that has one."""
    if not trials:
        return {}
    sql = (
        "SELECT tests.name, metric_names.name FROM tests CROSS JOIN metrics CROSS JOIN metric_names"
        " WHERE metrics.run = (SELECT runs.id FROM runs WHERE runs.test = tests.id"
        f" AND runs.trial IN ({sql_list(trials)}) AND runs.code IN ({sql_list(MEASURED)})"
        " ORDER BY runs.trial DESC LIMIT 1) AND metric_names.id = metrics.metric"
        " ORDER BY tests.name"
    )
    found: dict[str, list[str]] = {}
    for test, metric in store.rows(sql):
        found.setdefault(test, []).append(metric)
    return {test: sorted(metrics, key=place_of) for test, metrics in found.items()}


def metric_kinds(store: Store, name: str) -> dict[int, tuple[str, str]]:
    """Return the units and directions that a metric of that name has, by their rows."""
    sql = "SELECT id, unit, better FROM metric_names WHERE name = ?"
    return {row: (unit, better) for row, unit, better in store.rows(sql, (name,))}


def figures_of(store: Store, kinds: Iterable[int], trial: int) -> tuple[Ints, Ints, Floats]:
    """Return the figures of these kinds of a trial's runs with a right answer: the rows of the
    runs, those of the kinds, the values."""
    runs, rows, values = store.columns(
        "SELECT metrics.run, metrics.metric, metrics.value FROM runs"
        " JOIN metrics ON metrics.run = runs.id"
        f" AND metrics.metric IN ({sql_list(kinds)})"
        f" WHERE runs.trial = ? AND runs.code IN ({sql_list(MEASURED)})",
        (trial,),
    )
    return np.array(runs, dtype=np.int64), np.array(rows, dtype=np.int64), np.array(values, float)


def runs_of(store: Store, rows: Sequence[int]) -> list[RunRow]:
    """Return the runs of these rows, the newest first."""
    return run_rows(store, f"WHERE runs.id IN ({sql_list(rows)})", (), NEWEST) if rows else []


def widest_runs(store: Store, limit: int) -> list[RunRow]:
    """Return the latest run with a right answer of each measured case with two tasks or more that
    is pinned to no node: of so many cases, those that ran last."""
    sql = (
        "SELECT (SELECT runs.id FROM runs WHERE runs.case_row = cases.id"
        f" AND runs.code IN ({sql_list(MEASURED)}) ORDER BY runs.id DESC LIMIT 1) AS run"
        " FROM cases JOIN trials ON trials.id = cases.trial"
        " WHERE cases.tasks >= 2 AND cases.node = '' AND NOT trials.rehearsed"
    )
    found = sorted((run for (run,) in store.rows(sql) if run is not None), reverse=True)
    return runs_of(store, found[:limit])


# ---- node places ---------------------------------------------------------------------------------
#
# The nodes of machines by number, and the nodes of each run as spans of these numbers.
#
#     places = NodePlaces(writer, "frost")
#     places.add(["n001", "n002"])                     # those of its description, in their order
#     places.spans({"n[001-128]", "n007,n009"})        # {"n[001-128]": [(0, 127)], ...}
#     keep_nodes(writer, trial, runs, changed)         # rows of ``run_nodes``
#
# Neighbouring nodes of a job are one row (first, last). With a row for each node, large jobs would
# have a hundred times as many rows.


LONGEST_NODE_NAME = 200

Span = tuple[int, int]

_RANGE = "[0-9]+(?:-[0-9]+)?"
_NUMBERED = re.compile(r"(.*?)([0-9]+)([^0-9]*)")


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
        if re.fullmatch(_RANGE, part):
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
