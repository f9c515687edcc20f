"""The paths in the folder of a trial, for those who need not know what a record and cases are."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from seatrial.errors import TrialError, UsageError
from seatrial.escaping import has_controls
from seatrial.execute.hung_processes import HUNG_SCRIPT
from seatrial.files import FileOrigin, is_utf8, read_owned, read_regular
from seatrial.model.decoding import DAMAGED, decoder

T = TypeVar("T")

MAX_RECORD_BYTES = 64 << 20


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
