"""The criterion on the items of a checklist."""

from collections import Counter

from msgspec.structs import replace

from seatrial.acceptance.criteria.result import Result, bounds_of, decided
from seatrial.acceptance.criteria.view import TrialView
from seatrial.plan.checklist import ItemStatus, items_of
from seatrial.plan.model import Criterion
from seatrial.units import count, listed

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
    why = f"{count(states['waived'], 'item')} waived: {_named(items, 'waived')}"
    return [replace(result, state="waived", without_waiver="not met", value=share, why=why)]


def _why(items: list[ItemStatus]) -> str:
    failed = [item for item in items if item.state == "fail"]
    if failed:
        return f"{len(failed)} of {count(len(items), 'item')} failed: {_named(items, 'fail')}"
    return f"all of {count(len(items), 'item')} passed"


def _named(items: list[ItemStatus], state: str) -> str:
    return listed([item.id for item in items if item.state == state], 5)
