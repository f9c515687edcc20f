"""Machines: each with its trials, its runs and its failures."""

from msgspec import Struct

from seatrial.results.store import queries
from seatrial.results.store.tables import TrialRow
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState


class MachineRow(Struct, frozen=True, kw_only=True):
    """A machine: its trials (of them ``rehearsals``), their runs, the last event (ns), the
    latest trial."""

    name: str
    trials: int
    rehearsals: int
    running: list[str]
    passed: int
    failed: int
    going: int
    last: int
    latest: str
    rehearsed: bool


class MachinesPage(Struct, frozen=True):
    """All machines, the one with the latest event first."""

    machines: list[MachineRow]


def data(state: ServerState, query: PageQuery) -> MachinesPage:
    rehearsed = query.flag("rehearsed")
    by_name: dict[str, list[TrialRow]] = {}
    for trial in queries.trials(state.store()):
        if trial.given:  # nothing of it ran on a machine that is known
            continue
        by_name.setdefault(trial.machine, []).append(trial)
    rows = [_row(name, trials, rehearsed) for name, trials in by_name.items()]
    return MachinesPage(sorted(rows, key=lambda row: (row.rehearsed, -row.last)))


def _row(name: str, trials: list[TrialRow], rehearsed: bool) -> MachineRow:
    """Return a machine. Rehearsals count if asked for, or if there is nothing else."""
    measured = [trial for trial in trials if not trial.rehearsed]
    counted = trials if rehearsed else measured or trials
    return MachineRow(
        name=name,
        trials=len(measured),
        rehearsals=len(trials) - len(measured),
        running=[trial.tag for trial in counted if trial.state == "running"],
        passed=sum(trial.passed for trial in counted),
        failed=sum(trial.failed for trial in counted),
        going=sum(trial.running for trial in counted),
        last=max(trial.last or trial.created for trial in counted),
        latest=counted[0].tag,
        rehearsed=any(trial.rehearsed for trial in counted),
    )
