"""Criteria on verdicts: how many runs passed, how many answers were right."""

import math
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.acceptance.criteria.result import (
    Numbers,
    Reach,
    Result,
    bounds_of,
    decided,
    listed,
    show_value,
    with_worst,
)
from seatrial.acceptance.criteria.view import TrialView
from seatrial.acceptance.stopped_tests import StopShield
from seatrial.acceptance.trial_history import RunHistory
from seatrial.journal import codes
from seatrial.journal.codes import code_of
from seatrial.plan.model import Criterion
from seatrial.units import count

# The verdicts of runs whose answer was checked.
_ANSWERED = frozenset(
    code.number for code in (codes.PASS, codes.PERFORMANCE, codes.NO_FIGURE, codes.WRONG_ANSWER)
)
JUST_LESS = 1e-9  # a share of 1 is out of reach once one run did not pass


def pass_rate(view: TrialView, criterion: Criterion) -> list[Result]:
    """Runs that passed over runs that ended, and those that a stopped test did not make; of all
    tests together, which decides, then of each test.

    Runs that were cancelled or recalled do not count, nor those whose case runs again for what
    nodes or the scheduler did. ``numbers`` also has the rate of all attempts.
    """
    ended = [run for run in view.runs(criterion) if run.over]
    tests = view.tests(criterion)
    counted = [run for run in ended if counts(run)]
    shield = StopShield(view.history, view.now, tests, counted)
    results = [_rate(view, criterion, ended, shield, "")]
    if len(tests) > 1:
        by_test: dict[str, list[RunHistory]] = {test: [] for test in tests}
        for run in ended:
            by_test[view.history.test_of(run)].append(run)
        results += [_rate(view, criterion, own, shield, test) for test, own in by_test.items()]
    return results


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
    subject: str,
) -> Result:
    """Return the rate of these runs: of a test, or "" for all."""
    counted = [run for run in ended if counts(run)]
    bad = [run for run in counted if not run.passed]
    by_code = Counter(run.code for run in ended)
    attempts = len(ended) - sum(by_code[code] for code in codes.UNCOUNTED)
    unmade = {t: n for t, n in shield.unmade.items() if n and subject in ("", t)}
    passed = len(counted) - len(bad)
    good = float(passed) if subject else math.fsum(shield.weights(counted))
    whole = len(counted) - passed + good + sum(unmade.values())
    numbers: Numbers = {
        "passed": passed,
        "ended": len(counted),
        "retried": attempts - len(counted),
        "cancelled": by_code[codes.CANCELLED.number],
        "recalled": by_code[codes.RECALLED.number],
    }
    known = by_code[codes.KNOWN.number]
    if known:
        numbers["known"] = known
    if attempts:
        numbers["rate of all attempts"] = by_code[codes.PASS.number] / attempts
    why = _not_passed(view, len(counted), bad)
    if known:
        why += f"; {count(known, 'known failure')} not counted"
    if retried := attempts - len(counted):
        why += f"; {count(retried, 'retried run')} not counted"
    if numbers["cancelled"]:
        why += f"; {count(int(numbers['cancelled']), 'cancelled run')} not counted"
    lost = sum(run.code == codes.CANCELLED.number and not run.will_rerun for run in ended)
    if lost and whole:
        worst = numbers["rate if cancelled runs had failed"] = good / (whole + lost)
        why += f" ({show_value('pass_rate', worst)} had they failed)"
    if unmade:
        numbers["not made"] = sum(unmade.values())
        why += f"; {listed({f'of {test}': number for test, number in unmade.items()})} "
        why += "were not made, as it was stopped" if len(unmade) == 1 else "were not made"
    result = decided(
        view,
        criterion,
        good / whole if counted else None,
        why,
        n=len(counted),
        reach=_reach(view, criterion, counted, len(bad), subject),
        numbers=numbers | _tally(bad),
        subject=subject,
    )
    return unless_cancelled(view, result, ended)


def unless_cancelled(view: TrialView, result: Result, ended: Sequence[RunHistory]) -> Result:
    """Return the result, or an undecided one where it is met, each case has a number of runs, and
    others cancelled some of them: these might have failed."""
    cancelled = [run for run in ended if run.code == codes.CANCELLED.number and not run.will_rerun]
    if result.state != "met" or view.history.policy.kind == "sustained" or not cancelled:
        return result
    number = len(cancelled)
    why = (
        f"{count(number, 'run')} {'was' if number == 1 else 'were'} cancelled by others, and not "
        f"retried ({_of_tests(view, cancelled)}): begin the component anew under another --name, "
        "or waive it"
    )
    return replace(result, state="undecided", why=why)


def _reach(
    view: TrialView, criterion: Criterion, counted: Sequence[RunHistory], bad: int, subject: str
) -> Reach:
    """Return the lowest and the highest rate that is still possible if so many runs did not pass.
    Where each case has a number of runs, and none that counts ran again, each is one of so many;
    else a rate below 1 only stays below it."""
    good, planned = len(counted) - bad, 0
    if view.history.policy.kind == "once" and not any(run.will_rerun for run in counted):
        tests = {subject} if subject else set(view.tests(criterion))
        planned = sum(case.repeat for _, case in view.cases() if case.test in tests)
    if planned >= len(counted) and planned:
        return good / planned, 1 - bad / planned
    return 0.0, 1.0 - (JUST_LESS if bad else 0)


def _tally(runs: Sequence[RunHistory]) -> dict[str, int]:
    """Return how many of the runs have which verdict."""
    return Counter(code_of(run.code).name for run in runs)


def _of_tests(view: TrialView, runs: Sequence[RunHistory]) -> str:
    """Return how many of the runs are of which test, in words."""
    return listed(Counter(f"of {view.history.test_of(run)}" for run in runs))


def _not_passed(view: TrialView, counted: int, bad: Sequence[RunHistory]) -> str:
    """Return which of so many runs did not pass, in words."""
    if not counted:
        return "no run has ended"
    if not bad:
        return f"all of {count(counted, 'run')} passed"
    number = f"{len(bad)} of {count(counted, 'run')}"
    return f"{number} did not pass: {listed(_tally(bad))} ({_of_tests(view, bad)})"


def correct_answers(view: TrialView, criterion: Criterion) -> list[Result]:
    """Runs with a right answer over runs that gave an answer.

    A run gave an answer if it ended by itself and its checks were carried out: its verdict is pass,
    performance, no figure or wrong answer. All attempts count: a wrong answer stays wrong though
    its case ran again.
    """
    ended = [run for run in view.runs(criterion) if run.over]
    answered = [run for run in ended if run.code in _ANSWERED]
    wrong = [run for run in answered if run.code == codes.WRONG_ANSWER.number]
    why = f"all of {count(len(answered), 'answer')} were right"
    if not answered:
        why = "no run has given an answer"
    elif wrong:
        why = f"{len(wrong)} of {count(len(answered), 'answer')} were wrong: "
        why += _of_tests(view, wrong)
    if known := sum(run.code == codes.KNOWN.number for run in ended):
        why += f"; {count(known, 'known failure')} not counted"
    result = decided(
        view,
        criterion,
        1 - len(wrong) / len(answered) if answered else None,
        why,
        n=len(answered),
        reach=(0.0, 1.0 - (JUST_LESS if wrong else 0)),
        numbers={"wrong": len(wrong), "without an answer": len(ended) - len(answered)},
    )
    return [unless_cancelled(view, result, ended)]


def accepted_runs(view: TrialView, criterion: Criterion) -> list[Result]:
    """The number of runs with verdict pass, of each test by itself."""
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
