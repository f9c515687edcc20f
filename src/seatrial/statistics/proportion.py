"""The interval of a share: how many of n had an outcome.

wilson(19, 20)          # (0.764, 0.991)
"""

import math

from seatrial.statistics.sample_sizes import CONFIDENCE

Z = 1.96  # 95 % of a normal distribution lie within so many standard deviations


def wilson(met: int, of: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927), which holds also for none and all."""
    if not of:
        return 0.0, 1.0
    share = met / of
    middle = share + Z * Z / (2 * of)
    half = Z * math.sqrt(share * (1 - share) / of + Z * Z / (4 * of * of))
    whole = 1 + Z * Z / of
    return max(0.0, (middle - half) / whole), min(1.0, (middle + half) / whole)


def clean_runs_needed(failed: int, runs: int) -> int:
    """Return how many runs in a row without a failure show with 95 % that failures are rarer than
    before, when ``failed`` of ``runs`` failed.

    It is ln 0.05 / ln(1 - p), with p the lower end of the 95 % interval of the rate of failures
    before (Clopper and Pearson 1934, one-sided). Raises ValueError unless 0 < failed <= runs.
    """
    if not 0 < failed <= runs:
        raise ValueError(f"{failed} of {runs} runs: there is nothing to cure")
    rate = least_rate(failed, runs)
    return 1 if rate >= CONFIDENCE else math.ceil(math.log(1 - CONFIDENCE) / math.log1p(-rate))


def least_rate(failed: int, runs: int) -> float:
    """Return the least rate of failures at which so many or more of the runs fail with 5 %."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _at_least(failed, runs, middle) < 1 - CONFIDENCE:
            low = middle
        else:
            high = middle
    return low


def _at_least(failed: int, runs: int, rate: float) -> float:
    """Return the binomial probability of so many failures or more."""
    if not 0 < rate < 1:
        return float(rate >= 1)
    fewer = (
        math.exp(
            math.lgamma(runs + 1)
            - math.lgamma(k + 1)
            - math.lgamma(runs - k + 1)
            + k * math.log(rate)
            + (runs - k) * math.log1p(-rate)
        )
        for k in range(failed)
    )
    return 1 - math.fsum(fewer)
