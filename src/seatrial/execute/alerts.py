"""Alerts that no driver can raise, as it is dead: the dead man's alarm, and that of a supervisor.

    for told in alarms([folder], limit=600): print(told.text)

The alarm of a trial is raised once for each silence of its driver, whichever process looks: the
file ``alarm`` in the folder has the time of the heartbeat of which people were told. Between two
components of a plan nobody drives a trial: the alarm of the first is raised if the next never
begins. The command that a record names is run only where the record is the user's own.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.errors import SeatrialError
from seatrial.execute.background import Tasks
from seatrial.execute.heartbeat import last_beat, silence
from seatrial.execute.ledger import Observer, header_of
from seatrial.execute.plan_trials import next_of, not_begun
from seatrial.execute.protocol import Disturbed, Doubled, Trouble, Unfollowed
from seatrial.execute.shell import Shell
from seatrial.execute.trial_folder import TrialFolder
from seatrial.execute.trial_record import Record
from seatrial.files import open_folder, read_regular, remove_file, replace_file
from seatrial.journal.events import AlertRaised, Event
from seatrial.journal.journal import Journal
from seatrial.judge.file_use import compare
from seatrial.model.plan import Tell
from seatrial.model.policy import Policy
from seatrial.model.test import Case
from seatrial.state_folder import state_folder
from seatrial.units import SECOND_NS, count, listed, seconds, show_seconds

SILENT = "silent driver"  # kind of the dead man's alarm
RESTART = "restart"  # kind of the alerts of a supervisor
LEAST_LIMIT_SECONDS = 60.0  # several heartbeats
MAX_MARK_BYTES = 100
MAX_NAMED = 4
DOUBT = "doubt"  # in place of the time of a heartbeat that tells nothing
BETWEEN = " next"  # behind the time of the heartbeat, where nobody began what was to come


class Alarm(NamedTuple):
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
