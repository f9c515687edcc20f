"""What one way of running costs against another, over sizes: native against compat, say.

    query = RatioQuery(of="toolchain", values=("native", "compat"), x="tasks")
    for table in ratios(sides, query):
        table.cells[0].ratio, table.lowest, table.highest, table.change

The ratio of a size is how many times as long the second way takes: the second median over the
first one, and of a metric where higher is better the first over the second. The speed-up of each
way is its speed over its own at the least size at which both were measured. The *ratio of ratios*,
from that size to the largest one, tells how the cost grows with the size; it is the speed-up of the
first way over that of the second.
"""

import math
from collections.abc import Callable, Sequence
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.hooks import load, provided
from seatrial.judge.statistics.sequential import judged
from seatrial.judge.statistics.two_samples import (
    RatioChange,
    RatioEstimate,
    Verdict,
    ratio_of_ratios,
)
from seatrial.results.case_figures import (
    APART,
    CORES,
    ELAPSED,
    NUMBERS,
    CaseRuns,
    Kind,
    TableOverX,
    along,
    by_test,
    differing_values,
    kind_of,
    panels,
    parameters_of,
    require_known,
    title,
    with_left_out,
)
from seatrial.results.selection import Side, cases_of
from seatrial.results.sizes import (
    BYTES,
    NO_FIGURE,
    Cell,
    Meeting,
    Pair,
    by_label,
    cells_of,
    have_unit,
    is_label,
    is_size,
    labels_of,
    meeting,
    metric_in,
    names_of,
    nothing_measured,
    one_metric,
    speeds,
    usable,
)
from seatrial.units import Better, better_of, sign_of

AXES = (*NUMBERS, CORES)
MAX_NAMED = 4
NOT_MEASURED = "no such case"
_WORDS: dict[str, str] = {"better": "faster", "worse": "slower"}


class RatioQuery(Struct, frozen=True, kw_only=True):
    """What is asked: the two ``values`` of a parameter or attribute ``of``, such as toolchain, at
    each value of ``x``. ``metric`` "" is the elapsed time, over a label the figure that most runs
    have. ``weak``: the work grows with x; ``fixed``: the resources are the same at each x, also
    where the cases do not tell."""

    of: str
    values: tuple[str, str]
    x: str
    metric: str = ""
    weak: bool = False
    fixed: bool = False


