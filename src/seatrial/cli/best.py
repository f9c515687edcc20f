"""``seatrial best``: the best setting, and those that cannot be told from it."""

from collections.abc import Iterator
from typing import Any

import click
import msgspec

from seatrial.cli import Folders, options
from seatrial.cli.sides import code_of_damage, left_out_of, sides_of
from seatrial.cli.tables import TextTable, print_first
from seatrial.escaping import plain_line
from seatrial.execute.tuning import PreparedTuning
from seatrial.execute.tuning_odds import TuningOdds
from seatrial.judge.promises import COLUMN, share_cell, told
from seatrial.judge.statistics.significance import remedy
from seatrial.results.best import (
    BestQuery,
    BestTable,
    OverSizes,
    Setting,
    best_settings,
    over_sizes,
)
from seatrial.results.ratios import per_resource
from seatrial.results.selection import words_of
from seatrial.results.store.by_case import causes
from seatrial.results.store.export import to_json
from seatrial.results.tuned import (
    Tuned,
    TunedSetting,
    advice,
    cost_text,
    in_order,
    interval_text,
    not_needed,
    state_text,
    untried_text,
)
from seatrial.show.best import of_figures, range_sections, size_sections
from seatrial.show.given import given_section, value_of
from seatrial.show.sweep import sweep_page
from seatrial.show.text import folded, page_text, section_text
from seatrial.units import (
    count,
    in_per_cent,
    interval_in_per_cent,
    listed,
    show_figure,
    show_number,
    show_seconds,
    show_share,
    show_unit,
)

MAX_NAMED = 6


@click.command("best")
@options.trials_argument
@options.text_option(
    "--over",
    "NAME[,NAME]",
    "What makes a setting: parameters, toolchain, tasks...; default: all parameters that vary.",
)
@options.text_option(
    "--best-of", "NAME[,NAME]", "Each setting by its best over these, such as nodes,tasks."
)
@click.option("--metric", default="", help="The figure; default: the one that most runs have.")
@options.text_option(
    "--x", "NAME", "Rank at each value of a label or parameter; default: bytes, if it has several."
)
@options.choice_option(
    "--statistic",
    of=["median", "least"],
    help="Rank by the median of the runs, or by the best of them.",
)
@options.tests_filter
@options.per_option
@options.format_option("table", "json")
@click.pass_obj
def command(
    folders: Folders,
    /,
    trials: tuple[str, ...],
    over: str,
    best_of: str,
    tests: tuple[str, ...],
    per: str | None,
    form: str,
    **asked: Any,
) -> int:
    """Rank settings: the best one, those that cannot be told from it, those that failed.

    TRIAL may have conditions, as for `seatrial compare`. With 95 % a best setting is among those
    that are not called worse. Figures that others gave stand beside them, marked and not ranked. Of
    a figure with several sizes it tells the best at each, and over which sizes each is best.

    \b
    seatrial best sweep
    seatrial best sweep --over order,stripe --metric bandwidth
    seatrial best week1 week2 week3 --over threads --statistic least
    seatrial best osu1 --over place --metric "latency{bytes=8}"
    seatrial best daint titan vendor --over machine --best-of nodes,tasks
    """
    query = BestQuery(over=words_of(over), best_of=words_of(best_of), **asked)
    sides = sides_of(folders, trials, tests, given=True)
    if per:
        sides = [per_resource(side, per) for side in sides]
    tables = best_settings(sides, query)
    if form == "json":
        click.echo(to_json(msgspec.to_builtins(tables)), nl=False)
    else:
        click.echo("\n\n".join([*map(_page, over_sizes(tables)), *left_out_of(tables)]))
    return code_of_damage(sides)


def _page(one: BestTable | OverSizes) -> str:
    if isinstance(one, OverSizes):
        return "\n\n".join(map(section_text, size_sections(one)))
    if one.best_of:
        return "\n\n".join(map(section_text, range_sections(one)))
    unit = show_unit(one.unit, " in {}")
    better = f" ({one.better} is better)" if any(each.n for each in one.settings) else ""
    title = f"{one.case}: {one.metric}{unit}{better} over {', '.join(one.over)}"
    lines = [click.style(plain_line(title), bold=True)]
    if one.along:
        lines.append(plain_line(f"along with them: {', '.join(one.along)}"))
    if one.cores:
        lines.append(f"constant resources: {count(one.cores, 'core')} in each setting")
    lines += ["", _table(one), ""]
    lines += [folded(plain_line(text)) for text in _told(one)]
    if one.given:
        lines += ["", section_text(given_section(one.given))]
    return "\n".join(lines)


