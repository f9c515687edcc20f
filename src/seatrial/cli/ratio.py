"""``seatrial ratio``: what one way of running costs against another, over sizes."""

from collections.abc import Iterator
from typing import Any

import click
import msgspec

from seatrial.cli import Folders
from seatrial.cli.options import format_option, tests_filter, trials_argument
from seatrial.cli.query_common import print_csv
from seatrial.cli.sides import code_of_damage, left_out_of, sides_of
from seatrial.cli.tables import TextTable
from seatrial.escaping import plain_line
from seatrial.judge.statistics.significance import remedy
from seatrial.results import ratios
from seatrial.results.store.by_case import causes
from seatrial.results.store.export import to_json
from seatrial.show.curves import meeting_words
from seatrial.show.text import folded
from seatrial.units import listed, show_number, show_unit

MAX_NAMED = 6


_COLUMNS = (
    *("case", "x", "first_median", "first_runs", "second_median", "second_runs"),
    *("ratio", "low", "high", "verdict", "first_speedup", "second_speedup", "ideal"),
    *("first_why", "second_why", "why", "needed"),
)


@click.command("ratio")
@trials_argument
@click.option(
    "--of",
    required=True,
    metavar="NAME=FIRST,SECOND",
    help="The two ways: toolchain=native,compat, or values of a parameter.",
)
@click.option(
    "--x",
    "x",
    required=True,
    metavar="NAME",
    help="The size: tasks, nodes, threads, cores, a parameter, or a label of figures.",
)
@click.option(
    "--metric",
    default="",
    help="The figure; default: elapsed, over a label the figure that most runs have.",
)
@tests_filter
@click.option("--weak", is_flag=True, help="The work grows with x: the same time is ideal.")
@click.option(
    "--fixed", is_flag=True, help="The resources are the same at each x: there is no speed-up."
)
@format_option("table", "json", "csv")
@click.pass_obj
def command(
    folders: Folders,
    /,
    trials: tuple[str, ...],
    of: str,
    tests: tuple[str, ...],
    form: str,
    **asked: Any,
) -> int:
    """Show how many times as long the second way takes as the first, at each size.

    With 95 % intervals, the speed-up of both, sizes that failed with their cause, the range over
    all tests, and how the ratio changes from the least size to the largest. TRIAL may have
    conditions, as for `seatrial compare`.

    \b
    seatrial ratio both --of toolchain=native,compat --x tasks
    seatrial ratio sweep --of order=smp,grid --x nodes --metric rate
    seatrial ratio osu1 --of place=X,Z --x bytes
    """
    name, first, second = ratios.two_values(of)
    query = ratios.RatioQuery(of=name, values=(first, second), **asked)
    sides = sides_of(folders, trials, tests)
    tables = ratios.ratios(sides, query)
    if form == "json":
        click.echo(to_json([_record(each) for each in tables]), nl=False)
    elif form == "csv":
        print_csv([_COLUMNS, *(row for each in tables for row in _rows(each))])
    else:
        parts = [_page(each) for each in tables]
        parts += left_out_of(tables)
        if told := [*_range(tables), *_left_out(ratios.without_both(sides, tables), query)]:
            parts.append("\n".join(folded(plain_line(line)) for line in told))
        click.echo("\n\n".join(parts))
    return code_of_damage(sides)


def _record(table: ratios.RatioTable) -> dict[str, Any]:
    record: dict[str, Any] = msgspec.to_builtins(table)
    for cell in record["cells"]:
        del cell["first"]["values"], cell["second"]["values"]
    return record


def _rows(one: ratios.RatioTable) -> Iterator[list[object]]:
    for cell in one.cells:
        a, b = cell.first, cell.second
        yield [
            *(one.case, one.named(cell.x), a.median, a.n, b.median, b.n),
            *(cell.ratio, cell.low, cell.high, cell.word, a.speedup, b.speedup),
            *(a.ideal or b.ideal, a.reason, b.reason, cell.reason, cell.needed or None),
        ]


