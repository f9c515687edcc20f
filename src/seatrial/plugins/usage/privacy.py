"""Names of users, and jobs that are taken out of the archive and the store.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial.account import account
from seatrial.cli import Folders
from seatrial.cli.query_common import opened, tell
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.files import make_folder, open_descriptor, open_regular, open_to_write, read_regular
from seatrial.plugins.usage.archive import (
    FOLDER,
    PRIVATE_FILE,
    PRIVATE_FOLDER,
    Archive,
    Damaged,
    Reject,
    Segment,
    archives,
    changing,
)
from seatrial.plugins.usage.jobs import UNFINISHED, WORDS, UserJob
from seatrial.plugins.usage.settings import name_of_machine, settings_of
from seatrial.show.text import show_minute
from seatrial.units import SECOND_NS, count

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


# ---- removal -------------------------------------------------------------------------------------
#
# ``seatrial usage keep`` and ``forget``: jobs are taken out of the archive and the store.
#
# Segments that hold some are written anew without them. What was taken out, when and by whom stays
# in the archive's file ``audit``, with hashes in the place of names.


NOT_ALL = 3  # exit code: something could not be searched

Keeps = Callable[[Segment, UserJob], bool]
KeepsRow = Callable[[Segment, Reject], bool]


class Found(NamedTuple):
    """What is to be taken out."""

    #: Segments from which jobs or rows are taken: archives and names.
    segments: list[tuple[Archive, str]]
    #: Jobs, each once, and their core-seconds.
    jobs: int
    core_s: int
    #: Segments that could not be searched.
    faults: list[str]

    @property
    def words(self) -> str:
        machines = ", ".join(dict.fromkeys(archive.machine for archive, _ in self.segments))
        hours = f"{self.core_s / 3600:,.0f} core-hours"
        files = count(len(self.segments), "file")
        return f"{count(self.jobs, 'job')} ({hours}) of {machines}, in {files}"


def find(
    machines: Sequence[Archive], keeps: Keeps, keeps_row: KeepsRow, needles: Sequence[bytes] = ()
) -> Found:
    """Return what is to be taken out of archives. ``needles``: each line of a job that is not kept
    has one of them; none: any line may be one."""
    segments, faults = list[tuple[Archive, str]](), list[str]()
    core_s: dict[int, int] = {}  # by the hash of an attempt
    for archive in machines:
        for name in archive.names():
            try:
                about = archive.header(name)
                some = False
                for job in _candidates(archive, name, needles):
                    if not keeps(about, job):
                        some = True
                        key = (archive.machine, job.job, job.submitted, job.attempt)
                        core_s[hash(key)] = _core_seconds(job, about.asked // SECOND_NS)
                rows = sum(not keeps_row(about, row) for row in archive.rejects(name))
            except Damaged as error:
                faults.append(str(error))
                continue
            if some or rows:
                segments.append((archive, name))
    return Found(segments, len(core_s), sum(core_s.values()), faults)


def _candidates(archive: Archive, name: str, needles: Sequence[bytes]) -> Iterator[UserJob]:
    """Yield the jobs of a segment whose line has one of the needles."""
    decode = msgspec.json.Decoder(UserJob).decode
    for lines in archive.lines(name):
        for line in lines:
            if not needles or any(needle in line for needle in needles):
                yield decode(line)


def _core_seconds(job: UserJob, asked: int) -> int:
    """Return what a job used; of one that runs, until its record was asked for."""
    ended = asked if job.state in UNFINISHED else job.ended
    if job.started is None or ended is None:
        return 0
    return max(ended - job.started - job.suspended_s, 0) * job.cores


def take_out(folders: Folders, found: Found, keeps: Keeps, keeps_row: KeepsRow) -> None:
    """Write the segments anew without what is not kept, and bring the store up to date."""
    for archive, name in found.segments:
        about = archive.header(name)

        def keeps_job(job: UserJob, about: Segment = about) -> bool:
            return keeps(about, job)

        def keeps_reject(row: Reject, about: Segment = about) -> bool:
            return keeps_row(about, row)

        archive.rewrite(name, keeps_job, keeps_reject)
    with opened(folders):
        pass


def _told(found: Found) -> int:
    """Tell what could not be searched. Returns the exit code."""
    for fault in found.faults:
        tell(f"{fault}; it could not be searched: restore or remove it, and ask again")
    return NOT_ALL if found.faults else 0


# ---- seatrial usage forget -----------------------------------------------------------------------


def forget(folders: Folders, user: str, machine: str, again: bool, yes: bool) -> int:
    """Do ``seatrial usage forget``; return the exit code."""
    name = name_of_machine(machine) if machine else ""
    with changing(folders.trials):
        pseudonyms, audit = Pseudonyms(folders.trials), Audit(folders.trials)
        digest = pseudonyms.digest(user)
        if again:
            audit.add("remember", machine=name, user=digest)
            click.echo("imports bring in these jobs again from now on")
            return 0
        keeps, keeps_row = _without(user, pseudonyms.of(user))
        needles = [msgspec.json.encode(each) for each in (user, pseudonyms.of(user))]
        found = find(_archives(folders.trials, name), keeps, keeps_row, needles)
        code = _told(found)
        what = found.words if found.segments else "no job is there"
        click.echo(plain_line(f"{user}: {what}"))
        click.echo("They are removed for good, and imports leave them out from now on.")
        if not yes:
            click.confirm("Remove them?", abort=True)
        audit.add("forget", machine=name, user=digest, jobs=found.jobs, core_s=found.core_s)
        take_out(folders, found, keeps, keeps_row)
    click.echo(f"removed: {count(found.jobs, 'job')}; kept in {audit.file}, without the name")
    return code


def _without(user: str, hidden: str) -> tuple[Keeps, KeepsRow]:
    """Return what keeps jobs and rejected rows of all but a user."""
    names = (user, hidden)

    def keeps(_: Segment, job: UserJob) -> bool:
        return job.user not in names

    def keeps_row(_: Segment, reject: Reject) -> bool:
        return user not in reject.row and user not in reject.reason

    return keeps, keeps_row


# ---- seatrial usage keep -------------------------------------------------------------------------


def keep(folders: Folders, machine: str, span: float | None, yes: bool) -> int:
    """Do ``seatrial usage keep``; return the exit code."""
    code = 0
    with changing(folders.trials):
        for archive in _archives(folders.trials, name_of_machine(machine) if machine else ""):
            kept_s = span if span is not None else _kept_seconds(machine or archive.machine)
            if kept_s is None:
                if machine:
                    raise UsageError(
                        f"{machine}: no time is said; write `usage: {{keep: 730d}}` in its file, "
                        "or --for 730d"
                    )
                continue
            code = max(code, _keep(folders, archive, int(time.time() - kept_s), yes))
    return code


def _kept_seconds(machine: str) -> float | None:
    kept = settings_of(machine).keep
    return kept.seconds if kept else None


def _keep(folders: Folders, archive: Archive, before: int, yes: bool) -> int:
    """Remove the jobs of a machine that ended before a time (s). Returns the exit code."""

    def keeps(about: Segment, job: UserJob) -> bool:
        return (about.asked // SECOND_NS if job.ended is None else job.ended) >= before

    def keeps_row(about: Segment, _: Reject) -> bool:
        return about.until >= before

    found = find([archive], keeps, keeps_row)
    code = _told(found)
    until = f"ended before {show_minute(before * SECOND_NS)}"
    if not found.segments:
        click.echo(f"{archive.machine}: no job {until}")
        return code
    click.echo(f"{found.words}: they {until}")
    if not yes:
        click.confirm("Remove them?", abort=True)
    audit = Audit(folders.trials)
    audit.add("keep", machine=archive.machine, before=before, jobs=found.jobs, core_s=found.core_s)
    take_out(folders, found, keeps, keeps_row)
    click.echo(f"removed: {count(found.jobs, 'job')}")
    return code


def _archives(trials: Path, machine: str) -> list[Archive]:
    """Return the archives of a machine, or of all. Raises UsageError if there are none."""
    found = [each for each in archives(trials) if machine in ("", each.machine)]
    for archive in found:
        archive.tidy()
    if not any(archive.names() for archive in found):
        raise UsageError(f"{machine or trials}: no jobs were imported; nothing was done")
    return found
