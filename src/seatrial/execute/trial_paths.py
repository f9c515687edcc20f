"""The folder of a trial for those who read its results: paths, cases, some members of its record.

What a whole record is, ``trial_folder`` knows, with all that makes a trial.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from seatrial.errors import TrialError, UsageError
from seatrial.escaping import has_controls
from seatrial.files import FileOrigin, is_utf8, read_owned, read_regular
from seatrial.model.file_model import DAMAGED, decoder
from seatrial.model.identifiers import CaseOutline

T = TypeVar("T")
C = TypeVar("C", bound=CaseOutline)

MAX_RECORD_BYTES = 64 << 20
BUILD_LOG = "build.log"  # in the directory of a build, as is what it came to:
BUILD_RESULT = "seatrial.result"
HUNG_SCRIPT = "hung.sh"  # beside the script that collects facts
MAX_CASES_BYTES = 1 << 30
LONGEST = 1e10  # seconds, some 300 years: an absolute time fits, too
LARGEST = 10_000_000  # nodes, tasks, repeats
_COUNTS = ("nodes", "tasks", "tasks_per_node", "threads", "repeat", "at_once")


class _PolicyLists(Struct):
    """The lists of a policy that have a number for each case."""

    entry_of: list[int] = []
    unfit_of: list[int] = []
    bundle_of: list[int] = []


class CasesOfRecord(Struct):
    """The members of a record that say which cases there are, and how they were written."""

    #: None in a record that has none
    tests: dict[str, msgspec.Raw] | None = None
    #: a trial whose figures were given has no tests
    given: dict[str, msgspec.Raw] | None = None
    policy: _PolicyLists | None = None
    cases_bytes: int = -1
    cases_sha256: str = ""

    def require_written(self, data: bytes) -> None:
        """Raise ValueError unless this is what was written as ``cases.jsonl``."""
        if self.cases_bytes not in (-1, len(data)):
            raise ValueError(
                f"it has {len(data)} bytes and was written with {self.cases_bytes}; restore it,"
                " or start a new trial"
            )
        if self.cases_sha256 not in ("", hashlib.sha256(data).hexdigest()):
            raise ValueError(
                "it was changed after it was written (its checksum is not that in trial.json);"
                " restore it, or start a new trial"
            )

    def require_each(self, cases: Iterable[CaseOutline]) -> None:
        """Require that cases are of tests of the record, and of sizes that a machine could have."""
        tests = self.tests if self.given is None else None
        for case in cases:
            if tests is not None and case.test not in tests:
                raise ValueError(
                    f"a case is of the test {case.test!r}, which trial.json does not have"
                )
            if not 0 <= case.walltime <= LONGEST:
                raise ValueError(f"a case has the walltime {case.walltime:g} s")
            for name in _COUNTS:
                if not 0 <= (number := getattr(case, name, 0)) <= LARGEST:
                    raise ValueError(f"a case has {name} {number}")

    def require_all(self, cases: Sequence[CaseOutline]) -> None:
        """Require that these may be all cases, and that the record's lists fit them."""
        self.require_each(cases)
        for name in _PolicyLists.__struct_fields__:
            size = len(getattr(self.policy, name, ()))
            if size not in (0, len(cases)):
                raise ValueError(f"there are {len(cases)} cases, and {size} in policy.{name}")


