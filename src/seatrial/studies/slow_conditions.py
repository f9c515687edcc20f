"""What else goes with slow runs: the metadata target of a run, what gauges read while it ran, and
what the run itself did to file systems.

    found = slow_conditions(outcomes, gauge_readings, figures)
    found.conditions[0]      # gauge f5_opens, above 60000: 12 % longer, p = 2e-05

Each run is compared with the median of its case. Runs on a target are compared with those on all
others; runs under a high gauge (the mean of its readings while they ran is above the median of
these means) with the others; runs of which a figure, such as ``lustre_opens``, is above the median
of their case with the others. Runs of the same quarter of an hour are one figure, the median of
theirs: what slows the machine at a time slows them all. Welch's test on logarithms; p is multiplied
by the number of questions (Bonferroni).
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from seatrial.lazy import statistics
from seatrial.statistics.multiple_testing import student_p
from seatrial.store.rows import RunOutcome
from seatrial.studies.slow_facts import LEAST, LEVEL, deviations
from seatrial.units import SECOND_NS

SPAN_NS = 900 * SECOND_NS
MIN_FIGURES = 4  # on each side
MAX_READINGS_APART_NS = 3600 * SECOND_NS  # an older reading tells nothing of a run

Figures = Mapping[str, Mapping[int, float]]
Readings = Mapping[str, Sequence[tuple[int, float]]]
Deviation = tuple[RunOutcome, float]


class SlowCondition(Struct, frozen=True):
    """A condition under which runs take longer or shorter: on the target ``name``, while the gauge
    ``name`` was above ``above``, or with more of the figure ``name`` than their case.
    ``ratio``: how many times as long runs take; ``runs`` of ``of`` were so; ``p`` is corrected."""

    kind: Literal["target", "gauge", "figure"]
    name: str
    above: float | None
    runs: int
    of: int
    ratio: float
    p: float


class SlowConditions(NamedTuple):
    """The conditions that go with times, the surest first, and how many questions were asked."""

    conditions: list[SlowCondition]
    questions: int


def slow_conditions(
    outcomes: Sequence[RunOutcome], readings: Readings, figures: Figures
) -> SlowConditions:
    """Return the targets, gauges and figures that explain times of runs of one machine better than
    chance. ``readings``: (time in ns, value) of each gauge, oldest first; ``figures``: those of
    runs, by name and the row of the run."""
    known = list(deviations(outcomes))
    asked = [*_of_targets(known), *_of_gauges(known, readings), *_of_figures(known, figures)]
    tested = [(one, p) for one, sides in asked if (p := student_p(*sides)) is not None]
    found = [
        SlowCondition(
            one.kind, one.name, one.above, one.runs, one.of, one.ratio, min(1.0, p * len(asked))
        )
        for one, p in tested
        if p * len(asked) < LEVEL and abs(math.log(one.ratio)) >= LEAST
    ]
    return SlowConditions(sorted(found, key=lambda one: one.p), len(asked))


Question = tuple[SlowCondition, tuple[list[float], list[float]]]


def _of_targets(known: Sequence[Deviation]) -> list[Question]:
    """Return a question for each target: its runs, and those on the others."""
    placed = [(one, x) for one, x in known if one.target]
    rows: dict[str, set[int]] = {}
    for one, _ in placed:
        rows.setdefault(one.target, set()).add(one.row)
    found = (_question("target", name, None, placed, own) for name, own in sorted(rows.items()))
    return [each for each in found if each is not None]


def _of_gauges(known: Sequence[Deviation], readings: Readings) -> list[Question]:
    """Return a question for each gauge: runs while it was high, and the others."""
    found = []
    for name, series in sorted(readings.items()):
        means = {one.row: level for one, _ in known if (level := _level(one, series)) is not None}
        if not means:
            continue
        middle = statistics.median(means.values())
        read = [(one, x) for one, x in known if one.row in means]
        high = {row for row, level in means.items() if level > middle}
        found.append(_question("gauge", name, middle, read, high))
    return [each for each in found if each is not None]


def _of_figures(known: Sequence[Deviation], figures: Figures) -> list[Question]:
    """Return a question for each figure: runs that have more of it than their case, and the
    others."""
    found = []
    for name, values in sorted(figures.items()):
        cases: dict[tuple[str, ...], list[RunOutcome]] = {}
        for one, _ in known:
            if one.row in values:
                cases.setdefault(one.case_key, []).append(one)
        high: set[int] = set()
        for runs in cases.values():
            middle = statistics.median(values[one.row] for one in runs)
            high |= {one.row for one in runs if values[one.row] > middle}
        told = [(one, x) for one, x in known if one.row in values]
        found.append(_question("figure", name, None, told, high))
    return [each for each in found if each is not None]


def _level(one: RunOutcome, series: Sequence[tuple[int, float]]) -> float | None:
    """Return the mean of the readings while a run ran, else the last one before it."""
    if one.script_started is None or not one.elapsed:
        return None
    end = one.script_started + int(one.elapsed * SECOND_NS)
    first = bisect_left(series, (one.script_started, -math.inf))
    last = bisect_left(series, (end, math.inf))
    if last > first:
        return statistics.mean(value for _, value in series[first:last])
    if first and one.script_started - series[first - 1][0] <= MAX_READINGS_APART_NS:
        return series[first - 1][1]
    return None


def _question(
    kind: Literal["target", "gauge", "figure"],
    name: str,
    above: float | None,
    known: Sequence[Deviation],
    members: set[int],
) -> Question | None:
    """Return the figures of both sides; None if one of them has too few."""
    sides: tuple[dict[int, list[float]], dict[int, list[float]]] = {}, {}
    for one, x in known:
        at = (one.script_started or 0) // SPAN_NS
        sides[one.row not in members].setdefault(at, []).append(x)
    inside, outside = ([statistics.median(xs) for xs in side.values()] for side in sides)
    if min(len(inside), len(outside)) < MIN_FIGURES:
        return None
    ratio = math.exp(statistics.mean(inside) - statistics.mean(outside))
    about = SlowCondition(kind, name, above, len(members), len(known), ratio, 1.0)
    return about, ([math.exp(x) for x in inside], [math.exp(x) for x in outside])
