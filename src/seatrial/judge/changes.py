"""Where the level of a series changed, in two tiers.

find([100, 101, 99, ..., 90, 91, 89])     # [Change(index=60, before=100.1, after=90.2, ...)]

*Confirmed* changes are those that may alarm. Two ways propose them: the pieces of the best L1 fit
at 3 ln(n) sigma each, sigma from the median absolute difference of neighbours; and within each
piece the split that Wilcoxon's rank sum likes best, for L1 is blind where figures fall into two
modes. A proposal stays if both sides have three points, the levels differ by the least effect, and
by many standard errors. The standard error takes in that neighbours are alike: an autocorrelated
series strays without a cause.

*Suspect* changes may be noise: a t-test at p < 0.001 over all splits of what remains. One point is
enough for them, so they come first, and often go again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct

from seatrial.judge.segments import starts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Series = NDArray[np.float64]

Tier = Literal["suspect", "confirmed"]

LEAST_EFFECT = 0.01
LEAST_POINTS = 8  # of a series; with fewer, noise and change cannot be told apart
SHORTEST = 3  # points on either side of a confirmed change
PRICE = 3.0  # of a piece of the L1 fit, in ln(n) sigma
PROPOSED = 3.5  # standard errors for a change that the L1 fit proposes
SUSPECTED = 3.29  # standard errors: p = 0.001, two-sided
CLIP = 3.0  # robust deviations from the median of its piece to which a figure is drawn in
ROBUST = 1.4826  # makes a median absolute deviation a standard deviation, where it is normal
EVEN = 1.2533  # does that to a mean absolute deviation
MOST_ALIKE = 0.9  # the highest correlation of neighbours that is believed


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
    says why nothing can be concluded, else it is empty."""

    changes: list[Change]
    count: int
    left_out: list[int]
    noise: float
    why: str = ""


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
    return Course(found, len(series), left_out, math.ldexp(noise, power))


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


def _pieces(series: Series, changes: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip([0, *changes], [*changes, len(series)], strict=True))


def _deviation(off: Series) -> float:
    """A robust standard deviation from distances; of the mean distance where most are 0."""
    import numpy as np

    away = np.abs(off)
    return ROBUST * float(np.median(away)) or EVEN * float(away.mean())


def _off(piece: Series) -> Series:
    import numpy as np

    off: Series = piece - np.median(piece)
    return off


# ---- steps --------------------------------------------------------------------------------


class _Step(NamedTuple):
    at: int
    before: float
    after: float
    strength: float

    def small(self, least: float) -> bool:
        return abs(self.after - self.before) < least * abs(self.before)


def _step(series: Series, start: int, at: int, end: int) -> _Step:
    """How the level changes from [start, at) to [at, end), and by how many standard errors."""
    import numpy as np

    off = np.concatenate([_off(series[start:at]), _off(series[at:end])])
    bound = CLIP * _deviation(off)
    clipped = np.clip(off, -bound, bound)
    left, right = clipped[: at - start], clipped[at - start :]
    before = float(np.median(series[start:at]) + left.mean())
    after = float(np.median(series[at:end]) + right.mean())
    left, right = left - left.mean(), right - right.mean()
    squares = float(left @ left + right @ right)
    if before == after:
        return _Step(at, before, after, 0.0)
    if squares <= 1e-20 * before * before:
        return _Step(at, before, after, math.inf)
    count = end - start
    alike = float(left[1:] @ left[:-1] + right[1:] @ right[:-1]) / squares
    alike += 2 * (1 + 3 * alike) / count  # two means were fitted, which makes neighbours differ
    alike = min(max(alike, 0.0), MOST_ALIKE)
    variance = squares / max(count - 2, 1) * (1 + alike) / (1 - alike)
    error = math.sqrt(variance * (1 / (at - start) + 1 / (end - at)))
    return _Step(at, before, after, normal(abs(after - before) / error, count - 2))


def normal(student: float, freedom: int) -> float:
    """The normal deviate as rare as a Student's t (Wallace 1959)."""
    scale = (8 * freedom + 1) / (8 * freedom + 3)
    return scale * math.sqrt(freedom * math.log1p(student * student / freedom))


def _steps(series: Series, changes: Sequence[int]) -> list[_Step]:
    marks = [0, *changes, len(series)]
    return [_step(series, *marks[i : i + 3]) for i in range(len(changes))]


# ---- confirmed ----------------------------------------------------------------------------


def _confirmed(series: Series, least: float) -> list[int]:
    import numpy as np

    sigma = _deviation(np.diff(series)) / math.sqrt(2)
    proposed = starts(series, PRICE * math.log(len(series)) * sigma, SHORTEST)[1:]
    solid = _pruned(series, proposed, least)
    splits = _splits(series, solid, least)
    return _pruned(series, sorted([*solid, *splits]), least) if splits else solid


def _pruned(series: Series, changes: list[int], least: float) -> list[int]:
    """Without the changes that are too small or too weak, the worst first: its neighbours are
    judged anew with the longer pieces."""
    while changes:
        steps = _steps(series, changes)
        failing = [step for step in steps if step.strength < PROPOSED or step.small(least)]
        if not failing:
            break
        changes = [at for at in changes if at != min(failing, key=lambda s: s.strength).at]
    return changes


def _splits(series: Series, changes: list[int], least: float) -> list[int]:
    """Further changes within the pieces: the best split by ranks, if it is strong enough for one
    picked out of all; then the same in its halves."""
    enough = math.sqrt(PRICE * math.log(len(series)))
    found = []
    pieces = _pieces(series, changes)
    while pieces:
        start, end = pieces.pop()
        if end - start < 2 * SHORTEST:
            continue
        at = start + _best_by_ranks(series[start:end])
        step = _step(series, start, at, end)
        if step.strength >= enough and not step.small(least):
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
