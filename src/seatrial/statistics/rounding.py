"""To what step figures are rounded: what a benchmark prints as 2 was anything from 1.5 to 2.5.

step([2.0, 3.0])        # 1.0
step([2.25, 3.5])       # 0.01
hides([2.0] * 4, [3.0] * 4, apart=1.0)      # 1.0: both may have been 2.5
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

_ALMOST = 1 + 1e-9


def step(values: Sequence[float]) -> float:
    """The last decimal place that any of these finite figures has, at most 1: of the zeros that end
    a whole number nobody knows whether they were measured."""
    places = [Decimal(repr(float(value))).normalize().as_tuple().exponent for value in values]
    return float(f"1e{min([0, *map(int, places)])}")


def hides(first: Sequence[float], second: Sequence[float], apart: float) -> float | None:
    """The step of two samples where it may be all that lies between them: their middles are
    ``apart`` by one step or less, and neither varies by more than that, as noise as large as a step
    would. None where rounding does not explain it."""
    one = step([*first, *second])
    widest = max(max(values) - min(values) for values in (first, second))
    return one if max(apart, widest) <= one * _ALMOST else None
