"""Find the nodes, or groups of nodes, that explain failed or slow runs better than chance does.

find([RunOnNodes(["n1", "n7", "n9"], bad=True), ...], {"n1": ["switch3"], ...}).suspects

A run is bad by chance, at a rate that may grow with its number of nodes, or because of a bad node
or group. Candidates are added one by one: each time the one that most raises the likelihood of all
outcomes. A run that one candidate explains is no more evidence against the others in it. Then the
weakest are removed one by one. The set kept is the one whose gain in log-likelihood most exceeds
its cost, which grows with the number of possible choices, so chance alone rarely accuses any (see
``_Model.cost``). Candidates that were in exactly the same runs are accused together.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from msgspec import Struct

from seatrial.lazy import Floats, Ints, np

LEVEL = 0.05  # probability that chance alone accuses any

# Each further bad node counts as so many times rarer than the last. Where all rates are known, a
# factor of 6 accuses innocent nodes in 1 % of simulated data sets, without it in 1 to 21 %
# (docs/explanations/quality.md, "Suspects"; bench/quality/limits.py).
FURTHER = 6.0
# The cost of the two fitted parameters, harm and base: one unit of log-likelihood each, as in
# Akaike's criterion (1974).
PARAMETERS = 2.0
MIN_RUNS = 5
MIXTURES = 5  # shapes between "size does not matter" and "each node adds the same risk"
# Hazards that are tried, a geometric series. A bad node makes a share 1 - exp(-hazard) of its runs
# bad: 50, 70, 86, 97 and 99.8 %.
HARMS = (0.7, 1.2, 2.0, 3.5, 6.0)
# The gain in log-likelihood (a factor of 20) from which a candidate is tried. It is less than the
# cost of accusing the first, log(candidates) + log(FURTHER), of four candidates or more.
WORTH = 3.0
MAX_CANDIDATES = 60  # candidates that are tried in one pass; a bound on time
PASSES = 3  # of adding and removing; a bound on time, as a pass that changes nothing is the last


class RunOnNodes(NamedTuple):
    """A run: its nodes, and whether it was bad (failed or slow)."""

    nodes: Sequence[str]
    bad: bool


class Suspect(Struct, frozen=True):
    """An accused candidate: several ``names`` if these were always together.

    ``kind``: "node" or "group". Of the ``runs`` with it and no other accused, ``bad`` were bad, and
    ``expected`` would be by chance. ``p``: the chance of so many, times the number of candidates
    (Bonferroni).
    """

    names: list[str]
    kind: str
    runs: int
    bad: int
    expected: float
    p: float


class Suspects(Struct, frozen=True, rename={"reason": "why"}):
    """The accused among ``candidates`` nodes and groups, the surest first.

    ``unexplained``: how many of the ``bad`` runs had none of them. ``reason``: why nothing
    can be concluded, or "".
    """

    suspects: list[Suspect]
    runs: int
    bad: int
    unexplained: int
    candidates: int
    reason: str = ""


def find(jobs: Sequence[RunOnNodes], groups: Mapping[str, Sequence[str]] | None = None) -> Suspects:
    """Return the nodes and groups that are accused by the runs they were in.

    ``groups``: the groups (switches, racks) of each node.
    """
    bad = sum(job.bad for job in jobs)
    table = _Table(jobs, groups or {})
    if reason := too_little("run", MIN_RUNS, len(jobs), bad, len(table.names)):
        return Suspects([], len(jobs), bad, bad, len(table.names), reason)
    model = _Model(table)
    accused = model.best()
    return Suspects(
        suspects=sorted((model.suspect(i, accused) for i in accused), key=lambda s: s.p),
        runs=len(jobs),
        bad=bad,
        unexplained=int((table.bad & (table.with_any(accused) == 0)).sum()),
        candidates=len(table.names),
    )


def too_little(noun: str, least: int, number: int, bad: int, candidates: int) -> str:
    """Return why nothing can be concluded from so many runs or jobs (the ``noun``), or ""."""
    if number < least:
        return f"{number} {noun}s: chance cannot be told from cause in fewer than {least}"
    if bad in (0, number):
        which = "all" if bad else "none"
        return f"{which} of the {number} {noun}s are bad: nothing to compare with"
    if candidates < 2:
        return f"all {noun}s had the same nodes: they cannot be told apart"
    return ""


class _Table:
    """Which candidates were in which runs. Candidates in exactly the same runs are one.

    ``member`` and ``run``: parallel arrays, shape (pairs,). ``names``: of each candidate, as
    (kind, name). ``bad`` and ``size`` (nodes) of each run: shape (runs,).
    """

    def __init__(self, jobs: Sequence[RunOnNodes], groups: Mapping[str, Sequence[str]]) -> None:
        numbers: dict[tuple[str, str], int] = {}
        of_node: dict[str, list[int]] = {}  # itself and its groups
        for node in dict.fromkeys(node for job in jobs for node in job.nodes):
            keys = [("node", node), *(("group", group) for group in groups.get(node, ()))]
            of_node[node] = [numbers.setdefault(key, len(numbers)) for key in keys]
        members = [set(chain.from_iterable(map(of_node.__getitem__, job.nodes))) for job in jobs]
        counts = np.array([len(each) for each in members], dtype=np.int64)
        run = np.repeat(np.arange(len(jobs)), counts)
        member = np.fromiter(chain.from_iterable(members), dtype=np.int64)
        alike = _alike(run, member, len(jobs), len(numbers))
        self.names: list[list[tuple[str, str]]] = [
            [] for _ in range(int(alike.max(initial=-1)) + 1)
        ]
        for key, index in numbers.items():
            self.names[alike[index]].append(key)
        pairs = np.unique(alike[member] * len(jobs) + run)
        self.member, self.run = np.divmod(pairs, max(len(jobs), 1))
        self.bad = np.array([job.bad for job in jobs], dtype=bool)
        self.size = np.array([len(set(job.nodes)) for job in jobs], dtype=float)

    def with_any(self, accused: Sequence[int]) -> Floats:
        """Return how many of the accused each run had, shape (runs,)."""
        those = np.isin(self.member, np.array(accused, dtype=np.int64))
        return np.bincount(self.run[those], minlength=len(self.bad)).astype(float)

    def runs_of(self, candidate: int) -> Ints:
        """Return the numbers of the runs that a candidate was in."""
        runs: Ints = self.run[self.member == candidate]
        return runs


def _alike(run: Ints, member: Ints, runs: int, members: int) -> Ints:
    """Return a number for each candidate, the same for those that were in the same runs.

    Each run gets a random number. Candidates with the same sum over their runs are the same.
    """
    if not members:
        return np.empty(0, dtype=np.int64)
    marks = np.random.default_rng(0).integers(0, 2**63, runs, dtype=np.uint64)
    sums = np.zeros(members, dtype=np.uint64)
    np.add.at(sums, member, marks[run])
    same: Ints = np.unique(sums, return_inverse=True)[1].astype(np.int64)
    return same


# ---- the model ----------------------------------------------------------------------------


class _Fit(NamedTuple):
    """A fitted model: the hazard of a run is ``base`` times its shape, plus ``harm`` per accused.

    ``likelihood``: the logarithm of the likelihood of all runs.
    """

    base: float
    harm: float
    likelihood: float


class _Model:
    """A model in which a run is bad with probability 1 - exp(-hazard).

    The ``shape`` of the hazard without accused, shape (runs,), is a mixture of the same for all
    runs and of one in proportion to their nodes; the mixture with the best fit is used.
    """

    def __init__(self, table: _Table) -> None:
        self.table = table
        self.count = len(table.names)
        none = np.zeros(len(table.bad))
        shapes = []
        for step in range(MIXTURES):
            part = step / (MIXTURES - 1)
            self.shape = 1 - part + part * table.size / table.size.mean()
            shapes.append((self.fit(none).likelihood, -step, self.shape))
        self.shape = max(shapes, key=lambda found: found[:2])[2]

    def fit(self, accused: Floats) -> _Fit:
        """Return the best fit, on a grid of base and harm, then on finer ones about the best base.

        ``accused``: how many of the accused each run had, shape (runs,).
        """
        middle, harms = (0.0, 3.5), HARMS if accused.any() else (0.0,)
        best = _Fit(0.0, 0.0, -math.inf)
        for reach, steps in ((7.0, 29), (0.5, 11), (0.1, 5)):
            for harm in harms:
                base = np.exp(np.linspace(middle[0] - reach, middle[0] + reach, steps))
                hazard = base[:, None] * self.shape + harm * accused
                likelihood = self.likelihood(hazard)
                at = int(likelihood.argmax())
                if likelihood[at] > best.likelihood:
                    best = _Fit(float(base[at]), harm, float(likelihood[at]))
            middle, harms = (math.log(best.base), best.harm), (best.harm,)
        return best

    def likelihood(self, hazard: Floats) -> Floats:
        """Return the log-likelihood of all runs for each row of hazards.

        ``hazard``: shape (..., runs). Returns shape (...).
        """
        bad = self.table.bad
        of_bad = np.log(-np.expm1(-hazard[..., bad]) + 1e-300).sum(axis=-1)
        result: Floats = of_bad - hazard[..., ~bad].sum(axis=-1)
        return result

    def cost(self, number: int) -> float:
        """Return the log-likelihood that accusing so many must gain over accusing none.

        If chance alone is at work, the expectation of a likelihood ratio is 1: it is an e-value
        (Vovk and Wang 2021). By Markov's inequality it exceeds f with a probability of 1/f at most.
        So the cost is the logarithm of the number of choices of so many candidates (Bonferroni),
        plus log(1 / LEVEL), plus log(FURTHER) for each, which makes the sum over all numbers of
        accused less than LEVEL. The argument holds for fixed parameters; ``PARAMETERS`` allows for
        the fit.
        """
        if not number:
            return 0.0
        choices = math.log(math.comb(self.count, number))
        return choices + number * math.log(FURTHER) - math.log(LEVEL) + PARAMETERS

    def best(self) -> list[int]:
        """Return the set of candidates whose gain most exceeds its cost.

        Candidates are added while one gains ``WORTH``, then removed, the weakest first. This is
        repeated from the best set until nothing changes.
        """
        accused: list[int] = []
        for _ in range(PASSES):
            before = accused
            accused = self._thinned(self._grown(accused))
            if sorted(accused) == sorted(before):
                break
        return accused

    def _grown(self, accused: list[int]) -> list[int]:
        """Add candidates, the one that gains most first, while one gains ``WORTH``."""
        accused = list(accused)
        table = self.table
        while len(accused) < min(MAX_CANDIDATES, self.count):
            had = table.with_any(accused)
            fit = self.fit(had)
            hazard = fit.base * self.shape + fit.harm * had
            best, gained = -1, WORTH
            for harm in (fit.harm,) if accused else HARMS:
                grown = np.log(-np.expm1(-hazard - harm)) - np.log(-np.expm1(-hazard) + 1e-300)
                gain = np.where(table.bad, grown, -harm)
                gains = np.bincount(table.member, gain[table.run], self.count)
                gains[accused] = -math.inf
                at = int(gains.argmax())
                if gains[at] > gained:
                    best, gained = at, float(gains[at])
            if best < 0:
                break
            accused.append(best)
        return accused

    def _thinned(self, accused: list[int]) -> list[int]:
        """Remove candidates one by one, the weakest first; return the best set on the way."""
        best, best_net = list[int](), self.fit(self.table.with_any([])).likelihood
        while accused:
            had = self.table.with_any(accused)
            fit = self.fit(had)
            if (net := fit.likelihood - self.cost(len(accused))) > best_net:
                best, best_net = list(accused), net
            hazard = fit.base * self.shape + fit.harm * had
            without = []  # likelihoods, each without one of the accused
            for candidate in accused:
                reduced = hazard.copy()
                reduced[self.table.runs_of(candidate)] -= fit.harm
                without.append(float(self.likelihood(reduced)))
            weakest = without.index(max(without))
            accused = accused[:weakest] + accused[weakest + 1 :]
        return best

    def suspect(self, index: int, accused: list[int]) -> Suspect:
        """Return one of the accused with its evidence, judged by the fit of the others alone."""
        others = self.table.with_any([other for other in accused if other != index])
        fit = self.fit(others)
        risk = -np.expm1(-fit.base * self.shape - fit.harm * others)
        mine = self.table.runs_of(index)
        clear = mine[others[mine] == 0]
        hits = int(self.table.bad[clear].sum())
        p = min(1.0, _tail(risk[clear], hits) * self.count)
        names = sorted(name for _, name in self.table.names[index])
        kinds = {kind for kind, _ in self.table.names[index]}
        kind = "node" if "node" in kinds else "group"
        return Suspect(names, kind, len(clear), hits, float(risk[clear].sum()), p)


def _tail(risks: Floats, hits: int) -> float:
    """Return the probability of so many bad runs or more (Poisson binomial).

    ``risks``: the probability of each run to be bad, shape (n,).
    """
    if not hits:
        return 1.0
    chances = np.zeros(hits + 1)  # of 0, 1, ... bad runs; the last: of ``hits`` or more
    chances[0] = 1.0
    for risk in risks.tolist():
        moved = risk * chances[:-1]
        chances[:-1] -= moved
        chances[1:] += moved
    return float(chances[-1])
