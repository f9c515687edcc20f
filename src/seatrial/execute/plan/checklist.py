"""The items of a checklist, and the results that people gave them.

    ticks = Ticks()
    for event in journal: ticks.apply(event)
    found = items_of(component.items, ticks)
    found[0].state                     # "awaited", "pass", "fail" or "waived"

The first result of an item stands. A later one counts only if it says why: it then replaces the
result before, which is kept.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from seatrial.journal.events import Event, ItemTicked
from seatrial.model.plan import ChecklistItem
from seatrial.units import show_figure, show_number

ItemState = Literal["awaited", "pass", "fail", "waived"]
RESULTS: tuple[ItemState, ...] = ("pass", "fail", "waived")


class ItemResult(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """A result that a person gave an item. ``reason``: why it replaces an earlier one.
    ``now`` is the state of its document, "" if that was not looked at."""

    result: ItemState
    time: int
    figure: float | None
    shown: str
    comment: str
    document: str
    sha256: str
    by: list[str]
    user: str
    reason: str
    now: str = ""


class ItemStatus(Struct, frozen=True, kw_only=True):
    """An item, its bounds in words, and its result. ``earlier`` are results that a later one
    replaced; ``uncounted`` came after a result and did not say why."""

    id: str
    text: str
    clause: str
    about: str
    bound: str
    state: ItemState
    tick: ItemResult | None
    earlier: list[ItemResult]
    uncounted: list[ItemResult]


class Ticks:
    """The fold of a trial's events: the results of each item, in their order."""

    def __init__(self) -> None:
        self.of: dict[str, list[ItemTicked]] = {}

    def apply(self, event: Event) -> None:
        if isinstance(event, ItemTicked):
            self.of.setdefault(event.item, []).append(event)


def id_of(item: ChecklistItem, place: int) -> str:
    """Return the id of the item at a place of its list, from 0."""
    return item.id or str(place + 1)


def items_of(items: Sequence[ChecklistItem], ticks: Ticks) -> list[ItemStatus]:
    """Return the state of each item, in the order of the plan."""
    return [_status(item, id_of(item, i), ticks) for i, item in enumerate(items)]


def _status(item: ChecklistItem, name: str, ticks: Ticks) -> ItemStatus:
    counted: list[ItemResult] = []
    uncounted: list[ItemResult] = []
    for event in ticks.of.get(name, ()):
        tick = _tick(item, event)
        (counted if not counted or tick.reason else uncounted).append(tick)
    last = counted[-1] if counted else None
    return ItemStatus(
        id=name,
        text=item.text,
        clause=item.clause,
        about=item.about,
        bound=bound_words(item),
        state=last.result if last else "awaited",
        tick=last,
        earlier=counted[:-1],
        uncounted=uncounted,
    )


def _tick(item: ChecklistItem, event: ItemTicked) -> ItemResult:
    """Return a result as the item's bounds have it, whatever the event says of its number."""
    result: ItemState = next((each for each in RESULTS if each == event.result), "fail")
    if item.has_number and result == "pass":
        result = "fail" if event.figure is None else result_of(item, event.figure)
    shown = "" if event.figure is None else show_figure(event.figure, event.unit)
    return ItemResult(
        result=result,
        time=event.time,
        figure=event.figure,
        shown=shown,
        comment=event.comment,
        document=event.document,
        sha256=event.sha256,
        by=event.names,
        user=event.by,
        reason=event.why,
    )


def bound_words(item: ChecklistItem) -> str:
    """Return the bounds of an item in words; "" if it has none."""
    unit = f" {item.unit}" if item.unit else ""
    words = [
        f"{word} {show_number(bound)}{unit}"
        for word, bound in (("at least", item.at_least), ("at most", item.at_most))
        if bound is not None
    ]
    return " and ".join(words)


def result_of(item: ChecklistItem, figure: float) -> ItemState:
    """Return whether a number is inside the bounds of an item."""
    low = item.at_least is None or figure >= item.at_least
    high = item.at_most is None or figure <= item.at_most
    return "pass" if low and high else "fail"
