"""What pages of nodes look at: the chosen runs of a machine, and its nodes.

    view = view_of(state, query)           # by trial, since, until, test, rehearsed
    view.counts(view.wrong())              # on each node, so many of them went wrong

A run's nodes are spans of places in the machine's order of nodes: n[001-128] is one span. So sums
over nodes are sums over the ends of spans. The runs of a trial are read again when its journal has
news.
"""

import functools
import math
import re
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.journal.events import EVENT_KINDS, NodeTurn
from seatrial.judge.statistics import outliers
from seatrial.lazy import Bools, Floats, Ints
from seatrial.model import codes
from seatrial.model.figures import ELAPSED
from seatrial.model.machine import Machine
from seatrial.model.machine_topology import topology_of
from seatrial.model.node_set import unfold_or_empty
from seatrial.model.nodes import groups_of, node_names
from seatrial.model.topology import Topology
from seatrial.results.slow_places import NOT_OF_NODES, WILLED
from seatrial.results.store import nodes, queries
from seatrial.results.store.nodes import NO_TIME, STAGES, NodeCase, TrialRuns
from seatrial.results.store.queries import MEASURED, NO_OUTCOME, sql_list
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import TrialRow
from seatrial.show.web.page import PageQuery
from seatrial.show.web.server_state import ServerState
from seatrial.units import NO_DIRECTION, SECOND_NS, Better, better_of

RECORDS_TRIED = 5
NO_RUNS = TrialRuns._make(np.empty(0, np.int64) for _ in TrialRuns._fields)
NOT_WRONG = (codes.PASS.number, *NO_OUTCOME, *WILLED, *NOT_OF_NODES)

T = TypeVar("T")


class MachineRuns(NamedTuple):
    """The runs of some trials of a machine, and the spans of nodes that they were on."""

    #: The runs' numbers in the store, ascending. The next six have an element for each run, too.
    row: Ints
    #: Index of ``tests``.
    test: Ints
    #: Index of ``kinds``.
    kind: Ints
    #: Number of the verdict.
    code: Ints
    #: In ns.
    created: Ints
    #: Start, in ns.
    time: Ints
    #: In seconds, or NaN.
    elapsed: Floats
    #: Of each span of nodes, the index of its run.
    owner: Ints
    #: Of each span, its first and its last place in ``names``.
    first: Ints
    last: Ints
    tests: list[str]
    kinds: list[str]
    #: The nodes, in the machine's order.
    names: list[str]


class View(NamedTuple):
    """What is looked at: the chosen runs of a machine, and its nodes."""

    state: ServerState
    #: The machine's.
    name: str
    trials: list[TrialRow]
    machine: Machine
    #: What changes with each trial.
    versions: tuple[Hashable, ...]
    runs: MachineRuns
    #: The nodes: first those that are described, then others that the runs were on.
    names: list[str]
    #: How many nodes the machine's file describes; 0 where no record of these trials can be read.
    described: int
    #: Of the nodes, in ``runs.names``.
    places: Ints
    #: The runs of the wanted test that were created in the window.
    mask: Bools
    since: int
    until: int
    test: str
    #: Kinds of runs, where not all are looked at.
    kinds: tuple[int, ...] | None = None

    @property
    def key(self) -> tuple[Hashable, ...]:
        """What tells the chosen runs from others."""
        paths = tuple(trial.path for trial in self.trials)
        return (self.name, paths, self.since, self.until, self.test, self.kinds)

    @property
    def rehearsed(self) -> bool:
        """Whether rehearsed runs are among these."""
        return any(trial.rehearsed for trial in self.trials)

    def kept(self, what: Hashable, make: Callable[[], T]) -> T:
        """Return what was made of the chosen runs, or is made now."""
        return kept(self.state, (what, self.key), self.versions, make)

    def wrong(self) -> Bools:
        """Return the chosen runs that went wrong on their nodes, those that ran again included."""
        return self.mask & ~np.isin(self.runs.code, NOT_WRONG)

    def over(self) -> Bools:
        """Return the chosen runs that are over."""
        return self.mask & ~np.isin(self.runs.code, NO_OUTCOME)

    def on(self, node: int) -> Bools:
        """Return the runs that were on a node."""
        place = self.places[node]
        here = (self.runs.first <= place) & (place <= self.runs.last)
        mask = np.zeros(len(self.mask), dtype=bool)
        mask[self.runs.owner[here]] = True
        return mask

    def counts(self, mask: Bools) -> Ints:
        """Return how many of these runs were on each node."""
        return _counts(self.runs, mask)[self.places]


