"""Parts of a whole, such as the times of compute and I/O in that of a run: a table and bars."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from markupsafe import Markup

from seatrial.judge.derived import OTHER, Part, Whole
from seatrial.show.draw import plots
from seatrial.show.draw.svg import WIDTH, Axis
from seatrial.show.page import Chart, Column, Figure, Page, Section, Table
from seatrial.units import show_figure, show_share

TITLE = "Parts of the whole"
COLOURS = 8  # that a chart has


def parts_page(wholes: Sequence[Whole]) -> Page:
    """Return a page of the wholes of a run."""
    known = [whole for whole in wholes if whole.parts]
    rows = [(whole, part) for whole in known for part in whole.parts]
    columns = [
        Column("part", value=lambda row: row[1].name, fold=True),
        Column("of", value=lambda row: row[0].name, fold=True),
        Column("value", "number", lambda row: Figure(row[1].value, row[0].unit)),
        Column("share", "share", lambda row: show_share(row[1].share)),
    ]
    reasons = [f"parts of {whole.name}: {whole.reason}" for whole in wholes if whole.reason]
    bars = [(whole.name, whole) for whole in known]
    chart = [Chart(partial(stacked, bars, TITLE))] if known else []
    return Page(TITLE, [Section(TITLE, [*chart, Table.of(columns, rows), *reasons])])


def stacked(rows: Sequence[tuple[str, Whole]], title: str, width: int = WIDTH) -> Markup:
    """Draw the shares of the parts of each whole, end to end; ``other`` comes last."""
    names = dict.fromkeys(part.name for _, whole in rows for part in whole.parts)
    ordered = sorted(names, key=lambda name: name == OTHER)
    colours = [
        "muted" if name == OTHER else number % COLOURS + 1 for number, name in enumerate(ordered)
    ]
    return plots.bars(
        [_bar(name, whole, ordered) for name, whole in rows],
        title=title,
        parts=ordered,
        colours=colours,
        axis=Axis("of the whole", "%", low=0, high=100),
        width=width,
    )


def _bar(name: str, whole: Whole, ordered: Sequence[str]) -> plots.Bar:
    shares = {part.name: 100 * part.share for part in whole.parts}
    values = [shares.get(each, 0.0) for each in ordered]
    return plots.Bar(name, values, show_figure(whole.value, whole.unit))


def averaged(wholes: Sequence[Whole]) -> Whole:
    """Return the mean of several runs' wholes of one name, with the mean shares of their parts."""
    number, first = len(wholes), wholes[0]
    value = sum(whole.value / number for whole in wholes)
    shares: dict[str, float] = {}
    for whole in wholes:
        for part in whole.parts:
            shares[part.name] = shares.get(part.name, 0.0) + part.share / number
    parts = [Part(name, share * value, share) for name, share in shares.items()]
    return Whole(first.name, value, first.unit, parts)
