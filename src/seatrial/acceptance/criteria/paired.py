"""The speed of each case at full machine against the same case alone: pairs, waves, an interval.

Copies of one wave share what the machine did at that time, so they are not independent. The
interval is therefore that of a bootstrap which draws whole waves (Efron 1979; cluster bootstrap:
Davison and Hinkley 1997).
"""

import random
import zlib
from collections.abc import Iterator, Sequence
from itertools import chain
from statistics import median
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.acceptance.criteria.result import (
    Bounds,
    Numbers,
    Result,
    bounds_of,
    decided,
    doubt_of,
    with_worst,
)
from seatrial.acceptance.criteria.view import NodeCases, TrialView
from seatrial.acceptance.trial_history import RunHistory
from seatrial.plan.model import Criterion
from seatrial.units import NO_DIRECTION, Direction, count, show_number
from seatrial.verify.figures import ELAPSED

MIN_RUNS = 2  # runs of a side without which there is no interval
ENOUGH = 5  # runs alone, and waves: from then on the median decides, whatever the interval
RESAMPLES = 1000
CONFIDENCE = 0.95

Units = list[list[float]]  # values in sorted lists, each of which is drawn as a whole


class SlowdownPair(NamedTuple):
    """The figures of one case: alone, and in each wave at full machine. None of them is empty."""

    alone: list[float]
    waves: Units
    better: Direction

    @property
    def full(self) -> list[float]:
        return sorted(chain.from_iterable(self.waves))

    @property
    def units(self) -> Units:
        """Return what is drawn at full machine: waves, or runs where there is only one wave."""
        return self.waves if len(self.waves) > 1 else [[value] for value in self.full]


def slowdown(view: TrialView, criterion: Criterion) -> list[Result]:
    """Each case at full machine against the same case alone, in per cent; in components of kind
    ``isolated_then_full``. Positive is better. The case with the smallest value decides.

        slowdown = 100 (alone - full) / alone

    ``alone`` and ``full`` are the medians of the elapsed times of runs with a right answer, or
    of a ``metric``; there the sign is reversed where higher is better. Of cases that differ in
    their node alone the median of their values counts.

    A wave is the runs of a case at full machine that are in flight together; a retry belongs to
    the wave of the run that it retries. The interval holds 95 % of 1,000 bootstrap samples with
    a fixed seed: runs alone are drawn one by one, runs at full machine in whole waves. With one
    wave its runs are drawn, and the reason says so. With two to four waves the interval is
    hardly more than their range: it held the true value in 59, 79, 93 and 95 of 100 simulated
    components with 2, 3, 5 and 8 waves (3, 3, 5 and 8 runs alone). So ask for five.

    The interval on one side of the bound decides, with any number of runs. With the bound
    inside it, the median decides from 5 runs alone and 5 waves on; else it is undecided.
    Without an interval (one run alone, or one at full machine) it is undecided.

    Both bounds are lower bounds of the value: ``at_most: 5%`` is the largest loss (value at
    least -5 %), ``at_least: 2%`` the smallest gain, and ``at_least: -5%`` is the same as
    ``at_most: 5%``.

    Example: median 1.00 h alone (5 runs), 1.04 h at full machine (60 runs in 3 waves): -4 %.
    With the interval -4.8 to -3.1 %, ``at_most: 5%`` is met; with -6 to -3 % it is undecided.
    """
    bounds = bounds_of(criterion)
    results = [_of_group(view, criterion, bounds, group) for group in view.pairs(criterion)]
    return with_worst(results, lambda one: -(one.value or 0.0))


def _of_group(view: TrialView, criterion: Criterion, bounds: Bounds, group: NodeCases) -> Result:
    sides = list(_pairs(group, criterion.metric))
    pairs = [pair for pair in sides if pair.alone and pair.waves and median(pair.alone)]
    counted = pairs or sides
    alone = sorted(chain.from_iterable(pair.alone for pair in counted))
    full = sorted(chain.from_iterable(pair.full for pair in counted))
    waves = sum(len(pair.waves) for pair in counted)
    numbers: Numbers = {"alone n": len(alone), "full n": len(full), "waves": waves}
    value, interval = None, None
    why = f"needs runs alone and at full machine, has {len(alone)} and {len(full)}"
    if pairs:
        value = median(_per_cent(pair.alone, pair.full, pair.better) for pair in pairs)
        numbers |= {"cases": len(pairs), "alone": median(alone), "full": median(full)}
        in_waves = "one wave" if waves == 1 else f"{waves} waves"
        why = f"median {show_number(median(alone))} alone (n {len(alone)}), "
        why += f"{show_number(median(full))} at full machine (n {len(full)}, {in_waves})"
        interval = _interval(pairs, group.name)
    elif any(pair.alone and pair.waves for pair in sides):
        why = "the median alone is 0: there is nothing to compare with"
    lacking = len(sides) - len(pairs)
    right = [run for run in group.runs if run.right]
    figures = [figure for run in right if (figure := run.figure(criterion.metric or ELAPSED))]
    if doubt := doubt_of(criterion.metric or ELAPSED, len(right), figures):
        value = interval = None
        why = doubt
    elif any(pair.better == "none" for pair in sides):
        value = interval = None
        why = f"{criterion.metric} has no direction (better: none)"
    if interval is not None:
        numbers |= {"low": interval[0], "high": interval[1]}
        why += f"; 95 % interval {interval[0]:+.3g} to {interval[1]:+.3g} %"
    n = len(alone) + len(full)
    found = decided(
        view, criterion, value, why, n=n, bounds=bounds, subject=group.name, numbers=numbers
    )
    doubt = _doubt(bounds, interval, len(alone), waves) if found.state != "undecided" else ""
    if found.state == "met" and lacking and not doubt:
        doubt = f"{lacking} of {count(len(sides), 'case')} gave no figure alone or at full machine"
    return replace(found, state="undecided", why=f"{why}; {doubt}") if doubt else found


