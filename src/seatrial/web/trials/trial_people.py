"""What people recorded about a trial and its plan, for the trial's page."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.acceptance.plan_records import Issue, RecordedEntry
from seatrial.acceptance.status import Status
from seatrial.errors import JournalError, TrialError
from seatrial.store.rows import TrialRow
from seatrial.trial.folder import Record
from seatrial.units import count, listed
from seatrial.web.trials.trial_documents import records_of_plan

MAX_NAMED = 8
MAX_SHOWN = 200


class TrialPeople(Struct, frozen=True, kw_only=True):
    """What people recorded: sentences to read first (what is awaited, what failed), the issues of
    the plan that are open, and what happened, the latest first."""

    notices: list[str] = []
    issues: list[Issue] = []
    entries: list[RecordedEntry] = []


def people_of(row: TrialRow, record: Record | None, status: Status | None) -> TrialPeople:
    """Return what people recorded about a trial's plan. ``status`` has its documents."""
    if record is None or not record.plan or record.rehearsed:
        return TrialPeople()
    try:
        found = records_of_plan(row, record)
    except (TrialError, JournalError):
        return TrialPeople(notices=["The records of its plan cannot be read."])
    return TrialPeople(
        notices=list(_notices(status)),
        issues=found.open_issues[:MAX_SHOWN],
        entries=found.entries[::-1][:MAX_SHOWN],
    )


def _notices(status: Status | None) -> Iterator[str]:
    if status is None:
        return
    if status.awaited:
        yield f"Awaited: {', '.join(status.awaited)}."
    bad = [item.id for item in status.items if item.state == "fail"]
    if bad:
        yield f"{count(len(bad), 'item')} failed: {listed(bad, MAX_NAMED)}."
    if status.unsound:
        yield f"Documents: {'; '.join(status.unsound)}."
