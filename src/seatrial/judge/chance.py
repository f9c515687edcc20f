"""What is left of many differences when some come by chance: with a hundred rows at 95 % confidence
each, five differ that do not.

kept = confirmed([student_p(*row) for row in rows])     # indices, at most 5 % of them false
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, variance

from seatrial.judge.changes import normal

FALSE = 0.05


def student_p(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The two-sided p-value of Welch's test on the logarithms of two samples: unlike one of ranks,
    it can be as small as a clear difference of few figures is. None of fewer than two figures a
    side, or of figures that are not above 0."""
    if min(len(first), len(second)) < 2 or min(*first, *second) <= 0:
        return None
    one, other = ([math.log(value) for value in values] for values in (first, second))
    off = abs(fmean(one) - fmean(other))
    if off == 0:
        return 1.0
    parts = (variance(one) / len(one), variance(other) / len(other))
    error = sum(parts)
    if error <= (1e-12 * off) ** 2:
        return 0.0
    shares = [part * part / (len(x) - 1) for part, x in zip(parts, (one, other), strict=True)]
    freedom = error * error / sum(shares)
    return 2 * NormalDist().cdf(-normal(off / math.sqrt(error), max(1, math.floor(freedom))))


def confirmed(ps: Sequence[float], false: float = FALSE) -> set[int]:
    """Which of many differences stand, so that no more than a share of them is expected to be false
    (Benjamini and Hochberg 1995): where nothing differs, one or more is named with that
    probability."""
    order = sorted(range(len(ps)), key=ps.__getitem__)
    last = 0
    for place, index in enumerate(order, start=1):
        if ps[index] <= false * place / len(ps):
            last = place
    return set(order[:last])
