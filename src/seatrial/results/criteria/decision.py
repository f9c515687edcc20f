"""The criteria of an acceptance: each is a small function, whose docstring is its
page of the reference: formula, example, and when it is undecided.

    view = TrialView(history, now, references)
    for result in judged(component, view): print(result.criterion, result.state, result.reason)

A criterion returns the result on all its subjects together, then those of each subject (a test or a
case) where there are several.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from seatrial.execute.plan.component import only_evidence
from seatrial.hooks import load
from seatrial.model.kinds import kind_of
from seatrial.model.plan import Component, Criterion, Waiver
from seatrial.results.criteria import answers
from seatrial.results.criteria.view import Result, TrialView, WithExcluded, waived
from seatrial.units import count

Judge = Callable[[TrialView, Criterion], list[Result]]


def judge_of(criterion: str) -> Judge:
    """Return the function that judges by a criterion."""
    function: Judge = load(kind_of(criterion).judge)
    return function


def judge(criterion: Criterion, view: TrialView, waivers: Sequence[Waiver] = ()) -> list[Result]:
    """Return the results of one criterion, the one on all its subjects first. Raises ValueError for
    an invalid bound, which a checked plan does not have."""
    compute = judge_of(criterion.criterion)
    results = waived(criterion, view, waivers, _doubted if view.history.damaged else compute)
    if not (criterion.id or criterion.clause or criterion.about):
        return results
    named = {"id": criterion.id, "clause": criterion.clause, "about": criterion.about}
    return [replace(one, **named) for one in results]


def _doubted(view: TrialView, criterion: Criterion) -> list[Result]:
    """Return the results of a criterion of a trial whose journal lacks events: what is met without
    them is undecided."""
    lines = count(view.history.damaged, "line")
    reason = f"{lines} of the journal cannot be read, which may say otherwise"
    return [one.unless(reason) for one in judge_of(criterion.criterion)(view, criterion)]


def judged(component: Component, view: TrialView) -> list[list[Result]]:
    """Return the results of each criterion of a component, in the plan's order, and last that of
    ``every_test``, which holds for each component; each with what it would be if the runs counted
    that both sides excluded."""
    results = [judge(criterion, view, component.waivers) for criterion in criteria_of(component)]
    if not view.excluded or view.whole:
        return results
    others = judged(component, view.as_whole())
    return [
        [_beside(one, other) for one in some] for some, other in zip(results, others, strict=True)
    ]


def _beside(result: Result, others: Sequence[Result]) -> Result:
    """Return a result with that of the same subject among the results with all runs."""
    for other in others:
        found = WithExcluded(state=other.state, value=other.value, n=other.n)
        same = (result.state, result.value, result.n) == (other.state, other.value, other.n)
        if other.subject == result.subject and not same:
            return replace(result, with_excluded=found)
    return result


def criteria_of(component: Component) -> list[Criterion]:
    """Return the criteria of a component, with ``every_test`` even where the plan does not ask for
    it; those of a checklist, with ``items_passed`` where it asks for nothing."""
    asked = component.criteria
    if component.kind == "checklist":
        return asked or ([answers.IMPLIED] if component.items else [])
    if only_evidence(component) or any(
        each.criterion == "every_test" and not each.tests for each in asked
    ):
        return asked
    return [*asked, Criterion(criterion="every_test")]
