"""What becomes of the runs of a rehearsal: the facts that its cluster tells, made into events.

facts = SimulatedRuns(record, conductor, book, at)
facts.begin(now, run)                   # launched, or refused
if facts.receive(now, fact): ...        # there may be something to decide
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from seatrial.backends.protocol import NodesDown, NodesUp, Queued, Refused, Started
from seatrial.backends.simulated.cluster import Told
from seatrial.backends.simulated.jobs import Hangs, Over
from seatrial.conduct.commands import RECALLED
from seatrial.conduct.conductor import Conductor
from seatrial.journal.codes import CANCELLED, LAUNCH_FAILED, PASS, TIMEOUT, Code, Name
from seatrial.rehearse.event_writer import EventWriter
from seatrial.rehearse.rehearsed_run import RehearsedRun, judge, why_ended
from seatrial.rehearse.sampling import figures
from seatrial.trial.folder import Record, references_of
from seatrial.units import SECOND_NS
from seatrial.verify.figures import Figure

# Plain text: an event with a member of an enumeration takes three times as long to make.
_BINARY_EXECUTE_END = Name.BINARY_EXECUTE_END.value
_BINARY_EXECUTE_START = Name.BINARY_EXECUTE_START.value
_CHECK_END = Name.CHECK_END.value
_CHECK_START = Name.CHECK_START.value
_JOB_END = Name.JOB_END.value
_JOB_QUEUED = Name.JOB_QUEUED.value
_JOB_START = Name.JOB_START.value
_LOGGING_START = Name.LOGGING_START.value
_NODE_DOWN = Name.NODE_DOWN.value
_NODE_UP = Name.NODE_UP.value
_OUTPUT_QUIET = Name.OUTPUT_QUIET.value
_SUBMIT_END = Name.SUBMIT_END.value

At = Callable[[int, Callable[[int, Any], bool], object], None]
"""Plans what is to happen at a time; that says whether there is something to decide."""


class SimulatedRuns:
    """The runs without a verdict, by id. ``look_by`` is when there may be something to decide
    if nothing is told before; ``all_passed`` tells of the verdicts that stand."""

    def __init__(self, record: Record, conductor: Conductor, book: EventWriter, at: At) -> None:
        self._seed = record.seed
        self._references = references_of(record)
        self._conductor = conductor
        self._book = book
        self._at = at
        self.runs: dict[str, RehearsedRun] = {}
        self.look_by: int | None = None
        self.all_passed = True

    def begin(self, now: int, run: RehearsedRun) -> None:
        """A run is launched, or refused."""
        self.runs[run.id] = run
        self._book.note_of(now, run, _LOGGING_START)

    def receive(self, now: int, fact: Told) -> bool:
        """Make events of a fact; whether there may be something to decide."""
        handler = _HANDLERS.get(type(fact))
        if handler is not None:
            run = self.runs.get(fact.run_id)  # type: ignore[union-attr]
            return run is not None and handler(self, now, run, fact)
        if isinstance(fact, NodesDown):
            self._book.note(now, _NODE_DOWN, nodes=fact.nodes, text=fact.why)
        elif isinstance(fact, NodesUp):
            self._book.note(now, _NODE_UP, nodes=fact.nodes)
        return True

    def _on_queued(self, now: int, run: RehearsedRun, fact: Queued) -> bool:
        """Nothing follows from that but, in time, an alert that it waits for long."""
        self._book.note_of(now, run, _SUBMIT_END, value=0)
        self._book.note_of(now, run, _JOB_QUEUED, job_id=fact.job_id)
        watch = self._conductor.policy.watch
        if watch.wait_factor:
            self.look_by = sooner(self.look_by, now + ns(watch.wait_least))
        return False

    def _on_refused(self, now: int, run: RehearsedRun, fact: Refused) -> bool:
        self._book.note_of(now, run, _SUBMIT_END, value=1, text=fact.why)
        self.verdict(now, run, LAUNCH_FAILED, fact.why)
        return True

    def _on_started(self, now: int, run: RehearsedRun, fact: Started) -> bool:
        self._book.note_of(now, run, _JOB_START, nodes=fact.nodes)
        return True

    def _on_hangs(self, now: int, run: RehearsedRun, fact: Hangs) -> bool:
        if quiet := run.entry.quiet_after:
            self._at(now + ns(run.luck.elapsed + quiet), self._quiet, run)
        return False

    def _on_over(self, now: int, run: RehearsedRun, fact: Over) -> bool:
        code = fact.code
        if run.recalled and code == CANCELLED.number and not fact.nodes:
            fact = replace(fact, state=RECALLED)
        if code == TIMEOUT.number and fact.left and run.manner.keeps:
            code = None  # its test was over; it kept its nodes as long as it could
        text = "" if fact.exit_code is None else f"exit code {fact.exit_code}"
        self._book.note_of(
            now, run, _JOB_END, value=code or 0, alias=fact.state, text=text, nodes=fact.nodes
        )
        if fact.began:
            self._book.note_of(fact.began, run, _BINARY_EXECUTE_START, nodes=fact.nodes)
        if fact.left:
            exit_code = run.luck.exit_code
            self._book.note_of(fact.left, run, _BINARY_EXECUTE_END, value=exit_code)
        self._book.note_of(now, run, _CHECK_START)
        if code is None:
            self.verdict(now, run, *self._judged(now, run))
        else:
            ended_for = self._conductor.ended_for(run.id)
            self.verdict(now, run, *why_ended(run, fact, ended_for, self._conductor.held))
        return True

    def _judged(self, now: int, run: RehearsedRun) -> tuple[Code, str]:
        """The verdict of a run whose script came to its end, its figures noted."""
        found: list[Figure] = []
        if not run.luck.exit_code and run.manner.figures:
            found += figures(self._seed, run.case.test, run.attempt, run.manner)
        for figure in found:
            self._book.note_figure(now, run, figure)
        return judge(run, found, self._references)

    def verdict(self, now: int, run: RehearsedRun, code: Code, why: str) -> None:
        again = self._conductor.runs_again(run.number, run.id, code.number)
        self._book.note_of(
            now, run, _CHECK_END, value=code.number, alias=code.name, text=why, again=again
        )
        del self.runs[run.id]
        self.all_passed &= again or code is PASS

    def _quiet(self, now: int, run: RehearsedRun) -> bool:
        """The output of a run that hangs has not grown for as long as its plan bears."""
        if run.id not in self.runs:
            return False
        self._book.note_of(now, run, _OUTPUT_QUIET, value=run.entry.quiet_after)
        return True


_HANDLERS: dict[type, Callable[[SimulatedRuns, int, RehearsedRun, Any], bool]] = {
    Queued: SimulatedRuns._on_queued,
    Refused: SimulatedRuns._on_refused,
    Started: SimulatedRuns._on_started,
    Hangs: SimulatedRuns._on_hangs,
    Over: SimulatedRuns._on_over,
}


def ns(span: float) -> int:
    return round(span * SECOND_NS)


def sooner(one: int | None, other: int | None) -> int | None:
    """The earlier of two times, either of which may be missing."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