class TrialPaths:
    """The paths in the folder of one trial. ``environments``: the distinct environments of runs, by
    their hashes. ``cancel_request``: the file that asks the driver of the trial, on any host, to
    cancel. ``heartbeat``: its driver touches it; ``alarm``: of which silence of the driver people
    were told; ``next``: which trials begin after it."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.tag = self.path.name
        self.journal = self.path / "journal.jsonl"
        self.builds = self.path / "builds"
        self.submissions = self.path / "submissions"
        self.environments = self.path / "environments"
        self.facts = self.path / "facts"
        self.hosts = self.path / "hosts"
        self.hung_script = self.facts / HUNG_SCRIPT
        self.requests = self.path / "requests"
        self.cancel_request = self.path / "cancel"
        self.heartbeat = self.path / "heartbeat"
        self.alarm = self.path / "alarm"
        self.next = self.path / "next"

    def log(self, of: str) -> Path:
        """The log file of one of the processes that work on the trial, ``driver`` or ``sinks``."""
        return self.path / "log" / f"{of}.log"

    def script(self, test: str) -> Path:
        """Return the path of the run script of a test, which job scripts source."""
        name = test.replace("+", "++").replace("/", "+")
        return Path(f"{self.path}/scripts/{name}.sh")

    def run(self, test: str, run_id: str) -> Path:
        return Path(f"{self.path}/runs/{test}/{run_id}")

    def record_as(self, kind: type[T]) -> T:
        """Read the record as a type that has some of its members. Raises TrialError."""
        decode = decoder(kind).decode
        return self._read("trial.json", MAX_RECORD_BYTES, decode, "is not a trial's record")

    def owned_record_as(self, decode: Callable[[bytes], T]) -> tuple[T, FileOrigin]:
        """Read the record, with who can have written it: before what it names is run. Raises
        TrialError."""
        path = self.path / "trial.json"
        try:
            data, origin = read_owned(path, MAX_RECORD_BYTES)
        except OSError as error:
            raise TrialError(f"{path}: cannot be read: {error.strerror}") from error
        return self._decoded(path, data, decode, "is not a trial's record"), origin

    def cases_as(self, kind: type[C]) -> list[C]:
        """Read the cases as a type that has some of their members. Raises TrialError where they
        are not as they were written."""

        def decode(data: bytes) -> list[C]:
            record = self.record_as(CasesOfRecord)
            try:
                record.require_written(data)
            except ValueError as error:
                raise TrialError(f"{self.path}/cases.jsonl: {error}") from error
            cases = decoder(kind).decode_lines(data)
            record.require_all(cases)
            return cases

        return self._read("cases.jsonl", MAX_CASES_BYTES, decode, "is damaged")

    def _read(self, name: str, limit: int, decode: Callable[[bytes], T], fault: str) -> T:
        path = self.path / name
        try:
            data = read_regular(path, limit)
        except OSError as error:
            raise TrialError(f"{path}: cannot be read: {error.strerror}") from error
        return self._decoded(path, data, decode, fault)

    def _decoded(self, path: Path, data: bytes, decode: Callable[[bytes], T], fault: str) -> T:
        try:
            return decode(data)
        except (*DAMAGED, ValueError) as error:
            raise TrialError(f"{path}: {fault}: {error}") from error


def run_directory(trial: Path | str, test: str, run_id: str, recorded: str) -> str:
    """Return the directory of a run: in the folder of its trial if it is there, as the trial may
    have been moved or copied, else as the journal has it, "" for none."""
    own = f"{trial}/runs/{test}/{run_id}"
    # Path.is_dir raises where a name is too long for the file system.
    return own if recorded not in ("", own) and os.path.isdir(own) else recorded  # noqa: PTH112


def require_plain(path: Path) -> None:
    """Raise UsageError for the path of a trial that cannot be written down: the journal stores
    paths as JSON, and the lists of runs have a line for each."""
    if not is_utf8(str(path)):
        fault = "is not UTF-8 and cannot be recorded"
    elif has_controls(str(path)):
        fault = "has control characters, which lists of runs and scripts cannot hold"
    else:
        return
    raise UsageError(f"{str(path)!r}: the path {fault}; name another place with --trials")


def tags(trials: Path) -> list[str]:
    """Return the tags of the trials in a folder, sorted, without names that are not UTF-8."""
    if not trials.is_dir():
        return []
    names = (path.parent.name for path in trials.glob("[!.]*/trial.json"))
    return sorted(filter(is_utf8, names))
