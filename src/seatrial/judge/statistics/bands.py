"""Latency or bandwidth by level of a network: which levels differ, the cost of a hop, odd pairs.

    found = judge([Pair("n1", "n2", "router", 1, 1.28), ...], ["router", "chassis"], "lower")
    found.bands[0].median, found.steps[0].p, found.hop

Pairs that share a node are not independent. So levels are compared by least squares on logarithms,
with the effects of both nodes in the model.

A pair is odd if it is worse than its band by more than pairs differ from each other, and than its
own figures do: a disturbance that hits some repetitions of a pair must not name it. So the end of
its interval that lies nearer to the band is judged. Where a pair has no interval, its figure is
judged, by a bound for heavy tails.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Literal, NamedTuple

from msgspec import Struct

from seatrial.grouping import grouped
from seatrial.judge.statistics import spread
from seatrial.judge.statistics.significance import student_quantile, two_sided
from seatrial.judge.statistics.spread import MAD_TO_SIGMA
from seatrial.judge.statistics.trends import theil_sen
from seatrial.lazy import Floats, np

FALSE = 0.05
TAILS = 3  # degrees of freedom of figures without intervals: latencies have heavy tails
MIN_EFFECT = 0.05
MIN_PAIRS = 8  # of the levels together, for pairs to be odd
MIN_FREEDOM = 4

Better = Literal["lower", "higher"]


class Pair(NamedTuple):
    """A figure of two nodes, above 0, with their level and hops. ``interval`` holds the figure with
    95 % or more, by the pair's own repetitions; None where these are not known."""

    first: str
    second: str
    level: str
    hops: int
    value: float
    interval: tuple[float, float] | None = None


class Band(Struct, frozen=True):
    """The figures of a level: their median, its interval of 95 % or more by order statistics (None
    for fewer than six pairs), and the number of modes."""

    level: str
    pairs: int
    median: float
    low: float | None
    high: float | None
    modes: int


class BandStep(Struct, frozen=True):
    """Two neighbouring levels: the ratio of the medians, and the chance ``p`` of such a difference
    without one, times the number of steps. ``p`` is None where too few pairs allow no test."""

    smaller: str
    larger: str
    ratio: float
    p: float | None

    @property
    def proven(self) -> bool:
        return self.p is not None and self.p < FALSE


class HopCost(Struct, frozen=True):
    """What a hop adds, with its interval of 95 %, and the figure at no hop (``start``)."""

    start: float
    cost: float
    low: float
    high: float


class OddPair(Struct, frozen=True):
    """A pair that is worse than its band: ``ratio`` to the median of its level, or to the line over
    hops where levels are classes of distance."""

    first: str
    second: str
    level: str
    value: float
    ratio: float


class Bands(Struct, frozen=True):
    """Bands from the smallest level to the largest; ``hop`` is None where no step is proven. Where
    levels are classes of distance, it is there whenever distances differ."""

    bands: list[Band]
    steps: list[BandStep]
    hop: HopCost | None
    odd: list[OddPair]


def judge(
    pairs: Sequence[Pair], levels: Sequence[str], better: Better, by_distance: bool = False
) -> Bands:
    """Return the bands of pairs. ``levels``: all levels, the smallest first. ``by_distance``: they
    are classes of hops, but for the first, that of a node: then figures go with the hops within a
    level, too, and a pair is odd beside the line over them."""
    of_level = grouped(pairs, attrgetter("level"))
    known = [level for level in levels if level in of_level]
    bands = [_band(level, [one.value for one in of_level[level]]) for level in known]
    steps = _steps(bands, _differences(pairs, [band.level for band in bands]))
    if by_distance:
        hop = _hop_cost([one for one in pairs if one.level != levels[0]])
        return Bands(bands, steps, hop, _odd(pairs, _usual(bands, levels[0], hop), better))
    hop = _hop_cost(pairs) if any(step.proven for step in steps) else None
    return Bands(bands, steps, hop, _odd(pairs, _usual(bands), better))


def _steps(bands: Sequence[Band], chances: Sequence[float | None]) -> list[BandStep]:
    """Return the steps from each band to the next, with the chances of their differences."""
    steps = []
    for (smaller, larger), p in zip(pairwise(bands), chances, strict=True):
        corrected = None if p is None else min(1.0, p * len(chances))
        ratio = larger.median / smaller.median
        steps.append(BandStep(smaller.level, larger.level, ratio, corrected))
    return steps


def expected_mean(medians: Sequence[float], shares: Sequence[float]) -> float:
    """Return the mean of pairs that are drawn evenly, of which each level has a share. The shares
    may be counts."""
    total = sum(m * share for m, share in zip(medians, shares, strict=True))
    return total / sum(shares)


def _band(level: str, values: Sequence[float]) -> Band:
    ordered = sorted(values)
    ends = median_interval(ordered)
    low, high = ends or (None, None)
    return Band(level, len(values), float(np.median(ordered)), low, high, len(spread.find(values)))


