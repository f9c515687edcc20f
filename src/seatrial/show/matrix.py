"""Tests by toolchains, or by another attribute, as a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from seatrial.judge.promises import share_cell
from seatrial.results.case_figures import causes
from seatrial.results.matrix import STATES, MatrixCell, MatrixRow, ResultMatrix
from seatrial.show.page import Cell, Column, Figure, Page, Part, Section, State, Table, Text, Tone
from seatrial.units import count, show_unit

MAX_REASONS = 20

_SHORT = {"build failed": "no build", "not run": "-", "left out": "out"}
_TONES: dict[str, Tone] = {"passed": "better", "failed": "worse", "build failed": "worse"}
_TOLD = ("known", "failed", "build failed", "left out")


def matrix_page(result: ResultMatrix) -> Page:
    """Return the page of a matrix: its cells, how many there are of each state, and why cells did
    not pass."""
    return Page("Matrix", [Section("", [*_parts(result)])], records=lambda: _record(result))


def _record(result: ResultMatrix) -> dict[str, Any]:
    return {**msgspec.to_builtins(result), "total": result.total}


def _parts(result: ResultMatrix) -> Iterator[Part]:
    yield Text("a figure is the median of the runs with a right answer", only="browser")
    yield _table(result)
    for words in result.promised:
        yield f"in brackets: {words}"
    yield from _reasons(result)
    total = ", ".join(f"{number} {state}" for state, number in result.total.items())
    yield f"{count(len(result.rows), 'row')} by {result.by}: {total}"
    if result.without:
        yield f"without {result.by}: {', '.join(result.without)}"
    if result.left_out:
        yield f"left out: {count(result.left_out, 'case')} without {result.by}"


def _table(result: ResultMatrix) -> Table:
    columns = [
        Column("test", fold=True),
        *(Column(name, "number", fold=True, letter=True) for name in result.columns),
        Column("figure"),
    ]
    rows: list[list[Cell]] = [
        [row.name, *map(_cell, row.cells), _figure(row)] for row in result.rows
    ]
    for state in STATES:
        numbers = [counted.get(state, 0) for counted in result.counts]
        if any(numbers):
            rows.append([f"({state})", *(number or "" for number in numbers), ""])
    return Table(columns, rows)


def _cell(cell: MatrixCell) -> Cell:
    if not cell.state:
        return ""
    state = State(_word(cell), _TONES.get(cell.state, ""))
    share = share_cell(cell.promised) if isinstance(state.word, Figure) else ""
    return [state, f"({share})"] if share else state


def _word(cell: MatrixCell) -> str | Figure:
    if cell.state in ("failed", "known") and cell.passed:
        return f"{cell.passed} of {cell.runs}"
    if cell.state != "passed":
        return _SHORT.get(cell.state, cell.state)
    return "pass" if cell.figure is None else Figure(cell.figure, "")


def _figure(row: MatrixRow) -> str:
    return f"{row.metric}{show_unit(row.unit)}" if row.metric else ""


def _reasons(result: ResultMatrix) -> Iterator[str]:
    """Yield why cells did not pass."""
    told = [
        f"{row.name}, {column}: {_reason(cell)}"
        for row in result.rows
        for column, cell in zip(result.columns, row.cells, strict=True)
        if cell.state in _TOLD
    ]
    yield from told[:MAX_REASONS]
    if len(told) > MAX_REASONS:
        yield f"and {count(len(told) - MAX_REASONS, 'more cell')}"


def _reason(cell: MatrixCell) -> str:
    words = causes(cell.verdicts) if cell.state == "failed" else cell.state
    return f"{words}: {cell.reason}" if cell.reason else words