class RatioCell(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """One size: what both ways measured, and how many times as long the second one takes, with the
    95 % interval; None where one of them has no figure. ``verdict`` is of the second way;
    ``reason`` says why it is unclear, or of how few runs it is; ``needed`` runs of each may decide
    what is unclear. A change of less than the share ``unseen`` could not have been seen."""

    x: float
    first: Cell
    second: Cell
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: Verdict = "unclear"
    reason: str = ""
    needed: int = 0
    unseen: float | None = None

    @property
    def word(self) -> str:
        """How the second way is: faster, slower, same, unclear; "" without a ratio."""
        return "" if self.ratio is None else _WORDS.get(self.verdict, self.verdict)

    @property
    def verdict_words(self) -> str:
        """The same, with the number of runs where these are few: ``slower (of 3 and 3 runs)``."""
        return (
            f"{self.word} ({self.reason})"
            if self.reason and self.verdict != "unclear"
            else self.word
        )


class RatioTable(TableOverX, frozen=True, kw_only=True):
    """The sizes of one case. ``along`` are parameters that follow ``x`` or ``of`` one to one.
    ``change`` is the ratio of ratios from the least to the largest size with a ratio. ``fixed``:
    the resources are the same at each x, so there are no speed-ups. ``sized``: x is a size of the
    work; then ``meeting`` tells who is ahead at which sizes."""

    test: str
    of: str
    values: tuple[str, str]
    cells: list[RatioCell]
    change: RatioChange | None = None
    fixed: bool = False
    sized: bool = False
    meeting: Meeting | None = None

    @property
    def known(self) -> list[RatioCell]:
        """The sizes that have a ratio."""
        return [cell for cell in self.cells if cell.ratio is not None]

    @property
    def lowest(self) -> RatioCell | None:
        return min(self.known, key=lambda cell: cell.ratio or 0.0, default=None)

    @property
    def highest(self) -> RatioCell | None:
        return max(self.known, key=lambda cell: cell.ratio or 0.0, default=None)


class RatioExtreme(Struct, frozen=True):
    """The least or greatest ratio of all tables: where it is."""

    ratio: float
    test: str
    x: str
    unclear: bool = False


def ratios(sides: Sequence[Side], query: RatioQuery) -> list[RatioTable]:
    """Return a table for each case that both values have. Raises UsageError where there is none, or
    a name is not known."""
    members = by_label(cases_of(sides), query.x)
    _require_names(members, query)
    having = [one for one in members if one.attribute(query.x)]
    chosen = [one for one in having if one.attribute(query.of) in query.values]
    labelled = is_label(cases_of(sides), query.x)
    metric = query.metric or (kind_of(chosen, "")[0] if labelled else ELAPSED[0])
    query = replace(query, metric=one_metric(metric, chosen))
    tables: list[RatioTable] = []
    single = 0
    for cases in by_test(chosen).values():
        of_test, alone = _tables(chosen, cases, query, labelled)
        tables += of_test
        single += alone
    if not tables:
        both = " and ".join(query.values)
        raise UsageError(
            f"--of {query.of}: no case has {both} that differ in that and {query.x} alone"
            f"{_differing(chosen, query)}; choose cases with TRIAL:NAME=VALUE"
        )
    if not any(map(_says_something, tables)):
        raise UsageError(nothing_measured(chosen, query.metric))
    left_out = {
        f"without {query.x}": len(members) - len(having),
        f"of another {query.of}": len(having) - len(chosen),
        f"with one {query.of} alone": single,
    }
    return with_left_out(_judged(tables), left_out)


def _tables(
    members: Sequence[CaseRuns], cases: Sequence[CaseRuns], query: RatioQuery, labelled: bool
) -> tuple[list[RatioTable], int]:
    """Return the tables of the cases of a test, and how many of these have one of the two values
    alone."""
    follow = along(cases, (query.x, query.of), (query.x, query.of))
    along_x = {query.x, query.of, *follow}
    tables, alone = [], 0
    for panel in panels(cases, along_x):
        if {one.attribute(query.of) for one in panel} == set(query.values):
            table = _table(panel, query, follow, title(panel, along_x, members), labelled)
            tables.append(table)
        else:
            alone += len(panel)
    return tables, alone


def _says_something(table: RatioTable) -> bool:
    """Return whether a table has a figure, or a reason for having none."""
    return bool(table.reason) or any(cell.first.n or cell.second.n for cell in table.cells)


def _differing(cases: Sequence[CaseRuns], query: RatioQuery) -> str:
    """Return in what else the two ways differ, with its values."""
    said = []
    for own in by_test(cases).values():
        found = differing_values(own, query.of, (query.of, query.x))
        said += [
            f"{name} ({' and '.join(', '.join(each[:MAX_NAMED]) for each in values)})"
            for name, values in found.items()
        ]
    return f", but in {', '.join(dict.fromkeys(said))}, too" if said else ""


def two_values(text: str) -> tuple[str, str, str]:
    """Return the name and the two values of ``toolchain=native,compat``. Raises UsageError."""
    name, equals, values = text.partition("=")
    each = [value.strip() for value in values.split(",")]
    if not equals or not name.strip() or len(each) != 2 or not all(each) or each[0] == each[1]:
        raise UsageError(
            f"--of {text}: is not a name with two values; write e.g. toolchain=native,compat"
        )
    return name.strip(), each[0], each[1]


def extremes(tables: Sequence[RatioTable]) -> tuple[RatioExtreme, RatioExtreme] | None:
    """Return the least and the greatest ratio of tables, and where they are; None without one."""
    found = [
        RatioExtreme(cell.ratio, table.test, table.named(cell.x), cell.verdict == "unclear")
        for table in tables
        for cell in table.cells
        if cell.ratio is not None
    ]
    if not found:
        return None
    return min(found, key=lambda one: one.ratio), max(found, key=lambda one: one.ratio)


def without_both(sides: Sequence[Side], tables: Sequence[RatioTable]) -> list[str]:
    """Return the tests that have no table, as they lack one of the two values."""
    shown = {table.test for table in tables}
    tests = dict.fromkeys(one.test for one in cases_of(sides))
    return [test for test in tests if test not in shown]


def _require_names(members: Sequence[CaseRuns], query: RatioQuery) -> None:
    for option, name in (("--x", query.x), ("--of", query.of)):
        labels = labels_of(members) if option == "--x" else []
        known = (AXES, APART, ("trial", "node"), parameters_of(members), labels)
        require_known(option, name, *known)
    require_one_ideal(query.weak, query.fixed)
    if query.x == query.of:
        raise UsageError(f"--of {query.of}: that is --x already")
    there = list(dict.fromkeys(one.attribute(query.of) for one in members))
    for value in query.values:
        if value not in there:
            listed = ", ".join(each or "none" for each in there)
            raise UsageError(f"--of {query.of}: no case has {value}; there are {listed}")


def require_one_ideal(weak: bool, fixed: bool) -> None:
    """Raise UsageError if resources are said both to grow and to stay."""
    if weak and fixed:
        raise UsageError("--weak and --fixed: resources that grow are not fixed; give one of them")


def _table(
    panel: Sequence[CaseRuns], query: RatioQuery, follow: list[str], name: str, labelled: bool
) -> RatioTable:
    unit, direction, reason = metric_in(panel, query.metric, "so no way is slower")
    texts = {one.attribute(query.x) for one in panel}
    sized = is_size(texts, labelled)
    table = RatioTable(
        case=name,
        metric=query.metric,
        x=query.x,
        weak=query.weak,
        of=query.of,
        values=query.values,
        test=panel[0].test,
        unit=unit,
        better=better_of(direction),
        cells=[],
        along=follow,
        names=[] if sized else names_of(panel, query.x),
        fixed=not query.weak and (query.fixed or sized or are_constant(panel)),
        sized=sized,
        in_bytes=sized and (query.x == BYTES or have_unit(texts)),
        reason=reason,
    )
    return table if reason else replace(table, cells=_cells(panel, query, table))


def _cells(panel: Sequence[CaseRuns], query: RatioQuery, table: RatioTable) -> list[RatioCell]:
    first, second = (_cells_of_way(panel, value, query, table.names) for value in query.values)
    cells = [
        RatioCell(x=x, first=first.get(x) or _no_cell(x), second=second.get(x) or _no_cell(x))
        for x in sorted({*first, *second})
    ]
    if not table.sized:
        return cells
    return [c for c in cells if {c.first.reason, c.second.reason} - {NO_FIGURE, NOT_MEASURED}]


def _cells_of_way(
    panel: Sequence[CaseRuns], value: str, query: RatioQuery, names: Sequence[str]
) -> dict[float, Cell]:
    cases = [one for one in panel if one.attribute(query.of) == value]
    return {cell.x: cell for cell in cells_of(cases, query.x, query.metric, names)}


def _no_cell(x: float) -> Cell:
    return Cell(x=x, n=0, reason=NOT_MEASURED)


def _judged(tables: Sequence[RatioTable]) -> list[RatioTable]:
    """Return the tables with the ratios of their sizes: of many some differ by chance."""
    both = [
        (cell, table.better)
        for table in tables
        for cell in table.cells
        if len(usable([cell.first, cell.second])) == 2
    ]
    told = judged([(cell.first.values, cell.second.values, better) for cell, better in both])
    by_cell = {id(cell): one for (cell, _), one in zip(both, told, strict=True)}
    return [
        _with_meeting(
            _with_speedups(
                replace(
                    table,
                    cells=[_with_ratio(c, by_cell.get(id(c)), table.better) for c in table.cells],
                )
            )
        )
        for table in tables
    ]


def _with_meeting(table: RatioTable) -> RatioTable:
    """Return a table with who of the two is ahead at which x; words have no order."""
    if table.names or not table.known:
        return table
    pairs = [Pair(cell.x, cell.first, cell.second) for cell in table.known]
    verdicts = [cell.verdict for cell in table.known]
    return replace(table, meeting=meeting(table.values, pairs, verdicts))


def _with_ratio(cell: RatioCell, found: RatioEstimate | None, better: Better) -> RatioCell:
    if found is None:
        return cell
    ends = (found.ratio, found.low, found.high)
    if better == "higher":
        ends = (_inverse(found.ratio), _inverse(found.high), _inverse(found.low))
    return replace(
        cell,
        ratio=ends[0],
        low=ends[1],
        high=ends[2],
        verdict=found.verdict,
        reason=found.reason,
        needed=found.needed,
        unseen=found.unseen,
    )


def _inverse(ratio: float | None) -> float | None:
    return 1 / ratio if ratio else None


def _with_speedups(table: RatioTable) -> RatioTable:
    """Return a table with the speed-up of both ways, and the ratio of ratios. Named sizes have no
    order, and so neither."""
    known = table.known
    if not known or table.names or table.fixed:
        return table
    base, last = known[0], known[-1]
    cells = [
        replace(
            cell,
            first=_related(cell.first, base.first, table),
            second=_related(cell.second, base.second, table),
        )
        for cell in table.cells
    ]
    if base is last:
        return replace(table, cells=cells)
    earlier, later = (base.first, base.second), (last.first, last.second)
    if table.better == "higher":
        earlier, later = earlier[::-1], later[::-1]
    change = ratio_of_ratios(*(cell.values for cell in (*earlier, *later)))
    return replace(table, cells=cells, change=change)


def _related(cell: Cell, base: Cell, table: RatioTable) -> Cell:
    """Return a cell with its speed-up over another one of the same way."""
    ideal = cell.x / base.x
    if not usable([cell]):
        return cell
    speedup, low, high = speeds(base, cell, table.better, table.weak)
    if cell.x == base.x:
        low = high = None
    return replace(
        cell, speedup=speedup, low=low, high=high, ideal=ideal, efficiency=speedup / ideal
    )


# ---- resource basis ------------------------------------------------------------------------------
#
# Figures by what they took: for each core, each node, or each node-hour.
#
#     side = per_resource(gather(store, parse_side("hopper")), "core")
#     side.cases[0].values[("triad", "MB/s/core", "higher")]
#
# A rate is divided by the resources; a time is multiplied with them, which gives core-seconds and
# the like. A node-hour is the nodes times the time: of a time itself in hours, of a rate by the
# median elapsed time of the case.


SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}


