"""``seatrial scaling``: the effect of more threads, nodes or tasks."""

from collections.abc import Iterator, Sequence
from typing import Any

import click
import msgspec

from seatrial.cli import Folders
from seatrial.cli.options import SHARE, format_option, list_option, tests_filter, trials_argument
from seatrial.cli.query_common import print_csv
from seatrial.cli.sides import left_out_of, sides_of
from seatrial.cli.study import HOW, print_or_draw
from seatrial.cli.tables import TextTable
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.judge.promises import COLUMN, share_cell, told
from seatrial.results.curves import curves, is_over_size
from seatrial.results.given import measured_sides
from seatrial.results.scaling import (
    ScalingLine,
    ScalingQuery,
    ScalingTable,
    scaling,
    without_metric,
)
from seatrial.results.store.by_case import causes
from seatrial.results.store.export import to_json
from seatrial.show.curves import curves_page
from seatrial.show.draw.svg import file_of
from seatrial.show.given import OF_MEASURED, given_over, given_section
from seatrial.show.text import folded, section_text
from seatrial.show.web.pages.scaling import charts
from seatrial.units import in_per_cent, interval_in_per_cent, show_number, show_unit

_COLUMNS = (
    *("case", "metric", "unit", "line", "x", "median", "runs", "speedup", "low", "high"),
    *("ideal", "efficiency", "gain", "excluded"),
)


@click.command("scaling")
@trials_argument
@click.option(
    "--x",
    "x",
    required=True,
    metavar="NAME",
    help="What grows: threads, tasks, nodes, cores (tasks x threads), a parameter, or a label.",
)
@click.option(
    "--metric", default="", help="The figure that scales; default: the one that most runs have."
)
@list_option(
    "--by", "NAME", "A line for each toolchain, trial, machine, stage, or value of a parameter."
)
@tests_filter
@click.option("--weak", is_flag=True, help="The work grows with x: the same time is ideal.")
@click.option(
    "--fixed", is_flag=True, help="The resources are the same at each x: the same speed is ideal."
)
@click.option("--size", is_flag=True, help="x is a size of the work: curves with bands, crossings.")
@click.option(
    "--pays",
    type=SHARE,
    default="50%",
    show_default=True,
    metavar="SHARE",
    help="Smallest share of an addition that must become speed.",
)
@format_option("table", "json", "csv", "svg", help=HOW)
@click.pass_obj
def command(
    folders: Folders, /, trials: tuple[str, ...], tests: tuple[str, ...], form: str, **asked: Any
) -> int:
    """Show how a metric scales: speed-up, efficiency, where scaling ends, the best setting.

    Over a size (a label of figures such as bytes, a parameter with a unit, or with --size) it shows
    a curve for each setting, and where two of them cross. TRIAL may have conditions, as for
    `seatrial compare`. Settings that failed are shown with their cause.

    \b
    seatrial scaling sweep --x threads --metric triad --by toolchain
    seatrial scaling v1 v2 --x nodes --by trial --weak
    seatrial scaling osu1 --x bytes --by place
    """
    query = ScalingQuery(**asked)
    every = sides_of(folders, trials, tests, given=True)
    sides = measured_sides(every)
    if is_over_size(sides, query):
        found = curves(sides, query)
        print_or_draw(curves_page(found, given_over(every, found)), form)
        return 0
    tables = scaling(sides, query)
    given = given_over(every, tables)
    if form == "json":
        beside = {"given": msgspec.to_builtins(given)} if given else {}
        click.echo(to_json([_record(each) | beside for each in tables]), nl=False)
        return 0
    if form == "svg":
        click.echo(_drawing(tables), nl=False)
        return 0
    if form == "csv":
        print_csv([_COLUMNS, *(row for each in tables for row in _rows(each))])
        return 0
    parts = [_page(each, query) for each in tables]
    if left_out := without_metric(sides, query):
        parts.append(folded(plain_line(f"without {query.metric}: {', '.join(left_out)}")))
    if given:
        parts.append(section_text(given_section(given, beside=OF_MEASURED)))
    click.echo("\n\n".join([*parts, *left_out_of(tables)]))
    return 0


def _rows(one: ScalingTable) -> Iterator[list[object]]:
    for line in one.lines:
        for cell in line.cells:
            yield [
                *(one.case, one.metric, one.unit, line.by, one.named(cell.x), cell.median, cell.n),
                *(cell.speedup, cell.low, cell.high, cell.ideal, cell.efficiency, cell.gain),
                cell.reason or causes(cell.excluded),
            ]


def _drawing(tables: Sequence[ScalingTable]) -> str:
    """Return the plots of the tables as the text of an SVG file. Raises UsageError without any."""
    figures = [
        (f"{each.case}: {caption}", figure)
        for each in tables
        if not each.reason
        for caption, figure in charts(each)
    ]
    if not figures:
        raise UsageError(tables[0].reason)
    return file_of(figures)


def _record(table: ScalingTable) -> dict[str, Any]:
    record: dict[str, Any] = msgspec.to_builtins(table)
    for line in record["lines"]:
        for cell in line["cells"]:
            del cell["values"]
    return record


