"""Two sides of a comparison, row by row: each metric of each case that both or one of them has.

    comparison = compare_sides(base, other)
    comparison.rows           # worse and better, the largest first; unclear, same, ..., missing

Cases are the same where test, parameters, toolchain, machine and stage are. What a side was chosen
by (a toolchain, a machine, a parameter) is left out of that where each side has one value of it, so
gcc is compared with clang. Cases that differ in their node alone, and a case of several trials, are
one row; cases that differ in anything else never are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.judge import ratios
from seatrial.judge.chance import confirmed, student_p
from seatrial.judge.sides import Member, Side, case_name
from seatrial.store.by_case import Kind
from seatrial.suite.model import Better

LEAST_EFFECT = 0.02

State = Literal["better", "worse", "same", "unclear", "not compared", "missing"]
_ORDER: dict[State, int] = {
    "worse": 0,
    "better": 0,
    "unclear": 1,
    "same": 2,
    "not compared": 3,
    "missing": 4,
}
_CROSSED = ("machine", "toolchain", "stage")

Key = tuple[str, ...]


class Sample(Struct, frozen=True):
    """One side of a row: the figures of ``n`` runs whose answer was right; the other runs, by their
    verdict. ``median`` is None of none."""

    n: int
    median: float | None
    excluded: dict[str, int] = {}


class Row(Struct, frozen=True, kw_only=True):
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
    that have a ratio; ``without`` counts the rows that have none."""

    metric: str
    ratios: int
    mean: float
    without: int


class Comparison(Struct, frozen=True):
    """The rows of two sides, the largest difference first. ``across`` are the attributes that the
    cases were compared across; ``notices`` are what else a person should know."""

    first: str
    second: str
    least: float
    across: list[str]
    rows: list[Row]
    means: list[Mean]
    notices: list[str]

    def count(self, verdict: State) -> int:
        return sum(row.verdict == verdict for row in self.rows)


class _Group(Struct):
    """The cases of a side that are one row."""

    members: list[Member]
    figures: dict[Kind, list[float]]
    excluded: dict[str, int]


# ---- which cases are the same -------------------------------------------------------------


def compare_sides(
    first: Side,
    second: Side,
    least: float = LEAST_EFFECT,
    metric: Callable[[str], bool] | None = None,
    across: Sequence[str] = (),
    each_node: bool = False,
) -> Comparison:
    """Compare the second side with the first. ``least`` is the least effect that matters, as a
    share; ``metric`` chooses metrics by name; ``across`` names parameters that may differ between
    cases that are compared; with ``each_node`` each node is a row of its own. Raises UsageError
    where no case is on both sides, or no metric is left."""
    _require_parameters(across, first, second)
    crossed = list(dict.fromkeys([*_crossed(first, second), *across]))
    one, other = (_groups(side, crossed, each_node) for side in (first, second))
    shown = [name for name in _CROSSED if name not in crossed and _several(name, first, second)]
    for side, groups in ((first, one), (second, other)):
        if not groups:
            raise UsageError(f"{side.text}: no run of it is over yet; see `seatrial runs`")
    if not one.keys() & other.keys():
        raise UsageError(_nothing_shared(first, second, crossed))
    rows: list[Row] = []
    for key in dict.fromkeys([*one, *other]):
        name, parameters = _name(one.get(key) or other[key], crossed, shown, each_node)
        for row in _rows(name, parameters, one.get(key), other.get(key), crossed, least):
            if metric is None or metric(row.metric):
                rows.append(row)
    if not rows:
        known = {
            kind[0] for side in (one, other) for group in side.values() for kind in group.figures
        }
        raise UsageError(f"no such metric; there are {', '.join(sorted(known)) or 'none'}")
    rows = sorted(_sifted(rows), key=_rank)
    return Comparison(
        first.text, second.text, least, crossed, rows, _means(rows), _notices(first, second)
    )