def _counts(runs: MachineRuns, mask: Bools) -> Ints:
    chosen = mask[runs.owner]
    size = len(runs.names) + 1
    begin = np.bincount(runs.first[chosen], minlength=size)
    return np.cumsum(begin - np.bincount(runs.last[chosen] + 1, minlength=size))


def view_of(state: ServerState, query: PageQuery) -> View:
    """Return the trials, runs and nodes that are asked for. Raises UsageError for a machine or a
    trial that there is not."""
    name = query.path["machine"]
    every = [trial for trial in queries.trials(state.store()) if trial.machine == name]
    chosen = _chosen(name, every, query.text("trial"), query.flag("rehearsed"))
    # The description is that of the newest record that can be read.
    records = (state.records.record(trial) for trial in (chosen or every)[:RECORDS_TRIED])
    machine = next((one.machine for one in records if one), Machine(machine=name, nodes=[]))
    by_row = nodes.versions_of(state.store(), name)
    versions = tuple(by_row.get(trial.row) for trial in chosen)
    key = ("runs", name, *(trial.path for trial in chosen))
    runs = kept(state, key, versions, lambda: _runs_of(state, name, chosen, versions))
    described, others = _places(runs, machine)
    places = [*described, *others]
    since, until, test = query.moment("since"), query.moment("until"), query.text("test")
    mask = (runs.created >= since) & (runs.created < (until or np.iinfo(np.int64).max))
    if test:
        mask &= runs.test == (runs.tests.index(test) if test in runs.tests else -1)
    return View(
        state=state,
        name=name,
        trials=chosen,
        machine=machine,
        versions=versions,
        runs=runs,
        names=[runs.names[place] for place in places],
        described=len(described),
        places=np.array(places, np.int64),
        mask=mask,
        since=since,
        until=until,
        test=test,
    )


def _chosen(name: str, every: list[TrialRow], tag: str, rehearsed: bool) -> list[TrialRow]:
    """Return the trials of a machine that are looked at: one by its tag, or all."""
    if not every:
        raise UsageError(f"no trial ran on a machine {name!r}; /machines lists those there are")
    if not tag:
        return [trial for trial in every if rehearsed or not trial.rehearsed]
    chosen = [trial for trial in every if tag in (trial.tag, trial.path)]
    if not chosen:
        raise UsageError(f"no trial {tag!r} ran on {name}; leave the filter out to see all")
    return chosen


def _places(runs: MachineRuns, machine: Machine) -> tuple[list[int], list[int]]:
    """Return the places of the nodes that the machine's file describes, and those of others that
    runs were on."""
    place_of = {node: place for place, node in enumerate(runs.names)}
    described = [place_of[node] for node in node_names(machine) if node in place_of]
    used = np.flatnonzero(_counts(runs, np.ones(len(runs.row), dtype=bool))).tolist()
    return described, sorted({*used} - {*described})


def read_ahead(state: ServerState) -> None:
    """Read the runs of the machine on which the latest trial ran, so that nobody waits for them.
    Raises SeatrialError."""
    trials = queries.trials(state.store())
    measured = [trial for trial in trials if not trial.rehearsed]
    for trial in (measured or trials)[:1]:
        view_of(state, PageQuery({"machine": trial.machine}, []))


def kept(state: ServerState, key: Hashable, version: Hashable, make: Callable[[], T]) -> T:
    """Return what was made for this version, or is made now."""
    entry: tuple[Hashable, T] | None = state.node_runs.get(key)
    if entry is None or entry[0] != version:
        entry = (version, make())
        state.node_runs.put(key, entry)
    return entry[1]


