"""Control false differences among many rows: at 95 % confidence, five in a hundred come by chance.

kept = confirmed([student_p(*row) for row in rows], len(rows))     # of significance.py
kept = unshuffled(rows, kept, least=0.02)      # of these, those that shuffled rows rarely show
"""

import math
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import combinations

from seatrial.arrays import Bools, Floats
from seatrial.lazy import np
from seatrial.statistics.rounding import step
from seatrial.statistics.significance import FALSE, SampleMoments, welch

SHUFFLES = 500  # of a row; all possible ones if these are fewer
AT_ONCE = 32  # rows; BLAS starts threads for more, which costs more than it gains
SEED = 20260101

Samples = tuple[Sequence[float], Sequence[float]]


def student_p(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the two-sided p-value of Welch's test (1947) on the logarithms of two samples.

    Unlike that of a rank test, it can be small for few figures. The variance of a figure is at
    least what rounding hides: a twelfth of the squared step (Sheppard 1898). None if a side has
    fewer than two figures or a figure is not above 0.
    """
    samples = (first, second)
    if not _usable(samples):
        return None
    return _p(samples)


def _usable(samples: Samples) -> bool:
    return min(map(len, samples)) >= 2 and min(map(min, samples)) > 0


def _p(samples: Samples) -> float:
    """Return the p-value of Welch's test."""
    as_given = np.arange(sum(map(len, samples)))[None, :] < len(samples[0])
    return float(_welch(np.array([[*samples[0], *samples[1]]], dtype=float), as_given)[0][0, 0])


def _welch(figures: Floats, deals: Bools) -> tuple[Floats, Floats]:
    """Return Welch's test of each row for each deal of its figures to the two sides.

    ``figures``: of both samples, shape (rows, n). ``deals``: shape (deals, n), True for the first
    side. Returns two arrays of shape (rows, deals): the p-value, and the absolute difference of the
    mean logarithms.
    """
    steps = np.array([[step(row)] for row in figures.tolist()])
    with np.errstate(over="ignore"):
        hidden = np.clip(steps / figures, np.finfo(float).eps, 1) ** 2 / 12
    logs = np.log(figures)
    logs -= logs.mean(axis=1)[:, None]
    sides = []
    for those in (deals.T, ~deals.T):
        side = those.astype(float)
        size = int(those[:, 0].sum())
        mean = logs @ side / size
        variance = (np.square(logs) @ side - size * mean**2) / (size - 1)
        sides.append(SampleMoments(mean, np.maximum(variance, hidden @ side / size), size))
    return welch(*sides), np.abs(sides[0].mean - sides[1].mean)


def unshuffled(rows: Sequence[Samples], told: Collection[int], least: float) -> set[int]:
    """Return which of the differences ``told`` (indices of ``rows``) stand in noise of any shape.

    Figures that fall into two modes look clearly different if each side has one mode. So the
    figures of every other row are dealt to its sides anew. The mean number of those rows that then
    differ as clearly, and by the ``least`` effect, estimates how many are false (Storey and
    Tibshirani 2003). The clearest of ``told`` stand, as many as keep the false share below
    ``FALSE``.
    """
    clear = {index: _p(rows[index]) for index in told if _usable(rows[index])}
    order = sorted(clear, key=clear.__getitem__)
    places = {index: place for place, index in enumerate(order)}
    bounds = np.array([clear[index] for index in order]) * (1 + 1e-9)
    by_chance = np.zeros(len(order))  # other rows expected to differ as clearly as each in order
    shapes: dict[tuple[int, int], list[int]] = {}
    for index, (first, second) in enumerate(rows):
        shapes.setdefault((len(first), len(second)), []).append(index)
    for sizes, alike in shapes.items():
        figures = np.array([[*rows[index][0], *rows[index][1]] for index in alike], dtype=float)
        able = np.flatnonzero(_may_differ(figures, sizes, least))
        for at in range(0, len(able), AT_ONCE):
            some = able[at : at + AT_ONCE]
            beyond = _beyond(figures[some], _deals(*sizes), bounds, least)
            for number, shares in zip(some.tolist(), beyond, strict=True):
                shares[places.get(alike[number], len(order)) :] = 0.0
            by_chance += beyond.sum(axis=0)
    counts = np.arange(1, len(order) + 1)
    stand = max(counts[by_chance <= FALSE * counts + 1e-9].tolist(), default=0)
    return {*order[:stand]} | ({*told} - {*order})


def _may_differ(figures: Floats, sizes: tuple[int, int], least: float) -> Bools:
    """Return which rows some deal makes differ by the least effect; all figures must be above 0.

    ``figures``: shape (rows, n). Returns shape (rows,).
    """
    usable: Bools = figures.min(axis=1) > 0
    if min(sizes) < 2:
        return np.zeros_like(usable)
    logs = np.sort(np.log(np.where(usable[:, None], figures, 1.0)), axis=1)
    widest = [logs[:, n:].mean(axis=1) - logs[:, :n].mean(axis=1) for n in sizes]
    able: Bools = usable & (np.maximum(*widest) >= math.log1p(least))
    return able


def _beyond(figures: Floats, deals: Bools, bounds: Floats, least: float) -> Floats:
    """Return the share of the deals in which each row differs by the least effect and each bound.

    ``bounds``: p-values, shape (b,). Returns shape (rows, b).
    """
    ps, off = _welch(figures, deals)
    ps[off < math.log1p(least)] = 1.0
    ps.sort(axis=1)
    found = [np.searchsorted(row, bounds, side="right") for row in ps]
    shares: Floats = np.array(found) / ps.shape[1]
    return shares


@lru_cache(maxsize=64)
def _deals(first: int, second: int) -> Bools:
    """Return ways to deal figures to two sides: shape (deals, n), True for the first side."""
    total = first + second
    if math.comb(total, first) > SHUFFLES:
        rng = np.random.default_rng([SEED, first, second])
        places = rng.random((SHUFFLES, total)).argsort(axis=1)[:, :first]
    else:
        places = np.array(list(combinations(range(total), first)))
    deals = np.zeros((len(places), total), dtype=bool)
    np.put_along_axis(deals, places, True, axis=1)
    return deals
