"""Compare figures of merit with the machine's references.

table = expected(view)      # a row for each case and metric with a reference
"""

from collections.abc import Iterator
from typing import Final

from seatrial.acceptance.criteria import Result, TrialView, judge
from seatrial.acceptance.criteria.speed import BETTER_BY
from seatrial.acceptance.criteria.view import NodeCases
from seatrial.plan.model import Criterion
from seatrial.report.content import Cell, Table, bounded
from seatrial.units import show_unit
from seatrial.verify import references as refs

MAX_ROWS: Final = 500


def expected(view: TrialView) -> Table:
    """Return the median of each figure that has a reference, case by case.

    The medians are over the runs with a right answer, as the criterion figure_of_merit judges them.
    """
    columns = (
        "case | metric | unit | n: count | median: number | reference: number | allowed"
        " | better by: per cent | state | why"
    )
    about = (
        "Medians over the runs with a right answer, against the references of the machine that the "
        "trial was made with, also where runs were judged again by others. Better by: positive is "
        "better, also where lower is better."
    )
    return bounded(
        "Figures of merit against their references", columns, _rows(view), about, MAX_ROWS
    )


def _rows(view: TrialView) -> Iterator[list[Cell]]:
    tests = {case.test for case in view.history.cases}
    for test, metric in view.references.by_metric:
        for stage in view.stages or (None,) if test in tests else ():
            asked = Criterion(criterion="figure_of_merit", metric=metric, tests=[test], stage=stage)
            found = {one.subject: one for one in judge(asked, view)}
            for group in view.groups(asked):
                one = found.get(group.name)
                if one is not None and (row := _row(view, metric, group, one)) is not None:
                    yield row


def _row(view: TrialView, metric: str, group: NodeCases, one: Result) -> list[Cell] | None:
    """Return the row of a case, None if it has no reference."""
    case = group.case
    reason = "" if one.state == "met" else one.why
    try:
        reference = refs.matching(
            view.references, case.test, metric, case.parameters, case.toolchain, group.stage
        )
    except refs.AmbiguousReference:
        return [one.subject, metric, "", one.n, None, None, "", None, one.state, reason]
    if reference is None:
        return None
    unit = show_unit(reference.unit, "{}")
    shown: list[Cell] = [one.subject, metric, unit, one.n, one.value, reference.value, one.bound]
    off = one.numbers.get(BETTER_BY)
    return [*shown, off if isinstance(off, int | float) else None, one.state, reason]
