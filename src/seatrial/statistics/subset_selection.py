"""Select the samples that may be the best of several (subset selection, Gupta 1965).

found = select_best({"a": [10.1, 10.2, 10.0], "b": [12.0, 12.1, 12.2]}, "lower")
found.best, found.told         # "a", {"b"}: b is told to be worse

Each sample is compared with the one of the best median, one-sided, at 5 % divided among the others
(Holm 1979). So with 95 % a best one is among those that are not told to be worse.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from seatrial.lazy import statistics
from seatrial.statistics.multiple_testing import student_p
from seatrial.statistics.sample_sizes import CONFIDENCE, least_p
from seatrial.statistics.significance import mann_whitney
from seatrial.units import Better


class BestOfSeveral(NamedTuple):
    """The sample with the best median, by its name, and the names of those that are ``told`` to be
    worse. ``ps``: the one-sided p-value of each other sample, None where it has none."""

    best: str
    told: set[str]
    ps: dict[str, float | None]


def select_best(samples: Mapping[str, Sequence[float]], better: Better) -> BestOfSeveral:
    """Compare samples of figures above 0. Raises ValueError if there is none."""
    sign = 1 if better == "higher" else -1
    best = max(samples, key=lambda name: sign * statistics.median(samples[name]))
    others = [name for name in samples if name != best]
    level = (1 - CONFIDENCE) / max(1, len(others))
    ps = {name: _p(samples[best], samples[name], level) for name in others}
    told: set[str] = set()
    ordered = sorted((p, name) for name, p in ps.items() if p is not None)
    for i, (p, name) in enumerate(ordered):
        if p > (1 - CONFIDENCE) / (len(others) - i):
            break
        told.add(name)
    return BestOfSeveral(best, told, ps)


def _p(best: Sequence[float], other: Sequence[float], level: float) -> float | None:
    """Return the one-sided p-value: of Mann and Whitney's rank test where it can be as small as the
    ``level``, else of Welch's test on logarithms; None for single figures."""
    if min(len(best), len(other)) < 2:
        return None
    if least_p(len(best), len(other)) / 2 <= level:
        p = mann_whitney(best, other)
    else:
        p = student_p(best, other)
    return None if p is None else p / 2