def _require_parameters(names: Sequence[str], first: Side, second: Side) -> None:
    known = {name for side in (first, second) for one in side.cases for name in one.parameters}
    for name in names:
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise UsageError(f"--across {name}: no case has this parameter; there are {listed}")


def _crossed(first: Side, second: Side) -> list[str]:
    """What each side has one value of, and not the same: the sides are chosen by it."""
    names = [name.removeprefix("param.") for name in (*first.conditions, *second.conditions)]
    return [
        name
        for name in dict.fromkeys([*_CROSSED, *names])
        if name not in ("test", "tag")
        and len(first.all_of(name)) == len(second.all_of(name)) == 1
        and first.all_of(name) != second.all_of(name)
    ]


def _key(member: Member, crossed: Sequence[str], each_node: bool) -> Key:
    fixed = [f"{name}={getattr(member, name)}" for name in _CROSSED if name not in crossed]
    bound = sorted(f"{n}={v}" for n, v in member.parameters.items() if n not in crossed)
    return (member.test, member.node if each_node else "", *fixed, *bound)


def _groups(side: Side, crossed: Sequence[str], each_node: bool) -> dict[Key, _Group]:
    groups: dict[Key, _Group] = {}
    for member in side.cases:
        group = groups.setdefault(_key(member, crossed, each_node), _Group([], {}, {}))
        group.members.append(member)
        for kind, values in member.values.items():
            group.figures.setdefault(kind, []).extend(values)
        for verdict, count in member.excluded.items():
            group.excluded[verdict] = group.excluded.get(verdict, 0) + count
    return {key: group for key, group in groups.items() if group.figures or group.excluded}


def _several(name: str, first: Side, second: Side) -> bool:
    return len(first.all_of(name) | second.all_of(name)) > 1


def _name(
    group: _Group, crossed: Sequence[str], shown: Sequence[str], each_node: bool
) -> tuple[str, dict[str, str]]:
    """A case as people read it, and its parameters; what all cases share is not ``shown``."""
    one = group.members[0]
    bound = {name: value for name, value in one.parameters.items() if name not in crossed}
    toolchain, stage = (getattr(one, n) if n in shown else "" for n in ("toolchain", "stage"))
    name = case_name(one.test, bound, toolchain, one.node if each_node else "", stage)
    if "machine" in shown:
        name += f" on {one.machine}"
    return name, bound


def _nothing_shared(first: Side, second: Side, crossed: Sequence[str]) -> str:
    """Why no case is on both sides, as far as can be seen."""
    said = []
    for name in (*_CROSSED, "test"):
        one, other = first.all_of(name), second.all_of(name)
        if name not in crossed and not one & other:
            named = (", ".join(sorted(side)) or "none" for side in (one, other))
            said.append(f"{name} {' and '.join(named)}")
    why = "; ".join(said) or "their parameters differ; see --across"
    remedy = ""
    if any(text.startswith(("toolchain", "machine")) for text in said):
        remedy = "; choose one of each, such as A:toolchain=gcc B:toolchain=clang"
    return f"no case is on both {first.text} and {second.text}: {why}{remedy}"


# ---- rows ---------------------------------------------------------------------------------


