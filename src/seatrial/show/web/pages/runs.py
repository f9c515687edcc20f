"""Runs: all that match the filters, in the order of time, with their counts."""

from typing import Any, ClassVar

from msgspec import structs
from msgspec.structs import replace

from seatrial.results.store import queries
from seatrial.results.store.pagination import ORDERS, builds_under_way
from seatrial.results.store.queries import excluded_runs
from seatrial.results.store.tables import RUNS_ON_PAGE, Column, RunRow, listed_columns
from seatrial.show.web.filters import ListFrame, filters_of, page_of
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState

SHOWN = 100
MAX_SHOWN = 2000

# The states of runs, in the order in which the page counts them.
STATES = ("passed", "running", "waiting", "failed", "known", "again")


class RunLine(RunRow, frozen=True, kw_only=True):
    """A run in a list. ``reason`` is why it has its verdict, shortened; so is ``why``."""

    reason: str
    excluded: bool = False


def line_of(run: RunRow, reason: str, excluded: bool) -> RunLine:
    """Return the line of a run in a list."""
    fields = structs.asdict(run) | {"why": reason}
    return RunLine(**fields, reason=reason, excluded=excluded)


class RunsPage(ListFrame, frozen=True, kw_only=True):
    """The runs that match. ``counts`` are over all pages and states, each with the address of the
    page with these alone, or of all; ``found`` are of the chosen state. ``building``: the builds
    that are under way in the trials."""

    list_columns: ClassVar[list[Column]] = listed_columns(RUNS_ON_PAGE)

    runs: list[RunLine]
    counts: list[dict[str, Any]]
    building: int
    total: int
    found: int


def data(state: ServerState, query: PageQuery) -> RunsPage:
    limit = query.number("limit", SHOWN, least=1, most=MAX_SHOWN)
    chosen = query.choice("state", STATES)
    order = query.choice("sort", tuple(ORDERS), "newest")
    store = state.store()
    with store.reading():
        filters = filters_of(store, query)
        in_state = replace(filters, states=[chosen] if chosen else ())
        runs, frame = page_of(store, query, in_state, limit, ORDERS[order])
        counts = queries.counts(store, filters)
        building = builds_under_way(store, filters)
        excluded = excluded_runs(store, [run.row for run in runs])
    tallies = []
    for name in STATES:
        link = query.link(state="" if name == chosen else name, before="")
        number = getattr(counts, name)
        tallies.append({"state": name, "runs": number, "chosen": name == chosen, "link": link})
    return RunsPage(
        **structs.asdict(frame),
        runs=[line_of(run, run.why.partition("\n")[0][:300], run.row in excluded) for run in runs],
        counts=tallies,
        building=building,
        total=sum(getattr(counts, name) for name in STATES),
        found=sum(getattr(counts, name) for name in STATES if chosen in ("", name)),
    )