def _page(one: ratios.RatioTable) -> str:
    first, second = one.values
    unit = show_unit(one.unit, " in {}")
    title = f"{one.case}: {one.metric}{unit} ({one.better} is better), {second} over {first}"
    lines = [click.style(folded(plain_line(f"{title}, by {one.x}")), bold=True)]
    if one.along:
        lines.append(folded(plain_line(f"along with them: {', '.join(one.along)}")))
    if one.fixed:
        what = f"{one.x} is a size" if one.sized else "constant resources"
        lines.append(f"{what}: no speed-up is to be expected")
    if one.reason:
        return "\n".join([*lines, plain_line(one.reason)])
    lines += ["", _table(one), ""]
    return "\n".join([*lines, *(folded(plain_line(line)) for line in told_of(one))]).rstrip()


def _table(one: ratios.RatioTable) -> str:
    first, second = one.values
    table = TextTable(
        f"{one.x}> | {first}> | {second}> | runs>?2 | ratio> | 95 %> | {second} is"
        " | speed-ups> | ideal>?3 | excluded~"
    )
    for cell in one.cells:
        a, b = cell.first, cell.second
        low, high = show_number(cell.low), show_number(cell.high)
        ends = f"{low}..{high}" if low else ""
        runs = f"{a.n}" if a.n == b.n else f"{a.n}, {b.n}"
        speedups = ", ".join(show_number(each.speedup) or "-" for each in (a, b))
        numbers = (a.median, b.median, runs, cell.ratio, ends, cell.verdict_words)
        ideal = a.ideal or b.ideal
        table.add(
            *(one.named(cell.x), *numbers, speedups if ideal else "", ideal),
            _excluded(cell, one),
        )
    return str(table)


def _excluded(cell: ratios.RatioCell, table: ratios.RatioTable) -> str:
    """Return why a way has no figure, or which of its runs do not count: ``compat: 2 timeout``."""
    sides = zip(table.values, (cell.first, cell.second), strict=True)
    reasons = [(name, side.reason or causes(side.excluded)) for name, side in sides]
    return "; ".join(f"{name}: {reason}" for name, reason in reasons if reason)


def told_of(one: ratios.RatioTable) -> Iterator[str]:
    """Yield what is told below a table: range, speed-ups, how the ratio changes, what failed."""
    first, second = one.values
    known = one.known
    if not known:
        yield "no size has a figure of both: nothing to compare"
        return
    assert one.lowest is not None and one.highest is not None
    ends = [
        f"{show_number(c.ratio)} at {one.x} {one.named(c.x)}"
        + (" (unclear)" if c.verdict == "unclear" else "")
        for c in (one.lowest, one.highest)
    ]
    if one.lowest is not one.highest:
        yield f"range: {ends[0]} .. {ends[1]}"
    base, last = known[0], known[-1]
    if one.change is not None:
        a, b = (show_number(cell.speedup) for cell in (last.first, last.second))
        span = f"from {one.x} {base.x:g} to {last.x:g}"
        yield (f"speed-up {span}: {first} {a}, {second} {b}, of {show_number(last.first.ideal)}")
        low, high = show_number(one.change.low), show_number(one.change.high)
        interval = f" (95 %: {low}..{high})" if low else " (of single runs: repeat)"
        yield f"ratio of ratios {span}: {show_number(one.change.ratio)}{interval}"
    if one.meeting is not None and (one.sized or one.meeting.crossings):
        yield meeting_words(one.meeting, one)
    yield from _unclear(one)


def _unclear(one: ratios.RatioTable) -> Iterator[str]:
    """Yield why sizes are unclear, each reason once, and the remedy."""
    reasons: dict[str, list[str]] = {}
    unclear = [cell for cell in one.known if cell.verdict == "unclear"]
    for cell in unclear:
        reasons.setdefault(cell.reason, []).append(one.named(cell.x))
    for reason, xs in reasons.items():
        yield f"{one.x} {listed(xs, MAX_NAMED)}: {reason}"
    if needed := max((cell.needed for cell in unclear), default=0):
        yield remedy(needed)


def _range(tables: list[ratios.RatioTable]) -> Iterator[str]:
    """Yield the least and the greatest ratio over all tables: 1.11 GTC 64 .. 1.93 MILC 256."""
    ends_of_range = ratios.extremes(tables)
    if ends_of_range and len(tables) > 1:
        ends = (
            f"{show_number(one.ratio)} {one.test} {one.x}{' (unclear)' if one.unclear else ''}"
            for one in ends_of_range
        )
        yield f"over all: {' .. '.join(ends)}"


def _left_out(tests: list[str], query: ratios.RatioQuery) -> Iterator[str]:
    if tests:
        yield f"not with both {' and '.join(query.values)}: {', '.join(tests)}"
