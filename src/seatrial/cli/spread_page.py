"""The output of ``seatrial compare --spread``: which side varies more."""

from __future__ import annotations

from collections.abc import Sequence

import click

from seatrial.cli.tables import TextTable, folded
from seatrial.studies.spread_comparison import SpreadComparison, SpreadRow
from seatrial.verify.reading import plain_line

VERDICTS = ("less steady", "steadier", "unclear", "not compared")


def page(compared: Sequence[SpreadComparison]) -> str:
    """Return all comparisons with the first side as text, one below the other."""
    told = "A and B: robust deviations in per cent of the medians; ratio: B over A, with its 95 % "
    told += "bootstrap interval; the verdict is by the test of Brown and Forsythe"
    return "\n\n".join([*map(_comparison, compared), folded(told)])


def _comparison(one: SpreadComparison) -> str:
    across = f", across {', '.join(one.across)}" if one.across else ""
    title = plain_line(f"spread of B = {one.second} compared with A = {one.first}{across}")
    table = TextTable("verdict~ | case~ | metric~ | A> | B> | ratio> | 95 %> | p>?1 | n>")
    for row in one.rows:
        table.add(*_cells(row))
    tally = ((verdict, sum(row.verdict == verdict for row in one.rows)) for verdict in VERDICTS)
    said = ", ".join(f"{n} {verdict}" for verdict, n in tally if n)
    reasons = dict.fromkeys(f"{row.case} {row.metric}: {row.why}" for row in one.rows if row.why)
    lines = [folded(plain_line(reason)) for reason in list(reasons)[:10]]
    return "\n".join([click.style(title, bold=True), "", str(table), "", *lines, said])


def _cells(row: SpreadRow) -> tuple[str, ...]:
    def share(value: float | None) -> str:
        return "" if value is None else f"{100 * value:.2g} %"

    known = row.low is not None and row.high is not None
    interval = f"{row.low:.2g}..{row.high:.2g}" if known else ""
    ratio = "" if row.ratio is None else f"{row.ratio:.2g}"
    p = "" if row.p is None else f"{row.p:.2g}"
    n = f"{row.n[0]},{row.n[1]}"
    sides = (share(row.first), share(row.second))
    return (row.verdict, row.case, row.metric, *sides, ratio, interval, p, n)
