"""The criterion on the mix: how far the achieved shares of tests are from the planned ones."""

from collections import Counter

from seatrial.acceptance.criteria.result import Result, decided, undecided, with_worst
from seatrial.acceptance.criteria.view import TrialView
from seatrial.acceptance.node_shares import TestShare, sharing
from seatrial.plan.model import Criterion
from seatrial.units import show_share


def mix(view: TrialView, criterion: Criterion) -> list[Result]:
    """The difference between the achieved and the planned share of the available node-hours of each
    test, in percentage points. The test with the largest difference decides.

    A test that fills what others leave may have more than that: then the others have less.
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
