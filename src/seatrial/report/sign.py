"""Sign reports with OpenSSH, each signature in a file of its own: ``report.html.sig.NAME``.

    sign(Path("report.html"), Path("~/.ssh/id_ed25519"), "vendor")
    for name, path in signatures_of(Path("report.html")): ...
    found = check(document, path, signers=Path("allowed_signers"), names=["vendor"])
    found.state, found.names, found.why

Only ssh-keygen handles keys and passphrases. It gets absolute paths, so that none can be mistaken
for an option.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from seatrial.errors import TrialError, UsageError
from seatrial.lazy import regex
from seatrial.verify.reading import plain_line

NAMESPACE: Final = "seatrial-report"
SIGN_SECONDS: Final = 300.0  # a person types a passphrase, or touches a token
CHECK_SECONDS: Final = 30.0
MAX_KEY_BYTES: Final = 1 << 16
MAX_SIGNATURE_BYTES: Final = 1 << 16
MAX_SIGNERS_BYTES: Final = 1 << 20
MAX_PRINCIPALS: Final = 200  # of a file of allowed signers that are asked for
SignatureState = Literal["good", "unknown", "bad"]
_ANYONE = "signer"
_NAME = regex(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")
_ARMOUR = b"-----BEGIN SSH SIGNATURE-----"
_PUBLIC = regex(r"(?:sk-)?(?:ssh|ecdsa)-[a-z0-9@.-]+ [A-Za-z0-9+/=]+(?: [^\n]*)?")
_KEY = regex(r"\b[A-Z0-9-]+ key (SHA256:\S+)")


class Checked(NamedTuple):
    """Whether a signature fits its document, and who made it.

    "good": by an allowed key, or by any if none was asked for. "unknown": it fits, and its key is
    not allowed. "bad": it does not fit. ``names``: those of the signers' file that the key may sign
    as, patterns among them. ``key``: a fingerprint. ``why``: the fault, or "".
    """

    state: SignatureState
    names: tuple[str, ...] = ()
    key: str = ""
    why: str = ""


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
    found = [("", plain)] if plain.exists() else []
    try:
        names = sorted(path.name for path in report.parent.iterdir())
    except OSError:
        return found
    begin = plain.name + "."
    for name in names:
        end = name.removeprefix(begin)
        if end != name and _NAME.fullmatch(end):
            found.append((end, report.with_name(name)))
    return found


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
    code, out, said = _ssh_keygen(words, document, signs=True)  # from stdin to stdout
    if code or not out.startswith(_ARMOUR.decode()):
        raise UsageError(f"{key}: ssh-keygen did not sign {report}: {said or f'exit code {code}'}")
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
        return Checked("bad", why=f"{signature.name} is no signature of OpenSSH's")
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
    code, out, said = _ssh_keygen(words, document)
    return Checked("bad" if code else "good", (), _fingerprint(out), (said or out) if code else "")


def _by_signers(
    document: bytes, signature: str, signers: Path, by: str, names: Sequence[str] = ()
) -> Checked:
    """Check whom of the allowed signers a signature is by, which fits the document; ``by``: its
    key's fingerprint. ssh-keygen names the principals of the first line with that key alone, and
    a line may be for another purpose, so every principal of the file is asked for."""
    words = ["-Y", "find-principals", "-s", signature, "-f", str(signers)]
    _, out, _ = _ssh_keygen(words)
    asked = dict.fromkeys([*names, *out.splitlines(), *_principals(signers)])
    found, why = [], ""
    for name in [each for each in asked if each and each[0] not in "-!"][:MAX_PRINCIPALS]:
        words = ["-Y", "verify", "-n", NAMESPACE, "-f", str(signers), "-I", name, "-s", signature]
        code, _, said = _ssh_keygen(words, document)
        if code == 0:
            found.append(name)
        elif name in out.splitlines():
            why = said
    if found:
        return Checked("good", tuple(found), by)
    reason = f"it is by the key {by}, which is not among those allowed"
    return Checked("unknown", (), by, f"{reason}: {why}" if why else reason)


def _principals(signers: Path) -> list[str]:
    """Return the principals of a file of allowed signers, patterns among them."""
    found: list[str] = []
    for line in signers.read_text(errors="replace").splitlines():
        words = line.split(None, 1)
        if len(words) == 2 and not words[0].startswith("#"):
            found += words[0].strip('"').split(",")
    return found


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


def _require_small(path: Path, most: int) -> None:
    if path.stat().st_size > most or not path.is_file():
        raise UsageError(f"{path}: is larger than any signature or key, or no file at all")


def _fingerprint(said: str) -> str:
    found = _KEY.search(said)
    return plain_line(found[1]) if found else ""


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
    out, said = (text.decode(errors="replace").strip() for text in (done.stdout, done.stderr))
    return done.returncode, out, plain_line(said.rpartition("\n")[2])
