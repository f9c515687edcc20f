"""How many figures a comparison of two samples takes.

enough(3)        # 5: of three figures and four, Mann-Whitney's test cannot give p < 0.05
"""

import math

CONFIDENCE = 0.95
REPEATS = 5  # figures of each side that are recommended: four can show a difference, if none fails


def least_p(m: int, n: int) -> float:
    """Return the least p-value that Mann-Whitney's test can give for samples of these sizes."""
    return min(1.0, 2 / math.comb(m + n, m))


def enough(first: int) -> int:
    """Return how many figures a second sample needs to show a difference from ``first`` ones.

    With fewer, Mann-Whitney's test cannot give p < 0.05. ``first`` is two or more.
    """
    return next(n for n in range(2, 40) if least_p(first, n) < 1 - CONFIDENCE)


def twice(figures: int) -> int:
    """Return how many figures of each side to try where so many did not decide."""
    return max(REPEATS, 2 * figures)
