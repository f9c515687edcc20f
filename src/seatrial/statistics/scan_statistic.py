"""Spans of time in which more went wrong than chance gives.

spans([(0.0, False), (1.0, True), (1.5, True), ...])   # [BadSpan(first=1.0, last=9.0, bad=12, ...)]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEVEL = 0.01  # of the corrected p-value
MAX_SPANS = 5  # spans
CONSIDERED = 1500  # outliers between which spans are looked for


class BadSpan(Struct, frozen=True):
    """Of ``runs`` that started from ``first`` to ``last``, ``bad`` went wrong, where at the rate of
    all runs it were ``expected``; ``p`` is the chance of it in any span at all."""

    first: float
    last: float
    runs: int
    bad: int
    expected: float
    p: float


def spans(timed: Sequence[tuple[float, bool]]) -> list[BadSpan]:
    """Spans from one bad run to another, by runs in order of time: (start, whether it was bad)."""
    left = list(timed)
    found: list[BadSpan] = []
    while len(found) < MAX_SPANS and (best := _best(left)):
        start, end, span = best
        if span.p >= LEVEL:
            break
        found.append(span)
        left = left[:start] + left[end + 1 :]
    return sorted(found, key=lambda span: span.first)


def _best(timed: list[tuple[float, bool]]) -> tuple[int, int, BadSpan] | None:
    import numpy as np

    at = np.flatnonzero([bad for _, bad in timed])[:CONSIDERED]
    if len(at) < 2 or len(at) == len(timed):
        return None
    first, last = np.triu_indices(len(at), 1)
    runs, hits = at[last] - at[first] + 1, last - first + 1
    usual = sum(bad for _, bad in timed) / len(timed)
    # A span begins with a bad run by choice: that one is no evidence.
    bounds = _chances((runs - 1).astype(float), (hits - 1).astype(float), usual)
    best = int(bounds.argmin())
    p = min(1.0, math.exp(float(bounds[best])) * len(bounds))
    start, end = int(at[first[best]]), int(at[last[best]])
    many, bad = int(runs[best]), int(hits[best])
    span = BadSpan(timed[start][0], timed[end][0], many, bad, usual * many, p)
    return start, end, span


def _chances(
    runs: NDArray[np.float64], hits: NDArray[np.float64], usual: float
) -> NDArray[np.float64]:
    """Logarithms of upper bounds (Chernoff's) of the chance of so many hits or more."""
    import numpy as np

    share = hits / runs
    missed = np.maximum(1 - share, 1e-300)
    bound: NDArray[np.float64] = -runs * (
        share * np.log(share / usual) + (1 - share) * np.log(missed / (1 - usual))
    )
    return np.where(share > usual, bound, 0.0)
