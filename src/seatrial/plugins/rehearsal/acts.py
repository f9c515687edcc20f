"""``seatrial rehearse``: run a plan in virtual time."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from statistics import median
from textwrap import wrap
from typing import Any

import click

from seatrial.cli import Folders
from seatrial.cli.tables import TextTable
from seatrial.execute.plan.component import Place, together
from seatrial.plugins.rehearsal.plan_rehearsal import CriterionVerdict, Rehearsed, TestTally
from seatrial.plugins.rehearsal.report import (
    Odds,
    RehearsalReport,
    Worst,
    as_record,
    files,
    rehearse_plan,
    sentence,
    worst_loads,
)
from seatrial.results.criteria.view import STATES, Result
from seatrial.results.store.export import to_json
from seatrial.results.utilisation import USES
from seatrial.show.text import bars
from seatrial.units import SECOND_NS, count, in_per_cent, show_number, show_seconds


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
        parts += [_odds(report.odds), _loads(chain(*report.by_seed), with_seed=True)]
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


def _odds(odds: Sequence[Odds]) -> str:
    states = "".join(f" | {state}>" for state in STATES)
    rows = TextTable(f"criterion~{states} | met, 95 % interval | least> | most>")
    for label, one in _labelled(odds):
        ends = (r.shown for r in (one.least, one.most))
        sure = f"{in_per_cent(one.low)} to {in_per_cent(one.high)}" if one.waived < one.of else ""
        numbers = (number or None for number in (one.not_met, one.undecided, one.waived))
        rows.add(label, f"{one.met} of {one.of}", *numbers, sure, *ends)
    return "\n".join(filter(None, [str(rows), _listed("", _causes(odds))]))


def _labelled(odds: Sequence[Odds]) -> Iterator[tuple[str, Odds]]:
    several = len({one.trial for one in odds}) > 1
    for one in odds:
        yield f"{one.trial}: {one.label}" if several else one.label, one


def _causes(odds: Sequence[Odds]) -> Iterator[str]:
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
        parts.append(_listed("", _causes(report.odds) if report.odds else report.misses))
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
