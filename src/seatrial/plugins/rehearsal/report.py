"""Rehearse a plan with one seed or several, and report the results.

report = rehearse_plan(path, trials=trials, store=store, seed=1, seeds=100)
report.first, report.odds
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seatrial.errors import UsageError
from seatrial.execute.plan.policy import shares_cores
from seatrial.execute.plan.prepare import PreparedComponent, prepare_plan
from seatrial.judge.statistics.significance import wilson
from seatrial.model.machine import Machine
from seatrial.plugins.rehearsal.keys import RehearsedEvent, assumed_by, model_of
from seatrial.plugins.rehearsal.plan_rehearsal import (
    CriterionVerdict,
    Rehearsed,
    as_rehearsed,
    lasting,
    measured_in,
    over_seeds,
    rehearse,
    run_models_of,
)
from seatrial.plugins.rehearsal.queue import TargetLoad
from seatrial.results.criteria.view import Result, State
from seatrial.units import count, show_number, show_seconds

# ---- odds ----------------------------------------------------------------------------------------
#
# Estimate how likely each criterion is met, from rehearsals of a plan with many seeds.
#
# for odds in odds_of(rehearsed_by_seed): print(odds.label, odds.met, odds.of)


class UnmetCause(NamedTuple):
    """Why a criterion was not met or undecided: in how many seeds, the first, and its reason."""

    state: State
    seeds: int
    first: int
    why: str


class Odds(NamedTuple):
    """In how many of all seeds a criterion was met, not met, undecided or waived."""

    trial: str
    label: str
    met: int
    not_met: int
    undecided: int
    waived: int
    #: The number of seeds.
    of: int
    #: The 95 % interval of the probability that it is met.
    low: float
    high: float
    #: The results with the smallest and the largest value.
    least: Result
    most: Result
    causes: list[UnmetCause]


def odds_of(rehearsals: Sequence[Sequence[Rehearsed]]) -> list[Odds]:
    """Return the odds of each criterion of each trial, from one rehearsal a seed."""
    odds = []
    for trials in zip(*rehearsals, strict=True):
        for verdicts in zip(*(trial.criteria for trial in trials), strict=True):
            odds.append(_odds(trials, verdicts))
    return odds


def _odds(trials: Sequence[Rehearsed], verdicts: Sequence[CriterionVerdict]) -> Odds:
    states = Counter(verdict.result.state for verdict in verdicts)
    low, high = wilson(states["met"], len(verdicts) - states["waived"])
    results = sorted(
        (verdict.result for verdict in verdicts), key=lambda result: result.value or 0.0
    )
    seeds = [trial.seed for trial in trials]
    return Odds(
        trial=trials[0].name,
        label=verdicts[0].label,
        met=states["met"],
        not_met=states["not met"],
        undecided=states["undecided"],
        waived=states["waived"],
        of=len(verdicts),
        low=low,
        high=high,
        least=results[0],
        most=results[-1],
        causes=_causes(zip(seeds, verdicts, strict=True)),
    )


def _causes(verdicts: Iterable[tuple[int, CriterionVerdict]]) -> list[UnmetCause]:
    """Return why a criterion was not met or undecided, the most frequent cause first."""
    causes: dict[tuple[State, str], UnmetCause] = {}
    for seed, verdict in verdicts:
        result = verdict.result
        if result.state not in ("not met", "undecided"):
            continue
        cause = str(result.numbers.get("cause") or result.numbers.get("worst") or "")
        known = causes.get((result.state, cause), UnmetCause(result.state, 0, seed, result.reason))
        causes[result.state, cause] = known._replace(seeds=known.seeds + 1)
    return sorted(causes.values(), key=lambda each: (each.state, -each.seeds, each.first))


# ---- report --------------------------------------------------------------------------------------


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
    def misses(self) -> list[str]:
        """Return why criteria were not met with the first seed."""
        verdicts = [verdict for trial in self.first for verdict in trial.criteria]
        return [f"{v.label}: {v.result.reason}" for v in verdicts if v.result.state == "not met"]

    @property
    def exit_code(self) -> int:
        """Return 3 if a trial of the first seed did not come to its end, 1 if a criterion was not
        met with any seed."""
        if any(trial.reason for trial in self.first):
            return 3
        return int(any(trial.missed for trials in self.by_seed for trial in trials))


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
    rehearsal = assumed_by(plan.plan)
    events = map(in_words, rehearsal.events)
    assumed = [*rehearsal.assumed, *events, *assumptions(plan.site.machine)]
    awaited = [_awaited(part) for part in plan.checklists]
    return RehearsalReport(plan.plan.plan, machine, assumed, took, by_seed, left_out, awaited)


def _awaited(part: PreparedComponent) -> str:
    title = ", phase ".join(filter(None, (part.component.component, part.phase)))
    return f"{title}: awaited, {count(len(part.component.items), 'item')} for people to check"


def in_words(event: RehearsedEvent) -> str:
    """Return an event of a rehearsal in words."""
    who = ", ".join(event.tests) or "all tests"
    effects = {
        f"{event.slow_by:g} times the elapsed time": event.slow_by != 1,
        f"{event.fails} more fail": event.fails.fraction,
        f"{event.hangs} more hang": event.hangs.fraction,
        f"nodes are kept {event.keeps}": event.keeps is not None,
        f"{event.refused} of the submissions are refused": event.refused.fraction,
        "jobs are held": event.held,
    }
    text = "; ".join(effect for effect, has_it in effects.items() if has_it)
    on = f" on {event.nodes}" if event.nodes else ""
    reason = f" ({event.reason})" if event.reason else ""
    return f"From {event.start} to {event.end}, {who}{on}: {text}{reason}."


def assumptions(machine: Machine) -> Iterator[str]:
    """Yield what the rehearsal assumes of the machine, in words, with the values that it uses."""
    model = model_of(as_rehearsed(machine))
    submit, start, poll = (
        each.seconds for each in (model.submit_delay, model.start_delay, model.poll)
    )
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
    if failures := model.node_failures.seconds:
        mean, repair = show_seconds(failures), show_seconds(model.repair.seconds)
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
        "complete": not trial.reason,
        "why": trial.reason,
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


# ---- loads ---------------------------------------------------------------------------------------
#
# Report the loads of metadata targets in rehearsals, in a sentence for each file system.
#
# for worst in worst_loads(trials): print(sentence(worst)) # f2: highest 1.31 million open files on
# mdt2 (safe 1.4 million)


class Worst(NamedTuple):
    """The highest load of a target of a file system, and the seed that gave it.

    With that seed, ``above``: the largest share of the time in which a target was above its safe
    load; ``beyond``: how many targets were.
    """

    load: TargetLoad
    seed: int
    above: float
    beyond: int


def worst_loads(trials: Iterable[Rehearsed]) -> list[Worst]:
    """Return the worst load of each file system in trials of any number of seeds."""
    found: dict[str, list[tuple[TargetLoad, int]]] = {}
    for trial in trials:
        for load in trial.loads:
            found.setdefault(load.file_system, []).append((load, trial.seed))
    return [_worst(loads) for loads in found.values()]


def _worst(loads: list[tuple[TargetLoad, int]]) -> Worst:
    highest, seed = max(loads, key=lambda each: each[0].highest)
    same = [load for load, other in loads if other == seed]
    above = max(load.above for load in same)
    beyond = len({load.target for load in same if load.above})
    return Worst(highest, seed, above, beyond)


def sentence(worst: Worst, with_seed: bool = False) -> str:
    """Return the worst load of a file system in words."""
    load = worst.load
    text = f"{load.file_system}: highest {files(load.highest)} open files"
    if load.target:
        text += f" on {load.target}"
    if with_seed:
        text += f" with seed {worst.seed}"
    if not load.safe:
        return text
    text += f" (safe {files(load.safe)})"
    if not worst.above:
        return text
    targets = "" if worst.beyond < 2 else f", {count(worst.beyond, 'target')} are at times"
    return f"{text}; above that {100 * worst.above:.1f} % of the time{targets}"


def files(number: float) -> str:
    """Return a number of files as text: ``1.31 million``."""
    return f"{number / 1e6:.3g} million" if number >= 1e6 else show_number(number)
