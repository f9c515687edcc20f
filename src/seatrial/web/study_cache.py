"""Judgements over many runs that take longer than a page may: made beside the pages, few kept.

    found = beside(site, "compare a b", version, make)      # None: it is being made

What is there is of the latest ``version`` that was made; ``make`` is called in a thread of its own,
and open pages ask again when it is done.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any
from weakref import WeakKeyDictionary

from seatrial.errors import UsageError
from seatrial.web.background import BackgroundCompute, ResultSlots
from seatrial.web.server_state import ServerState

KEPT = 48  # judgements that are kept, those that were asked for last
LARGE = 3  # of those that are large
WORKERS = 2
MOST_WAITING = 16  # judgements that are being made or wait for that


class _Judging:
    """The judgements of one server. Each has a shelf of its own, so that old ones can go."""

    def __init__(self, site: ServerState) -> None:
        self.desk = BackgroundCompute(site.stir, WORKERS)
        self.small: OrderedDict[Hashable, ResultSlots] = OrderedDict()
        self.large: OrderedDict[Hashable, ResultSlots] = OrderedDict()

    def shelf(self, name: Hashable, large: bool) -> ResultSlots | None:
        """The shelf of that name; None where it would be new while too much waits already."""
        shelves, most = (self.large, LARGE) if large else (self.small, KEPT)
        if name not in shelves and self._waiting() >= MOST_WAITING:
            return None
        found = shelves.setdefault(name, ResultSlots())
        shelves.move_to_end(name)
        for old in list(shelves)[:-1]:
            if len(shelves) > most and not shelves[old].tasks:
                del shelves[old]
        return found

    def _waiting(self) -> int:
        every = (*self.small.values(), *self.large.values())
        return sum(bool(shelf.tasks) for shelf in every)


_SITES: WeakKeyDictionary[ServerState, _Judging] = WeakKeyDictionary()
_LOCK = threading.Lock()


def computed(
    site: ServerState,
    name: Hashable,
    version: Hashable,
    make: Callable[[], Any],
    wait_s: float | None = None,
    large: bool = False,
) -> Any | None:
    """What ``make`` gave for this name, of this version or, while that is being made, of an older
    one; None where there is none yet. Of what is ``large`` (tens of megabytes) less is kept. Raises
    what ``make`` raised."""
    with _LOCK:
        judging = _SITES.get(site)
        if judging is None:
            judging = _SITES[site] = _Judging(site)
        shelf = judging.shelf(name, large)
    if shelf is None:
        return None  # it is begun when it is asked for again, and others are done
    return judging.desk.have(shelf, "made", version, make, wait_s)


def computed_for_form(
    site: ServerState, name: Hashable, version: Hashable, make: Callable[[], Any]
) -> tuple[Any | None, str, str]:
    """As ``computed``, for a page that a person asks by a form: the answer, and where there is none
    the page's state with the reason: "judging" and "", or "refused" and what is wrong."""
    try:
        return computed(site, name, version, make), "judging", ""
    except UsageError as error:
        return None, "refused", str(error)
