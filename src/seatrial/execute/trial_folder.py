"""The folder of a trial, and its record.

trials/<tag>/
  trial.json      what was asked: suite, machine, tests, references, versions
  cases.jsonl     the cases, one on a line, in the order in which they are started
  journal.jsonl   the events
  builds/<key>/   the directory of a build, with its log
  runs/<test>/<run id>/  job.sh  stdout  stderr  events.jsonl  and the files of the run
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path

import msgspec
from msgspec import Struct

from seatrial.errors import SeatrialError, TrialError, UsageError
from seatrial.execute.trial_paths import (
    LONGEST,
    MAX_CASES_BYTES,
    MAX_RECORD_BYTES,
    CasesOfRecord,
    TrialPaths,
    tags,
)
from seatrial.files import FileOrigin
from seatrial.journal.events import ReferencesCorrected, RunEvent
from seatrial.journal.journal import read
from seatrial.journal.trial import RECORDED_KINDS, RecordedRun, Trial
from seatrial.judge.log_rules import RuleFile
from seatrial.judge.references import Reference, References, loads
from seatrial.model.failures import KnownFailure
from seatrial.model.file_model import decoder
from seatrial.model.machine import Machine
from seatrial.model.nodes import groups_of, node_names
from seatrial.model.plan import Component, Tell
from seatrial.model.policy import Policy
from seatrial.model.test import Case, Keep, KeepWord, Test, TrialOptions
from seatrial.model.tune_file import TuneFile


class GivenFrom(Struct, frozen=True, kw_only=True):
    """Where the figures of a trial came from that nobody ran: a file, who brought it in, and when
    (ns)."""

    file: str
    sha256: str
    by: str
    on: int


class ImportedFrom(Struct, frozen=True, kw_only=True):
    """Where the runs of a trial came from that another ``tool`` made: its file or folder, who
    brought them in, and when (ns)."""

    tool: str
    file: str
    by: str
    on: int


class Record(Struct, frozen=True, kw_only=True, dict=True):
    """The record of a trial (``trial.json``), written once when the trial is created."""

    tag: str
    #: When it was created: ns since the epoch.
    created: int
    version: str
    user: str
    host: str
    asked: TrialOptions
    machine: Machine
    #: The file of the machine's references.
    references: str
    tests: dict[str, Test]
    #: What that file had at that time, so that all runs of a trial are judged by the same
    #: references. Version 0.1 wrote its text.
    expected: list[Reference] | str = []
    #: The hashes of the input files of the tests by their paths; "" for files that are too large.
    inputs: dict[str, str] = {}
    policy: Policy = Policy()
    #: Of a trial of a plan: the plan's name, its file, and the file's text at that time.
    plan: str = ""
    plan_file: str = ""
    plan_text: str = ""
    component: Component | None = None
    phase: str = ""
    alerts: Tell | None = None
    #: Whether it ran in virtual time on a simulated machine.
    rehearsed: bool = False
    #: Of a rehearsal: what its random numbers began with.
    seed: int = 0
    #: Of a rehearsal: the assumptions of its plan, in words.
    assumed: list[str] = []
    #: Size and checksum of ``cases.jsonl``, so that a file that was cut is noticed. Version 0.1
    #: wrote neither.
    cases_bytes: int = -1
    cases_sha256: str = ""
    #: The first cases and tests that could not run on the machine, with the reasons.
    left_out: list[tuple[str, str]] = []
    #: A site's own, by which facts of nodes are judged.
    rules: list[RuleFile] = []
    #: Who gave the figures of a trial of which nothing runs.
    given: GivenFrom | None = None
    #: Which other tool made its runs.
    imported: ImportedFrom | None = None
    known_failures: list[KnownFailure] = []
    #: Of a tuning: its file, and the file's text.
    tuning: TuneFile | None = None
    tuning_text: str = ""
    #: How many nodes the whole machine of a plan has, of which a component and a phase may have
    #: fewer; 0: unknown.
    machine_nodes: int = 0

    def keep_of(self, test: str) -> KeepWord | Keep:
        """Return which outputs of a test's runs stay: its component says, or else the test."""
        of_component = self.component.keep if self.component is not None else None
        return of_component or self.tests[test].keep

    @cached_property
    def _decoded(self) -> References:
        expected = self.expected
        if isinstance(expected, str):
            return loads(expected, Path(self.references)) if expected else References()
        return References.of(expected)


