"""Sign reports with OpenSSH, in a file of its own: ``report.html`` and ``report.html.sig``.

    sign(Path("report.html"), Path("~/.ssh/id_ed25519"))
    found = check(document, signature, signers=Path("allowed_signers"))
    found.good, found.who, found.why

Only ssh-keygen handles keys and passphrases. It gets absolute paths, so that none can be mistaken
for an option.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from seatrial.errors import TrialError, UsageError
from seatrial.verify.reading import plain_line

NAMESPACE: Final = "seatrial-report"
SIGN_SECONDS: Final = 300.0  # a person types a passphrase, or touches a token
CHECK_SECONDS: Final = 30.0
MAX_KEY_BYTES: Final = 1 << 16
MAX_SIGNATURE_BYTES: Final = 1 << 16
_ANYONE = "signer"
_ARMOUR = b"-----BEGIN SSH SIGNATURE-----"
_PUBLIC = re.compile(r"(?:sk-)?(?:ssh|ecdsa)-[a-z0-9@.-]+ [A-Za-z0-9+/=]+(?: [^\n]*)?")
_KEY = re.compile(r"\b[A-Z0-9-]+ key (SHA256:\S+)")


class Checked(NamedTuple):
    """Whether a signature fits its document, and who made it.

    ``who``: a name from the signers' file, "" if none was given. ``key``: a fingerprint. ``why``:
    the fault, or "".
    """

    good: bool
    who: str = ""
    key: str = ""
    why: str = ""


def signature_of(report: Path) -> Path:
    """Return the path of a report's signature."""
    return report.with_name(report.name + ".sig")


def sign(report: Path, key: Path) -> Path:
    """Sign a report with a private key, or a public one whose private part an agent holds.

    Returns the path of the signature. Raises UsageError, and TrialError without ssh-keygen.
    """
    require_key(key)
    target = signature_of(report)
    target.unlink(missing_ok=True)  # ssh-keygen would ask before overwriting it
    words = ["-Y", "sign", "-n", NAMESPACE, "-f", str(key.absolute()), str(report.absolute())]
    code, _, said = _ssh_keygen(words, signs=True)
    if code or not target.exists():
        raise UsageError(f"{key}: ssh-keygen did not sign {report}: {said or f'exit code {code}'}")
    return target


def require_key(key: Path) -> None:
    """Raise UsageError if there is no such key."""
    if not key.is_file():
        raise UsageError(f"{key}: there is no such key; `ssh-keygen -t ed25519` makes one")


def check(
    document: bytes, signature: Path, signers: Path | None = None, key: Path | None = None
) -> Checked:
    """Check the signature of a document.

    The signer must be in the ``allowed_signers`` file or have the public ``key``. Without either,
    only the signature is checked, by any key.
    """
    _require_small(signature, MAX_SIGNATURE_BYTES)
    sig = str(signature.absolute())
    if not signature.read_bytes().startswith(_ARMOUR):
        return Checked(False, why=f"{signature.name} is no signature of OpenSSH's")
    fits = _fits(document, sig)
    if not fits.good or (signers is None and key is None):
        return fits
    if signers is not None:
        if not signers.is_file():
            raise UsageError(f"{signers}: there is no such file of allowed signers")
        return _by_signers(document, sig, str(signers.absolute()), fits.key)
    assert key is not None
    with tempfile.TemporaryDirectory(prefix="seatrial-") as folder:
        allowed = Path(folder) / "allowed_signers"
        allowed.write_text(f'{_ANYONE} namespaces="{NAMESPACE}" {_public(key)}\n')
        return _by_signers(document, sig, str(allowed), fits.key)._replace(who="")


def _fits(document: bytes, signature: str) -> Checked:
    """Check that a signature fits the document, by any key."""
    words = ["-Y", "check-novalidate", "-n", NAMESPACE, "-s", signature]
    code, out, said = _ssh_keygen(words, document)
    return Checked(code == 0, "", _fingerprint(out), (said or out) if code else "")


def _by_signers(document: bytes, signature: str, signers: str, by: str) -> Checked:
    """Check that a signature is by one of the allowed signers; ``by``: its key's fingerprint."""
    code, out, _ = _ssh_keygen(["-Y", "find-principals", "-s", signature, "-f", signers])
    names = [name for name in out.splitlines() if name and not name.startswith("-")]
    if code or not names:
        return Checked(False, why=f"it is by the key {by}, which is not among those allowed")
    words = ["-Y", "verify", "-n", NAMESPACE, "-f", signers, "-I", names[0], "-s", signature]
    code, out, said = _ssh_keygen(words, document)
    return Checked(code == 0, names[0], _fingerprint(out), (said or out) if code else "")


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
