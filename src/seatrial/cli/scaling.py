"""``seatrial scaling``: the effect of more threads, nodes or tasks."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from seatrial.cli import Folders
from seatrial.cli.param_types import format_option
from seatrial.cli.query_common import opened, share
from seatrial.cli.tables import columns_of, table
from seatrial.store.export import to_json
from seatrial.studies.compare import causes
from seatrial.studies.scaling import Cell, ScalingLine, ScalingQuery, ScalingTable, scaling
from seatrial.studies.selection import gather, parse_side
from seatrial.units import show_number, show_unit
from seatrial.verify.reading import plain_line


@click.command("scaling")
@click.argument("trials", nargs=-1, required=True, metavar="TRIAL...")
@click.option("--x", "x", required=True, metavar="NAME", help="threads, tasks, nodes, a parameter.")
@click.option("--metric", default="elapsed", show_default=True, help="The figure that scales.")
@click.option("--by", multiple=True, metavar="NAME", help="A line for each toolchain, or trial.")
@click.option("-k", "--test", "tests", multiple=True, metavar="PATTERN", help="Only these tests.")
@click.option("--weak", is_flag=True, help="The work grows with x: the same time is ideal.")
@click.option(
    "--pays",
    default="50%",
    show_default=True,
    metavar="SHARE",
    help="Smallest share of an addition that must become speed.",
)
@format_option("table", "json")
@click.pass_obj
def command(
    folders: Folders,
    /,
    trials: tuple[str, ...],
    x: str,
    metric: str,
    by: tuple[str, ...],
    tests: tuple[str, ...],
    weak: bool,
    pays: str,
    form: str,
) -> int:
    """Show how a metric scales: speed-up, efficiency, where scaling ends, the best setting.

    TRIAL may have conditions, as for `seatrial compare`. Settings that failed are shown with their
    cause.

    \b
    seatrial scaling sweep --x threads --metric triad --by toolchain
    seatrial scaling week:test=cm4 --x nodes
    seatrial scaling v1 v2 --x nodes --by trial --weak
    """
    asked = ScalingQuery(x=x, metric=metric, by=by, weak=weak, pays=share(pays, "--pays"))
    with opened(folders) as store:
        sides = [gather(store, parse_side(trial), tests) for trial in trials]
    found = scaling(sides, asked)
    if form == "json":
        click.echo(to_json([_record(each) for each in found]), nl=False)
        return 0
    click.echo("\n\n".join(_page(each, asked.by, asked.pays) for each in found))
    return 0


def _record(table: ScalingTable) -> dict[str, Any]:
    record: dict[str, Any] = msgspec.to_builtins(table)
    for line in record["lines"]:
        for cell in line["cells"]:
            del cell["values"]
    return record


def _page(one: ScalingTable, by: tuple[str, ...], pays: float) -> str:
    kind = "weak" if one.weak else "strong"
    unit = show_unit(one.unit, " in {}")
    title = f"{one.case}: {one.metric}{unit} ({one.better} is better) over {one.x}, {kind}"
    lines = [click.style(plain_line(title), bold=True)]
    if one.along:
        lines.append(plain_line(f"along with {one.x}: {', '.join(one.along)}"))
    if one.why:
        return "\n".join([*lines, plain_line(one.why)])
    lines += ["", _table(one, ", ".join(by)), ""]
    lines += [plain_line(_knee(line, one.x, pays)) for line in one.lines]
    if one.best is not None:
        lines.append(plain_line(_best(one)))
    return "\n".join(lines)


def _table(one: ScalingTable, by: str) -> str:
    columns = columns_of(
        f"{by} | {one.x} | median | runs | speed-up | 95 % | ideal | efficiency | gain | excluded",
        right=f"{one.x} | median | runs | speed-up | 95 % | ideal | efficiency | gain",
        folds=f"{by} | excluded",
    )
    rows = [
        [line.by if i == 0 else "", *_cells(cell)]
        for line in one.lines
        for i, cell in enumerate(line.cells)
    ]
    return table(columns, rows)


def _cells(cell: Cell) -> list[str]:
    def share(value: float | None) -> str:
        return "" if value is None else f"{round(100 * value)} %"  # never -0

    interval = "" if cell.low is None else f"{show_number(cell.low)}..{show_number(cell.high)}"
    return [
        f"{cell.x:g}",
        show_number(cell.median),
        str(cell.n),
        show_number(cell.speedup),
        interval,
        show_number(cell.ideal),
        share(cell.efficiency),
        share(cell.gain),
        cell.why or causes(cell.excluded),
    ]


def _knee(line: ScalingLine, x: str, pays: float) -> str:
    name = f"{line.by}: " if line.by else ""
    if line.knee is None:
        return f"{name}no knee: {line.why}"
    said = f"knee at {x} {line.knee:g}: beyond it, less than"
    if line.knee == line.base:
        said = f"{x} {line.knee:g}, the smallest measured, is enough: beyond it, less than"
    doubt = "" if line.certain else f" ({line.why})"
    return f"{name}{said} {100 * pays:g} % of an addition becomes speed{doubt}"


def _best(one: ScalingTable) -> str:
    def setting(by: str, x: float) -> str:
        return f"{by}, {one.x} {x:g}" if by else f"{one.x} {x:g}"

    assert one.best is not None
    unit = show_unit(one.unit)
    said = f"best: {setting(one.best.by, one.best.x)}: {show_number(one.best.median)}{unit}"
    if one.best.equals:
        equals = "; ".join(setting(by, x) for by, x in one.best.equals[:5])
        said += f"; as good within the noise: {equals}"
    return said
