"""What is left of many differences when some come by chance: with a hundred rows at 95 % confidence
each, five differ that do not.

kept = confirmed([student_p(*row) for row in rows], len(rows))     # indices, at most 5 % false
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean

from seatrial.judge.changes import normal

FALSE = 0.05


def student_p(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The two-sided p-value of Welch's test on the logarithms of two samples: unlike one of ranks,
    it can be as small as a clear difference of few figures is. None of fewer than two figures a
    side, or of figures that are not above 0."""
    if min(len(first), len(second)) < 2 or min(*first, *second) <= 0:
        return None
    one, other = ([math.log(value) for value in values] for values in (first, second))
    means = fmean(one), fmean(other)
    off = abs(means[0] - means[1])
    if off == 0:
        return 1.0
    samples = tuple(zip((one, other), means, strict=True))
    parts = [math.fsum((v - mean) ** 2 for v in x) / (len(x) - 1) / len(x) for x, mean in samples]
    error = math.fsum(parts)
    if error <= (1e-12 * off) ** 2:
        return 0.0
    shares = [part * part / (len(x) - 1) for part, (x, _) in zip(parts, samples, strict=True)]
    freedom = error * error / sum(shares)
    return 2 * NormalDist().cdf(-normal(off / math.sqrt(error), max(1, math.floor(freedom))))


def confirmed(ps: Sequence[float], tested: int, false: float = FALSE) -> set[int]:
    """Which differences stand, by their p-values, of so many that were ``tested``: no more than a
    share of these is expected to be false (Benjamini and Hochberg 1995), so where nothing differs,
    one or more is named with that probability. Those of ``tested`` whose p is not given are taken
    for no difference."""
    order = sorted(range(len(ps)), key=ps.__getitem__)
    last = 0
    for place, index in enumerate(order, start=1):
        if ps[index] <= false * place / tested:
            last = place
    return set(order[:last])
