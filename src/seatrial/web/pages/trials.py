"""Trials: all that match the filters, newest first."""

from __future__ import annotations

from msgspec import Struct

from seatrial.store import queries
from seatrial.store.rows import TrialRow
from seatrial.web.query import PageQuery
from seatrial.web.state.server_state import ServerState

SHOWN = 200
MAX_SHOWN = 5000
STATES = ("running", "paused", "interrupted", "cancelled", "ended", "abandoned", "new")


class TrialsPage(Struct, frozen=True, kw_only=True):
    """The trials that match; ``found`` counts all of them. The others are the choices of the
    filters, and ``rehearsals`` counts the rehearsals."""

    trials: list[TrialRow]
    found: int
    machines: list[str]
    plans: list[str]
    states: list[str]
    rehearsals: int


def data(state: ServerState, query: PageQuery) -> TrialsPage:
    known = queries.trials(state.store())
    chosen = {"machine": query.text("machine"), "plan": query.text("plan")}
    chosen["state"] = query.choice("state", STATES)
    rehearsed = query.choice("rehearsed", ("no", "only"))
    word = query.text("q").lower()
    limit = query.number("limit", SHOWN, least=1, most=MAX_SHOWN)
    fitting = [
        row
        for row in known
        if word in row.tag.lower()
        and all(value in ("", getattr(row, name)) for name, value in chosen.items())
    ]
    shown = [row for row in fitting if not rehearsed or row.rehearsed == (rehearsed == "only")]
    return TrialsPage(
        trials=shown[:limit],
        found=len(shown),
        machines=sorted({row.machine for row in known}),
        plans=sorted({row.plan for row in known if row.plan}),
        states=[each for each in STATES if any(row.state == each for row in known)],
        rehearsals=sum(row.rehearsed for row in known),
    )
