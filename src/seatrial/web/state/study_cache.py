"""Studies over many runs: made in the background, few of them kept.

state.studies.latest(("compare", "a", "b"), version, make)      # None: it is being made
"""

from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from seatrial.errors import UsageError
from seatrial.web.state.background import BackgroundCompute, ResultSlots

T = TypeVar("T")

MAX_STUDIES = 48
MAX_LARGE = 3  # studies of tens of megabytes each
WORKERS = 2
MAX_WAITING = 16  # studies that are being made or wait for that


class StudyAnswer(NamedTuple, Generic[T]):
    """A study for a page with a form. Without a ``value`` the page's ``state`` is "judging", or
    "asked" (the form is not filled in), or "refused" for a ``reason``. ``rehearsed``: it is of
    rehearsals, where that is known."""

    value: T | None
    state: str
    reason: str = ""
    rehearsed: bool = False


class StudyCache:
    """The studies of a server. ``on_update`` is called when one is ready that a page did not wait
    for."""

    def __init__(self, on_update: Callable[[], None]) -> None:
        self._background = BackgroundCompute(on_update, WORKERS)
        self._small = ResultSlots(MAX_STUDIES)
        self._large = ResultSlots(MAX_LARGE)

    def latest(
        self,
        name: Hashable,
        version: Hashable,
        make: Callable[[], T],
        large: bool = False,
    ) -> T | None:
        """Return the study of this name, of an older version while this one is being made; None if
        there is none yet. While too many wait, a new one is not begun. Raises what ``make``
        raised."""
        slots = self._large if large else self._small
        is_new = name not in slots.results and name not in slots.tasks
        if is_new and len(self._small.tasks) + len(self._large.tasks) >= MAX_WAITING:
            return None
        return self._background.latest(slots, name, version, make)

    def answer(self, name: Hashable, version: Hashable, make: Callable[[], T]) -> StudyAnswer[T]:
        """Return the study, or why there is none."""
        try:
            value = self.latest(name, version, make)
        except UsageError as error:
            return StudyAnswer(None, "refused", str(error))
        return StudyAnswer(value, "judging" if value is None else "judged")

    def close(self) -> None:
        """Begin no new work."""
        self._background.close()