def references_of(record: Record) -> References:
    """Return the references that a trial judges by, decoded once. Raises InvalidFiles."""
    return record._decoded


def known_by(record: Record, policy: Policy) -> list[KnownFailure]:
    """Return the known failures of a trial by its policy of some time: those that it was made with,
    or those that people gave under way."""
    changed = policy.known_failures
    return record.known_failures if changed is None else changed


def checksum_of(references: References) -> str:
    """Return the SHA-256 of references, whatever the layout of their file."""
    return hashlib.sha256(msgspec.json.encode(references.entries)).hexdigest()


def record_in(data: bytes) -> Record:
    """Decode a record. Raises ValueError for one whose machine names no nodes, or that has times
    or numbers which no trial has."""
    record = decoder(Record).decode(data)
    node_names(record.machine)
    groups_of(record.machine)
    require_record(record.policy, record.machine)
    return record


# ---- folder --------------------------------------------------------------------------------------


class TrialFolder(TrialPaths):
    """The folder of one trial, with its files that are written once."""

    def record_and_origin(self) -> tuple[Record, FileOrigin]:
        """Read the record, with who can have written it: before what it names is run. Raises
        TrialError."""
        return self.owned_record_as(record_in)

    def record(self) -> Record:
        """Read the record. Raises TrialError."""
        decode = record_in
        return self._read("trial.json", MAX_RECORD_BYTES, decode, "is not a trial's record")

    def cases(self) -> list[Case]:
        """Read the cases. Raises TrialError where they are not as they were written."""
        return self.cases_as(Case)

    def case(self, case_id: str) -> Case | None:
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


def _case_in(data: bytes, case_id: str) -> Case | None:
    start = data.find(b'{"id":%s,' % msgspec.json.encode(case_id))
    if start < 0:
        return None
    end = data.find(b"\n", start)
    return decoder(Case).decode(data[start : end if end >= 0 else len(data)])


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


def require_own(tag: str, origin: FileOrigin) -> None:
    """Refuse the trial of another user: what its folder names would run under the own name."""
    if origin.other:
        raise TrialError(
            f"{tag} is not yours: {origin.other}, and its scripts would run under your name; its "
            "owner resumes it, or you start a trial of your own"
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


# ---- record check --------------------------------------------------------------------------------
#
# Whether the record and the cases of a trial fit each other: somebody else may have written them.
#
# Both raise ValueError, with the member and its value.


MOST_CORES = 1_000_000  # of a node

_TIMES = (
    *("duration", "quiet_after", "per", "stale_after", "start", "end", "within"),
    *("short_for", "silent_for", "wait_least", "again", "pause"),
)


def require_record(policy: Policy, machine: Machine) -> None:
    """Require that times and numbers of a record are such as a plan could have."""
    for place, seconds in _times(policy, "policy"):
        if not (math.isfinite(seconds) and abs(seconds) <= LONGEST):
            raise ValueError(f"{place} is {seconds:g} s, which no trial takes")
    for place, numbers, below in (
        ("policy.entry_of", policy.entry_of, len(policy.entries)),
        ("policy.unfit_of", policy.unfit_of, len(policy.unfit) + 1),
    ):
        if numbers and not 0 <= min(numbers) <= max(numbers) < below:
            raise ValueError(f"{place} names a number beyond the list that it is of")
    for kind in machine.nodes:
        if kind.cores > MOST_CORES:
            raise ValueError(f"machine.nodes: {kind.names} has {kind.cores} cores")


def _times(value: object, place: str) -> Iterator[tuple[str, float]]:
    """Yield the times in a policy, each with its place."""
    if isinstance(value, Struct):
        for name in value.__struct_fields__:
            each = getattr(value, name)
            if name in _TIMES and isinstance(each, int | float):
                yield f"{place}.{name}", each
            elif isinstance(each, Struct) or (isinstance(each, list) and each):
                yield from _times(each, f"{place}.{name}")
    elif isinstance(value, list) and isinstance(value[0], Struct):
        for each in value:
            yield from _times(each, place)
