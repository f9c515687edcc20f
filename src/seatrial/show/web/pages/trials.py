"""Trials: all that match the filters, newest first."""

from msgspec import Struct

from seatrial.results.store import queries
from seatrial.results.store.tables import TrialRow
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState

SHOWN = 200
MAX_SHOWN = 5000
STATES = ("running", "paused", "interrupted", "cancelled", "ended", "abandoned", "imported", "new")


class TrialsPage(Struct, frozen=True, kw_only=True):
    """The trials that match; ``found`` counts all of them, ``left_out`` the rehearsals that match
    and are not shown: rehearsals are shown where they are asked for, or nothing else matches. The
    others are the choices of the filters, and ``rehearsals`` counts all rehearsals."""

    trials: list[TrialRow]
    found: int
    left_out: int
    machines: list[str]
    plans: list[str]
    states: list[str]
    rehearsals: int


def data(state: ServerState, query: PageQuery) -> TrialsPage:
    known = queries.trials(state.store())
    chosen = {"machine": query.text("machine"), "plan": query.text("plan")}
    chosen["state"] = query.choice("state", STATES)
    rehearsed = query.choice("rehearsed", ("no", "also", "only"))
    word = query.text("q").lower()
    limit = query.number("limit", SHOWN, least=1, most=MAX_SHOWN)
    fitting = [
        row
        for row in known
        if word in row.tag.lower()
        and all(value in ("", getattr(row, name)) for name, value in chosen.items())
    ]
    measured = [row for row in fitting if not row.rehearsed]
    shown = measured
    if rehearsed == "also" or (not rehearsed and not measured):
        shown = fitting
    elif rehearsed == "only":
        shown = [row for row in fitting if row.rehearsed]
    return TrialsPage(
        trials=shown[:limit],
        found=len(shown),
        left_out=0 if rehearsed else len(fitting) - len(shown),
        machines=sorted({row.machine for row in known}),
        plans=sorted({row.plan for row in known if row.plan}),
        states=[each for each in STATES if any(row.state == each for row in known)],
        rehearsals=sum(row.rehearsed for row in known),
    )
