"""Rehearse a plan with one seed or several, and report the results.

report = rehearse_plan(path, trials=trials, store=store, seed=1, seeds=100)
report.first, report.odds
"""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seatrial.errors import UsageError
from seatrial.machine.model import Machine
from seatrial.plan.policy import shares_cores
from seatrial.plan.prepare import PreparedComponent, prepare_plan
from seatrial.plan.rehearsal_model import RehearsedEvent
from seatrial.rehearse.behaviour import measured_in, run_models_of
from seatrial.rehearse.loads import worst_loads
from seatrial.rehearse.odds import Odds, odds_of
from seatrial.rehearse.plan_rehearsal import lasting, over_seeds, rehearse
from seatrial.rehearse.summary import Rehearsed
from seatrial.trial.plan_record import as_rehearsed
from seatrial.units import count, seconds, show_seconds, span_of

Progress = Callable[[int, int], None]
MAX_LEFT_OUT = 10  # of a trial that are named


class RehearsalReport(NamedTuple):
    """The rehearsals of a plan, by seed; the trials of the first seed are written.

    ``took``: the time it took in seconds. ``left_out``: what cannot run in a phase, and why.
    ``awaited``: what people do, which is not rehearsed.
    """

    plan: str
    machine: str
    assumed: list[str]
    took: float
    by_seed: list[list[Rehearsed]]
    left_out: Sequence[tuple[str, str]] = ()
    awaited: Sequence[str] = ()

    @property
    def first(self) -> list[Rehearsed]:
        """Return the trials of the first seed."""
        return self.by_seed[0]

    @property
    def odds(self) -> list[Odds]:
        """Return how likely each criterion is met; none with a single seed."""
        return odds_of(self.by_seed) if len(self.by_seed) > 1 else []

    @property
    def missed(self) -> bool:
        """Return whether a criterion was not met with any seed."""
        return any(trial.missed for trials in self.by_seed for trial in trials)


def rehearse_plan(
    path: Path,
    *,
    trials: Path,
    store: Path | str,
    seed: int = 1,
    seeds: int = 1,
    days: float | None = None,
    components: Sequence[str] = (),
    phases: Sequence[str] = (),
    name: str = "",
    progress: Progress | None = None,
) -> RehearsalReport:
    """Rehearse a plan with so many seeds, from ``seed`` on.

    The trials of the first seed are written below ``trials``. ``progress`` is called after each
    further seed with how many are done and how many there are. Raises InvalidFiles and UsageError
    before anything is written.
    """
    began = time.perf_counter()
    plan = prepare_plan(path, components, phases)
    if days is not None:
        plan = lasting(plan, days)
    if not plan.parts:
        raise UsageError(f"{plan.path}: there is nothing to rehearse: no component runs a test")
    tests = {name: test for part in plan.parts for name, test in part.tests.items()}
    run_models = run_models_of(plan.plan, tests.values(), measured_in(store, trials))
    start = time.time_ns()
    with over_seeds(plan, run_models, range(seed + 1, seed + seeds), start) as others:
        by_seed = [rehearse(plan, run_models, seed, start, trials, name)]
        for trials_of_seed in others:
            by_seed.append(trials_of_seed)
            if progress is not None:
                progress(len(by_seed), seeds)
    machine = plan.site.machine.machine
    took = time.perf_counter() - began
    left_out = [each for part in plan.parts for each in part.skipped[:MAX_LEFT_OUT]]
    rehearsal = plan.plan.rehearsal
    events = map(told, rehearsal.events)
    assumed = [*rehearsal.assumed, *events, *assumptions(plan.site.machine)]
    awaited = [_awaited(part) for part in plan.checklists]
    return RehearsalReport(plan.plan.plan, machine, assumed, took, by_seed, left_out, awaited)


def _awaited(part: PreparedComponent) -> str:
    title = ", phase ".join(filter(None, (part.component.component, part.phase)))
    return f"{title}: awaited, {count(len(part.component.items), 'item')} for people to check"


