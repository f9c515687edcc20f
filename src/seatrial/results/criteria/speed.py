"""Criteria on the speed of runs: how much they vary, and how fast they are by references."""

import math
import random
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import attrgetter
from statistics import fmean, median
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial import units
from seatrial.grouping import grouped
from seatrial.judge import references as refs
from seatrial.judge.statistics.spread import MAD_TO_SIGMA
from seatrial.model.codes import code_of
from seatrial.model.figures import ELAPSED, MetricValue
from seatrial.model.plan import Criterion
from seatrial.results.criteria.answers import JUST_LESS, counts, unless_cancelled
from seatrial.results.criteria.view import (
    STAGE_WORDS,
    Bounds,
    NodeCases,
    Numbers,
    Result,
    TrialView,
    bounds_of,
    decided,
    doubt_of,
    largest_listed,
    undecided,
    unless_silent,
    with_worst,
)
from seatrial.results.trial_history import RecordedMetric, RunHistory
from seatrial.units import NO_DIRECTION, Direction, count, show_figure, show_number, show_share

BETTER_BY = "better by, %"  # than its reference; negative: worse
MIN_RUNS = 2  # runs without which there is no spread


# ---- variability --------------------------------------------------------------------------


def variability(view: TrialView, criterion: Criterion) -> list[Result]:
    """The coefficient of variation of the elapsed time of each test's script. The test with the
    largest decides.

        variability = s / m          s: standard deviation (n - 1), m: mean
        robust      = 1.4826 MAD / median

    It is over the runs with a right answer (verdict pass or performance), so that a run which
    took twice as long counts. Cases that differ in parameters, toolchain, number of nodes or
    stage are each compared with their own mean: sqrt(sum((x / m - 1)^2) / (n - cases)). Cases
    that differ in their node alone are one. Cases with fewer than two such runs are left out;
    the reason says how many.

    Undecided: before the end, where no case has two runs, or where it would be met without the
    cases that were left out.

    Example: 1.0, 1.1, 0.9 and 1.3 h: mean 1.075, s 0.171: 15.9 %; robust 14.1 %.
    """
    by_test = grouped(view.groups(criterion), lambda group: group.case.test)
    results = [
        _of_test(view, criterion, test, by_test.get(test, [])) for test in view.tests(criterion)
    ]
    return with_worst(results, lambda one: one.value or 0.0)


def _times(view: TrialView, group: NodeCases) -> tuple[list[float], str]:
    """Return the times of the right runs of a case, sorted, and why they may not be all of them; ""
    if they are."""
    times = [run.elapsed for run in group.runs if run.right]
    known = sorted(time for time in times if time is not None and time > 0)
    if lost := len(times) - len(known):
        return known, f"the time of {units.count(lost, 'run')} is not known"
    return known, group.silent(view.history, ELAPSED)


def _of_test(
    view: TrialView, criterion: Criterion, test: str, groups: Sequence[NodeCases]
) -> Result:
    """Return the variability of a test by the times of each of its cases."""
    found = [_times(view, group) for group in groups]
    series = [times for times, _ in found]
    doubt = next((doubt for _, doubt in found if doubt), "")
    enough = [times for times in series if len(times) >= MIN_RUNS]
    n = sum(map(len, enough))
    numbers = _spread(enough) if enough else {}
    value = float(numbers["cv"]) if numbers else None
    reason = f"needs {MIN_RUNS} runs with a right answer, has {sum(map(len, series))}"
    if value is not None:
        reason = f"{100 * value:.3g} % over {n} runs; the robust value is "
        reason += f"{100 * float(numbers['robust']):.3g} %"
        if too_few := len(series) - len(enough):
            numbers["cases left out"] = too_few
            left_out = units.count(too_few, "case")
            reason += f"; {left_out} with fewer than {MIN_RUNS} right runs left out"
    result = decided(view, criterion, value, reason, n=n, subject=test, numbers=numbers)
    if result.state == "met" and ("cases left out" in numbers or doubt):
        reason = "; ".join(filter(None, (doubt, reason)))
        return replace(result, state="undecided", reason=reason)
    return result


