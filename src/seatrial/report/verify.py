"""Verify that a report is unchanged since it was signed, and so are the files behind it.

found = verify(Path("report.html"), Path("trials"), signers=Path("allowed_signers"))
for each in found.files: each.state      # "as it was", "went on since", "changed", ...
found.code                               # 0, 1 or 3
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, NamedTuple

from seatrial.errors import UsageError
from seatrial.report.checksums import File, digest, files_in, sum_of
from seatrial.report.sign import Checked, check, signature_of

MAX_REPORT_BYTES: Final = 1 << 28  # bytes of a report
FileState = Literal["as it was", "went on since", "changed", "cut", "not here", "cannot be read"]

_BAD: Final = ("changed", "cut")
_UNKNOWN: Final = ("not here", "cannot be read")


class FileFound(NamedTuple):
    """A file that a report is based on, and its state; ``more``: bytes added since."""

    file: File
    path: Path
    state: FileState
    more: int = 0


class Verified(NamedTuple):
    """The result of a verification.

    ``signature``: None if there is none. ``by_key``: whether the signer's identity was checked.
    """

    report: Path
    sha256: str
    signature: Checked | None
    by_key: bool
    files: list[FileFound]

    @property
    def unsigned(self) -> bool:
        """Return whether a signer was asked for and there is no signature."""
        return self.signature is None and self.by_key

    @property
    def code(self) -> int:
        """Return the exit code.

        0: signed by an allowed key, and all files are unchanged. 1: a file or the report was
        changed, or a signature that was asked for is missing. 3: nothing is wrong, but not
        everything could be checked.
        """
        if self.unsigned or (self.signature is not None and not self.signature.good):
            return 1
        states = [each.state for each in self.files]
        if any(state in _BAD for state in states):
            return 1
        known = self.signature is not None and self.by_key
        return 0 if known and not any(state in _UNKNOWN for state in states) else 3


def verify(
    report: Path, trials: Path, signers: Path | None = None, key: Path | None = None
) -> Verified:
    """Check a report's signature, and the files below ``trials`` that it names.

    Raises UsageError for a file that is no report, TrialError if ssh-keygen cannot be run.
    """
    document = _read(report)
    try:
        files = files_in(document)
    except UsageError as error:
        raise UsageError(f"{report}: {error}") from error
    signature = signature_of(report)
    checked = None
    if signature.exists():
        checked = check(document, signature, signers, key)
    by_key = signers is not None or key is not None
    found = [_found(each, trials) for each in files]
    return Verified(report, digest(document), checked, by_key, found)


def tags_in(report: Path) -> set[str]:
    """Return the tags of the trials in a report; none for a file that is no report."""
    try:
        return {file.trial for file in files_in(_read(report))}
    except UsageError:
        return set()


def _read(report: Path) -> bytes:
    """Return the report, read once, so that the same bytes are checked and parsed."""
    try:
        if not report.is_file():
            raise UsageError(f"{report}: there is no such report")
        if report.stat().st_size > MAX_REPORT_BYTES:
            raise UsageError(f"{report}: is larger than any report of Seatrial's")
        return report.read_bytes()
    except OSError as error:
        raise UsageError(f"{report}: cannot be read: {error.strerror}") from error


def _found(file: File, trials: Path) -> FileFound:
    """Return the state of a file of a trial.

    Its name was checked when the report was read: it is a tag and one of three names.
    """
    path = trials / file.trial / file.name
    try:
        if not path.is_file():
            return FileFound(file, path, "not here")
        size = path.stat().st_size
        if size < file.bytes:
            return FileFound(file, path, "cut")
        sha256, there = sum_of(path, file.bytes)
    except OSError:
        return FileFound(file, path, "cannot be read")
    if there < file.bytes or sha256 != file.sha256:
        return FileFound(file, path, "changed")
    if size == file.bytes:
        return FileFound(file, path, "as it was")
    if file.name == "journal.jsonl":
        return FileFound(file, path, "went on since", size - file.bytes)
    return FileFound(file, path, "changed")  # it is written once
