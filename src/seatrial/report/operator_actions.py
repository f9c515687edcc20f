"""List what people did to a trial while it was under way: who, when, what and why.

table = operator_actions(history)
table.rows[0]    # [1795293735585925870, "mara", "change", "tests.cm4.most: none -> 6", "..."]
"""

from __future__ import annotations

from seatrial.acceptance.trial_history import TrialHistory
from seatrial.report.content import Cell, Table, bounded


def operator_actions(history: TrialHistory) -> Table:
    """Return the actions of people, oldest first."""
    rows: list[list[Cell]] = [
        [each.time, each.by, each.text, "; ".join(each.changes), each.reason]
        for each in history.actions
    ]
    columns = "when: time | who | what | changed | why"
    about = (
        "Criteria are judged over the spans: by each policy for as long as it held. A hold changes "
        "no planned share."
    )
    return bounded("What people did while it ran", columns, rows, about)
