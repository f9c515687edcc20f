"""Names of users: what stands for them, and which of them were forgotten.

    trials/.usage/key         # of the hashes; made once, mode 0600
    trials/.usage/audit       # who took out what and when, as JSON lines; users as keyed hashes

Whoever has the key can tell whether a hash is of a name that he guesses, and nobody else can.
"""

from __future__ import annotations

import functools
import hmac
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial.account import account
from seatrial.errors import UsageError
from seatrial.files import make_folder, open_descriptor, open_regular, open_to_write, read_regular
from seatrial.plugins.usage.archive import FOLDER, PRIVATE_FILE, PRIVATE_FOLDER, Archive
from seatrial.plugins.usage.jobs import WORDS, UserJob

KEY_BYTES = 32
SHORTEST_PART = 3  # letters of a name that is looked for within other words
_HOME = re.compile(r"/(?:home|users?|u|scratch\w*)/[^\s/=:,;'\"]+", re.IGNORECASE)
_PATH = re.compile(r"(?:[^\s/=:,;'\"]*/)+")
_REDACTED = tuple(name for name in WORDS if name not in ("machine", "job", "state", "user"))


# ---- hashes --------------------------------------------------------------------------------------


class Pseudonyms:
    """What stands for the names of users: keyed hashes."""

    def __init__(self, trials: Path) -> None:
        self._file = trials / FOLDER / "key"
        self.of = functools.lru_cache(maxsize=100_000)(self._of)

    @property
    def exist(self) -> bool:
        """Whether there is a key."""
        return self._file.exists()

    def require_known(self, archive: Archive) -> None:
        """Raise UsageError where the key is missing, and jobs of a machine were imported with
        it."""
        if not self.exist and any(about.anonymous for about in archive.headers().values()):
            raise UsageError(
                f"{self._file}: is missing, and jobs of {archive.machine} were imported with it; "
                "put it back: by another key users would be others"
            )

    @functools.cached_property
    def _key(self) -> bytes:
        """The key, made where there is none. Raises UsageError."""
        make_folder(self._file.parent, PRIVATE_FOLDER)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with os.fdopen(open_descriptor(self._file, flags, 0o600), "wb") as file:
                file.write(secrets.token_hex(KEY_BYTES).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError:
            pass
        try:
            key = read_regular(self._file, 1024).strip()
        except OSError as error:
            raise UsageError(
                f"{self._file}: cannot be read: {error.strerror}; its owner imports, or lets you"
                " read it"
            ) from error
        if len(key) != 2 * KEY_BYTES:
            raise UsageError(f"{self._file}: is damaged; put the key back as it was")
        return key

    def digest(self, user: str) -> str:
        """Return the whole hash of a name. Raises UsageError without a key that can be read."""
        return hmac.new(self._key, user.encode("utf-8", "replace"), "sha256").hexdigest()

    def _of(self, user: str) -> str:
        """Return what stands for a user; "" for nobody."""
        return f"u{self.digest(user)[:12]}" if user else ""


def anonymous(jobs: Iterable[UserJob], pseudonyms: Pseudonyms) -> Iterator[UserJob]:
    """Yield jobs without names of users. Of words that may hold a path, such as one in a home
    directory, the last part is kept; the user's own name is replaced wherever it stands. Accounts
    stay: fields of science and charges go by them."""
    redacted = functools.lru_cache(maxsize=200_000)(_redacted)
    for job in jobs:
        hidden = pseudonyms.of(job.user)
        words = {
            name: redacted(word, job.user, hidden)
            for name in _REDACTED
            if (word := getattr(job, name))
        }
        yield replace(job, user=hidden, **words)


def _redacted(word: str, user: str, hidden: str) -> str:
    """Return a word without folders, and without a user's name."""
    word = _PATH.sub("", _HOME.sub("~", word))
    if not user:
        return word
    name = re.escape(user)
    if len(user) < SHORTEST_PART:
        name = rf"(?<![^\W_]){name}(?![^\W_])"
    return re.sub(name, lambda _: hidden, word, flags=re.IGNORECASE)


# ---- what was taken out --------------------------------------------------------------------------


class Removal(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Jobs that were taken out of the archive. Names of users are hashes."""

    #: forget, remember (imports may bring them again), or keep (their time is over).
    act: str
    #: When, in ns, and by whom.
    time: int
    by: str
    #: "": all machines.
    machine: str = ""
    #: The hash of the user.
    user: str = ""
    #: Jobs that ended before then were taken out, in s.
    before: int = 0
    jobs: int = 0
    core_s: int = 0


class Audit:
    """The file of what was taken out."""

    def __init__(self, trials: Path) -> None:
        self.file = trials / FOLDER / "audit"

    def add(self, act: str, **about: object) -> None:
        """Add a line, which is on the disk when this returns. Raises OSError."""
        line = Removal(act=act, time=time.time_ns(), by=account(), **about)  # type: ignore[arg-type]
        make_folder(self.file.parent, PRIVATE_FOLDER)
        with open_to_write(self.file, append=True, mode=PRIVATE_FILE) as file:
            file.write(msgspec.json.encode(line) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def read(self) -> list[Removal]:
        """Return what was taken out. Raises UsageError where the file is damaged: nobody knows then
        whose jobs must not come again."""
        try:
            with open_regular(self.file) as file:
                return [msgspec.json.decode(line, type=Removal) for line in file]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UsageError(f"{self.file}: cannot be read: {error.strerror}") from error
        except msgspec.MsgspecError as error:
            raise UsageError(
                f"{self.file}: is damaged ({error}): who was forgotten is not known; put it back, "
                "or remove the line at fault"
            ) from error

    def forgotten(self, machine: str, pseudonyms: Pseudonyms) -> Callable[[str], bool] | None:
        """Return what tells whether a user of a machine, by name or hash, was forgotten; None if
        nobody was. Raises UsageError where the key of their hashes is missing."""
        digests: set[str] = set()
        for line in self.read():
            if line.machine in ("", machine) and line.act == "forget":
                digests.add(line.user)
            elif line.machine in ("", machine) and line.act == "remember":
                digests.discard(line.user)
        if not digests:
            return None
        if not pseudonyms.exist:
            raise UsageError(
                f"{self.file.parent}/key: is missing, and users were forgotten, whom only it tells;"
                " put it back"
            )
        hidden = {f"u{digest[:12]}" for digest in digests}
        return lambda user: user in hidden or pseudonyms.of(user) in hidden
