"""The sides of comparisons as pages are asked for them, see ``studies.selection``.

side_of("nightly-*", rehearsed=True)        # the rehearsals that fit
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from seatrial.errors import UsageError
from seatrial.store import queries
from seatrial.store.schema import Store
from seatrial.studies.selection import SideSelection, parse_side


def side_of(text: str, rehearsed: bool) -> SideSelection:
    """A side as a person writes it; ``rehearsed``: a pattern chooses among rehearsals, if the side
    itself says nothing of them. Raises UsageError that says what to write."""
    side = parse_side(text)
    is_pattern = not side.trial or any(sign in side.trial for sign in "*?[")
    if rehearsed and is_pattern:
        side.conditions.setdefault("rehearsed", "yes")
    return side


def names_rehearsal(store: Store, sides: Iterable[str], rehearsed: bool) -> bool:
    """Whether one of these sides asks for a rehearsal, whatever else is wrong with them."""
    for text in sides:
        with contextlib.suppress(UsageError):
            side = side_of(text, rehearsed)
            if side.conditions.get("rehearsed") == "yes":
                return True
            if side.trial and queries.trial(store, side.trial).rehearsed:
                return True
    return False
