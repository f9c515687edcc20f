"""Record what people say about a trial, though many write at once, or a driver runs.

    event = record(folder, IssueRecorded(state="open", text="n017 is slow", by=["Ann"]))

Each writer leaves a request in the trial's folder. Whoever owns the journal then appends what all
have left: the trial's driver, or one of the writers. So nobody waits for a lock in vain, no record
is lost where a process is killed, and none is made twice.
"""

import contextlib
import time

from msgspec.structs import replace

from seatrial.account import account
from seatrial.errors import JournalError, Owned, UsageError
from seatrial.journal import events
from seatrial.journal.encoding import encode
from seatrial.journal.journal import Journal, read
from seatrial.plan.checklist import Ticks, items_of
from seatrial.trial import requests
from seatrial.trial.event_headers import header_of
from seatrial.trial.folder import TrialFolder
from seatrial.trial.record_faults import fault_of
from seatrial.trial.requests import Request
from seatrial.units import SECOND_NS

PATIENCE_SECONDS = 30.0  # for the process that owns the journal
LOOK_SECONDS = 0.05


def record(
    folder: TrialFolder, event: events.PersonsEvent | events.RunReviewed
) -> events.Event | None:
    """Record what a person says. Return the event as the journal has it; None where it is left for
    the next process that owns the journal. Raises UsageError for a record that `fault_of` refuses,
    JournalError and TrialError."""
    if fault := fault_of(event):
        raise UsageError(fault)
    event = replace(event, by=account())
    file = requests.ask(folder, Request(request="record", text=encode(event).decode()))
    until = time.monotonic() + PATIENCE_SECONDS
    while (folder.path / file).exists():
        try:
            with Journal.own(folder.journal) as journal:
                take_in(folder, journal)
        except Owned:
            if time.monotonic() > until:
                return None
            time.sleep(LOOK_SECONDS)
        except JournalError as error:
            if isinstance(error.__cause__, PermissionError):
                return None  # its owner's next command records it
            with contextlib.suppress(OSError):
                requests.drop(folder, [file])
            raise
    return next((each for each in read(folder.journal) if each.request == file), None)


def take_in(folder: TrialFolder, journal: Journal) -> None:
    """Append to a journal what people have left to be recorded. Other requests are left. A
    checklist of which each item has its result has ended."""
    trial = folder.record()
    answered: set[str] = set()
    issues, ended, ticks = 0, False, Ticks()
    for event in read(folder.journal):
        if isinstance(event, events.TrialOpened):
            journal.clock.go_on(event.boot, event.time, event.uptime)
        elif isinstance(event, events.ClockStepped):
            journal.clock.told(round(event.seconds * SECOND_NS))
        elif isinstance(event, events.PERSONAL):
            answered.add(event.request)
            ticks.apply(event)
            if isinstance(event, events.IssueRecorded):
                issues = max(issues, event.issue)
        elif isinstance(event, events.TrialEnded):
            ended = True
    files = []
    for file, request, by in requests.waiting(folder):
        if request.request != "record":
            continue
        files.append(file)
        if file in answered:
            continue
        event = requests.recorded(request, by, file)
        if isinstance(event, events.IssueRecorded):
            if event.issue > issues:
                continue  # there is none with that number
            if not event.issue:
                issues += 1
                event = replace(event, issue=issues)
        event = replace(event, time=journal.now(), **header_of(trial, event))
        journal.append(event)
        ticks.apply(event)
    items = items_of(trial.component.items if trial.component else (), ticks)
    if items and not ended and all(item.tick for item in items):
        end = events.TrialEnded(failed=int(any(item.state == "fail" for item in items)))
        journal.append(replace(end, time=journal.now(), **header_of(trial, end)))
    journal.flush(durable=True)
    requests.drop(folder, files)
