"""Kinds of cores that messages tell apart: which CPUs of a node are slower to reach than others.

    kinds = core_kinds([CoreFigure("router", 0, 3, 6.09), ...])
    kinds.of[3], kinds.cpus               # 1, [[0], [1, 2, 3]]

The effect of each CPU is estimated on logarithms, beside that of each level, by Huber's method of
modified residuals (Huber 1981, section 7.8): an odd pair moves it little. CPUs whose effects follow
each other are of two kinds where the gap is more than chance explains.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from seatrial.arrays import Floats
from seatrial.lazy import np
from seatrial.statistics.significance import student_quantile
from seatrial.statistics.spread import MAD_TO_SIGMA

FALSE = 0.05
TAILS = 3  # degrees of freedom of the residuals: latencies have heavy tails
MIN_EFFECT = 0.02
MIN_FIGURES = 4  # of a CPU
ROUNDS = 10
HUBER = 1.5  # robust deviations beyond which a residual is cut


class CoreFigure(NamedTuple):
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
    sure = student_quantile(1 - FALSE / (2 * len(cpus)), TAILS)
    kinds = [[order[0]]]
    for last, this in pairwise(order):
        gap = np.zeros(len(effects))
        gap[last], gap[this] = -1, 1
        error = math.sqrt(max(0.0, float(gap @ covariance @ gap)))
        bound = max(math.log1p(MIN_EFFECT), sure * error)
        if effects[this] - effects[last] > bound and np.abs(known @ gap - gap).max() < 1e-6:
            kinds.append([])
        kinds[-1].append(this)
    if len(kinds) < 2:
        return None
    middles = [float(np.median(effects[own])) for own in kinds]
    ratios = [math.exp(middle - middles[0]) for middle in middles]
    return CoreKinds([sorted(cpus[i] for i in own) for own in kinds], ratios)
