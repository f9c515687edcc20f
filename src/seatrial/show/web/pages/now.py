"""Now: the trials that run, and those that ended last."""

from typing import Any

from seatrial.results.store import queries
from seatrial.results.store.schema import Store, marks
from seatrial.results.store.tables import Filters, RunRow, TrialRow
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState
from seatrial.show.web.trials import facts_of, verdict_now

LATELY = 12
MAX_RUNNING = 8  # that are shown in full
LATEST_RUNS = 8


def data(state: ServerState, query: PageQuery) -> dict[str, Any]:
    trials = queries.trials(state.store())
    running = [row for row in trials if row.state == "running"]
    return {
        "running": [_running(state, row) for row in running[:MAX_RUNNING]],
        "lately": [_late(state, row) for row in _latest_others(trials)],
        "trials": len(trials),
        "rehearsals": sum(row.rehearsed for row in trials),
        "more": max(0, len(running) - MAX_RUNNING),  # that run, and are not shown
        "folder": str(state.folder),
    }


def _latest_others(trials: list[TrialRow]) -> list[TrialRow]:
    """Return the latest trials that do not run, the latest first."""
    others = [row for row in trials if row.state != "running"]
    shown = [row for row in others if not row.rehearsed] or others
    shown.sort(key=lambda row: row.created if row.rehearsed else row.last or row.created)
    return shown[: -LATELY - 1 : -1]


def _late(state: ServerState, row: TrialRow) -> dict[str, Any]:
    """Return a trial with its verdict by its criteria, "" if it has none, None if it is not known
    yet."""
    if not row.component:
        return {"trial": row, "verdict": "", "verdict_words": ""}
    judged = state.trials.verdict(row)
    verdict, words = verdict_now(state, row, judged) if judged else (None, "")
    return {"trial": row, "verdict": verdict, "verdict_words": words}


def _running(state: ServerState, row: TrialRow) -> dict[str, Any]:
    """Return a trial that runs, and the runs that were judged last."""
    facts = facts_of(state, row, state.trials.of(row))
    standing = facts["standing"]
    judged = standing.judged if standing else []
    return {**facts, "latest": _latest(state.store(), row, judged)}


def _latest(store: Store, row: TrialRow, judged: list[str]) -> list[RunRow]:
    """Return the runs that were judged last; before there are any, those that were created last."""
    if not judged:
        return queries.runs(store, Filters(trial=row.path, limit=LATEST_RUNS))
    where = f"WHERE runs.run_id IN ({marks(len(judged))}) AND runs.trial = ?"
    runs = queries.run_rows(store, where, [*judged, row.row], queries.NEWEST)
    over = [run for run in runs if run.judged is not None]  # the store may be a moment behind
    return sorted(over, key=lambda run: run.judged or 0, reverse=True)
