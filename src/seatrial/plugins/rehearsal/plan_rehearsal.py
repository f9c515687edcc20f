"""Rehearse a plan: its trials one after another in virtual time, with random numbers of a seed.

rehearsed = rehearse(plan, run_models, seed=1, start=time.time_ns(), trials=Path("trials"))
with over_seeds(plan, run_models, range(2, 101), start) as many: ...     # in memory, on all cores
"""

import functools
import math
import multiprocessing
import os
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.execute.creation import create
from seatrial.execute.plan.component import fits, named_beside
from seatrial.execute.plan.policy import shared_node
from seatrial.execute.plan.prepare import PreparedComponent, PreparedPlan
from seatrial.execute.plan_trials import record_without_inputs
from seatrial.execute.trial_folder import references_of
from seatrial.journal.events import Event
from seatrial.journal.journal import Journal
from seatrial.judge.references import References
from seatrial.model.codes import RECALLED, UNCOUNTED
from seatrial.model.file_model import Duration, Span
from seatrial.model.machine import Machine
from seatrial.model.nodes import node_names
from seatrial.model.plan import WHOLE, Plan
from seatrial.model.test import Metric, Test
from seatrial.plugins.rehearsal.keys import (
    Behaviour,
    ElapsedModel,
    MachineModel,
    assumed_by,
    model_of,
)
from seatrial.plugins.rehearsal.queue import TargetLoad
from seatrial.plugins.rehearsal.simulated_runs import Quantity, RunModel
from seatrial.plugins.rehearsal.virtual_driver import (
    Ending,
    EventsByTest,
    VirtualDriver,
    remarks_on_gauges,
)
from seatrial.results.criteria.view import Result, TrialView
from seatrial.results.holds import holds_of_gauges
from seatrial.results.node_hours import NodeShares
from seatrial.results.status import Waits, judged, waits
from seatrial.results.store.ingest import synced
from seatrial.results.store.queries import MEASURED, runs
from seatrial.results.store.tables import Filters
from seatrial.results.trial_history import RunHistory, TrialHistory
from seatrial.results.utilisation import Bin, Use

# ---- summary -------------------------------------------------------------------------------------
#
# Summarise a rehearsed trial in little memory, to keep those of many seeds and compare them.


BINS = 60  # spans of time for which utilisation is given


class TestTally(NamedTuple):
    """The runs of a test. Times are in seconds, None without runs."""

    test: str
    nodes: int
    accepted: int
    #: How many ended without being accepted, retried or not: they ``failed``, others or a person
    #: cancelled them, or Seatrial ``recalled`` them.
    others: int
    #: Of the accepted.
    node_hours: float
    #: The mean elapsed time.
    elapsed: float | None
    #: The median time in the queue, and the 95th percentile.
    wait: float | None
    long_wait: float | None
    #: The standard deviation of the elapsed times (n - 1).
    sd: float | None = None
    failed: int = 0
    recalled: int = 0

    @property
    def waits(self) -> tuple[float | None, float | None]:
        """Return the median time in the queue, and the 95th percentile."""
        return self.wait, self.long_wait

    @property
    def failure_share(self) -> float | None:
        """Return the failed runs over those that came to an end; None without any."""
        ended = self.accepted + self.failed
        return self.failed / ended if ended else None


class CriterionVerdict(NamedTuple):
    """The result of a criterion, in all and for each of its subjects."""

    label: str
    result: Result
    subjects: list[Result]


class Rehearsed(NamedTuple):
    """A rehearsed trial."""

    component: str
    phase: str
    seed: int
    #: Its tag; "" if it was not written.
    tag: str
    nodes: int
    #: Times in ns.
    start: int
    end: int
    #: Why it did not come to its end; "" if it did.
    reason: str
    use: Use
    bins: list[Bin]
    tests: list[TestTally]
    #: The planned and the achieved share of each test.
    node_shares: NodeShares | None
    criteria: list[CriterionVerdict]
    #: The number of alerts of each kind.
    alerts: dict[str, int]
    loads: list[TargetLoad]
    #: Which jobs of others were left out, and the like.
    remarks: list[str]
    #: The components that it ran beside.
    alongside: list[str]

    @property
    def name(self) -> str:
        """Return the component, with its phase if it has one."""
        return f"{self.component}, {self.phase}" if self.phase else self.component

    @property
    def utilisation(self) -> float:
        """Return accepted over available node-hours."""
        return self.use.share("accepted")

    @property
    def has_no_run(self) -> bool:
        """Return whether it is complete and no run of it has ended."""
        return not self.reason and not any(test.accepted + test.others for test in self.tests)

    @property
    def missed(self) -> bool:
        """Return whether a criterion is not met."""
        return any(each.result.state == "not met" for each in self.criteria)


