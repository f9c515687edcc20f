"""What becomes of the runs of a rehearsal: the updates of its cluster, made into events.

runs = SimulatedRuns(record, conductor, writer, at)
runs.begin(now, run)                      # launched, or refused
if runs.receive(now, update): ...         # there may be something to decide
"""

import math
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from heapq import heapify, heapreplace
from struct import unpack
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.decide.conductor import Conductor, Launch
from seatrial.execute.backends import NodesDown, NodesUp, Queued, Refused, Started, walltime_of
from seatrial.execute.ledger import RunEventHeader, header_of
from seatrial.execute.run_collector import cancellation, end_reason
from seatrial.execute.trial_folder import Record, references_of
from seatrial.journal import events
from seatrial.journal.events import Event
from seatrial.judge.references import References, compare
from seatrial.judge.verdict import KnownFailures
from seatrial.model import codes
from seatrial.model.codes import CANCELLED, FAILED, LOST, PASS, TIMEOUT, WRONG_ANSWER, Code
from seatrial.model.figures import ELAPSED, MetricValue
from seatrial.model.policy import Entry
from seatrial.model.test import Case
from seatrial.plugins.rehearsal.cluster import SimulatedUpdate
from seatrial.plugins.rehearsal.queue import FinishedJob, Hangs, SimulatedJob
from seatrial.units import SECOND_NS, Direction, ns

# ---- chance --------------------------------------------------------------------------------------
#
# How simulated runs turn out: by chance, but by the same chance whatever the plan is.
#
#     sampled = draw(seed=1, test="cm4", attempt=17, run_model=run_model)
#     sampled.elapsed, sampled.hangs, sampled.wrong
#
# What is drawn depends on the seed, the test and the number of its attempt alone, so that two
# plans that are rehearsed with one seed get the same outcomes, test by test.


_STEP = 2.0**-52


class Quantity(NamedTuple):
    """A figure of merit: its normal distribution."""

    name: str
    mean: float
    sd: float
    unit: str
    better: Direction


class RunModel(NamedTuple):
    """How runs of a test turn out, in plain numbers; times in seconds.

    Elapsed times are drawn from ``values``, each as likely as the others; without them they are
    log-normal with this mean and standard deviation, as times are never negative and runs are late
    more often than early.
    """

    mean: float = 0.0
    sd: float = 0.0
    values: tuple[float, ...] = ()
    #: The time of its build.
    build: float = 0.0
    #: Shares of the runs.
    wrong: float = 0.0
    fails: float = 0.0
    hangs: float = 0.0
    #: How long a job keeps its nodes after its script's end; inf: to its walltime.
    keeps: float = 0.0
    #: Shares of the time.
    metadata: float = 0.0
    objects: float = 0.0
    #: GB/s that a run asks for.
    bandwidth: float = 0.0
    figures: tuple[Quantity, ...] = ()


class SampledOutcome(Struct, frozen=True):
    """What one run would do if nothing came between. ``elapsed`` in seconds: to its end, or until
    it fails or hangs."""

    elapsed: float
    exit_code: int = 0
    hangs: bool = False
    wrong: bool = False


def draw(seed: int | str, test: str, attempt: int, run_model: RunModel) -> SampledOutcome:
    """The outcome of an attempt of a test. One that fails or hangs does so at any point of its
    time, each as likely as the others."""
    one, two, fate, point = units_of(f"{seed}\n{test}\n{attempt}", 4)
    if run_model.values:
        elapsed = run_model.values[int(one * len(run_model.values))]
    elif run_model.sd:
        elapsed = _log_normal(run_model.mean, run_model.sd, _normal(one, two))
    else:
        elapsed = run_model.mean
    if fate < run_model.hangs:
        return SampledOutcome(elapsed * point, hangs=True)
    if fate < run_model.hangs + run_model.fails:
        return SampledOutcome(elapsed * point, exit_code=1)
    return SampledOutcome(elapsed, wrong=fate < run_model.hangs + run_model.fails + run_model.wrong)


