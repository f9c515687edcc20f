"""Where the level of a series changed, in two tiers.

find([100, 101, 99, ..., 90, 91, 89])     # [Change(index=60, before=100.1, after=90.2, ...)]

*Confirmed* changes are those that may alarm. Two ways propose them: the pieces of the best L1 fit
at 2 ln(n) sigma each, sigma from the differences of figures three apart; and within each piece the
split that Wilcoxon's rank sum likes best, for L1 is blind where figures fall into two modes. A
proposal stays if both sides have three points, the levels differ by the least effect, by many
standard errors, and in an order that chance hardly makes of the same figures. The standard error
takes in that neighbours are alike: an autocorrelated series strays without a cause. The order tells
a change from three figures in a row that fell into the same of two modes. What stays is put where
it likely is (see ``places``).

*Suspect* changes may be noise: a t-test at p < 0.001 over all splits of what remains. One point is
enough for them, so they come first, and often go again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct

from seatrial.judge import order, places
from seatrial.judge.segments import starts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Series = NDArray[np.float64]

Tier = Literal["suspect", "confirmed"]

LEAST_EFFECT = 0.01
LEAST_POINTS = 8  # of a series; with fewer, noise and change cannot be told apart
SHORTEST = 3  # points on either side of a confirmed change
PRICE = 2.0  # of a piece of the L1 fit, in ln(n) sigma
APART = 3  # figures so far apart give sigma: next ones may be alike
PROPOSED = 3.5  # standard errors for a change that the L1 fit proposes
PICKED = 2.5  # times ln(n): the square of the normal deviate for the best of all splits
SUSPECTED = 3.29  # standard errors: p = 0.001, two-sided
CLIP = 3.0  # robust deviations from the median of its piece to which a figure is drawn in
ROBUST = 1.4826  # makes a median absolute deviation a standard deviation, where it is normal
EVEN = 1.2533  # does that to a mean absolute deviation
QUARTER = 1.1503  # standard deviations beyond which a quarter of normal figures are
MAX_CORRELATION = 0.9  # of neighbours; a higher estimate is replaced by this


class Change(Struct, frozen=True):
    """The level was ``before`` up to the point before ``index``, and ``after`` from it on, each as
    far as the neighbouring confirmed change. A level is the mean of the figures, drawn in to three
    robust deviations from their median. ``index`` counts in the values as given, ``time`` is that
    point's; ``strength`` is how rare the difference would be by chance, as a normal deviate."""

    index: int
    before: float
    after: float
    tier: Tier
    time: float | None = None
    strength: float = 0.0

    @property
    def ratio(self) -> float | None:
        """after / before; None where that means nothing: a level of 0, or signs that differ."""
        return self.after / self.before if self.before * self.after > 0 else None


class Course(Struct, frozen=True):
    """What became of a series. ``count`` figures were looked at; ``left_out`` are the indices of
    those that are not finite; ``noise`` is the robust standard deviation within the pieces. ``why``
    says why nothing can be concluded, else it is empty; ``limit`` what so few figures could not
    have shown, however large a change was."""

    changes: list[Change]
    count: int
    left_out: list[int]
    noise: float
    why: str = ""
    limit: str = ""

    @property
    def few(self) -> bool:
        """Whether there are too few figures to tell anything."""
        return self.count < LEAST_POINTS


def find(values: Sequence[float], times: Sequence[float] | None = None) -> list[Change]:
    """The changes of level of a series, in order of time. See ``course``, which also says why there
    are none."""
    return course(values, times).changes