def _rows(
    name: str,
    parameters: dict[str, str],
    one: _Group | None,
    other: _Group | None,
    crossed: Sequence[str],
    least: float,
) -> list[Row]:
    """A row for each metric of a case."""
    kinds = [group.figures if group else {} for group in (one, other)]
    metrics = dict.fromkeys(kind[0] for kinds_of in kinds for kind in kinds_of)
    differs = _differing(one, other, crossed) if one and other else []
    mixed = _mixed(one, "the first side") or _mixed(other, "the second side")
    test = (one or other or _Group([], {}, {})).members[0].test
    rows = []
    for metric in metrics or {"elapsed": None}:
        found = {kind: None for kinds_of in kinds for kind in kinds_of if kind[0] == metric}
        (_, unit, better), *others = found or {("elapsed", "s", "lower"): None}
        pair = [_figures(group, metric) for group in (one, other)]
        samples = [_sample(values, group) for values, group in zip(pair, (one, other), strict=True)]
        row = Row(
            case=name,
            test=test,
            parameters=parameters,
            metric=metric,
            unit=unit,
            better=better,
            verdict="missing",
            first=samples[0],
            second=samples[1],
            differs=differs,
        )
        if not all(pair):
            rows.append(replace(row, why=_missing(one, other, pair)))
        elif others:
            said = " and ".join(f"{u or 'no unit'}, {b or 'no direction'}" for _, u, b in found)
            bare = replace(row, first=replace(samples[0], median=None))
            bare = replace(bare, second=replace(samples[1], median=None), unit="")
            rows.append(_refused(bare, f"unit or direction differ: {said}"))
        elif better not in ("higher", "lower"):
            rows.append(_refused(row, "it is not known whether higher or lower is better"))
        elif mixed:
            rows.append(_refused(row, mixed))
        else:
            rows.append(_compared(row, pair[0], pair[1], better, least))
    return rows


def _refused(row: Row, why: str) -> Row:
    return replace(row, verdict="not compared", why=why)


def _figures(group: _Group | None, metric: str) -> list[float]:
    if group is None:
        return []
    return [
        value for kind, values in group.figures.items() if kind[0] == metric for value in values
    ]


def _sample(values: list[float], group: _Group | None) -> Sample:
    finite = [value for value in values if math.isfinite(value)]
    excluded = dict(group.excluded) if group else {}
    return Sample(len(finite), median(finite) if finite else None, excluded)


def _compared(row: Row, one: list[float], other: list[float], better: str, least: float) -> Row:
    direction: Better = "higher" if better == "higher" else "lower"
    found = ratios.compare(one, other, direction, least)
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


def _missing(one: _Group | None, other: _Group | None, pair: list[list[float]]) -> str:
    """Why a side has no figure."""
    said = []
    for side, group, values in zip(("first", "second"), (one, other), pair, strict=True):
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


def _mixed(group: _Group | None, side: str) -> str:
    """What tells a side's cases of one row apart, though it should not: parameters that were
    crossed, of which the side has several values."""
    if group is None or len(group.members) == 1:
        return ""
    bound = {tuple(sorted(member.parameters.items())) for member in group.members}
    if len(bound) == 1:
        return ""
    names = {name for one in bound for name, _ in set(one) ^ set(next(iter(bound)))}
    return f"{side} has several cases here, which differ in {', '.join(sorted(names))}"


def _differing(one: _Group, other: _Group, crossed: Sequence[str]) -> list[str]:
    """Numbers that the cases of both sides do not share; that builds differ, where neither machine
    nor toolchain does."""
    said = []
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


def _sifted(rows: list[Row]) -> list[Row]:
    """Of many rows some differ by chance; what may be one of these is not said to differ."""
    tested = sum(row.p is not None for row in rows)
    told = [i for i, row in enumerate(rows) if row.verdict in ("better", "worse")]
    stand = {told[i] for i in confirmed([rows[i].p or 0.0 for i in told], tested)}
    fall = set(told) - stand
    why = f"among {tested} rows chance may make such a difference: repeat"
    return [
        replace(row, verdict="unclear", why=why) if i in fall else row for i, row in enumerate(rows)
    ]


def _rank(row: Row) -> tuple[int, float, str, str]:
    return (_ORDER[row.verdict], -abs(row.gain or 0.0), row.case, row.metric)


# ---- all of it ----------------------------------------------------------------------------


def _means(rows: Sequence[Row]) -> list[Mean]:
    """Of each metric with two ratios or more."""
    gains: dict[str, list[float]] = {}
    without: dict[str, int] = {}
    for row in rows:
        if row.gain is None:
            without[row.metric] = without.get(row.metric, 0) + 1
        else:
            gains.setdefault(row.metric, []).append(math.exp(row.gain))
    return [
        Mean(metric, len(found), ratios.geometric_mean(found), without.get(metric, 0))
        for metric, found in sorted(gains.items())
        if len(found) > 1
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
