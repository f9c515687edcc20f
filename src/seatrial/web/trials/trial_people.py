"""What people recorded about a trial and its plan, for the trial's page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from seatrial.acceptance.plan_records import Issue, PlanRecords, RecordedEntry
from seatrial.acceptance.status import Status
from seatrial.errors import JournalError, TrialError
from seatrial.journal.journal import read
from seatrial.plan.model import Component
from seatrial.store.rows import TrialRow
from seatrial.trial.folder import Record
from seatrial.trial.plan_trials import records
from seatrial.units import count, listed

MAX_NAMED = 8
MAX_SHOWN = 200


class TrialPeople(Struct, frozen=True, kw_only=True):
    """What people recorded: sentences to read first (what is awaited, what failed), the issues of
    the plan that are open, and what happened, the latest first."""

    notices: list[str] = []
    issues: list[Issue] = []
    entries: list[RecordedEntry] = []


def people_of(row: TrialRow, record: Record | None, status: Status | None) -> TrialPeople:
    """Return what people recorded about a trial's plan. Documents are not looked at."""
    if record is None or not record.plan or record.rehearsed:
        return TrialPeople()
    found = PlanRecords()
    try:
        folder = records(Path(row.path).parent, record.plan)
        found.fold(read(folder.journal) if folder else ())
    except (TrialError, JournalError):
        return TrialPeople(notices=["The records of its plan cannot be read."])
    return TrialPeople(
        notices=list(_notices(record.component, status, found)),
        issues=found.open_issues[:MAX_SHOWN],
        entries=found.entries[::-1][:MAX_SHOWN],
    )


def _notices(
    component: Component | None, status: Status | None, found: PlanRecords
) -> Iterator[str]:
    evidence = component.evidence if component else []
    later = [e.document for e in evidence if e.comes_later and e.document not in found.given]
    if status is not None and (awaited := [*status.awaited, *later]):
        yield f"Awaited: {', '.join(awaited)}."
    bad = [item.id for item in status.items if item.state == "fail"] if status else []
    if bad:
        yield f"{count(len(bad), 'item')} failed: {listed(bad, MAX_NAMED)}."
