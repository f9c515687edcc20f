"""Alerts of a trial: those of its driver, and those that no driver can raise, as it is dead.

    for told in alarms([folder], limit=600): print(told.text)

The alarm of a trial is raised once for each silence of its driver, whichever process looks: the
file ``alarm`` in the folder has the time of the heartbeat of which people were told. Between two
components of a plan nobody drives a trial: the alarm of the first is raised if the next never
begins. The command that a record names is run only where the record is the user's own.
"""

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import os
import stat
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.account import home
from seatrial.errors import SeatrialError
from seatrial.execute.backends import Disturbed, Doubled, Trouble, Unfollowed
from seatrial.execute.background import Tasks
from seatrial.execute.beside_loop import Shell
from seatrial.execute.ledger import Observer, header_of, life_of
from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.files import (
    file_clock,
    make_folder,
    open_folder,
    opened_folder,
    read_regular,
    remove_file,
    replace_file,
    touch,
)
from seatrial.journal.events import AlertRaised, Event
from seatrial.journal.journal import Journal, read_mark
from seatrial.journal.trial import TrialState
from seatrial.judge.file_use import compare
from seatrial.log import logger
from seatrial.model.plan import Tell
from seatrial.model.policy import Policy
from seatrial.model.test import Case
from seatrial.units import SECOND_NS, count, listed, seconds, show_seconds

SILENT = "silent driver"  # kind of the dead man's alarm
RESTART = "restart"  # kind of the alerts of a supervisor
LEAST_LIMIT_SECONDS = 60.0  # several heartbeats
MAX_MARK_BYTES = 100
MAX_NAMED = 4
DOUBT = "doubt"  # in place of the time of a heartbeat that tells nothing
BETWEEN = " next"  # behind the time of the heartbeat, where nobody began what was to come


class Alarm(Struct, frozen=True):
    """What is said of a trial: its driver is ``silent``, or alive again. ``new``: people were told
    just now. ``failure``: why the command of alerts failed, or ""."""

    text: str
    silent: bool
    new: bool
    failure: str = ""


def alarm_limit(text: str) -> float:
    """Return the longest silence of a driver that a person gives, in seconds. Raises ValueError."""
    limit = seconds(text)
    if limit < LEAST_LIMIT_SECONDS:
        raise ValueError(f"{text!r} is less than {show_seconds(LEAST_LIMIT_SECONDS)}")
    return limit


def alarms(folders: Iterable[TrialFolder], limit: float) -> Iterator[Alarm]:
    """Yield the trials whose drivers have been silent for more than ``limit`` seconds, those after
    which nobody began the next, and those that go on after an alarm; run the command of their
    plan's alerts."""
    for folder in folders:
        try:
            if alarm := _look(folder, folder.record(), limit):
                yield alarm
        except SeatrialError as error:
            text = f"{folder.tag}: it cannot be told whether its driver is alive: {error}"
            yield Alarm(text, True, False)


def _look(folder: TrialFolder, record: Record, limit: float) -> Alarm | None:
    with _alone(folder):
        at, known = str(last_beat(folder) or ""), told_of(folder)
        text, mark = _silence(folder, record, limit, at)
        if not text:
            text, mark = _gap(folder, record, limit), at + BETWEEN
        if not text:
            return _look_again(folder, known, at)
        if known == mark:
            return Alarm(text, True, False)
        failure = run_command(folder, AlertRaised(kind=SILENT, text=text))
        if not failure:
            _write_told(folder, mark)
        return Alarm(text, True, True, failure)


def _silence(folder: TrialFolder, record: Record, limit: float, at: str) -> tuple[str, str]:
    """Return that the driver of a trial is silent which should run, in words, and by what people
    are told once: the time of its heartbeat, or what is wrong with that; "" for one that is not
    silent."""
    if (silent := silence(folder, record, limit)) is None:
        return "", at
    if silent.doubt:
        text = f"{folder.tag}: it cannot be told whether its driver is alive: {silent.doubt}"
        return f"{text}; the trial should run", DOUBT
    long = show_seconds(silent.seconds)
    return f"{folder.tag}: its driver has been silent for {long}, and the trial should run", at


def _gap(folder: TrialFolder, record: Record, limit: float) -> str:
    """Return that nobody began what was to come after a trial, in words, or ""."""
    if (missing := not_begun(folder, record, limit)) is None:
        return ""
    return (
        f"{folder.tag}: it ended, its driver has been silent for {show_seconds(missing.seconds)}, "
        f"and what was to come next has not begun: {listed(missing.tags, MAX_NAMED)}"
    )