def summarise(
    part: PreparedComponent,
    seed: int,
    tag: str,
    history: TrialHistory,
    ending: Ending,
    references: References,
) -> Rehearsed:
    """Return the summary of a rehearsed trial's history."""
    view = TrialView(history, ending.time, references)
    by_test: dict[str, list[RunHistory]] = {case.test: [] for case in part.cases}
    for run in history.runs:
        by_test[history.test_of(run)].append(run)
    waited = waits(history, ending.time)
    return Rehearsed(
        component=part.component.component,
        phase=part.phase,
        seed=seed,
        tag=tag,
        nodes=history.nodes,
        start=history.start or 0,
        end=ending.time,
        reason="" if ending.complete else ending.reason,
        use=view.timeline.total,
        bins=view.timeline.bins(BINS),
        tests=[_of_test(part, name, runs, waited.get(name)) for name, runs in by_test.items()],
        node_shares=view.node_shares,
        criteria=[
            CriterionVerdict(first.label, first, subjects)
            for first, *subjects in judged(part.component, view)
        ],
        alerts=dict(sorted(Counter(alert.kind for alert in history.alerts).items())),
        loads=[load for load in ending.loads if load.highest],
        remarks=ending.remarks,
        alongside=named_beside(part.component),
    )


def _of_test(
    part: PreparedComponent, name: str, runs: list[RunHistory], waited: Waits | None
) -> TestTally:
    passed = [run for run in runs if run.passed]
    elapsed = [run.elapsed or 0.0 for run in passed]
    others = [run for run in runs if not run.passed]
    spent = sum(run.size * seconds for run, seconds in zip(passed, elapsed, strict=True))
    mean, sd = _mean_and_sd(elapsed)
    wait, long_wait = (waited.median, waited.high) if waited else (None, None)
    return TestTally(
        test=name,
        nodes=max(case.nodes for case in part.cases if case.test == name),
        accepted=len(passed),
        others=len(others),
        node_hours=spent / 3600,
        elapsed=mean,
        wait=wait,
        long_wait=long_wait,
        sd=sd,
        failed=len([run for run in others if run.over and run.code not in UNCOUNTED]),
        recalled=[run.code for run in others].count(RECALLED.number),
    )