def figures(seed: int | str, test: str, attempt: int, run_model: RunModel) -> Iterator[MetricValue]:
    """The figures of merit of an attempt that came to its end."""
    for name, mean, sd, unit, better in run_model.figures:
        one, two = units_of(f"{seed}\n{test}\n{attempt}\n{name}", 2)
        yield MetricValue(name, mean + sd * _normal(one, two), unit, better)


def units_of(about: str, count: int) -> list[float]:
    """Return so many numbers (at most 8), evenly between 0 and 1, both excluded. They depend on the
    text alone."""
    digest = blake2b(about.encode(), digest_size=8 * count).digest()
    return [((number >> 12) + 0.5) * _STEP for number in unpack(f"<{count}Q", digest)]


def _normal(one: float, two: float) -> float:
    """A standard normal number from two even ones (Box and Muller 1958)."""
    return math.sqrt(-2 * math.log(one)) * math.cos(2 * math.pi * two)


def _log_normal(mean: float, sd: float, normal: float) -> float:
    variance = math.log1p((sd / mean) ** 2)
    return mean * math.exp(math.sqrt(variance) * normal - variance / 2)


# ---- rehearsed run -------------------------------------------------------------------------------
#
# A run of a rehearsal: what the simulated cluster is given of it, and how it is judged.


UNDRAWN = SampledOutcome(0.0)


class RehearsedRun(Struct):
    """A run without a verdict, and what it is drawn to do. ``number`` is the position of its case,
    ``header`` what each of its events has; ``attempt`` counts the runs of its test."""

    id: str
    number: int
    case: Case
    header: RunEventHeader
    entry: Entry
    run_model: RunModel
    stage: str = ""
    attempt: int = 0
    sampled: SampledOutcome = UNDRAWN
    cancelled: bool = False
    recalled: bool = False


def job_of(
    run: RehearsedRun, launch: Launch, partition: str, lacking: str, cores: int
) -> SimulatedJob:
    """The job that a run is; ``lacking`` are nodes that have not the features it needs, ``cores``
    those that it takes of a shared node."""
    case, run_model, sampled = run.case, run.run_model, run.sampled
    return SimulatedJob(
        run_id=run.id,
        nodes=case.nodes,
        cores=cores,
        walltime=case.walltime,
        elapsed=sampled.elapsed,
        exit_code=sampled.exit_code,
        hangs=sampled.hangs,
        keeps=min(run_model.keeps, case.walltime),
        avoid=",".join(filter(None, (launch.avoid, lacking))) if lacking else launch.avoid,
        node=launch.nodes or case.node,
        partition=partition,
        file_system=run.entry.file_system,
        target=launch.target.partition("/")[2],
        opens=run.entry.opens,
        metadata=run_model.metadata,
        objects=run_model.objects,
        bandwidth=run_model.bandwidth,
    )


def with_course(job: SimulatedJob, run: RehearsedRun) -> SimulatedJob:
    """Return a job with the course that its run is now drawn to take."""
    sampled = run.sampled
    return replace(
        job,
        elapsed=sampled.elapsed,
        exit_code=sampled.exit_code,
        hangs=sampled.hangs,
        keeps=min(run.run_model.keeps, run.case.walltime),
    )


def judge(
    run: RehearsedRun, elapsed: float, figures: Sequence[MetricValue], references: References
) -> tuple[Code, str]:
    """Return the verdict of a run whose script came to its end after ``elapsed`` seconds with these
    figures, and the reason."""
    if run.sampled.exit_code:
        return FAILED, f"exit code {run.sampled.exit_code}, not 0"
    if run.sampled.wrong:
        return WRONG_ANSWER, "a check of its answer did not hold"
    if (run.case.test, ELAPSED) in references.by_metric:
        has_elapsed = any(figure.name == ELAPSED for figure in figures)
        figures = (
            figures if has_elapsed else [*figures, MetricValue(ELAPSED, elapsed, "s", "lower")]
        )
    for figure in figures:
        _, finding = compare(references, run.case, figure, run.stage)
        if finding is not None:
            return finding
    return PASS, ""


