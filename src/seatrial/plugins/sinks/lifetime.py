"""How far each sink of a trial has got, how far it is behind, and why.

    for each in sink_lags(trials / tag):
        each.name, each.behind.events, each.behind.seconds, each.error

The report is made of the cursors and the journal's end, so it is right even if the delivering
process has died.
"""

import contextlib
import fcntl
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO
from urllib.parse import SplitResult

import msgspec
from msgspec import Meta, Struct

from seatrial.account import at_home
from seatrial.errors import SeatrialError, TrialError, UsageError
from seatrial.execute.trial_folder import TrialFolder
from seatrial.files import make_folder, open_descriptor, open_regular, remove_file, write_durably
from seatrial.journal.encoding import decode_lines
from seatrial.journal.journal import fingerprint
from seatrial.model.file_model import DAMAGED, decoder
from seatrial.plugins.sinks.keys import Sink
from seatrial.results.store.queries import owned
from seatrial.units import SECOND_NS

# ---- cursor --------------------------------------------------------------------------------------
#
# Store how far a sink has got in a trial's journal: ``trials/TAG/sinks/NAME.json``.
#
#     cursor = load_cursor(folder, "site")        # a new one begins at the journal's beginning
#     cursor.offset = block.end
#     save_cursor(folder, cursor)                 # atomic
#
# A cursor is saved after the server has answered, so everything before it was delivered. It also
# holds what people are shown: how far behind the sink is, and why.


MAX_CURSOR_BYTES = 1 << 20

Count = Annotated[int, Meta(ge=0)]


class Behind(Struct, frozen=True):
    """What was not sent yet: bytes of the journal, events, and how long the first has waited. The
    number of events is estimated if there are many."""

    bytes: int = 0
    events: int = 0
    seconds: float = 0.0


class Cursor(Struct, kw_only=True):
    """The position of one sink in one journal."""

    sink: str
    kind: str = ""
    #: Where it sends, as people may see it.
    to: str = ""
    #: The end of what was sent, and a checksum of what lies before it.
    offset: Count = 0
    fingerprint: int = 0
    #: Events so far; of these, those that the server refused; lines that are no events.
    read: Count = 0
    refused: Count = 0
    damaged: Count = 0
    #: Why the delivery is stuck, "" if it is not; since when (ns); the attempts that failed.
    error: str = ""
    since: int = 0
    tries: int = 0
    #: The latest message about something that does not stop the delivery.
    told: str = ""
    #: When the server answered last (ns).
    answered: int = 0
    behind: Behind = Behind()


def folder_of(folder: TrialFolder) -> Path:
    """Return the folder of a trial's cursors, and of the lock of the process that moves them."""
    return folder.path / "sinks"


def load_cursor(folder: TrialFolder, sink: str) -> Cursor:
    """Return the cursor of a sink, or a new one if there is none that can be read. Sending events a
    second time is harmless."""
    cursor = read_cursor(folder_of(folder) / f"{sink}.json") or Cursor(sink=sink)
    cursor.sink = sink  # the file may name another
    return cursor


def read_cursor(path: Path) -> Cursor | None:
    """Return the cursor in a file, or None if there is none that can be read."""
    try:
        with open_regular(path) as file:
            return decoder(Cursor).decode(file.read(MAX_CURSOR_BYTES))
    except (OSError, *DAMAGED):
        return None


def save_cursor(folder: TrialFolder, cursor: Cursor) -> None:
    """Write a cursor atomically. Raises OSError."""
    place = folder_of(folder)
    make_folder(place)
    part = place / f".{cursor.sink}.part"
    try:
        write_durably(part, msgspec.json.format(msgspec.json.encode(cursor)) + b"\n")
        part.replace(place / f"{cursor.sink}.json")
    except OSError:
        remove_file(part, missing_ok=True)
        raise


def forget_cursor(folder: TrialFolder, sink: str) -> None:
    """Delete a cursor: its sink begins at the journal's beginning again. Raises OSError."""
    remove_file(folder_of(folder) / f"{sink}.json", missing_ok=True)


def goes_on(journal: BinaryIO, cursor: Cursor) -> bool:
    """Return whether the journal begins with what was sent according to the cursor."""
    size = os.fstat(journal.fileno()).st_size
    return size >= cursor.offset and fingerprint(journal, cursor.offset) == cursor.fingerprint


# ---- how far it is behind ------------------------------------------------------------------------


LOOK_AT = 4 << 20  # unsent bytes in which events are counted; beyond, their number is estimated
MAX_SINKS = 100


class SinkLag(Struct, frozen=True, kw_only=True):
    """One sink of a trial: what its cursor says, and how far behind it is now."""

    name: str
    kind: str
    to: str
    #: Events so far.
    sent: int
    refused: int
    damaged: int
    behind: Behind
    error: str
    since: int
    tries: int
    told: str
    answered: int
    #: Whether a process delivers now.
    working: bool