def _look_again(folder: TrialFolder, told: str, at: str) -> Alarm | None:
    """Tell that a silence is over, if people were told of it."""
    if told in ("", at):  # it was never told, or people have ended the trial since
        return None
    text = f"{folder.tag}: its driver is alive again"
    if told == at + BETWEEN:
        if not (begun := next_of(folder)):  # people have paused the plan since
            _forget_told(folder)
            return None
        text = f"{folder.tag}: what was to come next has begun: {listed(begun, MAX_NAMED)}"
    failure = run_command(folder, AlertRaised(kind=SILENT, text=text, active=0))
    _forget_told(folder)
    return Alarm(text, False, True, failure)


def note(folder: TrialFolder, record: Record, alert: AlertRaised) -> None:
    """Write an alert into the journal of a trial that nobody drives, if that can be done."""
    with contextlib.suppress(SeatrialError), Journal.take(folder.journal) as journal:
        journal.append(replace(alert, time=journal.now(), **header_of(record, alert)))


def run_command(folder: TrialFolder, alert: AlertRaised) -> str:
    """Run the command of a trial's alerts, if there is one, for an alert; return its failure. It is
    not run where another user may have written the record. Raises TrialError."""
    record, origin = folder.record_and_origin()
    tell = record.alerts
    if tell is None:
        return ""
    if origin.stranger:
        return f"it is not run under your name: {origin.stranger}"
    about = variables(record, alert.kind, alert.subject, alert.text)
    return asyncio.run(Shell(tell.command, tell.timeout.seconds).run(about)).failure


@contextlib.contextmanager
def _alone(folder: TrialFolder) -> Iterator[None]:
    """Wait until no other process of this host looks at the trial. Some file systems cannot lock a
    folder; then two that look at one moment may both tell."""
    try:
        lock = open_folder(folder.path, follow=True)
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def told_of(folder: TrialFolder) -> str:
    """Return the time of the heartbeat of which people were told last, or ""."""
    for path in _places(folder):
        with contextlib.suppress(OSError):
            return read_regular(path, MAX_MARK_BYTES, follow=False).decode(errors="replace")
    return ""


def _write_told(folder: TrialFolder, at: str) -> None:
    """Write that time, else in a folder of our own: that of the trial may be full, or another's."""
    for path in _places(folder):
        with contextlib.suppress(OSError):
            replace_file(path, at.encode(), follow=True)
            return


def _forget_told(folder: TrialFolder) -> None:
    for path in _places(folder):
        with contextlib.suppress(OSError):
            remove_file(path, follow=True)


def _places(folder: TrialFolder) -> Iterator[Path]:
    yield folder.alarm
    with contextlib.suppress(OSError):
        name = hashlib.sha256(os.fsencode(folder.path)).hexdigest()[:32]
        yield state_folder() / f"alarm-{name}"


# ---- alert command -------------------------------------------------------------------------------
#
# Runs the command of a plan's ``alerts``, or of ``--alert``, for each alert, at a bounded rate.
#
# The command gets the alert in its environment: ALERT (the text), ALERT_KIND, ALERT_SUBJECT,
# TRIAL, MACHINE. Alerts above the rate are counted, and reported with the next one.


UNFOLLOWED = "unfollowed"  # kind of the alert for runs in flight whose end nobody will report
OWN_KIND = "alerts"  # kind of the alert that the command fails, for which it is not run


