"""The page of a sweep: for each metric the best point, the plateau, the knee and the surface.

page = sweep_page(tuned)          # of a tuning with search: sweep
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

from markupsafe import Markup
from msgspec import to_builtins

from seatrial.errors import UsageError
from seatrial.judge.promises import COLUMN, share_cell
from seatrial.judge.promises import told as told_below
from seatrial.model.identifiers import show
from seatrial.results.swept import Swept, SweptBest, SweptPoint, ending_text, told, tried_text
from seatrial.results.tuned import Tuned, cost_text, untried_text
from seatrial.show.draw.maps import Sides, surface_map
from seatrial.show.draw.svg import WIDTH
from seatrial.show.page import Chart, Column, Items, Page, Part, Section, State, Table, Text
from seatrial.units import count, show_share

MAX_ROWS = 12
MAX_FAILED = 12
NOISY = 0.12  # noise beyond what sweeps were measured with
_NOISY = "too much to tell points apart: sweep while others use the file system less"
MAX_REASONS = 6


def sweep_page(found: Tuned) -> Page:
    """Return the page of a sweep. Raises UsageError for another tuning."""
    swept = found.swept
    if swept is None:
        raise UsageError(f"{found.trial} is no sweep; its tuning has search: {found.search}")
    return Page(
        f"{found.tune}: {found.test} on {found.machine}",
        [
            *(_section(found, swept, one) for one in swept.bests),
            Section("What ran", list(_what_ran(found, swept))),
        ],
        summary=ending_text(swept, found.complete),
        records=lambda: to_builtins(found),
        lines=lambda: _lines(found, swept),
    )


# ---- a metric ------------------------------------------------------------------------------------


def _section(found: Tuned, swept: Swept, one: SweptBest) -> Section:
    advertised = told_below(point.promised.get(one.metric) for point in swept.points)
    parts: list[Part] = [Items(list(told(swept, one))), _points(swept, one), *advertised]
    for sides, cells, marks in _surfaces(found, swept, one):
        parts += _surface(sides, cells, marks, one)
    return Section(one.metric, parts)


def _points(swept: Swept, one: SweptBest) -> Table:
    """Return the points that the answer names, then the others, the best first."""
    sign = 1 if one.better == "lower" else -1
    named = list(dict.fromkeys((one.best, one.cheapest, one.knee)))
    others = [each.number for each in swept.points if each.number not in named]
    others.sort(key=lambda number: (sign * one.of_best[number], number))
    rows = [swept.point(number) for number in [*named, *others]]
    columns = [
        Column("point", value=lambda point: point.name, fold=True),
        Column("nodes", "count", lambda point: point.nodes, spare=2),
        Column("tasks", "count", lambda point: point.tasks, spare=3),
        Column("n", "count", lambda point: point.n),
        Column("median", "number", lambda point: point.figures[one.metric], unit=one.unit),
        Column(COLUMN, "share", lambda point: share_cell(point.promised.get(one.metric))),
        Column("of the best", "share", lambda point: one.of_best[point.number]),
        Column("node-hours", "number", lambda point: point.node_hours, spare=1),
        Column("", "state", partial(_state, one)),
    ]
    return Table.of(
        columns,
        rows[:MAX_ROWS],
        total=len(rows),
        remainder=", in --format csv",
        about="The share of the best is by the surface through all figures.",
    )


def _state(one: SweptBest, point: SweptPoint) -> State:
    words = [word for word in ("best", "cheapest", "knee") if getattr(one, word) == point.number]
    if words:
        return State(", ".join(words), "better")
    return State("plateau") if point.number in one.plateau else State("", "quiet")


# ---- the surface ---------------------------------------------------------------------------------

_Cells = list[list[float | None]]
_Marks = dict[tuple[int, int], str]


def _surfaces(found: Tuned, swept: Swept, one: SweptBest) -> Iterator[tuple[Sides, _Cells, _Marks]]:
    """Yield the surface over each two axes that follow each other and have several values."""
    values: dict[str, list[str]] = {}
    for setting in found.settings:
        for axis, value in setting.values.items():
            known = values.setdefault(axis, [])
            if show(value) not in known:
                known.append(show(value))
    axes = [axis for axis, known in values.items() if len(known) > 1]
    for down, across in zip_longest(axes[::2], axes[1::2]):
        if across is None:  # one is left: beside the first one
            if len(axes) == 1:
                continue
            down, across = axes[0], down
        sides = Sides(down, values[down], across, values[across])
        yield sides, *_cells(swept, one, sides)


def _cells(swept: Swept, one: SweptBest, sides: Sides) -> tuple[_Cells, _Marks]:
    """Return the share of the best of each two values, with the other axes as they are best among
    the points that ran."""
    cells: _Cells = [[None] * len(sides.columns) for _ in sides.rows]
    marks: _Marks = {}
    for point in swept.points:
        row = sides.rows.index(show(point.values[sides.down]))
        column = sides.columns.index(show(point.values[sides.across]))
        ratio = one.of_best[point.number]
        share, before = ratio if one.better == "higher" else 1 / ratio, cells[row][column]
        cells[row][column] = share if before is None else max(before, share)
    for word in ("knee", "cheapest", "best"):
        point = swept.point(getattr(one, word))
        row = sides.rows.index(show(point.values[sides.down]))
        marks[row, sides.columns.index(show(point.values[sides.across]))] = word
    return cells, marks


def _surface(sides: Sides, cells: _Cells, marks: _Marks, one: SweptBest) -> list[Part]:
    title = f"{one.metric} in % of the best: {sides.down} down, {sides.across} across"
    signs = {"best": "*", "knee": "k", "cheapest": "c"}
    rows: list[list[str]] = []
    for i, name in enumerate(sides.rows):
        said = [signs.get(marks.get((i, j), ""), "") for j in range(len(sides.columns))]
        rows.append([name, *map(_cell_text, cells[i], said)])
    columns = [Column(sides.down), *(Column(name, "number") for name in sides.columns)]
    about = "the others as they are best of what ran; . nothing ran; * best, c cheapest, k knee"
    drawn = partial(_drawn, cells, sides, marks, title)
    return [
        Table(columns, rows, title=title, only="terminal"),
        Text(about, "quiet", only="terminal"),
        Chart(drawn, caption=f"{title}; the others as they are best of what ran"),
    ]


def _cell_text(share: float | None, sign: str) -> str:
    return "." if share is None else f"{100 * share:.0f}{sign}"


def _drawn(
    cells: Sequence[Sequence[float | None]],
    sides: Sides,
    marks: _Marks,
    title: str,
    width: float = WIDTH,
) -> Markup:
    return surface_map(cells, sides, title=title, marks=marks, width=width)


# ---- what ran ------------------------------------------------------------------------------------


def _what_ran(found: Tuned, swept: Swept) -> Iterator[Part]:
    yield tried_text(swept)
    if swept.noise is not None:
        noise = f"noise of one figure: {show_share(swept.noise)}, by the surface"
        yield noise if swept.noise <= NOISY else Text(f"{noise}; {_NOISY}", "notice")
    failed = [each for each in found.settings if each.runs and each.cause]
    if failed:
        yield f"{count(len(failed), 'point')} failed or ended early, which counts as no figure:"
        shown = [f"{each.name}: {each.cause}" for each in failed[:MAX_FAILED]]
        yield Items(shown, len(failed), ", in --format csv")
    for reason, number in list(swept.skipped.items())[:MAX_REASONS]:
        yield f"not in the grid: {count(number, 'point')}: {reason}"
    left_out = [each for each in found.settings if each.state == "left out"]
    for cause in dict.fromkeys(each.cause for each in left_out):
        number = sum(each.cause == cause for each in left_out)
        yield f"left out: {count(number, 'point')}, as {cause}"
    yield f"cost: {cost_text(found)}"
    if untried := untried_text(found):
        yield f"not varied: {untried}"


def _lines(found: Tuned, swept: Swept) -> Iterator[list[object]]:
    axes = list(found.settings[0].values) if found.settings else []
    metrics = [one.metric for one in swept.bests]
    yield [*axes, "nodes", "n", *metrics, *(f"{m} of the best" for m in metrics), "state", "cause"]
    points = {point.number: point for point in swept.points}
    for each in found.settings:
        point: Any = points.get(each.number)
        figures = [point.figures.get(metric) if point else None for metric in metrics]
        shares = [one.of_best.get(each.number) for one in swept.bests]
        values = each.values.values()
        yield [*values, each.nodes, each.n, *figures, *shares, each.state, each.cause]
