"""The folder of a trial.

trials/<tag>/
  trial.json      what was asked: suite, machine, tests, references, versions
  cases.jsonl     the cases, one on a line, in the order in which they are started
  journal.jsonl   the events
  builds/<key>/   the directory of a build, with its log
  runs/<test>/<run id>/  job.sh  stdout  stderr  events.jsonl  and the files of the run
"""

import getpass
import hashlib
import os
from functools import cached_property, partial
from pathlib import Path

import msgspec
from msgspec import Struct

from seatrial.conduct.policy import Policy
from seatrial.decoding import decoder
from seatrial.errors import TrialError, UsageError
from seatrial.files import is_utf8
from seatrial.machine.facts import groups_of, node_names
from seatrial.machine.failures import KnownFailure
from seatrial.machine.model import Machine
from seatrial.plan.model import Component, Tell
from seatrial.rules.model import RuleFile
from seatrial.suite.model import Case, Keep, KeepWord, Test
from seatrial.suite.tune_file import TuneFile
from seatrial.trial.options import TrialOptions
from seatrial.trial.paths import MAX_RECORD_BYTES, TrialPaths
from seatrial.verify.references import Reference, References, loads

MAX_CASES_BYTES = 1 << 30


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
    """The record of a trial (``trial.json``), written once when the trial is created. ``created``
    is in ns since the epoch. ``references`` is the file of the machine's references, ``expected``
    has its contents at that time (version 0.1 wrote its text), so that a trial judges all its runs
    by the same references. ``inputs`` are the hashes of the input files of the tests by their
    paths, "" for files that are too large. A trial of a plan has the plan's name and file, the
    component, the phase and the policy; ``plan_text`` is the plan's file as it was. A ``rehearsed``
    trial ran in virtual time on a simulated machine, with random numbers from its ``seed``;
    ``assumed`` are the assumptions of its plan, in words. ``cases_bytes`` and ``cases_sha256`` are
    the size and the checksum of ``cases.jsonl``: a file that was cut is noticed (version 0.1 wrote
    neither). ``left_out`` are the first cases and tests that could not run on the machine, with the
    reasons. ``rules`` are a site's own, by which facts of nodes are judged.
    Of a trial whose figures somebody else gave, ``given`` says who; nothing of it runs.
    ``imported`` says which other tool made the runs of a trial.
    Of a tuning, ``tuning`` is its file and ``tuning_text`` the file's text."""

    tag: str
    created: int
    version: str
    user: str
    host: str
    asked: TrialOptions
    machine: Machine
    references: str
    tests: dict[str, Test]
    expected: list[Reference] | str = []
    inputs: dict[str, str] = {}
    policy: Policy = Policy()
    plan: str = ""
    plan_file: str = ""
    plan_text: str = ""
    component: Component | None = None
    phase: str = ""
    alerts: Tell | None = None
    rehearsed: bool = False
    seed: int = 0
    assumed: list[str] = []
    cases_bytes: int = -1
    cases_sha256: str = ""
    left_out: list[tuple[str, str]] = []
    rules: list[RuleFile] = []
    given: GivenFrom | None = None
    imported: ImportedFrom | None = None
    known_failures: list[KnownFailure] = []
    tuning: TuneFile | None = None
    tuning_text: str = ""

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


def checksum_of(references: References) -> str:
    """Return the SHA-256 of references, whatever the layout of their file."""
    return hashlib.sha256(msgspec.json.encode(references.entries)).hexdigest()


def _record(data: bytes) -> Record:
    """Decode a record. Raises ValueError for one whose machine names no nodes."""
    record = decoder(Record).decode(data)
    node_names(record.machine)
    groups_of(record.machine)
    return record


class _CasesWritten(Struct):
    """The members of a record that say how ``cases.jsonl`` was written."""

    cases_bytes: int = -1
    cases_sha256: str = ""


class TrialFolder(TrialPaths):
    """The folder of one trial, with its files that are written once."""

    def record(self) -> Record:
        """Read the record. Raises TrialError."""
        return self._read("trial.json", MAX_RECORD_BYTES, _record, "is not a trial's record")

    def cases(self) -> list[Case]:
        """Read the cases. Raises TrialError where they are not as they were written."""
        return self._read("cases.jsonl", MAX_CASES_BYTES, self._whole_cases, "is damaged")

    def case(self, case_id: str) -> Case | None:
        """Read one case, without decoding the others; None where there is no such case. Raises
        TrialError."""
        decode = partial(_case_in, case_id=case_id)
        return self._read("cases.jsonl", MAX_CASES_BYTES, decode, "is damaged")

    def _whole_cases(self, data: bytes) -> list[Case]:
        record = self.record_as(_CasesWritten)
        if record.cases_bytes not in (-1, len(data)):
            raise TrialError(
                f"{self.path}/cases.jsonl: it has {len(data)} bytes and was written with "
                f"{record.cases_bytes}; restore it, or start a new trial"
            )
        if record.cases_sha256 not in ("", hashlib.sha256(data).hexdigest()):
            raise TrialError(
                f"{self.path}/cases.jsonl: it was changed after it was written (its checksum is "
                "not that in trial.json); restore it, or start a new trial"
            )
        return decoder(Case).decode_lines(data)


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
    matches = [name for name in known if name == tag] or [n for n in known if n.startswith(tag)]
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


def tags(trials: Path) -> list[str]:
    """Return the tags of the trials in a folder, sorted, without names that are not UTF-8."""
    if not trials.is_dir():
        return []
    names = (path.parent.name for path in trials.glob("[!.]*/trial.json"))
    return sorted(filter(is_utf8, names))


def user_name() -> str:
    """Return the name of the user, or the number of one without a name, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
