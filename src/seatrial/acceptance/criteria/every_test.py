"""The criterion that holds for every component: each of its tests gave a right answer, with each of
its toolchains, and none was stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from seatrial.acceptance.criteria.result import Result, State, label, listed
from seatrial.acceptance.criteria.view import TrialView
from seatrial.acceptance.trial_history import RunHistory, TrialHistory
from seatrial.conduct.shares import planned_for
from seatrial.journal.codes import code_of
from seatrial.plan.component_tests import fits
from seatrial.plan.model import Criterion
from seatrial.suite.model import Case
from seatrial.units import count
from seatrial.verify.reading import plain_line

MAX_NAMED = 3
LONGEST_CAUSE = 200  # characters of a log's last line


class TestOutcome(NamedTuple):
    """A test with a toolchain: its runs with a right answer, and what is wrong with it ("" if it
    has such a run and was not stopped)."""

    name: str
    right: int
    fault: str


def every_test(view: TrialView, criterion: Criterion) -> list[Result]:
    """Return whether each test gave a right answer with each toolchain, then those that did not.

    A test that was stopped, never built, never ran or never gave a right answer is at fault.
    Nothing is decided before the trial's end, as a test may still run or be stopped.
    """
    found = list(_outcomes(view, criterion))
    bad = [one for one in found if one.fault]
    n = sum(one.right for one in found)
    if not found:
        why = "the component has no test"
        return [_result(criterion, "undecided", n=0, total=0, good=None, why=why)]
    faults = "; ".join(f"{one.name} {one.fault}" for one in bad[:MAX_NAMED])
    if len(bad) > MAX_NAMED:
        faults += f"; and {count(len(bad) - MAX_NAMED, 'more test')}"
    good = len(found) - len(bad)
    state: State = "undecided"
    why = faults
    if view.over:
        state = "not met" if bad else "met"
        why = why or f"{count(n, 'run')} with a right answer"
    else:
        why = f"{view.goes_on}; {faults}" if faults else view.goes_on
    first = _result(criterion, state, n=n, total=len(found), good=good, why=why)
    if len(found) < 2:
        return [first]
    return [first, *(_subject(criterion, state, one) for one in bad)]


def _result(
    criterion: Criterion, state: State, *, n: int, total: int, good: int | None, why: str
) -> Result:
    return Result(
        criterion=criterion.criterion,
        label=label(criterion),
        state=state,
        value=None if good is None else float(good),
        bound=f"all {total}" if total > 1 else "a right answer",
        n=n,
        numbers={"tests": total, "at fault": total - (good or 0)},
        why=why,
    )


def _subject(criterion: Criterion, state: State, one: TestOutcome) -> Result:
    return Result(
        criterion=criterion.criterion,
        label=label(criterion),
        subject=one.name,
        state=state,
        value=0.0,
        bound="a right answer",
        n=one.right,
        why=one.fault,
    )


def _outcomes(view: TrialView, criterion: Criterion) -> Iterator[TestOutcome]:
    """Yield the tests with their toolchains, those that have no case last."""
    history = view.history
    cases: dict[tuple[str, str], list[Case]] = {}
    wanted = set(view.tests(criterion))
    for _, case in view.cases():
        if case.test in wanted:
            cases.setdefault((case.test, case.toolchain), []).append(case)
    chains = Counter(test for test, _ in {(case.test, case.toolchain) for case in history.cases})
    runs: dict[tuple[str, str], list[RunHistory]] = {key: [] for key in cases}
    for run in view.runs(criterion):
        about = history.cases[run.case]
        runs[about.test, about.toolchain].append(run)
    gaps = _only_fill_gaps(history)
    for (test, toolchain), some in cases.items():
        own = runs[test, toolchain]
        if test in gaps and not own and test not in history.stopped:
            continue
        name = f"{test}@{toolchain}" if chains[test] > 1 else test
        yield TestOutcome(name, sum(run.right for run in own), _fault(view, test, some, own))
    for test, why in view.absent.items():
        if fits(criterion.tests, test):
            yield TestOutcome(test, 0, why)


def _only_fill_gaps(history: TrialHistory) -> set[str]:
    """Return the tests of a mix to which the others leave no share: where no node was idle they
    did not run, as was planned."""
    if history.policy.kind != "sustained":
        return set()
    planned = planned_for(history.cases, history.policy, history.room)
    entries = history.policy.entries
    return {entries[number].name for number in planned.fills if not planned.shares[number]}


def _fault(view: TrialView, test: str, cases: list[Case], runs: list[RunHistory]) -> str:
    history = view.history
    if test in history.stopped:
        return f"was stopped: {history.stopped[test] or 'no reason was given'}"
    if any(run.right for run in runs):
        return ""
    logs = [history.unbuilt[case.build] for case in cases if case.build in history.unbuilt]
    if len(logs) == len(cases):
        last = (logs[0].strip().splitlines() or ["?"])[-1]
        return f"was never built: {plain_line(last)[:LONGEST_CAUSE]}"
    ended = [run for run in runs if run.over]
    if not ended:
        return "has no result yet" if runs and not view.over else "never ran"
    verdicts = Counter(code_of(run.code).name for run in ended)
    return f"never gave a right answer: {listed(verdicts)}"
