"""The driver in virtual time: the very same conductor, bound to a simulated cluster.

    driver = VirtualDriver(record, cases, run_models, tell)
    ending = driver.drive()        # its events go to ``tell``, as they would to the journal

It carries out commands and makes events of updates as the real driver does, in the same order. Time
is a number that jumps to when something happens next; it starts when the trial was created.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import Any, NamedTuple

from msgspec.structs import replace

from seatrial.decide.admission import STALE_NS, declared
from seatrial.decide.conductor import BuildVerdict, Conductor, Launch, carry_out
from seatrial.execute.ledger import run_header
from seatrial.execute.plan.policy import shared_node
from seatrial.execute.trial_folder import Record
from seatrial.journal import events
from seatrial.model.codes import PASS, TIMEOUT, code_of
from seatrial.model.nodes import node_names
from seatrial.model.policy import Limits, ThrottleRule, Window
from seatrial.model.requirements import lacking
from seatrial.model.test import Case
from seatrial.plugins.rehearsal.cluster import SimulatedCluster
from seatrial.plugins.rehearsal.keys import RehearsedEvent, model_of, reading_of
from seatrial.plugins.rehearsal.queue import JobRecord, SimulatedJob, TargetLoad
from seatrial.plugins.rehearsal.simulated_runs import (
    EventWriter,
    RehearsedRun,
    RunModel,
    SampledOutcome,
    SimulatedBundles,
    SimulatedRuns,
    Tell,
    draw,
    job_of,
    sooner,
    units_of,
    with_course,
)
from seatrial.units import ns, show_seconds

# ---- disturbances --------------------------------------------------------------------------------
#
# Spans of a rehearsal in which runs turn out otherwise than they usually do: its ``events``.
#
#     disturbances = Disturbances(seed, origin, events)
#     disturbances.why_refused(now, run), disturbances.held_until(now, run)   # at its submission
#     if disturbances.disturb(now, run, has_nodes): ...                     # when it gets its nodes
#
# The usual outcome of a run is drawn as ever; what an event adds is drawn apart. So runs that no
# event concerns turn out as they would without events.


HasNodes = Callable[[str], bool]
"""Returns whether a run has one of the nodes of a node set."""

EventsByTest = Mapping[str, Sequence[tuple[int, RehearsedEvent]]]
"""The events that concern each test, with their places among the events of the plan."""


class Disturbances:
    """The events of one rehearsed trial that started at ``origin`` (ns). ``seed`` is that of its
    random numbers."""

    def __init__(self, seed: str, origin: int, events: EventsByTest) -> None:
        self._seed = seed
        self._by_test = {
            test: [(*_window_of(event).span(origin), number, event) for number, event in concerned]
            for test, concerned in events.items()
            if concerned
        }

    def __bool__(self) -> bool:
        return bool(self._by_test)

    def why_refused(self, now: int, run: RehearsedRun) -> str:
        """Return why the scheduler refuses a run that is submitted now; "" if it does not."""
        refusals = (
            event.reason or "the scheduler refuses it"
            for number, event in self._now(now, run)
            if (share := event.refused.fraction) and self._chance(run, number, "refused")[0] < share
        )
        return next(refusals, "")

    def held_until(self, now: int, run: RehearsedRun) -> int:
        """Return the time (ns) until which a run that is submitted now is held; 0: it is not."""
        spans = self._by_test.get(run.case.test, ())
        ends = [end for start, end, _, event in spans if event.held and start <= now < end]
        return max(ends, default=0)

    def disturb(self, now: int, run: RehearsedRun, has_nodes: HasNodes) -> bool:
        """Change the outcome of a run that gets its nodes now. Returns whether it changed."""
        before = run.sampled, run.run_model
        for number, event in self._now(now, run):
            if not event.nodes or has_nodes(event.nodes):
                fate, point = self._chance(run, number, "")
                run.sampled = _disturbed(run.sampled, event, fate, point)
                if event.keeps is not None:
                    run.run_model = run.run_model._replace(keeps=event.keeps.seconds)
        return (run.sampled, run.run_model) != before

    def _now(self, now: int, run: RehearsedRun) -> list[tuple[int, RehearsedEvent]]:
        spans = self._by_test.get(run.case.test, ())
        return [(number, event) for start, end, number, event in spans if start <= now < end]

    def _chance(self, run: RehearsedRun, number: int, what: str) -> list[float]:
        about = f"event {number} {what}"
        return units_of(f"{self._seed}\n{run.case.test}\n{run.attempt}\n{about}", 2)


def _window_of(event: RehearsedEvent) -> Window:
    start = event.start
    return Window(start=start.seconds, end=event.end.seconds, absolute=start.absolute)


def _disturbed(
    sampled: SampledOutcome, event: RehearsedEvent, fate: float, point: float
) -> SampledOutcome:
    """Return an outcome under an event. A run that fails or hangs anyway does so."""
    elapsed, hangs = sampled.elapsed * event.slow_by, event.hangs.fraction
    if sampled.exit_code or sampled.hangs or fate >= hangs + event.fails.fraction:
        return replace(sampled, elapsed=elapsed)
    if fate < hangs:
        return SampledOutcome(elapsed * point, hangs=True)
    return SampledOutcome(elapsed * point, exit_code=1)


# ---- simulated gauges ----------------------------------------------------------------------------
#
# Gauges of a rehearsal: what they read is the load of a simulated file system.


Load = Callable[[str, str], float]
"""The load of a file system's target, "" for its highest."""


