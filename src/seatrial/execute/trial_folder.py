"""The folder of a trial.

trials/<tag>/
  trial.json      what was asked: suite, machine, tests, references, versions
  cases.jsonl     the cases, one on a line, in the order in which they are started
  journal.jsonl   the events
  builds/<key>/   the directory of a build, with its log
  runs/<test>/<run id>/  job.sh  stdout  stderr  events.jsonl  and the files of the run
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from seatrial.errors import SeatrialError, TrialError, UsageError
from seatrial.execute import trial_record
from seatrial.execute.trial_paths import (
    MAX_CASES_BYTES,
    MAX_RECORD_BYTES,
    CasesOfRecord,
    TrialPaths,
    tags,
)
from seatrial.execute.trial_record import Record, references_of
from seatrial.files import FileOrigin
from seatrial.journal.events import ReferencesCorrected, RunEvent
from seatrial.journal.journal import read
from seatrial.journal.run_life import RECORDED_KINDS, RecordedRun
from seatrial.journal.trial import Trial
from seatrial.judge.references import Reference, References
from seatrial.model import test
from seatrial.model.file_model import decoder
from seatrial.model.machine import Machine


class TrialFolder(TrialPaths):
    """The folder of one trial, with its files that are written once."""

    def record_and_origin(self) -> "tuple[trial_record.Record, FileOrigin]":
        """Read the record, with who can have written it: before what it names is run. Raises
        TrialError."""
        return self.owned_record_as(trial_record.record_in)

    def record(self) -> "trial_record.Record":
        """Read the record. Raises TrialError."""
        decode = trial_record.record_in
        return self._read("trial.json", MAX_RECORD_BYTES, decode, "is not a trial's record")

    def cases(self) -> "list[test.Case]":
        """Read the cases. Raises TrialError where they are not as they were written."""
        return self.cases_as(test.Case)

    def case(self, case_id: str) -> "test.Case | None":
        """Read one case, without decoding the others; None where there is no such case. Raises
        TrialError."""
        decode = partial(_case_in, case_id=case_id)
        case = self._read("cases.jsonl", MAX_CASES_BYTES, decode, "is damaged")
        if case is not None:
            try:
                self.record_as(CasesOfRecord).require_each([case])
            except ValueError as error:
                raise TrialError(f"{self.path}/cases.jsonl: is damaged: {error}") from error
        return case

    def runs(self, wants: Callable[[RunEvent], bool]) -> list[RecordedRun]:
        """Return runs as the journal has them: those of which the first event is wanted. Raises
        JournalError."""
        trial = Trial(
            lambda event: RecordedRun.begin(event) if wants(event) else None, kinds=RECORDED_KINDS
        )
        for event in read(self.journal):
            trial.apply(event)
        return list(trial.runs_by_id.values())


def _case_in(data: bytes, case_id: str) -> "test.Case | None":
    start = data.find(b'{"id":%s,' % msgspec.json.encode(case_id))
    if start < 0:
        return None
    end = data.find(b"\n", start)
    return decoder(test.Case).decode(data[start : end if end >= 0 else len(data)])


def find(trials: Path, tag: str) -> TrialFolder:
    """Return the trial with a tag, a unique beginning of a tag, or a path. Raises UsageError."""
    if "/" in tag and (Path(tag) / "trial.json").exists():
        return TrialFolder(Path(tag))
    known = tags(trials)
    matches = [tag] if tag in known else [name for name in known if name.startswith(tag)]
    if len(matches) == 1:
        return TrialFolder(trials / matches[0])
    if not matches:
        latest = max(known, key=lambda name: _created(trials / name), default="")
        latest = latest and f"; the latest is {latest}"
        raise UsageError(f"{trials}: no trial {tag!r} here{latest}; see `seatrial trials`")
    raise UsageError(
        f"{trials}: {tag!r} is the beginning of {', '.join(matches[:5])}; give more letters"
    )


class _Created(Struct):
    created: int = 0


def _created(path: Path) -> int:
    """Return when a trial was created (ns); 0 for one without a readable record."""
    try:
        return TrialFolder(path).record_as(_Created).created
    except TrialError:
        return 0


# ---- corrected references ------------------------------------------------------------------------
#
# The references that a trial is judged by, by its journal.
#
#     references_by_now(folder, record)     # those of its record, or those that a person corrected
#
# A trial keeps the references that it was made with, until a person judges it again by others.


def references_by_now(folder: TrialFolder, record: Record) -> References:
    """Return the references of a trial, after reading its whole journal. Raises InvalidFiles and
    JournalError."""
    events = read(folder.journal)
    corrections = [event for event in events if isinstance(event, ReferencesCorrected)]
    return latest_references(corrections) or references_of(record)


def latest_references(corrections: Sequence[ReferencesCorrected]) -> References | None:
    """Return the references by which people judged a trial again last; None if they never did."""
    return next(filter(None, map(corrected, reversed(corrections))), None)


def corrected(event: ReferencesCorrected) -> References | None:
    """Return the references that a person judged a trial again by; None if a later version wrote
    them in another form."""
    try:
        return References.of(msgspec.convert(event.entries, list[Reference]))
    except msgspec.ValidationError:
        return None


def known_machine(trial: Path) -> Machine | None:
    """Return the machine of the trial in a folder; None if its record cannot be read: it is gone,
    or another version wrote it."""
    try:
        return TrialFolder(trial).record().machine
    except (SeatrialError, ValueError):
        return None
