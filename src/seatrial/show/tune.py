"""A tuning as a page: the advice, the race of its settings, what it cost; its rehearsal. Of a
sweep, for each metric, the best point, the plateau, the knee and the surface."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

from markupsafe import Markup
from msgspec import to_builtins

from seatrial.errors import UsageError
from seatrial.execute.tuning import PreparedTuning
from seatrial.execute.tuning_odds import TuningOdds
from seatrial.judge.promises import COLUMN, share_cell
from seatrial.judge.promises import told as told_below
from seatrial.model.identifiers import show
from seatrial.results.swept import (
    Swept,
    SweptBest,
    SweptPoint,
    ending_text,
    told,
    tried_text,
)
from seatrial.results.tuned import (
    FigureRatio,
    Tuned,
    TunedSetting,
    advice,
    cost_text,
    in_order,
    interval_text,
    not_needed,
    state_text,
    untried_text,
)
from seatrial.results.tuned_basis import BasedTuning, basis_text
from seatrial.show.draw import plots
from seatrial.show.draw.maps import Sides, surface_map
from seatrial.show.draw.svg import WIDTH, Axis
from seatrial.show.formatting import WIDE
from seatrial.show.page import (
    Cell,
    Chart,
    Column,
    Figure,
    Items,
    Page,
    Part,
    Section,
    State,
    Table,
    Text,
)
from seatrial.units import (
    count,
    listed,
    show_number,
    show_seconds,
    show_share,
    show_signed,
    show_unit,
)

MAX_ROWS = 15
MAX_DRAWN = 40
MAX_NODES = 3
OF_RATIOS = (
    "Ratios are of figures of the same rounds; each end of an interval holds at 95 % over all "
    "settings and looks."
)
OF_ROUNDS = (
    "Under a block: the rounds in which the setting ran there. A setting that was left out was run "
    "too little to prove anything about it: others were more promising."
)
COLUMNS = ("runs", "n", "figure", "unit", "of_best", "low", "high", "state", "cause")


def tuning_page(found: Tuned, rows: int = MAX_ROWS) -> Page:
    """Return what to use, how sure that is, so many rows of its settings, and the cost."""
    if found.swept is not None:
        swept = sweep_page(found)
        sections = [_about(found), *swept.sections, *_script(found)]
        return Page(title(found), sections, swept.summary, swept.records, swept.lines)
    first, *more = advice(found)
    failed = [each for each in found.settings if each.state == "failed"]
    told = [f"{each.name}: {each.cause}" for each in failed[:MAX_ROWS]]
    untried = untried_text(found)
    return Page(
        title(found),
        [
            _about(found),
            Section("Advice", [Text(first, "notice"), *more]),
            *_beside_the_best(found),
            *_race(found, [each for each in in_order(found) if each.state != "failed"], rows),
            *(
                [Section(f"{_settings(failed)} failed", [Items(told, len(failed))])]
                if failed
                else []
            ),
            Section("", [f"not varied: {untried}" if untried else ""]),
            *_script(found),
        ],
        records=lambda: to_builtins(found),
        lines=lambda: _lines(found),
    )


def race_page(found: Tuned) -> Page:
    """Return how a tuning stands: its blocks, and every setting."""
    return Page(
        title(found),
        [
            _about(found),
            *_race(found, in_order(found), len(found.settings)),
        ],
        records=lambda: to_builtins(found),
    )


def title(found: Tuned) -> str:
    return f"{found.tune}: {found.test} on {found.machine}"


def _about(found: Tuned) -> Section:
    what = found.metric or "the largest size that works"
    if found.metric:
        what = f"{found.metric}{show_unit(found.unit, ' ({})')}, {found.better} is better"
    state = "complete" if found.complete else "not complete"
    return Section("", [f"{title(found)}, {what}; {state}"])


def _settings(each: Sequence[TunedSetting]) -> str:
    return count(len(each), "setting")


def _script(found: Tuned) -> list[Section]:
    """Return the lines of a job script with the setting to use."""
    script = Text("\n".join(found.script), "code")
    return [Section("For a job script", [script])] if found.script else []


def _lines(found: Tuned) -> Iterator[list[object]]:
    axes = list(found.settings[0].values) if found.settings else []
    yield [*axes, *COLUMNS]
    for each in found.settings:
        ratio = each.to_best
        ends = (ratio.ratio, ratio.low, ratio.high) if ratio else (None, None, None)
        figures = (each.runs, each.n, each.figure, found.unit, *ends)
        yield [*each.values.values(), *figures, each.state, each.cause]


# ---- the race ------------------------------------------------------------------------------------


def _race(found: Tuned, settings: Sequence[TunedSetting], rows: int) -> Iterator[Section]:
    """Yield the blocks of a race, and the first rows of its settings."""
    blocks = found.blocks if found.search != "largest" else ()
    columns = [
        Column("setting", value=_named, fold=True),
        *(
            Column(f"block {number}", "count", partial(_ran, found, number), only="browser")
            for number, _ in enumerate(blocks, 1)
        ),
        Column("n", "count", lambda each: each.n),
        Column("figure", "number", partial(_figure, found), spare=3),
        Column("of the best", "number", lambda each: _ratio(each.to_best)),
        Column("interval", value=lambda each: _interval(each.to_best), spare=2),
        Column("state", value=partial(state_text, found), fold=True),
    ]
    table = Table.of(columns, settings[:rows], total=len(settings))
    yield Section("The race", [Items(list(_blocks(found))), f"cost: {cost_text(found)}"])
    yield Section("", [table, Text(OF_ROUNDS if blocks else "", "quiet", only="browser")])
    yield Section("", [not_needed(found)])


def _blocks(found: Tuned) -> Iterator[str]:
    for number, block in enumerate(found.blocks, 1):
        lost = sum(each.block == number for each in found.settings)
        what = f"{count(len(block.settings), 'setting')}, {count(block.rounds, 'round')}"
        ended = number < len(found.blocks) or found.complete
        after = f"; {lost} dropped after it" if ended else "; under way"
        on = f" on {listed(block.nodes, MAX_NODES)}" if block.nodes else ""
        yield f"block {number}: {what}{on}{after}"


def _named(each: TunedSetting) -> str:
    return each.name + (" (default)" if each.is_default else "")


def _ran(found: Tuned, number: int, each: TunedSetting) -> int | None:
    """Return in how many rounds of a block a setting ran."""
    block = found.blocks[number - 1]
    return block.rounds if each.number in block.settings else None


def _figure(found: Tuned, each: TunedSetting) -> Figure | None:
    return None if each.figure is None else Figure(each.figure, found.unit)


def _ratio(ratio: FigureRatio | None) -> str:
    return "" if ratio is None else f"{ratio.ratio:.3f}"


def _interval(ratio: FigureRatio | None) -> str:
    return "" if ratio is None else interval_text(ratio)


def _beside_the_best(found: Tuned) -> list[Section]:
    """Return the ratio of each setting to the best, drawn."""
    drawn = [each for each in in_order(found) if each.to_best is not None][:MAX_DRAWN]
    if not drawn:
        return []
    parts: list[Part] = [Chart(partial(_forest, found, drawn)), Text(OF_RATIOS, "quiet")]
    return [Section("Beside the best", parts, only="browser")]


_INKS: dict[str, int | str] = {"best": "good", "dropped": "bad", "failed": "bad"}


def _forest(found: Tuned, settings: Sequence[TunedSetting], width: int) -> Markup:
    """Return the ratio of each setting to the best, in per cent, with its interval, as SVG."""
    intervals = []
    for each in settings:
        ratio = each.to_best
        assert ratio is not None
        low, high = (None if end is None else 100 * (end - 1) for end in (ratio.low, ratio.high))
        value = 100 * (ratio.ratio - 1)
        label, ink = f"{show_signed(value)} %", _INKS.get(each.state, 1)
        intervals.append(plots.Interval(_named(each), value, low, high, label, ink, 0))
    return plots.forest(
        intervals,
        title=f"{found.metric} of each setting beside the best",
        about="A row for each setting, with an interval that holds at every look",
        axis=Axis(f"{found.metric} beside the best", "%"),
        centre=0,
        width=width,
        stacked=width < WIDE,
    )


# ---- by what runs took ---------------------------------------------------------------------------


def basis_sections(found: Tuned, based: BasedTuning) -> list[Section]:
    """Return which settings are best by what their runs took."""
    columns = [
        Column("setting", value=lambda each: found.settings[each.number].name, fold=True),
        Column(
            f"{based.metric}{show_unit(based.unit, ' ({})')}", "number", lambda each: each.figure
        ),
        Column("ratio", "number", lambda each: _ratio(each.to_best)),
        Column("interval", value=lambda each: _interval(each.to_best), spare=1),
    ]
    table = Table.of(columns, based.settings[:MAX_ROWS], total=len(based.settings))
    assert found.best is not None  # as some setting has a figure
    name = found.settings[found.best].name
    return [
        Section(f"By {based.per}", [Text(basis_text(found, based), "notice")]),
        Section("", [table, f"ratio: to {name}, the best by {based.metric} alone"]),
    ]


# ---- rehearsed -----------------------------------------------------------------------------------


def rehearsal_page(odds: TuningOdds, prepared: PreparedTuning) -> Page:
    """Return what a tuning would cost, and how likely it finds the best."""
    rules, tune = prepared.rules, prepared.tune
    runs = f"at most {rules.runs} of the grid's {rules.grid} runs"
    if rules.search != "sweep":
        runs += f" in {count(rules.allocations, 'allocation')}"
    longest = max((case.nodes * case.walltime / 3600 for case in prepared.cases), default=0.0)
    noise = f"{show_share(odds.noise)} noise, node factors of {show_share(odds.nodes)}"
    rows: list[list[Cell]] = [
        [
            each.planted,
            None if each.found is None else show_share(each.found),
            show_share(each.kept),
            show_share(each.runs / rules.grid),
        ]
        for each in odds.cases
    ]
    columns = [
        Column("planted effects", fold=True),
        Column("advised is best or near", "share"),
        Column("default kept", "share"),
        Column("runs", "share"),
    ]
    told = [
        f"{tune.tune}: {count(len(rules.levels), 'setting')} of {tune.test}, {runs}",
        f"cost: at most {show_number(rules.runs * longest)} node-hours, if each run took its whole "
        f"walltime; an allocation takes up to {show_seconds(prepared.longest_block)}",
        f"rehearsed with {count(odds.seeds, 'seed')}: {noise}, drift, disturbed runs",
    ]
    near = f"near: within {show_share(rules.min_effect)} of the best"
    sections = [Section("", told), Section("", [Table(columns, rows)]), Section("", [near])]
    return Page(tune.tune, sections, records=lambda: to_builtins(odds))


# ---- sweeps --------------------------------------------------------------------------------------

MAX_POINTS = 12
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
            *(_swept(found, swept, one) for one in swept.bests),
            Section("What ran", list(_what_ran(found, swept))),
        ],
        summary=ending_text(swept, found.complete),
        records=lambda: to_builtins(found),
        lines=lambda: _swept_lines(found, swept),
    )


# ---- a metric of a sweep -------------------------------------------------------------------------


def _swept(found: Tuned, swept: Swept, one: SweptBest) -> Section:
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
        rows[:MAX_POINTS],
        total=len(rows),
        remainder=", in --format csv",
        about="The share of the best is by the surface through all figures.",
    )


def _state(one: SweptBest, point: SweptPoint) -> State:
    words = [word for word in ("best", "cheapest", "knee") if getattr(one, word) == point.number]
    if words:
        return State(", ".join(words), "better")
    return State("plateau") if point.number in one.plateau else State("", "quiet")


# ---- the surface of a sweep ----------------------------------------------------------------------

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


# ---- what ran in a sweep -------------------------------------------------------------------------


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


def _swept_lines(found: Tuned, swept: Swept) -> Iterator[list[object]]:
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
