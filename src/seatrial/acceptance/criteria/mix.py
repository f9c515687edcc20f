"""The criterion on the mix: how far the achieved shares of tests are from the planned ones."""

from collections import Counter

from seatrial.acceptance.criteria.result import Result, decided, undecided, with_worst
from seatrial.acceptance.criteria.view import TrialView
from seatrial.acceptance.node_shares import TestShare, sharing
from seatrial.plan.model import Criterion
from seatrial.units import show_share


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
    shared = sharing(found)
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
