"""How many figures a comparison of two samples takes.

enough(3)        # 5: of three figures and four, Mann-Whitney's test cannot give p < 0.05
"""

import math

CONFIDENCE = 0.95
NORMAL = 1.96  # quantile of a normal interval of that confidence
MANY = 1000  # figures of each side: more are not asked for
REPEATS = 5  # figures of each side that are recommended: four can show a difference, if none fails


def least_p(m: int, n: int) -> float:
    """Return the least p-value that Mann-Whitney's test can give for samples of these sizes."""
    return min(1.0, 2 / math.comb(m + n, m))


def enough(first: int) -> int:
    """Return how many figures a second sample needs to show a difference from ``first`` ones.

    With fewer, Mann-Whitney's test cannot give p < 0.05. ``first`` is two or more.
    """
    return next(n for n in range(2, 40) if least_p(first, n) < 1 - CONFIDENCE)


def remedy(needed: int) -> str:
    """Return what to do where so many figures of each side are needed; 0: more do not help."""
    if not needed:
        return "more runs do not help"
    if needed >= MANY:
        return f"more than {MANY} runs of each would be needed: lessen the noise"
    return f"run each with --repeat {needed}"


def twice(figures: int) -> int:
    """Return how many figures of each side to try where so many did not decide."""
    return max(REPEATS, 2 * figures)


def to_see(least: float, unseen: float, figures: int, quantile: float = NORMAL) -> int:
    """Return how many figures of each side may show a change by the share ``least``, where so many
    show none of less than ``unseen``: the width of an interval goes with the square root. It is
    that of Student's t (its ``quantile``) where they are few. At most ``MANY`` are told."""
    if not math.isfinite(unseen):
        return MANY
    factor = (math.log1p(unseen) / math.log1p(least) * NORMAL / quantile) ** 2
    return min(MANY, max(REPEATS, math.ceil(figures * factor)))
