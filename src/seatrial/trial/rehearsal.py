"""The driver in virtual time: the very same conductor, bound to a simulated cluster.

    rehearsal = Rehearsal(record, cases, manners, tell)
    ending = rehearsal.drive()          # every event goes to ``tell``, as it would to the journal

It carries out commands and makes events of facts as the real driver does, in the same order. Time
is a number that jumps to when something happens next; it starts when the trial was created.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

from seatrial.backends.protocol import Ended, NodesDown, NodesUp, Queued, Refused, Started, Trouble
from seatrial.backends.simulated.cluster import SimulatedCluster, Told
from seatrial.backends.simulated.jobs import ScriptEnded, ScriptStarted
from seatrial.conduct.commands import (
    Alert,
    Cancel,
    Command,
    ExcludeNodes,
    Finish,
    Launch,
    Reject,
    StartBuild,
    StopTest,
    Wake,
)
from seatrial.conduct.conductor import Conductor, Limits
from seatrial.journal.codes import LAUNCH_FAILED, PASS, TIMEOUT, Code, Name, code_of
from seatrial.journal.events import Event
from seatrial.machine.facts import unfold
from seatrial.suite.model import Case, Test
from seatrial.trial.folder import Record, references_of
from seatrial.trial.luck import Manner, draw, figures
from seatrial.trial.rehearsed_gauges import RehearsedGauge, gauges_of
from seatrial.trial.rehearsed_runs import RehearsedRun, job_of, judge, why_ended
from seatrial.units import SECOND_NS, seconds, show_seconds
from seatrial.verify.figures import Figure

JOBS = 1000  # given to a scheduler at a time, as to a real one
BUILDS = 2  # at a time, as the smallest host would
LONGEST_LULL_S = 30 * 86400.0  # in which nothing is in flight and nothing starts

# Plain text: an event with a member of an enumeration takes three times as long to make.
_ALERT = Name.ALERT.value
_BINARY_EXECUTE_END = Name.BINARY_EXECUTE_END.value
_BINARY_EXECUTE_START = Name.BINARY_EXECUTE_START.value
_BUILD_END = Name.BUILD_END.value
_BUILD_START = Name.BUILD_START.value
_CHECK_END = Name.CHECK_END.value
_CHECK_START = Name.CHECK_START.value
_GAUGE = Name.GAUGE.value
_JOB_END = Name.JOB_END.value
_JOB_QUEUED = Name.JOB_QUEUED.value
_JOB_START = Name.JOB_START.value
_LOGGING_START = Name.LOGGING_START.value
_METRIC = Name.METRIC.value
_NODE_DOWN = Name.NODE_DOWN.value
_NODE_EXCLUDE = Name.NODE_EXCLUDE.value
_NODE_UP = Name.NODE_UP.value
_OUTPUT_QUIET = Name.OUTPUT_QUIET.value
_SUBMIT_END = Name.SUBMIT_END.value
_SUBMIT_START = Name.SUBMIT_START.value
_TEST_STOP = Name.TEST_STOP.value
_TRIAL_END = Name.TRIAL_END.value
_TRIAL_PAUSE = Name.TRIAL_PAUSE.value
_TRIAL_START = Name.TRIAL_START.value


class Ending(NamedTuple):
    """How a rehearsal ended: whether the trial came to its end, why not, and when (ns)."""

    complete: bool
    why: str
    time: int


class Rehearsal:
    """Drives one trial. ``manners`` tell of each test how its runs turn out."""

    def __init__(
        self,
        record: Record,
        cases: Sequence[Case],
        manners: Mapping[str, Manner],
        tell: Callable[[Event], None],
    ) -> None:
        self.record = record
        self.now = record.created
        self._manners = manners
        self._tell = tell
        machine, policy = record.machine, record.policy
        jobs = record.asked.jobs or machine.jobs or JOBS
        limits = Limits(jobs=jobs, builds=BUILDS, refill=max(1, jobs // 4))
        self.conductor = Conductor(f"{record.tag} {record.created}", cases, limits, policy)
        names = [name for kind in machine.nodes for name in unfold(kind.names)]
        self.cluster = SimulatedCluster(machine, names, record.seed, self.now, policy.outages)
        self._references = references_of(record)
        self._lacking = {test.name: _lacking(record, test) for test in record.tests.values()}
        partition = machine.slurm.partition
        self._partition = partition if partition in machine.rehearsal.partitions else ""
        self._tag, self._machine = record.tag, machine.machine
        self._apply = self.conductor.apply
        self._runs: dict[str, RehearsedRun] = {}
        self._attempts = dict.fromkeys(record.tests, 0)
        self._all_passed = True
        self._to_come: list[tuple[int, int, Callable[[Any], bool], Any]] = []
        self._numbered = 0
        self._look_by: int | None = None  # when there may be something to decide, if not before
        self._lull = self.now  # since when nothing was in flight

    def drive(self) -> Ending:
        """See the trial through."""
        self._note(_TRIAL_START, nodes=self.record.host)
        for gauge in gauges_of(self.record):
            self._at(self.now, self._read_gauge, gauge)
        while True:
            self._look_by = None
            commands = self.conductor.decide(self.now)
            last = commands[-1] if commands else None
            if isinstance(last, Finish):
                return self._finish(last.complete, last.why)
            self._carry_out(commands)
            if why := self._go_on(last.time if isinstance(last, Wake) else None):
                return self._finish(False, why)

    def _finish(self, complete: bool, why: str) -> Ending:
        if complete:
            self._note(_TRIAL_END, value=0 if self._all_passed else 1)
        else:
            self._note(_TRIAL_PAUSE, text=why)
        return Ending(complete, why, self.now)

    # ---- time -----------------------------------------------------------------------------

    def _at(self, time: int, happen: Callable[[Any], bool], what: object) -> None:
        """``happen`` says whether there is something to decide."""
        self._numbered += 1
        heappush(self._to_come, (time, self._numbered, happen, what))

    def _go_on(self, wake: int | None) -> str:
        """Let time pass until there is something to decide; why there never will be, or ""."""
        to_come, cluster = self._to_come, self.cluster
        if self._runs:
            self._lull = self.now
        latest = self._lull + _ns(LONGEST_LULL_S)
        while True:
            limit = _sooner(wake, self._look_by)
            if to_come and (limit is None or to_come[0][0] < limit):
                limit = to_come[0][0]
            time = cluster.next_time()
            if time is None or (limit is not None and limit < time):
                if limit is None:
                    return "nothing more can happen, and runs are wanted that nothing starts"
                time = limit
            if time > latest and not self._runs:
                return f"nothing was started for {show_seconds(LONGEST_LULL_S)}"
            self.now = time = max(time, self.now)
            happened = time in (wake, self._look_by)
            for _, fact in cluster.advance(time):
                happened |= self._receive(fact)
            while to_come and to_come[0][0] <= time:
                _, _, happen, what = heappop(to_come)
                happened |= happen(what)
            if happened:
                return ""

    # ---- commands -------------------------------------------------------------------------

    def _carry_out(self, commands: Iterable[Command]) -> None:
        launches: list[tuple[RehearsedRun, Launch]] = []
        cancels: list[str] = []
        for command in commands:
            if isinstance(command, Launch):
                launches.append((self._begin(command), command))
            elif isinstance(command, Cancel):
                run = self._runs[command.run_id]
                if not run.cancelled:
                    run.cancelled = True
                    cancels.append(run.id)
            elif isinstance(command, StartBuild):
                self._start_build(command.key)
            elif not isinstance(command, Wake | Finish):
                self._write_down(command)
                self._at(self.now, _true, None)  # what follows from it may be all that is left
        if launches:
            self._submit(launches)
        if cancels:
            self.cluster.cancel(self.now, cancels)

    def _write_down(self, command: Reject | StopTest | ExcludeNodes | Alert) -> None:
        """Carry out what is done by noting it."""
        if isinstance(command, Reject):
            self._verdict(self._begin(command), code_of(command.code), command.why)
        elif isinstance(command, StopTest):
            self._note(_TEST_STOP, command.test, text=command.why)
        elif isinstance(command, ExcludeNodes):
            self._note(_NODE_EXCLUDE, nodes=command.nodes, text=command.why)
        else:
            self._note(_ALERT, command.subject, alias=command.kind, text=command.text)

    def _begin(self, command: Launch | Reject) -> RehearsedRun:
        case = self.conductor.cases[command.case]
        test, policy = case.test, self.record.policy
        run = self._runs[command.run_id] = RehearsedRun(
            command.run_id,
            command.case,
            case,
            self.record.tests[test].app,
            policy.entries[policy.entry_of[command.case]],
            self._manners[test],
        )
        self._note_of(run, _LOGGING_START)
        return run

    def _submit(self, launches: Sequence[tuple[RehearsedRun, Launch]]) -> None:
        """Those of a case go together, as in an array."""
        arrays: dict[tuple[int, str], str] = {}
        jobs = []
        for run, launch in launches:
            array = arrays.setdefault((launch.case, launch.avoid), run.id)
            self._note_of(run, _SUBMIT_START, alias=array, target=launch.target, stage=launch.stage)
            test = run.case.test
            self._attempts[test] = run.attempt = self._attempts[test] + 1
            run.luck = draw(self.record.seed, test, run.attempt, run.manner)
            jobs.append(job_of(run, launch, self._partition, self._lacking[test]))
        self.cluster.submit(self.now, jobs)

    # ---- builds, gauges, silence ----------------------------------------------------------

    def _start_build(self, key: str) -> None:
        test = next(case.test for case in self.conductor.cases if case.build == key)
        self._note(_BUILD_START, test, alias=key)
        build = self.record.tests[test].build
        limit = seconds(build.timeout) if build else 0.0
        takes = self._manners[test].build
        about: dict[str, Any] = {"alias": key, "test": test, "value": PASS.number}
        if limit and takes > limit:
            takes = limit
            about |= {"value": TIMEOUT.number, "text": f"ended after {show_seconds(limit)}"}
        self._at(self.now + _ns(takes), self._end_build, about)

    def _end_build(self, about: dict[str, Any]) -> bool:
        self._note(_BUILD_END, **about)
        return True

    def _read_gauge(self, gauge: RehearsedGauge) -> bool:
        """There is something to decide only where a throttle has opened or closed."""
        self._at(self.now + gauge.every, self._read_gauge, gauge)
        value = gauge.read(self.now, self.cluster.load)
        if value is None:
            return False
        before = self._closed()
        self._note(_GAUGE, alias=gauge.name, value=value)
        return before != self._closed()

    def _closed(self) -> list[bool]:
        admission = self.conductor.admission
        return [throttle.closed(self.now, admission.start) for throttle in admission.throttles]

    def _quiet(self, run: RehearsedRun) -> bool:
        """The output of a run that hangs has not grown for as long as its plan bears."""
        if run.id not in self._runs:
            return False
        self._note_of(run, _OUTPUT_QUIET, value=run.entry.quiet_after)
        return True

    # ---- facts ----------------------------------------------------------------------------

    def _receive(self, fact: Told) -> bool:
        """Make events of a fact; whether there may be something to decide."""
        handler = _HANDLERS.get(type(fact))
        if handler is not None:
            run = self._runs.get(fact.run_id)  # type: ignore[union-attr]
            return run is not None and handler(self, run, fact)
        if isinstance(fact, NodesDown):
            self._note(_NODE_DOWN, nodes=fact.nodes, text=fact.why)
        elif isinstance(fact, NodesUp):
            self._note(_NODE_UP, nodes=fact.nodes)
        elif isinstance(fact, Trouble):
            self._note(_ALERT, alias="scheduler", text=fact.text)
        return True

    def _on_queued(self, run: RehearsedRun, fact: Queued) -> bool:
        """Nothing follows from that but, in time, an alert that it waits for long."""
        self._note_of(run, _SUBMIT_END, value=0)
        self._note_of(run, _JOB_QUEUED, job_id=fact.job_id)
        watch = self.conductor.policy.watch
        if watch.wait_factor:
            self._look_by = _sooner(self._look_by, self.now + _ns(watch.wait_least))
        return False

    def _on_refused(self, run: RehearsedRun, fact: Refused) -> bool:
        self._note_of(run, _SUBMIT_END, value=1, text=fact.why)
        self._verdict(run, LAUNCH_FAILED, fact.why)
        return True

    def _on_started(self, run: RehearsedRun, fact: Started) -> bool:
        self._note_of(run, _JOB_START, nodes=fact.nodes)
        return True

    def _on_script_started(self, run: RehearsedRun, fact: ScriptStarted) -> bool:
        run.began, run.on = self.now, fact.nodes
        quiet = run.entry.quiet_after
        if run.luck.hangs and quiet:
            self._at(self.now + _ns(run.luck.elapsed + quiet), self._quiet, run)
        return False

    def _on_script_ended(self, run: RehearsedRun, fact: ScriptEnded) -> bool:
        run.left, run.exit_code = self.now, fact.exit_code
        return False

    def _on_ended(self, run: RehearsedRun, fact: Ended) -> bool:
        code = fact.code
        if code == TIMEOUT.number and run.left and run.manner.keeps:
            code = None  # its test was over; it kept its nodes as long as it could
        text = "" if fact.exit_code is None else f"exit code {fact.exit_code}"
        self._note_of(run, _JOB_END, value=code or 0, alias=fact.state, text=text, nodes=fact.nodes)
        if run.began:
            self._note_of(run, _BINARY_EXECUTE_START, time=run.began, nodes=run.on)
        if run.left:
            self._note_of(run, _BINARY_EXECUTE_END, time=run.left, value=run.exit_code)
        self._note_of(run, _CHECK_START)
        if code is None:
            self._verdict(run, *self._judged(run))
        else:
            ended_for = self.conductor.ended_for(run.id)
            self._verdict(run, *why_ended(run, fact, ended_for, self.conductor.held))
        return True

    def _judged(self, run: RehearsedRun) -> tuple[Code, str]:
        """The verdict of a run whose script came to its end, its figures noted."""
        found: list[Figure] = []
        if not run.exit_code and run.manner.figures:
            found += figures(self.record.seed, run.case.test, run.attempt, run.manner)
        for figure in found:
            self._note_of(
                run,
                _METRIC,
                alias=figure.name,
                value=figure.value,
                unit=figure.unit,
                better=figure.better,
            )
        return judge(run, found, self._references)

    # ---- events ---------------------------------------------------------------------------

    def _verdict(self, run: RehearsedRun, code: Code, why: str) -> None:
        again = self.conductor.runs_again(run.number, run.id, code.number)
        self._note_of(run, _CHECK_END, value=code.number, alias=code.name, text=why, again=again)
        del self._runs[run.id]
        self._all_passed &= again or code is PASS

    def _note(self, name: str, test: str = "", **more: Any) -> None:
        """Make an event about the trial, tell it, apply it."""
        known = self.record.tests.get(test)
        event = Event(
            time=self.now,
            event=name,
            trial=self._tag,
            machine=self._machine,
            app=known.app if known else "",
            test=test,
            **more,
        )
        self._tell(event)
        self._apply(event)

    def _note_of(self, run: RehearsedRun, name: str, time: int = 0, **more: Any) -> None:
        """Make an event about a run, tell it, apply it."""
        case = run.case
        event = Event(
            time=time or self.now,
            event=name,
            trial=self._tag,
            machine=self._machine,
            app=run.app,
            test=case.test,
            case=case.id,
            run_id=run.id,
            **more,
        )
        self._tell(event)
        self._apply(event)


_HANDLERS: dict[type, Callable[[Rehearsal, RehearsedRun, Any], bool]] = {
    Queued: Rehearsal._on_queued,
    Refused: Rehearsal._on_refused,
    Started: Rehearsal._on_started,
    ScriptStarted: Rehearsal._on_script_started,
    ScriptEnded: Rehearsal._on_script_ended,
    Ended: Rehearsal._on_ended,
}


def _ns(span: float) -> int:
    return round(span * SECOND_NS)


def _sooner(one: int | None, other: int | None) -> int | None:
    """The earlier of two times, either of which may be missing."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _true(_: object) -> bool:
    return True


def _lacking(record: Record, test: Test) -> str:
    """The nodes that have not all the features that a test needs, folded."""
    needed = set(test.requires.features)
    return ",".join(kind.names for kind in record.machine.nodes if needed - set(kind.features))
