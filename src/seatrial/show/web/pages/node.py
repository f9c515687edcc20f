"""A node: its states, its runs, its failures by cause, its values beside those of other nodes."""

from typing import Any

import numpy as np
from msgspec import Struct

from seatrial.errors import UsageError, suggest
from seatrial.journal.events import NodeTurn
from seatrial.lazy import Bools
from seatrial.model.codes import BOOT_FAILURE, NODE_FAILURE, code_of
from seatrial.model.figures import ELAPSED
from seatrial.model.node_set import unfold_or_empty
from seatrial.results.store import nodes as node_runs
from seatrial.show.draw import plots
from seatrial.show.draw.svg import Axis
from seatrial.show.formatting import NARROW, WIDE
from seatrial.show.web.nodes import (
    NodeEvent,
    NodeFigures,
    NodeState,
    RunFigures,
    View,
    blocks_of,
    by_node,
    figures_of,
    metrics_by_test,
    metrics_to_choose,
    turns_of,
    view_of,
)
from seatrial.show.web.page import PageQuery
from seatrial.show.web.pages.machine import accused_of, machine_states
from seatrial.show.web.server_state import ServerState
from seatrial.units import SECOND_NS

RUNS = 50
MAX_RUNS = 2000
MAX_FIGURES = 24  # rows of the table of figures
SPANS = 60  # of time, each with the percentiles of all runs
MAX_TURNS = 200


class FigureRow(Struct, frozen=True, kw_only=True):
    """A metric of a test on this node beside the others."""

    test: str
    metric: str
    unit: str
    #: Whether figures are relative to the median of their kind.
    relative: bool
    n: int
    #: The medians here and of all nodes.
    figure: float
    others: float
    #: Below 0: worse.
    z: float | None
    #: Among the nodes, the worst first.
    place: int
    nodes: int
    #: "defective" or "".
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


NODE_FAILURES = (NODE_FAILURE.number, BOOT_FAILURE.number)


def chart(data: dict[str, Any], wide: bool) -> Any:
    """Return the node's values over time as SVG."""
    over: Over = data["over"]
    name, metric, times = data["name"], data["metric"], over.span_times
    y = Axis(f"{metric} over the median of its kind") if data["relative"] else None
    return plots.chart(
        [
            plots.ChartSeries("95 % of all runs", _points(times, over.high), "line", "muted", 2),
            plots.ChartSeries("median", _points(times, over.middle), "line", 1, 1),
            plots.ChartSeries("5 %", _points(times, over.low), "line", "muted", 3),
            plots.ChartSeries(name, _points(over.times, over.values), "dots", 2, 1),
        ],
        title=f"{metric} of {name} over time",
        about=f"{len(over.times)} runs of the node beside all runs of these kinds",
        x=Axis(kind="time"),
        y=y or Axis(metric, data["unit"]),
        spans=_spans(data["turns"], over, data["ends"]),
        width=WIDE if wide else NARROW,
    )


def _points(times: list[float], values: list[float]) -> list[tuple[float, float | None]]:
    return list(zip(times, values, strict=True))


def _spans(turns: list[NodeEvent], over: Over, ends: dict[str, float]) -> list[plots.ShadedSpan]:
    """Return when the node was down or excluded, within the time of its values. An exclusion lasts
    until its trial admits the node or ends; ``ends`` has the trials that ended."""
    end = max([*over.times, *over.span_times], default=0.0)
    open_since: dict[tuple[str, str], float] = {}  # by state, and the trial for exclusions
    spans = []
    for turn in turns:
        at = turn.time / SECOND_NS
        is_of_scheduler = turn.state in (NodeTurn.DOWN, NodeTurn.UP)
        key = (NodeTurn.DOWN, "") if is_of_scheduler else (NodeTurn.EXCLUDED, turn.trial)
        if not turn.state.is_good:
            open_since.setdefault(key, at)
        elif key in open_since:
            spans.append(plots.ShadedSpan(open_since.pop(key), at, key[0]))
    spans += [
        plots.ShadedSpan(since, max(since, ends.get(trial, end)), state)
        for (state, trial), since in open_since.items()
    ]
    return [one for one in spans if one.start <= end]