class AlertCommand(Observer):
    """An observer that passes all events on to another one, and runs the command for alerts."""

    def __init__(self, record: Record, tell: Tell | None, observer: Observer, tasks: Tasks) -> None:
        self.observer = observer
        self._record = record
        self._tell = tell
        self._tasks = tasks
        self._waiting: list[AlertRaised] = []
        self._there = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._busy = False
        self._failing = False
        self._ran: deque[float] = deque()  # times that the rate counts

    def remember(self, alerts: Iterable[tuple[str, int]], now: int) -> None:
        """Count the alerts (kind, ns) of an earlier driver against the rate."""
        tell = self._tell
        if tell is None:
            return
        present = asyncio.get_running_loop().time()
        times = [present - (now - time) / SECOND_NS for kind, time in alerts if kind != OWN_KIND]
        self._ran.extend(times[-tell.at_most :])

    def on_open(self, finished: int, wanted: int) -> None:
        self.observer.on_open(finished, wanted)

    def on_event(self, event: Event, case: Case | None) -> None:
        self.observer.on_event(event, case)
        tell = self._tell
        if tell is not None and isinstance(event, AlertRaised) and event.kind != OWN_KIND:
            self._waiting.append(event)
            self._there.set()
            if self._task is None:
                self._task = self._tasks.spawn(self._work(tell))

    async def _work(self, tell: Tell) -> None:
        shell = Shell(tell.command, tell.timeout.seconds)
        while True:
            await self._there.wait()
            pause = self._pause(tell)
            await asyncio.sleep(pause)
            self._busy = True
            size = len(self._waiting) if pause else 1
            alerts, self._waiting = self._waiting[:size], self._waiting[size:]
            if not self._waiting:
                self._there.clear()
            self._ran.append(asyncio.get_running_loop().time())
            result = await shell.run(self._variables(alerts))
            self._busy = False
            if result.failure and not self._failing:
                self._tasks.alert(OWN_KIND, "", f"the command of alerts fails: {result.failure}")
            self._failing = bool(result.failure)

    def _pause(self, tell: Tell) -> float:
        """Return the seconds until the rate allows the command again."""
        now = asyncio.get_running_loop().time()
        while self._ran and self._ran[0] <= now - tell.per.seconds:
            self._ran.popleft()
        return 0.0 if len(self._ran) < tell.at_most else self._ran[0] + tell.per.seconds - now

    def _variables(self, alerts: list[AlertRaised]) -> dict[str, str]:
        """Return the environment for the first of some alerts, with the number of the others."""
        first, more = alerts[0], len(alerts) - 1
        text = f"{first.text} (and {count(more, 'more alert')})" if more else first.text
        return variables(self._record, first.kind, first.subject, text)

    async def end(self) -> None:
        """Wait for the last alerts, as far as the rate allows, before the driver leaves."""
        tell = self._tell
        if tell is None or self._task is None:
            return
        loop, runs = asyncio.get_running_loop(), self._busy + min(len(self._waiting), tell.at_most)
        began = loop.time()
        while self._busy or (self._waiting and self._pause(tell) <= 0):
            longest = (1 if self._failing else runs) * tell.timeout.seconds
            if self._task.done() or loop.time() - began > longest:
                return
            await asyncio.sleep(0.02)


def variables(record: Record, kind: str, subject: str, text: str) -> dict[str, str]:
    """Return the environment in which the command gets an alert."""
    about = {"ALERT": text, "ALERT_KIND": kind, "ALERT_SUBJECT": subject}
    about |= {"TRIAL": record.tag, "MACHINE": record.machine.machine}
    return {name: value.replace("\0", "") for name, value in about.items()}


class Company:
    """The exclusive runs of a trial beside which runs of other trials were. People are told of the
    first, and at the end of how many there were."""

    def __init__(self) -> None:
        self._others_of: dict[str, set[str]] = {}  # by run: folders of other trials

    def met(self, update: Disturbed) -> AlertRaised | None:
        """Keep a run that had company; return the alert if it is the first."""
        is_first = not self._others_of
        self._others_of.setdefault(update.run_id, set()).add(update.other)
        if not is_first:
            return None
        text = (
            f"run {update.run_id} is exclusive, and runs of {update.other} were beside it on this "
            "host: figures may be worse; let these trials run one after the other"
        )
        return AlertRaised(kind="disturbed", subject=update.run_id, text=text)

    def notice(self, run_id: str) -> str:
        """Return the words beside the verdict of a run that had company."""
        others = sorted(map(os.path.basename, self._others_of[run_id]))
        return f"runs of other trials were beside it: {listed(others, MAX_NAMED)}"

    def at_end(self) -> AlertRaised | None:
        """Return the alert that counts the runs, None where people know all of them."""
        if len(self._others_of) < 2:
            return None
        others = sorted(set().union(*self._others_of.values()))
        text = (
            f"{len(self._others_of)} exclusive runs had company on this host, of "
            f"{count(len(others), 'other trial')}: {listed(others, MAX_NAMED)}"
        )
        return AlertRaised(kind="disturbed", text=text)


