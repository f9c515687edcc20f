"""The race of a tuning: which settings run next, and which cannot win any more.

    race = Race(rules)
    while rounds := race.next_block():         # e.g. [[3, 0, 1, 2], [1, 2, 3, 0]]: two rounds
        for number, settings in enumerate(rounds, race.rounds_begun):
            for setting in settings:
                race.record(setting, number, figure)  # or fail(..., cause), cut_off(..., cause)
        race.end_block()
    race.answer().best

A block is one allocation: its settings run round by round, each round in an order of its own, so
that nodes and drift are the same for all. The first block runs every setting (of a grid that the
cost does not allow, a balanced part of it). Settings whose figures in the same rounds are worse
than those of another one, at a level that holds at every look (``statistics.sequential``), are
dropped.
Where the cost does not allow all others either, those go on that may be best by their own figures,
by the effects of their levels, or by both (``statistics.main_effects``); the others are left out,
which proves nothing about them. From the third block on, half as many settings run twice as often.

Whether a setting is better than the default is decided by the intervals that hold at every look,
or by the last block alone (``statistics.confirmation``), whose settings are asked in the order that
they had before it: the next only if the one before is shown to be better, so that none of them
spends error (Maurer, Hothorn and Lehmacher 1995). What the rule for runs without rounds tells
(``statistics.two_sample``, as ``best`` does) is told, too.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

from msgspec import Struct

from seatrial.decide.demand import Budget, ChosenRun, Demand
from seatrial.decide.in_flight import InFlightCounts, Requests, RunInFlight
from seatrial.decide.once import shuffled
from seatrial.decide.sweep import Sweep
from seatrial.judge.statistics.sequential import (
    AllocationNoise,
    BlockNoise,
    beside,
    evidence,
    interval,
    means_of,
)
from seatrial.judge.statistics.trends import SettingPrediction, predict
from seatrial.lazy import Floats, Ints, np
from seatrial.model.codes import CUT_OFF, PASS, PERFORMANCE, code_of
from seatrial.model.figures import ELAPSED
from seatrial.model.policy import Policy, RaceRules
from seatrial.model.test import Case
from seatrial.units import SECOND_NS

ALPHA = 0.05
_LOOKS = 0.01  # of this error, the part of the intervals that hold at every look
_DIGITS = 9  # of predictions: their last digits differ between machines
_LEAST_PLACES = 6  # of settings that go on, rather than more rounds of fewer
_SCREENING = 2  # the first block may take one part of so many of the cost


class Dropped(Struct, frozen=True):
    """Why and after which block (from 1 on) a setting was dropped: it is worse than another one
    (``by``), or failed (``cause``)."""

    block: int
    by: int | None = None
    cause: str = ""


class SettingInterval(NamedTuple):
    """The logarithm of a ratio of figures, its interval, and the number of rounds that tell it."""

    value: float
    low: float
    high: float
    n: int


class RaceAnswer(Struct, frozen=True):
    """What a race found. ``best`` is None where no setting has a figure; ``advised`` is the
    setting to use: the best, or the default where no difference to it is shown. ``by_rounds``: the
    rounds alone show it, and the figures without them do not."""

    best: int | None
    advised: int | None
    to_default: SettingInterval | None
    untold: list[int]
    by_rounds: bool = False


class Race:
    """One race: a fold over the figures and failures of its runs. Logarithms of figures are turned
    so that less is better."""

    def __init__(self, rules: RaceRules) -> None:
        self.rules = rules
        count = len(rules.levels)
        self._levels: Ints = np.array(rules.levels, dtype=np.int64).reshape(count, -1)
        self.figures: Floats = np.full((count, 0), np.nan)
        self.failures: list[list[str]] = [[] for _ in range(count)]
        self.cuts: list[list[str]] = [[] for _ in range(count)]
        self.runs = [0] * count
        self.dropped: dict[int, Dropped] = {}
        self.blocks: list[list[list[int]]] = []  # of each block its rounds, of these the settings
        self.noise: BlockNoise | None = None
        self._prediction: SettingPrediction | None = None
        self._order: list[int] = []  # of the settings of the latest block, the best first, before
        self._open = False

    # ---- what happened ----------------------------------------------------------------------

    @property
    def rounds_begun(self) -> int:
        """The number of rounds before the current block."""
        return sum(map(len, self.blocks[:-1])) if self._open else sum(map(len, self.blocks))

    @property
    def alive(self) -> list[int]:
        """The settings that were not dropped."""
        return [each for each in range(len(self.rules.levels)) if each not in self.dropped]

    def record(self, setting: int, number: int, figure: float) -> None:
        """Record the figure of a setting in a round (from 0 on)."""
        if not (math.isfinite(figure) and figure > 0):
            self.fail(setting, number, f"its figure is {figure:g}; ratios need figures above 0")
            return
        self.runs[setting] += 1
        sign = 1 if self.rules.better == "lower" else -1
        self.figures[setting, number] = sign * math.log(figure)

    def fail(self, setting: int, number: int, cause: str) -> None:
        """Record that a run of a setting gave no figure, and why."""
        self.runs[setting] += 1
        self.failures[setting].append(cause)

    def cut_off(self, setting: int, number: int, cause: str) -> None:
        """Record that a run of a setting was ended from outside, and why: it has no figure, and
        nothing is held against the setting."""
        self.runs[setting] += 1
        self.cuts[setting].append(cause)

    def exclude(self, setting: int, cause: str) -> None:
        """Drop a setting that cannot run at all, and say why."""
        self.dropped[setting] = Dropped(len(self.blocks), cause=cause)

    def end_block(self) -> None:
        """Look at the figures, and drop what cannot win."""
        self._open = False
        block = len(self.blocks)
        for setting in sorted({each for order in self.blocks[-1] for each in order}):
            passed = np.isfinite(self.figures[setting]).sum()
            failed = len(self.failures[setting])
            if failed and failed * 3 >= passed:
                self.dropped[setting] = Dropped(block, cause=self.failures[setting][-1])
        self.noise = BlockNoise.of(self.figures)
        if self.rules.search == "race" and self.noise is not None:
            self._drop_worse(block, self.noise)
        self._prediction = None

    def _drop_worse(self, block: int, noise: BlockNoise) -> None:
        wanted = math.log(max(1, len(self.rules.levels) - 1) / ALPHA)
        alive = [each for each in self.alive if np.isfinite(self.figures[each]).any()]
        ranked = self._ranked(alive)
        figures = self.figures[ranked]
        for place, setting in enumerate(ranked):
            shown = evidence(figures[place] - figures[:place], noise)
            if place and shown.max() >= wanted:
                self.dropped[setting] = Dropped(block, by=ranked[int(shown.argmax())])

    def differences(self, setting: int, other: int) -> Floats:
        """Return the differences of two settings in the rounds in which both have a figure."""
        both = self.figures[setting] - self.figures[other]
        known: Floats = both[np.isfinite(both)]
        return known

    # ---- what is next -----------------------------------------------------------------------

    def next_block(self) -> list[list[int]]:
        """Begin the next block. Return the settings of each of its rounds in order; none where the
        race is over."""
        members, rounds = self._next()
        if not members or not rounds:
            return []
        self._order = self._ranked(members) if self.blocks else []
        first = sum(map(len, self.blocks))
        block = [shuffled(members, f"{self.rules.seed} {first + n}") for n in range(rounds)]
        self.blocks.append(block)
        self._open = True
        new = np.full((len(self.rules.levels), rounds), np.nan)
        self.figures = np.concatenate((self.figures, new), axis=1)
        return block

    def _next(self) -> tuple[list[int], int]:
        """Return the settings and the number of rounds of the next block."""
        rules, alive = self.rules, self.alive
        left, blocks = rules.runs - sum(self.runs), rules.allocations - len(self.blocks)
        if blocks < 1 or not alive or (self.blocks and self._decided):
            return [], 0
        if rules.search == "grid":
            return alive, rules.rounds
        share = left // blocks
        if not self.blocks:
            max_settings = max(1, rules.runs // (_SCREENING if blocks > 1 else 1))
            members = alive if len(alive) <= max_settings else self._balanced(max_settings)
            return members, max(1, min(rules.rounds, share // len(members)))
        if rules.search == "halving":
            members = self._better_half()
            return members, min(rules.rounds, left // max(1, len(members)))
        members = sorted({*alive, *self._yardstick()})
        rounds = rules.rounds * 2 ** (len(self.blocks) - 1)  # half as many settings twice as often
        places = max(share // rounds, min(share, _LEAST_PLACES))
        if len(members) > places:
            members = self._chosen(places)
        return members, min(rounds, share // len(members))

    def _better_half(self) -> list[int]:
        """Return the better half of the settings of the latest block (successive halving: Karnin,
        Koren and Somekh 2013)."""
        ran = [each for each in self.blocks[-1][0] if each not in self.dropped]
        means, _ = means_of(self.figures, self.noise)
        return sorted(sorted(ran, key=lambda each: (means[each], each))[: -(-len(ran) // 2)])

    @property
    def _decided(self) -> bool:
        """Whether nothing is left to compare: one setting has won, or none has a figure."""
        return len(self.alive) < 2 or not np.isfinite(self.figures).any()

    def _yardstick(self) -> list[int]:
        """Return the default, which runs in every block, though it may have lost: what the others
        gain is told beside it. None where it fails."""
        default = self.rules.default
        failed = default in self.dropped and self.dropped[default].cause
        return [] if failed else [default]

    def _chosen(self, places: int) -> list[int]:
        """Return the settings that go on: the default, and in turn those that may be best by all
        that is known, by their own figures, and by what the others tell. One run may have been
        disturbed, and a setting may be better than its levels tell."""
        known = self.prediction()
        means, _ = means_of(self.figures, self.noise)
        views = (
            known.mean - known.deviation,
            np.nan_to_num(means, nan=np.inf),
            known.without - known.without_deviation,
        )
        orders = [self._by(each, self.alive) for each in views]
        in_turn = chain(self._yardstick(), *zip(*orders, strict=True))
        return sorted([*dict.fromkeys(in_turn)][:places])

    def _balanced(self, places: int) -> list[int]:
        """Return a part of the grid in which levels and pairs of levels are about equally
        frequent: each time the setting that adds most to those that are rarest."""
        levels = self._levels
        order = shuffled(range(len(levels)), f"{self.rules.seed}")
        chosen = [self.rules.default]
        alike = np.array([levels == row for row in levels], dtype=float).sum(axis=2)
        crowd = alike[self.rules.default] ** 2
        while len(chosen) < places:
            nearest = min((each for each in order if each not in chosen), key=crowd.__getitem__)
            chosen.append(nearest)
            crowd = crowd + alike[nearest] ** 2
        return sorted(chosen)

    # ---- what is known ----------------------------------------------------------------------

    def prediction(self) -> SettingPrediction:
        """Return what is known of each setting, those that never ran included."""
        if self._prediction is None:
            means, runs = means_of(self.figures, self.noise)
            noise = self.noise and self.noise.scale / math.sqrt(2)
            self._prediction = predict(self._levels, means, runs, noise)
        return self._prediction

    def _ranked(self, settings: Sequence[int]) -> list[int]:
        return self._by(self.prediction().mean, settings)

    @staticmethod
    def _by(values: Floats, settings: Sequence[int]) -> list[int]:
        """Return settings by rising values."""
        rounded = np.round(values, _DIGITS)
        return sorted(settings, key=lambda each: (rounded[each], each))

    def ratio(self, setting: int, other: int, alpha: float = ALPHA) -> SettingInterval | None:
        """Return the logarithm of the ratio of two settings, with an interval that holds at every
        look and for all settings; None where they have no round in common."""
        both = self.differences(setting, other)
        if not len(both) or self.noise is None:
            return None
        low, high = interval(both, self.noise, alpha / max(1, len(self.rules.levels) - 1))
        return SettingInterval(self.noise.centre(both), low, high, len(both))

    def _to_default(self, best: int) -> SettingInterval | None:
        """Return the ratio of the best setting to the default, with the narrower interval: that of
        all rounds, or that of the last block."""
        default = self.rules.default
        if best == default:
            return None
        noise = None if self._open else AllocationNoise.of(self._figures_of_blocks())
        if noise is None:
            return self.ratio(best, default)
        intervals = [self.ratio(best, default, _LOOKS), self._confirmed(best, noise)]
        intervals_known = [each for each in intervals if each is not None]
        return min(intervals_known, key=lambda each: each.high - each.low, default=None)

    def _figures_of_blocks(self) -> list[Floats]:
        edges = [0, *accumulate(map(len, self.blocks))]
        return [self.figures[:, one:other] for one, other in pairwise(edges)]

    def _confirmed(self, best: int, noise: AllocationNoise) -> SettingInterval | None:
        """Return the ratio of the best setting to the default by the last block alone. None where
        it is not asked for, as one that was before it in the order is not shown to be better."""
        last = self._figures_of_blocks()[-1]
        for each in self._order:
            both = last[each] - last[self.rules.default]
            both = both[np.isfinite(both)]
            if each == self.rules.default or not len(both):
                continue
            contrast = noise.contrast(both, ALPHA - _LOOKS)
            if each == best:
                return SettingInterval(contrast.centre, contrast.low, contrast.high, len(both))
            if contrast.high >= 0:
                break
        return None

    def answer(self) -> RaceAnswer:
        """Return what is known by now."""
        finalists = self._finalists()
        default = self.rules.default
        if not finalists:
            return RaceAnswer(None, None, None, [])
        best = self._ranked(finalists)[0]
        by_rule, to_default = self._by_rule(best), self._to_default(best)
        untold = [
            setting
            for setting in finalists
            if setting != best and setting not in by_rule and not self._is_better(best, setting)
        ]
        lost = self.dropped.get(default)
        if best == default or (lost is not None and lost.cause):
            return RaceAnswer(best, best, to_default, untold)
        shown = lost is not None or (to_default is not None and to_default.high < 0)
        enough = to_default is None or to_default.value <= math.log1p(-self.rules.min_effect)
        if shown and enough:
            return RaceAnswer(best, best, to_default, untold, by_rounds=default not in by_rule)
        if default in by_rule:
            return RaceAnswer(best, best, by_rule[default], untold)
        return RaceAnswer(best, default, to_default, untold)

    def _is_better(self, setting: int, other: int) -> bool:
        """Return whether the rounds show that a setting is better than another."""
        ratio = self.ratio(setting, other)
        return ratio is not None and ratio.high < 0

    def _by_rule(self, best: int) -> dict[int, SettingInterval]:
        """Return the settings that are worse than the best by the rule that tells differences of
        runs everywhere else, each with the ratio of the best to it. It knows no rounds; what it
        tells, ``compare``, ``ratio`` and ``best`` tell of these runs, too."""
        sign = 1 if self.rules.better == "lower" else -1
        samples = self._samples(sign)
        comparisons = beside(samples, str(best), self.rules.better, self.rules.min_effect)
        worse = {}
        for name, each in comparisons.items():
            if each.verdict == "worse" and each.ratio and each.low and each.high:
                low, high = sorted(-sign * math.log(end) for end in (each.low, each.high))
                n = min(len(samples[name]), len(samples[str(best)]))
                worse[int(name)] = SettingInterval(-sign * math.log(each.ratio), low, high, n)
        return worse

    def _samples(self, sign: int) -> dict[str, list[float]]:
        """Return the figures of each setting that has some, by its number."""
        samples = {}
        for setting, row in enumerate(self.figures):
            if logarithms := row[np.isfinite(row)].tolist():
                samples[str(setting)] = [float(f"{math.exp(sign * x):.12g}") for x in logarithms]
        return samples

    def _finalists(self) -> list[int]:
        """Return the settings that can be named: those alive with at least half as many figures as
        any."""
        figures = np.isfinite(self.figures).sum(axis=1)
        alive = [each for each in self.alive if figures[each]]
        max_figures = max((figures[each] for each in alive), default=0)
        return [each for each in alive if 2 * figures[each] >= max_figures]


# ---- largest -------------------------------------------------------------------------------------
#
# Bisect for the largest size at which a program works.
#
#     search = LargestSearch(rules)       # of the sizes in order; used as a race is
#
# The program is taken to work up to some size, and to fail above it. So each run halves the sizes
# that are left: of 31 sizes the largest is found in five runs. Each run is a block of its own.


MAX_CUTS = 3


class LargestSearch:
    """A search over settings whose sizes rise: a fold over its runs, as ``Race`` is. ``runs``,
    ``failures`` and ``cuts`` are by setting; ``dropped`` are settings that failed, or are larger
    than one that did."""

    def __init__(self, rules: RaceRules) -> None:
        count = len(rules.levels)
        self.rules = rules
        self.runs = [0] * count
        self.failures: list[list[str]] = [[] for _ in range(count)]
        self.cuts: list[list[str]] = [[] for _ in range(count)]
        self.dropped: dict[int, Dropped] = {}
        self.blocks: list[list[list[int]]] = []
        self._works, self._fails = -1, count
        self._unbuilt: set[int] = set()

    @property
    def rounds_begun(self) -> int:
        """The number of rounds before the current block."""
        return max(0, len(self.blocks) - 1)

    @property
    def largest(self) -> int | None:
        """The largest setting that is known to work; None if none is."""
        return self._works if self._works >= 0 else None

    def record(self, setting: int, number: int, figure: float) -> None:
        """Record that a setting works."""
        self.runs[setting] += 1
        self._works = max(self._works, setting)

    def fail(self, setting: int, number: int, cause: str) -> None:
        """Record that a setting does not work, and why."""
        self.runs[setting] += 1
        self.failures[setting].append(cause)
        self.dropped[setting] = Dropped(len(self.blocks), cause=cause)
        self._fails = min(self._fails, setting)

    def cut_off(self, setting: int, number: int, cause: str) -> None:
        """Record that a run was ended from outside, and why: it is run again, unless that happened
        too often."""
        self.runs[setting] += 1
        self.cuts[setting].append(cause)
        if len(self.cuts[setting]) == MAX_CUTS:
            self.exclude(setting, f"{MAX_CUTS} runs had no result: {cause}")

    def exclude(self, setting: int, cause: str) -> None:
        """Record that a setting cannot run at all, and why."""
        self.dropped[setting] = Dropped(len(self.blocks), cause=cause)
        self._unbuilt.add(setting)

    def end_block(self) -> None:
        """A block has run."""

    def next_block(self) -> list[list[int]]:
        """Begin the next block: the middle of the sizes that are left; none if none is."""
        left = [n for n in range(self._works + 1, self._fails) if n not in self._unbuilt]
        if not left:
            return []
        block = [[left[len(left) // 2]]]
        self.blocks.append(block)
        return block


# ---- race demand ---------------------------------------------------------------------------------
#
# The demand of a tuning: the runs of the blocks of its race, each block in one allocation.
#
# The race decides after each block which settings run in the next one (``race``). Settings are
# cases: those of one group of the policy share the allocation of a block, as a bundle
# (``bundles``); others run one after the other.


RIGHT = (PASS.number, PERFORMANCE.number)  # the answer was right, so the figure counts


_SEARCHES: dict[str, Callable[[RaceRules], "Race | LargestSearch | Sweep"]] = {
    "largest": LargestSearch,
    "sweep": Sweep,
}


class RaceDemand(Demand):
    """The runs of a race. ``waiting`` are those of the current block that are to be launched, as
    (case, round) in their order."""

    def __init__(
        self,
        cases: Sequence[Case],
        policy: Policy,
        requests: Requests,
        rules: RaceRules,
    ) -> None:
        self.race = _SEARCHES.get(rules.search, Race)(rules)
        self._requests = requests
        self._groups = policy.bundle_of or [0] * len(cases)
        self._unready = set(range(len(cases)))
        self._waiting: list[tuple[int, int]] = []
        self._rounds: dict[tuple[int, int], int] = {}  # of runs in flight, by case and attempt
        self._launched = [0] * len(cases)
        self._again = False  # whether the run that just ended is to be repeated
        self._planned = 0  # runs of all blocks
        self._began, self._last = 0, 0  # of the current block, and its latest verdict, ns
        self.over = False

    @property
    def wanted(self) -> int:  # type: ignore[override]
        """The runs of all blocks; the most that there can be while the race goes on."""
        return self._planned if self.over else max(self._planned, self.race.rules.runs)

    # ---- events in ------------------------------------------------------------------------

    def ready(self, case: int) -> None:
        self._unready.discard(case)
        self._go_on()

    def unbuilt(self, case: int) -> None:
        self.race.exclude(case, "build failed")
        self._planned += 1  # its verdict
        self.ready(case)

    def again(self, case: int) -> None:
        self._again = True

    def launched(self, case: int, time: int) -> None:
        place = next((n for n, each in enumerate(self._waiting) if each[0] == case), None)
        if place is not None:  # else an older version of Seatrial chose it
            self._rounds[case, self._launched[case]] = self._waiting.pop(place)[1]
            self._began = self._began or time
        self._launched[case] += 1

    def ended(self, flight: RunInFlight, seconds: float) -> None:
        case, again, self._again = flight.case, self._again, False
        self._last = max(self._last, flight.judged or 0)
        number = self._rounds.pop((case, flight.attempt), None)
        if number is not None and again:
            self._waiting.append((case, number))
        elif number is not None:
            self._record(case, number, flight)
        self._go_on()

    def _record(self, case: int, number: int, flight: RunInFlight) -> None:
        figure = flight.figure
        if figure is None and self.race.rules.metric == ELAPSED:
            figure = flight.elapsed  # its script's own time, as everywhere else
        if self.race.rules.search == "largest":
            figure = 1.0  # it works
        if flight.code not in RIGHT:
            reason = f": {flight.reason}" if flight.reason else ""
            cause = f"{code_of(flight.code).name}{reason}"
            record = self.race.cut_off if flight.code in CUT_OFF else self.race.fail
            record(case, number, cause)
        elif figure is None:
            self.race.fail(case, number, f"no figure of {self.race.rules.metric}")
        elif isinstance(self.race, Sweep):
            self.race.record(case, number, figure, flight.others, flight.elapsed or 0.0)
        else:
            self.race.record(case, number, figure)

    def _go_on(self) -> None:
        """End the block that has run, and begin the next."""
        race = self.race
        if self.over or self._unready or self._waiting or self._rounds:
            return
        if isinstance(race, Sweep) and self._began:
            race.spent += max(0, self._last - self._began) / SECOND_NS
        self._began = 0
        if race.blocks:
            race.end_block()
        block = race.next_block()
        first = race.rounds_begun
        self._waiting = [(case, n) for n, order in enumerate(block, first) for case in order]
        self._planned += len(self._waiting)
        self.over = not block

    # ---- choices out ----------------------------------------------------------------------

    def __len__(self) -> int:
        return int(bool(self._waiting) and not self._rounds)

    def left(self) -> Collection[int]:
        return [case for case, _ in self._waiting[:1]]

    def wants(self, counts: InFlightCounts, cores: int, nodes: int) -> bool:
        return bool(len(self))

    def choose(self, budget: Budget) -> Iterator[ChosenRun]:
        """Yield the runs of the next allocation, whole, or the next run alone. Nothing runs beside
        it: that would be measured, too."""
        if not len(self):
            return
        group = self._groups[self._waiting[0][0]]
        if not group:
            choice = budget.take(self._waiting[0][0])
            if choice is not None:
                yield choice
            return
        cases = [case for case, _ in self._waiting if self._groups[case] == group]
        largest = max(self._requests[case].cores for case in cases)  # one runs at a time
        if budget.take_together(cases, largest):
            yield from (ChosenRun(case, bundle=1) for case in cases)