def _runs_of(
    state: ServerState, machine: str, trials: Sequence[TrialRow], versions: Sequence[Hashable]
) -> MachineRuns:
    """Return the runs of these trials. A trial that has news is read again."""
    store = state.store()

    def read(trial: int) -> tuple[TrialRuns, list[NodeCase]]:
        return nodes.runs_of_trial(store, trial), nodes.cases_of(store, trial)

    with store.reading():
        by_trial = [
            kept(state, ("trial", trial.path), version, functools.partial(read, trial.row))
            for trial, version in zip(trials, versions, strict=True)
        ]
        names = nodes.names_of(store, machine)
    columns = zip(NO_RUNS, *(part for part, _ in by_trial), strict=True)
    runs = TrialRuns._make(np.concatenate(column) for column in columns)
    order = np.argsort(runs.row, kind="stable")
    row, elapsed = runs.row[order], runs.elapsed[order]
    cases = sorted(case for _, part in by_trial for case in part)
    at = np.searchsorted(np.array([one.row for one in cases], np.int64), runs.case[order])
    tests, test = _indexed([one.test for one in cases], at)
    kinds, kind = _indexed([one.kind for one in cases], at)
    if (stage := runs.stage[order]).any():
        kinds, kind = _by_stage(kinds, kind, stage)
    return MachineRuns(
        row=row,
        test=test,
        kind=kind,
        code=runs.code[order],
        created=runs.created[order],
        time=runs.time[order],
        elapsed=np.where(elapsed == NO_TIME, np.nan, elapsed / SECOND_NS),
        owner=np.searchsorted(row, runs.run),
        first=runs.first,
        last=runs.last,
        tests=tests,
        kinds=kinds,
        names=names,
    )


def _by_stage(kinds: list[str], kind: Ints, stage: Ints) -> tuple[list[str], Ints]:
    """Return the kinds of runs, and that of each run, with runs alone and runs at full machine
    apart."""
    both, kind = np.unique(kind * len(STAGES) + stage, return_inverse=True)
    named = [divmod(each, len(STAGES)) for each in both.tolist()]
    return [f"{kinds[k]} [{STAGES[s]}]" if s else kinds[k] for k, s in named], kind


def _indexed(words: Sequence[str], at: Ints) -> tuple[list[str], Ints]:
    """Return the distinct words in their order, and the index of the one at each place."""
    distinct = sorted(set(words))
    index = {word: number for number, word in enumerate(distinct)}
    return distinct, np.array([index[word] for word in words], np.int64)[at]


# ---- layout --------------------------------------------------------------------------------------
#
# The layout of a machine's nodes: groups of its description, cabinets by the nodes' names.
#
#     for block in blocks_of(machine, names, described):
#         block.titles, block.columns, block.places      # places in ``names``, row by row
#
# Names of HPE Cray EX (x1000c0s3b1n0), Cray XC (c0-0c1s3n2) and SGI ICE (r1i0n3) say where a node
# stands. Groups of the machine's file come before names, and the levels of its network before
# both. Without any there is a plain grid.


# Patterns of names, and the words for their first two numbers.
_PLACES = (
    (re.compile(r"(x\d+)c(\d+)s(\d+)b(\d+)n(\d+)"), "cabinet", "chassis"),
    (re.compile(r"(c\d+-\d+)c(\d+)s(\d+)n(\d+)"), "cabinet", "chassis"),
    (re.compile(r"(r\d+)i(\d+)n(\d+)"), "rack", "IRU"),
)
_SHARE = 0.9  # of the names that must match a pattern


class NodeBlock(Struct, frozen=True):
    """Nodes that stand together; ``titles`` are the names of their place, the largest first."""

    titles: list[str]
    columns: int
    places: list[int]


def blocks_of(machine: Machine, names: Sequence[str], described: int) -> list[NodeBlock]:
    """Return the blocks of nodes. Nodes from ``described`` on are in no description; they are
    last."""
    groups = groups_of(machine)
    by_titles: dict[tuple[str, ...], list[int]] = {}
    pattern = _pattern(names[:described])
    topology = topology_of(machine) if machine.topology is not None else None
    for place in range(described):
        name = names[place]
        if topology is not None and name in topology.number_of:
            titles = _in_network(topology, topology.number_of[name])
        else:
            titles = _titles(name, groups, pattern)
        by_titles.setdefault(titles, []).append(place)
    if len(names) > described:
        by_titles["in no description",] = list(range(described, len(names)))
    if groups and pattern is None and ("in no group",) in by_titles:
        by_titles["in no group",] = by_titles.pop(("in no group",))
    return [
        NodeBlock(list(titles), _columns(len(block)), block) for titles, block in by_titles.items()
    ]