def data(state: ServerState, query: PageQuery) -> dict[str, Any]:
    """Return a node. Its ``figures`` are None while they are being judged."""
    view = view_of(state, query)
    name = query.path["node"]
    place = _place_of(view, name)
    here = view.on(place)
    max_runs = query.number("runs", RUNS, least=1, most=MAX_RUNS)
    metric = query.text("metric", ELAPSED)
    states, _ = machine_states(view)
    accused, *_ = accused_of(view)
    alike = _alike(view, here)
    figures = figures_of(alike, metric)
    over = _over_time(alike, figures, here)
    reason = figures.reason or f"no chosen run of this node with a right answer has {metric}"
    newest = np.flatnonzero(view.mask & here)
    newest = newest[np.argsort(view.runs.created[newest], kind="stable")][::-1][:max_runs]
    runs = node_runs.runs_of(state.store(), view.runs.row[newest].tolist())
    turns = turns_of(state.store(), view.trials)
    blocks = blocks_of(view.machine, view.names, view.described)
    causes = _causes(view, here)
    return {
        "machine": view.name,
        "name": name,
        "place": next(block.titles for block in blocks if place in block.places),
        "rehearsed": view.rehearsed,
        "state": states.get(name, NodeState()),
        "suspect": bool(accused and any(name in one.names for one in accused.suspects)),
        "runs": int((view.over() & here).sum()),
        "failed": int((view.wrong() & here).sum()),
        "node_failures": sum(each["runs"] for each in causes if each["code"] in NODE_FAILURES),
        "turns": [one for one in turns if name in unfold_or_empty(one.nodes)][-MAX_TURNS:],
        "ends": {t.tag: (t.last or 0) / SECOND_NS for t in view.trials if t.state == "ended"},
        "causes": causes,
        "figures": _figures_beside(alike, name, here),
        "test": view.test,
        "metric": metric,
        "unit": figures.unit,
        "relative": figures.relative,
        "tests": view.runs.tests,
        "metrics": metrics_to_choose(view),
        "why": "" if over else reason,
        "over": over,
        "listed": runs,
        "shown": len(runs),
    }


def _place_of(view: View, name: str) -> int:
    if name in view.names:
        return view.names.index(name)
    near = suggest(name, view.names[:20_000], cutoff=0.5)
    raise UsageError(
        f"{view.name} has no node {name[:60]!r} by its description or by the chosen runs"
        + (f"; {near}" if near else "")
    )


def _alike(view: View, here: Bools) -> View:
    """Return the view of those chosen runs whose kinds ran on the node."""
    kinds = np.unique(view.runs.kind[here & view.mask])
    mask = view.mask & np.isin(view.runs.kind, kinds)
    return view._replace(mask=mask, kinds=tuple(kinds.tolist()))


def _causes(view: View, here: Bools) -> list[dict[str, Any]]:
    """Return the verdicts of the node's ended runs, with their share on the node and on the
    machine."""
    over = view.over()
    every, mine = view.runs.code[over], view.runs.code[over & here]
    codes, counts = np.unique(mine, return_counts=True)
    causes = [
        {
            "code": code,
            "name": code_of(code).name,
            "runs": runs,
            "share": runs / len(mine),
            "machine_share": int((every == code).sum()) / len(every),
        }
        for code, runs in zip(codes.tolist(), counts.tolist(), strict=True)
    ]
    return sorted(causes, key=lambda cause: -cause["runs"])


# ---- figures ------------------------------------------------------------------------------


def _over_time(view: View, figures: RunFigures, here: Bools) -> Over | None:
    """Return the node's values over time; None where it has none."""
    order = np.flatnonzero(np.isfinite(figures.values))
    order = order[np.argsort(view.runs.time[order], kind="stable")]
    mine = order[here[order]]
    if not len(mine):
        return None
    times = view.runs.time / SECOND_NS
    parts = np.array_split(order, min(SPANS, max(1, len(order) // 8)))
    bands = [np.percentile(figures.values[part], (5, 50, 95)).tolist() for part in parts]
    low, middle, high = map(list, zip(*bands, strict=True))
    return Over(
        times=times[mine].tolist(),
        values=figures.values[mine].tolist(),
        span_times=[float(np.median(times[part])) for part in parts],
        low=low,
        middle=middle,
        high=high,
    )


def _figures_beside(view: View, name: str, here: Bools) -> list[FigureRow] | None:
    """Return every metric of every test that the node ran; None while they are being made."""
    version = (len(view.mask), int(view.over().sum()), int(view.wrong().sum()))
    key = ("node", name, view.key)
    return view.state.studies.latest(key, version, lambda: _figure_rows(view, name, here))


def _figure_rows(view: View, name: str, here: Bools) -> list[FigureRow]:
    metrics = metrics_by_test(view)
    wanted = [
        (number, metric)
        for number in np.unique(view.runs.test[here & view.mask]).tolist()
        for metric in sorted({ELAPSED, *metrics.get(view.runs.tests[number], ())})
    ]
    rows = []
    for number, metric in wanted[:MAX_FIGURES]:
        test, mask = view.runs.tests[number], view.mask & (view.runs.test == number)
        figures = by_node(view._replace(mask=mask, test=test), metric)
        if (row := _figure_row(test, figures, name, view.names.index(name))) is not None:
            rows.append(row)
    return sorted(rows, key=lambda row: row.z if row.z is not None else 0.0)


def _figure_row(test: str, figures: NodeFigures, name: str, place: int) -> FigureRow | None:
    value, z = float(figures.values[place]), float(figures.z[place])
    if not np.isfinite(value):
        return None
    others = figures.values[np.isfinite(figures.values)]
    worse = others < value if figures.of.better == "higher" else others > value
    return FigureRow(
        test=test,
        metric=figures.of.metric,
        unit=figures.of.unit,
        relative=figures.of.relative,
        n=int(figures.counts[place]),
        figure=value,
        others=float(np.median(others)),
        z=z if np.isfinite(z) else None,
        place=int(worse.sum()) + 1,
        nodes=len(others),
        judged="defective" if name in figures.survey.defective else "",
    )
