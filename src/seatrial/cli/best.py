"""``seatrial best``: the best setting, and those that cannot be told from it."""

from collections.abc import Iterator
from typing import Any

import click
import msgspec

from seatrial.cli import Folders, options
from seatrial.cli.query_common import code_of_damage, left_out_of, sides_of
from seatrial.cli.tables import TextTable
from seatrial.show.text import folded
from seatrial.statistics.sample_sizes import remedy
from seatrial.store.by_case import causes
from seatrial.store.interchange import to_json
from seatrial.studies.best import BestQuery, BestTable, Setting, best_settings
from seatrial.studies.resource_basis import Resource, per_resource
from seatrial.units import count, in_per_cent, interval_in_per_cent, show_number, show_unit
from seatrial.verify.reading import plain_line

MAX_NAMED = 6


@click.command("best")
@options.trials_argument
@options.text_option(
    "--over",
    "NAME[,NAME]",
    "What makes a setting: parameters, toolchain, tasks...; default: all parameters that vary.",
)
@click.option("--metric", default="", help="The figure; default: the one that most runs have.")
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
    tests: tuple[str, ...],
    per: Resource | None,
    form: str,
    **asked: Any,
) -> int:
    """Rank settings: the best one, those that cannot be told from it, those that failed.

    TRIAL may have conditions, as for `seatrial compare`. With 95 % a best setting is among those
    that are not called worse.

    \b
    seatrial best sweep
    seatrial best sweep --over order,stripe --metric bandwidth
    seatrial best week1 week2 week3 --over threads --statistic least
    """
    names = tuple(dict.fromkeys(name.strip() for name in over.split(",") if name.strip()))
    query = BestQuery(over=names, **asked)
    sides = sides_of(folders, trials, tests)
    if per:
        sides = [per_resource(side, per) for side in sides]
    found = best_settings(sides, query)
    if form == "json":
        click.echo(to_json(msgspec.to_builtins(found)), nl=False)
    else:
        click.echo("\n\n".join([*map(_page, found), *left_out_of(found)]))
    return code_of_damage(sides)


def _page(one: BestTable) -> str:
    unit = show_unit(one.unit, " in {}")
    better = f" ({one.better} is better)" if any(each.n for each in one.settings) else ""
    title = f"{one.case}: {one.metric}{unit}{better} over {', '.join(one.over)}"
    lines = [click.style(plain_line(title), bold=True)]
    if one.along:
        lines.append(plain_line(f"along with them: {', '.join(one.along)}"))
    if one.cores:
        lines.append(f"constant resources: {count(one.cores, 'core')} in each setting")
    lines += ["", _table(one), ""]
    lines += [folded(plain_line(told)) for told in _told(one)]
    return "\n".join(lines)


def _table(one: BestTable) -> str:
    ranked = "least> | bound" if one.statistic == "least" else "median"
    columns = " | ".join(f"{name}>~" for name in one.over)
    found = TextTable(f"{columns} | {ranked}> | runs> | of the best> | 95 %>?-1 |  | excluded~")
    for each in one.settings:
        least = one.statistic == "least"
        figures = (each.least, each.bound) if least else (each.median,)
        interval, ratio = interval_in_per_cent(each.low, each.high), in_per_cent(each.ratio)
        why = causes(each.excluded) if each.n else each.why or causes(each.excluded)
        verdict = "" if each.verdict == "no figure" else each.word
        found.add(*each.values.values(), *figures, each.n, ratio, interval, verdict, why)
    return str(found)


def _told(one: BestTable) -> Iterator[str]:
    """Yield what is told below the table."""
    if one.why:
        yield one.why
        return
    best = one.settings[0]
    figure = best.least if one.statistic == "least" else best.median
    yield f"best: {best.name}: {show_number(figure)}{show_unit(one.unit)}"
    if one.untold:
        yield f"cannot be told from the best: {_named(one.untold)}"
        yield from _unclear(one.untold)
    elif any(each.verdict == "worse" for each in one.settings):
        yield "all others are worse, beyond noise"
    if one.agreement[1]:
        yield "best in {} of {} {}".format(*one.agreement, one.blocks)
    around = [each for each in one.settings if each.on_plateau and each is not best]
    if one.plateau and around:
        said = f"plateau: the best and {_named(around)}"
        yield f"{said}: within 5 % of it, or as good within the noise"
    for drop in one.drops:
        yield drop.told(one.over[0])
    if failed := sum(each.verdict == "no figure" for each in one.settings):
        yield f"{count(failed, 'setting')} without a figure"


def _unclear(settings: list[Setting]) -> Iterator[str]:
    """Yield why settings are unclear, each reason once, and the remedy."""
    reasons: dict[str, list[Setting]] = {}
    for each in settings:
        if each.verdict == "unclear":
            reasons.setdefault(each.why, []).append(each)
    for why, own in list(reasons.items())[:MAX_NAMED]:
        whose = "all of these" if 1 < len(own) == len(settings) else _named(own)
        yield f"{whose}: {why}"
    if needed := max((each.needed for each in settings), default=0):
        yield remedy(needed)


def _named(settings: list[Setting]) -> str:
    more = len(settings) - MAX_NAMED
    named = "; ".join(each.name for each in settings[:MAX_NAMED])
    return f"{named} and {more} more" if more > 0 else named