def _in_network(topology: Topology, node: int) -> tuple[str, ...]:
    """Return the units of the two largest levels that a node is in, the largest first. Routers of a
    dragonfly or a torus are too small to be drawn apart."""
    levels = topology.levels[0 if topology.kind == "tree" else 1 :][-2:]
    return tuple(f"{one.name} {one.units[one.unit_of[node]]}" for one in reversed(levels))


def _pattern(names: Sequence[str]) -> tuple[re.Pattern[str], str, str] | None:
    for one in _PLACES:
        fitting = sum(one[0].fullmatch(name) is not None for name in names)
        if names and fitting >= _SHARE * len(names):
            return one
    return None


def _titles(
    name: str, groups: dict[str, str], pattern: tuple[re.Pattern[str], str, str] | None
) -> tuple[str, ...]:
    titles: list[str] = []
    if groups:
        titles.append(groups.get(name, "in no group"))
    if pattern is not None:
        place = pattern[0].fullmatch(name)
        titles += [f"{pattern[1]} {place[1]}", f"{pattern[2]} {place[2]}"] if place else ["other"]
    return tuple(titles)


def _columns(count: int) -> int:
    """Return the columns of a grid that is about twice as wide as high."""
    wide = math.sqrt(2 * count)
    if count <= 8:
        return max(1, count)
    step = 4 if count <= 64 else 8 if count <= 512 else 20
    return max(step, round(wide / step) * step)


# ---- node figures --------------------------------------------------------------------------------
#
# A figure for each chosen run, and for each node of a machine.
#
#     found = by_node(view, "triad")          # the median on each node, judged
#     found.of.values                         # of each run
#
# A run on many nodes speaks for each of them. Where the runs are of several kinds (cases, whatever
# node they are pinned to) each figure is taken relative to the median of its kind.


MAX_PAIRS = 500_000  # runs times nodes of which medians are taken; of the latest runs else


class RunFigures(NamedTuple):
    """A figure for each run (NaN: none, or not chosen). ``relative``: over the median of its kind,
    as there are several ``kinds``. ``left_out`` counts what could not be used, by the reason;
    ``reason`` is why there is no figure at all, or ""."""

    metric: str
    values: Floats
    left_out: dict[str, int]
    unit: str = ""
    better: Better = "higher"
    kinds: int = 0
    reason: str = ""

    @property
    def relative(self) -> bool:
        return self.kinds > 1


def figures_of(view: View, metric: str) -> RunFigures:
    """Return the figures of a metric of the chosen runs with a right answer."""
    return view.kept(("figures", metric), lambda: _figures_of(view, metric))


def _figures_of(view: View, metric: str) -> RunFigures:
    runs = view.runs
    values, unit, better, others = _values_of(view, metric)
    left_out = {"in another unit, or with another direction": others} if others else {}
    known = np.flatnonzero(np.isfinite(values))
    if better == NO_DIRECTION:
        reason = f"{metric[:100]} has no direction (better: none), so no node is judged by it"
        return RunFigures(metric, np.full(len(values), np.nan), left_out, reason=reason)
    if not len(known):
        reason = f"no chosen run with a right answer has a metric {metric[:100]!r}"
        return RunFigures(metric, values, left_out, reason=reason)
    middles, counts = medians(values[known], runs.kind[known], len(runs.kinds))
    if (several := int((counts > 0).sum())) > 1:  # they become comparable
        norm = middles[runs.kind[known]]
        values[known] = np.where(norm > 0, values[known], np.nan) / norm
        if lost := int((norm <= 0).sum()):
            left_out["of a kind whose median is not above 0"] = lost
        unit = "1"
    return RunFigures(metric, values, left_out, unit, better_of(better), several)