class RehearsedGauge:
    """A gauge of a trial. Times in ns. One of which the machine's file does not say ``what`` it
    reads is taken to read ``usual``; where that is None, the declared loads of the trial's own
    runs. One that ``is_followed`` is noted at each reading."""

    def __init__(
        self,
        name: str,
        every: int,
        stale: int,
        what: str,
        usual: float | None,
        is_followed: bool = False,
    ) -> None:
        self.name = name
        self.every = every
        self._what = what
        self._usual = usual
        self._fresh = 0 if is_followed else stale // 2
        self._file_system, _, self._target = what.partition("/")
        self._noted: float | None = None  # the value that was noted last
        self._noted_at = 0

    def read(self, now: int, load: Load, own: Callable[[], float]) -> float | None:
        """Its value now, to be noted; None where it is the one that was noted last, and that is
        still fresh when it is next read. ``own`` returns the declared loads of own runs."""
        if self._what:
            value = load(self._file_system, self._target)
        else:
            value = own() if self._usual is None else self._usual
        if value == self._noted and now - self._noted_at + self.every < self._fresh:
            return None
        self._noted, self._noted_at = value, now
        return value


def gauges_of(record: Record) -> list[RehearsedGauge]:
    """Return the gauges of the trial's throttles and metadata targets, and those that it samples.
    Those of throttles that do not say what they read in a rehearsal read what opens a throttle: of
    what they measure there is nothing in it. With a target they read what runs declare."""
    policy, known = record.policy, record.machine.all_gauges
    throttles: dict[str, list[ThrottleRule]] = {}
    for throttle in policy.throttles:
        throttles.setdefault(throttle.gauge, []).append(throttle)
    gauges = []
    for name in dict.fromkeys([*throttles, *policy.gauges]):
        gauge, rules = known[name], throttles.get(name, [])
        reading = reading_of(gauge)
        if rules or reading:
            stale = min((ns(rule.stale_after) for rule in rules), default=STALE_NS)
            has_target = any(rule.target is not None for rule in rules)
            usual = None if has_target else min((rule.lowest for rule in rules), default=0.0)
            every, is_followed = ns(gauge.every.seconds), has_target or name in policy.sampled
            gauges.append(RehearsedGauge(name, every, stale, reading, usual, is_followed))
    return gauges


_SILENT = {
    "high and low": "taken as open: throttles by {}",
    "target": "taken to read what the trial's own runs declare: {}",
    "": "not read: {}",
}


def remarks_on_gauges(record: Record) -> list[str]:
    """What people must know of gauges that read nothing in a rehearsal."""
    policy, gauges = record.policy, record.machine.all_gauges
    forms = dict.fromkeys(policy.sampled, "")
    for each in policy.throttles:
        forms[each.gauge] = "high and low" if each.target is None else "target"
    found = []
    for form, text in _SILENT.items():
        silent = [name for name in forms if forms[name] == form and not reading_of(gauges[name])]
        if silent:
            verb = "do" if len(silent) > 1 else "does"
            remedy = f"{verb} not say in the machine's file (gauges: rehearsal) what to read in a"
            found.append(f"{text.format(', '.join(silent))}, which {remedy} rehearsal")
    return found


