"""Verify that a report is unchanged since it was signed, and so is what it is based on.

found = verify(Path("report.html"), Path("trials"), Asked(signers=Path("allowed_signers")))
for each in found.signatures: each.checked.state     # "good", "unknown" or "bad"
for each in found.files: each.state                  # "as it was", "went on since", "changed", ...
found.code                                           # 0, 1 or 3
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from seatrial.errors import TrialError, UsageError
from seatrial.report.checksums import NOTES, File, based_on, digest, files_in, sum_of
from seatrial.report.outputs import OutputsFound, appended, outputs_found, read_journal
from seatrial.report.sign import Checked, check, signatures_of
from seatrial.trial.folder import TrialFolder

MAX_REPORT_BYTES: Final = 1 << 28  # bytes of a report
FileState = Literal[
    "as it was", "went on since", "changed", "added to", "cut", "not here", "cannot be read"
]

_BAD: Final = ("changed", "added to", "cut")
_UNKNOWN: Final = ("not here", "cannot be read")


class Asked(NamedTuple):
    """Whose signatures count: those of a file of allowed signers, or of one public key. ``names``:
    who must have signed. ``outputs``: whether files of runs are checked. ``documents``: the folder
    of the documents of evidence; None: that of the plan."""

    signers: Path | None = None
    key: Path | None = None
    names: tuple[str, ...] = ()
    outputs: bool = True
    documents: Path | None = None

    @property
    def by_key(self) -> bool:
        return self.signers is not None or self.key is not None


class SignatureFound(NamedTuple):
    """A signature beside a report, by the name that it is kept by ("" for ``report.html.sig``)."""

    name: str
    path: Path
    checked: Checked


class FileFound(NamedTuple):
    """A file that a report is based on, and its state; ``more``: bytes added since; ``why``: what
    speaks against them."""

    file: File
    path: Path
    state: FileState
    more: int = 0
    why: str = ""


class Verified(NamedTuple):
    """The result of a verification."""

    report: Path
    sha256: str
    decision: str
    asked: Asked
    signatures: list[SignatureFound]
    files: list[FileFound]
    outputs: list[OutputsFound]

    @property
    def good(self) -> list[SignatureFound]:
        return [one for one in self.signatures if one.checked.state == "good"]

    @property
    def missing(self) -> list[str]:
        """Return the names that must have signed and did not, each by a key of its own: whoever
        asks for two names asks for two signers, whatever names the file allows to one key."""
        keys = {
            name: [one.checked.key for one in self.good if name in one.checked.names]
            for name in self.asked.names
        }
        signed = distinct(keys)
        return [name for name in self.asked.names if name not in signed]

    @property
    def shared(self) -> list[str]:
        """Return the missing names for which a key has signed that another name needs."""
        signed = {name for one in self.good for name in one.checked.names}
        return [name for name in self.missing if name in signed]

    @property
    def unsigned(self) -> bool:
        """Return whether a signer was asked for and no signature is by one."""
        return self.asked.by_key and not self.good

    @property
    def tampered(self) -> bool:
        """Return whether something behind the report was changed."""
        changed = (one.state == "changed" for each in self.outputs for one in each.others)
        return any(each.state in _BAD for each in self.files) or any(changed)

    @property
    def without_outputs(self) -> list[FileFound]:
        """Return the journals by which outputs should have been checked, and could not be."""
        if not self.asked.outputs:
            return []
        known = {one.trial for one in self.outputs}
        journals = [each for each in self.files if each.file.name == "journal.jsonl"]
        return [each for each in journals if each.file.trial not in known]

    @property
    def code(self) -> int:
        """Return the exit code.

        0: signed by all that are asked for, and everything is unchanged. 1: a file, an output or
        the report was changed, or a signature that was asked for is missing. 3: nothing is wrong,
        but not everything could be checked.
        """
        bad = any(one.checked.state == "bad" for one in self.signatures)
        if bad or self.unsigned or self.missing or self.tampered:
            return 1
        known = bool(self.signatures) and self.asked.by_key
        unread = self.without_outputs or any(each.state in _UNKNOWN for each in self.files)
        return 0 if known and not unread and not any(each.others for each in self.outputs) else 3


def distinct(choices: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return for as many names as possible one of their choices, each another: a maximum matching,
    by augmenting paths (H. W. Kuhn, 1955)."""
    taken: dict[str, str] = {}  # choice -> name

    def found(name: str, seen: set[str]) -> bool:
        for choice in choices[name]:
            if choice not in seen:
                seen.add(choice)
                if choice not in taken or found(taken[choice], seen):
                    taken[choice] = name
                    return True
        return False

    for name in choices:
        found(name, set())
    return {name: choice for choice, name in taken.items()}