def _page(one: ScalingTable, query: ScalingQuery) -> str:
    unit = show_unit(one.unit, " in {}")
    title = f"{one.case}: {one.metric}{unit} ({one.better} is better) over {one.x}, {_kind(one)}"
    lines = [click.style(folded(plain_line(title)), bold=True)]
    if one.along:
        lines.append(folded(plain_line(f"along with {one.x}: {', '.join(one.along)}")))
    if one.reason:
        return "\n".join([*lines, folded(plain_line(one.reason))])
    lines += ["", _fixed_table(one) if one.fixed else _table(one), ""]
    lines += [folded(plain_line(words)) for words in _below(one, query.pays)]
    return "\n".join(lines)


def _kind(one: ScalingTable) -> str:
    if one.names:
        return "settings"
    return "constant resources" if one.fixed else "weak" if one.weak else "strong"


def _below(one: ScalingTable, pays: float) -> Iterator[str]:
    """Yield what is told below a table: of each line, then the best setting."""
    if one.fixed:
        for line in one.lines:
            yield from _fixed(line, one)
    else:
        yield from (_knee(line, one.x, pays) for line in one.lines)
        for line in one.lines:
            yield from _beyond(line, one.x)
    if one.best is not None:
        yield _best(one)
    if one.figures > 1:
        yield f"{one.metric} is one of {one.figures} figures; --metric names another"
    yield from told(cell.promised for line in one.lines for cell in line.cells)


def _table(one: ScalingTable) -> str:
    def share(value: float | None) -> str:
        return "" if value is None else f"{round(100 * value)} %"  # never -0

    table = TextTable(
        f"line~ | {one.x}> | median> | runs> | {COLUMN}> | speed-up> | 95 %> | ideal> | "
        "efficiency> | gain> | excluded~"
    )
    for line in one.lines:
        for cell in line.cells:
            name = line.by if cell is line.cells[0] else ""
            low, high = show_number(cell.low), show_number(cell.high)
            figures = (cell.median, cell.n, share_cell(cell.promised))
            numbers = (*figures, cell.speedup, f"{low}..{high}" if low else "")
            shares = (cell.ideal, share(cell.efficiency), share(cell.gain))
            table.add(name, f"{cell.x:g}", *numbers, *shares, cell.reason or causes(cell.excluded))
    return str(table)


def _fixed_table(one: ScalingTable) -> str:
    of = f"{COLUMN}> | of the best>"
    table = TextTable(f"line~ | {one.x}> | median> | runs> | {of} | 95 %> | excluded~")
    for line in one.lines:
        for cell in line.cells:
            name = line.by if cell is line.cells[0] else ""
            interval, of_best = interval_in_per_cent(cell.low, cell.high), in_per_cent(cell.speedup)
            reason = cell.reason or causes(cell.excluded)
            shares = share_cell(cell.promised), of_best
            table.add(name, one.named(cell.x), cell.median, cell.n, *shares, interval, reason)
    return str(table)


def _fixed(line: ScalingLine, table: ScalingTable) -> Iterator[str]:
    """Yield what is told of a line with constant resources: its plateau, its drops."""
    name = f"{line.by}: " if line.by else ""
    if line.reason:
        yield f"{name}{line.reason}"
        return
    yield f"{name}{_plateau(line, table)}: within 5 % of the best, or as good within the noise"
    for drop in line.drops:
        yield f"{name}{drop.words(table.x, table.named)}"


def _plateau(line: ScalingLine, table: ScalingTable) -> str:
    """Return the x that are as good as the best, as a span if they have an order."""
    named = list(map(table.named, line.plateau))
    if not table.ordered:
        return f"as good: {table.x} {', '.join(named)}"
    several = len(named) > 1
    return f"plateau: {table.x} {' to '.join((named[0], named[-1])[: several + 1])}"


def _knee(line: ScalingLine, x: str, pays: float) -> str:
    name = f"{line.by}: " if line.by else ""
    if line.knee is None:
        return f"{name}no knee: {line.reason}"
    where = f"knee at {x} {line.knee:g}"
    if line.knee == line.base:
        where = f"more than {x} {line.knee:g}, the smallest measured, does not pay"
    doubt = "" if line.certain else f"; {line.reason}"
    return f"{name}{where}: less than {100 * pays:g} % of an addition becomes speed{doubt}"


def _beyond(line: ScalingLine, x: str) -> Iterator[str]:
    """Yield what is told of speed-ups that are more than ideal."""
    name = f"{line.by}: " if line.by else ""
    for cell in line.beyond_ideal:
        yield (
            f"{name}{x} {line.base or 0:g} to {cell.x:g}: a speed-up of "
            f"{show_number(cell.speedup)} is beyond ideal ({show_number(cell.ideal)}): "
            "look at the smallest case, and at the sizes"
        )


def _best(one: ScalingTable) -> str:
    def setting(by: str, x: float) -> str:
        return f"{by}, {one.x} {one.named(x)}" if by else f"{one.x} {one.named(x)}"

    assert one.best is not None
    unit = show_unit(one.unit)
    text = f"best median: {setting(one.best.by, one.best.x)}: {show_number(one.best.median)}{unit}"
    if one.best.equals:
        equals = "; ".join(setting(by, x) for by, x in one.best.equals[:5])
        text += f"; as good within the noise: {equals}"
    return text
