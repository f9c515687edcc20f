"""What even one who knows the truth could judge, of the cases in which ours misses much.

Nobody can do better than these: who is told of the noise, of the shape of what happened, of how
often chance strikes, and is asked only where, or who.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from bench.quality import nodes, series
from bench.quality.changes import NEAR
from seatrial.judge.statistics.outliers import RunOnNodes

NORMAL = NormalDist()
AFTER, BEFORE = 30, 90  # where the steps of bench.quality.changes are
PLACES = np.arange(3, series.POINTS - 2)
ALIKE = {"known": (0.5,), "to be learned": tuple(np.arange(0, 0.91, 0.05).tolist())}


# ---- a step in autocorrelated noise -------------------------------------------------------


class Step(NamedTuple):
    """Share of the steps that are told within ``NEAR`` points of their place, of those told at any
    place, and of those told by one who looks only within ``NEAR`` points of it."""

    found: float
    anywhere: float
    told_where: float


def step_in_ar1(
    alike: Sequence[float], size: float, count: int, seed: int, every: Sequence[float] = (3, 6, 10)
) -> dict[float, Step]:
    """By the likelihood ratio of a step at its best place, at so many alarms per 100 null series:
    by one who knows that noise is normal, that each figure keeps a part of the deviation of the one
    before, and which part it is (the one that is ``alike``, or the likeliest of several)."""
    rng = np.random.default_rng([seed, 500])
    quiet = [series.null("AR(1)", rng) for _ in range(count)]
    at = rng.integers(AFTER, BEFORE + 1, count)
    stepped = [series.stepped("AR(1)", rng, size, int(one)) for one in at]
    null, told = (_ratios(np.array(some) / series.LEVEL - 1, alike) for some in (quiet, stepped))
    near = np.abs(PLACES[None, :] - at[:, None]) <= NEAR
    # The best answer is the place about which, within ``NEAR`` points, the step likeliest is.
    weights = np.exp((told - told.max(axis=1)[:, None]) / 2)
    about = weights @ (np.abs(PLACES[None, :] - PLACES[:, None]) <= NEAR)
    right = np.take_along_axis(near, about.argmax(axis=1)[:, None], axis=1)[:, 0]
    found = {}
    for alarms in every:
        share = 1 - alarms / 100
        beyond = told.max(axis=1) > np.quantile(null.max(axis=1), share)
        bound = np.quantile(np.where(near, null, 0).max(axis=1), share)
        looked = np.where(near, told, 0).max(axis=1) > bound
        figures = (beyond & right, beyond, looked)
        found[alarms] = Step(*(float(one.mean()) for one in figures))
    return found


def _ratios(off: series.Array, alike: Sequence[float]) -> series.Array:
    """Twice the logarithm of the likelihood ratio, for each series (rows) and place."""
    count = off.shape[1]
    without = np.full(len(off), -np.inf)
    with_step = np.full((len(off), len(PLACES)), -np.inf)
    for part in alike:
        white = np.eye(count) - part * np.eye(count, k=-1)
        white[0, 0] = math.sqrt(1 - part**2)
        level = white.sum(axis=1)
        level /= np.linalg.norm(level)
        shapes = (np.arange(count)[None, :] >= PLACES[:, None]) @ white.T
        shapes -= np.outer(shapes @ level, level)
        shapes /= np.linalg.norm(shapes, axis=1)[:, None]
        fresh = off @ white.T
        fresh -= np.outer(fresh @ level, level)
        squares = (fresh**2).sum(axis=1)
        within = squares[:, None] - (fresh @ shapes.T) ** 2
        scale = math.log(1 - part**2) / 2
        without = np.maximum(without, scale - count / 2 * np.log(squares))
        with_step = np.maximum(with_step, scale - count / 2 * np.log(within))
    ratios: series.Array = 2 * (with_step - without[:, None])
    return ratios


# ---- one figure a node --------------------------------------------------------------------


def defective(case: str, clean: float) -> tuple[float, float, float]:
    """Found, false and F1 of one who knows centre and noise of the healthy nodes exactly, and
    accuses ``clean`` nodes of a fleet in which none is bad. No rule by one figure a node does
    better: a worse figure is a likelier defect, so all that can be chosen is where to cut."""
    total, bad, worse, noise = nodes.CASES[case]
    bound = NORMAL.inv_cdf(clean / total)
    found = bad * NORMAL.cdf((bound * noise + worse) / (noise * (1 - worse)))
    false = (total - bad) * NORMAL.cdf(bound)
    return found, false, 2 * found / (found + false + bad)


# ---- suspects -----------------------------------------------------------------------------


def suspects(case: str, count: int, seed: int, further: float) -> nodes.Tally:
    """By one who knows that a bad node ruins each of its jobs, how often chance does, and the share
    of bad nodes: the likeliest set of them, each ``further`` times rarer than it is. Among several
    that are equally likely, the first."""
    bad, size, harm, chance = nodes.FLEETS[case]
    assert harm == 1
    results = []
    for number in range(count):
        jobs, planted = nodes.fleet(np.random.default_rng([seed, number]), bad, size, harm, chance)
        price = math.log((6000 - bad) / bad * further) / -math.log(chance)
        told = _cheapest(_unseen(jobs), price)
        results.append((len(told & planted), len(told - planted)))
    return nodes.tally(results, bad)


def _unseen(jobs: Sequence[RunOnNodes]) -> dict[str, int]:
    """The nodes that were in no good job, with the bad ones that they were in, as bits."""
    good = {node for job in jobs if not job.bad for node in job.nodes}
    found: dict[str, int] = {}
    for place, job in enumerate(job for job in jobs if job.bad):
        for node in job.nodes:
            if node not in good:
                found[node] = found.get(node, 0) | 1 << place
    return found


def _cheapest(unseen: dict[str, int], price: float) -> set[str]:
    """The nodes that leave the fewest bad jobs unexplained, when each costs as much as ``price`` of
    these: branch and bound, exact."""
    best: tuple[float, frozenset[str]] = (0.0, frozenset())

    def grow(explained: int, chosen: frozenset[str], left: Sequence[str], worth: float) -> None:
        nonlocal best
        if worth > best[0] + 1e-9:
            best = (worth, chosen)
        gains = [((unseen[node] & ~explained).bit_count() - price, node) for node in left]
        gains = sorted((gain for gain in gains if gain[0] > 0), reverse=True)
        for place, (gain, node) in enumerate(gains):
            # No more can follow than every gain, nor than all that is not explained.
            if worth + sum(gain for gain, _ in gains[place:]) <= best[0] + 1e-9:
                break
            rest = [other for _, other in gains[place + 1 :]]
            grow(explained | unseen[node], chosen | {node}, rest, worth + gain)

    grow(0, frozenset(), list(unseen), 0.0)
    return set(best[1])


# ---- the report ---------------------------------------------------------------------------


def report(count: int = 100, seed: int = 7) -> Iterator[str]:
    yield "| a step of 3 % in AR(1) | found | told at any place | told where to look |"
    yield "| --- | --- | --- | --- |"
    for name, alike in ALIKE.items():
        for alarms, step in step_in_ar1(alike, 0.03, 20 * count, seed).items():
            cells = " | ".join(f"{share:.2f}" for share in step)
            yield f"| likeness {name}, {alarms:g} alarms per 100 null series | {cells} |"
    yield ""
    case = "6 of 200 at -8 %, noise 4 %"
    yield f"| {case}: healthy ones accused in a clean fleet | found | false | F1 |"
    yield "| --- | --- | --- | --- |"
    for clean in (0.1, 0.3, 0.5, 1, 2, 4, 8):
        yield f"| {clean:g} | {' | '.join(f'{x:.2f}' for x in defective(case, clean))} |"
    yield ""
    yield "| 200 jobs on 6,000 nodes | found | all found | no false one | both |"
    yield "| --- | --- | --- | --- | --- |"
    for case in list(nodes.FLEETS)[:3]:
        for further in (1.0, 6.0):
            told = suspects(case, count, seed, further)
            shares = (told.found, told.all_found, told.none_false, told.exact)
            yield f"| {case}, odds by {further:g} | {' | '.join(f'{x:.2f}' for x in shares)} |"
