"""Figures that others gave, as a part of pages: each with its mark, and where it comes from."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.results.given import GivenEntry, conversions
from seatrial.show.page import Column, Figure, Part, Section, State, Table, Text
from seatrial.units import listed, show_figure

GIVEN = State("given", "given")
"""The mark of a figure that was not measured here."""
TITLE = "Given, not measured here"
ABOUT = "No verdict, interval, level or choice rests on given figures."
MAX_ROWS = 50


def given_section(entries: Sequence[GivenEntry], title: str = TITLE) -> Section:
    """Return the section of given figures: a row for each, and how they were converted."""
    several = len({entry.metric for entry in entries}) > 1
    columns = [
        Column("", "state", lambda _: GIVEN),
        Column("system", value=lambda entry: entry.system, fold=True),
        Column("metric", value=lambda entry: entry.metric if several else ""),
        Column("value", "number", lambda entry: Figure(entry.value, entry.unit)),
        Column("n", "count", lambda entry: entry.n),
        Column("date", value=lambda entry: entry.date),
        Column("source", value=lambda entry: entry.source or entry.trial, fold=True, spare=-1),
        Column("case", value=lambda entry: entry.case, fold=True, spare=1),
        Column("", value=lambda entry: entry.reason, fold=True),
    ]
    rows = Table.of(columns, entries[:MAX_ROWS], total=len(entries))
    parts: list[Part] = [rows, *conversion_words(entries), Text(ABOUT, "quiet")]
    return Section(title, parts)


def conversion_words(entries: Sequence[GivenEntry]) -> list[Part]:
    """Return the sentence about the units of given figures; none if nothing was converted."""
    told = conversions(entries)
    return [f"given figures in the unit of the others: {listed(told, 3)}"] if told else []


def range_words(entry: GivenEntry) -> str:
    """Return where a given figure lies in its range: ``nodes=160 tasks=640``."""
    return " ".join(f"{name}={value}" for name, value in entry.at.items())


def value_of(entry: GivenEntry, unit: str) -> float | str:
    """Return the cell of a given figure in a table whose figures have a unit."""
    return entry.value if entry.unit == unit else show_figure(entry.value, entry.unit)
