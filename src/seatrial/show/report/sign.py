"""Sign reports with OpenSSH, each signature in a file of its own: ``report.html.sig.NAME``.

    sign(Path("report.html"), Path("~/.ssh/id_ed25519"), "vendor")
    for name, path in signatures_of(Path("report.html")): ...
    found = check(document, path, signers=Path("allowed_signers"), names=["vendor"])
    found.state, found.names, found.reason

Only ssh-keygen handles keys and passphrases. It gets absolute paths, so that none can be mistaken
for an option.
"""

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from seatrial.errors import TrialError, UsageError
from seatrial.escaping import plain_line
from seatrial.execute.trial_folder import TrialFolder
from seatrial.files import open_regular
from seatrial.model.file_model import DAMAGED, decoder
from seatrial.show.report.outputs import (
    OutputsFound,
    appended,
    cleaned_since,
    outputs_found,
    read_journal,
)

NAMESPACE: Final = "seatrial-report"
SIGN_SECONDS: Final = 300.0  # a person types a passphrase, or touches a token
CHECK_SECONDS: Final = 30.0
MAX_KEY_BYTES: Final = 1 << 16
MAX_SIGNATURE_BYTES: Final = 1 << 16
MAX_SIGNERS_BYTES: Final = 1 << 20
MAX_PRINCIPALS: Final = 200  # of a file of allowed signers that are asked for
SignatureState = Literal["good", "unknown", "bad"]
_ANYONE = "signer"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")
_ARMOUR = b"-----BEGIN SSH SIGNATURE-----"
_PUBLIC = re.compile(r"(?:sk-)?(?:ssh|ecdsa)-[a-z0-9@.-]+ [A-Za-z0-9+/=]+(?: [^\n]*)?")
_KEY = re.compile(r"\b[A-Z0-9-]+ key (SHA256:\S+)")


class Checked(NamedTuple):
    """Whether a signature fits its document, and who made it.

    "good": by an allowed key, or by any if none was asked for. "unknown": it fits, and its key is
    not allowed. "bad": it does not fit. ``names``: those of the signers' file that the key may sign
    as, patterns among them. ``key``: a fingerprint. ``reason``: the fault, or "". ``path``: of the
    signature, where it was found beside a report.
    """

    state: SignatureState
    names: tuple[str, ...] = ()
    key: str = ""
    reason: str = ""
    path: Path = Path()


def signature_of(report: Path, name: str = "") -> Path:
    """Return the path of the signature of a report by somebody; ``name`` "": of version 0.1, and
    of `seatrial report --sign`. Raises UsageError for a name that cannot be the end of one."""
    if name and not _NAME.fullmatch(name):
        raise UsageError(
            f"--as {name!r}: a name is letters, digits and . _ @ + - (at most 100), as the "
            "signature is kept in a file of that name"
        )
    return report.with_name(f"{report.name}.sig{'.' if name else ''}{name}")


def signatures_of(report: Path) -> list[tuple[str, Path]]:
    """Return the signatures beside a report, with the names that they are kept by, sorted."""
    plain = signature_of(report)
    signatures = [("", plain)] if plain.exists() else []
    try:
        names = sorted(path.name for path in report.parent.iterdir())
    except OSError:
        return signatures
    begin = plain.name + "."
    for name in names:
        end = name.removeprefix(begin)
        if end != name and _NAME.fullmatch(end):
            signatures.append((end, report.with_name(name)))
    return signatures


def signatures_that_do_not_fit(report: Path) -> list[Path]:
    """Return the signatures beside a report that do not fit it, as it was changed since, or as they
    are none. Raises TrialError without ssh-keygen."""
    document = report.read_bytes()
    return [path for _, path in signatures_of(report) if check(document, path).state == "bad"]


