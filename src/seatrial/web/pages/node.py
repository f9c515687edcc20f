"""A node: its states, its runs, its failures by cause, its values beside those of other nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from seatrial import draw
from seatrial.errors import UsageError, suggest
from seatrial.journal.codes import code_of
from seatrial.store import node_runs
from seatrial.store.rows import RunRow
from seatrial.studies.history import ELAPSED
from seatrial.units import SECOND_NS
from seatrial.web.formatting import NARROW, WIDE
from seatrial.web.nodes.layout import blocks_of
from seatrial.web.nodes.node_figures import (
    RunFigures,
    View,
    by_node,
    columns_chosen,
    figures_of,
    metrics_by_test,
    metrics_to_choose,
    view_of,
)
from seatrial.web.nodes.node_states import (
    DOWN,
    EXCLUDED,
    UP,
    NodeEvent,
    NodeState,
    turns_of,
    turns_of_node,
)
from seatrial.web.pages.machine import accused_of, machine_states
from seatrial.web.query import PageQuery
from seatrial.web.state.server_state import ServerState

if TYPE_CHECKING:
    from seatrial.web.nodes.run_index import Mask

RUNS = 50
MAX_RUNS = 2000
MAX_FIGURES = 24  # rows of the table of figures
SPANS = 60  # of time, each with the percentiles of all runs
MAX_TURNS = 200


class NodeFailureCause(Struct, frozen=True):
    """A verdict: how many runs of the node have it, and its share on the node and the machine."""

    code: int
    name: str
    runs: int
    share: float
    machine_share: float


class FigureRow(Struct, frozen=True, kw_only=True):
    """A metric of a test on this node beside the others: medians, deviation (below 0: worse), and
    its place among the nodes, the worst first."""

    test: str
    metric: str
    unit: str
    relative: bool
    n: int
    figure: float
    others: float
    z: float | None
    place: int
    nodes: int
    judged: str


class Over(Struct, frozen=True, kw_only=True):
    """The node's values (``times`` in s since the epoch), and the 5th, 50th and 95th percentile of
    all chosen runs for each span of time."""

    times: list[float]
    values: list[float]
    span_times: list[float]
    low: list[float]
    middle: list[float]
    high: list[float]


class NodePage(Struct, frozen=True, kw_only=True):
    """A node. ``figures`` is None while they are being judged."""

    machine: str
    name: str
    place: list[str]
    rehearsed: bool
    state: NodeState
    states_of: list[str]
    suspect: bool
    runs: int
    failed: int
    turns: list[NodeEvent]
    ends: dict[str, float]
    causes: list[NodeFailureCause]
    figures: list[FigureRow] | None
    test: str
    metric: str
    unit: str
    relative: bool
    tests: list[str]
    metrics: list[str]
    why: str
    over: Over | None
    listed: list[RunRow]
    shown: int

    def chart(self, wide: bool) -> Any:
        """Return the node's values over time as SVG."""
        assert self.over is not None
        unit = self.unit if not self.relative else ""
        spans = [draw.ShadedSpan(*one) for one in _spans(self.turns, self.over, self.ends)]
        over = self.over
        return draw.chart(
            [
                draw.ChartSeries(
                    "95 % of all runs", _points(over.span_times, over.high), "line", "muted", 2
                ),
                draw.ChartSeries("median", _points(over.span_times, over.middle), "line", 1, 1),
                draw.ChartSeries("5 %", _points(over.span_times, over.low), "line", "muted", 3),
                draw.ChartSeries(self.name, _points(over.times, over.values), "dots", 2, 1),
            ],
            title=f"{self.metric} of {self.name} over time",
            about=f"{len(over.times)} runs of the node beside all runs of these kinds",
            x=draw.Axis(kind="time"),
            y=draw.Axis(
                f"{self.metric} over the median of its kind" if self.relative else self.metric, unit
            ),
            spans=spans,
            width=WIDE if wide else NARROW,
        )


def _points(times: list[float], values: list[float]) -> list[tuple[float, float | None]]:
    return list(zip(times, values, strict=True))


def _spans(
    turns: list[NodeEvent], over: Over, ends: dict[str, float]
) -> list[tuple[float, float, str]]:
    """Return when the node was down or excluded, within the time of its values. An exclusion lasts
    until its trial admits the node or ends; ``ends`` has the trials that ended."""
    end = max([*over.times, *over.span_times], default=0.0)
    open_since: dict[tuple[str, str], float] = {}  # by state, and the trial for exclusions
    found = []
    for turn in turns:
        at = turn.time / SECOND_NS
        key = (DOWN, "") if turn.state in (DOWN, UP) else (EXCLUDED, turn.trial)
        if turn.state in (DOWN, EXCLUDED):
            open_since.setdefault(key, at)
        elif key in open_since:
            found.append((open_since.pop(key), at, key[0]))
    found += [
        (since, max(since, ends.get(trial, end)), state)
        for (state, trial), since in open_since.items()
    ]
    return [one for one in found if one[0] <= end]


