"""A trial on disk.

trials/<tag>/
  trial.json      what was asked: suite, machine, tests, versions
  cases.jsonl     the cases, one a line, in the order in which they are started
  journal.jsonl   the truth
  builds/<key>/   a build's directory, its log
  runs/<test>/<run id>/  job.sh  stdout  stderr  events.jsonl  and what the run wrote
"""

from __future__ import annotations

import getpass
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from seatrial.conduct.policy import Policy
from seatrial.decoding import DAMAGED, decoder
from seatrial.errors import TrialError, UsageError
from seatrial.files import read_regular
from seatrial.machine.model import Machine
from seatrial.plan.model import Component, Tell
from seatrial.runs.environment import write_script
from seatrial.suite.model import Case, Test
from seatrial.trial.remedies import remedy
from seatrial.verify.references import References, loads

MAX_RECORD_BYTES = 64 << 20
MAX_CASES_BYTES = 1 << 30

_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")


class TrialOptions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person asked for on the command line."""

    suites: list[str]
    keyword: str = ""
    tags: list[str] = []
    toolchains: list[str] = []
    settings: dict[str, str] = {}
    repeat: int = 0
    jobs: int = 0
    max_failures: int = 0
    failed_from: str = ""


class Record(Struct, frozen=True, kw_only=True):
    """``trial.json``: written once, when the trial is made. ``created`` in ns since the epoch;
    ``references`` is the machine's file, ``expected`` what it held then: one trial judges by one
    set of references, however long it takes. ``inputs`` are the hashes of the tests' input files
    by their paths, "" of those too large to be read. A trial of a plan names it, its file, the
    component and the phase, and holds the policy by which it is conducted. One that was
    ``rehearsed`` ran in virtual time on a simulated machine, by the chance of its ``seed``;
    ``assumed`` is what its plan said of that in words."""

    tag: str
    created: int
    version: str
    user: str
    host: str
    asked: TrialOptions
    machine: Machine
    references: str
    tests: dict[str, Test]
    expected: str = ""
    inputs: dict[str, str] = {}
    policy: Policy = Policy()
    plan: str = ""
    plan_file: str = ""
    component: Component | None = None
    phase: str = ""
    alerts: Tell | None = None
    rehearsed: bool = False
    seed: int = 0
    assumed: list[str] = []


def references_of(record: Record) -> References:
    """The references that a trial judges by."""
    return loads(record.expected, Path(record.references)) if record.expected else References()


class TrialFolder:
    """The paths and the written-once files of one trial."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    @property
    def tag(self) -> str:
        return self.path.name

    @property
    def journal(self) -> Path:
        return self.path / "journal.jsonl"

    @property
    def builds(self) -> Path:
        return self.path / "builds"

    @property
    def submissions(self) -> Path:
        return self.path / "submissions"

    @property
    def environments(self) -> Path:
        """The distinct environments that runs had, by their hashes."""
        return self.path / "environments"

    @property
    def cancel_request(self) -> Path:
        """A file that asks the trial's driver, wherever it is, to cancel."""
        return self.path / "cancel"

    def log(self, of: str) -> Path:
        """The log file of one of the processes that work on the trial, ``driver`` or ``sinks``."""
        return self.path / "log" / f"{of}.log"

    def script(self, test: str) -> Path:
        """A test's run script as written; the job scripts source it."""
        name = test.replace("+", "++").replace("/", "+")
        return self.path / "scripts" / f"{name}.sh"

    def run(self, test: str, run_id: str) -> Path:
        return Path(f"{self.path}/runs/{test}/{run_id}")

    def record(self) -> Record:
        path = self.path / "trial.json"
        try:
            return decoder(Record).decode(read_regular(path, MAX_RECORD_BYTES))
        except OSError as error:
            raise TrialError(f"{path}: cannot be read: {error.strerror}") from error
        except DAMAGED as error:
            raise TrialError(f"{path}: is not a trial's record: {error}") from error

    def cases(self) -> list[Case]:
        path = self.path / "cases.jsonl"
        try:
            return decoder(Case).decode_lines(read_regular(path, MAX_CASES_BYTES))
        except OSError as error:
            raise TrialError(f"{path}: cannot be read: {error.strerror}") from error
        except DAMAGED as error:
            raise TrialError(f"{path}: is damaged: {error}") from error


def create(trials: Path, record: Record, cases: Iterable[Case]) -> TrialFolder:
    """Make a trial's folder, whole or not at all. Raises UsageError for a tag that is taken or is
    no name for a folder, TrialError where the folder cannot be made."""
    if not _TAG.fullmatch(record.tag):
        raise UsageError(f"--name {record.tag!r}: a tag is letters, digits, ._+- (at most 100)")
    folder = TrialFolder(trials / record.tag)
    _require_utf8(folder.path)
    making = trials.absolute() / f".making-{record.tag}-{os.getpid()}"
    try:
        making.mkdir(parents=True)
        pretty = msgspec.json.format(msgspec.json.encode(record), indent=2)
        (making / "trial.json").write_bytes(pretty + b"\n")
        (making / "cases.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(cases))
        for name in ("builds", "runs", "scripts", "submissions"):
            (making / name).mkdir()
        for test in record.tests.values():
            script = TrialFolder(making).script(test.name)
            write_script(script, test.run.script.rstrip("\n") + "\n")
        making.rename(folder.path)
    except BaseException as error:
        shutil.rmtree(making, ignore_errors=True)
        if isinstance(error, UnicodeEncodeError):
            raise UsageError(
                f"{error.object[:200]!r}: this path is not UTF-8, and cannot be recorded; rename it"
            ) from error
        if not isinstance(error, OSError):
            raise
        if folder.path.exists():
            raise UsageError(
                f"{folder.path}: a trial of this tag exists; choose another"
            ) from error
        raise TrialError(
            f"{folder.path}: the trial cannot be made: {error.strerror}; "
            f"{remedy(error)}, or name another place with --trials"
        ) from error
    return folder


def _require_utf8(path: Path) -> None:
    """The journal holds the paths of runs, as JSON."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{str(path)!r}: this path is not UTF-8, and cannot be recorded; "
            "name another place with --trials"
        ) from error


def find(trials: Path, tag: str) -> TrialFolder:
    """The trial of that tag (or of a unique beginning of it, or of a path). Raises UsageError."""
    if "/" in tag and (Path(tag) / "trial.json").exists():
        return TrialFolder(Path(tag))
    known = tags(trials)
    found = [name for name in known if name == tag] or [n for n in known if n.startswith(tag)]
    if len(found) == 1:
        return TrialFolder(trials / found[0])
    if not found:
        latest = f"; the latest is {_latest(trials, known)}" if known else ""
        raise UsageError(f"{trials}: no trial {tag!r} here{latest}; see `seatrial trials`")
    raise UsageError(f"{trials}: {tag!r} is the beginning of {', '.join(found[:5])}; say which")


class _Created(Struct):
    created: int = 0


def _latest(trials: Path, known: Iterable[str]) -> str:
    """Which of some trials was made last; one whose record cannot be read counts as the first."""

    def created(tag: str) -> int:
        try:
            text = (trials / tag / "trial.json").read_bytes()
            return decoder(_Created).decode(text).created
        except (OSError, *DAMAGED):
            return 0

    return max(known, key=created)


def tags(trials: Path) -> list[str]:
    """The tags of the trials below a folder, oldest first as their names sort."""
    if not trials.is_dir():
        return []
    return sorted(p.parent.name for p in trials.glob("[!.]*/trial.json"))


def user_name() -> str:
    """Return the name of the user, or the number of one without a name, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
