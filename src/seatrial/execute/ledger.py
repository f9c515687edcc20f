"""The ledger of a trial keeps its journal, its conductor and its observer in step.

Each event is appended to the journal, applied to the conductor and reported to the observer. To go
on with a trial that was interrupted, the ledger replays the journal.
"""

import contextlib
import os
import time
from array import array
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TypedDict

from msgspec.structs import replace

from seatrial.account import account
from seatrial.decide.conductor import Conductor
from seatrial.errors import JournalError, Owned, TrialError, UsageError
from seatrial.execute import requests
from seatrial.execute.plan.component import Ticks, items_of
from seatrial.execute.requests import Request, fault_of
from seatrial.execute.trial_folder import Record, TrialFolder, known_by, latest_references
from seatrial.execute.trial_paths import TrialPaths
from seatrial.journal import events
from seatrial.journal.clock import boot_id, uptime_ns
from seatrial.journal.encoding import encode
from seatrial.journal.journal import Journal, read
from seatrial.journal.trial import RECORDED_KINDS, RecordedRun, Trial, TrialLife
from seatrial.judge.file_use import OPEN_FILES
from seatrial.judge.references import References
from seatrial.judge.verdict import KnownFailures, Verdict
from seatrial.model.codes import PASS, PERFORMANCE, code_of
from seatrial.model.test import Case
from seatrial.units import SECOND_NS, listed, show_seconds

MAX_JUDGED = 1000  # runs of which a driver that died may have left a deck, or outputs
MAX_ALERTS = 1000
MAX_NAMED = 20  # runs in an alert


def _replayed_run(event: events.RunEvent) -> RecordedRun | None:
    """Return the run that an event begins. A run that was judged is let go, so what follows its
    verdict begins none."""
    return None if event.follows_verdict else RecordedRun.begin(event)


class Observer:
    """Receives progress when a drive begins, and then every event as it is recorded, with its case
    where it has one. This one does nothing with them."""

    def on_open(self, finished: int, wanted: int) -> None:
        pass

    def on_event(self, event: events.Event, case: Case | None) -> None:
        pass


@dataclass
class Recorded:
    """What a journal has of what people asked and said: the requests that were answered, the number
    of the latest issue, the results of a checklist, and whether the trial has ended."""

    answered: set[str] = field(default_factory=set)
    issues: int = 0
    ticks: Ticks = field(default_factory=Ticks)
    ended: bool = False

    def apply(self, event: events.Event) -> None:
        if event.request:
            self.answered.add(event.request)
        if isinstance(event, events.IssueRecorded):
            self.issues = max(self.issues, event.issue)
        elif isinstance(event, events.ItemTicked):
            self.ticks.apply(event)
        elif isinstance(event, events.TrialEnded):
            self.ended = True

    def knows(self, event: events.Event) -> bool:
        """Return whether there is the issue that an event is about, or will be; True of others."""
        return not isinstance(event, events.IssueRecorded) or event.issue <= self.issues

    def numbered(self, event: events.Event) -> events.Event:
        """Return an event; one that opens an issue with the number of that."""
        if isinstance(event, events.IssueRecorded) and not event.issue:
            return replace(event, issue=self.issues + 1)
        return event