def _values_of(view: View, metric: str) -> tuple[Floats, str, str, int]:
    """Return the figure of each chosen run with a right answer (NaN: none), their unit and
    direction, those of the latest run, and how many figures have others."""
    runs = view.runs
    right = view.mask & np.isin(runs.code, MEASURED)
    values = np.full(len(right), np.nan)
    unit, better, others = "s", "lower", 0
    kinds = nodes.metric_kinds(view.state.store(), metric)
    if kinds and right.any():
        run, which, figures = _measured(view, metric, tuple(kinds))
        at = np.searchsorted(runs.row[:-1], run)
        fits = (runs.row[at] == run) & right[at]
        at, which, figures = at[fits], which[fits], figures[fits]
        if len(at):
            latest = int(which[np.argmax(runs.created[at])])
            unit, better = kinds[latest]
            others = int((which != latest).sum())
            values[at[which == latest]] = figures[which == latest]
    if metric == ELAPSED and not np.isfinite(values).any():
        return np.where(right, runs.elapsed, np.nan), "s", "lower", others
    return values, unit, better, others


def _measured(view: View, metric: str, kinds: tuple[int, ...]) -> tuple[Ints, Ints, Floats]:
    """Return all figures of a metric in the chosen trials. A trial that has news is read again."""
    read = functools.partial(nodes.figures_of, view.state.store(), kinds)
    parts = [
        kept(view.state, (metric, trial.path), version, functools.partial(read, trial.row))
        for trial, version in zip(view.trials, view.versions, strict=True)
    ]
    runs, which, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    return runs, which, values


def known(value: float) -> float | None:
    """Return a figure of an array as a plain number, None for one that there is not."""
    return float(value) if math.isfinite(value) else None


