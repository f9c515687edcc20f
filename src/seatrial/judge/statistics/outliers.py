"""What stands out: runs that differ from the others of a test, spans of time in which more went
wrong, nodes that are worse than others, and nodes that explain failed or slow runs.

classify(runs).outliers     # [Outlier(run="r17", kind="slow", reason=...), ...]

Classes: *walltime*: it ended at its limit; *slow*: complete, but far slower than the others (a
performance failure); *short*: reported as complete in far too little time; *failed*: by its cause.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Literal, NamedTuple

from msgspec import Struct

from seatrial.judge.statistics import spread
from seatrial.judge.statistics.spread import MAD_TO_SIGMA, clipped
from seatrial.lazy import Floats, Ints, np
from seatrial.units import Better, unfit

Class = Literal["walltime", "slow", "short", "failed"]

AT_LIMIT = 0.99  # of the walltime
SLOW = 0.10  # slower than the median by at least this share of it
SHORT = 0.5  # quicker than this share of the median
DEVIATIONS = 5.0  # robust deviations from the median that slow and short runs need, too
MIN_COMPLETE = 5
STEPS = (1.0, 0.1, 0.01, 0.001)  # seconds to which times may be rounded


class RunSample(Struct, frozen=True):
    """One run of a test.

    ``seconds``: elapsed. ``cause``: why it failed, or "". ``limit``: its walltime in seconds. None
    means unknown.
    """

    name: str
    seconds: float | None
    cause: str = ""
    limit: float | None = None


class Outlier(Struct, frozen=True, rename={"reason": "why"}):
    """A run that differs from the others, its class, and the reason in words."""

    run: str
    kind: Class
    reason: str


class Outliers(Struct, frozen=True, rename={"reason": "why"}):
    """The outliers among ``runs`` runs, ``complete`` of which are complete.

    ``median`` and ``noise`` (a robust standard deviation): of the complete runs, in seconds.
    ``reason``: why slow and short runs could not be found, or "".
    """

    outliers: list[Outlier]
    runs: int
    complete: int
    median: float | None
    noise: float | None
    reason: str = ""


def classify(runs: Sequence[RunSample]) -> Outliers:
    """Return the outliers among the runs of one test; all should take the same time."""
    complete = [run for run in runs if not run.cause and not _at_limit(run)]
    seconds = [run.seconds for run in complete if run.seconds is not None]
    times = [*filter(math.isfinite, seconds)]
    middle = statistics.median(times) if times else None
    noise, reason = None, ""
    if middle is None or len(times) < MIN_COMPLETE:
        reason = f"{len(times)} runs are complete; what is slow is told among {MIN_RUNS} or more"
    else:
        noise = _deviation(times, middle)
    outliers = filter(None, (_outlier(run, middle, noise) for run in runs))
    return Outliers(list(outliers), len(runs), len(times), middle, noise, reason)


def _at_limit(run: RunSample) -> bool:
    return bool(run.limit and run.seconds is not None and run.seconds >= AT_LIMIT * run.limit)


def _deviation(times: Sequence[float], middle: float) -> float:
    """Return a robust standard deviation.

    If more than half of the times are equal, their rounding hides a median deviation of up to half
    a step, which is taken instead.
    """
    robust = MAD_TO_SIGMA * statistics.median(abs(time - middle) for time in times)
    return robust or MAD_TO_SIGMA * _step(times) / 2


def _step(times: Sequence[float]) -> float:
    """Return the step in seconds to which all the times are rounded, or 0."""
    for step in STEPS:
        if all(math.isclose(time, round(time / step) * step, abs_tol=1e-9) for time in times):
            return step
    return 0.0


def _outlier(run: RunSample, middle: float | None, noise: float | None) -> Outlier | None:
    """Return the run as an outlier, or None.

    ``middle`` and ``noise``: of the complete runs, None if unknown.
    """
    if _at_limit(run):
        return Outlier(run.name, "walltime", f"{run.seconds:g} s of {run.limit:g} s")
    if run.cause:
        return Outlier(run.name, "failed", run.cause)
    if middle is None or noise is None or run.seconds is None or not math.isfinite(run.seconds):
        return None
    away, text = run.seconds - middle, f"{run.seconds:g} s; the median is {middle:g} s"
    if abs(away) <= DEVIATIONS * noise:
        return None
    if away > SLOW * middle:
        return Outlier(run.name, "slow", text)
    return Outlier(run.name, "short", text) if run.seconds < SHORT * middle else None


# ---- scan statistic ------------------------------------------------------------------------------
#
# Find spans of time in which more runs went wrong than chance explains.
#
# spans([(0.0, False), (1.0, True), (1.5, True), ...]) # [BadSpan(first=1.0, last=9.0, bad=12,
# ...)]
#
# A scan statistic (Naus 1965) with windows of every length: each span from one bad run to another
# is a window. The p-value of the rarest is bounded twice: Chernoff's bound (1952) for its number
# of bad runs, times the number of windows (Bonferroni).


SPAN_LEVEL = 0.01  # of the corrected p-value
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
        if span.p >= SPAN_LEVEL:
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


# ---- defective nodes -----------------------------------------------------------------------------
#
# Find the defective nodes among many, by one figure of each.
#
# survey({"n001": 812.0, ...}, "higher").defective # {"n047": Defect(value=787.0, ...)}
#
# The rule adapts to the noise. The healthy nodes are those of the best mode that holds a fifth of
# the nodes or more, or all nodes if there is one mode; so 110 bad nodes of 200 do not become the
# norm. Centre and noise are the median and the median absolute deviation of the healthy nodes (the
# root mean square if that is 0, as of rounded figures). A node is defective if it is worse by 2 %
# and by so many deviations that half a healthy node is expected beyond them (Chauvenet 1863): 2.9
# for 200 nodes, 3.8 for 6,000. A node that is two deviations worse is suspect: measure it again,
# and pass all its figures; their median counts.


MIN_RELATIVE_CHANGE = 0.02
MIN_NODES = 5
MIN_HEALTHY = 0.2  # share of the nodes that a mode needs to be the norm
FALSE_NODES = 0.5  # healthy nodes expected beyond the bound in one survey
SUSPECTED = 2.0
SMALL = 5.0  # the noise of few nodes is uncertain: the bound is multiplied by 1 + SMALL / nodes


class Defect(Struct, frozen=True):
    """A node that is worse than the healthy ones, and its figure.

    ``effect``: relative to their centre; -0.03 is 3 % worse, whichever direction is better.
    ``deviations``: the effect in their standard deviations, None if the healthy nodes are equal.
    """

    value: float
    effect: float
    deviations: float | None


class Survey(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """The result for many nodes.

    ``centre`` and ``noise`` (a standard deviation, in the figures' unit): of the ``healthy`` nodes.
    ``bound``: how many deviations make a node defective. ``without``: nodes without a finite
    figure. ``reason``: why nothing can be concluded, or "".
    """

    defective: dict[str, Defect] = {}
    suspect: dict[str, Defect] = {}
    nodes: int
    healthy: int = 0
    centre: float | None = None
    noise: float | None = None
    bound: float | None = None
    without: list[str]
    reason: str = ""


def survey(values_by_node: Mapping[str, float | Sequence[float]], better: Better) -> Survey:
    """Judge nodes by one or several figures of each. Judge different kinds of nodes separately."""
    figures = {node: _figure(given) for node, given in values_by_node.items()}
    known = {node: value for node, value in figures.items() if value is not None}
    without = [node for node in figures if node not in known]
    if len(known) < MIN_NODES:
        reason = f"{len(known)} nodes have a figure: "
        reason += f"what is usual can be told of {MIN_NODES} or more"
        return Survey(nodes=len(known), without=without, reason=reason)
    healthy = _healthy(list(known.values()), better)
    centre = statistics.median(healthy)
    if centre <= 0:
        reason = f"the healthy centre is {centre:g}: a share of it means nothing"
        return Survey(nodes=len(known), without=without, reason=reason)
    bound = _bound(len(known))
    noise = _noise([value - centre for value in healthy], bound)
    worse = _worse(known, centre, noise, better)
    defective, suspect = _beyond(worse, bound), _beyond(worse, SUSPECTED)
    return Survey(
        defective=defective,
        suspect={node: defect for node, defect in suspect.items() if node not in defective},
        nodes=len(known),
        healthy=len(healthy),
        centre=centre,
        noise=noise,
        bound=bound,
        without=without,
    )


def _worse(
    known: Mapping[str, float], centre: float, noise: float, better: Better
) -> dict[str, Defect]:
    """Return the nodes whose figure is worse than the centre by enough to matter, worst first."""
    sign = 1 if better == "higher" else -1
    worse: dict[str, Defect] = {}
    for node, value in known.items():
        effect = sign * (value - centre) / centre
        if effect <= -MIN_RELATIVE_CHANGE:
            z = effect * centre / noise if noise else None
            worse[node] = Defect(value, effect, z)
    return dict(sorted(worse.items(), key=lambda item: item[1].effect))


def _figure(given: float | Sequence[float]) -> float | None:
    """Return the median of a node's figures that can be judged, or None."""
    figures = [given] if isinstance(given, int | float) else given
    fit = [float(figure) for figure in figures if not unfit(figure)]
    return statistics.median(fit) if fit else None


def _healthy(values: list[float], better: Better) -> list[float]:
    """Return the figures of the best mode that may be the norm; all if there is only one mode."""
    large = [mode for mode in spread.find(values) if mode.share >= MIN_HEALTHY]
    if len(large) < 2:
        return values
    if better == "higher":
        large.reverse()
    low, high = large[0].low, large[0].high
    distinct = sorted(set(values))
    step = float(np.diff(distinct).min()) if len(distinct) > 2 else 0.0
    for mode in large[1:]:
        apart = max(mode.low - high, low - mode.high)
        if apart > step * (1 + 1e-6):
            break
        low, high = min(low, mode.low), max(high, mode.high)  # rounding splits one mode in two
    return [value for value in values if low <= value <= high]


def _noise(away: list[float], bound: float) -> float:
    """Return the standard deviation of the healthy nodes.

    If more than half of the figures are equal, it is that of the others, defective ones excluded.
    If then the nearest figures on both sides are equally far, as rounded ones are, it is at least
    that of a uniform distribution over such a step on each side. ``away``: distances from the
    centre.
    """
    if robust := MAD_TO_SIGMA * statistics.median(map(abs, away)):
        return robust
    above = min((far for far in away if far > 0), default=0.0)
    below = min((-far for far in away if far < 0), default=0.0)
    step = above if math.isclose(above, below, rel_tol=1e-6) else 0.0
    return max(clipped(np.array(away), bound), step / math.sqrt(3))


def _bound(nodes: int) -> float:
    """Return how many deviations make one of so many nodes defective."""
    return -statistics.NormalDist().inv_cdf(FALSE_NODES / nodes) * (1 + SMALL / nodes)


def _beyond(worse: Mapping[str, Defect], bound: float) -> dict[str, Defect]:
    """Return the nodes that are worse by so many deviations; by any, if these are not known."""
    return {
        node: defect
        for node, defect in worse.items()
        if defect.deviations is None or defect.deviations <= -bound
    }


# ---- suspects ------------------------------------------------------------------------------------
#
# Find the nodes, or groups of nodes, that explain failed or slow runs better than chance does.
#
#     find_suspects([RunOnNodes(["n1", "n7", "n9"], bad=True), ...], {"n1": ["s3"], ...}).suspects
#
# A run is bad by chance, at a rate that may grow with its number of nodes, or because of a bad node
# or group. Candidates are added one by one: each time the one that most raises the likelihood of
# all outcomes. A run that one candidate explains is no more evidence against the others in it. Then
# the weakest are removed one by one. The set kept is the one whose gain in log-likelihood most
# exceeds its cost, which grows with the number of possible choices, so chance alone rarely accuses
# any (see ``_Model.cost``). Candidates that were in exactly the same runs are accused together.


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


def find_suspects(
    jobs: Sequence[RunOnNodes], groups: Mapping[str, Sequence[str]] | None = None
) -> Suspects:
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


class _Fit(Struct, frozen=True):
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