def sink_lags(trial: Path | TrialFolder) -> list[SinkLag]:
    """Return the sinks of a trial to which something was sent or tried, ordered by name."""
    folder = trial if isinstance(trial, TrialFolder) else TrialFolder(trial)
    try:
        files = sorted(folder_of(folder).glob("[!.]*.json"))[:MAX_SINKS]
    except OSError:
        return []
    cursors = [cursor for file in files if (cursor := read_cursor(file)) is not None]
    working = bool(cursors) and holder(folder) != ""
    return [_lag(folder, cursor, working) for cursor in cursors]


def _lag(folder: TrialFolder, cursor: Cursor, working: bool) -> SinkLag:
    return SinkLag(
        name=cursor.sink,
        kind=cursor.kind,
        to=cursor.to,
        sent=cursor.read,
        refused=cursor.refused,
        damaged=cursor.damaged,
        behind=behind(folder, cursor),
        error=cursor.error,
        since=cursor.since,
        tries=cursor.tries,
        told=cursor.told,
        answered=cursor.answered,
        working=working,
    )


def behind(folder: TrialFolder, cursor: Cursor) -> Behind:
    """Return what of the journal was not sent yet; only complete lines count."""
    try:
        with open_regular(folder.journal) as journal:
            size = os.fstat(journal.fileno()).st_size
            journal.seek(min(cursor.offset, size))
            ahead = journal.read(LOOK_AT)
    except OSError:
        return Behind()
    whole = ahead[: ahead.rfind(b"\n") + 1]
    if not whole:
        return Behind()
    rest = max(0, size - cursor.offset)
    lines = whole.count(b"\n")
    if rest > len(ahead):
        lines = round(lines * rest / len(whole))
    else:
        rest = len(whole)
    return Behind(rest, lines, _waiting(whole))


def _waiting(lines: bytes) -> float:
    """Return the seconds since the first event, by the clocks of the driver and of this host."""
    events, _ = decode_lines(lines.split(b"\n", 20)[:20])
    return max(0.0, (time.time_ns() - events[0].time) / SECOND_NS) if events else 0.0


# ---- lifetime ------------------------------------------------------------------------------------
#
# Decide how long a delivery goes on, and how long it retries.
#
#     lifetime = SinkLifetime(folder, follow=True)
#     while not lifetime.is_over(): lifetime.wait(2)


@dataclass
class SinkLifetime:
    """How long the deliveries of a trial go on. ``follow``: go on while the trial is driven;
    otherwise to the end of the journal. ``patience``: seconds for which a failing sink is retried,
    instead of each sink's own."""

    folder: TrialFolder
    follow: bool = False
    patience: float | None = None

    def __post_init__(self) -> None:
        self._stopped = threading.Event()
        self._over = 0.0  # when the drive ended, by the monotonic clock

    def is_over(self) -> bool:
        """Return whether the journal will not grow any more."""
        if self._stopped.is_set() or not self.follow:
            return True
        if owned(str(self.folder.path)):
            self._over = 0.0
            return False
        self._over = self._over or time.monotonic()
        return True

    def bears(self, failing: float, patience: float, pause: float) -> bool:
        """Return whether a sink is retried after a pause of so many seconds. It is while the trial
        is driven, and for ``patience`` seconds afterwards. ``failing``: when it began to fail, by
        the monotonic clock."""
        if self._stopped.is_set():
            return False
        if not self.is_over():
            return True
        limit = patience if self.patience is None else self.patience
        return time.monotonic() + pause - max(failing, self._over) <= limit

    def wait(self, pause: float) -> None:
        """Wait for so many seconds, or until ``stop`` is called."""
        self._stopped.wait(pause)

    def stop(self) -> None:
        """End every delivery as soon as possible."""
        self._stopped.set()


# ---- lock ----------------------------------------------------------------------------------------
#
# Lock the delivery of a trial's events for one process: ``trials/TAG/sinks/lock``.
#
#     with held(folder): ...   # raises DeliveryLocked if another process has it
#     holder(folder)           # "process 123 on login1", or ""


WAIT_S = 0.5
STOP_S = 10.0

_OWNER = re.compile(r"process ([1-9]\d{0,9}) on (\S+)")


class DeliveryLocked(SeatrialError):
    """Another process delivers this trial's events."""


