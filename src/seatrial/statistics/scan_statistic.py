"""Find spans of time in which more runs went wrong than chance explains.

spans([(0.0, False), (1.0, True), (1.5, True), ...])   # [BadSpan(first=1.0, last=9.0, bad=12, ...)]

A scan statistic (Naus 1965) with windows of every length: each span from one bad run to another is
a window. The p-value of the rarest is bounded twice: Chernoff's bound (1952) for its number of bad
runs, times the number of windows (Bonferroni).
"""

import math
from collections.abc import Sequence

from msgspec import Struct

from seatrial.arrays import Floats
from seatrial.lazy import np

LEVEL = 0.01  # of the corrected p-value
MAX_SPANS = 5
MAX_BAD = 1500  # the first bad runs, between which spans are looked for


class BadSpan(Struct, frozen=True):
    """A span of time: ``bad`` of the ``runs`` that started from ``first`` to ``last`` went wrong.

    ``expected``: how many would at the rate of all runs. ``p``: an upper bound of the chance that
    any span is as rare.
    """

    first: float
    last: float
    runs: int
    bad: int
    expected: float
    p: float


def spans(timed: Sequence[tuple[float, bool]]) -> list[BadSpan]:
    """Return the spans in which too many runs were bad, in order of time.

    ``timed``: (start, whether it was bad) of each run, in order of time. The runs of a span that
    was found are removed before the next is looked for.
    """
    remaining = list(timed)
    result: list[BadSpan] = []
    while len(result) < MAX_SPANS and (best := _best(remaining)):
        start, end, span = best
        if span.p >= LEVEL:
            break
        result.append(span)
        remaining = remaining[:start] + remaining[end + 1 :]
    return sorted(result, key=lambda span: span.first)


def _best(timed: list[tuple[float, bool]]) -> tuple[int, int, BadSpan] | None:
    """Return the rarest span with the indices of its first and last run; None if there is none."""
    at = np.flatnonzero([bad for _, bad in timed])[:MAX_BAD]
    if len(at) < 2 or len(at) == len(timed):
        return None
    first, last = np.triu_indices(len(at), 1)
    runs, hits = at[last] - at[first] + 1, last - first + 1
    usual = sum(bad for _, bad in timed) / len(timed)
    # The first run of a span is bad by construction, so it is no evidence.
    bounds = _chances((runs - 1).astype(float), (hits - 1).astype(float), usual)
    best = int(bounds.argmin())
    p = min(1.0, math.exp(float(bounds[best])) * len(bounds))
    start, end = int(at[first[best]]), int(at[last[best]])
    many, bad = int(runs[best]), int(hits[best])
    span = BadSpan(timed[start][0], timed[end][0], many, bad, usual * many, p)
    return start, end, span


def _chances(runs: Floats, hits: Floats, usual: float) -> Floats:
    """Return logarithms of Chernoff's bound (1952) of the chance of so many hits or more.

    ``runs`` and ``hits`` (1 or more): shape (n,). ``usual``: the probability of a hit in one run.
    """
    share = hits / runs
    missed = np.maximum(1 - share, 1e-300)
    bound: Floats = -runs * (
        share * np.log(share / usual) + (1 - share) * np.log(missed / (1 - usual))
    )
    return np.where(share > usual, bound, 0.0)
