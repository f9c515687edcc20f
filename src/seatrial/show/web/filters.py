"""The runs that a query selects: the filters of lists of runs, and the sides of comparisons.

    filters = filters_of(store, query)
    queries.counts(store, filters)

A regular expression becomes the set of tests whose name or application it matches; the database
never sees it.
"""

import contextlib
import math
import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.model.codes import CODES
from seatrial.results.selection import SideSelection, parse_side
from seatrial.results.store import queries, run_lists
from seatrial.results.store.queries import trial as trial_of
from seatrial.results.store.run_lists import Choices, Order, PageCursor
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import Filters, GapRow, RunRow
from seatrial.results.store.upserts import gaps
from seatrial.show.web.page import BadQuery, PageQuery
from seatrial.show.web.server_state import ServerState
from seatrial.show.web.study_view import Field

MAX_ROW = 1 << 53
MAX_GAPS = 20
MAX_NAMED = 300  # trials, metrics: what a form suggests

VERDICTS = tuple(code.name for code in CODES.values())


def filters_of(store: Store, query: PageQuery) -> Filters:
    """Return what a query selects."""
    since, until = query.moment("since"), query.moment("until")
    if until and until <= since:
        raise BadQuery("until: is not after since; swap them", "until")
    verdict = query.choice("verdict", VERDICTS)
    return Filters(
        **query.texts("trial", "tag", "machine", "cause"),
        tests=_tests(store, query),
        since=since,
        until=until,
        verdicts=[verdict] if verdict else (),
        rehearsed=query.flag("rehearsed"),
    )


def _tests(store: Store, query: PageQuery) -> frozenset[str] | None:
    pattern = query.pattern("match")
    if pattern is None:
        return None
    return frozenset(
        name for name, app in queries.tests_of(store) if pattern.search(name) or pattern.search(app)
    )


class ListFrame(Struct, frozen=True, kw_only=True):
    """The parts of a page around its list of runs. ``newest`` and ``older`` are the addresses of
    the first page and the next one, or ""; ``choices`` are those of its form, ``gaps`` those in the
    journal of the named trial; ``rehearsed``: rehearsed runs may be in the list."""

    newest: str
    older: str
    choices: Choices
    gaps: list[GapRow]
    rehearsed: bool
    verdicts: tuple[str, ...] = VERDICTS


def page_of(
    store: Store,
    query: PageQuery,
    filters: Filters,
    limit: int,
    order: Order,
    window: Sequence[str] = (),
) -> tuple[list[RunRow], ListFrame]:
    """Return the runs of a page, at most ``limit``, and what is around them."""
    trial = trial_of(store, filters.trial) if filters.trial else None
    place = _place(query)
    runs = run_lists.page(store, filters, order, place, limit + 1, window)
    older = ""
    if len(runs) > limit:
        last = run_lists.place_of(runs[limit - 1], order)
        older = query.link(before=f"{last.key!r}~{last.row}")
    return runs[:limit], ListFrame(
        newest=query.link(before="") if place else "",
        older=older,
        choices=run_lists.choices(store),
        gaps=gaps(store, trial)[:MAX_GAPS] if trial and trial.damaged else [],
        rehearsed=trial.rehearsed if trial else filters.rehearsed,
    )


def _place(query: PageQuery) -> PageCursor | None:
    """Return the place after which a page begins, from ``before``."""
    text = query.text("before")
    if not text:
        return None
    key, _, row = text.partition("~")
    try:
        number: int | float = int(key) if key.lstrip("-").isdigit() else float(key)
        place = PageCursor(number, int(row))
    except (ValueError, OverflowError):
        place = PageCursor(math.nan, 0)
    if not abs(place.key) < 1 << 62 or not 0 <= place.row <= MAX_ROW or len(text) > 60:
        raise BadQuery(
            f"before={text[:40]!r} is no place in this list; take it from a link", "before"
        )
    return place


# ---- sides of comparisons ------------------------------------------------------------------

HOW_TO_WRITE_SIDES = (
    "nightly-0412: a trial; nightly-*: all that fit; nightly-0412:toolchain=gcc*,test=cm4: with "
    "conditions; @machine=frost,since=2026-05-01: all trials with conditions: machine, toolchain, "
    "test, tag, stage, plan, component, phase, since, until, rehearsed, given, or a parameter of "
    "the cases."
)


def side_of(text: str, rehearsed: bool) -> SideSelection:
    """Return a side as a person writes it. With ``rehearsed`` a pattern selects rehearsals, unless
    the side says otherwise. Raises UsageError."""
    side = parse_side(text)
    is_pattern = not side.trial or any(sign in side.trial for sign in "*?[")
    if rehearsed and is_pattern:
        side.conditions.setdefault("rehearsed", "yes")
    return side


def names_rehearsal(store: Store, sides: Iterable[str], rehearsed: bool) -> bool:
    """Return whether one of these sides names a rehearsal, even if the sides have faults."""
    for text in sides:
        with contextlib.suppress(UsageError):
            side = side_of(text, rehearsed)
            if side.conditions.get("rehearsed") == "yes":
                return True
            if side.trial and trial_of(store, side.trial).rehearsed:
                return True
    return False


def in_words_of_form(reason: str, fields: Sequence[Field]) -> str:
    """Return a reason with the labels of fields in place of options of the command line."""
    labels = {f"--{field.name.replace('_', '-')}": f"“{field.label}”" for field in fields}
    return re.sub(r"--[a-z-]*[a-z]", lambda option: labels.get(option[0], option[0]), reason)


def suggested_trials(state: ServerState) -> list[str]:
    """Return the names of trials that a form suggests."""
    return [trial.tag for trial in queries.trials(state.store())][:MAX_NAMED]