class Ledger:
    """``runs`` maps the runs without a verdict to the positions of their cases. ``verdicts`` counts
    the final verdicts, not those of runs whose cases run again."""

    def __init__(self, record: Record, conductor: Conductor, observer: Observer) -> None:
        self.record = record
        self.conductor = conductor
        self.observer = observer
        self._known = KnownFailures(record.known_failures)
        self.runs: dict[str, int] = {}
        self.verdicts: Counter[str] = Counter()
        # The latest that were replayed: judged runs and alerts (kind, ns).
        self.judged: deque[RecordedRun] = deque(maxlen=MAX_JUDGED)
        self.alerts: deque[tuple[str, int]] = deque(maxlen=MAX_ALERTS)
        self._corrected: dict[str, events.RunJudgedAgain] = {}  # of runs whose verdict was lost
        #: what is noticed of a run, by its id: it stands beside the verdict of a right answer
        self.notices: dict[str, str] = {}
        #: the open files that runs had, by test
        self.open_files: dict[str, array[float]] = {}
        self.references: References | None = None  # that people corrected
        #: of runs that were replayed: whether they were submitted before this host booted
        self.before_boot: dict[str, bool] = {}
        self.recorded = Recorded()
        self.journal: Journal
        self._damaged = 0
        self._unjudged: list[str] = []  # runs that were submitted, of what was replayed
        self._fresh = True

    @property
    def complete(self) -> bool:
        """Whether the trial came to its end, and was neither resumed nor extended since."""
        return self.conductor.state.trial.complete

    @property
    def lost_verdicts(self) -> bool:
        """Whether the journal is damaged, and runs have no verdict that had one when the trial came
        to its end: its remaining lines do not tell all."""
        state = self.conductor.state
        short = bool(state.wanted) and state.finished < state.wanted
        return self.complete and self._damaged > 0 and (short or bool(self._unjudged))

    def case(self, run_id: str) -> Case:
        return self.conductor.state.cases[self.runs[run_id]]

    def replay(self) -> list[RecordedRun]:
        """Apply the journal. Return the runs that were submitted and have no verdict."""
        reading = read(self.journal.path)
        trial = Trial(_replayed_run, kinds=RECORDED_KINDS)
        boot = boot_id()
        for event in reading:
            self._fresh = False
            self._fold(event)
            trial.apply(event)
            self.journal.clock.follow(event)
            if isinstance(event, events.RunSubmitted):
                self.runs[event.run_id] = self._number(event)
                self.before_boot[event.run_id] = _is_of_other_boot(trial.opened, boot)
            elif isinstance(event, events.RunJudged):
                self._let_go(trial.runs_by_id.pop(event.run_id, None))
        self.alerts.extend((alert.kind, alert.time) for alert in trial.alerts)
        self.references = latest_references(trial.corrections)
        self._damaged = reading.damaged
        unresolved = [run for run in trial.runs_by_id.values() if run.run_id in self.runs]
        self._unjudged = [run.run_id for run in unresolved]
        return unresolved

    def _let_go(self, run: RecordedRun | None) -> None:
        """Remember of a run that was judged only where its directory is."""
        if run is None or self.runs.pop(run.run_id, None) is None:
            return
        self.before_boot.pop(run.run_id, None)
        if run.path:
            self.judged.append(run)

    def _number(self, event: events.RunSubmitted) -> int:
        number = self.conductor.state.index.get(event.case)
        if number is None:
            raise TrialError(
                f"{self.journal.path}: its run {event.run_id} is of the case {event.case!r}, which "
                "is not in cases.jsonl; restore the cases.jsonl that the trial was created with"
            )
        return number

    def open(self) -> None:
        """Record that the trial starts, or is resumed: first of all, as `report verify` takes what
        else follows the end of a trial for an addition by somebody else."""
        self.observer.on_open(self.conductor.state.finished, self.conductor.state.wanted)
        kind = events.TrialStarted if self._fresh else events.TrialResumed
        time, uptime = self.journal.now(), uptime_ns()
        self.note(kind(time=time, host=os.uname().nodename, boot=boot_id(), uptime=uptime))
        if self._damaged:
            self.note(events.AlertRaised(kind="journal", text=self._about_damage()))

    def _about_damage(self) -> str:
        lines = "1 damaged line" if self._damaged == 1 else f"{self._damaged} damaged lines"
        text = f"the journal has {lines}"
        if self._unjudged:
            runs = listed(self._unjudged, MAX_NAMED)
            text += f"; runs without a verdict are looked for, and judged: {runs}"
        return text

    def watch_clock(self) -> None:
        """Record a step of the wall clock, and alert people."""
        if step := self.journal.clock.step():
            host = os.uname().nodename
            self.note(events.ClockStepped(host=host, seconds=step / SECOND_NS))
            way = "forward" if step > 0 else "back"
            text = (
                f"the clock of {host} was set {way} by {show_seconds(abs(step) / SECOND_NS)}; the "
                "clock of the trial did not follow, and durations are right"
            )
            self.note(events.AlertRaised(kind="clock", subject=host, text=text))

    def begin(self, run_id: str, number: int, path: str) -> None:
        """Record that a run of a case is being created."""
        self.runs[run_id] = number
        self.note(events.RunCreated(run_id=run_id, path=path))

    def verdict(self, run_id: str, verdict: Verdict) -> None:
        """Record the verdict of a run; as it is known, if its failure is."""
        number, time = self.runs[run_id], self.journal.now()
        case, cause = self.case(run_id), verdict.cause
        code, reason, known = self._known.judged(case, verdict.code, verdict.why, time, cause.text)
        if (notice := self.notices.pop(run_id, "")) and code in (PASS, PERFORMANCE):
            reason = f"{reason}; {notice}" if reason else notice
        reruns = self.conductor.state.will_rerun(number, run_id, code.number)
        self.note(
            events.RunJudged(
                time=time,
                run_id=run_id,
                code=code.number,
                verdict=code.name,
                reason=reason,
                will_rerun=reruns,
                sha256=verdict.sums,
                known=known,
                cause=cause.text,
                cause_code=cause.code,
                cause_line=cause.line,
                advice=cause.advice,
            )
        )
        del self.runs[run_id]
        if again := self._corrected.pop(run_id, None):
            # A person's judgement stands, though the verdict before it had to be found again.
            changes = {"time": 0, "will_rerun": reruns, "before": code.number}
            self.note(replace(again, **changes), self.conductor.state.cases[number])

    def note(self, event: events.Event, case: Case | None = None) -> None:
        """Record an event: append it to the journal, apply it, report it. Its time is the present
        unless it has one; trial, machine, application, test and case are filled in. ``case`` is
        needed of a run that was judged. What people say of a run has them already."""
        time = event.time or self.journal.now()
        if isinstance(event, events.RunEvent) and not isinstance(event, events.RunReviewed):
            case = case or self.case(event.run_id)
            event = of_run(event, self.record, case, time)
        else:
            event = replace(event, time=time, **header_of(self.record, event))
            event = self.recorded.numbered(event)
        self.journal.append(event)
        self._fold(event)
        self.observer.on_event(event, case)

    def _fold(self, event: events.Event) -> None:
        if isinstance(event, events.MetricRecorded):
            self._measure(event)
        finished = self.conductor.state.finished
        self.conductor.apply(event)
        self.recorded.apply(event)
        if isinstance(event, events.RunJudged) and self.conductor.state.finished > finished:
            self.verdicts[event.verdict] += 1
        elif isinstance(event, events.RunSubmitted):
            self._corrected.pop(event.run_id, None)  # what was judged is not what runs now
        elif isinstance(event, events.RunJudgedAgain):
            self._correct(event)
        elif isinstance(event, events.PolicyChanged):
            self._known = KnownFailures(known_by(self.record, self.conductor.state.policy))

    def _measure(self, event: events.MetricRecorded) -> None:
        """Keep the open files of a run."""
        if event.metric == OPEN_FILES and (value := events.finite(event.value)) is not None:
            self.open_files.setdefault(event.test, array("d")).append(value)

    def _correct(self, event: events.RunJudgedAgain) -> None:
        """Count the latest verdict of a run in place of the one before, unless its own line is
        damaged, and it was not counted."""
        before = code_of(event.before).name
        if event.run_id in self.runs:
            self._corrected[event.run_id] = event
        elif self.verdicts[before] > 0 and not event.will_rerun:
            self.verdicts[before] -= 1
            self.verdicts[event.verdict] += 1
            self.verdicts = +self.verdicts


