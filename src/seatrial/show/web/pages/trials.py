"""Trials: all that match the filters, newest first."""

from typing import Any

from seatrial.results.store import queries
from seatrial.results.store.tables import TrialRow
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState

SHOWN = 200
MAX_SHOWN = 5000
STATES = ("running", "paused", "interrupted", "cancelled", "ended", "abandoned", "imported", "new")


def data(state: ServerState, query: PageQuery) -> dict[str, Any]:
    known = queries.trials(state.store())
    chosen = query.texts("machine", "plan") | {"state": query.choice("state", STATES)}
    rehearsed = query.choice("rehearsed", ("no", "also", "only"))
    limit = query.number("limit", SHOWN, least=1, most=MAX_SHOWN)
    fitting = _fitting(known, query.text("q").lower(), chosen)
    shown = _of_kind(fitting, rehearsed)
    states = {row.state for row in known}
    return {
        "trials": shown[:limit],
        "found": len(shown),
        "left_out": 0 if rehearsed else len(fitting) - len(shown),
        # the choices of the filters
        "machines": sorted({row.machine for row in known}),
        "plans": sorted({row.plan for row in known if row.plan}),
        "states": [state for state in STATES if state in states],
        "rehearsals": sum(row.rehearsed for row in known),
    }


def _of_kind(trials: list[TrialRow], rehearsed: str) -> list[TrialRow]:
    """Return the trials without rehearsals, with them, or these alone. Unless that was asked,
    rehearsals are shown if there is nothing else."""
    if rehearsed == "also":
        return trials
    of_kind = [row for row in trials if row.rehearsed == (rehearsed == "only")]
    return of_kind if rehearsed else of_kind or trials


def _fitting(known: list[TrialRow], word: str, chosen: dict[str, str]) -> list[TrialRow]:
    """Return the trials with a word in their tag, and with what was chosen of them."""
    wanted = {name: value for name, value in chosen.items() if value}
    return [
        row
        for row in known
        if word in row.tag.lower()
        and all(getattr(row, name) == value for name, value in wanted.items())
    ]
