"""The sweep of a tuning: which points of a grid with ordered axes run next.

    sweep = Sweep(rules)                # used as a race is: see ``race``
    sweep.answer("write").best

A figure rises with nodes, tasks and sizes, saturates, and may fall again: so a few points tell of
their neighbours, and most of the grid need not run. The first block is a part of the grid that is
spread evenly, from small to large. Each further block has the points that may be best by the
surface through all figures (``statistics.trends``): those with the highest upper bound, each
chosen as if the ones before it had run (Desautels, Krause and Burdick 2014). A point that ran may
run again, where noise hides which point is best. The best one by now runs in every block, so that
a file system that is slower for a time is told from a worse point.

The sweep ends where no point may be better than the best one by ``least``, or by a limit of runs or
of time. Its last block repeats the points that the answer names. With several metrics (write and
read) each has its surface, and its points in every block.

A point that fails has no figure: it never counts as slow. Where three points with one value of an
axis failed and none passed, the others with that value are left out.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from statistics import NormalDist, median
from typing import Literal

from msgspec import Struct

from seatrial.decide.once import shuffled
from seatrial.judge.statistics.trends import Surface, SurfaceFit
from seatrial.lazy import Bools, Floats, Ints, np
from seatrial.model.policy import RaceRules
from seatrial.units import Better

PLATEAU = 0.05  # below the best, as ``best`` calls a plateau
KNEE = 0.9  # of the best
_CONFIDENCE = 0.95
_SCREENING = 0.2  # of the runs, for the first block
_BLOCKS = 16  # among which the other runs are divided
_UPPER = 2.0  # deviations, of the upper bounds by which points are chosen
_IMPROVES = 2.6  # deviations, of those by which it is asked whether any point may be better
_LEAST_BLOCK = 3  # runs, for each metric
_REPEATS = 3  # of the points that the answer names
_RESERVED = 6  # runs for these
_HOPELESS = 3  # failed points with one value of an axis, and none that passed
_MAX_CUTS = 3
_DIGITS = 9  # of bounds: their last digits differ between machines

Ending = Literal["", "nothing improves", "runs", "time", "no figure", "no point"]


class SweptRun(Struct, frozen=True):
    """A run with a right answer: its setting and block, its figures by metric, as logarithms of
    which more is better, and the seconds of its script (0: unknown)."""

    setting: int
    block: int
    figures: dict[str, float]
    seconds: float


class SweepAnswer(Struct, frozen=True):
    """What a sweep found for one metric, as numbers of settings that ran.

    ``plateau``: those within 5 % of the best, by the surface. ``cheapest``: the one of them with
    the fewest node-hours a run. ``knee``: the fewest nodes, then tasks, with 90 % of the best: as
    Hockney's n1/2 (1988), at which half of the best rate is reached, but with nine tenths.
    """

    best: int
    plateau: list[int]
    cheapest: int
    knee: int


class SweptDrop(Struct, frozen=True):
    """Why and after which block (from 1 on) a setting runs no more."""

    block: int
    cause: str
    by: None = None


class Sweep:
    """A sweep: a fold over the figures and failures of its runs. ``spent``: the seconds of its
    blocks so far; ``ending``: why it is over, "" while it is not."""

    def __init__(self, rules: RaceRules) -> None:
        count = len(rules.levels)
        self.rules = rules
        self.metrics: dict[str, Better] = {rules.metric: rules.better, **rules.others}
        self._levels: Ints = np.array(rules.levels, dtype=np.int64).reshape(count, -1)
        self._ordered = rules.ordered or [False] * self._levels.shape[1]
        self.passed: list[SweptRun] = []
        self.failures: list[list[str]] = [[] for _ in range(count)]
        self.cuts: list[list[str]] = [[] for _ in range(count)]
        self.runs = [0] * count
        self.dropped: dict[int, SweptDrop] = {}
        self.blocks: list[list[list[int]]] = []
        self.spent = 0.0
        self.ending: Ending = ""
        self._surfaces = {name: Surface(self._levels, self._ordered) for name in self.metrics}
        self._fits: dict[str, SurfaceFit] = {}
        self._repeated = False  # whether the last block has begun

    # ---- what happened ----------------------------------------------------------------------

    @property
    def rounds_begun(self) -> int:
        """The number of rounds before the current block."""
        return sum(map(len, self.blocks[:-1]))

    def record(
        self,
        setting: int,
        number: int,
        figure: float,
        others: Mapping[str, float] | None = None,
        seconds: float = 0.0,
    ) -> None:
        """Record the figure of a setting, those of the other metrics, and the time of its script.
        A run without a figure of each metric has failed."""
        measured = {self.rules.metric: figure, **(others or {})}
        logarithms = {}
        for name, better in self.metrics.items():
            value = measured.get(name)
            if value is None or not (math.isfinite(value) and value > 0):
                shown = "no figure" if value is None else f"{value:g} is no figure"
                self.fail(setting, number, f"{shown} of {name}; a sweep needs figures above 0")
                return
            logarithms[name] = math.log(value) * (1 if better == "higher" else -1)
        self.runs[setting] += 1
        self.passed.append(SweptRun(setting, len(self.blocks), logarithms, seconds))
        self._fits = {}

    def fail(self, setting: int, number: int, cause: str) -> None:
        """Record that a run of a setting gave no figure, and why."""
        self.runs[setting] += 1
        self.failures[setting].append(cause)

    def cut_off(self, setting: int, number: int, cause: str) -> None:
        """Record that a run was ended from outside, and why: its setting may run again, unless that
        happened too often."""
        self.runs[setting] += 1
        self.cuts[setting].append(cause)
        if len(self.cuts[setting]) == _MAX_CUTS:
            self.exclude(setting, f"{_MAX_CUTS} runs had no result: {cause}")

    def exclude(self, setting: int, cause: str) -> None:
        """Record that a setting cannot run at all, and why."""
        self.dropped[setting] = SweptDrop(len(self.blocks), cause)

    def end_block(self) -> None:
        """Drop the settings that failed in a quarter of their runs or more."""
        n = self.n
        for setting in {each for order in self.blocks[-1] for each in order}:
            failed = self.failures[setting]
            if failed and len(failed) * 3 >= n[setting]:
                self.exclude(setting, failed[-1])

    # ---- what is known ----------------------------------------------------------------------

    @property
    def n(self) -> Ints:
        """How many figures each setting has."""
        counts: Ints = np.bincount(
            np.array([run.setting for run in self.passed], dtype=np.int64),
            minlength=len(self._levels),
        )
        return counts

    def fit(self, metric: str) -> SurfaceFit | None:
        """Return the surface of a metric; None where no run has a figure."""
        if not self.passed:
            return None
        if metric not in self._fits:
            self._fits[metric] = self._surfaces[metric].fit(
                [run.setting for run in self.passed],
                [run.figures[metric] for run in self.passed],
                [run.block for run in self.passed],
            )
        return self._fits[metric]

    def answer(self, metric: str) -> SweepAnswer | None:
        """Return what is known of a metric by now; None where no setting has a figure."""
        fit, ran = self.fit(metric), self._can_be_named()
        if fit is None or not ran:
            return None
        best = self._best(fit, ran)
        beside = fit.mean - fit.mean[best]
        plateau = [each for each in ran if beside[each] >= math.log(1 - PLATEAU)]
        knees = [each for each in ran if beside[each] >= math.log(KNEE)]
        cheapest = min(plateau, key=lambda each: (self.node_hours(each), self._small(each)))
        return SweepAnswer(best, plateau, cheapest, min(knees, key=self._small))

    def interval(self, metric: str, answer: SweepAnswer) -> tuple[float, float]:
        """Return the interval of the logarithm of the best setting's figure. It holds for each
        setting on the plateau, as the best one was chosen among them (Bonferroni)."""
        fit = self.fit(metric)
        assert fit is not None  # as there is an answer
        tail = (1 - _CONFIDENCE) / 2 / len(answer.plateau)
        reach = NormalDist().inv_cdf(1 - tail) * float(fit.deviation[answer.best])
        centre = float(fit.mean[answer.best])
        return centre - reach, centre + reach

    def node_hours(self, setting: int) -> float:
        """Return what a run of a setting takes, by the median time of its scripts; infinity where
        no time is known."""
        known = [run.seconds for run in self.passed if run.setting == setting and run.seconds]
        nodes = self.rules.sizes[setting][0] if self.rules.sizes else 1
        return nodes * median(known) / 3600 if known else math.inf

    def _can_be_named(self) -> list[int]:
        """Return the settings that have figures and were not dropped."""
        return [int(each) for each in np.flatnonzero(self.n) if int(each) not in self.dropped]

    def _best(self, fit: SurfaceFit, ran: Sequence[int]) -> int:
        """Return the best setting of those with two figures, or with one where none has two."""
        n = self.n
        least = min(2, max(n[each] for each in ran))
        named = [each for each in ran if n[each] >= least]
        return min(named, key=lambda each: (-round(float(fit.mean[each]), _DIGITS), each))

    def _small(self, setting: int) -> tuple[object, ...]:
        """Return the key by which settings go from small to large: nodes, tasks, their number."""
        sizes = self.rules.sizes or self.rules.levels
        return (*sizes[setting], setting)

    def left_out(self) -> dict[int, tuple[int, int]]:
        """Return the settings that never ran and are left out as others with one of their values
        failed, and that value: the axis and the level."""
        return {
            int(setting): (axis, level)
            for axis, level in self._hopeless()
            for setting in np.flatnonzero(self._levels[:, axis] == level)
            if not self.runs[int(setting)]
        }

    def _hopeless(self) -> list[tuple[int, int]]:
        """Return the values (axis, level) with which three points failed and none passed."""
        failed: Counter[tuple[int, int]] = Counter()
        passed: set[tuple[int, int]] = set()
        n = self.n
        for setting, levels in enumerate(self.rules.levels):
            if n[setting]:
                passed.update(enumerate(levels))
            elif setting in self.dropped:
                failed.update(enumerate(levels))
        return [each for each, count in failed.items() if count >= _HOPELESS and each not in passed]

    # ---- what is next -----------------------------------------------------------------------

    def next_block(self) -> list[list[int]]:
        """Begin the next block. Return the settings of each of its rounds in order; none where the
        sweep is over."""
        rounds = [sorted(each, key=self._small) for each in self._next() if each]
        if rounds:
            self.blocks.append(rounds)
        return rounds

    def _next(self) -> list[list[int]]:
        if self._repeated or self.ending in ("no figure", "no point"):
            return []
        if not self.blocks:
            return [self._spread(first_block(self.rules))]
        if not self._can_be_named():
            self.ending = "no figure"
            return []
        size = self._room()
        if size:
            chosen = self._chosen(size)
            if chosen:
                return [chosen]
            self.ending = "nothing improves"
        self._repeated = True
        return self._repeats()

    def _room(self) -> int:
        """Return the runs of the next block, 0 where a limit is reached."""
        rules, done = self.rules, sum(self.runs)
        reserved = min(_RESERVED * len(self.metrics), rules.runs // 5)
        least = _LEAST_BLOCK * len(self.metrics)
        size = max(least, round((1 - _SCREENING) * rules.runs / _BLOCKS))
        room = min(size, rules.runs - done - reserved)
        if room < 1:
            self.ending = "runs"
            return 0
        if rules.seconds and done:
            left = rules.seconds - self.spent
            room = min(room, int(left / max(self.spent / done, 1e-9)) - reserved)
            if room < 1:
                self.ending = "time"
        return max(0, room)

    def _repeats(self) -> list[list[int]]:
        """Return the rounds of the last block: the points that the answer names, as often as they
        lack figures and the limits allow."""
        n = self.n
        named = Counter[int]()
        for metric in self.metrics:
            fit, answer = self.fit(metric), self.answer(metric)
            assert fit is not None and answer is not None  # as some setting can be named
            ran = self._can_be_named()
            highest = ran[int(fit.mean[ran].argmax())]  # it may have one figure alone
            for each in (answer.best, answer.cheapest, answer.knee, highest):
                named[each] = max(0, _REPEATS - int(n[each]))
        left = self.rules.runs - sum(self.runs)
        if self.rules.seconds:
            a_run = self.spent / max(1, sum(self.runs))
            left = min(left, int((self.rules.seconds - self.spent) / max(a_run, 1e-9)))
        rounds = []
        for number in range(_REPEATS):
            members = [each for each, lacking in named.items() if lacking > number][: max(0, left)]
            left -= len(members)
            rounds.append(members)
        return rounds

    def _chosen(self, size: int) -> list[int]:
        """Return the points of the next block: those that may be best, of each metric in turn. None
        where nothing may be better than what is best by now."""
        may_run = np.ones(len(self._levels), dtype=bool)
        may_run[[*self.dropped, *self.left_out()]] = False
        orders = []
        for metric in self.metrics:
            fit = self.fit(metric)
            assert fit is not None  # as some setting can be named
            best = self._best(fit, self._can_be_named())
            if self._may_improve(fit, best, may_run):
                orders.append(_most_promising(fit, best, may_run, size))
        in_turn = chain.from_iterable(zip_longest(*orders))
        return list(dict.fromkeys(each for each in in_turn if each is not None))[:size]

    def _may_improve(self, fit: SurfaceFit, best: int, may_run: Bools) -> bool:
        """Return whether some point may be better than the best one by what matters, or the best
        one has too few figures."""
        upper = np.where(may_run, fit.mean + _IMPROVES * fit.deviation, -np.inf)
        upper[best] = -np.inf
        gain = float(upper.max(initial=-math.inf)) - float(fit.mean[best])
        return gain >= math.log1p(self.rules.min_effect) or self.n[best] < _REPEATS

    def _spread(self, places: int) -> list[int]:
        """Return points that are spread evenly over the grid: each time the one that is furthest
        from those before it, as charges repel each other."""
        order = shuffled(range(len(self._levels)), f"{self.rules.seed}")
        order = [each for each in order if each not in self.dropped]
        chosen = [self.rules.default] if self.rules.default in order else order[:1]
        crowd = self._crowd(chosen[0]) if chosen else np.zeros(0)
        while chosen and len(chosen) < min(places, len(order)):
            nearest = min(order, key=crowd.__getitem__)
            chosen.append(nearest)
            crowd = crowd + self._crowd(nearest)
        return chosen

    def _crowd(self, setting: int) -> Floats:
        """Return how near a setting is to each one."""
        apart = np.zeros(len(self._levels))
        for axis, ordered in enumerate(self._ordered):
            gap = np.abs(self._levels[:, axis] - self._levels[setting, axis])
            longest = max(1, int(self._levels[:, axis].max()))
            apart += 1.5 * gap / longest if ordered else 0.5 * (gap > 0)
        near: Floats = 1 / (apart + 1e-3) ** 2
        return near


def first_block(rules: RaceRules) -> int:
    """Return the runs of the first block of a sweep."""
    return min(rules.runs, len(rules.levels), max(2, round(_SCREENING * rules.runs)))


def _most_promising(fit: SurfaceFit, best: int, may_run: Bools, size: int) -> list[int]:
    """Return the best point, then those with the highest upper bounds, each by the deviations that
    remain if the ones before it run."""
    chosen, variance = [best], fit.deviation**2
    known: list[tuple[Floats, float]] = []
    for _ in range(size - 1):
        column = fit.column(chosen[-1])
        for other, scale in known:
            column = column - other * (other[chosen[-1]] / scale)
        scale = max(float(column[chosen[-1]]), 0.0) + fit.noise**2
        known.append((column, scale))
        variance = variance - column**2 / scale
        upper = np.round(fit.mean + _UPPER * np.sqrt(np.maximum(variance, 0.0)), _DIGITS)
        upper = np.where(may_run, upper, -np.inf)
        upper[chosen] = -np.inf
        following = int(upper.argmax())
        if not math.isfinite(upper[following]):
            break
        chosen.append(following)
    return chosen
