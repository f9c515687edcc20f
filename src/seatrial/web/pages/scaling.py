"""Scaling: the gain of more threads, nodes or tasks, as ``seatrial scaling`` judges it."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial import draw
from seatrial.errors import UsageError
from seatrial.store import queries
from seatrial.store.by_case import NUMBERS
from seatrial.store.series import metric_names
from seatrial.studies.history import ELAPSED
from seatrial.studies.scaling import PAYS, Best, Cell, ScalingLine, ScalingTable, scaling
from seatrial.studies.scaling import ScalingQuery as Question
from seatrial.studies.selection import Side, gather
from seatrial.web.formatting import NARROW
from seatrial.web.page import copied
from seatrial.web.query import PageQuery
from seatrial.web.run_filters import names_rehearsal, side_of
from seatrial.web.state.server_state import ServerState

TABLES = 8  # on a page
MAX_NAMED = 300
MAX_TICKS = 10  # sizes that are labelled on an axis
LINES = ("toolchain", "machine", "trial", "stage")
LABELS = {"x": "Over", "by": "Lines by", "metric": "Metric", "pays": "Pays from"}  # of the form


class Crossing(Struct, frozen=True):
    """From ``x`` on the line ``by`` has the best median, before that ``before``; with both
    medians."""

    x: float
    before: str
    by: str
    median: float
    other: float


class Panel(Struct, frozen=True, kw_only=True):
    """A case: its lines, its best setting, and the crossings of its lines."""

    case: str
    metric: str
    unit: str
    better: str
    x: str
    weak: bool
    lines: list[ScalingLine]
    along: list[str]
    best: Best | None
    why: str
    crossings: list[Crossing]

    def plots(self) -> list[tuple[str, Any]]:
        """Return the values, the speed-up and the efficiency as SVG, each with its caption."""
        slope = 1.0 if self.better == "higher" else 0.0 if self.weak else -1.0
        curves = [
            draw.Curve(
                _name(line, self), [(c.x, c.median, None, None) for c in line.cells if c.median]
            )
            for line in self.lines
        ]
        return [
            (
                f"{self.metric}, medians",
                draw.scaling(
                    curves,
                    title=f"{self.metric} over {self.x}",
                    x=draw.Axis(self.x),
                    y=draw.Axis(self.metric, self.unit),
                    ideal=slope,
                    width=NARROW,
                ),
            ),
            ("Speed-up, with 95 % intervals", _speedups(self)),
            ("Efficiency: speed-up over ideal", _efficiencies(self)),
        ]


class ScalingPage(Struct, frozen=True, kw_only=True):
    """The query and its answer; ``state`` is "asked", "judging", "judged" or "refused". ``xs`` are
    the parameters that can grow."""

    trial: str
    x: str
    metric: str
    by: str
    test: str
    weak: bool
    pays: str
    state: str
    tags: list[str]
    metrics: list[str]
    xs: list[str] = []
    why: str = ""
    panels: list[Panel] = []
    found: int = 0
    first: int = 0
    rehearsed: bool = False


class _Answer(NamedTuple):
    x: str
    xs: list[str]
    tables: list[ScalingTable]
    rehearsed: bool


def data(state: ServerState, query: PageQuery) -> ScalingPage:
    trials = queries.trials(state.store())
    question: dict[str, Any] = {
        name: query.text(name) for name in ("trial", "x", "by", "test", "pays")
    }
    question["metric"] = query.text("metric", ELAPSED)
    question["weak"] = query.flag("weak")
    listed: dict[str, Any] = {
        "tags": [trial.tag for trial in trials][:MAX_NAMED],
        "metrics": list(dict.fromkeys([ELAPSED, *metric_names(state.store())]))[:MAX_NAMED],
    }
    pays, first = query.share("pays", LABELS["pays"], PAYS), query.number("first", 0)
    rehearsed = query.flag("rehearsed")
    if not question["trial"]:
        return ScalingPage(state="asked", **question, **listed)
    version = tuple((trial.row, trial.last, trial.passed) for trial in trials)
    name = ("scaling", *question.values(), rehearsed)
    study = state.studies.answer(name, version, lambda: _judged(state, question, pays, rehearsed))
    answer = study.value
    if answer is None:
        made_up = names_rehearsal(state.store(), question["trial"].split(), rehearsed)
        return ScalingPage(
            state=study.state, why=_plainly(study.reason), rehearsed=made_up, **question, **listed
        )
    return ScalingPage(
        state="judged",
        xs=answer.xs,
        panels=[_panel(table) for table in answer.tables[first : first + TABLES]],
        found=len(answer.tables),
        first=first,
        rehearsed=answer.rehearsed,
        **{**question, "x": answer.x},
        **listed,
    )


def _plainly(why: str) -> str:
    """Return a fault in the words of the form, not of the command line."""
    return re.sub(r"--(x|by|metric)\b", lambda option: f"“{LABELS[option[1]]}”", why)


def _judged(state: ServerState, question: dict[str, Any], pays: float, rehearsed: bool) -> _Answer:
    tests = [question["test"]] if question["test"] else []
    store = state.store()
    sides = [gather(store, side_of(text, rehearsed), tests) for text in question["trial"].split()]
    xs = _growing(sides)
    x = question["x"] or (xs[0] if xs else "")
    if not x:
        raise UsageError(
            "nothing grows in these cases: no number of nodes, tasks or threads and no parameter "
            "has two values"
        )
    by = tuple(name.strip() for name in question["by"].split(",") if name.strip())
    if not question["by"]:
        by = tuple(name for name in LINES if name != x and _several(sides, name))
    wanted = Question(x=x, metric=question["metric"], by=by, weak=question["weak"], pays=pays)
    made_up = any(trial.rehearsed for side in sides for trial in side.trials)
    return _Answer(x, xs, scaling(sides, wanted), made_up)


def _several(sides: list[Side], name: str) -> bool:
    return len({value for side in sides for value in side.all_of(name)} - {""}) > 1


def _growing(sides: list[Side]) -> list[str]:
    """Return the parameters that have two or more values, all numbers above 0."""
    names = dict.fromkeys(name for side in sides for one in side.cases for name in one.parameters)
    return [name for name in dict.fromkeys([*names, *NUMBERS]) if _grows(sides, name)]


def _grows(sides: list[Side], name: str) -> bool:
    values = {value for side in sides for value in side.all_of(name)} - {""}
    return len(values) > 1 and all(re.fullmatch(r"\d+(\.\d+)?", value) for value in values)


def _panel(table: ScalingTable) -> Panel:
    lines = [
        replace(line, cells=[replace(cell, values=[]) for cell in line.cells])
        for line in table.lines
    ]
    return copied(Panel, table, lines=lines, crossings=_crossings(table))


def _crossings(table: ScalingTable) -> list[Crossing]:
    """Return the x from which on another line has the best median, of x that two lines share."""
    sign = 1 if table.better == "higher" else -1
    found: list[Crossing] = []
    leader = ""
    for x in sorted({cell.x for line in table.lines for cell in line.cells}):
        here = {
            line.by: cell.median
            for line in table.lines
            for cell in line.cells
            if cell.x == x and cell.median is not None
        }
        if len(here) < 2:
            continue
        best = max(here, key=lambda by: sign * here[by])
        if leader and best != leader and leader in here:
            found.append(Crossing(x, leader, best, here[best], here[leader]))
        leader = best
    return found


# ---- plots --------------------------------------------------------------------------------


def _name(line: ScalingLine, panel: Panel) -> str:
    return line.by or panel.case


def _speedups(panel: Panel) -> Any:
    curves = [
        draw.Curve(
            _name(line, panel),
            [(c.x, c.speedup, c.low, c.high) for c in line.cells if c.speedup is not None],
        )
        for line in panel.lines
    ]
    return draw.scaling(
        curves,
        title=f"Speed-up over {panel.x}",
        x=draw.Axis(panel.x),
        y=draw.Axis("speed-up"),
        ideal=1.0,
        width=NARROW,
    )


def _efficiencies(panel: Panel) -> Any:
    sizes = sorted({cell.x for line in panel.lines for cell in line.cells})
    series = [
        draw.ChartSeries(_name(line, panel), _efficiency(line.cells), "both", i + 1, i + 1)
        for i, line in enumerate(panel.lines)
    ]
    return draw.chart(
        series,
        title=f"Efficiency over {panel.x}",
        x=draw.Axis(panel.x, kind="log", ticks=sizes if len(sizes) <= MAX_TICKS else ()),
        y=draw.Axis("efficiency", "%", low=0, high=100),
        levels=[draw.ReferenceLine(100, "ideal")],
        width=NARROW,
        height=270,
    )


def _efficiency(cells: list[Cell]) -> list[tuple[float, float | None]]:
    return [(c.x, None if c.efficiency is None else 100 * c.efficiency) for c in cells]