def _spread(series: Sequence[Sequence[float]]) -> Numbers:
    n = sum(map(len, series))
    off: list[float] = []
    far: list[float] = []
    for times in series:
        middle, typical = fmean(times), median(times)
        off += [x / middle - 1 for x in times]
        far += [abs(x / typical - 1) for x in times]
    mean = math.fsum(x for times in series for x in times) / n
    return {
        "cv": math.sqrt(math.fsum(x * x for x in off) / (n - len(series))),
        "robust": MAD_TO_SIGMA * median(far),
        "mean": mean,
        "least": min(times[0] for times in series),
        "largest": max(times[-1] for times in series),
        "cases": len(series),
    }


# ---- figures ------------------------------------------------------------------------------


def figure_of_merit(view: TrialView, criterion: Criterion) -> list[Result]:
    """The median of ``metric`` over the runs of each case with a right answer, where cases that
    differ in their node alone are one. The case that is furthest on the wrong side decides. It
    is compared with

    - a number, ``at_least: 12000``: in the metric's unit; of ``elapsed`` also a duration;
    - a figure with a unit, ``at_least: 50 GB/s``: converted into the metric's, which is told;
    - per cent, ``at_least: 95%``: that share of the value of the machine's reference for the
      case; where lower is better, ``at_most: 105%``;
    - no bound: the reference, with its own tolerance.

    The references are those that the trial was made with, or was last judged again by. Runs are
    those alone, unless ``stage`` says otherwise, and so are references.

    Undecided: before the end, without a figure, or without a reference where one is needed.

    Example: reference 100 MB/s, ``lower: -0.05``; medians 96 and 94 MB/s of two cases: met and
    not met, so not met.
    """
    results = [_against(view, criterion, group) for group in view.groups(criterion)]
    if not results:
        return [undecided(criterion, f"no run has given {criterion.metric or 'a metric'}")]
    return with_worst(results, _furthest)


def _furthest(one: Result) -> float:
    """Return how far a figure is beyond its reference on either side, to order figures that are
    alike otherwise."""
    off = one.numbers.get(BETTER_BY, 0.0)
    return abs(off) if isinstance(off, int | float) else 0.0


def _against(view: TrialView, criterion: Criterion, group: NodeCases) -> Result:
    metric = criterion.metric
    if doubt := doubt_of(metric, group):
        return undecided(criterion, doubt, subject=group.name)
    figures = group.figures(metric)
    values = [figure.value for figure in figures]
    value = median(values) if values else None
    unit = figures[0].unit if figures else ""
    reason = f"no run with a right answer has given {metric}"
    numbers: Numbers = {}
    if value is not None:
        shown = units.show_figure(value, unit)
        reason = f"median {shown} of {units.count(len(values), 'run')}"
        reason += STAGE_WORDS[group.stage]
        numbers = {"unit": unit, "least": min(values), "largest": max(values)}
    judgement = _judgement(view, criterion, group, figures, value)
    if isinstance(judgement, Result):
        return judgement
    bounds, fault, better_by = judgement
    reason = fault or reason
    numbers |= better_by
    result = decided(
        view,
        criterion,
        value,
        reason,
        n=len(values),
        bounds=bounds,
        subject=group.name,
        numbers=numbers,
        unit=unit,
    )
    return unless_silent(result, group, view, metric)


def _judgement(
    view: TrialView,
    criterion: Criterion,
    group: NodeCases,
    figures: Sequence[RecordedMetric],
    value: float | None,
) -> Result | tuple[Bounds, str, Numbers]:
    """Return the bounds of a figure, what the reference says against it, and by how much it is
    better; or the result, where there is nothing to compare it with."""
    metric, case, unit = criterion.metric, group.case, figures[0].unit if figures else ""
    try:
        reference = refs.matching(
            view.references, case.test, metric, case.parameters, case.toolchain, group.stage
        )
        if criterion.at_least is not None or criterion.at_most is not None:
            alike = refs.in_unit(reference, unit) if reference and figures else reference
            known = alike.value if alike is not None else None
            return bounds_of(criterion, known, unit), "", {}
        if reference is None:
            reason = f"there is no reference for {metric}{STAGE_WORDS[group.stage]}"
            return undecided(criterion, reason, subject=group.name)
        if value is None:
            reason = f"no run with a right answer has given {metric}"
            return undecided(criterion, reason, subject=group.name)
        figure = figures[0]._replace(value=value)
        return _by_reference(criterion, figure, reference, group.name)
    except (refs.AmbiguousReference, ValueError) as error:
        return undecided(criterion, str(error), subject=group.name)


