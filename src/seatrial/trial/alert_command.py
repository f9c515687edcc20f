"""Runs the command of a plan's ``alerts``, or of ``--alert``, for each alert, at a bounded rate.

The command gets the alert in its environment: ALERT (the text), ALERT_KIND, ALERT_SUBJECT, TRIAL,
MACHINE. Alerts above the rate are counted, and reported with the next one.
"""

import asyncio
from collections import deque
from collections.abc import Iterable

from seatrial.backends.protocol import Disturbed, Doubled, Trouble, Unfollowed
from seatrial.journal.events import AlertRaised, Event
from seatrial.plan.model import Tell
from seatrial.runs.shell import Shell
from seatrial.suite.model import Case
from seatrial.trial.observer import Observer
from seatrial.trial.record import Record
from seatrial.trial.tasks import Tasks
from seatrial.units import SECOND_NS, count

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


def alert_of(update: Trouble | Disturbed | Doubled | Unfollowed) -> AlertRaised:
    """Return the alert that an update of the backend raises."""
    if isinstance(update, Trouble):
        active = 0 if update.over else 1
        subject = update.command
        return AlertRaised(kind="scheduler", subject=subject, text=update.text, active=active)
    if isinstance(update, Disturbed):
        text = (
            f"run {update.run_id} is exclusive, and the run of another trial in {update.other} was "
            "beside it on this host; let these trials run one after the other"
        )
        return AlertRaised(kind="disturbed", subject=update.run_id, text=text)
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
