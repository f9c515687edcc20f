"""What more threads, nodes or tasks give: speed-up, efficiency, the knee, the best setting.

    for table in scaling(sides, ScalingQuery(x="threads", metric="triad", by=("toolchain",))):
        table.lines[0].cells, table.lines[0].knee, table.best

Speed is the metric where higher is better, else 1 over it; in a weak series, where the work grows
with the resources, x over it. The speed-up of a cell is its speed over that of the least x that
was measured in its line, and its efficiency the speed-up over x / least x: 1 is ideal. Over cores
(tasks x threads) lines that differ in tasks or threads alone share the least x of all of them, so
that hybrid settings are read off against one task with one thread. Where the resources are the same
at each x (more threads in fewer tasks), or x are words or hold 0, nothing is added: see
``results.ratios``.

The *gain* from one x to a larger one is the part of what is added that becomes speed: with S the
ratio of speeds and R the ratio of x, (S - 1) / (R - 1). The *knee* is the least x from which no
larger one has a gain of ``pays`` or more. It is certain where that holds of the upper ends of all
these gains' intervals, too.
"""

import math
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

from msgspec import UNSET, Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.judge.promises import Beside
from seatrial.judge.statistics import two_samples
from seatrial.judge.statistics.bands import median_interval
from seatrial.judge.statistics.sequential import judged
from seatrial.judge.statistics.two_samples import ALMOST, RatioEstimate, Verdict
from seatrial.results import ratios
from seatrial.results.case_figures import (
    CORES,
    ELAPSED,
    CaseRuns,
    TableOverX,
    along,
    by_test,
    kind_of,
    metrics_of,
    one_to_one,
    panels,
    parameters_of,
    require_known,
    title,
    varying,
    with_left_out,
)
from seatrial.results.compare import Comparison, ComparisonRow, State
from seatrial.results.ratios import AXES, SpeedDrop
from seatrial.results.selection import Side, cases_of
from seatrial.results.sizes import (
    BYTES,
    NO_FIGURE,
    PLAIN,
    Cell,
    Meeting,
    Pair,
    are_numbers,
    are_sizes,
    by_label,
    by_line,
    cells_of,
    have_unit,
    is_label,
    is_size,
    labels_of,
    line_name,
    meeting,
    metric_in,
    metrics_named,
    names_of,
    nothing_measured,
    pairs_of,
    speeds,
    usable,
)
from seatrial.units import NO_DIRECTION, Better, better_of, sign_of

PAYS = 0.5


class ScalingQuery(Struct, frozen=True, kw_only=True):
    """What is asked: ``x`` and ``by`` are parameters, or attributes such as nodes and toolchain;
    ``metric`` "" is of each test the figure that most runs have, or else the elapsed time;
    ``fixed``: the resources are the same at each x, also where the cases do not tell; ``pays`` the
    least gain that is worth its resources; ``size``: x is a size of the work (``curves``)."""

    x: str
    metric: str = ""
    by: tuple[str, ...] = ()
    weak: bool = False
    fixed: bool = False
    size: bool = False
    pays: float = PAYS