def _table(one: BestTable) -> str:
    ranked = "least> | bound" if one.statistic == "least" else "median"
    columns = " | ".join(f"{name}>~" for name in one.over)
    told_of = f"runs> | {COLUMN}> | of the best> | 95 %>?-1 |  | excluded~"
    table = TextTable(f"{columns} | {ranked}> | {told_of}")
    for each in one.settings:
        least = one.statistic == "least"
        figures = (each.least, each.bound) if least else (each.median,)
        interval, ratio = interval_in_per_cent(each.low, each.high), in_per_cent(each.ratio)
        reason = causes(each.excluded) if each.n else each.reason or causes(each.excluded)
        verdict = "" if each.verdict == "no figure" else each.word
        shares = share_cell(each.promised), ratio
        table.add(*each.values.values(), *figures, each.n, *shares, interval, verdict, reason)
    for entry in one.given:
        bound = (None,) if one.statistic == "least" else ()
        ratio = in_per_cent(entry.ratio)
        value = value_of(entry, one.unit)
        table.add(*entry.values.values(), value, *bound, "", "", ratio, "", "given", "")
    return str(table)


def _told(one: BestTable) -> Iterator[str]:
    """Yield what is told below the table."""
    if one.reason:
        yield one.reason
        return
    best = one.settings[0]
    figure = best.least if one.statistic == "least" else best.median
    yield f"best: {best.name}: {show_number(figure)}{show_unit(one.unit)}"
    if one.indistinct:
        yield f"cannot be told from the best: {_named(one.indistinct)}"
        yield from _unclear(one.indistinct)
    elif any(each.verdict == "worse" for each in one.settings):
        yield "all others are worse, beyond noise"
    if one.agreement[1]:
        yield "best in {} of {} {}".format(*one.agreement, one.blocks)
    yield from _plateau(one)
    yield from of_figures(one)
    yield from told(each.promised for each in one.settings)
    if failed := sum(each.verdict == "no figure" for each in one.settings):
        yield f"{count(failed, 'setting')} without a figure"


def _plateau(one: BestTable) -> Iterator[str]:
    """Yield which settings are about as good as the best one, and where figures drop."""
    around = [each for each in one.settings[1:] if each.on_plateau]
    if one.plateau and around:
        named = f"plateau: the best and {_named(around)}"
        yield f"{named}: within 5 % of it, or as good within the noise"
    for drop in one.drops:
        yield drop.words(one.over[0])


def _unclear(settings: list[Setting]) -> Iterator[str]:
    """Yield why settings are unclear, each reason once, and the remedy."""
    reasons: dict[str, list[Setting]] = {}
    for each in settings:
        if each.verdict == "unclear":
            reasons.setdefault(each.reason, []).append(each)
    for reason, unclear in list(reasons.items())[:MAX_NAMED]:
        whose = "all of these" if 1 < len(unclear) == len(settings) else _named(unclear)
        yield f"{whose}: {reason}"
    if needed := max((each.needed for each in settings), default=0):
        yield remedy(needed)


def _named(settings: list[Setting]) -> str:
    more = len(settings) - MAX_NAMED
    named = "; ".join(each.name for each in settings[:MAX_NAMED])
    return f"{named} and {more} more" if more > 0 else named


# ---- tuning tables -------------------------------------------------------------------------------
#
# A tuning as text: its advice, its settings, its rehearsal.


MAX_ROWS = 15


def print_advice(tuning: Tuned, folders: Folders) -> None:
    """Print which setting to use, how sure that is, and what it cost."""
    if tuning.swept is not None:
        _print_sweep(tuning, folders)
        return
    first, *more = advice(tuning)
    click.echo(f"{_title(tuning)}\n")
    click.echo(click.style(folded(plain_line(first)), bold=True))
    for text in more:
        click.echo(folded(plain_line(text)))
    if rows := [each for each in in_order(tuning) if each.state != "failed"]:
        click.echo()
        _print_settings(tuning, rows)
    _print_failed(tuning)
    click.echo("\n" + folded(f"cost: {cost_text(tuning)}"))
    if untried := untried_text(tuning):
        click.echo(folded(plain_line(f"not varied: {untried}")))
    _print_script(tuning)
    click.echo(f"\nall settings: {folders.command('tune', '--status', tuning.trial)}")


