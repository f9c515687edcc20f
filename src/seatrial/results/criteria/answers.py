"""Criteria on verdicts: how many runs passed, how many answers were right.

Both are asked of each test: the worst one decides, unless the criterion is ``pooled``.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from msgspec.structs import replace

from seatrial.decide.in_flight import PlannedShares, planned_for
from seatrial.execute.plan.component import ItemStatus, items_of
from seatrial.model import codes
from seatrial.model.codes import code_of
from seatrial.model.node_set import fold
from seatrial.model.plan import Criterion
from seatrial.results.criteria.view import (
    Numbers,
    Reach,
    Result,
    TrialView,
    bounds_of,
    decided,
    largest_listed,
    show_value,
    with_worst,
)
from seatrial.results.holds import StopShield
from seatrial.results.trial_history import NodeBits, RunHistory, TrialHistory
from seatrial.units import count, listed

# The verdicts of runs whose answer was checked.
_ANSWERED = frozenset(
    code.number for code in (codes.PASS, codes.PERFORMANCE, codes.NO_FIGURE, codes.WRONG_ANSWER)
)
JUST_LESS = 1e-9  # a share of 1 is out of reach once one run did not pass
TOGETHER = "tests with a part of the machine"  # what a pooled share is of


def pass_rate(view: TrialView, criterion: Criterion) -> list[Result]:
    """Runs that passed over runs that ended, and over those that a stopped test did not make, of
    each test by itself. The test with the lowest rate decides, so that many short runs of one
    test hide no failures of another.

        pass_rate = passed / (ended + not made)
        not made  = ended * stopped / (time - stopped)      in a sustained component, rounded up

    ``stopped`` is the time in which the test was stopped; in other components the runs that are
    not made are those of the plan that have not ended while it is stopped. As the other tests
    have its nodes meanwhile, their runs that passed in that time count less, by its share, in a
    rate of several tests. So a stop never improves a rate.

    With ``pooled`` the tests that have a part of the machine (share, weight, copies) are one
    rate; tests with ``fill`` stay apart, each by itself, and the worst of all decides.

    Not counted are runs that a person or the scheduler cancelled, recalled runs, known
    failures, and runs that were retried for what nodes or the scheduler did: node failure, boot
    failure, timeout, hung, lost. Runs that were wrong, misplaced, too slow or failed by
    themselves count, though their case ran again, so that retries never improve the rate.
    ``numbers`` also has the rate of all attempts, and what it would be had the cancelled runs
    failed.

    If three or more runs did not pass, and at least three quarters of them were on a node on
    which at most half of those that passed were, the reason names it.

    Undecided: before the end, but for a bound that can no longer be met; after it where others
    cancelled runs that were not retried and the component is not sustained; a test of which no
    run counts, unless all its failures are known.

    Example: 1,000 runs, of which 20 were cancelled, 30 retried, and 38 reached their walltime:
    912 / 950 = 96 %.
    """
    ended = [run for run in view.runs(criterion) if run.over]
    tests = view.tests(criterion)
    shield = StopShield(view.history, view.now, tests, [run for run in ended if counts(run)])
    by_test = _by_test(view, tests, ended)

    def rate(some: Sequence[str], subject: str) -> Result:
        runs = [run for test in some for run in by_test[test]]
        return _rate(view, criterion, runs, shield, some, subject)

    return _of_worst(view, criterion, rate)


def _by_test(
    view: TrialView, tests: Sequence[str], runs: Sequence[RunHistory]
) -> dict[str, list[RunHistory]]:
    found: dict[str, list[RunHistory]] = {test: [] for test in tests}
    for run in runs:
        found[view.history.test_of(run)].append(run)
    return found


def _of_worst(
    view: TrialView, criterion: Criterion, share: Callable[[Sequence[str], str], Result]
) -> list[Result]:
    """Return the result of a share that the worst test decides, then that of each test. ``share``
    returns the result of some tests, under a name.

    A test of which no run counts is undecided, but where its failures are known.
    Of a ``pooled`` criterion the tests that have a part of the machine are one share; those that
    only fill gaps are judged by themselves, so that their many runs hide no failure.
    """
    tests = view.tests(criterion)
    whole = share(tests, "")
    if len(tests) < 2:
        return [whole]
    each = {test: share([test], test) for test in tests}
    asked = _asked(view, each)
    if criterion.pooled:
        filling = fillers(view.history)
        claimed = [test for test in tests if test not in filling] or tests
        pool = whole if len(claimed) == len(tests) else share(claimed, TOGETHER)
        lowest = _lowest([each[test] for test in claimed])
        pool = replace(pool, reason=f"{pool.reason}{lowest}")
        asked = [pool, *(one for one in asked if one.subject not in claimed)]
        if len(asked) == 1:
            return [replace(pool, subject="", numbers=whole.numbers)]
    return _with_whole(criterion, whole, asked) if asked else [whole]


def _asked(view: TrialView, each: Mapping[str, Result]) -> list[Result]:
    """Return the results of the tests that have one, or should: those that only fill gaps may have
    run nowhere, and the failures of others may all be known."""
    gaps = only_fill_gaps(view.history)
    return [
        one
        for test, one in each.items()
        if one.value is not None or (test not in gaps and not one.numbers.get("known"))
    ]


def _with_whole(criterion: Criterion, whole: Result, asked: Sequence[Result]) -> list[Result]:
    """Return the worst of some results, with what the whole is beside it, then each of them."""
    sign = 1 if bounds_of(criterion).least is None else -1
    worst, *each = with_worst(asked, lambda one: sign * (one.value or 0.0))
    numbers = {**whole.numbers, **(worst.numbers if each else {})}
    if (whole.state, whole.value) == (worst.state, worst.value):
        return [replace(worst, reason=whole.reason, n=whole.n, numbers=numbers, subject=""), *each]
    reason = worst.reason
    if whole.value is not None:
        numbers["of all tests together"] = whole.value
        if not criterion.pooled:
            reason += f"; of all tests together {whole.shown}"
    return [replace(worst, reason=reason, n=whole.n, numbers=numbers, subject=""), *each]


def _lowest(each: Sequence[Result]) -> str:
    """Return which of the tests that are one share has the lowest, in words; "" if all are
    alike."""
    known = [one for one in each if one.value is not None]
    if len({one.value for one in known}) < 2:
        return ""
    low = min(known, key=lambda one: one.value or 0.0)
    return f"; the lowest is {low.subject}, {low.shown}"


def counts(run: RunHistory) -> bool:
    """Return whether a rate of passed runs counts a run that ended. A retry makes up for what nodes
    and schedulers did, and never for a wrong or failed run."""
    if run.code in codes.UNCOUNTED:
        return False
    return not run.will_rerun or run.code in codes.OWN_FAULTS


def _rate(
    view: TrialView,
    criterion: Criterion,
    ended: Sequence[RunHistory],
    shield: StopShield,
    tests: Sequence[str],
    subject: str,
) -> Result:
    """Return the rate of these runs, which are those of the tests."""
    counted = [run for run in ended if counts(run)]
    bad = [run for run in counted if not run.passed]
    unmade = {test: shield.unmade[test] for test in tests if shield.unmade.get(test)}
    passed = len(counted) - len(bad)
    good = float(passed) if len(tests) == 1 else math.fsum(shield.weights(counted))
    whole = len(counted) - passed + good + sum(unmade.values())
    numbers = {"passed": passed, "ended": len(counted), **_attempts(ended, len(counted))}
    reason = _not_passed(view, counted, bad, subject) + _not_counted(numbers)
    lost = len(_cancelled(ended))
    if lost and whole:
        worst = numbers["rate if cancelled runs had failed"] = good / (whole + lost)
        reason += f" ({show_value('pass_rate', worst)} had they failed)"
    if unmade:
        numbers["not made"] = sum(unmade.values())
        reason += _not_made(unmade)
    result = decided(
        view,
        criterion,
        good / whole if whole else None,
        reason,
        n=len(counted),
        reach=_reach(view, counted, len(bad), tests),
        numbers=numbers | _tally(bad),
        subject=subject,
    )
    return unless_cancelled(view, result, ended)


def _attempts(ended: Sequence[RunHistory], counted: int) -> Numbers:
    """Return how many runs that ended a rate does not count, and the rate of all attempts."""
    by_code = Counter(run.code for run in ended)
    attempts = len(ended) - sum(by_code[code] for code in codes.UNCOUNTED)
    numbers: Numbers = {
        "retried": attempts - counted,
        "cancelled": by_code[codes.CANCELLED.number],
        "recalled": by_code[codes.RECALLED.number],
    }
    if known := by_code[codes.KNOWN.number]:
        numbers["known"] = known
    if attempts:
        numbers["rate of all attempts"] = by_code[codes.PASS.number] / attempts
    return numbers


def _not_counted(numbers: Numbers) -> str:
    """Return how many runs a rate leaves out, in words."""
    words = ""
    for name, noun in (
        ("known", "known failure"),
        ("retried", "retried run"),
        ("cancelled", "cancelled run"),
    ):
        if number := int(numbers.get(name, 0)):
            words += f"; {count(number, noun)} not counted"
    return words


def _not_made(unmade: Mapping[str, int]) -> str:
    """Return how many runs were not made of stopped tests, in words."""
    words = f"; {largest_listed({f'of {test}': number for test, number in unmade.items()})} "
    return words + ("were not made, as it was stopped" if len(unmade) == 1 else "were not made")


def _cancelled(ended: Sequence[RunHistory]) -> list[RunHistory]:
    """Return the runs that a person or the scheduler cancelled, and that did not run again."""
    return [run for run in ended if run.code == codes.CANCELLED.number and not run.will_rerun]


def unless_cancelled(view: TrialView, result: Result, ended: Sequence[RunHistory]) -> Result:
    """Return the result, or an undecided one where it is met, each case has a number of runs, and
    others cancelled some of them: these might have failed."""
    cancelled = _cancelled(ended)
    if result.state != "met" or view.history.policy.kind == "sustained" or not cancelled:
        return result
    number = len(cancelled)
    reason = (
        f"{count(number, 'run')} {'was' if number == 1 else 'were'} cancelled by others, and not "
        f"retried ({_of_tests(view, cancelled)}): begin the component anew under another --name, "
        "or waive it"
    )
    return replace(result, state="undecided", reason=reason)


def _reach(view: TrialView, counted: Sequence[RunHistory], bad: int, tests: Sequence[str]) -> Reach:
    """Return the lowest and the highest rate that is still possible if so many runs did not pass.
    Where each case has a number of runs, and none that counts ran again, each is one of so many;
    else a rate below 1 only stays below it."""
    good, planned = len(counted) - bad, 0
    if view.history.policy.kind == "once" and not any(run.will_rerun for run in counted):
        planned = sum(case.repeat for _, case in view.cases() if case.test in tests)
    if planned >= len(counted) and planned:
        return good / planned, 1 - bad / planned
    return 0.0, 1.0 - (JUST_LESS if bad else 0)


def _tally(runs: Sequence[RunHistory]) -> dict[str, int]:
    """Return how many of the runs have which verdict."""
    return Counter(code_of(run.code).name for run in runs)


def _of_tests(view: TrialView, runs: Sequence[RunHistory]) -> str:
    """Return how many of the runs are of which test, in words."""
    return largest_listed(Counter(f"of {view.history.test_of(run)}" for run in runs))


def _not_passed(
    view: TrialView, counted: Sequence[RunHistory], bad: Sequence[RunHistory], subject: str
) -> str:
    """Return which of the counted runs of a test ("": of all) did not pass, in words."""
    if not counted:
        return "no run has ended"
    if not bad:
        return f"all of {count(len(counted), 'run')} passed"
    number = f"{len(bad)} of {count(len(counted), 'run')}"
    tests = "" if subject else f" ({_of_tests(view, bad)})"
    nodes = on_nodes(view, counted, bad)
    return f"{number} did not pass: {largest_listed(_tally(bad))}{tests}{nodes and f', {nodes}'}"


def correct_answers(view: TrialView, criterion: Criterion) -> list[Result]:
    """Runs with a right answer over runs that gave an answer, of each test by itself. The test
    with the lowest share decides; ``pooled`` as in pass_rate.

        correct_answers = 1 - wrong / answered

    A run gave an answer if it ended by itself and its checks were carried out: its verdict is
    pass, performance, no figure or wrong answer. All attempts count: a wrong answer stays wrong
    though its case ran again.

    Undecided: before the end; after it for cancelled runs as in pass_rate, and where answers
    could not be checked: check error, output too large, no verdict, or a verdict that this
    version does not know. A bound of 100 % is missed with the first wrong answer.

    Example: 4 answers, one of them wrong, and 2 timeouts: 75 %, n = 4.
    """
    tests = view.tests(criterion)
    by_test = _by_test(view, tests, [run for run in view.runs(criterion) if run.over])

    def share(some: Sequence[str], subject: str) -> Result:
        return _right(view, criterion, [run for test in some for run in by_test[test]], subject)

    return _of_worst(view, criterion, share)


def _right(
    view: TrialView, criterion: Criterion, ended: Sequence[RunHistory], subject: str
) -> Result:
    answered = [run for run in ended if run.code in _ANSWERED]
    wrong = [run for run in answered if run.code == codes.WRONG_ANSWER.number]
    reason = _answers_in_words(view, answered, wrong)
    numbers: Numbers = {"wrong": len(wrong), "without an answer": len(ended) - len(answered)}
    if known := sum(run.code == codes.KNOWN.number for run in ended):
        reason += f"; {count(known, 'known failure')} not counted"
        numbers["known"] = known
    result = decided(
        view,
        criterion,
        1 - len(wrong) / len(answered) if answered else None,
        reason,
        n=len(answered),
        reach=(0.0, 1.0 - (JUST_LESS if wrong else 0)),
        numbers=numbers,
        subject=subject,
    )
    return unless_cancelled(view, result.unless(_unchecked(ended)), ended)


def _answers_in_words(
    view: TrialView, answered: Sequence[RunHistory], wrong: Sequence[RunHistory]
) -> str:
    answers = count(len(answered), "answer")
    if not answered:
        return "no run has given an answer"
    if not wrong:
        return f"all of {answers} were right"
    return f"{len(wrong)} of {answers} were wrong: {_of_tests(view, wrong)}"


def _unchecked(ended: Sequence[RunHistory]) -> str:
    """Return how many answers could not be checked, in words; "" if all could."""
    unknown = [run for run in ended if _is_unknown(run)]
    if not unknown:
        return ""
    tally = largest_listed(_tally(unknown))
    return f"{count(len(unknown), 'answer')} could not be checked: {tally}"


def _is_unknown(run: RunHistory) -> bool:
    """Return whether nobody knows if a run's answer was right: its check could not be carried out,
    or this version does not know its verdict."""
    unchecked = (codes.CHECK_ERROR, codes.TOO_LARGE, codes.NO_VERDICT)
    by_us = run.code in {code.number for code in unchecked} or run.code not in codes.CODES
    return by_us and not run.will_rerun


def accepted_runs(view: TrialView, criterion: Criterion) -> list[Result]:
    """Runs with the verdict pass, of each test by itself. The test with the fewest decides.

    Undecided: while a test has fewer than ``at_least``. Met as soon as all tests have as many.

    Example: ``at_least: 100``, 1,050 runs of one test and 88 of another after the end: not met,
    by the other.
    """
    accepted = dict.fromkeys(view.tests(criterion), 0)
    ended = dict.fromkeys(accepted, 0)
    for run in view.runs(criterion):
        test = view.history.test_of(run)
        accepted[test] += run.passed
        ended[test] += run.over and not run.will_rerun
    stopped = view.history.stopped
    results = [
        decided(
            view,
            criterion,
            float(number),
            f"{count(number, 'run')} passed of {ended[test]} that ended"
            + (f"; the test was stopped: {stopped[test]}" if test in stopped else ""),
            n=ended[test],
            goes_on=f"{number} so far; {view.goes_on}",
            subject=test,
            reach=(float(number), None),
            numbers={"passed": number, "ended": ended[test]},
        )
        for test, number in accepted.items()
    ]
    sign = 1 if bounds_of(criterion).least is None else -1
    return with_worst(results, lambda one: sign * (one.value or 0))


# ---- fillers -------------------------------------------------------------------------------------
#
# The tests of a mix that have no claim and run on idle nodes: they fill gaps.


def fillers(history: TrialHistory) -> set[str]:
    """Return the tests of a mix that have no claim of their own."""
    return {history.policy.entries[number].name for number in _planned(history).fills}


def only_fill_gaps(history: TrialHistory) -> set[str]:
    """Return the tests of a mix to which the others leave no share: where no node was idle they
    did not run, as was planned."""
    planned, entries = _planned(history), history.policy.entries
    return {entries[number].name for number in planned.fills if not planned.shares[number]}


def _planned(history: TrialHistory) -> PlannedShares:
    if history.policy.kind != "sustained":
        return PlannedShares([], 0.0, [])
    return planned_for(history.cases, history.policy, history.room)


# ---- nodes of failures ---------------------------------------------------------------------------
#
# The nodes on which all or most of the runs were that did not pass, in words.
#
# on_nodes(view, counted, bad) # "all on n008", "12 of 15 on n[008-009]", "" for none


MIN_BAD = 3  # runs; fewer are on the same node by chance
MOST = 0.75  # of the runs that did not pass are on the node
OTHERS = 0.5  # of the runs that passed are there, at most: else nothing speaks against it


def on_nodes(view: TrialView, counted: Sequence[RunHistory], bad: Sequence[RunHistory]) -> str:
    """Return on which nodes all or most of the ``bad`` ones of the counted runs were, where those
    that passed mostly were on others; "" if there are no such nodes."""
    bits = view.history.bits
    if len(bad) < MIN_BAD or len(bits.names) < 2 or len(bad) == len(counted):
        return ""
    times = Counter(chain.from_iterable(bits.names_in(bits.of(run.nodes)) for run in bad))
    most = max(times.values(), default=0)
    if most < max(MIN_BAD, MOST * len(bad)):
        return ""
    names = [name for name, number in times.items() if number == most]
    if _passed_share(bits, counted, names) > OTHERS:
        return ""
    number = "all" if most == len(bad) else f"{most} of {len(bad)}"
    return f"{number} on {fold(sorted(names))}"


def _passed_share(bits: NodeBits, counted: Sequence[RunHistory], names: Sequence[str]) -> float:
    """Return which share of the runs that passed were on some of these nodes."""
    chosen = bits.of_names(names)
    were_there = [bits.of(run.nodes) & chosen != 0 for run in counted if run.passed]
    return sum(were_there) / len(were_there) if were_there else 0.0


# ---- items ---------------------------------------------------------------------------------------
#
# The criterion on the items of a checklist.


IMPLIED = Criterion(criterion="items_passed", at_least="100%")
"""What a checklist is judged by that has no criterion."""


def items_passed(view: TrialView, criterion: Criterion) -> list[Result]:
    """The share of the items of a checklist that passed.

        items_passed = passed / (items - waived)

    It is decided as soon as the items that have no result yet cannot change it. It is waived if
    it would not be met by passed / items, and is met without the waived items. Where a
    checklist names no criterion, this one holds, with a bound of 100 %. n is the number of
    items that passed or failed.
    """
    items = items_of(view.history.items, view.history.ticks)
    states = Counter(item.state for item in items)
    counted = len(items) - states["waived"]
    passed, failed, awaited = states["pass"], states["fail"], states["awaited"]
    result = decided(
        view,
        criterion,
        passed / counted if counted else None,
        _why(items),
        n=passed + failed,
        goes_on=f"{count(awaited, 'item')} awaited: {_named(items, 'awaited')}",
        reach=(passed / counted, (counted - failed) / counted) if counted else (None, None),
        numbers={name: states[name] for name in ("pass", "fail", "waived", "awaited")},
    )
    bounds = bounds_of(criterion)
    if not states["waived"] or awaited or result.state == "not met":
        return [result]
    share = passed / len(items)
    if bounds.holds(share):
        return [result]
    reason = f"{count(states['waived'], 'item')} waived: {_named(items, 'waived')}"
    return [replace(result, state="waived", without_waiver="not met", value=share, reason=reason)]


def _why(items: list[ItemStatus]) -> str:
    failed = [item for item in items if item.state == "fail"]
    if failed:
        return f"{len(failed)} of {count(len(items), 'item')} failed: {_named(items, 'fail')}"
    return f"all of {count(len(items), 'item')} passed"


def _named(items: list[ItemStatus], state: str) -> str:
    return listed([item.id for item in items if item.state == state], 5)
