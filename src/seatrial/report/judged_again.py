"""List the runs of a trial that were judged again, by test, verdicts, person and reason.

table = judged_again(history)
table.rows[0]    # ["cm4", "wrong answer", "pass", 38, 1795293735585925870, "lead@login1", "..."]
"""

from __future__ import annotations

from seatrial.acceptance.trial_history import RunHistory, TrialHistory
from seatrial.journal.codes import code_of
from seatrial.report.content import Cell, Table, bounded
from seatrial.trial.folder import Record, checksum_of, references_of
from seatrial.verify.reading import plain_line


def judged_again(history: TrialHistory) -> Table:
    """Return how many runs of each test got another verdict in place of their first, the latest
    time by whom and why."""
    found: dict[tuple[str, int, int, str], list[RunHistory]] = {}
    for run in history.runs:
        if run.judged_again is not None and run.first_code is not None:
            event = run.judged_again
            key = (history.test_of(run), run.first_code, run.code, event.by_and_why)
            found.setdefault(key, []).append(run)
    rows = [_row(*key[:3], runs) for key, runs in found.items()]
    columns = "test | first verdict | verdict | runs: count | when: time | by | why"
    about = "A person judged these runs again; what was measured did not change."
    return bounded("Runs that were judged again", columns, rows, about)


def other_references(history: TrialHistory, record: Record) -> int:
    """Return how many runs have their verdicts by other references than those of the record."""
    events = [run.judged_again for run in history.runs if run.judged_again is not None]
    own = checksum_of(references_of(record)) if events else ""
    return sum(event.references not in ("", own) for event in events)


def _row(test: str, first: int, last: int, runs: list[RunHistory]) -> list[Cell]:
    events = [run.judged_again for run in runs if run.judged_again is not None]
    latest = max(events, key=lambda event: event.time)
    by, why = plain_line(latest.by), plain_line(latest.why)
    return [test, code_of(first).name, code_of(last).name, len(runs), latest.time, by, why]