def data(state: ServerState, query: PageQuery) -> NodePage:
    view = view_of(state, query)
    name = query.path["node"]
    place = view.held.place_of.get(name)
    if place is None:
        near = suggest(name, view.held.names[:20_000], cutoff=0.5)
        raise UsageError(
            f"{view.name} has no node {name[:60]!r} by its description or by the chosen runs"
            + (f"; {near}" if near else "")
        )
    here = view.held.on(place)
    shown = query.number("runs", RUNS, least=1, most=MAX_RUNS)
    test, metric = query.text("test"), query.text("metric", ELAPSED)
    states, said = machine_states(state, view)
    accused, _ = accused_of(state, view)
    alike = _alike(view, here)
    figures, over, why = _over_time(state, alike, metric, here)
    runs = node_runs.runs_of(
        state.store(), columns_chosen(view.held.columns, view.mask & here)[:shown]
    )
    titles = [
        b.titles
        for b in blocks_of(view.machine, view.held.names, view.held.described)
        if place in b.places
    ]
    return NodePage(
        machine=view.name,
        name=name,
        place=titles[0] if titles else [],
        rehearsed=view.rehearsed,
        state=states.get(name, NodeState()),
        states_of=said,
        suspect=bool(accused and any(name in one.names for one in accused.suspects)),
        runs=int((view.over() & here).sum()),
        failed=int((view.wrong() & here).sum()),
        turns=turns_of_node(turns_of(state.store(), view.trials), name)[-MAX_TURNS:],
        ends={t.tag: (t.last or 0) / SECOND_NS for t in view.trials if t.state == "ended"},
        causes=_causes(view, here),
        figures=_figures_beside(state, alike, name, place),
        test=test,
        metric=metric,
        unit=figures.unit if figures else "",
        relative=figures.relative if figures else False,
        tests=sorted({case.test for case in view.held.cases.values()}),
        metrics=metrics_to_choose(state, view),
        why=why,
        over=over,
        listed=runs,
        shown=len(runs),
    )


def _alike(view: View, here: Mask) -> View:
    """Return the view of those chosen runs whose kinds ran on the node."""
    columns, cases = view.held.columns, view.held.cases
    mine = {cases[case].kind for case in np.unique(columns.case[here & view.mask]).tolist()}
    alike = [row for row, case in cases.items() if case.kind in mine]
    mask = view.mask & np.isin(columns.case, alike)
    return view._replace(mask=mask, kinds="\n".join(sorted(mine)))


def _causes(view: View, here: Mask) -> list[NodeFailureCause]:
    """Return the verdicts of the node's ended runs beside those of all chosen runs."""
    over = view.over()
    codes, counts = np.unique(view.held.columns.code[over & here], return_counts=True)
    total, every = int((over & here).sum()), int(over.sum())
    found = [
        NodeFailureCause(
            *(code, code_of(code).name, count, count / total),
            int((view.held.columns.code[over] == code).sum()) / every,
        )
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True)
    ]
    return sorted(found, key=lambda cause: -cause.runs)


# ---- figures ------------------------------------------------------------------------------


def _over_time(
    state: ServerState, view: View, metric: str, here: Mask
) -> tuple[RunFigures | None, Over | None, str]:
    """Return the values of a metric, those of the node over time, and why there are none."""
    try:
        figures = figures_of(state, view, metric)
    except UsageError as error:
        return None, None, str(error)
    columns = view.held.columns
    started = columns.script_started
    times = np.where(started > 0, started, columns.created) / SECOND_NS
    known = np.isfinite(figures.values)
    mine = np.flatnonzero(known & here)
    if not len(mine):
        return figures, None, f"no chosen run of this node with a right answer has {metric}"
    mine = mine[np.argsort(times[mine], kind="stable")]
    all_times, values = times[known], figures.values[known]
    order = np.argsort(all_times, kind="stable")
    parts = [
        part for part in np.array_split(order, min(SPANS, max(1, len(order) // 8))) if len(part)
    ]
    middles = np.array([np.percentile(values[part], (5, 50, 95)) for part in parts])
    return (
        figures,
        Over(
            times=times[mine].tolist(),
            values=figures.values[mine].tolist(),
            span_times=[float(np.median(all_times[part])) for part in parts],
            low=middles[:, 0].tolist(),
            middle=middles[:, 1].tolist(),
            high=middles[:, 2].tolist(),
        ),
        "",
    )


def _figures_beside(
    state: ServerState, view: View, name: str, place: int
) -> list[FigureRow] | None:
    """Return every metric of every test that the node ran; None while they are being made."""
    paths = tuple(trial.path for trial in view.trials)
    key = ("node", view.name, name, paths, view.since, view.until, view.test)
    version = (len(view.held.columns.row), int(view.over().sum()), int(view.wrong().sum()))
    return state.studies.latest(key, version, lambda: _figure_rows(state, view, name, place))


def _figure_rows(state: ServerState, view: View, name: str, place: int) -> list[FigureRow]:
    columns, here = view.held.columns, view.held.on(place) & view.mask
    tests = {view.held.cases[case].test for case in np.unique(columns.case[here]).tolist()}
    metrics = metrics_by_test(state, view)
    wanted = sorted({(test, name) for test in tests for name in (ELAPSED, *metrics[test])})
    found = []
    for test, metric in wanted[:MAX_FIGURES]:
        cases = [row for row, case in view.held.cases.items() if case.test == test]
        only = view._replace(mask=view.mask & np.isin(columns.case, cases), test=test)
        try:
            figures = figures_of(state, only, metric)
        except UsageError:
            continue
        row = _figure_row(only, figures, test, name, place)
        if row is not None:
            found.append(row)
    return sorted(found, key=lambda row: row.z if row.z is not None else 0.0)


def _figure_row(
    view: View, figures: RunFigures, test: str, name: str, place: int
) -> FigureRow | None:
    found = by_node(view, figures)
    value = float(found.values[place])
    if not np.isfinite(value):
        return None
    others = found.values[np.isfinite(found.values)]
    worse = others < value if figures.better == "higher" else others > value
    z = float(found.z[place])
    return FigureRow(
        test=test,
        metric=figures.metric,
        unit=figures.unit,
        relative=figures.relative,
        n=int(found.counts[place]),
        figure=value,
        others=float(np.median(others)),
        z=z if np.isfinite(z) else None,
        place=int(worse.sum()) + 1,
        nodes=len(others),
        judged="defective" if name in found.survey.defective else "",
    )
