"""``seatrial rehearse``: a plan with one seed or several, and what is told of the results.

report = rehearse_plan(path, trials=trials, store=store, seed=1, seeds=100)
report.first, report.odds
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from statistics import median
from textwrap import wrap
from typing import Any, NamedTuple

import click

from seatrial.cli import Folders
from seatrial.cli.tables import TextTable
from seatrial.errors import UsageError
from seatrial.execute.plan.component import Place, together
from seatrial.execute.plan.policy import shares_cores
from seatrial.execute.plan.prepare import PreparedComponent, prepare_plan
from seatrial.judge.statistics.significance import wilson
from seatrial.model.machine import Machine
from seatrial.plugins.rehearsal import plan_rehearsal
from seatrial.plugins.rehearsal.keys import RehearsedEvent, assumed_by, model_of
from seatrial.plugins.rehearsal.plan_rehearsal import (
    CriterionVerdict,
    Rehearsed,
    TestTally,
    as_rehearsed,
    lasting,
    measured_in,
    over_seeds,
    run_models_of,
)
from seatrial.plugins.rehearsal.queue import TargetLoad
from seatrial.results.criteria.view import STATES, Result, State
from seatrial.results.store.export import to_json
from seatrial.results.utilisation import USES
from seatrial.show.text import bars
from seatrial.units import SECOND_NS, count, in_per_cent, show_number, show_seconds

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
        by_seed = [plan_rehearsal.rehearse(plan, run_models, seed, start, trials, name)]
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


# ---- acts ----------------------------------------------------------------------------------------
#
# ``seatrial rehearse``: run a plan in virtual time.


def rehearse(
    folders: Folders,
    /,
    plans: tuple[Path, ...],
    days: float | None,
    compare: bool,
    name: str,
    as_json: bool,
    **chosen: Any,
) -> int:
    """Do ``seatrial rehearse``; return the exit code."""
    _check(plans, compare, name)
    reports = [
        rehearse_plan(
            path,
            trials=folders.trials,
            store=folders.store,
            days=days,
            name=name,
            progress=_show_progress if sys.stderr.isatty() else None,
            **chosen,
        )
        for path in plans
    ]
    trials = list(chain(*(report.first for report in reports)))
    for what, reason in dict.fromkeys(chain(*(report.left_out for report in reports))):
        click.echo(f"left out: {what}: {reason}", err=True)
    if days:
        _warn_of_too_few(days, trials)
    if as_json:
        records = [as_record(report) for report in reports]
        click.echo(to_json(records if compare else records[0]), nl=False)
    elif compare:
        click.echo(side_by_side(reports))
    else:
        click.echo(page(reports[0]))
        runs = (folders.command("runs", "--trial", trial.tag) for trial in trials)
        click.echo("\nIts runs: " + f"\n{'':10}".join(runs))
    return max(report.exit_code for report in reports)


def _warn_of_too_few(days: float, trials: Iterable[Rehearsed]) -> None:
    for tag in [trial.tag for trial in trials if trial.has_no_run]:
        text = f"--days {days:g}: {tag} has no run: its builds and waits take longer than that"
        click.echo(f"{text}; give more days", err=True)


def _check(plans: Sequence[Path], compare: bool, name: str) -> None:
    """Raise UsageError for options that do not fit the number of plans."""
    if len(plans) > 1 and not compare:
        raise click.UsageError("several plans are compared: add --compare, or name one")
    if compare and len(plans) < 2:
        raise click.UsageError("--compare: name two plans or more")
    if compare and name:
        raise click.UsageError("--name: each plan has a tag of its own; leave it out")


def _show_progress(done: int, seeds: int) -> None:
    """Show progress on the terminal, in a line that disappears at the end."""
    end = "\r\033[K" if done == seeds else ""
    click.echo(f"\r{done} of {seeds} seeds{end}", nl=False, err=True)


# ---- rehearsal page ------------------------------------------------------------------------------
#
# The results of a rehearsal as text for 80 columns.


WIDTH = 78


def page(report: RehearsalReport) -> str:
    """Return the rehearsals of one plan, trial by trial; with several seeds, the probability of
    each criterion."""
    first = report.first[0]
    took = show_seconds(report.took)
    seeds = f"seed {first.seed}"
    if len(report.by_seed) > 1:
        seeds = f"seeds {first.seed} to {report.by_seed[-1][0].seed}; first {seeds}"
    parts = [f"{report.plan} on {report.machine}, rehearsed in {took} with {seeds}"]
    for trial in report.first:
        parts += [_head(trial), _over_time(trial), _tests(trial.tests), _mix(trial)]
        parts.append(_criteria(trial.criteria))
        parts.append(_loads([trial]))
    parts += _beside(report.first)
    if report.odds:
        parts += [_table_of_odds(report.odds), _loads(chain(*report.by_seed), with_seed=True)]
    if report.awaited:
        parts.append("\n".join(report.awaited))
    if report.assumed:
        parts.append(_listed("assumed", report.assumed))
    return "\n\n".join(filter(None, parts))


def _beside(trials: Sequence[Rehearsed]) -> Iterator[str]:
    """Yield the utilisation over components that ran at once, by one clock."""
    for group in together(trials, lambda one: Place(one.phase, one.component, one.alongside)):
        if len(group) > 1:
            end = max(one.end for one in group)
            hours = sum(one.use.available + one.nodes * (end - one.end) for one in group)
            share = sum(one.use.accepted for one in group) / hours if hours else 0.0
            names = " and ".join(one.component for one in group)
            yield f"{names}, beside each other: utilisation {in_per_cent(share)} of node-hours"


# ---- one trial ----------------------------------------------------------------------------


def _head(trial: Rehearsed) -> str:
    span = show_seconds((trial.end - trial.start) / SECOND_NS)
    lines = [f"{_bold(trial.name)}: {count(trial.nodes, 'node')}, {span}, trial {trial.tag}"]
    if trial.reason:
        lines += wrap(f"it did not come to its end: {trial.reason}", WIDTH)
    if trial.alerts:
        alerts = ", ".join(f"{number} {kind}" for kind, number in trial.alerts.items())
        lines += wrap(f"alerts: {alerts}", WIDTH)
    for remark in trial.remarks:
        lines += wrap(remark, WIDTH)
    return "\n".join(lines)


def _over_time(trial: Rehearsed) -> str:
    """Return utilisation over time as a row of bars, with the losses below it."""
    if not trial.use.available:
        return ""
    share = in_per_cent(trial.utilisation)
    row = bars(one.use.share("accepted") for one in trial.bins)
    end = show_seconds(trial.bins[-1].end) if trial.bins else ""
    rule = f"0{end.rjust(len(row) - 1)}"
    lost = sorted(((trial.use.share(use), use) for use in USES if use != "accepted"), reverse=True)
    rest = ", ".join(f"{use} {in_per_cent(part)}" for part, use in lost if part >= 0.0005)
    lines = [f"utilisation {share} of node-hours in accepted work", f"  {row}", f"  {rule}"]
    return "\n".join([*lines, *(wrap(f"lost: {rest}", WIDTH) if rest else [])])


def _tests(tests: Iterable[TestTally]) -> str:
    rows = TextTable(
        "test~ | nodes> | accepted> | failed> | failed %> | recalled>?2 | node-h>?3 | mean (s)>"
        " | sd (s)> | wait> | 95 %>?1"
    )
    for one in tests:
        node_hours = one.node_hours if one.accepted else None
        share = "" if one.failure_share is None else f"{100 * one.failure_share:.1f}"
        runs = (one.accepted, one.failed, share, one.recalled or None, node_hours)
        rows.add(one.test, one.nodes, *runs, one.elapsed, one.sd, *map(_span, one.waits))
    return str(rows)


def _mix(trial: Rehearsed) -> str:
    """Return the planned and the achieved share of the node-hours of each test of a mix."""
    shares = trial.node_shares
    if shares is None or shares.unclaimed is None:
        return ""
    rows = TextTable("share of node-hours~ | planned> | achieved>")
    for each in shares.tests:
        planned = "fill" if each.only_fills else in_per_cent(each.planned or 0.0)
        rows.add(each.test, planned, in_per_cent(each.achieved))
    rows.add("(no run)", in_per_cent(shares.unclaimed), in_per_cent(shares.unused))
    return str(rows)


def _criteria(verdicts: Sequence[CriterionVerdict]) -> str:
    rows = TextTable("criterion~ | value> | asked | result")
    reasons = []
    for label, result in ((each.label, each.result) for each in verdicts):
        rows.add(label, result.shown, result.bound, result.words)
        if result.state != "met" and result.reason:
            reasons.append(f"{label}: {result.reason}")
    return "\n".join(filter(None, [str(rows), _listed("", reasons)]))


# ---- many seeds ---------------------------------------------------------------------------


def _table_of_odds(odds: Sequence[Odds]) -> str:
    states = "".join(f" | {state}>" for state in STATES)
    rows = TextTable(f"criterion~{states} | met, 95 % interval | least> | most>")
    for label, one in _labelled(odds):
        ends = (r.shown for r in (one.least, one.most))
        sure = f"{in_per_cent(one.low)} to {in_per_cent(one.high)}" if one.waived < one.of else ""
        numbers = (number or None for number in (one.not_met, one.undecided, one.waived))
        rows.add(label, f"{one.met} of {one.of}", *numbers, sure, *ends)
    return "\n".join(filter(None, [str(rows), _listed("", _lines_of_causes(odds))]))


def _labelled(odds: Sequence[Odds]) -> Iterator[tuple[str, Odds]]:
    several = len({one.trial for one in odds}) > 1
    for one in odds:
        yield f"{one.trial}: {one.label}" if several else one.label, one


def _lines_of_causes(odds: Sequence[Odds]) -> Iterator[str]:
    for label, one in _labelled(odds):
        for each in one.causes:
            seeds = count(each.seeds, "seed")
            yield f"{label}: {each.state} with {seeds}, first with {each.first}: {each.why}"


def _loads(trials: Iterable[Rehearsed], with_seed: bool = False) -> str:
    """Return the load of the metadata targets, a sentence for each file system."""
    return _listed("", (sentence(worst, with_seed) for worst in worst_loads(trials)))


# ---- side by side -------------------------------------------------------------------------


def side_by_side(reports: Sequence[RehearsalReport]) -> str:
    """Return several plans, a column each. Plans of one name are distinguished by numbers."""
    names = [report.plan for report in reports]
    if len(set(names)) < len(names):
        names = [f"{name} ({number})" for number, name in enumerate(names, 1)]
    parts = [_measure_table(names, reports)]
    for name, report in zip(names, reports, strict=True):
        for trial in report.first:
            seed = f", seed {trial.seed}" if len(report.by_seed) > 1 else ""
            parts.append(f"{_bold(name)}: {trial.name}{seed}\n{_over_time(trial)}")
        parts.append(_listed("", _lines_of_causes(report.odds) if report.odds else report.misses))
    return "\n\n".join(filter(None, parts))


def _measure_table(names: Sequence[str], reports: Sequence[RehearsalReport]) -> str:
    seeds = len(reports[0].by_seed)
    title = f"medians of {count(seeds, 'seed')}" if seeds > 1 else ""
    by_plan = [dict(_measures(report)) for report in reports]
    labels = dict.fromkeys(chain(*by_plan))
    rows = ((label, *(measures.get(label, "-") for measures in by_plan)) for label in labels)
    return str(TextTable(" | ".join([title, *(f"{name}>" for name in names)]), rows))


def _measures(report: RehearsalReport) -> Iterator[tuple[str, str]]:
    """Yield the compared measures with their values; with several seeds, the median."""
    odds = iter(report.odds)
    for trials in zip(*report.by_seed, strict=True):
        lead = f"{trials[0].name}: " if len(report.first) > 1 else ""
        for label, value in _measures_of_tests(trials):
            yield lead + label, value
        for verdict in trials[0].criteria:
            yield lead + verdict.label, _said(verdict.result, next(odds, None))
    yield from _loads_compared(report)


def _measures_of_tests(trials: Sequence[Rehearsed]) -> Iterator[tuple[str, str]]:
    """Yield the measures of the runs of a trial, which has several seeds."""
    use = median(trial.utilisation for trial in trials)
    yield "node-hours in accepted work", in_per_cent(use)
    by_test = list(zip(*(trial.tests for trial in trials), strict=True))
    for tests in by_test:
        yield f"accepted {tests[0].test}", show_number(median(one.accepted for one in tests))
    for name, shares in _shares(trials).items():
        yield f"share of {name}", in_per_cent(median(shares))
    for tests in by_test:
        waits = [one.wait for one in tests if one.wait is not None]
        yield f"wait {tests[0].test}", _span(median(waits) if waits else None)


def _shares(trials: Iterable[Rehearsed]) -> dict[str, list[float]]:
    """Return the achieved shares of each test of a mix, and the planned ones."""
    shares: dict[str, list[float]] = {}
    for trial in trials:
        mix = trial.node_shares
        for each in mix.tests if mix is not None and mix.unclaimed is not None else ():
            shares.setdefault(each.test, []).append(each.achieved)
            if not each.only_fills:
                shares.setdefault(f"{each.test}, planned", []).append(each.planned or 0.0)
    return shares


def _said(result: Result, odds: Odds | None) -> str:
    if odds is None:
        return f"{result.words} {result.shown}".strip()
    return "waived" if odds.waived == odds.of else f"met in {odds.met} of {odds.of}"


def _loads_compared(report: RehearsalReport) -> Iterator[tuple[str, str]]:
    by_file_system: dict[str, list[Worst]] = {}
    for trials in report.by_seed:
        for worst in worst_loads(trials):
            by_file_system.setdefault(worst.load.file_system, []).append(worst)
    for name, seeds in by_file_system.items():
        highest = [worst.load.highest for worst in seeds]
        yield f"highest load of a target of {name}", files(median(highest))
        if len(report.by_seed) > 1:
            label = f"highest load of a target of {name}, most of all seeds"
            yield label, files(max(highest))
        if seeds[0].load.safe:
            above = median(worst.above for worst in seeds)
            yield f"time a target of {name} is above safe", in_per_cent(above)


# ---- words --------------------------------------------------------------------------------


def _span(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return show_seconds(seconds) if seconds else "0 s"


def _bold(text: str) -> str:
    return click.style(text, bold=True)


def _listed(title: str, texts: Iterable[str]) -> str:
    """Return sentences, each folded below its first words."""
    lines = [_bold(title)] if title else []
    for text in texts:
        lines += wrap(text, WIDTH, initial_indent="- ", subsequent_indent="  ")
    return "\n".join(lines)
