"""``seatrial matrix``: tests by toolchains, or by another attribute."""

from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any

import click
import msgspec

from seatrial.cli import Folders
from seatrial.cli.options import format_option, tests_filter, trials_argument
from seatrial.cli.query_common import opened, tell_damage
from seatrial.cli.tables import TextTable
from seatrial.escaping import plain_line
from seatrial.judge.promises import share_cell
from seatrial.results import matrix
from seatrial.results.selection import gather, parse_side, trials_of
from seatrial.results.store.by_case import causes
from seatrial.results.store.export import to_json
from seatrial.show.text import GAP, folded, screen_width
from seatrial.units import count, show_number, show_unit

NOT_PASSED, NOT_RUN = 1, 3


_SHORT = {"build failed": "no build", "not run": "-", "left out": "out", "": ""}


MAX_REASONS = 20


WIDEST = len("no build")


WORST = "(build failed)"


@click.command("matrix")
@trials_argument
@click.option(
    "--by",
    default="toolchain",
    show_default=True,
    metavar="NAME",
    help="The columns: toolchain, a parameter, nodes, tasks, threads, cores, machine, trial, "
    "stage or node.",
)
@click.option("--metric", default="", help="The figure; default: the first of each test.")
@click.option("--cases", "each_case", is_flag=True, help="A row for each case, not for each test.")
@tests_filter
@format_option("table", "json")
@click.pass_obj
def command(
    folders: Folders, /, trials: tuple[str, ...], tests: tuple[str, ...], form: str, **asked: Any
) -> int:
    """Show tests by toolchains: passed, failed, build failed, with the figure of merit.

    TRIAL may have conditions, as for `seatrial compare`. A figure is the median of the runs with a
    right answer. Exit code 1: something failed or was not built; 3: else, something was not run.

    \b
    seatrial matrix ft
    seatrial matrix ft --by compiler_flags --cases
    seatrial matrix ft:tag=library --format json
    """
    with opened(folders) as store:
        sides = [gather(store, parse_side(trial), tests) for trial in trials]
        damaged = [trial for trial in trials_of(sides) if trial.damaged]
        tell_damage(store, damaged)
        reasons = matrix.reasons_of(store, trials_of(sides), tests)
    result = matrix.result_matrix(sides, matrix.MatrixQuery(**asked), reasons)
    if form == "json":
        click.echo(to_json({**msgspec.to_builtins(result), "total": result.total}), nl=False)
    else:
        click.echo(_page(result))
    return exit_code(result) or (NOT_RUN if damaged else 0)


def exit_code(result: matrix.ResultMatrix) -> int:
    """Return 0 if all passed, 1 if something failed or was not built, 3 if else something was not
    run."""
    total = result.total
    if total.get("failed") or total.get("build failed"):
        return NOT_PASSED
    return NOT_RUN if total.get("not run") else 0


def _page(result: matrix.ResultMatrix) -> str:
    parts = [_table(result, result.columns)]
    room = screen_width()
    if _breaks(result, room):
        letters = [_letter(i) for i in range(len(result.columns))]
        legend = zip(letters, result.columns, strict=True)
        parts = [_table(result, letters)]
        parts += [folded(", ".join(f"{letter} = {plain_line(name)}" for letter, name in legend))]
    parts += [folded(plain_line(f"in brackets: {words}")) for words in result.promised]
    parts += _reasons(result)
    total = ", ".join(f"{number} {state}" for state, number in result.total.items())
    parts.append(folded(f"{count(len(result.rows), 'row')} by {result.by}: {total}"))
    if result.without:
        named = ", ".join(result.without)
        parts.append(folded(plain_line(f"without {result.by}: {named}")))
    if result.left_out:
        parts.append(f"left out: {count(result.left_out, 'case')} without {plain_line(result.by)}")
    return "\n".join(parts)


def _breaks(result: matrix.ResultMatrix, room: int) -> bool:
    """Return whether the table is too wide for the screen with the names of its columns."""
    columns = sum(max(len(name), WIDEST) + len(GAP) for name in result.columns)
    names = max(len(text) for row in result.rows for text in (row.name, WORST))
    figures = max(len(_figure(row)) for row in result.rows)
    return bool(room) and names + columns + len(GAP) + figures > room


def _letter(number: int) -> str:
    first, second = divmod(number, len(ascii_uppercase))
    return (ascii_uppercase[first - 1] if first else "") + ascii_uppercase[second]


def _table(result: matrix.ResultMatrix, titles: Sequence[str]) -> str:
    titles = [plain_line(title).replace(" | ", " ") for title in titles]
    table = TextTable(f"test~ | {' | '.join(f'{title}>~' for title in titles)} | figure~")
    for row in result.rows:
        table.add(row.name, *(_text(cell) for cell in row.cells), _figure(row))
    for state in matrix.STATES:
        numbers = [column.get(state, 0) for column in result.counts]
        if any(numbers):
            table.add(f"({state})", *(number or "" for number in numbers), "")
    return str(table)


def _text(cell: matrix.MatrixCell) -> str:
    """Return a cell as people read it."""
    if cell.state in ("failed", "known") and cell.passed:
        return f"{cell.passed} of {cell.runs}"
    if cell.state == "passed":
        share = share_cell(cell.promised)
        shown = f" ({share})" if share else ""
        return "pass" if cell.figure is None else show_number(cell.figure) + shown
    return _SHORT.get(cell.state, cell.state)


def _figure(row: matrix.MatrixRow) -> str:
    return f"{row.metric}{show_unit(row.unit)}" if row.metric else ""


def _reasons(result: matrix.ResultMatrix) -> list[str]:
    """Return lines about cells that did not pass."""
    lines = []
    for row in result.rows:
        for column, cell in zip(result.columns, row.cells, strict=True):
            if cell.state in ("known", "failed", "build failed", "left out"):
                text = cell.state if cell.state != "failed" else causes(cell.verdicts)
                text += f": {cell.reason}" if cell.reason else ""
                lines.append(folded(plain_line(f"{row.name}, {column}: {text}")))
    if len(lines) > MAX_REASONS:
        lines[MAX_REASONS:] = [f"and {count(len(lines) - MAX_REASONS, 'more cell')}"]
    return lines