# ---- event writer --------------------------------------------------------------------------------
#
# The events of a rehearsal: applies each at once, and passes them on in portions.
#
#     writer = EventWriter(record, conductor.apply, tell)
#     writer.add(JobStarted(time=now, **run.header, nodes="n[1-4]"))
#     writer.tell_all()
#
# A job has a dozen events, and a rehearsal a million jobs. Three of the events change nothing that
# the next event of their run would not change, which is of the same time: they are told, but not
# applied, and not made where no journal is written.


PORTION = 500  # events that are told together: their buffers are small enough to be used again

Tell = Callable[[Sequence[Event]], None]
"""Is given the events of a rehearsal, in order, some at a time."""


class EventWriter:
    """Events of one trial. ``apply`` is called with each when it is added. ``in_full``: those that
    change nothing are to be added, too, as people read them in the journal."""

    def __init__(
        self, record: Record, apply: Callable[[Event], None], tell: Tell, in_full: bool
    ) -> None:
        self.in_full = in_full
        self._record = record
        self._apply = apply
        self._tell = tell
        self._untold: list[Event] = []

    def note(self, now: int, event: Event) -> None:
        """Complete an event that is of no run, and add it."""
        self.add(replace(event, time=now, **header_of(self._record, event)))

    def add(self, event: Event) -> None:
        """Apply an event, and keep it to be told."""
        self._untold.append(event)
        self._apply(event)

    def add_step(self, event: Event) -> None:
        """Keep an event to be told that changes nothing; another one of its run and time
        follows."""
        self._untold.append(event)

    def tell_some(self) -> None:
        """Tell what there is if it is enough for a portion."""
        if len(self._untold) >= PORTION:
            self.tell_all()

    def tell_all(self) -> None:
        """Tell all that was not told yet."""
        untold, self._untold = self._untold, []
        self._tell(untold)


# ---- simulated runs ------------------------------------------------------------------------------


At = Callable[[int, Callable[[int, Any], bool], object], None]
"""Plans what is to happen at a time; that says whether there is something to decide."""