def _mean_and_sd(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the mean and the standard deviation (n - 1), None where there are too few values."""
    mean = math.fsum(values) / len(values) if values else None
    return mean, math.sqrt(statistics.variance(values)) if len(values) > 1 else None


# ---- the rehearsal -------------------------------------------------------------------------------


RunModels = Mapping[str, RunModel]


def lasting(plan: PreparedPlan, days: float) -> PreparedPlan:
    """Return a plan whose sustained components last so many days.

    Raises UsageError if it has none.
    """
    parts = []
    for part in plan.parts:
        if part.policy.duration:
            component = replace(part.component, duration=f"{days:g}d")
            policy = replace(part.policy, duration=days * 86400.0)
            part = part._replace(component=component, policy=policy)
        parts.append(part)
    if not any(part.policy.duration for part in parts):
        raise UsageError(f"--days: no component of {plan.plan.plan} is sustained for a duration")
    return plan._replace(parts=parts)


def rehearse(
    plan: PreparedPlan,
    run_models: RunModels,
    seed: int,
    start: int,
    trials: Path | None = None,
    name: str = "",
) -> list[Rehearsed]:
    """Rehearse the trials of a plan; ``start`` in ns.

    With a folder ``trials`` each is written there, under its tag or a ``name``.
    """
    done = []
    for group in plan.groups():
        ends = []
        for part in group:  # on nodes of their own, so that none waits for another's
            tag = tag_of(plan, part, trials, name) if trials is not None else part.tag
            rehearsed = _rehearse_part(plan, part, run_models, seed, start, trials, tag)
            done.append(rehearsed)
            ends.append(rehearsed.end)
        start = max(ends)
    return done


def tag_of(plan: PreparedPlan, part: PreparedComponent, trials: Path, name: str) -> str:
    """Return a free tag for a rehearsed trial.

    It is ``<plan>-<component>[-<phase>]-rehearsed[-<number>]``, or ``name``, with component and
    phase if the plan has several trials.
    """
    if name:
        words = (name, part.component.component, part.phase) if len(plan.parts) > 1 else (name,)
        return "-".join(filter(None, words))
    stem = tag = f"{part.tag}-rehearsed"
    number = 2
    while (trials / tag).exists():
        tag, number = f"{stem}-{number}", number + 1
    return tag


def _rehearse_part(
    plan: PreparedPlan,
    part: PreparedComponent,
    run_models: RunModels,
    seed: int,
    start: int,
    trials: Path | None,
    tag: str,
) -> Rehearsed:
    record = replace(
        record_without_inputs(plan, part, tag, start),
        machine=as_rehearsed(part.machine),
        rehearsed=True,
        seed=seed,
        assumed=assumed_by(plan.plan).assumed,
    )
    room, _ = shared_node(part.machine)
    history = TrialHistory(part.cases, part.policy, node_names(part.machine), room)
    history.gauge_holds = holds_of_gauges(part.machine)
    history.machine_nodes = record.machine_nodes
    journal: Journal | None = None

    def tell(events: Sequence[Event]) -> None:
        if journal is not None:
            journal.extend(events)
            journal.flush()
        history.fold(events)

    luck, events = luck_of(plan, part, seed), events_of(plan.plan, part.tests)
    in_full = trials is not None
    driver = VirtualDriver(record, part.cases, run_models, tell, luck, events, in_full)
    if trials is None:
        ending = driver.drive()
    else:
        folder = create(trials, record, part.cases)
        with Journal.take(folder.journal) as journal:
            ending = driver.drive()
    ending = ending._replace(remarks=[*ending.remarks, *remarks_on_gauges(record)])
    written = tag if trials is not None else ""
    return summarise(part, seed, written, history, ending, references_of(record))


def as_rehearsed(machine: Machine) -> Machine:
    """Return the machine as it is rehearsed: polled as often as it is for real; without a scheduler
    the delays of one are 0. What its file says of rehearsals comes first."""
    model, defaults = model_of(machine), MachineModel()
    delays: dict[str, Span] = {"poll": Span(machine.batch.poll.written)}
    if machine.scheduler == "local":
        delays = dict.fromkeys(("submit_delay", "start_delay", "poll"), Span(0))
    usual = {key: at for key, at in delays.items() if getattr(model, key) == getattr(defaults, key)}
    changed: dict[str, Any] = {"rehearsal": replace(model, **usual)}
    return replace(machine, **changed)


def luck_of(plan: PreparedPlan, part: PreparedComponent, seed: int) -> str:
    """Return the seed of the random numbers of a trial: its own for each trial of the plan,
    whichever of them are rehearsed."""
    phases = plan.plan.phases or [WHOLE]
    trials = [(each.component, phase.phase) for phase in phases for each in plan.plan.components]
    place = trials.index((part.component.component, part.phase))
    return f"{seed}.{place}" if place else str(seed)


# ---- many seeds ---------------------------------------------------------------------------


@contextmanager
def over_seeds(
    plan: PreparedPlan, run_models: RunModels, seeds: Sequence[int], start: int
) -> Iterator[Iterator[list[Rehearsed]]]:
    """Begin the rehearsals of some seeds, on all cores. Yields an iterator over them, in the order
    of the seeds. Those that have not begun at the end are left out."""
    workers = min(len(seeds), len(os.sched_getaffinity(0)))
    if workers < 2:
        yield (rehearse(plan, run_models, seed, start) for seed in seeds)
        return
    context = multiprocessing.get_context("fork")
    pool = futures.ProcessPoolExecutor(workers, context, _keep, (plan, run_models, start))
    try:
        yield pool.map(_with_seed, seeds)
    finally:
        pool.shutdown(cancel_futures=True)


_kept: tuple[PreparedPlan, RunModels, int]


def _keep(plan: PreparedPlan, run_models: RunModels, start: int) -> None:
    global _kept
    _kept = plan, run_models, start


def _with_seed(seed: int) -> list[Rehearsed]:
    plan, run_models, start = _kept
    return rehearse(plan, run_models, seed, start)


# ---- behaviour -----------------------------------------------------------------------------------
#
# Turn what a plan assumes about its tests into numbers, with elapsed times from the store.
#
# run_models = run_models_of(plan, tests, measured_in(store, trials))


ONLY_BUILT = Behaviour(elapsed="1s")  # of a test without a run, of which a plan may say nothing

Measured = Callable[[str, str], tuple[float, ...]]
"""Returns the elapsed times (s) of a test in a trial of the store, by (trial, test)."""


def run_models_of(plan: Plan, tests: Collection[Test], measured: Measured) -> dict[str, RunModel]:
    """Return how runs of each test behave in a rehearsal.

    Raises UsageError, which names all tests about which the plan says nothing.
    """
    behaviours = {test.name: behaviour_of(plan, test.name) for test in tests}
    behaviours |= {
        test.name: behaviours[test.name] or ONLY_BUILT for test in tests if test.only_builds
    }
    unsaid = [name for name, behaviour in behaviours.items() if behaviour is None]
    if unsaid:
        raise UsageError(
            f"{plan.plan}: nothing is said of how {', '.join(unsaid)} would run; "
            "write e.g. rehearsal: {tests: {" + f"{unsaid[0]}: {{elapsed: 10m}}" + "}}"
        )
    return {
        test.name: _manner(behaviour, test, measured)
        for test in tests
        if (behaviour := behaviours[test.name]) is not None
    }


def behaviour_of(plan: Plan, test: str) -> Behaviour | None:
    """Return what the plan assumes about a test: the first entry that matches, or None."""
    known = assumed_by(plan).tests
    return next((each for pattern, each in known.items() if fits([pattern], test)), None)


def events_of(plan: Plan, tests: Iterable[str]) -> EventsByTest:
    """Return the events of the rehearsal that concern each test."""
    events = list(enumerate(assumed_by(plan).events))
    return {
        test: [(number, event) for number, event in events if fits(event.tests, test)]
        for test in tests
    }


def _manner(behaviour: Behaviour, test: Test, measured: Measured) -> RunModel:
    elapsed = behaviour.elapsed
    if not isinstance(elapsed, ElapsedModel):
        elapsed = ElapsedModel(mean=Duration(elapsed))
    values = tuple(value.seconds for value in elapsed.values)
    if elapsed.trial:
        values = measured(elapsed.trial, test.name)
    return RunModel(
        mean=elapsed.mean.seconds if elapsed.mean is not None else 0.0,
        sd=elapsed.sd.seconds,
        values=values,
        build=behaviour.build.seconds,
        wrong=behaviour.wrong.fraction,
        fails=behaviour.fails.fraction,
        hangs=behaviour.hangs.fraction,
        keeps=behaviour.keeps.seconds,
        metadata=behaviour.metadata.fraction,
        objects=behaviour.objects.fraction,
        bandwidth=behaviour.bandwidth,
        figures=tuple(_quantities(behaviour, test)),
    )


def _quantities(behaviour: Behaviour, test: Test) -> Iterable[Quantity]:
    for name, figure in behaviour.figures.items():
        metric = test.metrics.get(name)
        if not isinstance(metric, Metric):
            raise UsageError(
                f"{test.name}: the unit of {name} is known only from its output; "
                "a rehearsal can give figures of metrics that have find and unit"
            )
        yield Quantity(name, figure.mean, figure.sd, metric.unit, metric.direction)


def measured_in(store_path: Path | str, trials: Path) -> Measured:
    """Return a function that looks up elapsed times of runs with a right answer in a store.

    The store is brought up to date at each look-up. The function raises UsageError if a trial has
    no such run of a test.
    """

    @functools.cache
    def measured(tag: str, test: str) -> tuple[float, ...]:
        # Few plans name a trial, and the store takes 40 ms to import.

        with synced(store_path, trials) as store:
            rows = runs(store, Filters(trial=tag, test=test))
        times = tuple(
            run.elapsed
            for run in reversed(rows)
            if run.test == test and run.code in MEASURED and run.elapsed
        )
        if not times:
            raise UsageError(
                f"trial {tag} has no run of {test} whose answer was right; "
                "name another trial for its elapsed times, or give mean and sd"
            )
        return times

    return measured
