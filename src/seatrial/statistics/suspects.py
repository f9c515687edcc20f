"""The nodes, or what nodes share, that explain failed or slow runs better than chance does.

find([RunOnNodes(["n1", "n7", "n9"], bad=True), ...], {"n1": ["switch3"], ...}).suspects

A run turns bad by chance, at a rate that may grow with its number of nodes, or by a bad node or
group in it. Candidates are added one by one, those first that make the outcomes of all runs
likeliest; what a bad one explains then speaks no more for those that were beside it. Then the
weakest are taken away again. As many remain as gain more in likelihood than their choice out of all
candidates costs; by that price chance alone rarely accuses any, whatever was tried. What was in
the very same runs cannot be told apart and is accused together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Numbers = NDArray[np.int64]
    Mask = NDArray[np.bool_]

LEVEL = 0.05  # probability that chance alone accuses any
FURTHER = 6.0  # how many times rarer each further number of accused is taken to be
PARAMETERS = 2.0  # the price of fitting harm and base
MIN_RUNS = 5
MIXTURES = 5  # steps between "size does not matter" and "each node adds the same risk"
HARMS = (0.7, 1.2, 2.0, 3.5, 6.0)  # hazards: a node turns 50 %, 70, 86, 97, 99.8 % of its runs bad
WORTH = 3.0  # gain in likelihood for which a candidate is tried
MAX_CANDIDATES = 60  # candidates that are tried
PASSES = 3


class RunOnNodes(NamedTuple):
    """A run: its nodes, and whether it was bad (failed, or slow)."""

    nodes: Sequence[str]
    bad: bool


class Suspect(Struct, frozen=True):
    """What is accused: ``names`` more than one where they were always together; ``kind`` "node" or
    "group". Of the ``runs`` that had it and no other of the accused, ``bad`` were bad, where chance
    would give ``expected``; ``p`` is the chance of as many, times the number of candidates."""

    names: list[str]
    kind: str
    runs: int
    bad: int
    expected: float
    p: float


class Suspects(Struct, frozen=True):
    """The accused, the surest first. ``unexplained`` of the ``bad`` runs had none of them. ``why``
    says why nothing can be concluded, else it is empty."""

    suspects: list[Suspect]
    runs: int
    bad: int
    unexplained: int
    candidates: int
    why: str = ""


def find(jobs: Sequence[RunOnNodes], groups: Mapping[str, Sequence[str]] | None = None) -> Suspects:
    """Accuse nodes and groups (switches, racks: those of each node) by the runs they were in."""
    bad = sum(job.bad for job in jobs)
    table = _Table(jobs, groups or {})
    if why := _too_little(len(jobs), bad, len(table.names)):
        return Suspects([], len(jobs), bad, bad, len(table.names), why)
    model = _Model(table)
    accused = model.best()
    return Suspects(
        suspects=sorted((model.suspect(i, accused) for i in accused), key=lambda s: s.p),
        runs=len(jobs),
        bad=bad,
        unexplained=int((table.bad & (table.with_any(accused) == 0)).sum()),
        candidates=len(table.names),
    )


def _too_little(runs: int, bad: int, candidates: int) -> str:
    if runs < MIN_RUNS:
        return f"{runs} runs: chance cannot be told from cause in fewer than {MIN_RUNS}"
    if bad in (0, runs):
        return f"{'none' if not bad else 'all'} of the {runs} runs are bad: nothing to compare with"
    if candidates < 2:
        return "all runs had the same nodes: they cannot be told apart"
    return ""


class _Table:
    """Which candidates were in which runs: two parallel arrays, a pair for each candidate and run.
    Candidates in the same runs are one."""

    def __init__(self, jobs: Sequence[RunOnNodes], groups: Mapping[str, Sequence[str]]) -> None:
        import numpy as np

        numbers: dict[tuple[str, str], int] = {}
        runs: list[int] = []
        members: list[int] = []
        for number, job in enumerate(jobs):
            here = {("node", node) for node in job.nodes}
            here |= {("group", group) for node in job.nodes for group in groups.get(node, ())}
            runs += [number] * len(here)
            members += [numbers.setdefault(key, len(numbers)) for key in here]
        run, member = np.array(runs, dtype=np.int64), np.array(members, dtype=np.int64)
        alike = _alike(run, member, len(jobs), len(numbers))
        self.names: list[list[tuple[str, str]]] = [
            [] for _ in range(int(alike.max(initial=-1)) + 1)
        ]
        for key, index in numbers.items():
            self.names[alike[index]].append(key)
        pairs = np.unique(np.stack([alike[member], run]), axis=1)
        self.member, self.run = pairs[0], pairs[1]
        self.bad = np.array([job.bad for job in jobs], dtype=bool)
        self.size = np.array([len(set(job.nodes)) for job in jobs], dtype=float)

    def with_any(self, accused: Sequence[int]) -> Array:
        """How many of the accused each run had."""
        import numpy as np

        those = np.isin(self.member, np.array(accused, dtype=np.int64))
        return np.bincount(self.run[those], minlength=len(self.bad)).astype(float)

    def runs_of(self, candidate: int) -> Numbers:
        found: Numbers = self.run[self.member == candidate]
        return found


def _alike(run: Numbers, member: Numbers, runs: int, members: int) -> Numbers:
    """A number for each candidate, the same for those that were in the same runs: by the sums of
    random numbers that stand for the runs."""
    import numpy as np

    if not members:
        return np.empty(0, dtype=np.int64)
    marks = np.random.default_rng(0).integers(0, 2**63, runs, dtype=np.uint64)
    sums = np.zeros(members, dtype=np.uint64)
    np.add.at(sums, member, marks[run])
    same: Numbers = np.unique(sums, return_inverse=True)[1].astype(np.int64)
    return same


# ---- the model ----------------------------------------------------------------------------


class _Fit(NamedTuple):
    """The hazard of a run without the accused is ``base`` times its shape; each of the accused in
    it adds ``harm``. ``likelihood`` is the logarithm of that of all runs."""

    base: float
    harm: float
    likelihood: float


class _Model:
    """A run is bad with probability 1 - exp(-hazard). The shape of the hazard without accused is
    partly the same for all runs, partly in proportion to their nodes, as fits best."""

    def __init__(self, table: _Table) -> None:
        import numpy as np

        self.table = table
        self.count = len(table.names)
        none = np.zeros(len(table.bad))
        shapes = []
        for step in range(MIXTURES):
            part = step / (MIXTURES - 1)
            self.shape = 1 - part + part * table.size / table.size.mean()
            shapes.append((self.fit(none).likelihood, -step, self.shape))
        self.shape = max(shapes, key=lambda found: found[:2])[2]

    def fit(self, accused: Array) -> _Fit:
        """The best base and harm on a grid, and on a finer one about its best point; by how many of
        the accused each run had."""
        import numpy as np

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

    def likelihood(self, hazard: Array) -> Array:
        """Logarithm of the likelihood of all runs, for each row of hazards."""
        import numpy as np

        bad = self.table.bad
        risen = np.log(-np.expm1(-hazard[..., bad]) + 1e-300).sum(axis=-1)
        result: Array = risen - hazard[..., ~bad].sum(axis=-1)
        return result

    def cost(self, number: int) -> float:
        """What accusing so many must gain: the logarithm of how many choices there are, of the
        level, of a factor for each, and of the two parameters. A likelihood that exceeds that of
        chance by a factor f is chance at most once in f, so what is left is safe for all choices of
        all numbers together."""
        if not number:
            return 0.0
        choices = math.lgamma(self.count + 1) - math.lgamma(number + 1)
        choices -= math.lgamma(self.count - number + 1)
        return choices + number * math.log(FURTHER) - math.log(LEVEL) + PARAMETERS

    def best(self) -> list[int]:
        """The accused that gain most above their cost: candidates are added while one is worth
        looking at, then taken away, the weakest first; then once more, from what is left."""
        accused: list[int] = []
        for _ in range(PASSES):
            before = accused
            accused = self._thinned(self._grown(accused))
            if sorted(accused) == sorted(before):
                break
        return accused

    def _grown(self, accused: list[int]) -> list[int]:
        import numpy as np

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
        best, most = list[int](), self.fit(self.table.with_any([])).likelihood
        while accused:
            had = self.table.with_any(accused)
            fit = self.fit(had)
            if (net := fit.likelihood - self.cost(len(accused))) > most:
                best, most = list(accused), net
            hazard = fit.base * self.shape + fit.harm * had
            left = []
            for one in accused:
                without = hazard.copy()
                without[self.table.runs_of(one)] -= fit.harm
                left.append(float(self.likelihood(without)))
            accused = [one for i, one in enumerate(accused) if i != left.index(max(left))]
        return best

    def suspect(self, index: int, accused: list[int]) -> Suspect:
        """One of the accused, judged by the fit of the others alone."""
        import numpy as np

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


def _tail(risks: Array, hits: int) -> float:
    """The probability of so many bad runs or more, each with its own risk (Poisson binomial)."""
    import numpy as np

    if not hits:
        return 1.0
    chances = np.zeros(hits + 1)  # of 0, 1, ... bad runs; the last of that many or more
    chances[0] = 1.0
    for risk in risks.tolist():
        moved = risk * chances[:-1]
        chances[:-1] -= moved
        chances[1:] += moved
    return float(chances[-1])