class SimulatedRuns:
    """The runs without a verdict, by id. ``look_by`` is when there may be something to decide
    if nothing is told before: no sooner than ``patience`` (ns; None: never) after a run was queued.
    ``all_passed`` tells of the verdicts that stand."""

    def __init__(
        self, record: Record, luck: str, conductor: Conductor, writer: EventWriter, at: At
    ) -> None:
        self._luck = luck
        self._references = references_of(record)
        self._known = KnownFailures(record.known_failures)
        self._conductor = conductor
        self._writer = writer
        self._at = at
        self.runs: dict[str, RehearsedRun] = {}
        self.look_by: int | None = None
        watch = conductor.state.policy.watch
        self.patience = ns(watch.wait_least) if watch.wait_factor else None
        self.all_passed = True

    def begin(self, now: int, run: RehearsedRun) -> None:
        """A run is launched, or refused."""
        self.runs[run.id] = run
        if self._writer.in_full:
            self._writer.add_step(events.RunCreated(time=now, **run.header))

    def receive(self, now: int, update: SimulatedUpdate) -> bool:
        """Make events of an update; whether there may be something to decide."""
        handler = _HANDLERS.get(type(update))
        if handler is not None:
            run = self.runs.get(update.run_id)  # type: ignore[union-attr]
            return run is not None and handler(self, now, run, update)
        if isinstance(update, NodesDown):
            self._writer.note(now, events.NodeDown(nodes=update.nodes, reason=update.reason))
        elif isinstance(update, NodesUp):
            self._writer.note(now, events.NodeUp(nodes=update.nodes))
        return True

    def _on_queued(self, now: int, run: RehearsedRun, update: Queued) -> bool:
        """Nothing follows from that but, in time, an alert that it waits for long."""
        if self._writer.in_full:
            self._writer.add_step(events.SubmitEnded(time=now, **run.header, refused=0))
        self._writer.add(events.JobQueued(time=now, **run.header, job_id=update.job_id))
        if self.patience is not None and self.look_by is None:
            self.look_by = now + self.patience
        return False

    def _on_refused(self, now: int, run: RehearsedRun, update: Refused) -> bool:
        self._writer.add(
            events.SubmitEnded(time=now, **run.header, refused=1, reason=update.reason)
        )
        self.verdict(now, run, codes.LAUNCH_FAILED, update.reason)
        return True

    def _on_started(self, now: int, run: RehearsedRun, update: Started) -> bool:
        state = self._conductor.state
        state.changed = False  # what was told before has been answered
        self._writer.add(events.JobStarted(time=now, **run.header, nodes=update.nodes))
        return state.changed

    def _on_hangs(self, now: int, run: RehearsedRun, update: Hangs) -> bool:
        if quiet := run.entry.quiet_after:
            self._at(now + ns(run.sampled.elapsed + quiet), self._quiet, run)
        return False

    def _on_over(self, now: int, run: RehearsedRun, update: FinishedJob) -> bool:
        add = self._writer.add
        code = _code_of(run, update)
        ended = events.JobEnded(
            time=now,
            **run.header,
            code=code or 0,
            state=update.state,
            text="" if update.exit_code is None else f"exit code {update.exit_code}",
            nodes=update.nodes,
            exit_code=update.exit_code,
            recalled=code == codes.RECALLED.number,
        )
        add(ended)
        if update.script_started:
            start, nodes = update.script_started, update.nodes
            add(events.ScriptStarted(time=start, **run.header, nodes=nodes))
        if update.script_ended:
            end, status = update.script_ended, run.sampled.exit_code
            add(events.ScriptEnded(time=end, **run.header, exit_code=status))
        if self._writer.in_full:
            self._writer.add_step(events.CheckStarted(time=now, **run.header))
        if code is None:
            elapsed = (update.script_ended - update.script_started) / SECOND_NS
            self.verdict(now, run, *self._judged(now, run, elapsed))
        else:
            self.verdict(now, run, *self._reason(run, update, code))
        return True

    def _reason(self, run: RehearsedRun, update: FinishedJob, code: int) -> tuple[Code, str]:
        """Return the verdict of a run whose job decides it, and the reason."""
        state = update.state
        if run.cancelled and code == codes.CANCELLED.number:
            code, state = cancellation(self._conductor.state, run.id)
        verdict = codes.code_of(code)
        return verdict, end_reason(verdict, state, update.nodes, run.case.walltime)

    def _judged(self, now: int, run: RehearsedRun, elapsed: float) -> tuple[codes.Code, str]:
        """The verdict of a run whose script came to its end, its figures noted."""
        metrics: list[MetricValue] = []
        if not run.sampled.exit_code and run.run_model.figures:
            metrics += figures(self._luck, run.case.test, run.attempt, run.run_model)
        for figure in metrics:
            recorded = events.MetricRecorded(
                time=now,
                **run.header,
                metric=figure.name,
                value=figure.value,
                unit=figure.unit,
                better=figure.better,
            )
            self._writer.add(recorded)
        return judge(run, elapsed, metrics, self._references)

    def verdict(self, now: int, run: RehearsedRun, code: codes.Code, reason: str) -> None:
        code, reason, known = self._known.judged(run.case, code, reason, now)
        reruns = self._conductor.state.will_rerun(run.number, run.id, code.number)
        judged = events.RunJudged(
            time=now,
            **run.header,
            code=code.number,
            verdict=code.name,
            reason=reason,
            will_rerun=reruns,
            known=known,
        )
        self._writer.add(judged)
        del self.runs[run.id]
        self.all_passed &= reruns or code in (codes.PASS, codes.KNOWN)

    def _quiet(self, now: int, run: RehearsedRun) -> bool:
        """The output of a run that hangs has not grown for as long as its plan bears."""
        if run.id not in self.runs:
            return False
        self._writer.add(events.OutputQuiet(time=now, **run.header, seconds=run.entry.quiet_after))
        return True