def _is_of_other_boot(opened: events.TrialOpened | None, boot: str) -> bool:
    """Return whether the host of the driver that opened a trial is known to have had another boot
    than this one."""
    return opened is not None and opened.boot not in ("", boot)


# ---- event headers -------------------------------------------------------------------------------
#
# The members of an event that follow from its trial and its test.


_OF_A_TEST = (events.BuildEvent, events.TestEvent, events.AlertRaised)


class RunEventHeader(TypedDict):
    """What each event of a run has."""

    trial: str
    machine: str
    app: str
    test: str
    case: str
    run_id: str


def run_header(record: Record, case: Case, run_id: str) -> RunEventHeader:
    """Return the header of the events of a run."""
    return {
        "trial": record.tag,
        "machine": record.machine.machine,
        "app": record.tests[case.test].app,
        "test": case.test,
        "case": case.id,
        "run_id": run_id,
    }


def of_run(event: events.RunEvent, record: Record, case: Case, time: int) -> events.RunEvent:
    """Return an event of a run with its time and the other members of its header."""
    return replace(event, time=time, **run_header(record, case, event.run_id))


def header_of(record: Record, event: events.Event) -> dict[str, str]:
    """Return the header of an event of no run. ``app`` is "" if it is of no test either."""
    header = {"trial": record.tag, "machine": record.machine.machine}
    if not isinstance(event, _OF_A_TEST):
        return header
    name = event.subject if isinstance(event, events.AlertRaised) else event.test
    return {**header, "app": record.tests[name].app if name in record.tests else ""}


# ---- life ----------------------------------------------------------------------------------------
#
# The life of a trial, by its journal.


def life_of(folder: TrialPaths, duration: float) -> TrialLife:
    """Return the life of a trial, by its journal; ``duration`` is its policy's. Raises
    JournalError."""
    life = TrialLife(duration)
    for event in read(folder.journal):
        life.apply(event)
    return life


# ---- recording -----------------------------------------------------------------------------------
#
# Record what people say about a trial, though many write at once, or a driver runs.
#
#     event = record(folder, IssueRecorded(state="open", text="n017 is slow", by=["Ann"]))
#
# Each writer leaves a request in the trial's folder. Whoever owns the journal then appends what
# all have left: the trial's driver, or one of the writers. So nobody waits for a lock in vain, no
# record is lost where a process is killed, and none is made twice.


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
            with Journal.take(folder.journal) as journal:
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
    record, recorded = folder.record(), Recorded()
    for event in read(folder.journal):
        journal.clock.follow(event)
        recorded.apply(event)

    def append(event: events.Event) -> None:
        event = replace(event, time=journal.now(), **header_of(record, event))
        journal.append(event)
        recorded.apply(event)

    files = []
    for file, request, by in requests.waiting(folder):
        if request.request != "record":
            continue
        files.append(file)
        event = requests.recorded(request, by, file)
        if file not in recorded.answered and recorded.knows(event):
            append(recorded.numbered(event))
    if (end := _end_of_checklist(record, recorded)) is not None:
        append(end)
    journal.flush(durable=True)
    requests.drop(folder, files)


def _end_of_checklist(record: Record, recorded: Recorded) -> events.TrialEnded | None:
    """Return the end of a checklist of which each item has its result; None of any other trial, and
    where its end is recorded."""
    items = items_of(record.component.items if record.component else (), recorded.ticks)
    if not items or recorded.ended or not all(item.tick for item in items):
        return None
    return events.TrialEnded(failed=int(any(item.state == "fail" for item in items)))