def opens_alerts(
    policy: Policy, measured: Mapping[str, Sequence[float]], looks: bool
) -> Iterator[AlertRaised]:
    """Yield the alerts of a trial that ends: of tests whose declared open files are far from what
    their runs had (``measured``, by test); where the machine's file says that nodes look at open
    files (``looks``), also of tests of which no run was measured."""
    for entry in policy.entries:
        found = compare(entry.name, entry.opens, measured.get(entry.name, ()))
        if found is None or not entry.opens:
            continue
        if found.is_wrong or (looks and found.measured is None):
            yield AlertRaised(kind="opens", subject=entry.name, text=found.sentence)


def alert_of(update: Trouble | Doubled | Unfollowed) -> AlertRaised:
    """Return the alert that an update of the backend raises."""
    if isinstance(update, Trouble):
        active = 0 if update.over else 1
        subject = update.command
        return AlertRaised(kind="scheduler", subject=subject, text=update.text, active=active)
    if isinstance(update, Unfollowed):
        text = (
            f"submissions/{update.submission}/runs does not name the runs "
            f"{', '.join(update.run_ids[:3])} ({len(update.run_ids)} in all), which were submitted "
            "with it, so their jobs are not known: what they wrote decides, and without an end "
            "they are lost after `lost_after`; look for these jobs at the scheduler"
        )
        return AlertRaised(kind=UNFOLLOWED, subject=update.submission, text=text)
    jobs = " and ".join(map(str, update.jobs))
    text = (
        f"{update.submission} was submitted twice, as jobs {jobs}; each run is done once: the job "
        "that is ahead is followed, and the other is cancelled or does nothing"
    )
    return AlertRaised(kind="doubled", subject=update.submission, text=text)


# ---- heartbeat -----------------------------------------------------------------------------------
#
# The heartbeat of a driver: a file in the trial's folder that it touches every few seconds.
#
#     beat(folder)                               # in the driver, before it writes into the journal
#     tasks.spawn(beat_regularly(folder))
#     silence(folder, record, limit=600)         # in another process: Silence(712.4), or None
#
# A driver that was killed, or whose host is gone, writes nothing into the journal. So whoever
# watches it looks at the age of this file. The age needs no lock, so it is right on every host that
# sees the folder.


_log = logger(__name__)

BEAT_SECONDS = 15.0
# It is of another member, who drove the trial before; or a link, FIFO or device.
_NO_OWN_FILE = frozenset((errno.EACCES, errno.EPERM, errno.ELOOP, errno.EINVAL))


def beat(folder: TrialFolder) -> None:
    """Touch the file; what is no file of the own goes. Where it cannot be touched, the journal
    cannot be written either, which ends the drive."""
    try:
        try:
            touch(folder.heartbeat)
        except OSError as error:
            if error.errno not in _NO_OWN_FILE:
                raise
            remove_file(folder.heartbeat, follow=True)
            touch(folder.heartbeat)
    except OSError as error:
        _log.warning("%s: %s", folder.heartbeat, error.strerror)


async def beat_regularly(folder: TrialFolder, require_own: Callable[[], None]) -> None:
    """Touch the file now and then, until the task is cancelled. The event loop of a driver that
    hangs does not come to it. ``require_own`` raises Owned where another driver has the trial."""
    while True:
        require_own()
        beat(folder)
        await asyncio.sleep(BEAT_SECONDS)


def last_beat(folder: TrialFolder) -> float | None:
    """Return when the driver was last alive (seconds since the epoch); None where no driver of a
    version that has a heartbeat has driven the trial."""
    try:
        return folder.heartbeat.lstat().st_mtime
    except OSError:
        return None


class Silence(NamedTuple):
    """For how many seconds a driver has given no sign of life. ``doubt``: why its heartbeat tells
    nothing, or ""."""

    seconds: float
    doubt: str = ""


def silence(folder: TrialFolder, record: Record, limit: float) -> Silence | None:
    """Return how long the driver of a trial has been silent, if that is longer than ``limit``
    seconds and the trial should run: it was started, and neither ended nor paused, cancelled or
    abandoned. Else None. A heartbeat that is missing or of a time to come is no sign of life, and
    a journal that lost all of its events does not say that it should not run. Raises
    JournalError."""
    silent = silent_for(folder, record, limit)
    if silent.seconds <= limit or record.rehearsed:
        return None
    life = life_of(folder, record.policy.duration)
    if life.state is TrialState.NEW and _is_emptied(folder):
        return silent._replace(doubt="all events of its journal are missing")
    return silent if life.clock_runs else None


def _is_emptied(folder: TrialFolder) -> bool:
    """Return whether the journal had events by its mark, and has no byte now."""
    try:
        size = folder.journal.stat().st_size
    except OSError:
        size = 0
    return not size and read_mark(folder.journal) is not None