def _print_sweep(tuning: Tuned, folders: Folders) -> None:
    """Print the best points of a sweep, its plateau, its knee and its surface."""
    click.echo(f"{_title(tuning)}\n")
    click.echo(page_text(sweep_page(tuning)))
    _print_script(tuning)
    click.echo(f"\npicture: {folders.command('advise', tuning.trial, '--format', 'svg')}")


def _print_script(tuning: Tuned) -> None:
    if tuning.script:
        click.echo("\nfor a job script:")
        for line in tuning.script:
            click.echo(plain_line(f"    {line}"))


def print_status(tuning: Tuned) -> None:
    """Print how a race stands: its blocks, and every setting."""
    click.echo(f"{_title(tuning)}\n")
    for number, block in enumerate(tuning.blocks, 1):
        lost = sum(each.block == number for each in tuning.settings)
        what = f"{count(len(block.settings), 'setting')}, {count(block.rounds, 'round')}"
        ended = number < len(tuning.blocks) or tuning.complete
        after = f"; {lost} dropped after it" if ended else "; under way"
        on = f" on {listed(block.nodes, 3)}" if block.nodes else ""
        click.echo(folded(plain_line(f"block {number}: {what}{on}{after}")))
    click.echo(folded(f"cost: {cost_text(tuning)}") + "\n")
    _print_settings(tuning, in_order(tuning), len(tuning.settings))


def _title(tuning: Tuned) -> str:
    what = tuning.metric or "the largest size that works"
    if tuning.metric:
        unit = f" ({tuning.unit})" if tuning.unit not in ("", "1") else ""
        what = f"{tuning.metric}{unit}, {tuning.better} is better"
    state = "complete" if tuning.complete else "not complete"
    return plain_line(f"{tuning.tune}: {tuning.test} on {tuning.machine}, {what}; {state}")


def _print_settings(tuning: Tuned, rows: list[TunedSetting], maximum: int = MAX_ROWS) -> None:
    table = TextTable("setting~ | n> | figure>?3 | of the best> | interval?2 | state~")
    for each in rows[:maximum]:
        ratio = each.to_best
        table.add(
            each.name + (" (default)" if each.is_default else ""),
            each.n,
            None if each.figure is None else show_figure(each.figure, tuning.unit),
            None if ratio is None else f"{ratio.ratio:.3f}",
            None if ratio is None else interval_text(ratio),
            state_text(tuning, each),
        )
    print_first(table, len(rows), maximum)
    if words := not_needed(tuning):
        click.echo("\n" + folded(plain_line(words)))


def _print_failed(tuning: Tuned) -> None:
    failed = [each for each in tuning.settings if each.state == "failed"]
    if failed:
        click.echo(f"\n{count(len(failed), 'setting')} failed:")
        for each in failed[:MAX_ROWS]:
            click.echo(folded(plain_line(f"  {each.name}: {each.cause}")))
        if len(failed) > MAX_ROWS:
            click.echo(f"  and {len(failed) - MAX_ROWS} more")


def print_rehearsal(odds: "TuningOdds", prepared: "PreparedTuning") -> None:
    """Print what a tuning would cost, and how likely it finds the best."""
    rules, tune = prepared.rules, prepared.tune
    click.echo(
        f"{tune.tune}: {count(len(rules.levels), 'setting')} of {tune.test}, at most "
        f"{rules.runs} of the grid's {rules.grid} runs"
        + ("" if rules.search == "sweep" else f" in {count(rules.allocations, 'allocation')}")
    )
    longest = max((case.nodes * case.walltime / 3600 for case in prepared.cases), default=0.0)
    click.echo(
        folded(
            f"cost: at most {show_number(rules.runs * longest)} node-hours, if each run took its "
            f"whole walltime; an allocation takes up to {show_seconds(prepared.longest_block)}"
        )
    )
    noise = f"{show_share(odds.noise)} noise, node factors of {show_share(odds.nodes)}, drift"
    click.echo(folded(f"rehearsed with {count(odds.seeds, 'seed')}: {noise}, disturbed runs\n"))
    table = TextTable("planted effects~ | advised is best or near> | default kept> | runs>")
    for each in odds.cases:
        found = show_share(each.found) if each.found is not None else None
        table.add(each.planted, found, show_share(each.kept), show_share(each.runs / rules.grid))
    click.echo(table)
    click.echo(folded(f"near: within {show_share(rules.min_effect)} of the best"))
