"""Check the items of a component of kind checklist."""

from __future__ import annotations

import re

from seatrial.documents import Spot
from seatrial.plan.checklist import id_of
from seatrial.plan.load import unread
from seatrial.plan.model import Component

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_KEYS = frozenset(
    ("component", "kind", "about", "phases", "items", "criteria", "evidence", "waivers")
)
_TOLD = frozenset(("duration", "reserve", "repeat"))  # they are of another kind


def check_checklist(component: Component, at: Spot) -> None:
    """Add the faults of a checklist: it runs nothing, and its items have names of their own."""
    for key in Component.__struct_fields__:
        if key not in _KEYS | _TOLD and at.given(key):
            at.fault("is about runs, and a checklist has none; remove it", key)
    if not component.items and not unread(at, "items"):
        at.fault("is missing; a checklist needs items, each with a text", "items")
    first: dict[str, int] = {}
    for i, item in enumerate(component.items):
        spot = at.inside("items", i)
        if not item.text.strip():
            spot.fault("is empty; say what is checked", "text")
        name = id_of(item, i)
        if not _ID.fullmatch(name):
            spot.fault(f"{name!r}: an id must be letters, digits, ._+-", "id")
        if first.setdefault(name, i) != i:
            spot.fault(f"{name!r} is the id of items[{first[name]}], too; rename one", "id")
        if item.unit and not item.has_number:
            spot.fault("there is no number; give at_least or at_most, or remove unit", "unit")
        if item.at_least is not None and item.at_most is not None and item.at_least > item.at_most:
            spot.fault(f"{item.at_least:g} is more than at_most, {item.at_most:g}", "at_least")
