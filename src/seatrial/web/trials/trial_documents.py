"""The documents of a trial on its pages: are they as they were signed for, and what follows?

status = with_documents_now(state, row, record, status)      # as the report has it
"""

from pathlib import Path

from msgspec.structs import replace

from seatrial.acceptance.criteria import OverallState
from seatrial.acceptance.documents import with_evidence, with_people
from seatrial.acceptance.evidence_status import (
    EvidenceStatus,
    awaited_of,
    evidence_of,
    items_of_now,
    unsound_of,
)
from seatrial.acceptance.plan_records import PlanRecords, records_in
from seatrial.acceptance.status import Status
from seatrial.errors import JournalError, TrialError
from seatrial.store.rows import TrialRow
from seatrial.trial.plan_trials import records
from seatrial.trial.record import Record
from seatrial.web.state.server_state import ServerState
from seatrial.web.state.trial_cache import JudgedTrial


def records_of_plan(row: TrialRow, record: Record) -> PlanRecords:
    """Return what people recorded about the plan of a trial. Raises JournalError, TrialError."""
    return records_in(records(Path(row.path).parent, record.plan))


def with_documents_now(
    state: ServerState, row: TrialRow, record: Record | None, status: Status | None
) -> Status | None:
    """Return a status with the documents of a trial's component and of its items."""
    if status is None or record is None or not record.plan or record.rehearsed:
        return status
    items = items_of_now(status.items, _home(record), state.documents.state_of)
    return with_evidence(replace(status, items=items), _evidence(state, row, record))


def verdict_now(state: ServerState, row: TrialRow, judged: JudgedTrial) -> tuple[OverallState, str]:
    """Return the verdict of a trial and its words, as its documents are now."""
    overall, record = judged.overall, judged.record
    items = items_of_now(judged.items, _home(record), state.documents.state_of)
    evidence = _evidence(state, row, record)
    unsound, awaited = unsound_of(items, evidence), awaited_of(items, evidence)
    return with_people(overall.state, overall.words, unsound, awaited)


def _home(record: Record) -> Path:
    return Path(record.plan_file).parent


def _evidence(state: ServerState, row: TrialRow, record: Record) -> list[EvidenceStatus]:
    written = record.component.evidence if record.component else []
    if not written:
        return []
    try:
        given = records_of_plan(row, record).given
    except (TrialError, JournalError):
        given = {}
    return evidence_of(written, given, _home(record), state.documents.state_of)