def _code_of(run: RehearsedRun, update: FinishedJob) -> int | None:
    """Return the verdict code that the end of a job gives a run; None if its script decides."""
    code = update.code
    if run.recalled and code == codes.CANCELLED.number and not update.nodes:
        return codes.RECALLED.number
    if code == codes.TIMEOUT.number and update.script_ended and run.run_model.keeps:
        return None  # its test was over; it kept its nodes as long as it could
    return code


_HANDLERS: dict[type, Callable[[SimulatedRuns, int, RehearsedRun, Any], bool]] = {
    Queued: SimulatedRuns._on_queued,
    Refused: SimulatedRuns._on_refused,
    Started: SimulatedRuns._on_started,
    Hangs: SimulatedRuns._on_hangs,
    FinishedJob: SimulatedRuns._on_over,
}


def sooner(one: int | None, other: int | None) -> int | None:
    """The earlier of two times, either of which may be missing."""
    if one is None or other is None:
        return other if one is None else one
    return one if one < other else other


# ---- simulated bundles ---------------------------------------------------------------------------
#
# Bundles of a rehearsal: one job of the simulated cluster each, in which runs take turns.
#
#     job = bundles.begin("b1", jobs, at_once, cores)     # the job that the cluster is given
#     bundles.receive(now, update)                        # what the cluster says of it
#
# Each run takes the time that it was drawn to take, and has the events of a run with a job of its
# own. Runs that share an allocation do not slow each other down on file systems here.


LAST_SECONDS = 1.0  # for which the job of a bundle goes on after its last run


class _Bundle(Struct, eq=False):
    """The runs of a bundle that are left, by id: those that wait, and those that run, with their
    starts (ns). ``over``: its job has ended."""

    waiting: dict[str, SimulatedJob]
    at_once: int
    running: dict[str, tuple[SimulatedJob, int]] = {}
    nodes: str = ""
    over: bool = False


