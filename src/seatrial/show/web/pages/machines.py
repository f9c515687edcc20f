"""Machines: each with its trials, its runs and its failures."""

from typing import Any

from seatrial.results.store import queries
from seatrial.results.store.tables import TrialRow
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState


def data(state: ServerState, query: PageQuery) -> dict[str, Any]:
    rehearsed = query.flag("rehearsed")
    by_name: dict[str, list[TrialRow]] = {}
    for trial in queries.trials(state.store()):
        if trial.given:  # nothing of it ran on a machine that is known
            continue
        by_name.setdefault(trial.machine, []).append(trial)
    rows = [_row(name, trials, rehearsed) for name, trials in by_name.items()]
    return {"machines": sorted(rows, key=lambda row: (row["rehearsed"], -row["last"]))}


def _row(name: str, trials: list[TrialRow], rehearsed: bool) -> dict[str, Any]:
    """Return a machine. Rehearsals count if asked for, or if there is nothing else."""
    rehearsals = sum(trial.rehearsed for trial in trials)
    counted = trials
    if not rehearsed and rehearsals < len(trials):
        counted = [trial for trial in trials if not trial.rehearsed]
    return {
        "name": name,
        "trials": len(trials) - rehearsals,
        "rehearsals": rehearsals,
        "running": [trial.tag for trial in counted if trial.state == "running"],
        "passed": sum(trial.passed for trial in counted),
        "failed": sum(trial.failed for trial in counted),
        "going": sum(trial.running for trial in counted),
        "last": max(trial.last or trial.created for trial in counted),
        "latest": counted[0].tag,
        "rehearsed": any(trial.rehearsed for trial in counted),
    }