def told(event: RehearsedEvent) -> str:
    """Return an event of a rehearsal in words."""
    who = ", ".join(event.tests) or "all tests"
    effects = {
        f"{event.slow_by:g} times the elapsed time": event.slow_by != 1,
        f"{event.fails} more fail": event.fails,
        f"{event.hangs} more hang": event.hangs,
        f"nodes are kept {event.keeps}": event.keeps is not None,
        f"{event.refused} of the submissions are refused": event.refused,
        "jobs are held": event.held,
    }
    text = "; ".join(effect for effect, there in effects.items() if there)
    on = f" on {event.nodes}" if event.nodes else ""
    why = f" ({event.why})" if event.why else ""
    return f"From {event.start} to {event.end}, {who}{on}: {text}{why}."


def assumptions(machine: Machine) -> Iterator[str]:
    """Yield what the rehearsal assumes of the machine, in words, with the values that it uses."""
    model = as_rehearsed(machine).rehearsal
    submit, start, poll = map(span_of, (model.submit_delay, model.start_delay, model.poll))
    if submit or start:
        yield (
            f"A job is in the queue {show_seconds(submit)} after its submission; its script starts "
            f"{show_seconds(start)} after its nodes are free, and they are free again "
            f"{show_seconds(start)} after its end."
        )
    if poll:
        yield f"Starts and ends of jobs are noticed at a poll, every {show_seconds(poll)}."
    if not (submit or start or poll):
        yield "Jobs start as soon as their nodes are free, and starts and ends are noticed at once."
    if shares_cores(machine):
        yield "Jobs share the cores of this host, and are ended at their walltime to the second."
    else:
        yield "Each job has whole nodes to itself, and is ended at its walltime to the second."
    if failures := span_of(model.node_failures):
        mean, repair = show_seconds(failures), show_seconds(seconds(model.repair))
        yield f"Each node fails every {mean} on the mean, and is back after {repair}."
    else:
        yield "No node fails."


# ---- for programs -------------------------------------------------------------------------


def as_record(report: RehearsalReport) -> dict[str, Any]:
    """Return the report as JSON. Times are in seconds, shares are fractions."""
    record: dict[str, Any] = {
        "plan": report.plan,
        "machine": report.machine,
        "rehearsed": True,
        "assumed": report.assumed,
        "awaited": report.awaited,
        "trials": [_trial(trial) for trial in report.first],
    }
    if len(report.by_seed) > 1:
        record["seeds"] = [trials[0].seed for trials in report.by_seed]
        record["odds"] = [
            {**odds._asdict(), "causes": [cause._asdict() for cause in odds.causes]}
            for odds in report.odds
        ]
        record["worst_loads"] = [
            {**worst.load._asdict(), "above": worst.above, "seed": worst.seed}
            for worst in worst_loads(trial for trials in report.by_seed for trial in trials)
        ]
    return record


def _trial(trial: Rehearsed) -> dict[str, Any]:
    return {
        "component": trial.component,
        "phase": trial.phase,
        "trial": trial.tag,
        "seed": trial.seed,
        "nodes": trial.nodes,
        "seconds": (trial.end - trial.start) / 1e9,
        "complete": not trial.why,
        "why": trial.why,
        "utilisation": trial.utilisation,
        "uses": {use: trial.use.share(use) for use in trial.use._fields if use != "available"},
        "over_time": [
            {"from": one.start, "to": one.end, "accepted": one.use.share("accepted")}
            for one in trial.bins
        ],
        "tests": [test._asdict() for test in trial.tests],
        "node_shares": trial.node_shares,
        "criteria": [verdict._asdict() for verdict in trial.criteria],
        "alerts": trial.alerts,
        "metadata_targets": [load._asdict() for load in trial.loads],
        "remarks": trial.remarks,
    }
