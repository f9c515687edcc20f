"""Now: the trials that run, and those that ended last."""

from typing import Literal

from msgspec import Struct
from msgspec.structs import asdict

from seatrial.results.criteria.mix import OverallState
from seatrial.results.store import queries
from seatrial.results.store.schema import Store, marks
from seatrial.results.store.tables import Filters, RunRow, TrialRow
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState
from seatrial.show.web.trials import TrialFacts, facts_of, verdict_now

LATELY = 12
MAX_RUNNING = 8  # that are shown in full
LATEST_RUNS = 8


class Running(TrialFacts, frozen=True, kw_only=True):
    """A trial that runs, and the runs that were judged last."""

    latest: list[RunRow]


class Late(Struct, frozen=True, kw_only=True):
    """A trial that does not run. ``verdict`` is by its criteria: "" if it has none, None if it is
    not known yet; ``verdict_words`` names what was waived."""

    trial: TrialRow
    verdict: OverallState | Literal[""] | None
    verdict_words: str


class NowPage(Struct, frozen=True, kw_only=True):
    """The trials that run, and the latest others: no rehearsals, unless there is nothing else.
    ``trials`` counts all, ``rehearsals`` the rehearsals among them, ``more`` those that run and are
    not shown. ``folder`` is the folder of the trials."""

    running: list[Running]
    lately: list[Late]
    trials: int
    rehearsals: int
    more: int
    folder: str


def data(state: ServerState, query: PageQuery) -> NowPage:
    found = queries.trials(state.store())
    running = [row for row in found if row.state == "running"]
    others = [row for row in found if row.state != "running"]
    others = [row for row in others if not row.rehearsed] or others
    others.sort(key=lambda row: row.created if row.rehearsed else row.last or row.created)
    return NowPage(
        running=[_running(state, row) for row in running[:MAX_RUNNING]],
        lately=[_late(state, row) for row in reversed(others[-LATELY:])],
        trials=len(found),
        rehearsals=sum(row.rehearsed for row in found),
        more=max(0, len(running) - MAX_RUNNING),
        folder=str(state.folder),
    )


def _late(state: ServerState, row: TrialRow) -> Late:
    if not row.component:
        return Late(trial=row, verdict="", verdict_words="")
    found = state.trials.verdict(row)
    if found is None:
        return Late(trial=row, verdict=None, verdict_words="")
    verdict, words = verdict_now(state, row, found)
    return Late(trial=row, verdict=verdict, verdict_words=words)


def _running(state: ServerState, row: TrialRow) -> Running:
    tailed = state.trials.of(row)
    facts = facts_of(state, row, tailed)
    judged = facts.standing.judged if facts.standing else []
    return Running(**asdict(facts), latest=_latest(state.store(), row, judged))


def _latest(store: Store, row: TrialRow, judged: list[str]) -> list[RunRow]:
    """Return the runs that were judged last; before there are any, those that were created last."""
    if not judged:
        return queries.runs(store, Filters(trial=row.path, limit=LATEST_RUNS))
    where = f"WHERE runs.run_id IN ({marks(len(judged))}) AND runs.trial = ?"
    found = queries.run_rows(store, where, [*judged, row.row], queries.NEWEST)
    over = [run for run in found if run.judged is not None]  # the store may be a moment behind
    return sorted(over, key=lambda run: run.judged or 0, reverse=True)
