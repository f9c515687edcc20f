"""Criteria on the speed of runs: how much they vary, and how fast they are by references."""

import math
from collections.abc import Sequence
from statistics import fmean, median

from msgspec.structs import replace

from seatrial import units
from seatrial.acceptance.criteria.result import (
    Bounds,
    Numbers,
    Result,
    bounds_of,
    decided,
    doubt_of,
    undecided,
    unless_silent,
    with_worst,
)
from seatrial.acceptance.criteria.view import STAGE_WORDS, NodeCases, TrialView
from seatrial.plan.model import Criterion
from seatrial.statistics.spread import MAD_TO_SIGMA
from seatrial.verify import references as refs
from seatrial.verify.figures import ELAPSED, MetricValue

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
    by_test: dict[str, list[list[float]]] = {test: [] for test in view.tests(criterion)}
    doubts: dict[str, str] = {}
    for group in view.groups(criterion):
        times = [run.elapsed for run in group.runs if run.right]
        known = sorted(t for t in times if t is not None and t > 0)
        by_test[group.case.test].append(known)
        doubt = group.silent(view.history, ELAPSED)
        if lost := len(times) - len(known):
            doubt = f"the time of {units.count(lost, 'run')} is not known"
        doubts[group.case.test] = doubts.get(group.case.test, "") or doubt
    results = []
    for test, series in by_test.items():
        enough = [times for times in series if len(times) >= MIN_RUNS]
        n = sum(map(len, enough))
        numbers = _spread(enough) if enough else {}
        value = float(numbers["cv"]) if numbers else None
        why = f"needs {MIN_RUNS} runs with a right answer, has {sum(map(len, series))}"
        if value is not None:
            why = f"{100 * value:.3g} % over {n} runs; the robust value is "
            why += f"{100 * float(numbers['robust']):.3g} %"
            if too_few := len(series) - len(enough):
                numbers["cases left out"] = too_few
                left_out = units.count(too_few, "case")
                why += f"; {left_out} with fewer than {MIN_RUNS} right runs left out"
        result = decided(view, criterion, value, why, n=n, subject=test, numbers=numbers)
        if result.state == "met" and ("cases left out" in numbers or doubts.get(test)):
            why = "; ".join(filter(None, (doubts.get(test), why)))
            result = replace(result, state="undecided", why=why)
        results.append(result)
    return with_worst(results, lambda one: one.value or 0.0)


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
    metric, case = criterion.metric, group.case
    right = [run for run in group.runs if run.right]
    figures = [figure for run in right if (figure := run.figure(metric))]
    if doubt := doubt_of(metric, len(right), figures):
        return undecided(criterion, doubt, subject=group.name)
    values = [figure.value for figure in figures]
    value = median(values) if values else None
    why = f"no run with a right answer has given {metric}"
    numbers: Numbers = {}
    if value is not None:
        shown = units.show_figure(value, figures[0].unit)
        why = f"median {shown} of {units.count(len(values), 'run')}"
        why += STAGE_WORDS[group.stage]
        numbers = {"unit": figures[0].unit, "least": min(values), "largest": max(values)}
    try:
        reference = refs.matching(
            view.references, case.test, metric, case.parameters, case.toolchain, group.stage
        )
        if criterion.at_least is not None or criterion.at_most is not None:
            alike = reference is not None and all(f.unit == reference.unit for f in figures)
            known = reference.value if reference and alike else None
            bounds = bounds_of(criterion, known, figures[0].unit if figures else "")
        elif reference is None:
            why = f"there is no reference for {metric}{STAGE_WORDS[group.stage]}"
            return undecided(criterion, why, subject=group.name)
        elif value is None:
            return undecided(criterion, why, subject=group.name)
        else:
            if figures[0].better == units.NO_DIRECTION:
                why = f"{metric} has no direction (better: none); give the criterion bounds"
                return undecided(criterion, why, subject=group.name)
            unit, better = figures[0].unit, units.better_of(figures[0].better)
            bounds = _bounds_by(reference, better)
            if unit != reference.unit:
                why = f"{metric} is in {unit}, but its reference in {reference.unit}"
                return undecided(criterion, why, bounds.words, group.name)
            if finding := refs.judge(MetricValue(metric, value, unit, better), reference):
                why = finding.text
            if (off := refs.percent_off(value, reference)) is not None:
                numbers[BETTER_BY] = units.better_by(off, better)
    except (refs.AmbiguousReference, ValueError) as error:
        return undecided(criterion, str(error), subject=group.name)
    result = decided(
        view,
        criterion,
        value,
        why,
        n=len(values),
        bounds=bounds,
        subject=group.name,
        numbers=numbers,
        unit=figures[0].unit if figures else "",
    )
    return unless_silent(result, group, view, metric)


def _bounds_by(reference: refs.Reference, better: units.Better) -> Bounds:
    """Return the bounds of a reference's own tolerance."""
    low, high = refs.bounds(reference, better)
    words = " and ".join(
        f"{word} {units.show_number(side)}{units.show_unit(reference.unit)}"
        for word, side in (("at least", low), ("at most", high))
        if side is not None
    )
    return Bounds(low, high, words)