def median_interval(ordered: Sequence[float]) -> tuple[float, float] | None:
    """Return the interval that holds the median with 95 % or more, whatever the distribution: the
    r-th least and greatest figure (David and Nagaraja 2003, section 7.1). None for fewer than six.
    """
    count, tail, rank = len(ordered), 0.0, 0
    logs = count * math.log(2)
    while rank < count // 2:
        choices = math.lgamma(count + 1) - math.lgamma(rank + 1) - math.lgamma(count - rank + 1)
        tail += math.exp(choices - logs)
        if tail > FALSE / 2:
            break
        rank += 1
    return (ordered[rank - 1], ordered[-rank]) if rank else None


def _differences(pairs: Sequence[Pair], levels: Sequence[str]) -> list[float | None]:
    """Return the two-sided chance of the step from each level to the next; None where nodes and
    levels cannot be told apart."""
    pairs = _without_ends(pairs)
    if len(pairs) < MIN_FREEDOM:
        return [None] * (len(levels) - 1)
    nodes = sorted({node for one in pairs for node in (one.first, one.second)})
    number = {node: i for i, node in enumerate(nodes)}
    height = {level: i for i, level in enumerate(levels)}
    model = np.zeros((len(pairs), len(nodes) + len(levels) - 1))
    for row, one in enumerate(pairs):
        model[row, number[one.first]] += 1
        model[row, number[one.second]] += 1
        model[row, len(nodes) : len(nodes) + height[one.level]] = 1
    logs = np.log([one.value for one in pairs])
    square = model.T @ model
    inverse = np.linalg.pinv(square)
    freedom = len(pairs) - int(np.linalg.matrix_rank(model))
    if freedom < MIN_FREEDOM:
        return [None] * (len(levels) - 1)
    effects = inverse @ model.T @ logs
    noise = max(float(((logs - model @ effects) ** 2).sum()) / freedom, 1e-12)
    known = np.abs(square @ inverse - np.eye(len(square))).max(axis=0) < 1e-6
    chances: list[float | None] = []
    for step in range(len(nodes), len(square)):
        deviate = abs(float(effects[step])) / math.sqrt(
            noise * max(float(inverse[step, step]), 1e-12)
        )
        p = two_sided(deviate, freedom)
        chances.append(p if known[step] else None)
    return chances


def _without_ends(pairs: Sequence[Pair]) -> Sequence[Pair]:
    """Return the pairs whose nodes have others, too. The effect of a node that is in one pair takes
    up all of that: it tells nothing of levels, and costs time."""
    while True:
        degrees = Counter(node for one in pairs for node in (one.first, one.second))
        kept = [one for one in pairs if min(degrees[one.first], degrees[one.second]) > 1]
        if len(kept) == len(pairs):
            return pairs
        pairs = kept


def _hop_cost(pairs: Sequence[Pair]) -> HopCost | None:
    """Return the slope of the figures over hops; None where all pairs are as many hops apart."""
    hops, values = [float(one.hops) for one in pairs], [one.value for one in pairs]
    slope = theil_sen(hops, values)
    if slope is None:
        return None
    start = float(np.median(np.array(values) - slope.slope * np.array(hops)))
    return HopCost(start, *slope)


def _usual(
    bands: Sequence[Band], own: str = "", hop: HopCost | None = None
) -> Callable[[Pair], float]:
    """Return what is usual of a pair: the median of its level, or beside a line over hops that of
    its distance, but for pairs of a node's ``own`` level."""
    median = {band.level: band.median for band in bands}

    def usual(one: Pair) -> float:
        at = 0.0 if hop is None or one.level == own else hop.start + hop.cost * one.hops
        return at if at > 0 else median[one.level]

    return usual


def _odd(pairs: Sequence[Pair], usual: Callable[[Pair], float], better: Better) -> list[OddPair]:
    """Return the pairs that are worse than is usual, the worst first."""
    if len(pairs) < MIN_PAIRS:
        return []
    sign = 1 if better == "lower" else -1

    def away(one: Pair, value: float) -> float:
        return sign * math.log(value / usual(one))

    with_intervals = all(pair.interval is not None for pair in pairs)
    of_level: dict[str, list[float]] = {}
    for pair in pairs:
        of_level.setdefault(pair.level, []).append(away(pair, pair.value))
    of_all = [far for own in of_level.values() for far in own]
    least = max(math.log1p(MIN_EFFECT), _bound(of_all, len(pairs), with_intervals))
    bound = {
        level: max(least, _bound(own, len(pairs), with_intervals))
        for level, own in of_level.items()
    }

    def is_odd(pair: Pair) -> bool:
        ends = (with_intervals and pair.interval) or (pair.value,)
        return min(away(pair, end) for end in ends) > bound[pair.level]

    return [
        OddPair(pair.first, pair.second, pair.level, pair.value, pair.value / usual(pair))
        for pair in sorted(filter(is_odd, pairs), key=lambda pair: -away(pair, pair.value))
    ]


