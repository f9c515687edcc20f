"""What one way of running costs against another, over sizes: native against compat, say.

    asked = RatioQuery(of="toolchain", values=("native", "compat"), x="tasks")
    for table in ratios(sides, asked):
        table.cells[0].ratio, table.lowest, table.highest, table.change

The ratio of a size is how many times as long the second way takes: the second median over the
first one, and of a metric where higher is better the first over the second. The speed-up of each
way is its speed over its own at the least size at which both were measured. The *ratio of ratios*,
from that size to the largest one, tells how the cost grows with the size; it is the speed-up of the
first way over that of the second.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.statistics.ratio_of_ratios import RatioChange, ratio_of_ratios
from seatrial.statistics.together import judged
from seatrial.statistics.two_sample import RatioEstimate, Verdict
from seatrial.store.by_case import CORES, NUMBERS, CaseRuns
from seatrial.structs import copied
from seatrial.studies.constant_resources import are_constant
from seatrial.studies.panels import APART, TableOverX, along, differing_values, panels, title
from seatrial.studies.scaling_cells import (
    Cell,
    cells_of,
    names_of,
    nothing_measured,
    speeds,
    usable,
)
from seatrial.studies.selection import Side
from seatrial.units import NO_DIRECTION, Better, better_of

AXES = (*NUMBERS, CORES)
MAX_NAMED = 4
NOT_MEASURED = "no such case"
_WORDS: dict[str, str] = {"better": "faster", "worse": "slower"}


class RatioQuery(Struct, frozen=True, kw_only=True):
    """What is asked: the two ``values`` of a parameter or attribute ``of``, such as toolchain, at
    each value of ``x``. ``weak``: the work grows with x."""

    of: str
    values: tuple[str, str]
    x: str
    metric: str = "elapsed"
    weak: bool = False


class RatioCell(Struct, frozen=True, kw_only=True):
    """One size: what both ways measured, and how many times as long the second one takes, with the
    95 % interval; None where one of them has no figure. ``verdict`` is of the second way; ``why``
    it is unclear, or of how few runs it is; ``needed`` runs of each may decide what is unclear. A
    change of less than the share ``unseen`` could not have been seen."""

    x: float
    first: Cell
    second: Cell
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: Verdict = "unclear"
    why: str = ""
    needed: int = 0
    unseen: float | None = None

    @property
    def word(self) -> str:
        """How the second way is: faster, slower, same, unclear; "" without a ratio."""
        return "" if self.ratio is None else _WORDS.get(self.verdict, self.verdict)

    @property
    def told(self) -> str:
        """The same, with the number of runs where these are few: ``slower (of 3 and 3 runs)``."""
        return f"{self.word} ({self.why})" if self.why and self.verdict != "unclear" else self.word


class RatioTable(TableOverX, frozen=True, kw_only=True):
    """The sizes of one case. ``along`` are parameters that follow ``x`` or ``of`` one to one.
    ``change`` is the ratio of ratios from the least to the largest size with a ratio. ``fixed``:
    the resources are the same at each x, so there are no speed-ups."""

    test: str
    of: str
    values: tuple[str, str]
    cells: list[RatioCell]
    change: RatioChange | None = None
    fixed: bool = False

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


def ratios(sides: Sequence[Side], asked: RatioQuery) -> list[RatioTable]:
    """Return a table for each case that both values have. Raises UsageError where there is none, or
    a name is not known."""
    members = [member for side in sides for member in side.cases]
    _require_names(members, asked)
    having = [one for one in members if one.attribute(asked.x)]
    chosen = [one for one in having if one.attribute(asked.of) in asked.values]
    left_out = {
        f"without {asked.x}": len(members) - len(having),
        f"of another {asked.of}": len(having) - len(chosen),
    }
    tables = []
    single = 0
    for test in dict.fromkeys(one.test for one in chosen):
        cases = [one for one in chosen if one.test == test]
        follow = along(cases, (asked.x, asked.of), (asked.x, asked.of))
        along_x = {asked.x, asked.of, *follow}
        for panel in panels(cases, along_x):
            if {one.attribute(asked.of) for one in panel} == set(asked.values):
                tables.append(_table(panel, asked, follow, title(panel, along_x, chosen)))
            else:
                single += len(panel)
    if not tables:
        both = " and ".join(asked.values)
        raise UsageError(
            f"--of {asked.of}: no case has {both} that differ in that and {asked.x} alone"
            f"{_differing(chosen, asked)}; choose cases with TRIAL:NAME=VALUE"
        )
    told = any(table.why for table in tables)
    if not told and not any(c.first.n or c.second.n for table in tables for c in table.cells):
        raise UsageError(nothing_measured(chosen, asked.metric))
    left_out[f"with one {asked.of} alone"] = single
    left_out = {why: number for why, number in left_out.items() if number}
    return [replace(table, left_out=left_out) for table in _judged(tables)]


def _differing(cases: Sequence[CaseRuns], asked: RatioQuery) -> str:
    """Return in what else the two ways differ, with its values."""
    said = []
    for test in dict.fromkeys(one.test for one in cases):
        own = [one for one in cases if one.test == test]
        found = differing_values(own, asked.of, (asked.of, asked.x))
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
    tests = dict.fromkeys(one.test for side in sides for one in side.cases)
    return [test for test in tests if test not in shown]


def _require_names(members: Sequence[CaseRuns], asked: RatioQuery) -> None:
    parameters = sorted({name for one in members for name in one.parameters})
    known = [*AXES, *APART, "trial", "node"]
    for option, name in (("--x", asked.x), ("--of", asked.of)):
        if name not in (*parameters, *known):
            listed = ", ".join([*known, *(n for n in parameters if n not in known)])
            raise UsageError(f"{option} {name}: is none of {listed}")
    if asked.x == asked.of:
        raise UsageError(f"--of {asked.of}: that is --x already")
    there = list(dict.fromkeys(one.attribute(asked.of) for one in members))
    for value in asked.values:
        if value not in there:
            listed = ", ".join(each or "none" for each in there)
            raise UsageError(f"--of {asked.of}: no case has {value}; there are {listed}")


def _table(
    panel: Sequence[CaseRuns], asked: RatioQuery, follow: list[str], name: str
) -> RatioTable:
    kinds = {kind for member in panel for kind in member.values if kind[0] == asked.metric}
    unit, direction = next(((kind[1], kind[2]) for kind in kinds), ("", ""))
    table = copied(
        RatioTable,
        asked,
        case=name,
        test=panel[0].test,
        unit=unit,
        better=better_of(direction),
        cells=[],
        along=follow,
        names=names_of(panel, asked.x),
        fixed=not asked.weak and are_constant(panel),
    )
    if len(kinds) > 1:
        said = " and ".join(sorted(f"{u or 'no unit'}, {b}" for _, u, b in kinds))
        return replace(table, why=f"unit or direction differ: {said}; nothing is compared")
    if direction == NO_DIRECTION:
        return replace(table, why="it has no direction (better: none), so no way is slower")
    ways = [
        {cell.x: cell for cell in cells_of(cases, asked.x, asked.metric, table.names)}
        for cases in ([m for m in panel if m.attribute(asked.of) == v] for v in asked.values)
    ]
    return replace(table, cells=[_cell(x, ways) for x in sorted({*ways[0], *ways[1]})])


def _cell(x: float, ways: Sequence[dict[float, Cell]]) -> RatioCell:
    first, second = (way.get(x) or Cell(x=x, n=0, why=NOT_MEASURED) for way in ways)
    return RatioCell(x=x, first=first, second=second)


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
        _with_speedups(
            replace(
                table,
                cells=[_with_ratio(c, by_cell.get(id(c)), table.better) for c in table.cells],
            )
        )
        for table in tables
    ]


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
        why=found.why,
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