def verify(report: Path, trials: Path, asked: Asked | None = None) -> Verified:
    """Check a report's signatures, and the files below ``trials`` that it names.

    Raises UsageError for a file that is no report, TrialError if ssh-keygen cannot be run.
    """
    asked = asked or Asked()
    document = _read(report)
    try:
        files, decision = based_on(document)
    except UsageError as error:
        raise UsageError(f"{report}: {error}") from error
    signatures = [
        SignatureFound(
            name, path, check(document, path, asked.signers, asked.key, [*asked.names, name])
        )
        for name, path in signatures_of(report)
    ]
    places = _document_folders(report, trials, files, asked)
    found, outputs = [], []
    for each in files:
        if each.document:
            found.append(_document(each, places))
        elif each.name == "journal.jsonl":
            one, wrote = _journal(each, trials, asked.outputs)
            found.append(one)
            outputs += wrote
        else:
            found.append(_found(each, trials))
    return Verified(report, digest(document), decision, asked, signatures, found, outputs)


def tags_in(report: Path) -> set[str]:
    """Return the tags of the trials in a report; none for a file that is no report."""
    try:
        return {file.trial for file in files_in(_read(report)) if file.trial}
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


# ---- files --------------------------------------------------------------------------------


def _found(file: File, trials: Path) -> FileFound:
    """Return the state of a file of a trial, or of the notes.

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
    if file.name in ("journal.jsonl", NOTES):
        return FileFound(file, path, "went on since", size - file.bytes)
    return FileFound(file, path, "changed")  # it is written once


def _journal(file: File, trials: Path, with_outputs: bool) -> tuple[FileFound, list[OutputsFound]]:
    """Return the state of a journal, and of what the runs wrote by it."""
    found = _found(file, trials)
    if found.state not in ("as it was", "went on since"):
        return found, []
    folder = TrialFolder(trials / file.trial)
    try:
        reading = read_journal(found.path, file.bytes, folder.record())
        if found.more and (why := appended(found.path, file.bytes, reading.life)):
            found = found._replace(state="added to", why=why)
    except (OSError, TrialError):
        return found, []
    return found, [outputs_found(folder, reading.runs)] if with_outputs else []


def _document_folders(report: Path, trials: Path, files: list[File], asked: Asked) -> list[Path]:
    """Return the folders in which documents of evidence are looked for."""
    if asked.documents is not None:
        return [asked.documents]
    folders = []
    for tag in dict.fromkeys(file.trial for file in files if file.trial):
        try:
            folders.append(Path(TrialFolder(trials / tag).record().plan_file).parent)
        except TrialError:
            continue
    return list(dict.fromkeys([*folders, report.parent]))


def _document(file: File, folders: list[Path]) -> FileFound:
    places = [folder / file.document for folder in folders]
    path = next((each for each in places if each.is_file()), places[0])
    try:
        if not path.is_file():
            return FileFound(file, path, "not here")
        sha256, _ = sum_of(path, path.stat().st_size)
    except OSError:
        return FileFound(file, path, "cannot be read")
    return FileFound(file, path, "as it was" if sha256 == file.sha256 else "changed")