def _by_reference(
    criterion: Criterion, figure: RecordedMetric, reference: refs.Reference, subject: str
) -> Result | tuple[Bounds, str, Numbers]:
    """Return the bounds of a reference, what it says against a figure, and by how much that is
    better; or why they cannot be compared."""
    if figure.better == units.NO_DIRECTION:
        reason = f"{criterion.metric} has no direction (better: none); give the criterion bounds"
        return undecided(criterion, reason, subject=subject)
    better = units.better_of(figure.better)
    alike = refs.in_unit(reference, figure.unit)
    bounds = _bounds_by(alike or reference, better, reference.unit)
    if alike is None:
        reason = f"{criterion.metric} is in {figure.unit}, but its reference in {reference.unit}"
        return undecided(criterion, reason, bounds.words, subject)
    measured = MetricValue(criterion.metric, figure.value, figure.unit, better)
    finding = refs.judge(measured, reference)
    off = refs.percent_off(figure.value, alike)
    numbers: Numbers = {} if off is None else {BETTER_BY: units.better_by(off, better)}
    return bounds, finding.text if finding else "", numbers


def _bounds_by(reference: refs.Reference, better: units.Better, written: str) -> Bounds:
    """Return the bounds of a reference's own tolerance, also in the unit that it is ``written``
    in."""
    low, high = refs.bounds(reference, better)
    words = " and ".join(
        f"{word} {units.show_converted(side, reference.unit, written)}"
        for word, side in (("at least", low), ("at most", high))
        if side is not None
    )
    return Bounds(low, high, words)


# ---- paired --------------------------------------------------------------------------------------
#
# The speed of each case at full machine against the same case alone: pairs, waves, an interval.
#
# Copies of one wave share what the machine did at that time, so they are not independent. The
# interval is therefore that of a bootstrap which draws whole waves (Efron 1979; cluster bootstrap:
# Davison and Hinkley 1997).


MIN_PAIRED_RUNS = 2  # runs of a side without which there is no interval
ENOUGH = 5  # runs alone, and waves: from then on the median decides, whatever the interval
RESAMPLES = 1000
CONFIDENCE = 0.95

Units = list[list[float]]  # values in sorted lists, each of which is drawn as a whole


class _SlowdownPair(Struct, frozen=True):
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
    alone, full, waves = _merged(pairs or sides)
    numbers: Numbers = {"alone n": len(alone), "full n": len(full), "waves": waves}
    if pairs:
        numbers |= {"cases": len(pairs), "alone": median(alone), "full": median(full)}
    value = interval = None
    reason = _incomparable(criterion, group, sides, pairs)
    if not reason:
        value = median(_per_cent(pair.alone, pair.full, pair.better) for pair in pairs)
        reason = _medians(alone, full, waves)
        interval = _interval(pairs, group.name)
    if interval is not None:
        numbers |= {"low": interval[0], "high": interval[1]}
        reason += f"; 95 % interval {interval[0]:+.3g} to {interval[1]:+.3g} %"
    n = len(alone) + len(full)
    found = decided(
        view, criterion, value, reason, n=n, bounds=bounds, subject=group.name, numbers=numbers
    )
    if found.state == "undecided":
        return found
    doubt = _doubt(bounds, interval, len(alone), waves)
    if not doubt and found.state == "met":
        doubt = _without_figure(sides, pairs)
    return replace(found, state="undecided", reason=f"{reason}; {doubt}") if doubt else found