def course(
    values: Sequence[float], times: Sequence[float] | None = None, least: float = LEAST_EFFECT
) -> Course:
    """The changes of level of a series, and what could not be used.

    The figures are in order of time, or of ``times`` (any unit), where they are given. ``least`` is
    the least effect, a share of the level before. Raises ValueError where there are not as many
    times as figures, or a time is not finite."""
    import numpy as np

    given = np.asarray(values, dtype=float).reshape(-1)
    usable, left_out = _in_order(given, times)
    series = given[usable]
    if why := _unfit(series):
        return Course([], len(series), left_out, 0.0, why)
    power = int(np.frexp(np.abs(series).max())[1])
    series = np.ldexp(series, -power)  # exact, and no square of a figure overflows
    confirmed = _confirmed(series, least)
    pieces = _pieces(series, confirmed)
    tiers: list[tuple[_Step, Tier]] = [(step, "confirmed") for step in _steps(series, confirmed)]
    suspects = [_suspect(series, start, end, least) for start, end in pieces]
    tiers += [(step, "suspect") for step in suspects if step]
    found = []
    for step, tier in sorted(tiers):
        index = int(usable[step.at])
        before, after = math.ldexp(step.before, power), math.ldexp(step.after, power)
        time = None if times is None else float(times[index])
        found.append(Change(index, before, after, tier, time, step.strength))
    noise = _deviation(np.concatenate([_off(series[start:end]) for start, end in pieces]))
    limit = _limit(len(series))
    return Course(found, len(series), left_out, math.ldexp(noise, power), limit=limit)


def latest(course: Course, values: Sequence[float]) -> list[float]:
    """The finite figures since the last confirmed change: what a reference is to be learned from.
    The values are those that the course was found in, in order of time."""
    since = max((c.index for c in course.changes if c.tier == "confirmed"), default=0)
    return [value for value in values[since:] if math.isfinite(value)]


# ---- the series ---------------------------------------------------------------------------


def _in_order(given: Series, times: Sequence[float] | None) -> tuple[NDArray[np.intp], list[int]]:
    """The indices of the finite figures in order of time, and of the others."""
    import numpy as np

    order = np.arange(len(given))
    if times is not None:
        if len(times) != len(given):
            raise ValueError(f"{len(given)} figures have {len(times)} times; give one for each")
        at = np.asarray(times, dtype=float)
        if not np.isfinite(at).all():
            raise ValueError("a time is not a finite number")
        order = np.argsort(at, kind="stable")
    finite = np.isfinite(given)
    return order[finite[order]], np.flatnonzero(~finite).tolist()


def _unfit(series: Series) -> str:
    count = len(series)
    if not count:
        return "there is no finite figure"
    if count < LEAST_POINTS:
        figures = "one figure has" if count == 1 else f"{count} figures have"
        return f"{figures} no history: changes are looked for in {LEAST_POINTS} or more"
    if series.min() == series.max():
        return f"all {count} figures are equal: there is no change, and no noise to judge one by"
    return ""