def sign(report: Path, key: Path, name: str = "") -> Path:
    """Sign a report with a private key, or a public one whose private part an agent holds.

    Returns the path of the signature. A signature of the report as it is now is not replaced.
    Raises UsageError, and TrialError without ssh-keygen.
    """
    require_key(key)
    target = signature_of(report, name)
    try:
        document = report.read_bytes()
    except OSError as error:
        raise UsageError(f"{report}: cannot be read: {error.strerror}") from error
    if name and target.exists() and check(document, target).state == "good":
        raise UsageError(
            f"{target}: signs this report already; remove it, or sign with another --as NAME"
        )
    target.unlink(missing_ok=True)
    words = ["-Y", "sign", "-n", NAMESPACE, "-f", str(key.absolute())]
    code, out, message = _ssh_keygen(words, document, signs=True)  # from stdin to stdout
    if code or not out.startswith(_ARMOUR.decode()):
        raise UsageError(
            f"{key}: ssh-keygen did not sign {report}: {message or f'exit code {code}'}"
        )
    try:
        target.write_text(out + "\n")
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {error.strerror}") from error
    return target


def require_key(key: Path) -> None:
    """Raise UsageError if there is no such key."""
    if not key.is_file():
        raise UsageError(f"{key}: there is no such key; `ssh-keygen -t ed25519` makes one")


def check(
    document: bytes,
    signature: Path,
    signers: Path | None = None,
    key: Path | None = None,
    names: Sequence[str] = (),
) -> Checked:
    """Check the signature of a document.

    The signer must be in the ``allowed_signers`` file or have the public ``key``. Without either,
    only the signature is checked, by any key. ``names``: whether it may sign as one of these is
    asked first.
    """
    _require_small(signature, MAX_SIGNATURE_BYTES)
    sig = str(signature.absolute())
    if not signature.read_bytes().startswith(_ARMOUR):
        return Checked("bad", reason=f"{signature.name} is no signature of OpenSSH's")
    fits = _fits(document, sig)
    if fits.state != "good" or (signers is None and key is None):
        return fits
    if signers is not None:
        if not signers.is_file():
            raise UsageError(f"{signers}: there is no such file of allowed signers")
        _require_small(signers, MAX_SIGNERS_BYTES)
        return _by_signers(document, sig, signers.absolute(), fits.key, names)
    assert key is not None
    with tempfile.TemporaryDirectory(prefix="seatrial-") as folder:
        allowed = Path(folder) / "allowed_signers"
        allowed.write_text(f'{_ANYONE} namespaces="{NAMESPACE}" {_public(key)}\n')
        return _by_signers(document, sig, allowed, fits.key)._replace(names=())


def _fits(document: bytes, signature: str) -> Checked:
    """Check that a signature fits the document, by any key."""
    words = ["-Y", "check-novalidate", "-n", NAMESPACE, "-s", signature]
    code, out, message = _ssh_keygen(words, document)
    return Checked(
        "bad" if code else "good", (), _fingerprint(out), (message or out) if code else ""
    )


def _by_signers(
    document: bytes, signature: str, signers: Path, by: str, names: Sequence[str] = ()
) -> Checked:
    """Check whom of the allowed signers a signature is by, which fits the document; ``by``: its
    key's fingerprint. ssh-keygen names the principals of the first line with that key alone, and
    a line may be for another purpose, so every principal of the file is asked for."""
    words = ["-Y", "find-principals", "-s", signature, "-f", str(signers)]
    _, out, _ = _ssh_keygen(words)
    principals = dict.fromkeys([*names, *out.splitlines(), *_principals(signers)])
    signers_of, fault = [], ""
    for name in [each for each in principals if each and each[0] not in "-!"][:MAX_PRINCIPALS]:
        words = ["-Y", "verify", "-n", NAMESPACE, "-f", str(signers), "-I", name, "-s", signature]
        code, _, message = _ssh_keygen(words, document)
        if code == 0:
            signers_of.append(name)
        elif name in out.splitlines():
            fault = message
    if signers_of:
        return Checked("good", tuple(signers_of), by)
    reason = f"it is by the key {by}, which is not among those allowed"
    return Checked("unknown", (), by, f"{reason}: {fault}" if fault else reason)


