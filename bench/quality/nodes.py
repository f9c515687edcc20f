"""How well defective nodes, slow links and suspects are found: planted, and asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seatrial.judge.statistics import all_pairs, outliers

Array = NDArray[np.float64]
Random = np.random.Generator


class Tally(NamedTuple):
    """Means over seeds: planted ones found, others accused; and of seeds, the share in which all
    planted ones were found, in which no other was accused, and in which both holds. ``f1`` is of
    all seeds together."""

    found: float
    false: float
    all_found: float
    none_false: float
    exact: float
    f1: float


def tally(results: list[tuple[int, int]], planted: int) -> Tally:
    found, false = (np.array(side) for side in zip(*results, strict=True))
    all_found, none_false = found == planted, false == 0
    f1 = 2 * found.sum() / max(1, (found + false + planted).sum())
    figures = (found, false, all_found, none_false, all_found & none_false, f1)
    return Tally(*(float(np.mean(one)) for one in figures))


# ---- one figure a node --------------------------------------------------------------------

# nodes, bad ones, how much worse, noise: the four cases, and one without a bad node
CASES = {
    "6 of 200 at -8 %, noise 1 %": (200, 6, 0.08, 0.01),
    "6 of 200 at -3 %, noise 0.3 %": (200, 6, 0.03, 0.003),
    "6 of 200 at -8 %, noise 4 %": (200, 6, 0.08, 0.04),
    "110 of 200 at -8 %, noise 1 %": (200, 110, 0.08, 0.01),
    "none of 200, noise 4 %": (200, 0, 0.0, 0.04),
}


def figures(rng: Random, count: int, bad: int, worse: float, noise: float) -> dict[str, float]:
    """The first ``bad`` nodes are worse."""
    values = 100 * (1 + noise * rng.normal(0, 1, count))
    values[:bad] *= 1 - worse
    return {f"n{i:04d}": float(value) for i, value in enumerate(values)}


def usual_rule(values: Mapping[str, float]) -> set[str]:
    """Drop what is 5 % below the mean; repeat."""
    figures = np.array(list(values.values()))
    left = np.ones(len(figures), dtype=bool)
    while (low := left & (figures < 0.95 * figures[left].mean())).any():
        left &= ~low
    return {node for node, kept in zip(values, left, strict=True) if not kept}


def defective(case: str, count: int, seed: int) -> dict[str, Tally]:
    """By our rule, with suspects, and by the usual rule."""
    total, bad, worse, noise = CASES[case]
    planted = {f"n{i:04d}" for i in range(bad)}
    results: dict[str, list[tuple[int, int]]] = {"ours": [], "with suspects": [], "usual": []}
    for number in range(count):
        values = figures(np.random.default_rng([seed, number]), total, bad, worse, noise)
        survey = outliers.survey(values, "higher")
        told = {"ours": set(survey.defective), "usual": usual_rule(values)}
        told["with suspects"] = told["ours"] | set(survey.suspect)
        for name, accused in told.items():
            results[name].append((len(accused & planted), len(accused - planted)))
    return {name: tally(found, bad) for name, found in results.items()}


# ---- matrices -----------------------------------------------------------------------------


class Planted(NamedTuple):
    matrix: Array
    groups: list[str]
    slow: set[str]


def matrix(rng: Random, count: int, groups: int, slow: int, cut: bool, worse: float) -> Planted:
    """Bandwidths with 6 % noise, 2 % of the links at 60 %, some senders of other groups than 3
    slow; group 3 cut off or not."""
    member = np.arange(count) * groups // count
    level = np.where(member[:, None] == member[None, :], 12000.0, 9000.0)
    values = level * np.exp(rng.normal(0, 0.06, (count, count)))
    values[rng.random((count, count)) < 0.02] *= 0.6
    chosen = rng.choice(np.flatnonzero(member != 3), slow, replace=False)
    values[chosen] *= 1 - worse
    if cut:
        values[(member[:, None] == 3) != (member[None, :] == 3)] = np.nan
    np.fill_diagonal(values, 0.0)
    return Planted(values, [f"g{k}" for k in member], {str(i) for i in chosen})


def links(count: int, seed: int, worse: float = 0.05) -> tuple[Tally, float]:
    """Slow senders of 128 nodes, and the share of cut-off groups that were named."""
    results, named = [], 0
    for number in range(count):
        cut = number % 2 == 0
        planted = matrix(np.random.default_rng([seed, number]), 128, 8, 4, cut, worse)
        told = all_pairs.survey(planted.matrix, groups=planted.groups)
        accused = {slow.name for slow in told.senders}
        wrong = len(accused - planted.slow) + len(told.receivers)
        results.append((len(accused & planted.slow), wrong))
        named += told.cut_off == (["g3"] if cut else [])
    return tally(results, 4), named / count


def mean_below(planted: Planted, share: float = 0.9) -> tuple[int, int]:
    """The usual rule: nodes, and links, below 90 % of the mean."""
    off = ~np.eye(len(planted.matrix), dtype=bool)
    mean = float(np.nanmean(planted.matrix[off]))
    sent = np.nanmean(np.where(off, planted.matrix, np.nan), axis=1)
    return int((sent < share * mean).sum()), int((planted.matrix[off] < share * mean).sum())


# ---- suspects -----------------------------------------------------------------------------


def fleet(
    rng: Random, bad: int, size: int, harm: float, chance: float, jobs: int = 200, total: int = 6000
) -> tuple[list[outliers.RunOnNodes], set[str]]:
    """Jobs on random nodes: bad nodes ruin a job with probability ``harm`` each, and ``chance``
    ruins some without them."""
    names = [f"n{i:04d}" for i in range(total)]
    planted = set(rng.choice(total, bad, replace=False).tolist())
    found = []
    for _ in range(jobs):
        here = rng.choice(total, size, replace=False).tolist()
        ruined = any(rng.random() < harm for i in here if i in planted) or rng.random() < chance
        found.append(outliers.RunOnNodes([names[i] for i in here], bool(ruined)))
    return found, {names[i] for i in planted}


# bad nodes, nodes of a job, harm, chance
FLEETS = {
    "8 bad, jobs of 500, each ruins its jobs, 2 % fail by chance": (8, 500, 1.0, 0.02),
    "8 bad, jobs of 400, each ruins its jobs, 2 % fail by chance": (8, 400, 1.0, 0.02),
    "8 bad, jobs of 200, each ruins its jobs, 2 % fail by chance": (8, 200, 1.0, 0.02),
    "8 bad, jobs of 500, each ruins 95 % of its jobs, 2 % by chance": (8, 500, 0.95, 0.02),
    "8 bad, jobs of 400, each ruins its jobs, 10 % by chance": (8, 400, 1.0, 0.10),
    "none bad, jobs of 400, 30 % fail by chance": (0, 400, 1.0, 0.30),
}


def accused(case: str, count: int, seed: int) -> Tally:
    bad, size, harm, chance = FLEETS[case]
    results = []
    for number in range(count):
        jobs, planted = fleet(np.random.default_rng([seed, number]), bad, size, harm, chance)
        told = {name for one in outliers.find_suspects(jobs).suspects for name in one.names}
        results.append((len(told & planted), len(told - planted)))
    return tally(results, bad)


# ---- the report ---------------------------------------------------------------------------


def report(count: int = 100, seed: int = 7) -> Iterator[str]:
    yield "| one figure a node | defective: found, false (F1) | and suspects | the usual rule |"
    yield "| --- | --- | --- | --- |"
    for case in CASES:
        got = defective(case, 10 * count, seed)
        cells = [f"{one.found:.1f}, {one.false:.2f} ({one.f1:.2f})" for one in got.values()]
        yield f"| {case} | {' | '.join(cells)} |"
    yield ""
    yield "| 128 nodes, 4 slow senders, 6 % noise | recall | false nodes a run | cut-off group |"
    yield "| --- | --- | --- | --- |"
    for worse in (0.05, 0.03):
        found, named = links(count, seed, worse)
        recall, false = found.found / 4, found.false
        yield f"| {100 * worse:.0f} % slow | {recall:.2f} | {false:.2f} | {named:.2f} |"
    planted = [matrix(np.random.default_rng([seed, i]), 128, 8, 4, False, 0.05) for i in range(9)]
    usual = np.mean([mean_below(one) for one in planted], axis=0)
    yield ""
    yield f"Mean below 90 %: {usual[0]:.1f} nodes and {usual[1]:.0f} links flagged a run."
    yield ""
    yield "| 200 jobs on 6,000 nodes | found | all found | no false one | both |"
    yield "| --- | --- | --- | --- | --- |"
    for case in FLEETS:
        told = accused(case, count, seed)
        shares = (told.found, told.all_found, told.none_false, told.exact)
        yield f"| {case} | {' | '.join(f'{share:.2f}' for share in shares)} |"