def _without_figure(sides: Sequence[_SlowdownPair], pairs: Sequence[_SlowdownPair]) -> str:
    """Return how many cases lack a figure, in words; "" if none does."""
    lacking = len(sides) - len(pairs)
    cases = count(len(sides), "case")
    return f"{lacking} of {cases} gave no figure alone or at full machine" if lacking else ""


def _merged(sides: Sequence[_SlowdownPair]) -> tuple[list[float], list[float], int]:
    """Return the figures of several cases alone and at full machine, and the number of waves."""
    alone = sorted(chain.from_iterable(side.alone for side in sides))
    full = sorted(chain.from_iterable(side.full for side in sides))
    return alone, full, sum(len(side.waves) for side in sides)


def _incomparable(
    criterion: Criterion,
    group: NodeCases,
    sides: Sequence[_SlowdownPair],
    pairs: Sequence[_SlowdownPair],
) -> str:
    """Return why the figures of a group cannot be compared; "" if they can. ``pairs``: the sides
    that have figures alone and at full machine."""
    if doubt := doubt_of(criterion.metric or ELAPSED, group):
        return doubt
    if any(pair.better == "none" for pair in sides):
        return f"{criterion.metric} has no direction (better: none)"
    if pairs:
        return ""
    if any(side.alone and side.waves for side in sides):
        return "the median alone is 0: there is nothing to compare with"
    alone, full, _ = _merged(sides)
    return f"needs runs alone and at full machine, has {len(alone)} and {len(full)}"


def _medians(alone: Sequence[float], full: Sequence[float], waves: int) -> str:
    in_waves = "one wave" if waves == 1 else f"{waves} waves"
    return (
        f"median {show_number(median(alone))} alone (n {len(alone)}), "
        f"{show_number(median(full))} at full machine (n {len(full)}, {in_waves})"
    )


def _doubt(bounds: Bounds, interval: tuple[float, float] | None, alone: int, waves: int) -> str:
    """Return why there are too few runs to say on which side of the bound a value is. "" if
    there are enough: the whole interval is on one side, or there are enough runs alone and
    enough waves."""
    if interval is None:
        few = f"fewer than {MIN_PAIRED_RUNS} runs on a side"
        return f"a case with {few} has no interval: raise alone or full"
    clear = bounds.contains(interval) or bounds.excludes(interval)
    if clear or (alone >= ENOUGH and waves >= ENOUGH):
        return ""
    return (
        f"the bound is inside it, and {count(alone, 'run')} alone with {count(waves, 'wave')} "
        f"cannot tell on which side (from {ENOUGH} of each the median decides)"
    )


# ---- pairs and waves ----------------------------------------------------------------------


def _pairs(group: NodeCases, metric: str) -> Iterator[_SlowdownPair]:
    """Return what is compared, case by case, and in which direction it improves."""
    for runs in grouped(group.runs, attrgetter("case")).values():
        alone = _values([run for run in runs if run.stage == "alone"], metric)
        waves = [_values(wave, metric) for wave in waves_of(runs)]
        yield _SlowdownPair(alone, [wave for wave in waves if wave], _better(runs, metric))


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


def _interval(pairs: Sequence[_SlowdownPair], seed: str) -> tuple[float, float] | None:
    """Return the interval of the percentile bootstrap: of each pair, runs alone and waves at full
    machine are drawn anew, with a fixed seed. None where a pair has too few to draw from."""
    sides = [([[value] for value in pair.alone], pair.units, pair.better) for pair in pairs]
    if any(min(len(alone), len(full)) < MIN_PAIRED_RUNS for alone, full, _ in sides):
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


# ---- within --------------------------------------------------------------------------------------
#
# The criterion of contracts: a share of the runs is right, and as fast as expected within x %.


MAX_NAMED = 3
ROUNDING = 1e-9
MIN_RUNS_WITHIN = 5  # figures of a case without which their median is no expectation


class _ExpectedFigure(NamedTuple):
    """What is expected of the runs of a case; ``few``: their own median, of few figures."""

    value: float
    unit: str
    few: bool = False


