"""The interval of a share: how many of n had an outcome.

wilson(19, 20)          # (0.764, 0.991)
"""

from __future__ import annotations

import math

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
