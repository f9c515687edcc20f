"""Figures over a parameter: the cell of each setting, sizes as a parameter, where curves cross.

cells = cells_of(cases, "threads", "triad", names_of(cases, "threads"))
speeds(cells[0], cells[1], "higher")          # ratio, and the ends of its interval
"""

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from msgspec import UNSET, Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.grouping import grouped
from seatrial.judge.promises import Beside
from seatrial.judge.statistics import two_samples
from seatrial.judge.statistics.significance import student_p
from seatrial.judge.statistics.two_samples import Verdict
from seatrial.model.figures import Labelled, place_of_value
from seatrial.results.case_figures import (
    MAX_NAMED,
    CaseRuns,
    GivenFigure,
    Kind,
    causes,
    differing,
    excluded_of,
    figures_of,
    metrics_of,
    unlike,
)
from seatrial.results.references import promised_of
from seatrial.units import NO_DIRECTION, Better, listed, number_or_size, unfit_of


class Cell(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """One setting of a series."""

    x: float
    #: of figures; 0 without a right answer, and ``reason`` tells the cause
    n: int
    excluded: dict[str, int] = {}
    median: float | None = None
    #: over the base of its line, with the ends of its interval
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    ideal: float | None = None
    efficiency: float | None = None
    gain: float | None = None
    reason: str = ""
    values: list[float] = []
    #: what was promised of the median
    promised: Beside = UNSET


NO_FIGURE = "no such figure"
PLAIN = ("toolchain", "machine", "trial", "stage")  # their values tell what they are


def line_name(member: CaseRuns, by: Sequence[str]) -> str:
    """Return the name of a case's line: ``gcc, ranks=2``."""
    values = ((name, member.attribute(name) or "none") for name in by)
    return ", ".join(value if name in PLAIN else f"{name}={value}" for name, value in values)


def by_line(members: Sequence[CaseRuns], by: Sequence[str]) -> dict[str, list[CaseRuns]]:
    """Return the cases of each line, by its name."""
    return grouped(members, lambda member: line_name(member, by))


def names_of(members: Sequence[CaseRuns], x: str) -> list[str]:
    """Return the values of x as they are named, if one is a word, a size with its unit, or a number
    that is not above 0, so that nothing grows with it; numbers and sizes by their value, words as
    they come. Else an empty list."""
    texts = list(dict.fromkeys(one.attribute(x) for one in members))
    if all(number_or_size(text) > 0 and not text[-1:].isalpha() for text in texts):
        return []
    return sorted(texts, key=number_or_size) if are_numbers(texts) else texts


def are_numbers(texts: Sequence[str]) -> bool:
    """Return whether all values have an order: numbers, and sizes with their unit."""
    return not any(math.isnan(number_or_size(text)) for text in texts)


def cells_of(
    members: Sequence[CaseRuns], x: str, metric: str, names: Sequence[str] = ()
) -> list[Cell]:
    """Return a cell for each value of x, the least first; where the values have ``names`` the x of
    a cell is the place of its name among them."""

    def at(member: CaseRuns) -> float:
        text = member.attribute(x)
        return float(names.index(text)) if names else number_or_size(text)

    groups = grouped(members, at)
    return [_cell(each, groups[each], metric) for each in sorted(groups)]


def usable(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells that can be compared."""
    return [cell for cell in cells if cell.median is not None and cell.median > 0]


def _cell(x: float, members: Sequence[CaseRuns], metric: str) -> Cell:
    excluded = excluded_of(members)
    if names := differing(members):
        return Cell(x=x, n=0, reason=f"several cases, which differ in {names}")
    values = figures_in(members, metric)
    if not values:
        right = sum(len(member.runs) for member in members)
        reason = causes(excluded) or (NO_FIGURE if right else "not run")
        return Cell(x=x, n=0, excluded=excluded, reason=reason)
    if odd := unfit_of(values):
        return Cell(x=x, n=0, excluded=excluded, reason=odd)
    middle = median(values)
    return Cell(
        x=x,
        n=len(values),
        excluded=excluded,
        median=middle,
        reason="" if middle > 0 else f"{middle:g} is not above 0",
        values=values,
        promised=promised_of(members, next(iter(kinds_of(members, metric))), middle),
    )


def figures_in(members: Sequence[CaseRuns], metric: str) -> list[float]:
    """Return the figures of cases in a metric, whatever its unit and direction."""
    return figures_of(members, kinds_of(members, metric))


def kinds_of(members: Sequence[CaseRuns], metric: str) -> dict[Kind, None]:
    """Return the metric with each unit and direction that cases have of it, in their order."""
    return dict.fromkeys(kind for one in members for kind in one.values if kind[0] == metric)


def metric_in(
    members: Sequence[CaseRuns], metric: str, undirected: str = ""
) -> tuple[str, str, str]:
    """Return the unit and the direction that cases have of a metric, and why they cannot be
    compared; "" if they can. ``undirected`` says what follows from a metric without a direction:
    ``so it has no speed-up``; "": nothing does."""
    kinds = kinds_of(members, metric)
    unit, direction = next(((kind[1], kind[2]) for kind in kinds), ("", ""))
    if differ := unlike(kinds):
        return unit, direction, f"{differ}; nothing is compared"
    if undirected and direction == NO_DIRECTION:
        return unit, direction, f"it has no direction (better: none), {undirected}"
    return unit, direction, ""


def nothing_measured(members: Sequence[CaseRuns], metric: str) -> str:
    """Return why no case has a figure of a metric."""
    known = metrics_of(members)
    if odd := unfit_of(figures_in(members, metric)):
        return f"no figure of {metric} can be judged; {odd}"
    if metric in known or not known:
        return f"no run gave a right answer with {metric}; see `seatrial runs`"
    return f"--metric {metric}: no run has it; there are {listed(known, MAX_NAMED)}"


def speeds(
    first: Cell, second: Cell, better: Better, weak: bool
) -> tuple[float, float | None, float | None]:
    """How many times faster the second cell is, and the ends of that ratio's interval."""
    scale = second.x / first.x if weak and better == "lower" else 1.0
    pair = (first, second) if better == "higher" else (second, first)
    before, after = (cell.median or math.nan for cell in pair)
    if min(first.n, second.n) < 2:
        return scale * after / before, None, None
    low, high = two_samples.interval(pair[0].values, pair[1].values)
    ratio = after / before
    if not (two_samples.is_known(ratio, low) and two_samples.is_known(ratio, high)):
        return scale * ratio, None, None
    return scale * ratio, scale * low, scale * high


# ---- sizes ---------------------------------------------------------------------------------------
#
# Sizes: a label of figures as a parameter of cases; where two curves over sizes cross.
#
#     members = by_label(cases_of(sides), "bytes")
#     members[0].parameters["bytes"]     # "8"
#     members[0].values                  # {("latency", "us", "lower"): [...]}
#
# A run of OSU's bcast has the metrics ``latency{benchmark=MPI Bcast,bytes=1}``, ``...bytes=2}`` and
# so on. By the label ``bytes`` its case becomes one case for each size, which has the parameter
# ``bytes`` and the metric ``latency{benchmark=MPI Bcast}``. A parameter or an attribute of cases
# that has the label's name comes first.


BYTES = "bytes"  # the label of sizes of messages, of transfers


def labels_of(cases: Iterable[CaseRuns]) -> list[str]:
    """Return the names of the labels that figures of cases have, sorted."""
    kinds = dict.fromkeys(kind for one in cases for kind in one.values)
    return sorted({label for kind in kinds for label in Labelled.of(kind[0]).labels})


def values_of(cases: Iterable[CaseRuns], label: str) -> list[str]:
    """Return the values that a label of figures has."""
    names = dict.fromkeys(kind[0] for one in cases for kind in one.values)
    parts = (Labelled.of(name).labels.get(label, "") for name in names)
    return list(dict.fromkeys(filter(None, parts)))


def is_label(cases: Sequence[CaseRuns], name: str) -> bool:
    """Return whether a name is a label of figures, and no case has a value of that name itself."""
    return not any(one.attribute(name) for one in cases) and name in labels_of(cases)


def by_label(cases: Sequence[CaseRuns], name: str) -> list[CaseRuns]:
    """Return the cases with a label of their figures as a parameter, by its values. A case without
    a figure has each value that another one of its test has. Where no figure has the label they are
    returned as they are."""
    if not is_label(cases, name):
        return list(cases)
    split = [_by_value(one, name) for one in cases]
    values: dict[str, set[str]] = {}
    for one, own in zip(cases, split, strict=True):
        values.setdefault(one.test, set()).update(own)
    return [
        _of_value(one, name, value, own.get(value, []))
        for one, own in zip(cases, split, strict=True)
        for value in sorted(values[one.test], key=place_of_value) or [""]
    ]


def _by_value(one: CaseRuns, name: str) -> dict[str, list[tuple[Kind, Kind]]]:
    """Return the metrics of a case by the value of a label: without it, and as they are."""
    found: dict[str, list[tuple[Kind, Kind]]] = {}
    for kind in one.values:
        parts = Labelled.of(kind[0])
        if name in parts.labels:
            plain = (parts.without(name), kind[1], kind[2])
            found.setdefault(parts.labels[name], []).append((plain, kind))
    return found


def _of_value(one: CaseRuns, name: str, value: str, kinds: Sequence[tuple[Kind, Kind]]) -> CaseRuns:
    if not value:  # no case of its test has the label
        return one
    given: dict[Kind, list[GivenFigure]] = {
        plain: one.given[kind] for plain, kind in kinds if kind in one.given
    }
    return replace(
        one,
        parameters={**one.parameters, name: value},
        values={plain: one.values[kind] for plain, kind in kinds},
        jobs={plain: one.jobs[kind] for plain, kind in kinds if kind in one.jobs},
        given=given,
    )


def metrics_named(asked: str, cases: Sequence[CaseRuns]) -> list[str]:
    """Return the metrics that a name stands for: that of this full name, else those of the name
    with its labels and others."""
    known = metrics_of(cases)
    if asked in known:
        return [asked]
    name, labels = Labelled.of(asked)
    each = [(full, Labelled.of(full)) for full in known]
    return [
        full
        for full, parts in each
        if parts.name == name and labels.items() <= parts.labels.items()
    ]


def one_metric(asked: str, cases: Sequence[CaseRuns]) -> str:
    """Return the metric that a name stands for; "" for "". Raises UsageError for several."""
    found = metrics_named(asked, cases) if asked else []
    if len(found) > 1:
        few = listed(found, 4)
        raise UsageError(f"--metric {asked}: is {len(found)} figures; name one of {few}")
    return found[0] if found else asked


def are_sizes(texts: Iterable[str]) -> bool:
    """Return whether all values are numbers of 0 or more, or sizes with a unit."""
    return all(number_or_size(text) >= 0 for text in texts)


def is_size(texts: Collection[str], labelled: bool) -> bool:
    """Return whether the values of an x are sizes of the work: those of a label, or with a unit."""
    return bool(texts) and are_sizes(texts) and (labelled or have_unit(texts))


def have_unit(texts: Iterable[str]) -> bool:
    """Return whether some values have a unit of bytes: ``64K``."""
    return any(text[-1:].isalpha() and number_or_size(text) >= 0 for text in texts)


# ---- where two curves cross ----------------------------------------------------------------------
#
# Two curves *cross* where one is told to be better at a size and the other at a later one. Where a
# side of a crossing is one size alone, it counts if Welch's test tells the difference among all
# sizes of the pair, too (at 1 %, Bonferroni): at one of twenty sizes chance makes one easily. The
# crossing is between the last size of one side and the first of the other; where about, is
# interpolated between medians, on logarithms.


ALONE = 0.01  # chance of a difference at one size that is told alone


class Pair(NamedTuple):
    """The figures of two curves at a size that both have."""

    x: float
    first: Cell
    second: Cell


class Span(Struct, frozen=True):
    """Sizes from ``start`` to ``end`` at all of which a curve is told to be ``ahead``; "" where
    none is."""

    ahead: str
    start: float
    end: float


class Crossing(Struct, frozen=True):
    """``before`` is ahead up to the size ``last``, ``after`` from the size ``first`` on; medians
    meet ``near`` a size, None where a logarithm cannot tell."""

    before: str
    after: str
    last: float
    first: float
    near: float | None


class Meeting(Struct, frozen=True):
    """Two curves: who is ahead at which sizes, and where they cross."""

    curves: tuple[str, str]
    spans: list[Span]
    crossings: list[Crossing]


def pairs_of(first: Sequence[Cell], second: Sequence[Cell]) -> list[Pair]:
    """Return the sizes at which both curves have a figure above 0."""
    others = {cell.x: cell for cell in usable(second)}
    return [Pair(cell.x, cell, others[cell.x]) for cell in usable(first) if cell.x in others]


def meeting(
    curves_: tuple[str, str], pairs: Sequence[Pair], verdicts: Sequence[Verdict]
) -> Meeting:
    """Return who of two curves is ahead at which sizes, in their order, and where they cross.
    ``verdicts`` are of the second curve at each size."""
    signs = [{"better": 1, "worse": -1}.get(verdict, 0) for verdict in verdicts]
    ahead = _without_chance(signs, pairs)
    spans: list[tuple[int, int, int]] = []  # sign, first place, last place
    for place, sign in enumerate(ahead):
        if spans and spans[-1][0] == sign:
            spans[-1] = (sign, spans[-1][1], place)
        else:
            spans.append((sign, place, place))
    names = {1: curves_[1], -1: curves_[0], 0: ""}
    told = [span for span in spans if span[0]]
    return Meeting(
        curves_,
        [Span(names[sign], pairs[first].x, pairs[last].x) for sign, first, last in spans],
        [
            Crossing(
                names[one[0]],
                names[other[0]],
                pairs[one[2]].x,
                pairs[other[1]].x,
                _near(pairs[one[2] : other[1] + 1]),
            )
            for one, other in pairwise(told)
            if one[0] != other[0]
        ],
    )


def _without_chance(signs: Sequence[int], pairs: Sequence[Pair]) -> list[int]:
    """Return the signs without those that differ from both beside them, and that chance may make
    where so many sizes are looked at."""
    padded = [0, *signs, 0]
    beside = zip(padded[:-2], padded[2:], strict=True)
    return [
        sign if sign in near or _stands(pair, len(pairs)) else 0
        for sign, near, pair in zip(signs, beside, pairs, strict=True)
    ]


def _stands(pair: Pair, count: int) -> bool:
    """Return whether a difference at one size is told among ``count`` sizes."""
    p = student_p(pair.first.values, pair.second.values)
    return p is not None and p * count < ALONE


def _near(pairs: Sequence[Pair]) -> float | None:
    """Return the size at which medians meet, between the ends of some sizes: interpolated on
    logarithms, the middle of several; None if a size is 0."""
    known = [
        (math.log(pair.x), math.log(pair.second.median / pair.first.median))
        for pair in pairs
        if pair.x and pair.first.median and pair.second.median
    ]
    met = [
        x + (later - x) * (here / (here - there))
        for (x, here), (later, there) in pairwise(known)
        if here * there < 0
    ]
    return math.exp((met[0] + met[-1]) / 2) if met and len(known) == len(pairs) else None
