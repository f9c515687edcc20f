"""The output of ``seatrial compare --ladder``: each step, and their product."""

from __future__ import annotations

from collections.abc import Sequence

import click

from seatrial.cli.tables import TextTable, folded
from seatrial.studies.ladder import Ladder, LadderStep
from seatrial.units import show_unit
from seatrial.verify.reading import plain_line


def page(found: Sequence[Ladder]) -> str:
    """Return the ladders, one below the other, with a row for each side."""
    told = (
        "times as good: above 1 is better, also where lower is better; the last row is the product"
    )
    return "\n\n".join(
        [*map(_ladder, found), folded(f"{told} of the steps, with its own interval")]
    )


def _ladder(one: Ladder) -> str:
    unit = show_unit(one.unit, " in {}")
    title = plain_line(f"{one.case}: {one.metric}{unit} ({one.better or 'unknown'} is better)")
    table = TextTable("side~ | median> | runs> | times as good> | 95 %> |  | why~?-1")
    table.add(one.steps[0].first, one.medians[0], one.n[0], "", "", "", "")
    for step, median, n in zip(one.steps, one.medians[1:], one.n[1:], strict=True):
        table.add(step.second, median, n, *_cells(step))
    table.add("product", "", "", *_cells(one.product))
    return f"{click.style(title, bold=True)}\n\n{table}"


def _cells(step: LadderStep) -> tuple[str, str, str, str]:
    times = "" if step.times is None else f"x{step.times:.3g}"
    known = step.low is not None and step.high is not None
    interval = f"{step.low:.4g}..{step.high:.4g}" if known else ""
    return times, interval, step.verdict, step.why