def _doubt(bounds: Bounds, interval: tuple[float, float] | None, alone: int, waves: int) -> str:
    """Return why there are too few runs to say on which side of the bound a value is. "" if
    there are enough: the whole interval is on one side, or there are enough runs alone and
    enough waves."""
    if interval is None:
        return (
            f"a case with fewer than {MIN_RUNS} runs on a side has no interval: raise alone or full"
        )
    clear = bounds.contains(interval) or bounds.excludes(interval)
    if clear or (alone >= ENOUGH and waves >= ENOUGH):
        return ""
    return (
        f"the bound is inside it, and {count(alone, 'run')} alone with {count(waves, 'wave')} "
        f"cannot tell on which side (from {ENOUGH} of each the median decides)"
    )


# ---- pairs and waves ----------------------------------------------------------------------


def _pairs(group: NodeCases, metric: str) -> Iterator[SlowdownPair]:
    """Return what is compared, case by case, and in which direction it improves."""
    by_case: dict[int, list[RunHistory]] = {}
    for run in group.runs:
        by_case.setdefault(run.case, []).append(run)
    for runs in by_case.values():
        alone = _values([run for run in runs if run.stage == "alone"], metric)
        waves = [_values(wave, metric) for wave in waves_of(runs)]
        yield SlowdownPair(alone, [wave for wave in waves if wave], _better(runs, metric))


def waves_of(runs: Sequence[RunHistory]) -> list[list[RunHistory]]:
    """Return the runs of one case at full machine, wave by wave. A wave begins when the one before
    has its verdicts, and goes on where the last of them runs again."""
    waves: list[list[RunHistory]] = []
    until, reruns = -1, False  # when all so far had their verdicts
    full = [(run.submitted, run) for run in runs if run.stage == "full" and run.submitted]
    for submitted, run in sorted(full, key=lambda one: one[0]):
        if not waves or (submitted >= until and not reruns):
            waves.append([])
        waves[-1].append(run)
        end = run.judged if run.judged is not None else 1 << 62
        if end >= until:
            until, reruns = end, run.will_rerun or (reruns and end == until)
    return waves


def _values(runs: Sequence[RunHistory], metric: str) -> list[float]:
    right = [run for run in runs if run.right]
    if not metric:
        return sorted(time for run in right if (time := run.elapsed) is not None)
    figures = (run.figure(metric) for run in right)
    return sorted(figure.value for figure in figures if figure is not None)


def _better(runs: Sequence[RunHistory], metric: str) -> Direction:
    if not metric:
        return "lower"
    figures = (run.figure(metric) for run in runs if run.right)
    said = {figure.better for figure in figures if figure is not None}
    return "none" if NO_DIRECTION in said else "lower" if "lower" in said else "higher"


# ---- values -------------------------------------------------------------------------------


def _per_cent(alone: Sequence[float], full: Sequence[float], better: Direction) -> float:
    """Return the change from the median of the first to that of the second; 0 where the first is
    0."""
    one, two = median(alone), median(full)
    change = one - two if better == "lower" else two - one
    return 100 * change / abs(one) if one else 0.0


def _interval(pairs: Sequence[SlowdownPair], seed: str) -> tuple[float, float] | None:
    """Return the interval of the percentile bootstrap: of each pair, runs alone and waves at full
    machine are drawn anew, with a fixed seed. None where a pair has too few to draw from."""
    sides = [([[value] for value in pair.alone], pair.units, pair.better) for pair in pairs]
    if any(min(len(alone), len(full)) < MIN_RUNS for alone, full, _ in sides):
        return None
    draw = random.Random(zlib.crc32(seed.encode()))
    found = sorted(
        median(
            _per_cent(_drawn(alone, draw), _drawn(full, draw), better)
            for alone, full, better in sides
        )
        for _ in range(RESAMPLES)
    )
    tail = round((1 - CONFIDENCE) / 2 * RESAMPLES)
    return found[tail], found[-1 - tail]


def _drawn(units: Units, draw: random.Random) -> list[float]:
    return list(chain.from_iterable(draw.choices(units, k=len(units))))
