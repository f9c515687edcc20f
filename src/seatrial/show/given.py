"""Figures that others gave, as a part of pages: each with its mark, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.results.case_figures import TableOverX
from seatrial.results.given import GivenEntry, conversions, over_x
from seatrial.results.selection import Side
from seatrial.show.page import Column, Figure, Part, Section, State, Table, Text
from seatrial.units import in_per_cent, listed, show_figure

GIVEN = State("given", "given")
"""The mark of a figure that was not measured here."""
TITLE = "Given, not measured here"
ABOUT = "No verdict, interval, level or choice rests on given figures."
OF_MEASURED = "of measured"
MAX_ROWS = 50
MAX_NAMED = 6


def given_section(entries: Sequence[GivenEntry], title: str = TITLE, beside: str = "") -> Section:
    """Return the section of given figures: a row for each, and how they were converted. ``beside``
    is the title of their ratio to measured ones."""
    several = len({entry.metric for entry in entries}) > 1
    columns = [
        Column("", "state", lambda _: GIVEN),
        Column("system", value=lambda entry: entry.system, fold=True),
        Column("at", value=lambda entry: _words(entry.values) if beside else ""),
        Column("metric", value=lambda entry: entry.metric if several else ""),
        Column("value", "number", lambda entry: Figure(entry.value, entry.unit)),
        Column(beside, "share", lambda entry: in_per_cent(entry.ratio) if beside else None),
        Column("n", "count", lambda entry: entry.n),
        Column("date", value=lambda entry: entry.date),
        Column("source", value=lambda entry: entry.source or entry.trial, fold=True, spare=-1),
        Column("case", value=lambda entry: entry.case, fold=True, spare=1),
    ]
    rows = Table.of(columns, entries[:MAX_ROWS], total=len(entries))
    told = [*conversion_words(entries), *reasons_of(entries)]
    return Section(title, [rows, *told, Text(ABOUT, "quiet")])


def reasons_of(entries: Sequence[GivenEntry]) -> list[Part]:
    """Return why figures are not compared, each reason once, with its systems."""
    reasons: dict[str, list[str]] = {}
    for entry in entries:
        if entry.reason:
            reasons.setdefault(entry.reason, []).append(entry.system)
    return [
        f"{listed(list(dict.fromkeys(systems)), MAX_NAMED)}: {reason}"
        for reason, systems in reasons.items()
    ]


def given_over(sides: Sequence[Side], tables: Sequence[TableOverX]) -> list[GivenEntry]:
    """Return the given figures of sides that belong beside tables over an x."""
    if not any(side.given for side in sides):
        return []
    return over_x(sides, tables[0].x, dict.fromkeys(table.metric for table in tables))


def conversion_words(entries: Sequence[GivenEntry]) -> list[Part]:
    """Return the sentence about the units of given figures; none if nothing was converted."""
    told = conversions(entries)
    return [f"given figures in the unit of the others: {listed(told, 3)}"] if told else []


def range_words(entry: GivenEntry) -> str:
    """Return where a given figure lies in its range: ``nodes=160 tasks=640``."""
    return _words(entry.at)


def _words(values: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


def value_of(entry: GivenEntry, unit: str) -> float | str:
    """Return the cell of a given figure in a table whose figures have a unit."""
    return entry.value if entry.unit == unit else show_figure(entry.value, entry.unit)
