"""The ledger of a trial: its journal, its conductor and its observer, kept in step.

Every fact is noted once: appended to the journal, applied to the conductor, told to the observer.
Replaying the journal fills the ledger of a trial that was interrupted.
"""

from __future__ import annotations

from collections import Counter, deque
from pathlib import Path
from socket import gethostname
from typing import Any, NamedTuple

from seatrial.conduct.conductor import Conductor
from seatrial.errors import TrialError
from seatrial.journal.codes import Code, Name
from seatrial.journal.events import Event
from seatrial.journal.journal import Journal, read
from seatrial.suite.model import Case
from seatrial.trial.folder import Record
from seatrial.trial.observer import Observer

LONGEST_JOB_TEXT = 4000
LATEST_JUDGED = 1000  # as many as a driver that died may have left something of
LATEST_ALERTS = 1000
BY_REQUEST = {
    Name.TRIAL_PAUSE,
    Name.TRIAL_EXTEND,
    Name.TRIAL_ABANDON,
    Name.TEST_ADMIT,
    Name.NODE_ADMIT,
}


class Unresolved(NamedTuple):
    """A run that has no verdict yet: its directory, how it was submitted (the target that it was
    placed on and its stage with it), its job if known, its end if noted."""

    run_id: str
    submission: str
    job_id: str = ""
    ended: Event | None = None
    path: str = ""
    target: str = ""
    stage: str = ""


class Ledger:
    """``runs`` maps the runs without a verdict to the positions of their cases; ``verdicts`` counts
    those that stand, not those of runs whose cases run again (cancelled by us, lost)."""

    def __init__(self, record: Record, conductor: Conductor, observer: Observer) -> None:
        self.record = record
        self.conductor = conductor
        self.observer = observer
        self.runs: dict[str, int] = {}
        self.verdicts: Counter[str] = Counter()
        self.complete = False  # whether the journal ends with the trial's end
        self.host = ""  # where the trial was driven last
        # The latest of what was replayed: runs judged (test, directory), alerts (kind, ns).
        self.judged: deque[tuple[str, Path]] = deque(maxlen=LATEST_JUDGED)
        self.alerts: deque[tuple[str, int]] = deque(maxlen=LATEST_ALERTS)
        self.answered: set[str] = set()  # the requests
        self.journal: Journal
        self._damaged = 0
        self._fresh = True

    def case(self, run_id: str) -> Case:
        return self.conductor.cases[self.runs[run_id]]

    def replay(self) -> list[Unresolved]:
        """Fold what the journal holds; the runs that it leaves without a verdict."""
        reading = read(self.journal.path)
        unresolved: dict[str, Unresolved] = {}
        paths: dict[str, str] = {}  # of runs that were made, and not announced yet
        for event in reading:
            self._fresh = False
            self._fold(event)
            run_id = event.run_id
            if event.event == Name.LOGGING_START:
                paths[run_id] = event.path
            elif event.event == Name.SUBMIT_START:
                self.runs[run_id] = self._number(event)
                before = unresolved.get(run_id)
                path = paths.pop(run_id, before.path if before else "")
                unresolved[run_id] = Unresolved(
                    run_id, event.alias, path=path, target=event.target, stage=event.stage
                )
            elif event.event == Name.JOB_QUEUED and run_id in unresolved:
                unresolved[run_id] = unresolved[run_id]._replace(job_id=event.job_id)
            elif event.event == Name.JOB_END and run_id in unresolved:
                unresolved[run_id] = unresolved[run_id]._replace(ended=event)
            elif event.event == Name.CHECK_END:
                over = unresolved.pop(run_id, None)
                paths.pop(run_id, None)
                self.runs.pop(run_id, None)
                if over is not None and over.path:
                    self.judged.append((event.test, Path(over.path)))
            elif event.event == Name.ALERT:
                self.alerts.append((event.alias, event.time))
            elif event.event in (Name.TRIAL_START, Name.TRIAL_RESUME):
                self.host = event.nodes
        self._damaged = reading.damaged
        return list(unresolved.values())

    def _number(self, event: Event) -> int:
        number = self.conductor.index.get(event.case)
        if number is None:
            raise TrialError(
                f"{self.journal.path}: its run {event.run_id} is of the case {event.case!r}, which "
                "cases.jsonl has not; put the cases.jsonl back that the trial was made with"
            )
        return number

    def open(self) -> None:
        """Note that the trial starts, or is taken up again."""
        self.observer.on_open(self.conductor.finished, self.conductor.wanted)
        if self._damaged:
            self.note(Name.ALERT, text=f"the journal has {self._damaged} damaged lines")
        self.note(Name.TRIAL_START if self._fresh else Name.TRIAL_RESUME, nodes=gethostname())

    def begin(self, run_id: str, number: int, path: str) -> None:
        """A run of a case is being made."""
        self.runs[run_id] = number
        self.note(Name.LOGGING_START, run_id, path=path)

    def verdict(self, run_id: str, code: Code, why: str) -> None:
        """A run has its verdict; it is over."""
        again = self.conductor.runs_again(self.runs[run_id], run_id, code.number)
        said: dict[str, Any] = {"alias": code.name, "text": why, "again": again}
        self.note(Name.CHECK_END, run_id, value=code.number, **said)
        del self.runs[run_id]

    def note_of_job(self, run_id: str, event: Event) -> None:
        """Note an event that a job wrote of itself, with what it says and nothing else of it."""
        self.note(
            event.event,
            run_id,
            time=event.time,
            value=event.value,
            alias=event.alias[:LONGEST_JOB_TEXT],
            text=event.text[:LONGEST_JOB_TEXT],
            nodes=event.nodes[:LONGEST_JOB_TEXT],
            job_id=event.job_id[:LONGEST_JOB_TEXT],
        )

    def note(self, name: str, run_id: str = "", time: int = 0, test: str = "", **more: Any) -> None:
        """Note an event; ``time`` is now unless given."""
        case = self.case(run_id) if run_id else None
        test = case.test if case else test
        known = self.record.tests.get(test)  # an alert's subject need not be a test
        event = Event(
            time=time or self.journal.now(),
            event=name,
            trial=self.record.tag,
            machine=self.record.machine.machine,
            app=known.app if known else "",
            test=test,
            case=case.id if case else "",
            run_id=run_id,
            **more,
        )
        self.journal.append(event)
        self._fold(event)
        self.observer.on_event(event, case)

    def _fold(self, event: Event) -> None:
        finished = self.conductor.finished
        self.conductor.apply(event)
        self.complete = event.event == Name.TRIAL_END
        if event.path and event.event in BY_REQUEST:
            self.answered.add(event.path)
        if self.conductor.finished > finished:
            self.verdicts[event.alias] += 1