class ScalingLine(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """The cells of one value of what the lines are by, by x. ``knee`` is None where more still
    pays at the largest x, or nothing can be told (``reason``). With constant resources ``base`` is
    the best x, ``plateau`` those about it that are as good, ``drops`` where the next is slower."""

    by: str
    base: float | None
    cells: list[Cell]
    knee: float | None = None
    certain: bool = False
    plateau: list[float] = []
    drops: list[SpeedDrop] = []
    reason: str = ""

    @property
    def beyond_ideal(self) -> list[Cell]:
        """The cells whose speed-up is more than ideal: beyond noise, or by a tenth if single."""
        known = [cell for cell in self.cells if cell.speedup and cell.ideal]
        return [
            cell
            for cell in known
            if (cell.low or (cell.speedup or 0.0) / 1.1) > (cell.ideal or math.inf) * ALMOST
        ]


class Best(Struct, frozen=True):
    """The setting with the best median; ``equals`` are (line, x) that may be as good, by noise."""

    by: str
    x: float
    median: float
    equals: list[tuple[str, float]] = []


class ScalingTable(TableOverX, frozen=True, kw_only=True):
    """The lines of one case, whatever x is and what the lines are by. ``fixed``: the resources are
    the same at each x; ``ordered``: the names are numbers; ``figures``: of how many the metric was
    chosen, 1 if it was asked for."""

    lines: list[ScalingLine]
    fixed: bool = False
    ordered: bool = True
    best: Best | None = None
    figures: int = 1


# ---- which cells belong together ----------------------------------------------------------


def scaling(sides: Sequence[Side], query: ScalingQuery) -> list[ScalingTable]:
    """A table for each case that has two values of x or more. Raises UsageError where none has, or
    a name is not known."""
    members = by_label(cases_of(sides), query.x)
    _require_names(members, query)
    having = [one for one in members if one.attribute(query.x)]
    query = with_lines(having, query)
    tests = by_test(having)
    lacking = without_metric(sides, query)
    tables: list[ScalingTable] = []
    alone = 0
    for test in [test for test in tests if test not in lacking] or tests:
        of_test, single = _tables(having, tests[test], query)
        tables += of_test
        alone += single
    if not tables:
        raise UsageError(_nothing_varies(having, query))
    if not any(map(_says_something, tables)):
        raise UsageError(nothing_measured(having, query.metric or tables[0].metric))
    left_out = {
        f"without {query.x}": len(members) - len(having),
        f"with one {query.x} alone": alone,
    }
    return with_left_out(tables, left_out)


def _tables(
    members: Sequence[CaseRuns], cases: Sequence[CaseRuns], query: ScalingQuery
) -> tuple[list[ScalingTable], int]:
    """Return the tables of the cases of a test, and how many of these have one x alone."""
    chosen = kind_of(cases, query.metric)
    others = {*metrics_of(cases)} - {ELAPSED[0]}
    figures = 1 if query.metric or chosen == ELAPSED else len(others)
    query = replace(query, metric=chosen[0])
    follow = _along(cases, query)
    along_x = {query.x, *query.by, *follow}
    tables, alone = [], 0
    for panel in panels(cases, along_x):
        if len({one.attribute(query.x) for one in panel}) > 1:
            table = _table(panel, query, follow, title(panel, along_x, members))
            tables.append(replace(table, figures=figures))
        else:
            alone += len(panel)
    return tables, alone


def _says_something(table: ScalingTable) -> bool:
    """Return whether a table has a figure, or a reason for having none."""
    return bool(table.reason) or any(cell.n for line in table.lines for cell in line.cells)


def without_metric(sides: Sequence[Side], query: ScalingQuery) -> list[str]:
    """Return the tests that do not have the metric that is asked for, though runs of them gave
    right answers."""
    if not query.metric:
        return []
    found: dict[str, set[str]] = {}
    for one in cases_of(sides):
        if one.attribute(query.x):
            found.setdefault(one.test, set()).update(metrics_of([one]))
    return [test for test, metrics in found.items() if metrics and query.metric not in metrics]


def with_lines(members: Sequence[CaseRuns], query: ScalingQuery) -> ScalingQuery:
    """Return the query; over cores with a line for each number of tasks, where it names no lines,
    because the same cores may be shared out in several ways."""
    several = len({one.attribute("tasks") for one in members}) > 1
    if query.x != CORES or query.by or not several:
        return query
    return replace(query, by=("tasks",))


def require_axes(members: Sequence[CaseRuns], query: ScalingQuery) -> None:
    """Raise UsageError if x, or a name of what the lines are by, is not known, or both are one."""
    parameters = parameters_of(members)
    require_known("--x", query.x, AXES, parameters, labels_of(members))
    for name in query.by:
        require_known("--by", name, PLAIN, AXES, parameters)
    if query.x in query.by:
        raise UsageError(f"--by {query.x}: that is --x already")


def _require_names(members: Sequence[CaseRuns], query: ScalingQuery) -> None:
    require_axes(members, query)
    ratios.require_one_ideal(query.weak, query.fixed)
    named = [one for one in members if one.attribute(query.x)]
    if query.weak and (names := names_of(named, query.x)):
        listed = ", ".join(names[:5])
        raise UsageError(f"--weak: the work grows with numbers above 0; {query.x} has {listed}")


def _along(cases: Sequence[CaseRuns], query: ScalingQuery) -> list[str]:
    """What follows x, or what the lines are by, in a test; with cores, tasks or threads."""
    axes = ("tasks", "threads", CORES) if query.x == CORES else (query.x,)
    return along(cases, (*axes, *query.by), (query.x, *query.by))


def _nothing_varies(members: Sequence[CaseRuns], query: ScalingQuery) -> str:
    if not members:
        return f"--x {query.x}: no case has it"
    values = sorted({one.attribute(query.x) for one in members})
    if len(values) == 1:
        return f"--x {query.x}: is {values[0]} in every case; nothing to scale over"
    others = [name for name in varying(members) if name != query.x]
    remedy = f"name one with --by, such as --by {others[0]}, or " if others else ""
    return (
        f"--x {query.x}: no two cases differ in it alone, but in {', '.join(others) or 'tests'}, "
        f"too; {remedy}choose cases with TRIAL:NAME=VALUE"
    )


# ---- one table ----------------------------------------------------------------------------


def _table(
    panel: Sequence[CaseRuns], query: ScalingQuery, follow: list[str], name: str
) -> ScalingTable:
    unit, direction, reason = metric_in(panel, query.metric, "so it has no speed-up")
    better = better_of(direction)
    names = names_of(panel, query.x)
    table = ScalingTable(
        case=name,
        metric=query.metric,
        unit=unit,
        better=better,
        x=query.x,
        weak=query.weak,
        lines=[],
        fixed=not query.weak and (query.fixed or bool(names) or ratios.are_constant(panel)),
        along=follow,
        names=names,
        ordered=are_numbers(names),
        reason=reason,
    )
    if reason:
        return table
    groups = by_line(panel, query.by)
    if table.fixed:
        lines = [_fixed_line(by, members, table) for by, members in groups.items()]
        return replace(table, lines=lines, best=_best(lines, better))
    bases = _bases(panel, query) if query.x == CORES else {}
    lines = [
        _line(by, members, better, query, bases.get(by, members)) for by, members in groups.items()
    ]
    return replace(table, lines=lines, best=_best(lines, better))


def _bases(panel: Sequence[CaseRuns], query: ScalingQuery) -> dict[str, list[CaseRuns]]:
    """Return by line the cases with whose least x it is compared: those of all lines that differ in
    tasks and threads alone, of the fewest tasks where several have that x."""
    shape = ("tasks", "threads")
    split = [
        name
        for name in query.by
        if name in shape or any(one_to_one(panel, name, axis) for axis in shape)
    ]
    shared: dict[str, list[CaseRuns]] = {}
    of_line: dict[str, str] = {}
    for one in panel:
        rest = line_name(one, [name for name in query.by if name not in split])
        of_line[line_name(one, query.by)] = rest
        shared.setdefault(rest, []).append(one)
    fewest = {rest: _with_fewest_tasks(cases, query.x) for rest, cases in shared.items()}
    return {line: fewest[rest] for line, rest in of_line.items()}


def _with_fewest_tasks(cases: Sequence[CaseRuns], x: str) -> list[CaseRuns]:
    """Return the cases that have the fewest tasks of those with their x."""
    tasks: dict[float, int] = {}
    for one in cases:
        value = float(one.attribute(x))
        tasks[value] = min(tasks.get(value, one.tasks or 0), one.tasks or 0)
    return [one for one in cases if one.tasks == tasks[float(one.attribute(x))]]


def _line(
    by: str,
    members: Sequence[CaseRuns],
    better: Better,
    query: ScalingQuery,
    bases: Sequence[CaseRuns],
) -> ScalingLine:
    """Return the line of some cases, compared with the least x of ``bases``."""
    cells = cells_of(members, query.x, query.metric)
    if not usable(cells):
        return ScalingLine(
            by=by, base=None, cells=cells, reason="no figure above 0: nothing to compare"
        )
    base = next(iter(usable(cells if bases is members else cells_of(bases, query.x, query.metric))))
    related: list[Cell] = []
    before: Cell | None = None
    for each in cells:
        cell = _related(each, base, better, query.weak)
        if cell.speedup is not None:
            if before is not None:
                cell = replace(cell, gain=_gain(before, cell, better, query.weak)[0])
            before = cell
        related.append(cell)
    return _with_knee(ScalingLine(by=by, base=base.x, cells=related), better, query)


def _fixed_line(by: str, members: Sequence[CaseRuns], table: ScalingTable) -> ScalingLine:
    """Return the line of some cases with constant resources, compared with the best of them."""
    cells = cells_of(members, table.x, table.metric, table.names)
    if len(usable(cells)) < 2:
        return ScalingLine(by=by, base=None, cells=cells, reason="fewer than two values measured")
    found = ratios.constant_series(cells, table.better, table.ordered)
    return ScalingLine(
        by=by, base=found.best, cells=found.cells, plateau=found.plateau, drops=found.drops
    )


def _related(cell: Cell, base: Cell, better: Better, weak: bool) -> Cell:
    ideal = cell.x / base.x
    if cell.median is None or cell.median <= 0:
        return replace(cell, ideal=ideal if cell.x >= base.x else None)
    speedup, low, high = speeds(base, cell, better, weak)
    if cell.x == base.x and cell.values == base.values:
        low = high = None
    return replace(
        cell, speedup=speedup, low=low, high=high, ideal=ideal, efficiency=speedup / ideal
    )


def _gain(first: Cell, second: Cell, better: Better, weak: bool) -> tuple[float, float | None]:
    """The gain from one cell to a larger one, and the upper end of its interval."""
    speed, _, high = speeds(first, second, better, weak)
    added = second.x / first.x - 1
    return (speed - 1) / added, None if high is None else (high - 1) / added


def _with_knee(line: ScalingLine, better: Better, query: ScalingQuery) -> ScalingLine:
    cells = [cell for cell in line.cells if cell.speedup is not None]
    if len(cells) < 2:
        return replace(line, reason="one value measured: nothing to compare")
    for i, cell in enumerate(cells[:-1]):
        gains = [_gain(cell, later, better, query.weak) for later in cells[i + 1 :]]
        if all(gain < query.pays for gain, _ in gains):
            ends = [high for _, high in gains]
            certain = all(high is not None and high < query.pays for high in ends)
            return replace(
                line, knee=cell.x, certain=certain, reason="" if certain else _doubt(ends)
            )
    return replace(line, reason=f"more still pays at {cells[-1].x:g}")


def _doubt(ends: Sequence[float | None]) -> str:
    """Return why a knee is not certain, by the upper ends of its gains."""
    if None in ends:
        return "not certain: single runs do not tell the noise; repeat them"
    return "not certain: more may pay, within the noise; repeat the runs"


def _best(lines: Sequence[ScalingLine], better: Better) -> Best | None:
    """The best median of all; with it what its runs cannot be told from, of two runs or more."""
    measured = [(line, cell) for line in lines for cell in line.cells if cell.speedup is not None]
    if not measured:
        return None
    line, top = max(measured, key=lambda pair: sign_of(better) * (pair[1].median or 0))
    equals = [
        (other.by, cell.x)
        for other, cell in measured
        if cell is not top and _may_be_as_good(top, cell, better)
    ]
    return Best(line.by, top.x, top.median or 0.0, equals)


def _may_be_as_good(top: Cell, cell: Cell, better: Better) -> bool:
    """Return whether a cell cannot be told from the best one, by two runs or more of each."""
    if min(cell.n, top.n) < 2:
        return False
    found = two_samples.compare(top.values, cell.values, better)
    return not found.told and (found.low or 0.0) <= 1 <= (found.high or math.inf)


# ---- ladder --------------------------------------------------------------------------------------
#
# Several versions, one after the other: how many times as good each is, and all of them together.
#
#     for one in ladder([v0, v1, v2]):
#         [step.times for step in one.steps], one.product.times     # [1.6, 1.4], 2.24
#
# The product of the steps is the ratio of the last side to the first, so its interval is that
# ratio's own: what was measured in between cancels out.


class LadderStep(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """From one side to a later one: how many times as good it is (above 1: better, also where lower
    is better), with its 95 % interval; None where it cannot be told, with the reason."""

    first: str
    second: str
    times: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: State = "missing"
    reason: str = ""


class Ladder(Struct, frozen=True, kw_only=True):
    """One metric of one case over all sides: the ``medians`` and numbers of runs of each side, the
    steps between them, and their product."""

    case: str
    metric: str
    unit: str
    better: str
    medians: list[float | None]
    n: list[int]
    steps: list[LadderStep]
    product: LadderStep


def ladders(count: int, compared: Callable[[int, int], Comparison]) -> list[Ladder]:
    """Return a ladder for each row of the first of ``count`` sides with the last. ``compared``
    compares two sides by their places; it raises UsageError where they share nothing."""
    steps = [compared(i, j) for i, j in pairwise(range(count))]
    whole = compared(0, count - 1)
    by_key = [{(row.case, row.metric): row for row in step.rows} for step in steps]
    return [
        _ladder(row, [rows.get((row.case, row.metric)) for rows in by_key], steps, whole)
        for row in whole.rows
    ]


def _ladder(
    row: ComparisonRow,
    rows: Sequence[ComparisonRow | None],
    steps: Sequence[Comparison],
    whole: Comparison,
) -> Ladder:
    first = rows[0].first if rows[0] else row.first
    samples = [first, *(each.second if each else None for each in rows)]
    return Ladder(
        case=row.case,
        metric=row.metric,
        unit=row.unit,
        better=row.better,
        medians=[sample.median if sample else None for sample in samples],
        n=[sample.n if sample else 0 for sample in samples],
        steps=[_step(step, each) for step, each in zip(steps, rows, strict=True)],
        product=_step(whole, row),
    )


def _step(compared: Comparison, row: ComparisonRow | None) -> LadderStep:
    step = LadderStep(first=compared.first, second=compared.second)
    if row is None:
        return replace(step, reason="one side has no such case or metric")
    times, low, high = row.ratio, row.low, row.high
    if row.better == "lower":
        times, low, high = (1 / end if end else None for end in (times, high, low))
    return replace(step, times=times, low=low, high=high, verdict=row.verdict, reason=row.why)


# ---- curves over a size --------------------------------------------------------------------------
#
# Curves over a size: what each setting measured at each size, and where two curves cross.
#
#     if is_over_size(sides, query):                      # bytes, --x transfer, --size
#         for table in curves(sides, query):
#             table.lines[0].cells, table.meetings[0].crossings
#
# The *band* of a cell is the interval that holds the median with 95 %, whatever the distribution;
# of fewer than six runs the least and the greatest figure, which hold it less often. Each two
# curves are compared at each size that both have, by the rules of a comparison among all these
# sizes.


MAX_PAIRED = 8  # so many curves are compared each with each; more with the first alone


class CurveCell(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """What a curve has at a size. ``low`` and ``high`` are its band; ``times`` it is as good as the
    first curve (above 1 is better), with the ends of the 95 % interval."""

    x: float
    n: int
    median: float | None = None
    low: float | None = None
    high: float | None = None
    times: float | None = None
    times_low: float | None = None
    times_high: float | None = None
    verdict: Verdict | None = None
    promised: Beside = UNSET
    excluded: dict[str, int] = {}
    reason: str = ""


class Curve(Struct, frozen=True):
    """The cells of one setting, by size."""

    by: str
    cells: list[CurveCell]


class CurveTable(TableOverX, frozen=True, kw_only=True):
    """The curves of one case over ``x``. ``figures``: of how many figures the metric was chosen, 1
    if it was asked for; ``directed``: whether higher or lower is better; ``paired``: whether each
    two curves were compared, or each with the first alone."""

    lines: list[Curve]
    meetings: list[Meeting] = []
    directed: bool = True
    paired: bool = True
    figures: int = 1


# ---- which cases make curves ---------------------------------------------------------------------


def is_over_size(sides: Sequence[Side], query: ScalingQuery) -> bool:
    """Return whether x is a size: a label of figures whose values are numbers, a parameter whose
    values have a unit of bytes, or what the query calls one. Raises UsageError for a query that
    calls it two things."""
    if query.weak or query.fixed:
        if query.size:
            other = "--weak" if query.weak else "--fixed"
            raise UsageError(f"--size and {other}: a size has no ideal; give one of them")
        return False
    cases = cases_of(sides)
    texts = {one.attribute(query.x) for one in by_label(cases, query.x)} - {""}
    return query.size or is_size(texts, is_label(cases, query.x))


def over_x(
    sides: Sequence[Side], query: ScalingQuery
) -> Sequence[ScalingTable] | Sequence[CurveTable]:
    """Return curves where x is a size, else series of what grows. Raises UsageError as they do."""
    return curves(sides, query) if is_over_size(sides, query) else scaling(sides, query)


def curves(sides: Sequence[Side], query: ScalingQuery) -> list[CurveTable]:
    """Return a table for each case and metric that has two sizes or more. Raises UsageError where
    none has, or a name is not known."""
    every = cases_of(sides)
    members = by_label(every, query.x)
    require_axes(members, query)
    having = [one for one in members if one.attribute(query.x)]
    texts = {one.attribute(query.x) for one in having}
    _require_sizes(texts, query.x)
    in_bytes = query.x == BYTES or have_unit(texts)
    tables = [
        replace(table, figures=figures, in_bytes=in_bytes)
        for cases in by_test(having).values()
        for metric, figures in _metrics(cases, query.metric)
        for table in _curve_tables(having, cases, replace(query, metric=metric))
    ]
    if not any(map(_has_figure, tables)):
        raise UsageError(nothing_measured(having, query.metric or kind_of(having, "")[0]))
    return with_left_out(tables, {f"without {query.x}": len(members) - len(having)})


def _has_figure(table: CurveTable) -> bool:
    return bool(table.reason) or any(cell.n for line in table.lines for cell in line.cells)


def _require_sizes(texts: set[str], x: str) -> None:
    """Raise UsageError if values are not two sizes or more."""
    if words := sorted(text for text in texts if not are_sizes([text])):
        raise UsageError(f"--size: {x} has {words[0]!r}, which is no number of 0 or more")
    if len(texts) == 1:
        raise UsageError(f"--x {x}: is {min(texts)} in every case; there is no curve")


def _metrics(cases: Sequence[CaseRuns], asked: str) -> list[tuple[str, int]]:
    """Return the metrics of a test, and of how many each was chosen: all that the name stands for,
    or the one of most figures."""
    if asked:
        return [(metric, 1) for metric in metrics_named(asked, cases)]
    return [(kind_of(cases, "")[0], max(1, len(metrics_of(cases))))]


def _curve_tables(
    every: Sequence[CaseRuns], cases: Sequence[CaseRuns], query: ScalingQuery
) -> list[CurveTable]:
    differing = [n for n in varying(cases) if n != query.x and not one_to_one(cases, n, query.x)]
    by = query.by or tuple(differing)
    follow = along(cases, (query.x, *by), (query.x, *by))
    left_out = {query.x, *by, *follow}
    return [
        _curve_table(panel, replace(query, by=by), follow, title(panel, left_out, every))
        for panel in panels(cases, left_out)
        if len({one.attribute(query.x) for one in panel}) > 1
    ]


# ---- one table -----------------------------------------------------------------------------------


def _curve_table(
    panel: Sequence[CaseRuns], query: ScalingQuery, follow: list[str], name: str
) -> CurveTable:
    unit, direction, reason = metric_in(panel, query.metric)
    table = CurveTable(
        case=name,
        metric=query.metric,
        unit=unit,
        better=better_of(direction),
        x=query.x,
        weak=False,
        lines=[],
        along=follow,
        directed=direction != NO_DIRECTION,
        reason=reason,
    )
    if reason:
        return table
    groups = by_line(panel, query.by)
    cells = {by: cells_of(own, query.x, query.metric) for by, own in groups.items()}
    sizes = {each.x for own in cells.values() for each in own if each.reason != NO_FIGURE}
    lines = [_Series(by, [c for c in own if c.x in sizes]) for by, own in cells.items()]
    if not table.directed:
        return replace(table, lines=[Curve(one.by, list(map(_cell, one.cells))) for one in lines])
    return _compared(table, lines)


class _Series(NamedTuple):
    """A curve with the figures of its cells."""

    by: str
    cells: Sequence[Cell]


class _Two(NamedTuple):
    """Two curves at the sizes that both have, and how the second one compares at each."""

    first: _Series
    second: _Series
    pairs: list[Pair]
    estimates: list[RatioEstimate]

    @property
    def meeting(self) -> Meeting:
        """Where they cross."""
        names = (self.first.by, self.second.by)
        return meeting(names, self.pairs, [one.verdict for one in self.estimates])


def _two(first: _Series, second: _Series, better: Better) -> _Two:
    pairs = pairs_of(first.cells, second.cells)
    rows = [(pair.first.values, pair.second.values, better) for pair in pairs]
    return _Two(first, second, pairs, judged(rows))


def _compared(table: CurveTable, lines: Sequence[_Series]) -> CurveTable:
    """Return the table with its curves, compared with each other."""
    paired = len(lines) <= MAX_PAIRED
    chosen = combinations(lines, 2) if paired else ((lines[0], one) for one in lines[1:])
    twos = [_two(first, second, table.better) for first, second in chosen]
    beside = {
        (two.second.by, pair.x): found
        for two in twos
        if two.first is lines[0]
        for pair, found in zip(two.pairs, two.estimates, strict=True)
    }
    return replace(
        table,
        paired=paired,
        lines=[
            Curve(one.by, [_beside(_cell(c), beside.get((one.by, c.x)), table) for c in one.cells])
            for one in lines
        ],
        meetings=[two.meeting for two in twos],
    )


def _cell(cell: Cell) -> CurveCell:
    low, high = band_of(cell.values) if cell.median is not None else (None, None)
    return CurveCell(
        x=cell.x,
        n=cell.n,
        median=cell.median,
        low=low,
        high=high,
        promised=cell.promised,
        excluded=cell.excluded,
        reason=cell.reason,
    )


def band_of(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the interval of the median, of fewer than six figures the least and the greatest; of
    one figure none."""
    if len(values) < 2:
        return None, None
    ordered = sorted(values)
    return median_interval(ordered) or (ordered[0], ordered[-1])


def _beside(cell: CurveCell, found: RatioEstimate | None, table: CurveTable) -> CurveCell:
    """Return a cell with how many times as good it is as the first curve."""
    if found is None or found.ratio is None:
        return cell
    times, low, high = found.ratio, found.low, found.high
    if table.better == "lower":
        times, low, high = 1 / times, 1 / high if high else None, 1 / low if low else None
    return replace(cell, times=times, times_low=low, times_high=high, verdict=found.verdict)
