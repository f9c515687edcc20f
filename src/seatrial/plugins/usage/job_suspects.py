"""Find the nodes, or groups of nodes, that explain failed jobs of many users better than these
users' own mistakes and chance do.

    found = find(NodeJobs(bad, kind, ...), names_of_nodes, levels_of_groups)
    found.suspects[0].names, found.suspects[0].bad, found.suspects[0].p

A job is bad by itself, or because of a bad node or group. *By itself*: jobs of one kind (a user's
jobs of one name) fail at a level that may be any of several, and that changes now and then; what
became of a kind's earlier jobs tells which levels are likely. So a script that is broken for 500
jobs is about one surprise, wherever these ran, and is soon no evidence against a node. Hours in
which jobs of many kinds fail everywhere excuse their failures, too. *Because of a node*: each bad
node adds its own hazard to the jobs on it, from some time on.

Candidates are added one by one, each time the one that most raises the likelihood of all outcomes;
a failure that one of them explains accuses the others no more. Then the weakest are removed one by
one, until each that is left explains enough beside the others: the likelihood ratio that it adds is
an e-value, as in `judge.statistics.suspects`, and must exceed the number of candidates over LEVEL
(Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from seatrial.judge.statistics.outliers import SPAN_LEVEL, too_little
from seatrial.lazy import Bools, Floats, Ints, np

# Hazards of a job by itself that its kind may have: 0.1, 0.5, 2, 6, 18, 45, 83, 99 and 99.97 %.
LEVELS = (0.001, 0.005, 0.02, 0.06, 0.2, 0.6, 1.8, 4.5, 8.0)
SWITCHES = (0.003, 0.01, 0.03, 0.1)  # chances that a kind's level changes from job to job
LONGEST = 256  # jobs of a kind after which what was learned of its level is forgotten; for speed
LEARNED = 20_000  # jobs by which levels are learned; a bound on time
# Rounds of learning: few, so that what bad nodes do that are not accused yet passes for no level.
ROUNDS = 4
MIXTURES = (0.0, 0.25, 0.5, 0.75, 1.0)  # from "size does not matter" to "each node adds a risk"

# Hazards that a bad node adds: it ruins 10, 18, 33, 50, 70, 86, 97 and 99.8 % of its jobs.
HARMS = (0.1, 0.2, 0.4, 0.7, 1.2, 2.0, 3.5, 6.0)
ODDS_OF_HARM = (0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.3)  # before any evidence
# A node may be bad in the whole time, or in its last part. These parts are tried; each has half of
# the evidence of any start that lies between it and the next, at least.
PARTS = (1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125)
WHOLE = 0.7  # the odds, before any evidence, that it is the whole time

WORTH = 4.0  # gain in log-likelihood from which a candidate is tried
FURTHEST = 12  # candidates in a row that would not do alone, before no more are tried
MAX_ACCUSED = 100
TRIED = 4  # candidates of the largest gain whose gain is computed exactly
MIN_JOBS = 20
MIN_BAD = 3  # jobs of whoever is accused: two may be a coincidence of what no model knows
# A kind that hardly ran elsewhere (fewer jobs than this, or than this share of all) cannot tell a
# bad node from its own mistakes: it counts as so much at most, about one failure that surprises.
ELSEWHERE = (10, 0.1)
LONE = 4.0
POLISHES = 3  # a bound on time
ALIKE = 0.8  # share of the jobs of one of the accused in which another was, too

# ---- what is told
RIVAL = 6.0  # candidates that explain so little less (a factor of 400) are told beside a suspect
LATER = 3.0  # gain from which a suspect is told to be bad since some time
RUNNERS_UP = 3
SHARES = (1.0, 0.5, 0.1)  # of jobs that a bad node ruins, for which the reach is told
NINE_IN_TEN = 1.2816  # standard deviations

HOUR_S = 3600
STORM_KINDS = 5  # kinds that fail in an hour, at least, before the hour is to blame
STORM_RATIO = 3.0  # of these to those expected


class NodeJobs(NamedTuple):
    """Jobs in the order in which they ended. ``bad``, ``kind`` (those of one number fail alike),
    ``sort`` (of the evidence, if it is bad: failed, hung, ...), ``ended`` (s) and ``nodes`` (how
    many): shape (jobs,). Their nodes are spans of places: ``job``, ``first``, ``last``, shape
    (spans,); those of one job do not overlap."""

    bad: Bools
    kind: Ints
    sort: Ints
    ended: Ints
    nodes: Ints
    job: Ints
    first: Ints
    last: Ints


class GroupLevel(NamedTuple):
    """A level of groups of nodes, such as blades: the unit of each place, -1 for none."""

    name: str
    units: Sequence[str]
    unit_of: Ints


class JobSuspect(Struct, frozen=True):
    """An accused candidate: several ``names`` if these were always together.

    ``level``: "node", or the level of the group. Of its ``jobs`` (their numbers), those of ``bad``
    were bad, and ``expected`` would be without it. ``since``: the start of the part of the time in
    which it is bad (s), None if that is all of it. ``harm``: the share of its jobs that it ruins.
    ``gain``: the logarithm of the odds of the evidence, ``p`` a bound on the chance of such odds
    times the number of candidates (Bonferroni). ``kinds``: of how many kinds the bad ones are.
    ``alternatives``: candidates in much the same jobs that explain these nearly as well.
    """

    names: list[str]
    level: str
    jobs: list[int]
    bad: list[int]
    expected: float
    since: int | None
    harm: float
    gain: float
    p: float
    kinds: int
    alternatives: list[str]


class RunnerUp(Struct, frozen=True):
    """A candidate that the evidence does not suffice to accuse, and about how many more jobs it
    needs if these go on like its others."""

    names: list[str]
    level: str
    jobs: int
    bad: int
    expected: float
    more_jobs: int


class Reach(Struct, frozen=True):
    """Which nodes would be found nine times in ten if they ruined a share of their jobs: so many of
    ``nodes``. The middle one of the others needs ``more_jobs``."""

    share: float
    found: int
    nodes: int
    more_jobs: int


class JobSuspects(Struct, frozen=True):
    """The accused among ``candidates``, the surest first. Of the ``bad`` jobs so many are
    ``unexplained`` by any of them; ``by_kind`` of these fail as others of their kind do, and
    ``by_hour`` in an hour in which many kinds fail. ``reason``: why nothing can be concluded."""

    suspects: list[JobSuspect]
    runners_up: list[RunnerUp]
    reach: list[Reach]
    jobs: int
    bad: int
    unexplained: int
    by_kind: int
    by_hour: int
    hours: list[int]
    candidates: int
    reason: str = ""


# ---- candidates ---------------------------------------------------------------------------


class _Candidates:
    """Nodes and groups as places on one axis, and the spans of these that each job had."""

    def __init__(self, jobs: NodeJobs, names: Sequence[str], levels: Sequence[GroupLevel]) -> None:
        self.jobs = len(jobs.bad)
        self.labels = [("node", name) for name in names]
        job, first, last = [jobs.job], [jobs.first], [jobs.last]
        for level in levels:
            there, units = _units_of(jobs, level)
            job.append(there)
            first.append(units + len(self.labels))
            last.append(units + len(self.labels))
            self.labels += [(level.name, unit) for unit in level.units]
        self.job, self.first, self.last = map(np.concatenate, (job, first, last))
        order = np.argsort(self.job, kind="stable")
        self.job, self.first, self.last = self.job[order], self.first[order], self.last[order]
        self._choose()

    def _choose(self) -> None:
        """Find the candidates: of those that were in the same jobs, the first stands for all."""
        rng = np.random.default_rng(0)
        marks = rng.integers(0, 2**63, self.jobs, dtype=np.uint64)
        changes = np.zeros(len(self.labels) + 1, dtype=np.uint64)
        np.add.at(changes, self.first, marks[self.job])
        np.subtract.at(changes, self.last + 1, marks[self.job])
        sums = np.cumsum(changes[:-1])
        _, chosen, self._alike = np.unique(sums, return_index=True, return_inverse=True)
        is_there = np.zeros(len(self.labels), dtype=bool)
        is_there[chosen] = True
        self.there = is_there & (self.sums(np.ones(self.jobs)) > 0.5)
        self.count = int(self.there.sum())

    def sums(self, weights: Floats, start: int = 0, end: int | None = None) -> Floats:
        """Return for each label the sum of the weights of its jobs from ``start`` to ``end``."""
        low, high = np.searchsorted(self.job, (start, self.jobs if end is None else end))
        own = weights[self.job[low:high]]
        size = len(self.labels) + 1
        changes = np.bincount(self.first[low:high], own, size)
        changes -= np.bincount(self.last[low:high] + 1, own, size)
        sums: Floats = np.cumsum(changes[:-1])
        return sums

    def jobs_of(self, place: int) -> Ints:
        """Return the numbers of the jobs that a candidate was in."""
        found: Ints = self.job[(self.first <= place) & (place <= self.last)]
        return found

    def names_of(self, place: int) -> tuple[str, list[str]]:
        """Return the level and the names of a candidate, with those that were always with it."""
        alike = np.flatnonzero(self._alike == self._alike[place])
        labels = [self.labels[i] for i in alike.tolist()]
        level = labels[0][0]
        return level, [name for own, name in labels if own == level]


def _units_of(jobs: NodeJobs, level: GroupLevel) -> tuple[Ints, Ints]:
    """Return the units of a level that each job touched: numbers of jobs and of units."""
    starts = np.flatnonzero(np.diff(level.unit_of, prepend=-2))  # of pieces of one unit
    low = np.searchsorted(starts, jobs.first, "right") - 1
    high = np.searchsorted(starts, jobs.last, "right") - 1
    counts = high - low + 1
    job = np.repeat(jobs.job, counts)
    piece = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts - low, counts)
    unit = level.unit_of[starts[piece]]
    pairs = np.unique((job * len(level.units) + unit)[unit >= 0])
    found: tuple[Ints, Ints] = np.divmod(pairs, max(1, len(level.units)))
    return found


# ---- jobs that are bad by themselves ------------------------------------------------------


class _Habits:
    """How often jobs of each kind fail by themselves.

    The hazard of a job is the level of its kind times its ``shape`` by size, plus the ``storm`` of
    its hour. A kind has one of LEVELS; before each job it changes with a chance of ``switch`` to
    one that is drawn by ``odds``. What is told of a job rests on the jobs of its kind that ended
    before. ``scale``: how much commoner the evidence of a bad job is without a bad node than with.
    """

    def __init__(self, jobs: NodeJobs, scale: Floats) -> None:
        self.bad = jobs.bad
        self.scale = scale
        self.size = jobs.nodes / max(1.0, float(jobs.nodes.mean()))
        self.suit(np.ones(len(jobs.bad)), np.zeros(len(jobs.bad)))
        self.odds = np.full(len(LEVELS), 1 / len(LEVELS))
        self.switch = SWITCHES[1]
        self.order = np.argsort(jobs.kind, kind="stable")
        self._cut(jobs.kind[self.order])
        self.kind_of = jobs.kind[self.order[self.starts]]
        self.jobs_of_kind = np.bincount(jobs.kind)
        self.chain_of = np.empty(len(jobs.bad), dtype=np.int64)
        self.chain_of[self.order] = np.repeat(np.arange(len(self.lengths)), self.lengths)

    def _cut(self, kind: Ints) -> None:
        """Cut the jobs, in the order of their kinds, into chains of LONGEST at most."""
        starts = np.flatnonzero(np.diff(kind, prepend=-1))
        within = np.arange(len(kind)) - np.repeat(starts, np.diff(starts, append=len(kind)))
        self.starts = np.flatnonzero(within % LONGEST == 0)
        self.lengths = np.diff(self.starts, append=len(kind))

    def suit(self, shape: Floats, storm: Floats) -> None:
        """Take how risk grows with size, and the storms of hours."""
        self.shape, self.storm = shape, storm
        #: the chance that a job goes well by itself at each level; of bad ones how likely they are
        self.well = np.exp(-np.outer(shape, LEVELS) - storm[:, None])
        self.ill = np.where(self.bad[:, None], (1 - self.well) * self.scale[:, None], 0.0)

    def told(self, harm: Floats, chains: Ints) -> tuple[Ints, Floats, Floats, Floats]:
        """Return the jobs of these chains, their risks by themselves, the log-likelihood of each
        chain, and what is known of its level at the end. ``harm``: the hazard that accused nodes
        add to each job."""
        longest_first = np.argsort(-self.lengths[chains], kind="stable")
        lengths, starts = self.lengths[chains][longest_first], self.starts[chains][longest_first]
        state = np.tile(self.odds, (len(chains), 1))
        clean = np.exp(-harm)
        factor = np.where(self.bad, 1 - clean, clean)[:, None]
        jobs, risks, totals = list[Ints](), list[Floats](), list[Floats]()
        ones = np.ones(len(LEVELS))
        for step in range(int(lengths.max(initial=0))):
            active = int(np.searchsorted(-lengths, -step, "left"))
            job = self.order[starts[:active] + step]
            now = state[:active]
            if step:
                now *= 1 - self.switch
                now += self.switch * self.odds
            well = self.well[job]
            risks.append(1 - np.einsum("ij,ij->i", now, well))
            well *= factor[job]
            well += self.ill[job]
            now *= well
            total = now @ ones
            now /= total[:, None]
            totals.append(total)
            jobs.append(job)
        likelihood = np.empty(len(chains))
        told = np.zeros(len(chains))
        for total in totals:
            told[: len(total)] += np.log(total)
        ends = np.empty_like(state)
        likelihood[longest_first], ends[longest_first] = told, state
        empty = np.empty(0)
        return (
            np.concatenate([np.empty(0, dtype=np.int64), *jobs]),
            np.concatenate([empty, *risks]),
            likelihood,
            ends,
        )

    def learn(self, harm: Floats) -> None:
        """Learn the odds of levels, how often they change, and how risk grows with size."""
        rng = np.random.default_rng(0)
        mixed = rng.permutation(len(self.lengths))
        some = mixed[: int(np.searchsorted(np.cumsum(self.lengths[mixed]), LEARNED)) + 1]
        best = (-math.inf, self.odds, self.switch, self.shape)
        for mixture in MIXTURES:
            self.suit(1 - mixture + mixture * self.size, self.storm)
            best = max(best, self._learned(harm, some), key=lambda one: one[0])
        self.suit(best[3], self.storm)
        for self.switch in SWITCHES:
            best = max(best, self._learned(harm, some), key=lambda one: one[0])
        _, self.odds, self.switch, _ = best

    def _learned(self, harm: Floats, some: Ints) -> tuple[float, Floats, float, Floats]:
        """Return how likely some chains are by the odds of levels that they suggest, these odds,
        and what else was assumed."""
        self.odds = np.full(len(LEVELS), 1 / len(LEVELS))
        best = (-math.inf, self.odds)
        for _ in range(ROUNDS):
            _, _, likelihood, state = self.told(harm, some)
            best = max(best, (float(likelihood.sum()), self.odds), key=lambda one: one[0])
            self.odds = (state.sum(axis=0) + 0.1) / (len(state) + 0.1 * len(LEVELS))
        return *best, self.switch, self.shape


def _storms(jobs: NodeJobs, risks: Floats) -> tuple[Floats, list[int]]:
    """Return the hazard that hours add in which jobs of many kinds fail, for each job, and those
    hours (s): such as when the file system was away."""
    hours, hour = np.unique(jobs.ended // HOUR_S, return_inverse=True)
    kinds_of_hour = int(jobs.kind.max()) + 1
    pairs, first, pair, number = np.unique(
        hour * kinds_of_hour + jobs.kind,
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    of_hour = pairs // kinds_of_hour
    hit = np.bincount(pair, jobs.bad) > 0
    risk = 1 - (1 - np.minimum(risks[first], 0.999)) ** number  # as it was before the hour
    seen = np.bincount(of_hour, hit, len(hours))
    expected = np.bincount(of_hour, risk, len(hours))
    kinds = np.bincount(of_hour, minlength=len(hours))
    # Chernoff's bound on the tail of such a sum
    ratio = np.maximum(seen, 1e-9) / expected
    bound = np.where(ratio > 1, seen * np.log(ratio) - (seen - expected), 0)
    many = (
        (seen >= STORM_KINDS) & (ratio >= STORM_RATIO) & (bound > math.log(len(hours) / SPAN_LEVEL))
    )
    share = np.where(many, np.minimum((seen - expected) / kinds, 0.95), 0)
    return -np.log1p(-share)[hour], (hours[many] * HOUR_S).tolist()


# ---- the model ----------------------------------------------------------------------------


class _Accused(NamedTuple):
    """A candidate with the hazard that it adds to its jobs from number ``start`` on."""

    place: int
    harm: float
    start: int


class _State(NamedTuple):
    """What follows from a set of accused: the hazard that they add to each job, the risk of each by
    itself, the log-likelihood of each chain, and that of all jobs."""

    harm: Floats
    risk: Floats
    of_chains: Floats
    likelihood: float


class _Model:
    def __init__(self, jobs: NodeJobs, candidates: _Candidates, scale: Floats) -> None:
        self.jobs = jobs
        self.candidates = candidates
        self.scale = scale
        self.habits = _Habits(jobs, scale)
        self.hours: list[int] = []
        begin, end = int(jobs.ended[0]), int(jobs.ended[-1])
        froms = [end - part * (end - begin) for part in PARTS]
        self.parts = sorted({int(each) for each in np.searchsorted(jobs.ended, froms)})
        #: the logarithm of the odds of each part, and of each harm, before any evidence
        rest = math.log((1 - WHOLE) / max(1, len(self.parts) - 1))
        self.odds = [math.log(WHOLE), *[rest] * (len(self.parts) - 1)]
        self.price = math.log(candidates.count / SPAN_LEVEL)

    def learn(self, accused: Sequence[_Accused]) -> _State:
        """Learn habits anew beside these accused."""
        self.habits.learn(self._harm(accused))
        return self.state(accused)

    def state(self, accused: Sequence[_Accused]) -> _State:
        harm = self._harm(accused)
        everything = np.arange(len(self.habits.lengths))
        job, risk, of_chains, _ = self.habits.told(harm, everything)
        risks = np.empty(len(harm))
        risks[job] = risk
        return _State(harm, risks, of_chains, float(of_chains.sum()))

    def changed(self, state: _State, harm: Floats) -> _State:
        """Return the state with another hazard by accused: only chains with a bad job among those
        that changed are told anew."""
        differs = np.flatnonzero(harm != state.harm)
        bad = differs[self.jobs.bad[differs]]
        chains = np.unique(self.habits.chain_of[bad])
        job, risk, own, _ = self.habits.told(harm, chains)
        risks, of_chains = state.risk.copy(), state.of_chains.copy()
        good = differs[~self.jobs.bad[differs]]
        np.subtract.at(of_chains, self.habits.chain_of[good], (harm - state.harm)[good])
        risks[job], of_chains[chains] = risk, own
        return _State(harm, risks, of_chains, float(of_chains.sum()))

    def _harm(self, accused: Sequence[_Accused]) -> Floats:
        harm = np.zeros(len(self.jobs.bad))
        for one in accused:
            harm[self._touched(one)] += one.harm
        return harm

    def _touched(self, one: _Accused) -> Ints:
        own = self.candidates.jobs_of(one.place)
        touched: Ints = own[own >= one.start]
        return touched

    def gains(self, state: _State, harm: float) -> Floats:
        """Return what each job tells for (above 0) or against another node of this harm."""
        bad = self.jobs.bad
        before = np.exp(-state.harm[bad])
        risk, scale = state.risk[bad], self.scale[bad]
        was = scale * risk + (1 - risk) * (1 - before)
        now = scale * risk + (1 - risk) * (1 - before * math.exp(-harm))
        told = np.full(len(bad), -harm)
        told[bad] = np.log(now / was)
        return told

    def screened(self, state: _State) -> tuple[Floats, Ints, Ints]:
        """Return for each label its largest gain, less the odds of its harm and part of the time,
        and the places of these in HARMS and ``parts``."""
        size = len(self.candidates.labels)
        best = np.full(size, -math.inf)
        harms, parts = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        ends = [*self.parts[1:], len(self.jobs.bad)]
        for i, harm in enumerate(HARMS):
            told = self.gains(state, harm)
            gain = np.zeros(size)
            for k in range(len(self.parts) - 1, -1, -1):
                gain += self.candidates.sums(told, self.parts[k], ends[k])
                net = gain + self.odds[k] + math.log(ODDS_OF_HARM[i])
                better = net > best
                best[better] = net[better]
                harms[better], parts[better] = i, k
        best[~self.candidates.there] = -math.inf
        return best, harms, parts

    def best(self) -> tuple[list[_Accused], _State]:
        """Return the set of accused whose gain most exceeds its cost, with the state."""
        state = self.learn([])
        storm, self.hours = _storms(self.jobs, state.risk)
        self.habits.suit(self.habits.shape, storm)
        if self.hours:
            state = self.learn([])
        accused, state = self._grown([], state)
        if accused:
            state = self.learn(accused)
            accused, state = self._grown(accused, state)
            accused, state = self._polished(accused, state)
        return self._thinned(accused, state)

    def _polished(self, accused: list[_Accused], state: _State) -> tuple[list[_Accused], _State]:
        """Put for each of the accused, in turn, whatever explains best what the others leave; one
        for several that were in much the same jobs, if it explains nearly as much."""
        for _ in range(POLISHES):
            before = set(accused)
            for one in list(accused):
                if one not in accused:
                    continue
                company = self._company(one, accused)
                rest = [other for other in accused if other not in company]
                without = self.without(state, company)
                gain = self.gain(state, without, one) + sum(map(self._odds, company[1:]))
                found = self.next(rest, without)
                if found and found[2] > gain - self.price * (len(company) - 1) + 1e-6:
                    accused, state = [*rest, found[0]], found[1]
            if set(accused) == before:
                break
        return accused, state

    def _company(self, one: _Accused, accused: Sequence[_Accused]) -> list[_Accused]:
        """Return one of the accused with the others that were in most of its jobs."""
        own = self._touched(one)
        return [
            one,
            *(
                other
                for other in accused
                if other != one
                and len(np.intersect1d(own, self._touched(other))) > ALIKE * len(own)
            ),
        ]

    def _grown(self, accused: list[_Accused], state: _State) -> tuple[list[_Accused], _State]:
        """Add candidates, the one that gains most first."""
        accused = list(accused)
        weak = 0  # the latest that would not do alone: others may have to be explained first
        while len(accused) < min(MAX_ACCUSED, self.candidates.count) and weak < FURTHEST:
            found = self.next(accused, state)
            if found is None:
                break
            one, state, gain = found
            accused.append(one)
            weak = 0 if gain > self.price else weak + 1
        return accused, state

    def next(self, accused: list[_Accused], state: _State) -> tuple[_Accused, _State, float] | None:
        """Return the candidate that gains most, the state with it, and its gain."""
        gains, harms, parts = self.screened(state)
        gains[[one.place for one in accused]] = -math.inf
        found: tuple[_Accused, _State, float] | None = None
        for place in np.argsort(-gains)[:TRIED].tolist():
            if gains[place] < WORTH / 2 or (found and gains[place] < found[2] / 2):
                break
            part = int(parts[place])
            one = _Accused(place, HARMS[harms[place]], self.parts[part])
            harm = state.harm.copy()
            harm[self._touched(one)] += one.harm
            after = self.changed(state, harm)
            gain = self.gain(after, state, one)
            if gain >= WORTH and (found is None or gain > found[2]):
                found = one, after, gain
        return found

    def _thinned(self, accused: list[_Accused], state: _State) -> tuple[list[_Accused], _State]:
        """Remove candidates, the weakest first, until each that is left gains enough beside the
        others."""
        while accused:
            without = [self.without(state, [one]) for one in accused]
            own = [self.gain(state, each, one) for each, one in zip(without, accused, strict=True)]
            weakest = own.index(min(own))
            if own[weakest] > self.price:
                break
            accused = accused[:weakest] + accused[weakest + 1 :]
            state = without[weakest]
        return accused, state

    def gain(self, after: _State, before: _State, one: _Accused) -> float:
        """Return what one of the accused explains: the rise of the log-likelihood, less its odds
        before any evidence. Kinds that hardly ran elsewhere count little."""
        rise = after.of_chains - before.of_chains
        chains = np.flatnonzero(rise)
        kinds, kind = np.unique(self.habits.kind_of[chains], return_inverse=True)
        rises = np.bincount(kind, rise[chains], len(kinds))
        here = np.bincount(
            self.jobs.kind[self.candidates.jobs_of(one.place)], minlength=kinds.max(initial=0) + 1
        )
        total = self.habits.jobs_of_kind[kinds]
        least, share = ELSEWHERE
        is_lone = total - here[kinds] < np.maximum(least, share * total)
        rises[is_lone] = np.minimum(rises[is_lone], LONE)
        gain = float(rises.sum()) + self._odds(one)
        few = self.jobs.bad[self._touched(one)].sum() < MIN_BAD
        return min(gain, self.price) if few else gain

    def _odds(self, one: _Accused) -> float:
        of_harm = ODDS_OF_HARM[HARMS.index(one.harm)]
        return self.odds[self.parts.index(one.start)] + math.log(of_harm)

    def without(self, state: _State, accused: Sequence[_Accused]) -> _State:
        return self.changed(state, np.maximum(state.harm - self._harm(accused), 0).round(9))


def _scales(jobs: NodeJobs, blame: Sequence[float]) -> Floats:
    """Return for each job how much commoner its sort of evidence is among all bad jobs than among
    those that a bad node ruins, of which half are like all, and half are as ``blame`` says."""
    counts = np.bincount(jobs.sort[jobs.bad], minlength=len(blame)).astype(float)
    of_all = counts / max(1.0, counts.sum())
    of_bad_nodes = np.where(counts > 0, blame, 0)
    of_bad_nodes /= max(1e-9, of_bad_nodes.sum())
    scales: Floats = (2 * of_all / np.maximum(of_all + of_bad_nodes, 1e-9))[jobs.sort]
    scales[~jobs.bad] = 1
    return scales


# ---- what is told -------------------------------------------------------------------------


def find(
    jobs: NodeJobs,
    names: Sequence[str],
    levels: Sequence[GroupLevel] = (),
    blame: Sequence[float] = (1.0,),
) -> JobSuspects:
    """Return the nodes and groups that are accused by the jobs that they were in.

    ``names``: of the places of nodes. ``blame``: the odds of each sort of evidence if a bad node
    ruins a job.
    """
    bad = int(jobs.bad.sum())
    candidates = _Candidates(jobs, names, levels)
    if reason := too_little("job", MIN_JOBS, len(jobs.bad), bad, candidates.count):
        return JobSuspects([], [], [], len(jobs.bad), bad, bad, 0, 0, [], candidates.count, reason)
    model = _Model(jobs, candidates, _scales(jobs, blame))
    accused, state = model.best()
    left = jobs.bad & (state.harm == 0)
    suspects = [_suspect(model, state, one) for one in accused]
    return JobSuspects(
        suspects=sorted(suspects, key=lambda each: -each.gain),
        runners_up=_runners_up(model, state, accused),
        reach=[_reach(model, state, share, len(names)) for share in SHARES],
        jobs=len(jobs.bad),
        bad=bad,
        unexplained=int(left.sum()),
        by_kind=int((left & (state.risk >= 0.5) & (model.habits.storm == 0)).sum()),
        by_hour=int((left & (model.habits.storm > 0)).sum()),
        hours=model.hours,
        candidates=candidates.count,
    )


def _suspect(model: _Model, state: _State, one: _Accused) -> JobSuspect:
    """Return one of the accused with its evidence."""
    without = model.without(state, [one])
    gain = model.gain(state, without, one)
    own = model.candidates.jobs_of(one.place)
    told = model.gains(without, one.harm)
    start, since = _since(told[own], one, own)
    part = own[start:]
    hits = part[model.jobs.bad[part]]
    level, names = model.candidates.names_of(one.place)
    risk = 1 - (1 - without.risk[part]) * np.exp(-without.harm[part])
    rivals = model.candidates.sums(told, one.start)
    rivals[~model.candidates.there] = -math.inf
    rivals[one.place] = -math.inf
    near = np.flatnonzero(rivals > float(told[own[own >= one.start]].sum()) - RIVAL)
    return JobSuspect(
        names,
        level,
        part.tolist(),
        hits.tolist(),
        float(risk.sum()),
        int(model.jobs.ended[part[0]]) if since else None,
        -math.expm1(-one.harm),
        gain,
        min(1.0, model.candidates.count * math.exp(-gain)),
        len(np.unique(model.jobs.kind[hits])),
        [model.candidates.labels[place][1] for place in near[np.argsort(-rivals[near])].tolist()],
    )


def _since(told: Floats, one: _Accused, own: Ints) -> tuple[int, bool]:
    """Return the place among its jobs from which on one of the accused is bad, and whether that is
    later than the first: where the jobs from there on tell so much more than all that the choice
    among so many starts is paid for."""
    after = np.cumsum(told[::-1])[::-1]
    start = int(after.argmax())
    is_later = start > 0 and float(after[start] - after[0]) > LATER + math.log(len(own))
    return (start, True) if is_later else (0, False)


def _runners_up(model: _Model, state: _State, accused: Sequence[_Accused]) -> list[RunnerUp]:
    """Return the candidates that gain most beside the accused, those of several of much the same
    jobs once, with the jobs that each needs."""
    found = []
    accused = list(accused)
    for _ in range(RUNNERS_UP):
        following = model.next(accused, state)
        if following is None:
            break
        one, after, gain = following
        own = model.candidates.jobs_of(one.place)
        own = own[own >= one.start]
        mean, _ = _expected(model, state, one.harm)
        each = max(1e-3, float(mean[own].mean()))
        level, names = model.candidates.names_of(one.place)
        missing = MIN_BAD - int(model.jobs.bad[own].sum())
        more = max(1, missing, math.ceil((model.price - gain) / each))
        risk = 1 - (1 - state.risk[own]) * np.exp(-state.harm[own])
        hits = int(model.jobs.bad[own].sum())
        found.append(RunnerUp(names, level, len(own), hits, float(risk.sum()), more))
        accused.append(one)
        state = after
    return found


def _expected(model: _Model, state: _State, harm: float) -> tuple[Floats, Floats]:
    """Return what each job is expected to tell of a bad node of this harm, and its variance."""
    risk = 1 - (1 - state.risk) * np.exp(-state.harm)
    risk = np.maximum(risk, 1e-6)
    bad = 1 - (1 - risk) * math.exp(-harm)
    tells = np.log(bad / risk)
    mean = bad * tells - (1 - bad) * harm
    variance: Floats = bad * (1 - bad) * (tells + harm) ** 2
    return mean, variance


def _reach(model: _Model, state: _State, share: float, nodes: int) -> Reach:
    """Return which nodes would be found if they ruined this share of their jobs."""
    harm = min(HARMS[-1], -math.log(max(1e-9, 1 - share)))
    nearest = min(HARMS, key=lambda each: abs(math.log(each / harm)))
    price = model.price - model.odds[0] - math.log(ODDS_OF_HARM[HARMS.index(nearest)])
    mean, variance = _expected(model, state, harm)
    sums = [model.candidates.sums(each)[:nodes] for each in (mean, variance, np.ones(len(mean)))]
    found = sums[0] - NINE_IN_TEN * np.sqrt(np.maximum(sums[1], 0)) > price
    jobs = np.maximum(sums[2][~found], 1)
    m = np.where(sums[2][~found] > 0.5, sums[0][~found] / jobs, mean.mean())
    v = np.where(sums[2][~found] > 0.5, sums[1][~found] / jobs, variance.mean())
    m, v = np.maximum(m, 1e-6), np.maximum(v, 0)
    # n jobs tell n m - NINE_IN_TEN sqrt(n v) in nine cases of ten
    root = (NINE_IN_TEN * np.sqrt(v) + np.sqrt(NINE_IN_TEN**2 * v + 4 * m * price)) / (2 * m)
    more = np.ceil(root**2 - sums[2][~found])
    middle = max(1, int(np.median(more))) if len(more) else 0
    return Reach(share, int(found.sum()), nodes, middle)