def medians(values: Floats, group: Ints, groups: int) -> tuple[Floats, Ints]:
    """Return the median of the values of each group (NaN of none), and how many these are."""
    narrow = np.uint16 if groups < 1 << 16 else np.int64  # numpy sorts two bytes by radix
    order = np.argsort(values)
    order = order[np.argsort(group[order].astype(narrow), kind="stable")]
    counts = np.bincount(group, minlength=groups)
    filled = np.flatnonzero(counts)
    number = counts[filled]
    begin = np.cumsum(number) - number
    middles = np.full(groups, np.nan)
    low, high = order[begin + (number - 1) // 2], order[begin + number // 2]
    middles[filled] = (values[low] + values[high]) / 2
    return middles, counts


# ---- a figure of each node ----------------------------------------------------------------


class NodeFigures(NamedTuple):
    """The median on each node (NaN of none) of so many ``counts``; ``z``: how many deviations of
    the healthy nodes it is better (or, below 0, worse) than their centre; and the judgement. Of
    more runs than can be looked at, only so many (``latest_only``, 0: all) were."""

    of: RunFigures
    values: Floats
    counts: Ints
    z: Floats
    survey: outliers.Survey
    latest_only: int


def by_node(view: View, metric: str) -> NodeFigures:
    """Return what the runs' figures say of nodes, by the rule of ``statistics.defective_nodes``."""
    return view.kept(("by node", metric), lambda: judged(view, figures_of(view, metric)))


def judged(view: View, figures: RunFigures) -> NodeFigures:
    """Return the median of the figures on each node, and the judgement."""
    runs = view.runs
    widths = runs.last - runs.first + 1
    sizes = np.bincount(runs.owner, widths, minlength=len(runs.row))
    known = np.flatnonzero(np.isfinite(figures.values) & (sizes > 0))
    newest = known[np.argsort(runs.created[known], kind="stable")[::-1]]
    used = newest[np.cumsum(sizes[newest]) <= MAX_PAIRS]
    is_used = np.zeros(len(sizes), dtype=bool)
    is_used[used] = True
    spans = np.flatnonzero(is_used[runs.owner])
    spans = spans[np.argsort(figures.values[runs.owner[spans]])]
    width = widths[spans]
    starts = np.cumsum(width) - width
    node = np.arange(width.sum()) + np.repeat(runs.first[spans] - starts, width)
    pairs = np.repeat(figures.values[runs.owner[spans]], width)
    values, counts = medians(pairs, node, len(runs.names))
    values, counts = values[view.places], counts[view.places]
    by_name = dict(zip(view.names, values.tolist(), strict=True))
    known_names = {name: value for name, value in by_name.items() if math.isfinite(value)}
    survey = outliers.survey(known_names, figures.better)
    z = np.full(len(values), np.nan)
    if survey.centre is not None and survey.noise:
        sign = 1 if figures.better == "higher" else -1
        z = sign * (values - survey.centre) / survey.noise
    latest_only = len(used) if len(used) < len(known) else 0
    return NodeFigures(figures, values, counts, z, survey, latest_only)


def metrics_to_choose(view: View) -> list[str]:
    """Return what a form offers: the metrics of the test that is looked at, or of all."""
    every = metrics_by_test(view)
    named = {name for test, names in every.items() if view.test in ("", test) for name in names}
    return [ELAPSED, *sorted(named - {ELAPSED})]


def metrics_by_test(view: View) -> dict[str, list[str]]:
    """Return the metrics of each test."""
    return nodes.metrics_by_test(view.state.store(), [trial.row for trial in view.trials])


# ---- node states ---------------------------------------------------------------------------------
#
# The states of nodes by the store: down or up, excluded or admitted again.


_TURNS = {kind.number: kind.about_nodes for kind in EVENT_KINDS.values() if kind.about_nodes}


class NodeEvent(Struct, frozen=True, rename={"reason": "why"}):
    """A change of a set of nodes: their ``state`` from a time on (ns), and the reason."""

    time: int
    state: NodeTurn
    nodes: str
    reason: str
    trial: str


class NodeState(Struct, frozen=True):
    """The state of a node: since when it is down or excluded (ns, 0: it is not), and why."""

    down: int = 0
    down_why: str = ""
    excluded: int = 0
    excluded_why: str = ""

    @property
    def word(self) -> str:
        return "down" if self.down else "excluded" if self.excluded else "up"


def turns_of(store: Store, trials: Sequence[TrialRow]) -> list[NodeEvent]:
    """Return the changes of nodes in these trials, in the order of their times."""
    if not trials:
        return []
    tags = {trial.row: trial.tag for trial in trials}
    sql = (
        "SELECT time, number, detail, text, trial FROM trial_events"
        f" WHERE trial IN ({sql_list(tags)}) AND number IN ({sql_list(_TURNS)})"
        " ORDER BY time, trial, seq"
    )
    return [
        NodeEvent(time, _TURNS[number], nodes, reason, tags[trial])
        for time, number, nodes, reason, trial in store.rows(sql)
    ]


def states_of(turns: Sequence[NodeEvent]) -> dict[str, NodeState]:
    """Return the nodes that are down or excluded after these changes, which are in the order of
    their times. A node is excluded while any trial excludes it; the latest exclusion is
    returned."""
    states: dict[str, NodeState] = {}
    excluded: dict[str, dict[str, NodeEvent]] = {}  # by node and trial, the latest last
    for one in turns:
        for name in unfold_or_empty(one.nodes):
            old = states.setdefault(name, NodeState())
            if one.state is NodeTurn.DOWN:
                states[name] = replace(old, down=old.down or one.time, down_why=one.reason)
            elif one.state is NodeTurn.UP:
                states[name] = replace(old, down=0, down_why="")
            else:
                states[name] = _excluded(old, one, excluded.setdefault(name, {}))
    return {name: state for name, state in states.items() if state.down or state.excluded}


def _excluded(state: NodeState, turn: NodeEvent, by_trial: dict[str, NodeEvent]) -> NodeState:
    """Return the state of a node after a trial has excluded or admitted it; ``by_trial`` are the
    exclusions that last, the latest last."""
    by_trial.pop(turn.trial, None)
    if turn.state is NodeTurn.EXCLUDED:
        by_trial[turn.trial] = turn
    if not by_trial:
        return replace(state, excluded=0, excluded_why="")
    latest = next(reversed(by_trial.values()))
    return replace(state, excluded=latest.time, excluded_why=latest.reason)
