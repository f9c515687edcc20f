"""List the runs of a trial that were judged again, by test, verdicts, person and reason.

table = judged_again(history)
table.rows[0]    # ["cm4", "wrong answer", "pass", 38, 1795293735585925870, "lead@login1", "..."]
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.acceptance.operator_actions import CORRECT
from seatrial.acceptance.trial_history import RunHistory, TrialHistory
from seatrial.journal.codes import code_of
from seatrial.report.content import Cell, Table, bounded, moment
from seatrial.trial.folder import Record, checksum_of, references_of
from seatrial.units import count
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


def corrected_references(history: TrialHistory, record: Record) -> Iterator[str]:
    """Yield a sentence where people judged a trial again by other references than its own. Version
    0.1 recorded their checksums alone, so criteria did not follow."""
    own = checksum_of(references_of(record))
    if history.references is not None:
        if checksum_of(history.references) != own:
            told = next(each for each in reversed(history.actions) if each.action == CORRECT)
            yield (
                f"{plain_line(told.by)} corrected the references of this trial on "
                f"{moment(told.time)} UTC ({plain_line(told.reason)}): its criteria, and the table "
                "of figures against their references, use the corrected ones."
            )
    elif others := _by_other_references(history, own):
        yield (
            f"{count(others, 'run')} {'was' if others == 1 else 'were'} judged again by other "
            "references than those that this trial was made with; its criteria, and the table of "
            "figures against their references, use the latter."
        )


def _by_other_references(history: TrialHistory, own: str) -> int:
    events = [run.judged_again for run in history.runs if run.judged_again is not None]
    return sum(event.references not in ("", own) for event in events)


def _row(test: str, first: int, last: int, runs: list[RunHistory]) -> list[Cell]:
    events = [run.judged_again for run in runs if run.judged_again is not None]
    latest = max(events, key=lambda event: event.time)
    by, why = plain_line(latest.by), plain_line(latest.why)
    return [test, code_of(first).name, code_of(last).name, len(runs), latest.time, by, why]