def per_resource(side: Side, resource: str) -> Side:
    """Return the side with its figures on that basis; figures without a direction, and times in no
    known unit, are left out. Raises UsageError for a case of which the resources are not known, and
    for figures that somebody else gave."""
    if side.given:
        raise UsageError(f"--per {resource}: {side.text} was given, and does not tell what it took")
    return replace(side, cases=[_case(one, resource) for one in side.cases])


def _case(one: CaseRuns, resource: str) -> CaseRuns:
    count, what = _amount(one, resource)
    if count <= 0 and one.values:
        raise UsageError(f"--per {resource}: {one.test} of {one.trial} does not tell its {what}")
    found: dict[Kind, list[float]] = {}
    jobs: dict[Kind, list[str]] = {}
    for kind, values in one.values.items():
        if based := _based(one, kind, count, resource):
            name, factor = based
            found[name] = [value * factor for value in values]
            jobs[name] = one.jobs.get(kind, [])
    return replace(one, values=found, jobs=jobs)


def _amount(one: CaseRuns, resource: str) -> tuple[float, str]:
    """Return how many cores or nodes the runs of a case take, or what they take in an hour; and by
    what that is told."""
    if resource == "core":
        return float(one.attribute(CORES) or 0), "tasks and threads"
    for kind in provided("seatrial_resources"):
        if kind.name == resource:
            return load(kind.rate)(one), resource
    return float(one.nodes or 0), "nodes"


