"""Curves over a size: what each setting measured at each size, and where two curves cross.

    if is_over_size(sides, query):                      # bytes, --x transfer, --size
        for table in curves(sides, query):
            table.lines[0].cells, table.meetings[0].crossings

The *band* of a cell is the interval that holds the median with 95 %, whatever the distribution; of
fewer than six runs the least and the greatest figure, which hold it less often. Each two curves are
compared at each size that both have, by the rules of a comparison among all these sizes.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from msgspec import UNSET, Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.judge.promises import Beside
from seatrial.judge.statistics.bands import median_interval
from seatrial.judge.statistics.sequential import judged
from seatrial.judge.statistics.two_samples import RatioEstimate, Verdict
from seatrial.results.panels import (
    TableOverX,
    along,
    by_test,
    kind_of,
    metrics_of,
    one_to_one,
    panels,
    title,
    varying,
    with_left_out,
)
from seatrial.results.scaling import ScalingQuery, ScalingTable, require_axes, scaling
from seatrial.results.selection import Side, cases_of
from seatrial.results.sizes import (
    BYTES,
    NO_FIGURE,
    Cell,
    Meeting,
    Pair,
    are_sizes,
    by_label,
    by_line,
    cells_of,
    have_unit,
    is_label,
    is_size,
    meeting,
    metric_in,
    metrics_named,
    nothing_measured,
    pairs_of,
)
from seatrial.results.store.by_case import CaseRuns
from seatrial.units import NO_DIRECTION, Better, better_of

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
        for table in _tables(having, cases, replace(query, metric=metric))
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


def _tables(
    every: Sequence[CaseRuns], cases: Sequence[CaseRuns], query: ScalingQuery
) -> list[CurveTable]:
    differing = [n for n in varying(cases) if n != query.x and not one_to_one(cases, n, query.x)]
    by = query.by or tuple(differing)
    follow = along(cases, (query.x, *by), (query.x, *by))
    left_out = {query.x, *by, *follow}
    return [
        _table(panel, replace(query, by=by), follow, title(panel, left_out, every))
        for panel in panels(cases, left_out)
        if len({one.attribute(query.x) for one in panel}) > 1
    ]


# ---- one table -----------------------------------------------------------------------------------


def _table(
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
