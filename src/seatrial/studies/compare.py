"""Two sides of a comparison, row by row: each metric of each case that both or one of them has.

    comparison = compare_sides(base, other)
    comparison.rows           # worse and better, the largest first; unclear, same, ..., missing

Which cases are one row ``studies.pairing`` says; each row is compared by ``statistics.two_sample``,
and all of them together by ``statistics.multiple_testing``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import geometric_mean, median
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.statistics import two_sample
from seatrial.statistics.multiple_testing import confirmed, student_p, unshuffled
from seatrial.store.by_case import Kind
from seatrial.studies.pairing import CaseGroup, CasePair, pair
from seatrial.studies.selection import Side
from seatrial.units import better_of, unfit_of

MIN_RELATIVE_CHANGE = 0.02
FEW = 8  # runs on a side, below which two modes may well pass for a difference

State = Literal["better", "worse", "same", "unclear", "not compared", "missing"]
_ORDER: dict[State, int] = {
    "worse": 0,
    "better": 0,
    "unclear": 1,
    "same": 2,
    "not compared": 3,
    "missing": 4,
}

Groups = tuple[CaseGroup | None, CaseGroup | None]
Figures = tuple[list[float], list[float]]


class Sample(Struct, frozen=True):
    """One side of a row: the figures of ``n`` runs whose answer was right; the other runs, by their
    verdict. ``median`` is None of none."""

    n: int
    median: float | None
    excluded: dict[str, int] = {}


class ComparisonRow(Struct, frozen=True, kw_only=True):
    """One metric of one case on both sides. ``ratio`` is the second median over the first, ``low``
    and ``high`` the ends of its interval; None where they cannot be had. ``gain`` is the logarithm
    of how many times better the second is. ``why`` explains what is not plain; ``differs`` tells
    of numbers (nodes, tasks, threads) and builds that the sides do not share."""

    case: str
    test: str
    parameters: dict[str, str]
    metric: str
    unit: str
    better: str
    verdict: State
    first: Sample
    second: Sample
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    gain: float | None = None
    why: str = ""
    differs: list[str] = []


class Mean(Struct, frozen=True):
    """The geometric mean of how many times better the second side is, over the rows of a metric
    that have a ratio, ``unclear`` of them without a clear one; ``without`` counts the rows that
    have none."""

    metric: str
    ratios: int
    mean: float
    without: int
    unclear: int = 0


class Comparison(Struct, frozen=True):
    """The rows of two sides, the largest difference first. ``across`` are the attributes that the
    cases were compared across; ``notices`` are what else a person should know."""

    first: str
    second: str
    least: float
    across: list[str]
    rows: list[ComparisonRow]
    means: list[Mean]
    notices: list[str]

    def count(self, verdict: State) -> int:
        return sum(row.verdict == verdict for row in self.rows)


def compare_sides(
    first: Side,
    second: Side,
    least: float = MIN_RELATIVE_CHANGE,
    metric: Callable[[str], bool] | None = None,
    across: Sequence[str] = (),
    each_node: bool = False,
) -> Comparison:
    """Compare the second side with the first. ``least`` is the least effect that matters, as a
    share; ``metric`` chooses metrics by name; ``across`` names parameters that may differ between
    cases that are compared; with ``each_node`` each node is a row of its own. Raises UsageError
    where no case is on both sides, or no metric is left."""
    paired = pair(first, second, across, each_node)
    found = [
        one
        for each in paired.pairs
        for one in _rows(each, paired.across, least)
        if metric is None or metric(one[0].metric)
    ]
    if not found:
        groups = [group for one in paired.pairs for group in (one.first, one.second) if group]
        known = {kind[0] for group in groups for kind in group.figures}
        raise UsageError(f"no such metric; there are {', '.join(sorted(known)) or 'none'}")
    rows = sorted(_sifted(found, least), key=_rank)
    return Comparison(
        *(first.text, second.text, least, paired.across),
        *(rows, _means(rows), [*_notices(first, second), *_of_few(rows)]),
    )


# ---- rows ---------------------------------------------------------------------------------


def _rows(
    pair: CasePair, crossed: Sequence[str], least: float
) -> list[tuple[ComparisonRow, Figures]]:
    """A row for each metric of a case, with its figures."""
    groups = (pair.first, pair.second)
    kinds: dict[str, dict[Kind, None]] = {}
    for group in groups:
        for kind in group.figures if group else ():
            kinds.setdefault(kind[0], {})[kind] = None
    either = pair.first or pair.second or CaseGroup([], {}, {})
    mixed = _mixed(pair.first, "the first side") or _mixed(pair.second, "the second side")
    bare = ComparisonRow(
        case=pair.name,
        test=either.members[0].test,
        parameters=pair.parameters,
        metric="elapsed",
        unit="s",
        better="lower",
        verdict="missing",
        first=_sample([], pair.first),
        second=_sample([], pair.second),
        differs=_differing(pair.first, pair.second, crossed),
    )
    if not kinds:
        return [(replace(bare, why=_missing(groups, ([], []))), ([], []))]
    rows = []
    for found in map(list, kinds.values()):
        figures = (_figures(pair.first, found), _figures(pair.second, found))
        rows.append((_row(bare, groups, found, mixed, least, figures), figures))
    return rows


def _row(
    bare: ComparisonRow,
    groups: Groups,
    kinds: list[Kind],
    mixed: str,
    least: float,
    figures: Figures,
) -> ComparisonRow:
    """The row of one metric: of several ``kinds`` where its unit or direction differ."""
    metric, unit, better = kinds[0]
    one, other = figures
    row = replace(
        bare,
        metric=metric,
        unit=unit,
        better=better,
        first=_sample(one, groups[0]),
        second=_sample(other, groups[1]),
    )
    if not (one and other):
        return replace(row, why=_missing(groups, figures))
    if odd := unfit_of([*one, *other]):
        first, second = replace(row.first, median=None), replace(row.second, median=None)
        return _refused(replace(row, first=first, second=second), odd)
    if len(kinds) > 1:
        said = " and ".join(f"{u or 'no unit'}, {b or 'no direction'}" for _, u, b in kinds)
        row = replace(row, first=replace(row.first, median=None), unit="")
        row = replace(row, second=replace(row.second, median=None))
        return _refused(row, f"unit or direction differ: {said}")
    if better not in ("higher", "lower"):
        return _refused(row, "it is not known whether higher or lower is better")
    return _refused(row, mixed) if mixed else _compared(row, one, other, better, least)


def _refused(row: ComparisonRow, why: str) -> ComparisonRow:
    return replace(row, verdict="not compared", why=why)


def _figures(group: CaseGroup | None, kinds: Sequence[Kind]) -> list[float]:
    if group is None:
        return []
    return [value for kind in kinds for value in group.figures.get(kind, ())]


def _sample(values: list[float], group: CaseGroup | None) -> Sample:
    excluded = dict(group.excluded) if group else {}
    return Sample(len(values), median(values) if values else None, excluded)


def _compared(
    row: ComparisonRow, one: list[float], other: list[float], better: str, least: float
) -> ComparisonRow:
    direction = better_of(better)
    found = two_sample.compare(one, other, direction, least)
    ps = [found.p] if found.p is not None else []
    if found.verdict in ("better", "worse") and (student := student_p(one, other)) is not None:
        ps.append(student)
    return replace(
        row,
        verdict=found.verdict,
        ratio=found.ratio,
        low=found.low,
        high=found.high,
        p=min(ps, default=None),
        gain=found.gain(direction),
        why=found.why,
    )


def _missing(groups: Groups, figures: tuple[list[float], list[float]]) -> str:
    """Why a side has no figure."""
    said = []
    for side, group, values in zip(("first", "second"), groups, figures, strict=True):
        if values:
            continue
        if group is None:
            said.append(f"the {side} side has no such case, or no run of it is over")
        elif group.excluded:
            said.append(f"the {side} side has no right answer: {causes(group.excluded)}")
        else:
            said.append(f"the {side} side has no such metric")
    return "; ".join(said)


def causes(excluded: dict[str, int]) -> str:
    """Excluded runs as people read them: ``2 timeout, 1 failed``."""
    ordered = sorted(excluded.items(), key=lambda item: -item[1])
    return ", ".join(f"{count} {verdict}" for verdict, count in ordered)


def _mixed(group: CaseGroup | None, side: str) -> str:
    """What tells a side's cases of one row apart, though it should not: parameters that were
    crossed, of which the side has several values."""
    if group is None or len(group.members) == 1:
        return ""
    bound = {tuple(sorted(member.parameters.items())) for member in group.members}
    if len(bound) == 1:
        return ""
    names = {name for one in bound for name, _ in set(one) ^ set(next(iter(bound)))}
    return f"{side} has several cases here, which differ in {', '.join(sorted(names))}"


def _differing(one: CaseGroup | None, other: CaseGroup | None, crossed: Sequence[str]) -> list[str]:
    """Numbers that the cases of both sides do not share; that builds differ, where neither machine
    nor toolchain does."""
    said: list[str] = []
    if one is None or other is None:
        return said
    for name in ("nodes", "tasks", "threads"):
        values = [
            sorted({getattr(m, name) for m in g.members if getattr(m, name) is not None})
            for g in (one, other)
        ]
        if values[0] != values[1] and all(values):
            shown = (", ".join(map(str, side)) for side in values)
            said.append(f"{name} {' and '.join(shown)}")
    builds = [{m.build for m in g.members if m.build} for g in (one, other)]
    if all(builds) and builds[0] != builds[1] and not {"machine", "toolchain"} & set(crossed):
        said.append("build")
    return said


def _sifted(found: list[tuple[ComparisonRow, Figures]], least: float) -> list[ComparisonRow]:
    """Of many rows some differ by chance; what may be one of these is not said to differ."""
    rows = [row for row, _ in found]
    tested = [i for i, row in enumerate(rows) if row.p is not None]
    told = [i for i in tested if rows[i].verdict in ("better", "worse")]
    stand = {told[i] for i in confirmed([rows[i].p or 0.0 for i in told], len(tested))}
    few = [i for i in tested if _least_n(rows[i]) < FEW]
    if doubted := stand & {*few}:
        places = [place for place, i in enumerate(few) if i in doubted]
        kept = unshuffled([found[i][1] for i in few], places, least)
        stand -= doubted - {few[place] for place in kept}
    fall = {*told} - stand
    why = f"among {len(tested)} rows chance may make such a difference: repeat"
    return [
        replace(row, verdict="unclear", why=why) if i in fall else row for i, row in enumerate(rows)
    ]


def _least_n(row: ComparisonRow) -> int:
    return min(row.first.n, row.second.n)


def _rank(row: ComparisonRow) -> tuple[int, float, str, str]:
    return (_ORDER[row.verdict], -abs(row.gain or 0.0), row.case, row.metric)


# ---- all of it ----------------------------------------------------------------------------


def _means(rows: Sequence[ComparisonRow]) -> list[Mean]:
    """Of each metric with two ratios or more."""
    gains: dict[str, list[float]] = {}
    without: dict[str, int] = {}
    unclear: dict[str, int] = {}
    for row in rows:
        if row.gain is not None and row.verdict == "unclear":
            unclear[row.metric] = unclear.get(row.metric, 0) + 1
        if row.gain is None:
            without[row.metric] = without.get(row.metric, 0) + 1
        else:
            gains.setdefault(row.metric, []).append(math.exp(row.gain))
    return [
        Mean(
            *(metric, len(found), geometric_mean(found)),
            *(without.get(metric, 0), unclear.get(metric, 0)),
        )
        for metric, found in sorted(gains.items())
        if len(found) > 1
    ]


def _of_few(rows: Sequence[ComparisonRow]) -> list[str]:
    """What a person should know of differences that few runs show."""
    told = [row for row in rows if row.verdict in ("better", "worse")]
    few = sum(_least_n(row) < FEW for row in told)
    if not few:
        return []
    return [
        f"{few} of {len(told)} differences are of fewer than {FEW} runs on a side: where figures "
        "fall into two modes, all of so few may fall into one by chance"
    ]


def _notices(first: Side, second: Side) -> list[str]:
    said = []
    runs = [{run for member in side.cases for run in member.runs} for side in (first, second)]
    if shared := len(runs[0] & runs[1]):
        said.append(f"{shared} of the runs are on both sides: they are compared with themselves")
    rehearsed = [side.text for side in (first, second) if any(t.rehearsed for t in side.trials)]
    if rehearsed:
        said.append(f"{' and '.join(rehearsed)}: rehearsed, its figures were never measured")
    return said