def _based(one: CaseRuns, kind: Kind, count: float, resource: str) -> tuple[Kind, float] | None:
    """Return the metric on its basis, and the factor of its figures; None if it has none."""
    name, unit, better = kind
    hourly = "node-h" if resource == "node-hour" else resource
    if better == "lower" and unit in SECONDS:
        if resource in ("core", "node"):
            return (name, f"{resource}-{unit}", better), count
        return (name, hourly, better), count * SECONDS[unit] / 3600
    if better != "higher":
        return None
    if resource in ("core", "node"):
        return (name, f"{unit}/{resource}", better), 1 / count
    elapsed = one.values.get(ELAPSED)
    if not elapsed or median(elapsed) <= 0:
        return None
    return (name, f"{unit}/{hourly}", better), 3600 / (count * median(elapsed))


# ---- constant resources --------------------------------------------------------------------------
#
# A series with constant resources: ranks times threads are the same, the ideal is flat.
#
#     found = judged(cells, "higher")
#     found.best, found.plateau, found.drops
#
# Nothing is added from one x to the next, so there is neither a speed-up to expect nor a knee.
# What counts is which x is best, which others are as good, and where the speed drops.


PLATEAU = 0.05  # of the best speed that a setting on the plateau may miss
MIN_DROP = 0.05  # of the speed before, from which a drop is told


