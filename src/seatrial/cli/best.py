"""``seatrial best``: the best setting, and those that cannot be told from it."""

from collections.abc import Iterator
from typing import Any

import click
import msgspec

from seatrial.cli import Folders, options
from seatrial.cli.sides import code_of_damage, left_out_of, sides_of
from seatrial.cli.tables import TextTable
from seatrial.escaping import plain_line
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
from seatrial.show.best import of_figures, range_sections, size_sections
from seatrial.show.given import given_section, value_of
from seatrial.show.text import folded, section_text
from seatrial.units import (
    count,
    in_per_cent,
    interval_in_per_cent,
    show_number,
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
