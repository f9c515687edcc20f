"""Sizes: a label of figures as a parameter of cases; where two curves over sizes cross.

    members = by_label(cases_of(sides), "bytes")
    members[0].parameters["bytes"], members[0].values     # "8", {("latency", "us", "lower"): [...]}

A run of OSU's bcast has the metrics ``latency{benchmark=MPI Bcast,bytes=1}``, ``...bytes=2}`` and
so on. By the label ``bytes`` its case becomes one case for each size, which has the parameter
``bytes`` and the metric ``latency{benchmark=MPI Bcast}``. A parameter or an attribute of cases that
has the label's name comes first.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.judge.statistics.significance import student_p
from seatrial.judge.statistics.two_samples import Verdict
from seatrial.model.figures import Labelled, place_of_value
from seatrial.results.panels import metrics_of
from seatrial.results.scaling_cells import Cell, usable
from seatrial.results.store.by_case import CaseRuns, GivenFigure, Kind
from seatrial.units import listed, number_or_size

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