@contextlib.contextmanager
def held(folder: TrialFolder, wait_s: float = WAIT_S) -> Iterator[None]:
    """Hold the lock of a trial, after waiting for ``wait_s`` seconds at most: one that only looks
    holds it for an instant. Raises DeliveryLocked, and TrialError if it cannot be locked."""
    path = folder_of(folder) / "lock"
    try:
        make_folder(path.parent)
        descriptor = open_descriptor(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise TrialError(f"{path}: cannot be opened: {error.strerror}") from error
    try:
        try:
            if not locked_within(descriptor, wait_s):
                owner = _name_in(descriptor) or "another process"
                raise DeliveryLocked(
                    f"{folder.tag}: its events are being delivered by {owner}; "
                    f"`seatrial sink {folder.tag} --stop` ends it"
                )
        except OSError as error:
            raise TrialError(f"{path}: cannot be locked: {error.strerror}") from error
        with contextlib.suppress(OSError):  # on a full disk the lock holds all the same
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {os.uname().nodename}".encode(), 0)
        yield
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def locked_within(descriptor: int, wait_s: float) -> bool:
    """Lock an open file; return False if another process holds it for so many seconds."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)


def holder(folder: TrialFolder) -> str:
    """Return who delivers a trial's events now, or "". Takes a shared lock for an instant."""
    try:
        descriptor = open_descriptor(folder_of(folder) / "lock", os.O_RDONLY)
    except OSError:
        return ""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _name_in(descriptor) or "another process"
    finally:
        os.close(descriptor)
    return ""


def stop(folder: TrialFolder) -> str:
    """End the process that delivers a trial's events, and wait for its end. Events that were not
    delivered stay in the journal. Returns who the process was, or "" if there was none. Raises
    TrialError for one that cannot be ended from here."""
    who = holder(folder)
    if not who:
        return ""
    words = _OWNER.fullmatch(who)
    if words is None or words[2] != os.uname().nodename:
        raise TrialError(f"{folder.tag}: its events are delivered by {who}; end it there")
    number = int(words[1])
    try:
        if b"seatrial" not in Path(f"/proc/{number}/cmdline").read_bytes():
            raise TrialError(f"{folder.tag}: {who} is no process of Seatrial; it was left alone")
        os.kill(number, signal.SIGTERM)
    except OSError as error:
        if holder(folder):
            raise TrialError(f"{folder.tag}: {who} cannot be ended: {error.strerror}") from error
    deadline = time.monotonic() + STOP_S
    while holder(folder):
        if time.monotonic() > deadline:
            raise TrialError(f"{folder.tag}: {who} has not ended in {STOP_S:g} s; kill it")
        time.sleep(0.02)
    return who


def _name_in(descriptor: int) -> str:
    return os.pread(descriptor, 200, 0).decode(errors="replace").strip()


# ---- secrets -------------------------------------------------------------------------------------
#
# Read secrets from ``env:NAME`` or ``file:PATH`` when they are used; they are never shown.


MAX_SECRET_BYTES = 65536
SECRET_PLACES = ("env:", "file:")  # what is written in place of a secret begins so


class BadEnvironment(UsageError):
    """A secret is missing in the environment; that of a process never changes."""


def secret_of(place: str, what: str) -> str:
    """Return the secret at a place, without surrounding blanks. Raises UsageError, BadEnvironment
    among them; no message shows a secret."""
    kind, _, name = place.partition(":")
    if kind == "env":
        text, fault = os.environ.get(name, ""), f"the environment variable {name} is not set"
    else:
        path = at_home(name)
        fault = f"{path} is empty"
        try:
            with open_regular(path) as file:
                readers = _other_readers(os.fstat(file.fileno()))
                text = file.read(MAX_SECRET_BYTES).decode("utf-8", "replace")
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"{what}: {path} cannot be read: {reason}") from error
        if readers:
            raise UsageError(f"{what}: {readers} may read {path}; chmod 600 {path}")
    text = text.strip()
    if not text.isprintable():
        fault = "it holds line ends or control characters; write it in one line"
    elif text:
        return text
    raise (BadEnvironment if kind == "env" else UsageError)(f"{what}: {fault}")


def token_of(sink: Sink) -> str:
    """Return the token of a sink, "" if it has none. Raises UsageError."""
    return secret_of(sink.token, f"the token of the sink {sink.name}") if sink.token else ""


def shown_url(url: SplitResult) -> str:
    """Return as much of a URL as may be shown: its path and its user may be secrets."""
    host = url.hostname or ""
    port = f":{url.port}" if url.port else ""
    return f"{url.scheme}://[{host}]{port}" if ":" in host else f"{url.scheme}://{host}{port}"


def url_of(sink: Sink) -> str:
    """Return the URL of a sink, which may be a secret itself. Raises UsageError."""
    if sink.url.startswith(SECRET_PLACES):
        return secret_of(sink.url, f"the URL of the sink {sink.name}")
    return sink.url


def _other_readers(status: os.stat_result) -> str:
    """Return who else may read a file, "" for nobody. A file of another owner, such as root's, may
    be ours by its group."""
    if status.st_mode & 0o007:
        return "everybody"
    return "its group" if status.st_mode & 0o070 and status.st_uid == os.geteuid() else ""


def missing(sink: Sink) -> str:
    """Return which secret of a sink our environment lacks, or "". Files are not read, as that may
    take long."""
    for place, what in ((sink.token, "token"), (sink.url, "URL")):
        if place.startswith("env:"):
            try:
                secret_of(place, f"the {what} of the sink {sink.name}")
            except BadEnvironment as error:
                return str(error)
    return ""
