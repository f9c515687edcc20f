"""The criterion on the mix: how far the achieved shares of tests are from the planned ones."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence, Set
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from seatrial.escaping import plain_line
from seatrial.grouping import grouped
from seatrial.model.codes import KNOWN, code_of
from seatrial.model.identifiers import bindings_text
from seatrial.model.plan import Criterion
from seatrial.model.test import Case, Stage
from seatrial.results.criteria.answers import only_fill_gaps
from seatrial.results.criteria.view import (
    STAGE_WORDS,
    Numbers,
    Result,
    State,
    TrialView,
    decided,
    label,
    largest_listed,
    show_value,
    undecided,
    with_worst,
)
from seatrial.results.node_hours import TestShare, shared_time
from seatrial.results.trial_history import RunHistory
from seatrial.units import count, listed, show_share


def mix(view: TrialView, criterion: Criterion) -> list[Result]:
    """How far the shares of the node-hours that tests had are from those that the plan gives them,
    in percentage points; in sustained components. The test with the largest difference decides.

        achieved   = (script + part * (job - script)) / available node-hours
        difference = |achieved - planned|
        difference = max(0, planned - achieved)      of a test with ``fill``

    ``script`` is the node-hours of the scripts of a test's runs, whatever their verdicts, and
    ``job`` those in which their jobs held nodes. The time beside a script counts as far as the
    plan gives it to any test: ``part``, the same for all tests and at most 1, is such that all
    together have no more than jobs held, and no more than is planned. ``available`` is that of
    utilisation. ``planned`` is the test's share, its copies times their nodes over the
    machine's, its part of the rest by weight, or what all others leave (``fill``). Where people
    changed the plan, it is the mean of the test's shares, by the node-hours that were available
    while each held.

    While several scripts run on a node, its time is divided among them by the cores that they
    ask for, so that shares never add up to more than the machine.

    Undecided: before the end.

    Example: half of the machine planned for one test, a third for two copies of another, the
    rest for a third one. They had 46.7, 35 and 15 % of the node-hours: 3.3, 1.7 and 1.7 points
    off. ``at_most: 5 points`` is met.
    """
    found = view.node_shares
    if found is None:
        return [undecided(criterion, "no node-hours were available yet")]
    wanted = set(view.tests(criterion))
    runs = Counter(view.history.test_of(run) for run in view.runs(criterion))
    shared = shared_time(found)
    results = [
        decided(
            view,
            criterion,
            _difference(each),
            _reason(each) + (f"; {shared}" if shared else ""),
            n=runs[each.test],
            subject=each.test,
            numbers={
                "planned": each.planned or 0.0,
                "achieved": each.achieved,
                "node-hours": each.node_hours,
            },
        )
        for each in found.tests
        if each.test in wanted
    ]
    return with_worst(results, lambda one: one.value or 0.0)


def _difference(each: TestShare) -> float:
    off = each.achieved - (each.planned or 0.0)
    return max(0.0, -off) if each.fill else abs(off)


def _reason(each: TestShare) -> str:
    planned = "fill alone" if each.only_fills else show_share(each.planned or 0.0)
    achieved = show_share(each.achieved)
    return f"{achieved} of the node-hours, planned {planned}"


# ---- overall -------------------------------------------------------------------------------------
#
# What several criteria say together, in the words of every heading, page, table and report.
#
# found = overall(results)
# found.state                  # "met with waivers"
# found.short                  # "met, 1 waived"
# found.words                  # "met, 1 waived: slowdown -180 % (at most 10 % loss)"
#                              # "not met: clause 5.1, pass rate 82.1 %, by cm4 (at least 90 %)"
#
# Runs that people excluded and failures that are known are said, too: "met, 1 by excluded runs, 2
# known failures: pass rate 66.67 % with them (at least 100 %)".


MAX_NAMED = 4  # criteria, in one sentence
OverallState = State | Literal["met with waivers", "awaited", "no criteria"]


class Overall(Struct, frozen=True):
    """The state of several criteria together; ``waived`` names those that a waiver was needed for,
    with what was found and asked, ``by_exclusion`` those that are met or waived only because both
    sides excluded runs. ``known`` is the number of known failures, which no criterion counts.
    ``missed`` names what is not met."""

    state: OverallState
    waived: list[str]
    by_exclusion: list[str] = []
    known: int = 0
    missed: list[str] = []

    @property
    def short(self) -> str:
        """The state, and how many criteria were waived or are met by excluded runs."""
        parts: list[str] = ["met" if self.state == "met with waivers" else self.state]
        if self.waived and self.state != "waived":
            parts.append(f"{len(self.waived)} waived")
        if self.by_exclusion:
            parts.append(f"{len(self.by_exclusion)} by excluded runs")
        if self.known:
            parts.append(count(self.known, "known failure"))
        return ", ".join(parts)

    @property
    def words(self) -> str:
        """The state, and which criteria are not met, were waived or are met by excluded runs."""
        named = [*self.waived, *self.by_exclusion]
        short = self.short
        if self.missed:
            short = short.removeprefix(self.state).removeprefix(", ")
        rest = f"{short}: {'; '.join(named)}" if named else short
        missed = f"{self.state}: {'; '.join(first_of(self.missed))}" if self.missed else ""
        return "; ".join(filter(None, (missed, rest)))


def overall(results: Sequence[Sequence[Result]]) -> Overall:
    """Return what the criteria say together: not met if one is not, else undecided if one is, else
    met; waived if all are, "no criteria" if there is none."""
    firsts = [each[0] for each in results if each]
    if all(one.criterion == "every_test" and one.state == "met" for one in firsts):
        return Overall("no criteria", [])
    waived, missed = (
        [one for one in firsts if one.state == state] for state in ("waived", "not met")
    )
    return Overall(
        _state_of({one.state for one in firsts}),
        list(map(waived_words, waived)),
        list(filter(None, map(exclusion_words, firsts))),
        max(map(known_failures, firsts), default=0),
        list(map(missed_words, missed)),
    )


def _state_of(states: Collection[State]) -> OverallState:
    if {"met", "waived"} == {*states}:
        return "met with waivers"
    order: tuple[State, ...] = ("not met", "undecided", "met", "waived")
    return next((each for each in order if each in states), "no criteria")


def first_of(words: Sequence[str], limit: int = MAX_NAMED) -> list[str]:
    """Return so many of the words at most, and how many more there are."""
    more = len(words) - limit
    return [*words[:limit], f"and {more} more"] if more > 0 else list(words)


def missed_words(one: Result, component: str = "") -> str:
    """Return a criterion that is not met, or undecided, by its clause, with what was found and
    asked: ``clause 5.1, pass rate of stability 82.1 %, by cm4 (at least 90 %)``."""
    clause = f"clause {one.clause}, " if one.clause else ""
    worst = f", by {one.numbers['worst']}" if one.shown and one.numbers.get("worst") else ""
    return f"{clause}{_with_bound(one, component, (one.shown or 'without a value') + worst)}"


def _with_bound(one: Result, component: str, found: str) -> str:
    of = f" of {component}" if component else ""
    return f"{one.label}{of} {found} ({one.bound or 'no bound'})"


def known_failures(one: Result) -> int:
    """Return how many known failures a criterion on runs left out."""
    return int(one.numbers.get("known", 0))


def exclusion_words(one: Result, component: str = "") -> str:
    """Return a criterion that is met only because both sides excluded runs, with what was found
    with them, and asked: ``pass rate 66.67 % with them (at least 100 %)``; "" for others."""
    other = one.with_excluded
    if other is None or one.state not in ("met", "waived") or other.state == one.state:
        return ""
    value = show_value(one.criterion, other.value, one.unit) or "without a value"
    return _with_bound(one, component, f"{value} with them")


def waived_words(one: Result, component: str = "") -> str:
    """Return a waived criterion with what was found and asked: ``slowdown -180 % (at most 10 %
    loss)``."""
    return _with_bound(one, component, one.shown or "without a value")


# ---- every test ----------------------------------------------------------------------------------
#
# The criterion that holds for every component: each of its tests gave a right answer, with each of
# its toolchains, in each of its stages and with all parameters, and none was stopped.


MAX_TESTS_NAMED = 3
NEVER_RAN = "never ran"
_NO_TEST: Numbers = {"tests": 0, "at fault": 0}
LONGEST_CAUSE = 200  # characters of a log's last line


class _TestOutcome(Struct, frozen=True):
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
    right = sum(one.right for one in found)
    if not found:
        reason = "the component has no test"
        return [replace(undecided(criterion, reason, "a right answer"), numbers=_NO_TEST)]
    state: State = "undecided"
    if view.over:
        state = "not met" if bad else "met"
    first = Result(
        criterion=criterion.criterion,
        label=label(criterion),
        state=state,
        value=float(len(found) - len(bad)),
        bound="a right answer",
        n=right,
        numbers=_counts(view, criterion, found),
        reason=_in_words(view, bad, right, len(found)),
    )
    if len(found) == 1:
        return [first]
    whole = replace(first, bound=f"all {len(found)}")
    return [whole, *(_subject(criterion, state, one) for one in bad)]


def _counts(view: TrialView, criterion: Criterion, found: Sequence[_TestOutcome]) -> Numbers:
    """Return how many tests there are, how many are at fault, and the known failures, if any."""
    numbers: Numbers = {"tests": len(found), "at fault": sum(bool(one.fault) for one in found)}
    if known := sum(run.code == KNOWN.number for run in view.runs(criterion)):
        numbers["known"] = known
    return numbers


def _in_words(view: TrialView, bad: Sequence[_TestOutcome], right: int, tests: int) -> str:
    """Return which tests are at fault, or that none is; of several what is wrong stands with
    each."""
    faults = "".join(f"{one.name} {one.fault}" for one in bad)
    if len(bad) > 1:
        names = listed([one.name for one in bad], MAX_TESTS_NAMED)
        faults = f"{len(bad)} of {tests} tests are at fault: {names}"
    if not view.over:
        return "; ".join(filter(None, (view.goes_on, faults)))
    return faults or f"{count(right, 'run')} with a right answer"


def _subject(criterion: Criterion, state: State, one: _TestOutcome) -> Result:
    return Result(
        criterion=criterion.criterion,
        label=label(criterion),
        subject=one.name,
        state=state,
        value=0.0,
        bound="a right answer",
        n=one.right,
        reason=one.fault,
    )


def _outcomes(view: TrialView, criterion: Criterion) -> Iterator[_TestOutcome]:
    """Yield the tests with their toolchains."""
    history = view.history
    wanted = set(view.tests(criterion))
    cases = grouped((case for _, case in view.cases() if case.test in wanted), _test_key)
    runs = grouped(view.runs(criterion), lambda run: _test_key(history.cases[run.case]))
    toolchains = Counter(test for test, _ in set(map(_test_key, history.cases)))
    gaps = only_fill_gaps(history)
    stages = _stages(view, criterion)
    for key, some in cases.items():
        test, toolchain = key
        own = runs.get(key, [])
        fault = _fault(view, test, some, own, stages[key])
        if fault == NEVER_RAN and test in gaps:
            continue
        name = f"{test}@{toolchain}" if toolchains[test] > 1 else test
        yield _TestOutcome(name, sum(run.right for run in own), fault)


def _test_key(case: Case) -> tuple[str, str]:
    return case.test, case.toolchain


def _stages(view: TrialView, criterion: Criterion) -> dict[tuple[str, str], set[Stage]]:
    """Return the stages in which tests with their toolchains are to run; empty sets where a
    component has none."""
    policy, asked = view.history.policy, view.stages_of(criterion)
    found: dict[tuple[str, str], set[Stage]] = {}
    for number, case in view.cases():
        wanted = found.setdefault(_test_key(case), set())
        if asked and not case.only_builds:
            entry = policy.entries[policy.entry_of[number]]
            wanted |= {stage for stage in asked if getattr(entry, stage)}
    return found


def _fault_of_stages(view: TrialView, stages: Set[Stage], runs: Sequence[RunHistory]) -> str:
    """Return in which stage a test gave no right answer, though it did in another; "" if none."""
    for stage in sorted(stages):
        own = [run for run in runs if run.stage == stage]
        if not any(run.right for run in own):
            return _never_right(view, own, STAGE_WORDS[stage])
    return ""


def _fault_of_cases(view: TrialView, cases: Sequence[Case], runs: Sequence[RunHistory]) -> str:
    """Return which case of a test gave no right answer, though others did; "" if none. Cases that
    differ in their node alone are one. In a mix, where the cases of a test take turns, one that did
    not have its turn is not asked."""
    history = view.history
    found: dict[tuple[str, int], list[RunHistory]] = {_key(case): [] for case in cases}
    for run in runs:
        found[_key(history.cases[run.case])].append(run)
    takes_turns = history.policy.kind == "sustained"
    for (bindings, nodes), own in found.items():
        had_turn = any(run.over for run in own) or not takes_turns
        if had_turn and not any(run.right for run in own):
            return _never_right(view, own, f" with {bindings or count(nodes, 'node')}")
    return ""


def _key(case: Case) -> tuple[str, int]:
    return bindings_text(case.parameters), case.nodes


def _never_built(view: TrialView, cases: Sequence[Case]) -> str:
    """Return why no case of a test was built; "" if some build did not fail."""
    builds = [view.history.failed_builds.get(case.build) for case in cases]
    logs = [build.log or "the build failed" for build in builds if build is not None]
    if len(logs) < len(cases):
        return ""
    last = (logs[0].strip().splitlines() or ["?"])[-1]
    return f"was never built: {plain_line(last)[:LONGEST_CAUSE]}"


def _fault(
    view: TrialView, test: str, cases: list[Case], runs: list[RunHistory], stages: Set[Stage]
) -> str:
    """Return what is wrong with a test and a toolchain; "" if nothing is."""
    history = view.history
    if test in history.stopped:
        return f"was stopped: {history.stopped[test] or 'no reason was given'}"
    if any(run.right for run in runs):
        return _fault_of_stages(view, stages, runs) or _fault_of_cases(view, cases, runs)
    return _never_built(view, cases) or _never_right(view, runs)


def _never_right(view: TrialView, runs: Sequence[RunHistory], where: str = "") -> str:
    """Return how runs without a right answer went, in words."""
    ended = Counter(code_of(run.code).name for run in runs if run.over)
    if ended:
        return f"never gave a right answer{where}: {largest_listed(ended)}"
    return f"{'has no result yet' if runs and not view.over else NEVER_RAN}{where}"
