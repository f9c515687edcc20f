"""The runs that both sides agreed to leave out of the criteria, as lists mark them."""

from collections.abc import Sequence

from seatrial.journal.events import RunReviewed
from seatrial.store.schema import Store, chunks, marks

WITHDRAWN = "withdrawn"  # how the detail of an event ends that takes earlier ones back


def excluded_runs(store: Store, runs: Sequence[int]) -> set[int]:
    """Return those of the runs (rows of the store) that are excluded by agreement."""
    found: set[int] = set()
    for rows in chunks(runs):
        sql = (
            "SELECT run, value, detail FROM events"
            f" WHERE run IN ({marks(len(rows))}) AND number = {RunReviewed.number:d}"
            " ORDER BY run, time, seq"
        )
        for run, value, detail in store.rows(sql, rows):
            if detail.endswith(WITHDRAWN):
                found.discard(run)
            elif value:
                found.add(run)
    return found
