"""The criterion that holds for every component: each of its tests gave a right answer, with each of
its toolchains, in each of its stages and with all parameters, and none was stopped."""

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.acceptance.criteria.fillers import only_fill_gaps
from seatrial.acceptance.criteria.result import Result, State, label, listed
from seatrial.acceptance.criteria.view import STAGE_WORDS, TrialView
from seatrial.acceptance.trial_history import RunHistory
from seatrial.journal.codes import KNOWN, code_of
from seatrial.plan.model import Criterion
from seatrial.suite.case_names import bindings_text
from seatrial.suite.model import Case, Stage
from seatrial.units import count
from seatrial.verify.reading import plain_line

MAX_NAMED = 3
NEVER_RAN = "never ran"
LONGEST_CAUSE = 200  # characters of a log's last line


class TestOutcome(NamedTuple):
    """A test with a toolchain: its runs with a right answer, and what is wrong with it ("" if it
    has such a run and was not stopped)."""

    name: str
    right: int
    fault: str


def every_test(view: TrialView, criterion: Criterion) -> list[Result]:
    """Each test of the component gave a right answer (verdict ``pass`` or ``performance``), with
    each of its toolchains and in each stage in which it runs, and none was stopped at the end.
    The value is the number of tests that are in order; those that are not follow, each with
    what is wrong.

    It holds for every component, whether a plan names it or not. A test is at fault that

    - was stopped, and not admitted again;
    - was never built: no case of it has a build that succeeded;
    - never ran: no run of it has a verdict;
    - never gave a right answer, or only with other parameters or on another number of nodes.
      Cases that differ in their node are one. In a sustained component the cases of a test take
      turns, and one that had no turn is not asked.

    A test with ``fill`` to which the others leave no share, and for which no node was idle, is
    not asked. A waiver of the test or of its toolchain makes it waived.

    Undecided: before the end, as a test may still give its first right answer, or be stopped.
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
    known = sum(run.code == KNOWN.number for run in view.runs(criterion))
    if known:
        first = replace(first, numbers={**first.numbers, "known": known})
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
    """Yield the tests with their toolchains."""
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
    gaps = only_fill_gaps(history)
    stages = _stages(view, criterion)
    for (test, toolchain), some in cases.items():
        own = runs[test, toolchain]
        fault = _fault(view, test, some, own)
        if fault == NEVER_RAN and test in gaps:
            continue
        fault = fault or _fault_of_stages(view, stages[test, toolchain], own)
        fault = fault or _fault_of_cases(view, some, own)
        name = f"{test}@{toolchain}" if chains[test] > 1 else test
        yield TestOutcome(name, sum(run.right for run in own), fault)


def _stages(view: TrialView, criterion: Criterion) -> dict[tuple[str, str], set[Stage]]:
    """Return the stages in which tests with their toolchains are to run; empty sets where a
    component has none."""
    policy, asked = view.history.policy, view.stages_of(criterion)
    found: dict[tuple[str, str], set[Stage]] = {}
    for number, case in view.cases():
        wanted = found.setdefault((case.test, case.toolchain), set())
        if asked and not case.only_builds:
            entry = policy.entries[policy.entry_of[number]]
            wanted |= {stage for stage in asked if getattr(entry, stage)}
    return found


def _fault_of_stages(view: TrialView, stages: Set[Stage], runs: Sequence[RunHistory]) -> str:
    """Return in which stage a test gave no right answer, though it did in another; "" if none."""
    for stage in sorted(stages):
        own = [run for run in runs if run.stage == stage]
        if any(run.right for run in own):
            continue
        ended = Counter(code_of(run.code).name for run in own if run.over)
        if ended:
            return f"never gave a right answer{STAGE_WORDS[stage]}: {listed(ended)}"
        still = own and not view.over
        return f"{'has no result yet' if still else NEVER_RAN}{STAGE_WORDS[stage]}"
    return ""


def _fault_of_cases(view: TrialView, cases: Sequence[Case], runs: Sequence[RunHistory]) -> str:
    """Return which case of a test gave no right answer, though others did; "" if none. Cases that
    differ in their node alone are one. In a mix, where the cases of a test take turns, one that did
    not have its turn is not asked."""
    history = view.history
    found: dict[tuple[str, int], list[RunHistory]] = {_key(case): [] for case in cases}
    for run in runs:
        found[_key(history.cases[run.case])].append(run)
    for (bindings, nodes), own in found.items():
        if any(run.right for run in own):
            continue
        where = f" with {bindings or count(nodes, 'node')}"
        ended = Counter(code_of(run.code).name for run in own if run.over)
        if ended:
            return f"never gave a right answer{where}: {listed(ended)}"
        if history.policy.kind != "sustained":
            return f"{'has no result yet' if own and not view.over else NEVER_RAN}{where}"
    return ""


def _key(case: Case) -> tuple[str, int]:
    return bindings_text(case.parameters), case.nodes


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
        return "has no result yet" if runs and not view.over else NEVER_RAN
    verdicts = Counter(code_of(run.code).name for run in ended)
    return f"never gave a right answer: {listed(verdicts)}"