class _CountedRuns(Struct, frozen=True):
    """The runs of a test that count, by what became of them: within what is expected, or why not;
    ``few`` are cases with too few figures for a median, ``none`` those without a run that
    counts."""

    outcomes: Counter[str]
    expected: list[_ExpectedFigure]
    few: list[str]
    none: list[str]


def within_expected(view: TrialView, criterion: Criterion) -> list[Result]:
    """The share of each test's runs that are right and not worse than expected by more than
    ``within``, as contracts say: 99 % of all jobs are correct and within 5 % of the expected
    run time. The test with the smallest share decides.

        within_expected = within / ended
        within: verdict pass or performance, and (x - e) / |e| <= w      where lower is better
                                                 (e - x) / |e| <= w      where higher is better
                                                 |x - e| / |e| <= w      with ``two_sided``

    x is the run's ``metric``, its elapsed time if none is named, and w is ``within``. e is
    expected of its case: with ``of: median`` the median of the case's right runs in that stage,
    where cases that differ in their node alone are one; with ``of: reference`` the value of the
    machine's reference. A metric without a direction is two-sided. Runs that ended are those
    that pass_rate counts: those that failed are not within. Unlike the verdict performance,
    this does not depend on the tolerance of a reference.

    Undecided: before the end, unless a bound of 100 % is missed for good; where it would be
    met, but the median of a case is of fewer than five figures, or a case has no run that
    counts; without a reference, or with one that has bounds and no value; for cancelled runs as
    in pass_rate.

    Example: 100 runs, median 70 min: 96 took at most 73.5 min, 3 took longer, 1 reached its
    walltime: 96 %. ``within: 5%, at_least: 99%`` is not met.
    """
    by_test = grouped(view.groups(criterion), lambda group: group.case.test)
    results = [
        _within_of_test(view, criterion, test, by_test.get(test, []))
        for test in view.tests(criterion)
    ]
    return with_worst(results, lambda one: -(one.value or 0.0))


def _within_of_test(
    view: TrialView, criterion: Criterion, test: str, groups: Sequence[NodeCases]
) -> Result:
    try:
        found = _counted(view, criterion, groups)
        bounds = bounds_of(criterion)
    except (refs.AmbiguousReference, ValueError) as error:
        return undecided(criterion, str(error), subject=test)
    n, good = found.outcomes.total(), found.outcomes["within"]
    numbers: Numbers = {name: number for name, number in found.outcomes.items() if number}
    if len(found.expected) == 1:
        numbers |= {"expected": found.expected[0].value, "unit": found.expected[0].unit}
    result = decided(
        view,
        criterion,
        good / n if n else None,
        _reason(criterion, found),
        n=n,
        bounds=bounds,
        subject=test,
        reach=(0.0, 1.0 - (JUST_LESS if _lost(criterion, found) else 0)),
        numbers=numbers,
    )
    for doubt in _doubts_within(found):
        result = result.unless(doubt)
    return unless_cancelled(view, result, list(chain.from_iterable(one.runs for one in groups)))


def _doubts_within(found: _CountedRuns) -> Iterator[str]:
    """Yield why a share that is within what is expected may be another."""
    if found.few:
        few = f"fewer than {MIN_RUNS_WITHIN} right runs"
        yield f"the median of {found.few[0]} is of {few}"
    if found.none:
        yield f"no run of {', '.join(found.none[:MAX_NAMED])} counts"


def _counted(view: TrialView, criterion: Criterion, groups: Sequence[NodeCases]) -> _CountedRuns:
    """Return the runs by what became of them. Raises ValueError if nothing can be expected of
    them."""
    outcomes: Counter[str] = Counter(within=0)
    expected, few, none = [], [], []
    for group in groups:
        runs = [run for run in group.runs if run.over and counts(run)]
        if not runs:
            none.append(group.name)
            continue
        found = _expected(view, criterion, group, runs)
        if found is not None:
            expected.append(found)
            few += [group.name] if found.few else []
        outcomes.update(_outcome(run, criterion, found) for run in runs)
    return _CountedRuns(outcomes, expected, few, none)