@lru_cache(maxsize=1024)
def _limit(count: int) -> str:
    """What can never be confirmed of so many figures, as chance makes any order of them."""
    sides = range(SHORTEST, count // 2 + 1)
    least = (n for n in sides if order.fisher(n, n, 0, count - n) >= picked(count))
    if (first := next(least, None)) is None:
        return f"of {count} figures no change can be confirmed, however large: repeat the run"
    if first > SHORTEST:
        return f"of {count} figures a change is confirmed with {first} or more on either side only"
    return ""


def _pieces(series: Series, changes: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip([0, *changes], [*changes, len(series)], strict=True))


def _deviation(off: Series) -> float:
    """A robust standard deviation from distances; of the mean distance where most are 0."""
    import numpy as np

    away = np.abs(off)
    return ROBUST * float(np.median(away)) or EVEN * float(away.mean())


def _width(off: Series) -> float:
    """A robust standard deviation that takes in what a median may not see: a second mode, in which
    a quarter of the figures or more are."""
    import numpy as np

    place = 3 * (len(off) - 1) // 4
    return max(_deviation(off), float(np.partition(np.abs(off), place)[place]) / QUARTER)


def _off(piece: Series) -> Series:
    import numpy as np

    off: Series = piece - np.median(piece)
    return off


# ---- steps --------------------------------------------------------------------------------


class _Step(NamedTuple):
    at: int
    before: float
    after: float
    strength: float  # standard errors, as a normal deviate
    order: float  # how rare the order is, as a normal deviate

    def small(self, least: float) -> bool:
        return abs(self.after - self.before) < least * abs(self.before)

    def weight(self, count: int) -> float:
        """What speaks for the step; below 1 it may be chance in a series of so many figures."""
        return min(self.strength / PROPOSED, self.order / picked(count))


def picked(count: int) -> float:
    """The normal deviate beyond which the best split of so many figures is hardly chance."""
    return math.sqrt(PICKED * math.log(count))


class _Sides(NamedTuple):
    """The figures before and after a split: how far they are off the medians of their sides, far
    ones drawn in; the levels; and the variance as of so many figures that are not alike (0 where
    they do not differ)."""

    medians: tuple[float, float]
    left: Series
    right: Series
    before: float
    after: float
    variance: float


def _sides(series: Series, start: int, at: int, end: int) -> _Sides:
    import numpy as np

    medians = float(np.median(series[start:at])), float(np.median(series[at:end]))
    off = np.concatenate([series[start:at] - medians[0], series[at:end] - medians[1]])
    bound = CLIP * _width(off)
    drawn = np.clip(off, -bound, bound)
    left, right = drawn[: at - start], drawn[at - start :]
    means = float(left.mean()), float(right.mean())
    before, after = medians[0] + means[0], medians[1] + means[1]
    first, last = left - means[0], right - means[1]
    squares = float(first @ first + last @ last)
    if squares <= 1e-20 * before * before:
        return _Sides(medians, left, right, before, after, 0.0)
    alike = min(max(neighbour_correlation(first, last), 0.0), MAX_CORRELATION)
    variance = squares / max(end - start - 2, 1) * (1 + alike) / (1 - alike)
    return _Sides(medians, left, right, before, after, variance)


def neighbour_correlation(before: Series, after: Series) -> float:
    """Return the lag-1 autocorrelation of two samples, each given as deviations from its own mean.

    Both have the same autocorrelation. Subtracting a mean lowers its estimate r by about (1 + 3 r)
    over the size of the sample (Kendall 1954; Marriott and Pope 1954). Two means are subtracted
    here, so twice that, over both sizes, is added. The result may lie outside [-1, 1].
    """
    squares = float(before @ before + after @ after)
    r = float(before[1:] @ before[:-1] + after[1:] @ after[:-1]) / squares
    return r + 2 * (1 + 3 * r) / (len(before) + len(after))


def _step(series: Series, start: int, at: int, end: int) -> _Step:
    """How the level changes from [start, at) to [at, end), and by how many standard errors."""
    sides = _sides(series, start, at, end)
    before, after = sides.before, sides.after
    if before == after:
        return _Step(at, before, after, 0.0, 0.0)
    rare = order.deviate(series[start:end], at - start, (before + after) / 2)
    if not sides.variance:
        return _Step(at, before, after, math.inf, rare)
    error = math.sqrt(sides.variance * (1 / (at - start) + 1 / (end - at)))
    return _Step(at, before, after, normal(abs(after - before) / error, end - start - 2), rare)


def normal(student: float, freedom: int) -> float:
    """The normal deviate as rare as a Student's t (Wallace 1959)."""
    scale = (8 * freedom + 1) / (8 * freedom + 3)
    return scale * math.sqrt(freedom * math.log1p(student * student / freedom))


def _steps(series: Series, changes: Sequence[int]) -> list[_Step]:
    marks = [0, *changes, len(series)]
    return [_step(series, *marks[i : i + 3]) for i in range(len(changes))]


# ---- confirmed ----------------------------------------------------------------------------


def _confirmed(series: Series, least: float) -> list[int]:
    sigma = _width(series[APART:] - series[:-APART]) / math.sqrt(2)
    proposed = starts(series, PRICE * math.log(len(series)) * sigma, SHORTEST)[1:]
    solid = _pruned(series, proposed, least)
    if splits := _splits(series, solid, least):
        solid = _pruned(series, sorted([*solid, *splits]), least)
    return _placed(series, solid, least)


def _placed(series: Series, changes: list[int], least: float) -> list[int]:
    """The changes, each where it likely is, as long as it stands there."""
    import numpy as np

    marks = [0, *changes, len(series)]
    for i in range(1, len(marks) - 1):
        start, at, end = marks[i - 1 : i + 2]
        sides = _sides(series, start, at, end)
        if not sides.variance:
            continue
        drawn = np.concatenate([sides.left + sides.medians[0], sides.right + sides.medians[1]])
        moved = start + places.likely(drawn, sides.variance, SHORTEST)
        step = _step(series, start, moved, end)
        if step.weight(len(series)) >= 1 and not step.small(least):
            marks[i] = moved
    return marks[1:-1]


def _pruned(series: Series, changes: list[int], least: float) -> list[int]:
    """Without the changes that are too small or too weak, the worst first: its neighbours are
    judged anew with the longer pieces."""
    count = len(series)
    steps = _steps(series, changes)
    while failing := [s for s in steps if s.weight(count) < 1 or s.small(least)]:
        worst = steps.index(min(failing, key=lambda step: step.weight(count)))
        del steps[worst]
        marks = [0, *(step.at for step in steps), count]
        for i in range(max(0, worst - 1), min(worst + 1, len(steps))):
            steps[i] = _step(series, *marks[i : i + 3])
    return [step.at for step in steps]


def _splits(series: Series, changes: list[int], least: float) -> list[int]:
    """Further changes within the pieces: the best split by ranks, if it is strong enough for one
    picked out of all; then the same in its halves."""
    found = []
    pieces = _pieces(series, changes)
    while pieces:
        start, end = pieces.pop()
        if end - start < 2 * SHORTEST:
            continue
        at = start + _best_by_ranks(series[start:end])
        step = _step(series, start, at, end)
        if step.weight(len(series)) >= 1 and not step.small(least):
            found.append(at)
            pieces += [(start, at), (at, end)]
    return found


def _best_by_ranks(piece: Series) -> int:
    import numpy as np

    count = len(piece)
    ranks = np.empty(count)
    ranks[np.argsort(piece, kind="stable")] = np.arange(count) - (count - 1) / 2
    first = np.arange(SHORTEST, count - SHORTEST + 1)
    sums = np.abs(np.cumsum(ranks)[first - 1])
    return int(first[(sums / np.sqrt(first * (count - first))).argmax()])


# ---- suspect ------------------------------------------------------------------------------


def _suspect(series: Series, start: int, end: int, least: float) -> _Step | None:
    """The best split of a piece by Student's t, if it is beyond p = 0.001."""
    import numpy as np

    piece = series[start:end]
    count = len(piece)
    if count < LEAST_POINTS:
        return None
    middle = float(np.median(piece))
    bound = 2 * CLIP * _deviation(piece - middle)
    drawn = np.clip(piece - middle, -bound, bound)
    sums, squares = np.cumsum(drawn)[:-1], float(drawn @ drawn)
    first = np.arange(1, count)
    rest = float(drawn.sum()) - sums
    within = squares - sums**2 / first - rest**2 / (count - first)
    gap = sums / first - rest / (count - first)
    error = np.sqrt(np.maximum(within, 1e-30) / (count - 2) * (1 / first + 1 / (count - first)))
    student = np.abs(gap) / error
    at = int(student.argmax())
    step = _step(series, start, start + at + 1, end)
    weak = normal(float(student[at]), count - 2) < SUSPECTED
    return None if weak or step.small(least) else step
