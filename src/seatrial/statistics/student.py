"""Student's t and the normal deviate that is as rare, by the approximation of Wallace (1959).

normal_deviate(2.2, 11)        # about 1.97
student_quantile(0.975, 11)    # about 2.20
"""

import math

from seatrial.lazy import statistics


def normal_deviate(student: float, freedom: float) -> float:
    """Return the normal deviate that is about as rare as a Student's t above 0."""
    return _scale(freedom) * math.sqrt(freedom * math.log1p(student * student / freedom))


def student_quantile(share: float, freedom: float) -> float:
    """Return the t that this share of Student's distribution lies below; within 2 % of the exact
    one for 3 degrees of freedom or more."""
    deviate = statistics.NormalDist().inv_cdf(share)
    squared = freedom * math.expm1((deviate / _scale(freedom)) ** 2 / freedom)
    return math.copysign(math.sqrt(squared), deviate)


def _scale(freedom: float) -> float:
    return (8 * freedom + 1) / (8 * freedom + 3)