def _expected(
    view: TrialView, criterion: Criterion, group: NodeCases, runs: Sequence[RunHistory]
) -> _ExpectedFigure | None:
    """Return what is expected of the runs of a case; None if it has no right run with a figure."""
    metric = criterion.metric or ELAPSED
    figures = [figure for run in runs if run.right and (figure := run.figure(metric))]
    kinds = sorted({figure.unit for figure in figures})
    if len(kinds) > 1:
        raise ValueError(f"{metric} of {group.name} is in several units: {' and '.join(kinds)}")
    if criterion.of == "median":
        return _expected_median(figures, f"{metric} of {group.name}")
    return _expected_by_reference(view, group, metric, kinds)


def _expected_by_reference(
    view: TrialView, group: NodeCases, metric: str, units_of_runs: Sequence[str]
) -> _ExpectedFigure:
    """Return what the reference of a case expects, in the unit of its runs, if these have one."""
    case, of = group.case, f"{metric} of {group.name}"
    reference = refs.matching(
        view.references, case.test, metric, case.parameters, case.toolchain, group.stage
    )
    if reference is None:
        raise ValueError(f"there is no reference for {of}")
    if not reference.value:
        raise ValueError(f"the reference for {of} has bounds and no value")
    alike = refs.in_unit(reference, units_of_runs[0]) if units_of_runs else reference
    if alike is None or alike.value is None:
        raise ValueError(f"{of} is in {units_of_runs[0]}, but its reference in {reference.unit}")
    return _ExpectedFigure(alike.value, alike.unit)


def _expected_median(figures: Sequence[RecordedMetric], of: str) -> _ExpectedFigure | None:
    if not figures:
        return None
    middle = median(figure.value for figure in figures)
    if not middle:
        raise ValueError(f"the median of {of} is 0: nothing is x % of that")
    return _ExpectedFigure(middle, figures[0].unit, len(figures) < MIN_RUNS_WITHIN)


def _allowed(criterion: Criterion) -> float:
    return criterion.within.fraction if criterion.within else 0.0


def _outcome(run: RunHistory, criterion: Criterion, expected: _ExpectedFigure | None) -> str:
    """Return what became of a run: ``within``, ``worse`` or ``better`` than that, ``without the
    figure``, or the verdict of one that is not right."""
    if not run.right:
        return code_of(run.code).name
    figure = run.figure(criterion.metric or ELAPSED)
    if figure is None or expected is None:
        return "without the figure"
    allowed = _allowed(criterion)
    off = (figure.value - expected.value) / abs(expected.value)
    if abs(off) <= allowed * (1 + ROUNDING):
        return "within"
    if figure.better == NO_DIRECTION:
        return "above" if off > 0 else "below"
    if (off > 0) == (figure.better == "lower"):
        return "worse"
    return "better" if criterion.two_sided else "within"


def _lost(criterion: Criterion, found: _CountedRuns) -> int:
    """Return how many runs are not within what is expected, whatever comes: a median may move."""
    moves = {"within", "worse", "better", "above", "below"}
    stays = {"within"} if criterion.of == "reference" else moves
    return sum(number for name, number in found.outcomes.items() if name not in stays)


def _reason(criterion: Criterion, found: _CountedRuns) -> str:
    n, good = found.outcomes.total(), found.outcomes["within"]
    if not n:
        return "no run has ended"
    of = f"the {criterion.of}" + ("" if len(found.expected) == 1 else " of their case")
    if len(found.expected) == 1:
        of += f" {show_figure(found.expected[0].value, found.expected[0].unit)}"
    worse = "off" if criterion.two_sided else "worse than"
    allowed = show_share(_allowed(criterion))
    reason = (
        f"{good} of {count(n, 'run')} right, with {criterion.metric or ELAPSED} at most {allowed}"
    )
    reason += f" {worse} {of}"
    others = {name: number for name, number in found.outcomes.items() if name != "within"}
    return f"{reason}; {largest_listed(others)}" if any(others.values()) else reason