def _principals(signers: Path) -> list[str]:
    """Return the principals of a file of allowed signers, patterns among them."""
    principals: list[str] = []
    for line in signers.read_text(errors="replace").splitlines():
        words = line.split(None, 1)
        if len(words) == 2 and not words[0].startswith("#"):
            principals += words[0].strip('"').split(",")
    return principals


def _public(key: Path) -> str:
    """Return the public key in a file, or beside a private one."""
    for path in (key, key.with_name(key.name + ".pub")):
        try:
            _require_small(path, MAX_KEY_BYTES)
            line = path.read_text(errors="replace").strip()
        except FileNotFoundError:
            continue
        if _PUBLIC.fullmatch(line):
            return " ".join(line.split()[:2])
    if not key.exists():
        raise UsageError(f"{key}: there is no such file; name the public key that counts")
    raise UsageError(f"{key}: is no public key; name the file that ends in .pub")


def _require_small(path: Path, max_bytes: int) -> None:
    if path.stat().st_size > max_bytes or not path.is_file():
        raise UsageError(f"{path}: is larger than any signature or key, or no file at all")


def _fingerprint(message: str) -> str:
    match = _KEY.search(message)
    return plain_line(match[1]) if match else ""


def _ssh_keygen(
    words: Sequence[str], document: bytes = b"", *, signs: bool = False
) -> tuple[int, str, str]:
    """Run ssh-keygen; return its exit code, its output, and the last line of its messages."""
    command, seconds = shutil.which("ssh-keygen"), SIGN_SECONDS if signs else CHECK_SECONDS
    if command is None:
        raise TrialError(
            "ssh-keygen is not on PATH: install OpenSSH's client, 8.2 or newer; or sign and check "
            f"elsewhere, with `ssh-keygen -Y sign -n {NAMESPACE} -f KEY REPORT`"
        )
    try:
        done = subprocess.run(
            [command, *words],
            input=document,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TrialError(
            f"ssh-keygen did not end in {seconds:g} s; was it waiting for a token?"
        ) from None
    except OSError as error:
        raise TrialError(f"{command}: cannot be started: {error.strerror}") from error
    out, message = (text.decode(errors="replace").strip() for text in (done.stdout, done.stderr))
    return done.returncode, out, plain_line(message.rpartition("\n")[2])


# ---- checksums -----------------------------------------------------------------------------------
#
# Checksums of the files that a report is based on: journals and records of trials, the notes of
# their folder, documents of evidence.
#
#     files = [file_of(folder, "journal.jsonl", end), ...]
#     block(files)                     # the text in a report, a line for each file
#     files_in(document)               # the files that a report names
#
# A journal only grows, and so do notes, so their checksum is that of the bytes that they had,
# which never change. The block tells the decision, too, so that whoever signs the report signs it.


PLACE: Final = "checksums"  # id of the block in HTML, language of the block in Markdown
NAMES: Final = ("trial.json", "cases.jsonl", "journal.jsonl")
MAX_FILES: Final = 10_000
_AT_ONCE = 1 << 20
NOTES: Final = "notes.jsonl"
_DOCUMENT: Final = "document "
_LINE = re.compile(
    r"([0-9a-f]{64}) +(\d{1,15}) +(?:"
    rf"([A-Za-z0-9][A-Za-z0-9._+-]{{0,99}})/({'|'.join(map(re.escape, NAMES))})"
    rf"|({re.escape(NOTES)}|{_DOCUMENT}\S.{{0,1000}}))"
)
_DECISION = "decision: "
_NO_REPORT = "it names no checksums of journals: it is no report of Seatrial's, or cut"
_FENCED = re.compile(rf"^```{PLACE}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class File(Struct, frozen=True, kw_only=True):
    """The first ``bytes`` bytes of a file of a trial; ``trial`` is "" for the notes of the trials'
    folder, and for a document of evidence, whose name begins with "document ".

    ``events`` and ``damaged``: the events and the invalid lines of a journal.
    """

    trial: str
    name: str
    sha256: str
    bytes: int
    events: int | None = None
    damaged: int = 0

    @property
    def shown(self) -> str:
        return f"{self.trial}/{self.name}" if self.trial else self.name

    @property
    def document(self) -> str:
        """The path of a document of evidence, as its plan has it; "" for any other file."""
        return self.name.removeprefix(_DOCUMENT) if self.name.startswith(_DOCUMENT) else ""


def document_of(path: str, sha256: str, size: int) -> File:
    """Return a document of evidence, with the checksum that its plan has."""
    return File(trial="", name=_DOCUMENT + plain_line(path), sha256=sha256.lower(), bytes=size)


def digest(data: bytes) -> str:
    """Return the SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def sum_of(path: Path, size: int) -> tuple[str, int]:
    """Return the checksum of the first ``size`` bytes of a file, and how many it has of them.

    Raises OSError.
    """
    summed = hashlib.sha256()
    remaining = size
    with open_regular(path) as file:
        while remaining > 0 and (data := file.read(min(remaining, _AT_ONCE))):
            summed.update(data)
            remaining -= len(data)
    return summed.hexdigest(), size - remaining


def file_of(
    folder: TrialFolder,
    name: str,
    size: int | None = None,
    events: int | None = None,
    damaged: int = 0,
) -> File:
    """Return a file of a trial, or its first ``size`` bytes. Raises TrialError."""
    path = folder.path / name
    try:
        sha256, read_bytes = sum_of(path, path.stat().st_size if size is None else size)
    except OSError as error:
        raise TrialError(f"{path}: cannot be read: {error.strerror}") from error
    return File(
        trial=folder.tag, name=name, sha256=sha256, bytes=read_bytes, events=events, damaged=damaged
    )


# ---- in documents -------------------------------------------------------------------------


def block(files: Iterable[File], decision: str = "") -> str:
    """Return a line for each file: checksum, bytes, name; then the decision, if there is one."""
    lines = [f"{each.sha256}  {each.bytes:>12}  {each.shown}\n" for each in files]
    return "".join([*lines, f"{_DECISION}{decision}\n" if decision else ""])


def files_in(document: bytes) -> list[File]:
    """Return the files that a report names, in any of its formats.

    Raises UsageError for a document that is no report.
    """
    return based_on(document)[0]


def based_on(document: bytes) -> tuple[list[File], str]:
    """Return the files that a report names, and the decision in it, "" if there is none.

    Raises UsageError for a document that is no report.
    """
    text = document.decode("utf-8", errors="replace")
    if text.lstrip().startswith("{"):
        return _in_json(document)
    if text.lstrip()[:9].lower() == "<!doctype":  # a fence in HTML is text that somebody wrote
        reader = _Reader()
        reader.feed(text)
        return _in_lines("".join(reader.kept))
    blocks = _FENCED.findall(text)
    return _in_lines(blocks[-1] if blocks else "")  # the last: text by people stands before it


def _in_lines(text: str) -> tuple[list[File], str]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    decision = ""
    if lines and lines[-1].startswith(_DECISION):
        decision = lines.pop().removeprefix(_DECISION)
    files = [_in_line(line) for line in lines[: MAX_FILES + 1]]
    if not 0 < len(files) <= MAX_FILES:
        raise UsageError(_NO_REPORT)
    return files, decision


def _in_line(line: str) -> File:
    match = _LINE.fullmatch(line)
    if match is None:
        raise UsageError(_NO_REPORT)
    sha256, size, trial, name, beside = match.groups()
    return File(sha256=sha256, bytes=int(size), trial=trial or "", name=name or beside)


class _Files(Struct):
    files: list[File]
    decision: str = ""


def _in_json(document: bytes) -> tuple[list[File], str]:
    try:
        report = decoder(_Files).decode(document)
    except DAMAGED as error:
        raise UsageError(f"it is no report of Seatrial's: {error}") from error
    return _in_lines(block(report.files, plain_line(report.decision)))


class _Reader(HTMLParser):
    """A parser that keeps the text of the element with the id of the block."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.kept: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag == "pre" and ("id", PLACE) in attrs

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.kept.append(data)


# ---- verify --------------------------------------------------------------------------------------
#
# Verify that a report is unchanged since it was signed, and so is what it is based on.
#
#     verified = verify(Path("report.html"), Path("trials"), Asked(signers=Path("allowed_signers")))
#     for each in verified.signatures: each.state    # "good", "unknown" or "bad"
#     for each in verified.files: each.state                 # "as it was", "changed", ...
#     verified.code                                          # 0, 1 or 3


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


class FileFound(NamedTuple):
    """A file that a report is based on, and its state; ``more``: bytes added since; ``reason``:
    what speaks against them."""

    file: File
    path: Path
    state: FileState
    more: int = 0
    reason: str = ""


class Verified(Struct, frozen=True):
    """The result of a verification."""

    report: Path
    sha256: str
    decision: str
    asked: Asked
    signatures: list[Checked]
    files: list[FileFound]
    outputs: list[OutputsFound]

    @property
    def good(self) -> list[Checked]:
        return [one for one in self.signatures if one.state == "good"]

    @property
    def missing(self) -> list[str]:
        """Return the names that must have signed and did not, each by a key of its own: whoever
        asks for two names asks for two signers, whatever names the file allows to one key."""
        keys = {
            name: [one.key for one in self.good if name in one.names] for name in self.asked.names
        }
        signed = distinct(keys)
        return [name for name in self.asked.names if name not in signed]

    @property
    def shared(self) -> list[str]:
        """Return the missing names for which a key has signed that another name needs."""
        signed = {name for one in self.good for name in one.names}
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
        states = {one.state for one in self.signatures}
        if "bad" in states or self.unsigned or self.missing or self.tampered:
            return 1
        known = states and self.asked.by_key
        unread = {each.state for each in self.files}.intersection(_UNKNOWN)
        unlike = any(each.others for each in self.outputs)
        return 3 if not known or unread or self.without_outputs or unlike else 0


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
        check(document, path, asked.signers, asked.key, [*asked.names, name])._replace(path=path)
        for name, path in signatures_of(report)
    ]
    places = _document_folders(report, trials, files, asked)
    states, outputs = [], []
    for each in files:
        if each.document:
            states.append(_document(each, places))
        elif each.name == "journal.jsonl":
            one, wrote = _journal(each, trials, asked.outputs)
            states.append(one)
            outputs += wrote
        else:
            states.append(_found(each, trials))
    return Verified(report, digest(document), decision, asked, signatures, states, outputs)


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
        sha256, read_bytes = sum_of(path, file.bytes)
    except OSError:
        return FileFound(file, path, "cannot be read")
    if read_bytes < file.bytes or sha256 != file.sha256:
        return FileFound(file, path, "changed")
    if size == file.bytes:
        return FileFound(file, path, "as it was")
    if file.name in ("journal.jsonl", NOTES):
        return FileFound(file, path, "went on since", size - file.bytes)
    return FileFound(file, path, "changed")  # it is written once


def _journal(file: File, trials: Path, with_outputs: bool) -> tuple[FileFound, list[OutputsFound]]:
    """Return the state of a journal, and of what the runs wrote by it."""
    state = _found(file, trials)
    if state.state not in ("as it was", "went on since"):
        return state, []
    folder = TrialFolder(trials / file.trial)
    try:
        record, trial = folder.record(), read_journal(state.path, file.bytes)
        since = cleaned_since(state.path, file.bytes)
        if state.more and (reason := appended(state.path, file.bytes, trial)):
            state = state._replace(state="added to", reason=reason)
    except (OSError, TrialError):
        return state, []
    return state, [outputs_found(folder, record, trial, since)] if with_outputs else []


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
