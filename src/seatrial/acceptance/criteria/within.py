"""The criterion of contracts: a share of the runs is right, and as fast as expected within x %."""

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.acceptance.criteria.answers import JUST_LESS, counts, unless_cancelled
from seatrial.acceptance.criteria.result import (
    Numbers,
    Result,
    bounds_of,
    decided,
    listed,
    undecided,
    with_worst,
)
from seatrial.acceptance.criteria.view import NodeCases, TrialView
from seatrial.acceptance.trial_history import RunHistory
from seatrial.journal.codes import code_of
from seatrial.plan.model import Criterion
from seatrial.units import NO_DIRECTION, count, show_figure, show_share
from seatrial.verify import references as refs
from seatrial.verify.figures import ELAPSED

MAX_NAMED = 3
ROUNDING = 1e-9
MIN_RUNS = 5  # figures of a case without which their median is no expectation


class ExpectedFigure(NamedTuple):
    """What is expected of the runs of a case; ``few``: their own median, of few figures."""

    value: float
    unit: str
    few: bool = False


class CountedRuns(NamedTuple):
    """The runs of a test that count, by what became of them: within what is expected, or why not;
    ``few`` are cases with too few figures for a median, ``none`` those without a run that
    counts."""

    outcomes: Counter[str]
    expected: list[ExpectedFigure]
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
    by_test: dict[str, list[NodeCases]] = {test: [] for test in view.tests(criterion)}
    for group in view.groups(criterion):
        by_test[group.case.test].append(group)
    results = [_of_test(view, criterion, test, groups) for test, groups in by_test.items()]
    return with_worst(results, lambda one: -(one.value or 0.0))


def _of_test(
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
    if result.state == "met" and found.few:
        why = f"the median of {found.few[0]} is of fewer than {MIN_RUNS} right runs; {result.why}"
        result = replace(result, state="undecided", why=why)
    if result.state == "met" and found.none:
        why = f"no run of {', '.join(found.none[:MAX_NAMED])} counts; {result.why}"
        result = replace(result, state="undecided", why=why)
    ended = [run for group in groups for run in group.runs if run.over]
    return unless_cancelled(view, result, ended)


def _counted(view: TrialView, criterion: Criterion, groups: Sequence[NodeCases]) -> CountedRuns:
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
    return CountedRuns(outcomes, expected, few, none)


def _expected(
    view: TrialView, criterion: Criterion, group: NodeCases, runs: Sequence[RunHistory]
) -> ExpectedFigure | None:
    """Return what is expected of the runs of a case; None if it has no right run with a figure."""
    metric, case = criterion.metric or ELAPSED, group.case
    figures = [figure for run in runs if run.right and (figure := run.figure(metric))]
    kinds = sorted({figure.unit for figure in figures})
    if len(kinds) > 1:
        raise ValueError(f"{metric} of {group.name} is in several units: {' and '.join(kinds)}")
    if criterion.of == "median":
        if not figures:
            return None
        middle = median(figure.value for figure in figures)
        if not middle:
            raise ValueError(f"the median of {metric} of {group.name} is 0: nothing is x % of that")
        return ExpectedFigure(middle, figures[0].unit, len(figures) < MIN_RUNS)
    reference = refs.matching(
        view.references, case.test, metric, case.parameters, case.toolchain, group.stage
    )
    of = f"{metric} of {group.name}"
    if reference is None:
        raise ValueError(f"there is no reference for {of}")
    if not reference.value:
        raise ValueError(f"the reference for {of} has bounds and no value")
    units = {figure.unit for figure in figures} - {reference.unit}
    if units:
        raise ValueError(f"{of} is in {units.pop()}, but its reference in {reference.unit}")
    return ExpectedFigure(reference.value, reference.unit)


def _outcome(run: RunHistory, criterion: Criterion, expected: ExpectedFigure | None) -> str:
    """Return what became of a run: ``within``, ``worse`` or ``better`` than that, ``without the
    figure``, or the verdict of one that is not right."""
    if not run.right:
        return code_of(run.code).name
    figure = run.figure(criterion.metric or ELAPSED)
    if figure is None or expected is None:
        return "without the figure"
    allowed = criterion.within.fraction if criterion.within else 0.0
    off = (figure.value - expected.value) / abs(expected.value)
    if abs(off) <= allowed * (1 + ROUNDING):
        return "within"
    if figure.better == NO_DIRECTION:
        return "above" if off > 0 else "below"
    if (off > 0) == (figure.better == "lower"):
        return "worse"
    return "better" if criterion.two_sided else "within"


def _lost(criterion: Criterion, found: CountedRuns) -> int:
    """Return how many runs are not within what is expected, whatever comes: a median may move."""
    moves = {"within", "worse", "better", "above", "below"}
    stays = {"within"} if criterion.of == "reference" else moves
    return sum(number for name, number in found.outcomes.items() if name not in stays)


def _reason(criterion: Criterion, found: CountedRuns) -> str:
    n, good = found.outcomes.total(), found.outcomes["within"]
    if not n:
        return "no run has ended"
    of = f"the {criterion.of}" + ("" if len(found.expected) == 1 else " of their case")
    if len(found.expected) == 1:
        of += f" {show_figure(found.expected[0].value, found.expected[0].unit)}"
    worse = "off" if criterion.two_sided else "worse than"
    allowed = show_share(criterion.within.fraction if criterion.within else 0.0)
    why = f"{good} of {count(n, 'run')} right, with {criterion.metric or ELAPSED} at most {allowed}"
    why += f" {worse} {of}"
    others = {name: number for name, number in found.outcomes.items() if name != "within"}
    return f"{why}; {listed(others)}" if any(others.values()) else why