def _bound(away: Sequence[float], tests: int, with_intervals: bool) -> float:
    """Return how far from its band a pair may be by chance, from the logarithms of how far these
    are: their robust deviation, corrected for the number of pairs that are tested. 0 for too few.
    ``with_intervals``: whether the pairs have intervals."""
    if len(away) <= TAILS:
        return 0.0
    deviation = MAD_TO_SIGMA * float(np.median(np.abs(away)))
    freedom = len(away) - 1 if with_intervals else TAILS
    return deviation * student_quantile(1 - FALSE / tests, freedom)


# ---- core kinds ----------------------------------------------------------------------------------
#
# Kinds of cores that messages tell apart: which CPUs of a node are slower to reach than others.
#
#     kinds = core_kinds([CoreFigure("router", 0, 3, 6.09), ...])
#     kinds.of[3], kinds.cpus               # 1, [[0], [1, 2, 3]]
#
# The effect of each CPU is estimated on logarithms, beside that of each level, by Huber's method
# of modified residuals (Huber 1981, section 7.8): an odd pair moves it little. CPUs whose effects
# follow each other are of two kinds where the gap is more than chance explains.


FALSE_KINDS = 0.05
KIND_TAILS = 3  # degrees of freedom of the residuals: latencies have heavy tails
MIN_KIND_EFFECT = 0.02
MIN_FIGURES = 4  # of a CPU
ROUNDS = 10
HUBER = 1.5  # robust deviations beyond which a residual is cut


class CoreFigure(Struct, frozen=True):
    """A figure above 0 between two CPUs of different nodes, whose smallest common level is
    named."""

    level: str
    first: int
    second: int
    value: float


class CoreKinds(Struct, frozen=True):
    """The CPUs of each kind: the kind of the least figures first. ``ratios``: the figures of a kind
    over those of the first where one end of a pair is of it."""

    cpus: list[list[int]]
    ratios: list[float]

    @property
    def of(self) -> dict[int, int]:
        """The number of the kind of each CPU."""
        return {cpu: kind for kind, own in enumerate(self.cpus) for cpu in own}


def core_kinds(figures: Sequence[CoreFigure]) -> CoreKinds | None:
    """Return the kinds of the CPUs that have four figures or more; None if there are not two such
    CPUs, or all are of one kind."""
    ends = np.array([(one.first, one.second) for one in figures], dtype=np.int64).reshape(-1, 2)
    known, counts = np.unique(ends, return_counts=True)
    enough = known[(counts >= MIN_FIGURES) & (known >= 0)]
    kept = np.isin(ends, enough).all(axis=1)
    if len(enough) < 2 or not kept.any():
        return None
    levels = np.unique([one.level for one in figures], return_inverse=True)[1][kept]
    logs = np.log([one.value for one in figures])[kept]
    cpus = (ends[kept][:, :, None] == enough).sum(axis=1)
    model = np.hstack([cpus, np.eye(levels.max() + 1)[levels]]).astype(float)
    square = model.T @ model
    inverse = np.linalg.pinv(square, hermitian=True)
    solve = inverse @ model.T
    shown, effects = logs, np.zeros(len(square))
    for _ in range(ROUNDS):
        effects = solve @ shown
        rest = logs - model @ effects
        noise = MAD_TO_SIGMA * float(np.median(np.abs(rest)))
        shown = logs - rest + np.clip(rest, -HUBER * noise, HUBER * noise)
    return _parted(enough.tolist(), effects, noise**2 * inverse, inverse @ square)


def _parted(
    cpus: list[int], effects: Floats, covariance: Floats, known: Floats
) -> CoreKinds | None:
    """Return CPUs in kinds, parted where the gap to the next effect is wide. ``known`` is the
    projection on what the figures tell, shape (effects, effects)."""
    order = np.argsort(effects[: len(cpus)], kind="stable").tolist()
    sure = student_quantile(1 - FALSE_KINDS / (2 * len(cpus)), KIND_TAILS)
    kinds = [[order[0]]]
    for last, this in pairwise(order):
        gap = np.zeros(len(effects))
        gap[last], gap[this] = -1, 1
        error = math.sqrt(max(0.0, float(gap @ covariance @ gap)))
        bound = max(math.log1p(MIN_KIND_EFFECT), sure * error)
        if effects[this] - effects[last] > bound and np.abs(known @ gap - gap).max() < 1e-6:
            kinds.append([])
        kinds[-1].append(this)
    if len(kinds) < 2:
        return None
    middles = [float(np.median(effects[own])) for own in kinds]
    ratios = [math.exp(middle - middles[0]) for middle in middles]
    return CoreKinds([sorted(cpus[i] for i in own) for own in kinds], ratios)
