"""The tests of a mix that have no claim and run on idle nodes: they fill gaps."""

from seatrial.acceptance.trial_history import TrialHistory
from seatrial.conduct.shares import PlannedShares, planned_for


def fillers(history: TrialHistory) -> set[str]:
    """Return the tests of a mix that have no claim of their own."""
    return {history.policy.entries[number].name for number in _planned(history).fills}


def only_fill_gaps(history: TrialHistory) -> set[str]:
    """Return the tests of a mix to which the others leave no share: where no node was idle they
    did not run, as was planned."""
    planned, entries = _planned(history), history.policy.entries
    return {entries[number].name for number in planned.fills if not planned.shares[number]}


def _planned(history: TrialHistory) -> PlannedShares:
    if history.policy.kind != "sustained":
        return PlannedShares([], 0.0, [])
    return planned_for(history.cases, history.policy, history.room)
