"""Find the step to which figures are rounded: a benchmark prints 1.5 to 2.5 as 2.

step([2.0, 3.0])        # 1.0
step([2.25, 3.5])       # 0.01
hides([2.0] * 4, [3.0] * 4, apart=1.0)      # 1.0: both may have been 2.5
"""

from collections.abc import Sequence
from decimal import Decimal

_ALMOST = 1 + 1e-9


def step(values: Sequence[float]) -> float:
    """Return the last decimal place that any of these finite figures has, at most 1.

    Whether the zeros at the end of a whole number were measured is unknown.
    """
    places = [Decimal(repr(float(value))).normalize().as_tuple().exponent for value in values]
    return float(f"1e{min([0, *map(int, places)])}")


def hides(first: Sequence[float], second: Sequence[float], apart: float) -> float | None:
    """Return the rounding step of two samples if it may explain their difference, else None.

    It may if their medians are ``apart`` by one step or less, and the figures of neither sample
    spread over more than a step, as they would with noise of that size.
    """
    size = step([*first, *second])
    widest = max(max(values) - min(values) for values in (first, second))
    return size if max(apart, widest) <= size * _ALMOST else None
