"""Criteria with waivers: of a whole criterion, or of the runs of some tests and toolchains.

results = waived(criterion, view, component.waivers, compute)

A criterion that is met without its waivers stays met. Where a waiver is in part, the criterion is
computed again without the runs that it covers: it is waived if it is met then, else the rest
decides.
"""

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase

from msgspec.structs import replace

from seatrial.acceptance.criteria.result import Result
from seatrial.acceptance.criteria.view import TrialView
from seatrial.plan.component_tests import fits
from seatrial.plan.model import WHOLE_MACHINE, Criterion, Waiver
from seatrial.suite.model import Case

Compute = Callable[[TrialView, Criterion], list[Result]]


def waived(
    criterion: Criterion, view: TrialView, waivers: Sequence[Waiver], compute: Compute
) -> list[Result]:
    """Return the results of a criterion as ``compute`` does, with the waivers that cover it."""
    results = compute(view, criterion)
    covering = [each for each in waivers if covers(each, criterion)]
    for waiver in covering:
        if not waiver.in_part:
            return [_in_whole(one, waiver if one is results[0] else None) for one in results]
    left_out = {
        number
        for number, case in enumerate(view.history.cases)
        if any(_is_about(each, case) for each in covering)
    }
    if not left_out:
        return results
    rest = view.without(left_out)
    reduced = compute(rest, criterion) if rest.tests(criterion) else []
    of_rest = {one.subject: one for one in reduced}
    if len(reduced) == 1 and len(tests := rest.tests(criterion)) == 1:
        of_rest.setdefault(tests[0], reduced[0])
    agreed = "; ".join(agreement(each) for each in covering)
    first = _in_part(results[0], reduced[0] if reduced else None, agreed)
    return [first, *(_in_part(one, of_rest.get(one.subject), "") for one in results[1:])]


def covers(waiver: Waiver, criterion: Criterion | Result) -> bool:
    """Return whether a waiver is about a criterion, or its result. One in part is about no
    criterion on the whole machine."""
    if waiver.in_part and criterion.criterion in WHOLE_MACHINE:
        return False
    return not waiver.criteria or any(
        name in waiver.criteria for name in (criterion.criterion, criterion.id) if name
    )


def is_unneeded(waiver: Waiver, results: Iterable[Sequence[Result]]) -> bool:
    """Return whether each criterion that a waiver covers was met without it; False where it covers
    none. ``results``: of each criterion, the one on all its subjects first."""
    states = {each[0].state for each in results if covers(waiver, each[0])}
    return states == {"met"}


def agreement(waiver: Waiver) -> str:
    """Return what was agreed: by whom, when, why, and of what."""
    of = f"{runs_of(waiver)} " if waiver.in_part else ""
    return f"{of}waived by {waiver.by} on {waiver.on}: {waiver.reason}"


def runs_of(waiver: Waiver) -> str:
    """Return the tests and toolchains whose runs a waiver covers: ``cm4, ufs with oneapi``; "" if
    it covers all."""
    tests, chains = (", ".join(each) for each in (waiver.tests, waiver.toolchains))
    return f"{tests or 'runs'} with {chains}" if chains else tests


def covered(waiver: Waiver) -> str:
    """Return what a waiver covers: criteria, and the runs of which they leave out."""
    criteria = ", ".join(waiver.criteria).replace("_", " ")
    if not waiver.in_part:
        return criteria or "the whole component"
    return f"{runs_of(waiver)} in {criteria}" if criteria else runs_of(waiver)


def _is_about(waiver: Waiver, case: Case) -> bool:
    chains = waiver.toolchains
    return fits(waiver.tests, case.test) and (
        not chains or any(fnmatchcase(case.toolchain, each) for each in chains)
    )


def _in_whole(result: Result, waiver: Waiver | None) -> Result:
    """Return a result that a waiver covers. One that is met stays met."""
    if result.state == "met":
        return replace(result, without_waiver="met")
    why = "; ".join(filter(None, (agreement(waiver) if waiver else "", result.why)))
    return replace(result, state="waived", without_waiver=result.state, why=why)


def _in_part(result: Result, rest: Result | None, agreed: str) -> Result:
    """Return a result of which a waiver covers some runs; ``rest`` is the result on the others,
    None where there are none."""
    if rest is not None and _found(rest) == _found(result):
        return result
    if result.state == "met":
        return replace(result, without_waiver="met")
    why = "; ".join(filter(None, (agreed, result.why)))
    if rest is None or rest.state == "met":
        return replace(result, state="waived", without_waiver=result.state, why=why)
    return replace(
        rest,
        subject=result.subject,
        why=f"{rest.why}; with waived runs {result.shown}, {result.state}",
    )


def _found(result: Result) -> tuple[object, ...]:
    """Return what was found, by which results with and without some runs are compared."""
    return result.state, result.value, result.n, result.numbers