class SimulatedBundles:
    """The bundles of a trial whose jobs have not ended. ``again`` submits runs that never began, in
    a bundle of their own."""

    def __init__(
        self, runs: SimulatedRuns, at: At, again: Callable[[int, Sequence[str]], None]
    ) -> None:
        self._runs = runs
        self._at = at
        self._again = again
        self._bundles: dict[str, _Bundle] = {}  # by the id of the job
        self._of_run: dict[str, str] = {}  # the ids of jobs

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._of_run

    def begin(
        self, key: str, jobs: Sequence[SimulatedJob], at_once: int, cores: int
    ) -> SimulatedJob:
        """Return the job of a bundle of runs, with this id. ``cores`` are those that it takes of a
        shared node."""
        self._bundles[key] = _Bundle({job.run_id: job for job in jobs}, at_once)
        self._of_run |= {job.run_id: key for job in jobs}
        ends = [0.0] * at_once
        heapify(ends)
        for job in jobs:
            heapreplace(ends, ends[0] + _time_of(job))
        return replace(
            jobs[0],
            run_id=key,
            cores=cores,
            walltime=walltime_of([job.walltime for job in jobs], at_once),
            elapsed=max(ends) + LAST_SECONDS,
            exit_code=0,
            hangs=False,
            keeps=0.0,
            opens=0.0,
            metadata=0.0,
            objects=0.0,
        )

    def receive(self, now: int, update: SimulatedUpdate) -> bool | None:
        """Make events of an update about a bundle; return whether there may be something to decide.
        Return None for one that is about no bundle."""
        key = getattr(update, "run_id", "")
        bundle = self._bundles.get(key)
        if bundle is None:
            return None
        if isinstance(update, Queued | Refused):
            news = [self._runs.receive(now, replace(update, run_id=run)) for run in bundle.waiting]
            if isinstance(update, Refused):
                self._drop(key)
            return any(news)
        if isinstance(update, Started):
            bundle.nodes = update.nodes
            return self._start(now, bundle)
        if isinstance(update, FinishedJob):
            return self._finish(now, key, update)
        return False

    def _start(self, now: int, bundle: _Bundle) -> bool:
        """Begin as many of the runs that wait as may run."""
        while bundle.waiting and len(bundle.running) < bundle.at_once:
            run_id = next(iter(bundle.waiting))
            job = bundle.waiting.pop(run_id)
            bundle.running[run_id] = job, now
            self._runs.receive(now, Started(run_id, bundle.nodes))
            self._at(now + ns(_time_of(job)), self._end, (bundle, run_id))
        return True

    def _end(self, now: int, what: tuple[_Bundle, str]) -> bool:
        """End a run by itself, or at its walltime; begin the next one."""
        bundle, run_id = what
        if bundle.over or run_id not in bundle.running:
            return False
        job, began = bundle.running.pop(run_id)
        late = job.hangs or job.elapsed > job.walltime
        code, state = (TIMEOUT.number, "timeout") if late else (None, "exited")
        self._over(now, run_id, code, state, bundle.nodes, began, 0 if late else now)
        return self._start(now, bundle)

    def _over(
        self,
        now: int,
        run_id: str,
        code: int | None,
        state: str,
        nodes: str,
        began: int = 0,
        ended: int = 0,
    ) -> None:
        del self._of_run[run_id]
        exit_code = 0 if code is None else None
        finished = FinishedJob(
            run_id, code, state, exit_code, nodes, script_started=began, script_ended=ended
        )
        self._runs.receive(now, finished)

    def _finish(self, now: int, key: str, update: FinishedJob) -> bool:
        """End what is left with the job; submit again what never began, unless nothing did."""
        bundle = self._bundles.pop(key)
        bundle.over = True
        code = update.code if update.code is not None else LOST.number
        any_began = bool(bundle.nodes)
        for run_id, (_, began) in bundle.running.items():
            self._over(now, run_id, code, update.state, update.nodes, began)
        again = []
        for run_id in bundle.waiting:
            if any_began and not self._unwanted(run_id):
                del self._of_run[run_id]
                again.append(run_id)
            else:
                self._over(now, run_id, CANCELLED.number if any_began else code, update.state, "")
        if again:
            self._again(now, again)
        return True

    def _unwanted(self, run_id: str) -> bool:
        run: RehearsedRun = self._runs.runs[run_id]
        return run.cancelled or run.recalled

    def cancel(self, now: int, run_ids: Sequence[str], pending_only: bool = False) -> list[str]:
        """End runs of bundles. Return the ids of the jobs in which no other run is left, which the
        cluster is to cancel."""
        whole = []
        of_job: dict[str, list[str]] = {}
        for run_id in run_ids:
            of_job.setdefault(self._of_run[run_id], []).append(run_id)
        for key, ids in of_job.items():
            bundle = self._bundles[key]
            left = len(bundle.waiting) + len(bundle.running)
            if len(ids) == left and not (pending_only and bundle.nodes):
                whole.append(key)
                continue
            for run_id in ids:
                if bundle.waiting.pop(run_id, None) is not None:
                    self._over(now, run_id, CANCELLED.number, "never started", "")
                elif not pending_only and run_id in bundle.running:
                    _, began = bundle.running.pop(run_id)
                    self._over(now, run_id, CANCELLED.number, "cancelled", bundle.nodes, began)
            if bundle.nodes:
                self._start(now, bundle)
        return whole

    def _drop(self, key: str) -> None:
        for run_id in self._bundles.pop(key).waiting:
            del self._of_run[run_id]


def _time_of(job: SimulatedJob) -> float:
    """Return the seconds that a run takes in its bundle."""
    return job.walltime if job.hangs else min(job.elapsed, job.walltime)