def silent_for(folder: TrialFolder, record: Record, limit: float) -> Silence:
    """Return for how long nothing was heard of a trial's driver, whether it should run or not.
    Where it may be more than ``limit`` seconds, the clock of its file server decides."""
    at = last_beat(folder)
    if at is None:
        return Silence(time.time() - record.created / SECOND_NS, "its heartbeat is missing")
    age = _age(folder, at, limit)
    if age < 0:
        ahead = f"its heartbeat is {show_seconds(-age)} in the future: a clock was set"
        return Silence(-age, ahead)
    return Silence(age)


def _age(folder: TrialFolder, at: float, limit: float) -> float:
    """Return how many seconds ago the file was touched. Where it seems to be long ago, or in the
    future, the clock of its file server is asked: it may differ from ours."""
    age = time.time() - at
    if -BEAT_SECONDS <= age <= limit:
        return age
    now = file_clock(folder.path)
    return age if now is None else now - at


# ---- next trials ---------------------------------------------------------------------------------
#
# Which trials a command begins after the one that it drives: for the dead man's alarm.
#
#     write_next(folder, ["frost-stability"])  # before ``folder`` is driven; [] where it is last
#     not_begun(folder, record, limit=600)         # in another process: NotBegun, or None
#
# Between two components of a plan no driver is alive, so no heartbeat tells that the command died.
# The file ``next`` in the folder of the first one tells what was to come.


MAX_NEXT_BYTES = 64 << 10


class NotBegun(Struct, frozen=True):
    """Trials that should have begun, and for how many seconds their predecessor's driver has been
    silent."""

    tags: list[str]
    seconds: float


def write_next(folder: TrialFolder, tags: Sequence[str]) -> None:
    """Write which trials begin after this one. Where the file cannot be written, nobody is told if
    they do not."""
    try:
        if tags:
            text = "".join(f"{tag}\n" for tag in tags)
            replace_file(folder.next, text.encode(), follow=True)
        else:
            remove_file(folder.next, missing_ok=True, follow=True)
    except OSError as error:
        _log.warning("%s: %s", folder.next, error.strerror)


def next_of(folder: TrialFolder) -> list[str]:
    """Return the tags of the trials that begin after this one."""
    with contextlib.suppress(OSError):
        return read_regular(folder.next, MAX_NEXT_BYTES).decode(errors="replace").split()
    return []


def to_begin(folder: TrialFolder) -> list[str]:
    """Return those of the next trials that have not begun. Raises JournalError, TrialError."""
    beside = folder.path.parent
    return [
        tag
        for tag in next_of(folder)
        if life_of(TrialFolder(beside / tag), 0.0).state is TrialState.NEW
    ]


def not_begun(folder: TrialFolder, record: Record, limit: float) -> NotBegun | None:
    """Return the next trials, if this one is complete, they have not begun, and its driver has been
    silent for more than ``limit`` seconds. Raises JournalError, TrialError."""
    if not (tags := to_begin(folder)):
        return None
    silent = silent_for(folder, record, limit)
    if silent.seconds <= limit or not life_of(folder, record.policy.duration).complete:
        return None
    return NotBegun(tags, silent.seconds)


# ---- folder of marks -----------------------------------------------------------------------------
#
# The folder in which Seatrial keeps a few bytes for a user, outside of any folder of trials.
#
#     replace_file(state_folder() / "alarm-1f2e", data)     # $XDG_STATE_HOME/seatrial, mode 0700
#
# A name in /tmp can be guessed, so that another user of the host may make it first: a folder that
# is not the user's own, or that others may enter, is not used.


def state_folder() -> Path:
    """Return the folder, made if it is missing. Raises OSError where there is none that others
    cannot write."""
    for path in _candidates():
        with contextlib.suppress(OSError):
            make_folder(path, 0o700)
            with opened_folder(path) as folder:
                about = os.fstat(folder)
            if about.st_uid == os.getuid() and not about.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                return path
    raise OSError(errno.EACCES, "there is no folder of your own: set XDG_STATE_HOME")


def _candidates() -> Iterator[Path]:
    named = os.environ.get("XDG_STATE_HOME", "")
    if named.startswith("/"):
        yield Path(named) / "seatrial"
    yield home() / ".local/state/seatrial"
    yield Path(tempfile.gettempdir()) / f"seatrial-{os.getuid()}"