# ---- virtual driver ------------------------------------------------------------------------------


JOBS = 1000  # given to a scheduler at a time, as to a real one
BUILDS = 2  # at a time, as the smallest host would
LONGEST_LULL_S = 30 * 86400.0  # in which nothing is in flight and nothing starts
_LULL = ns(LONGEST_LULL_S)


class Ending(NamedTuple):
    """How a rehearsal ended: whether the trial came to its end, why not, and when (ns); what its
    metadata targets bore, and what people must know of the load of others."""

    complete: bool
    reason: str
    time: int
    loads: list[TargetLoad]
    remarks: list[str]


class VirtualDriver:
    """Drives one trial. ``run_models`` tell of each test how its runs turn out, ``disturbed_by``
    when they turn out otherwise. ``luck`` is the seed of its random numbers; default: the
    record's. ``in_full``: events that change nothing are told, too."""

    def __init__(
        self,
        record: Record,
        cases: Sequence[Case],
        run_models: Mapping[str, RunModel],
        tell: Tell,
        luck: str = "",
        disturbed_by: EventsByTest | None = None,
        in_full: bool = True,
    ) -> None:
        self.record = record
        self.now = record.created
        self._run_models = run_models
        machine, policy = record.machine, record.policy
        jobs = record.asked.jobs or machine.jobs or JOBS
        room, gpus = shared_node(machine)
        refill = 1 if room else max(1, jobs // 4)
        limits = Limits(cores=room, jobs=jobs, builds=BUILDS, refill=refill, gpus=gpus)
        self._luck = luck or str(record.seed)
        # Ids of runs differ from rehearsal to rehearsal; what happens is drawn by the seed alone.
        tag = f"{record.tag} {record.created}"
        self.conductor = Conductor(tag, cases, limits, policy, order=self._luck)
        names = node_names(machine)
        self._disturbances = Disturbances(self._luck, self.now, disturbed_by or {})
        on_start = self._disturbed if self._disturbances else None
        self.cluster = SimulatedCluster(
            machine, names, self._luck, self.now, policy.outages, cores=room, on_start=on_start
        )
        self._places: dict[int, tuple[str, str]] = {}  # by the position of a case
        self._writer = EventWriter(record, self.conductor.apply, tell, in_full)
        self._runs = SimulatedRuns(record, self._luck, self.conductor, self._writer, self._at)
        self._bundles = SimulatedBundles(self._runs, self._at, self._bundle_again)
        self._in_bundles: dict[str, SimulatedJob] = {}
        self._bundled = 0  # so many jobs of bundles
        self._attempts = dict.fromkeys(record.tests, 0)
        self._to_come: list[tuple[int, int, Callable[[int, Any], bool], Any]] = []
        self._numbered = 0
        self._lull = self.now  # since when nothing was in flight

    def drive(self) -> Ending:
        """See the trial through."""
        self.note(events.TrialStarted(host=self.record.host))
        for gauge in gauges_of(self.record):
            self._at(self.now, self._read_gauge, gauge)
        while True:
            self._runs.look_by = None
            self.conductor.state.changed = False
            decision = self.conductor.decide(self.now)
            if decision.finish is not None:
                return self._finish(decision.finish.complete, decision.finish.reason)
            for _ in carry_out(decision, self):
                pass
            self._writer.tell_some()
            if self.conductor.state.changed:  # something follows from what was just recorded
                continue
            if reason := self._go_on(decision.wake):
                return self._finish(False, reason)

    def _finish(self, complete: bool, reason: str) -> Ending:
        if complete:
            self.note(events.TrialEnded(failed=0 if self._runs.all_passed else 1))
        else:
            self.note(events.TrialPaused(reason=reason))
        self._writer.tell_all()
        loads = self.cluster.files.loads(self.cluster.now)
        return Ending(complete, reason, self.now, loads, self.cluster.remarks)

    # ---- time -----------------------------------------------------------------------------

    def _at(self, time: int, happen: Callable[[int, Any], bool], what: object) -> None:
        """``happen`` says whether there is something to decide."""
        self._numbered += 1
        heappush(self._to_come, (time, self._numbered, happen, what))

    def _go_on(self, wake: int | None) -> str:
        """Let time pass until there is something to decide. Return why there never will be, or
        ""."""
        runs = self._runs
        if runs.runs:
            self._lull = self.now
        while True:
            look_by = runs.look_by
            limit = sooner(sooner(wake, look_by), self._to_come[0][0] if self._to_come else None)
            soonest = sooner(limit, self.cluster.next_time())
            if soonest is None:
                return "nothing more can happen, and runs are wanted that nothing starts"
            if not runs.runs:
                latest = self._lull + _LULL
                if soonest > latest:
                    return f"nothing was started for {show_seconds(LONGEST_LULL_S)}"
                limit = sooner(limit, latest)
            if runs.patience is not None:  # what was queued is told with the next news
                limit = sooner(limit, self.now + runs.patience)
            has_news = self._receive(limit)
            if self._happen() or has_news or self.now in (wake, look_by):
                return ""

    def _receive(self, limit: int | None) -> bool:
        """Let the cluster go on to its next news, and no further than ``limit``. Return whether
        there is something to decide."""
        decide = False
        for time, update in self.cluster.advance(limit, to_news=True):
            self.now = time
            of_bundle = self._bundles.receive(time, update) if self._bundled else None
            decide |= self._runs.receive(time, update) if of_bundle is None else of_bundle
        self.now = max(self.now, self.cluster.now)
        return decide

    def _happen(self) -> bool:
        """Do what is due. Return whether there is something to decide."""
        decide = False
        while self._to_come and self._to_come[0][0] <= self.now:
            _, _, happen, what = heappop(self._to_come)
            decide |= happen(self.now, what)
        return decide

    # ---- commands -------------------------------------------------------------------------

    def judge_by_build(self, command: BuildVerdict) -> None:
        self._runs.verdict(self.now, self._begin(command), code_of(command.code), command.reason)

    def note(self, event: events.Event) -> None:
        """Record an event of the trial."""
        self._writer.note(self.now, event)

    def launch(self, launches: Sequence[Launch]) -> None:
        """Create and submit runs. Those of a case are submitted together, as in an array."""
        if not launches:
            return
        runs = [self._begin(launch) for launch in launches]
        arrays: dict[tuple[int, str, str], str] = {}
        bundles: dict[str, list[SimulatedJob]] = {}
        jobs: list[SimulatedJob] = []
        for run, launch in zip(runs, launches, strict=True):
            run.stage = launch.stage
            array = launch.bundle or arrays.setdefault(
                (launch.case, launch.avoid, launch.nodes), run.id
            )
            announced = events.RunSubmitted(
                time=self.now,
                **run.header,
                submission=array,
                target=launch.target,
                stage=launch.stage,
                bundle=launch.bundle,
                position=launch.position,
                nodes=launch.nodes,
            )
            self._writer.add(announced)
            test = run.case.test
            self._attempts[test] = run.attempt = self._attempts[test] + 1
            run.sampled = draw(self._luck, test, run.attempt, run.run_model)
            request = self.conductor.state.requests[launch.case]
            if (place := self._places.get(launch.case)) is None:  # asked once, not for each run
                place = self._places[launch.case] = self._place(run.case)
            job = job_of(run, launch, *place, request.cores)
            if self._disturbances:
                refused = self._disturbances.why_refused(self.now, run)
                held_until = self._disturbances.held_until(self.now, run)
                job = replace(job, refused=refused, held_until=held_until)
            (bundles.setdefault(launch.bundle, []) if launch.bundle else jobs).append(job)
        jobs += [self._bundle(key, members) for key, members in bundles.items()]
        self.cluster.submit(self.now, jobs)

    def _bundle(self, key: str, jobs: Sequence[SimulatedJob]) -> SimulatedJob:
        """Return the job of runs that share an allocation."""
        self._in_bundles |= {job.run_id: job for job in jobs}
        case = self._runs.runs[jobs[0].run_id].case
        largest = max(job.cores for job in jobs)
        cores = min(largest * case.at_once, self.conductor.state.limits.cores)
        self._bundled += 1
        return self._bundles.begin(f"{key} {self._bundled}", jobs, case.at_once, cores)

    def _bundle_again(self, now: int, run_ids: Sequence[str]) -> None:
        """Submit runs again that never began in their bundle."""
        for run_id in run_ids:
            header = self._runs.runs[run_id].header
            self._writer.add(
                events.RunSubmitted(time=now, **header, submission=run_ids[0], bundle=run_ids[0])
            )
        jobs = [self._in_bundles[run_id] for run_id in run_ids]
        self.cluster.submit(now, [self._bundle(run_ids[0], jobs)])

    def _disturbed(self, now: int, record: JobRecord) -> SimulatedJob | None:
        """Return the course of a job that gets its nodes, if an event of the rehearsal changes
        it."""
        run = self._runs.runs.get(record.job.run_id)
        if run is None:  # a bundle
            return None
        if not self._disturbances.disturb(now, run, partial(self.cluster.has_nodes, record)):
            return None
        return with_course(record.job, run)

    def _place(self, case: Case) -> tuple[str, str]:
        """Return the simulated partition of a case, "" where that is not simulated, and the nodes
        that the case cannot run on, folded."""
        machine, partition_of_case = self.record.machine, case.job.partition
        name = machine.slurm.partition if partition_of_case is None else partition_of_case
        features = self.record.tests[case.test].requires.features
        partition = name if name in model_of(machine).partitions else ""
        return partition, lacking(machine, features, case)

    def cancel(self, run_ids: Sequence[str]) -> None:
        """End runs, unless that was asked before."""
        runs = [run for run in map(self._runs.runs.__getitem__, run_ids) if not run.cancelled]
        for run in runs:
            run.cancelled = True
        self._end([run.id for run in runs])

    def recall(self, run_ids: Sequence[str]) -> None:
        """End runs that wait at the scheduler, unless that was asked before."""
        runs = [run for run in map(self._runs.runs.__getitem__, run_ids) if not run.recalled]
        for run in runs:
            run.recalled = True
        self._end([run.id for run in runs], pending_only=True)

    def _end(self, run_ids: Sequence[str], pending_only: bool = False) -> None:
        alone = [run_id for run_id in run_ids if run_id not in self._bundles]
        shared = [run_id for run_id in run_ids if run_id in self._bundles]
        whole = self._bundles.cancel(self.now, shared, pending_only)
        self.cluster.cancel(self.now, [*alone, *whole], pending_only=pending_only)

    def _begin(self, command: Launch | BuildVerdict) -> RehearsedRun:
        case = self.conductor.state.cases[command.case]
        entry = self.record.policy.entry_of[command.case]
        run = RehearsedRun(
            command.run_id,
            command.case,
            case,
            run_header(self.record, case, command.run_id),
            self.record.policy.entries[entry],
            self._run_models[case.test],
        )
        self._runs.begin(self.now, run)
        return run

    # ---- builds, gauges, silence ----------------------------------------------------------

    def start_build(self, key: str) -> None:
        test = next(case.test for case in self.conductor.state.cases if case.build == key)
        self.note(events.BuildStarted(test=test, key=key))
        build = self.record.tests[test].build
        limit = build.timeout.seconds if build else 0.0
        takes = self._run_models[test].build
        code, log = PASS.number, ""
        if limit and takes > limit:
            takes, code, log = limit, TIMEOUT.number, f"ended after {show_seconds(limit)}"
        ended = events.BuildEnded(test=test, key=key, code=code, log=log)
        self._at(self.now + ns(takes), self._end_build, ended)

    def _end_build(self, now: int, ended: events.BuildEnded) -> bool:
        self._writer.note(now, ended)
        return True

    def _read_gauge(self, now: int, gauge: RehearsedGauge) -> bool:
        """There is something to decide only where a throttle has opened or closed, or what may be
        started besides has changed."""
        self._at(now + gauge.every, self._read_gauge, gauge)
        value = gauge.read(now, self.cluster.files.load, partial(self._declared, gauge.name))
        if value is None:
            return False
        admission = self.conductor.state.admission
        before = admission.gates(now).held, admission.rooms(now)
        self._writer.note(now, events.GaugeRead(gauge=gauge.name, value=value))
        return before != (admission.gates(now).held, admission.rooms(now))

    def _declared(self, gauge: str) -> float:
        """Return what the runs on nodes declare for a gauge."""
        state = self.conductor.state
        loads = declared(state.policy.entries, gauge)
        flights = (each for each in state.in_flight.values() if each.has_job)
        return math.fsum(loads[each.entry] for each in flights if each.job_started is not None)