class SpeedDrop(Struct, frozen=True):
    """From x ``before`` to the next one, ``after``, the speed drops by ``per_cent`` of what it was;
    ``low`` and ``high`` are the ends of its 95 % interval, None of single runs. ``until`` is the x
    behind ``after`` if the speed drops from there to ``after``, too: a dip of ``after`` alone."""

    before: float
    after: float
    per_cent: float
    low: float | None = None
    high: float | None = None
    until: float | None = None

    def words(self, x: str, named: Callable[[float], str] = "{:g}".format) -> str:
        """Return the drop in words. ``named`` gives the name of a value of x."""
        after = named(self.after)
        said = f"drops by {self.per_cent:.1f} % from {x} {named(self.before)} to {after}"
        known = self.low is not None and self.high is not None
        within = f"95 %: {self.low:.1f} to {self.high:.1f} %" if known else "of single runs: repeat"
        again = "" if self.until is None else f", at {after} alone: {named(self.until)} is faster"
        return f"{said} ({within}){again}"


class ConstantSeries(Struct, frozen=True):
    """The cells with their speed over that of the ``best`` x, whose interval is theirs; the x about
    it that are as good; the drops, by x."""

    best: float
    cells: list[Cell]
    plateau: list[float]
    drops: list[SpeedDrop]


def are_constant(cases: Sequence[CaseRuns]) -> bool:
    """Return whether cases share the same cores out to tasks and threads in several ways. Their
    nodes may be unknown, if they are of all."""
    shapes = {(one.nodes, one.tasks, one.threads) for one in cases}
    if any(None in shape[1:] for shape in shapes):
        return False
    cores = {(nodes, (tasks or 0) * (threads or 0)) for nodes, tasks, threads in shapes}
    return len(cores) == 1 and len({tasks for _, tasks, _ in shapes}) > 1


def constant_series(cells: Sequence[Cell], better: Better, ordered: bool = True) -> ConstantSeries:
    """Return the series of cells in the order of x, at least one of which can be compared. Where x
    are not ``ordered`` (words), there is no drop from one to the next."""
    known = usable(cells)
    best = max(known, key=lambda cell: sign_of(better) * (cell.median or 0))
    related = [_related_cells(cell, best, better) for cell in cells]
    if not ordered:
        return ConstantSeries(best.x, related, _all_as_good(related), [])
    return ConstantSeries(best.x, related, _plateau(related, best.x), drops_of(known, better))


def drops_of(cells: Sequence[Cell], better: Better) -> list[SpeedDrop]:
    """Return the drops from one cell to the next. All can be compared, and are in the order of
    x."""
    drops = []
    for before, cell, behind in zip(cells, cells[1:], [*cells[2:], None], strict=False):
        if (drop := _drop(before, cell, better)) is None:
            continue
        is_dip = behind is not None and _drop(behind, cell, better) is not None
        drops.append(replace(drop, until=behind.x) if behind and is_dip else drop)
    return drops


def _related_cells(cell: Cell, best: Cell, better: Better) -> Cell:
    if not usable([cell]):
        return replace(cell, ideal=1.0)
    if cell.x == best.x:
        return replace(cell, ideal=1.0, speedup=1.0, efficiency=1.0)
    speedup, low, high = speeds(best, cell, better, False)
    return replace(cell, ideal=1.0, speedup=speedup, low=low, high=high, efficiency=speedup)


def _plateau(cells: Sequence[Cell], best: float) -> list[float]:
    """Return the x about the best one, without a gap, that are within 5 % of it or cannot be told
    from it."""
    known = [cell for cell in cells if cell.speedup is not None]
    at = next(i for i, cell in enumerate(known) if cell.x == best)
    first = last = at
    while first > 0 and _as_good(known[first - 1]):
        first -= 1
    while last + 1 < len(known) and _as_good(known[last + 1]):
        last += 1
    return [cell.x for cell in known[first : last + 1]]


def _all_as_good(cells: Sequence[Cell]) -> list[float]:
    return [cell.x for cell in cells if cell.speedup is not None and _as_good(cell)]


def _as_good(cell: Cell) -> bool:
    return (cell.speedup or 0) >= 1 - PLATEAU or (cell.high is not None and cell.high >= 1)


def _drop(one: Cell, other: Cell, better: Better) -> SpeedDrop | None:
    """Return the drop from a cell to one beside it, None if there is none beyond the noise."""
    ratio, low, high = speeds(one, other, better, False)
    if ratio > 1 - MIN_DROP or (high is not None and high >= 1):
        return None
    if low is None or high is None or not math.isfinite(low):
        return SpeedDrop(one.x, other.x, 100 * (1 - ratio))
    return SpeedDrop(one.x, other.x, 100 * (1 - ratio), 100 * (1 - high), 100 * (1 - low))
