"""Results in a table: a row for each figure, or for each run with a column for each figure.

columns = Columns(case="benchmark", metric="fom", value="result", time="date")
results = read_csv(Path("results.csv"), columns)
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError, suggest
from seatrial.execute.figures_file import CASE_NAME
from seatrial.files import read_regular
from seatrial.model import codes
from seatrial.model.figures import number
from seatrial.model.file_model import Scalar
from seatrial.plugins.importers.results import (
    ImportedFigure,
    ImportedResults,
    ImportedRun,
    ImportNote,
    code_of_word,
    time_of,
)
from seatrial.units import listed

MAX_BYTES = 256 << 20
DELIMITERS = ",;\t|"
MAX_NAMED = 12
WITH_UNIT = re.compile(r"(.*?\S)\s*[\[(]([^\[\]()]*)[\])]")
NAMES = ("case", "metric", "value", "unit", "better", "time", "node", "status", "id")
"""The columns that a table may have, under these names if no others are given."""
NUMBERS = ("nodes", "tasks", "threads")
"""Further ones, of whole numbers: a column of other texts is none of these."""


class Columns(Struct, frozen=True, kw_only=True):
    """The columns of a table by what they hold, "" for none. ``parameters`` are columns that belong
    to the case; ``figures`` are columns with a figure each, in place of ``metric`` and ``value``,
    with their units ("": as the head of the column says, such as ``triad[MB/s]``). ``directions``
    are ``higher`` and ``lower`` by metrics. ``test`` is that of all rows if no column has it."""

    case: str = ""
    metric: str = ""
    value: str = ""
    unit: str = ""
    better: str = ""
    time: str = ""
    node: str = ""
    status: str = ""
    id: str = ""
    nodes: str = ""
    tasks: str = ""
    threads: str = ""
    parameters: tuple[str, ...] = ()
    figures: Mapping[str, str] = {}
    directions: Mapping[str, str] = {}
    test: str = ""


class ResultTable(NamedTuple):
    """The table in a file: its columns, its rows, and notes on lines that are none."""

    path: Path
    head: list[str]
    rows: "list[TableRow]"
    notes: list[ImportNote]


class TableRow(NamedTuple):
    """A row: its line in the file, and its cells by their columns."""

    line: int
    cells: dict[str, str]


def read_csv(path: Path, columns: Columns) -> ImportedResults:
    """Return the results in a file of comma-separated values; semicolons, tabs and bars separate,
    too. Raises UsageError if it cannot be read or lacks a column."""
    return read_rows(read_csv_table(path), columns)


def read_rows(
    table: ResultTable, columns: Columns, session: str = "", time: int = 0
) -> ImportedResults:
    """Return the results in a table. Without a column with the time, it is ``time`` (ns), or that
    of the last change of the file. ``session`` is what tells the run of the tool that wrote the
    table apart from others. Raises UsageError if a column is not there."""
    time = time or table.path.stat().st_mtime_ns
    found = _with_numbers(table, _found(table.path, table.head, columns))
    reader = _TableReader(table.path, found, session, time)
    for row in table.rows:
        reader.take(row)
    return ImportedResults(reader.finished(), [*table.notes, *reader.notes], "")


def read_csv_table(path: Path) -> ResultTable:
    """Return the table in a file of comma-separated values. Raises UsageError."""
    return ResultTable(path, *_rows(path, text_of_table(path)))


def text_of_table(path: Path) -> str:
    """Return the text of a file with a table. Raises UsageError if it cannot be read."""
    try:
        return read_regular(path, MAX_BYTES).decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error


def _rows(path: Path, text: str) -> tuple[list[str], list[TableRow], list[ImportNote]]:
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    head: list[str] = []
    rows, notes = [], []
    try:
        for written in reader:
            cells = [cell.strip() for cell in written]
            if not any(cells):
                continue
            if not head:
                head = cells
            elif len(cells) != len(head):
                what = f"has {len(cells)} values, and the head {len(head)}: left out"
                notes.append(ImportNote(path, reader.line_num, what))
            else:
                rows.append(TableRow(reader.line_num, dict(zip(head, cells, strict=True))))
    except csv.Error as error:
        notes.append(ImportNote(path, reader.line_num, f"is no CSV from here on: {error}"))
    if not head:
        raise UsageError(f"{path}: is empty; its first line names the columns")
    return head, rows, notes


def _found(path: Path, head: Sequence[str], columns: Columns) -> Columns:
    """Return the columns, with those that have their usual names. Raises UsageError."""
    found = {name: getattr(columns, name) for name in (*NAMES, *NUMBERS)}
    lower = {each.lower(): each for each in head}
    for name in NAMES:
        if not found[name] and name in lower and not (columns.figures and name in _OF_FIGURES):
            found[name] = lower[name]
    unnamed = [("", each) for each in (*columns.parameters, *columns.figures)]
    _require_columns(path, head, [*found.items(), *unnamed])
    if not found["case"] and not columns.test:
        raise UsageError(f"{path}:1: no column has the case; name it with --case, or give --test")
    if not columns.figures and not (found["metric"] and found["value"]):
        raise UsageError(
            f"{path}:1: no column has the metric or its value; name them with --metric and "
            f"--value, or each column with a figure with --figure; there are "
            f"{listed(list(head), MAX_NAMED)}"
        )
    return replace(columns, **found)


def _require_columns(path: Path, head: Sequence[str], named: Sequence[tuple[str, str]]) -> None:
    """Raise UsageError if a column that an option names is not there."""
    for option, name in named:
        if name and name not in head:
            hint = suggest(name, head) or f"there are {listed(list(head), MAX_NAMED)}"
            raise UsageError(f"{path}:1: has no column {name!r}{_option(option)}; {hint}")


def _with_numbers(table: ResultTable, columns: Columns) -> Columns:
    """Return the columns, with those of nodes, tasks and threads that have these names, hold whole
    numbers alone, and are nothing else."""
    lower = {each.lower(): each for each in table.head}
    used = {*columns.parameters, *columns.figures, *(getattr(columns, name) for name in NAMES)}
    found = {}
    for name in NUMBERS:
        column = lower.get(name, "")
        if getattr(columns, name) or not column or column in used:
            continue
        if all(_is_whole(row.cells[column]) for row in table.rows):
            found[name] = column
    return replace(columns, **found)


def _is_whole(text: str) -> bool:
    return not text or (text.isascii() and text.isdecimal() and int(text) > 0)


_OF_FIGURES = ("metric", "value", "unit", "better")


def _option(name: str) -> str:
    return f" (--{name})" if name else ""


def _named_with_unit(head: str) -> tuple[str, str]:
    """Return the metric and the unit in a head such as ``triad[MB/s]`` or ``triad (MB/s)``."""
    found = WITH_UNIT.fullmatch(head)
    return (found[1], found[2]) if found else (head, "")


def _case_of(text: str) -> tuple[str, dict[str, Scalar], str]:
    """Return test, parameters and toolchain of a case such as ``lulesh{size=60}@gcc``; of any other
    text, that as the test."""
    found = CASE_NAME.fullmatch(text)
    pieces = (
        [piece.partition("=") for piece in (found[2] or "").split(",") if piece] if found else []
    )
    if found is None or not all(name.strip() and sign for name, sign, _ in pieces):
        return text, {}, ""
    return found[1], {n.strip(): v.strip() for n, _, v in pieces}, found[3] or ""


class _TableReader:
    """Makes runs of rows: one of all rows of a case that have the same time, node and id."""

    def __init__(self, path: Path, columns: Columns, session: str, time: int) -> None:
        self._path = path
        self._columns = columns
        self._runs: dict[tuple[str, ...], list[ImportedRun]] = {}
        self._seen: dict[tuple[tuple[str, str], ...], int] = {}
        self._session = session
        self._time_of_all = time
        self.notes: list[ImportNote] = []

    def take(self, row: TableRow) -> None:
        """Take in a row, or note why it cannot be."""
        first = self._seen.setdefault(tuple(row.cells.items()), row.line)
        if first != row.line:
            self._note(row, "is there twice, the same in all columns: one was imported", False)
            return
        try:
            self._take(row)
        except ValueError as error:
            self._note(row, f"{error}: left out")

    def finished(self) -> list[ImportedRun]:
        """Return the runs that have a figure or a verdict."""
        return [run for same in self._runs.values() for run in same]

    def _key(self, row: TableRow, name: str) -> tuple[str, ...]:
        """Return what rows of one run have in common; each row is a run where nothing tells."""
        at = self._columns
        return (
            name,
            *(self._cell(row, each) for each in (*at.parameters, at.time, at.node, at.id)),
            *(() if at.time or at.id else (str(row.line),)),
            *((self._session,) if self._session else ()),
        )

    def _take(self, row: TableRow) -> None:
        at = self._columns
        name = self._cell(row, at.case) or at.test
        time = self._time(row)
        code = self._verdict(row)
        figures = self._figures(row, code)
        nodes, tasks, threads = (self._number(row, each) for each in NUMBERS)
        key = self._key(row, name)
        same = self._runs.setdefault(key, [])
        names = {figure.name for figure in figures}
        for run in same:
            others = {figure.name for figure in run.figures}
            is_alike = (run.nodes, run.tasks, run.threads) == (nodes, tasks, threads)
            if names and is_alike and names.isdisjoint(others):
                run.figures = [*run.figures, *figures]
                run.code = run.code or code.number
                return
        test, parameters, toolchain = _case_of(name)
        parameters |= {each: self._cell(row, each) for each in at.parameters}
        same.append(
            ImportedRun(
                test=test,
                id="\n".join((*key, str(len(same)))),
                time=time,
                code=code.number,
                parameters=parameters,
                toolchain=toolchain,
                started=time,
                hosts=self._cell(row, at.node),
                figures=figures,
                reason="" if code is codes.PASS else f"its status is {self._cell(row, at.status)}",
                place=f"{self._path}:{row.line}",
                nodes=nodes,
                tasks=tasks,
                threads=threads,
            )
        )

    def _time(self, row: TableRow) -> int:
        return time_of(row.cells[self._columns.time]) if self._columns.time else self._time_of_all

    def _verdict(self, row: TableRow) -> codes.Code:
        if not self._columns.status:
            return codes.PASS
        if not (written := self._cell(row, self._columns.status)):
            raise ValueError("has no status, though the table has statuses")
        if (code := code_of_word(written)) is None:
            raise ValueError(f"status {written[:40]!r} is none of pass, failed, timeout, ...")
        return code

    def _figures(self, row: TableRow, code: codes.Code) -> list[ImportedFigure]:
        """Return the figures of a row. One that did not pass need not have any. Raises
        ValueError."""
        at = self._columns
        if not at.figures:
            name, written = row.cells[at.metric], row.cells[at.value]
            if not name:
                raise ValueError("has no metric")
            given = [(name, self._cell(row, at.unit), written)]
        else:
            given = []
            for column, unit in at.figures.items():
                name, own = _named_with_unit(column)
                given.append((name, unit or own, row.cells[column]))
        found = []
        for name, unit, written in given:
            if not written and (code is not codes.PASS or at.figures):
                continue
            try:
                value = number(written)
            except ValueError as error:
                if code is not codes.PASS:
                    continue
                hint = "; write a point, and no separator of thousands" if "," in written else ""
                raise ValueError(f"{name}: {error}{hint}") from None
            found.append(ImportedFigure(name, value, unit or "1", self._better(row, name)))
        if not found and code is codes.PASS:
            raise ValueError("has no figure")
        return found

    def _number(self, row: TableRow, name: str) -> int:
        """Return a number of the case, 0 if it is not known. Raises ValueError."""
        text = self._cell(row, getattr(self._columns, name))
        if not _is_whole(text):
            raise ValueError(f"{name} {text[:40]!r} is no whole number above 0")
        return int(text or 0)

    def _better(self, row: TableRow, name: str) -> str:
        written = self._cell(row, self._columns.better).lower()
        if written in ("higher", "lower", "none"):
            return written
        return self._columns.directions.get(name, "none")

    def _cell(self, row: TableRow, column: str) -> str:
        return row.cells.get(column, "") if column else ""

    def _note(self, row: TableRow, text: str, lost: bool = True) -> None:
        self.notes.append(ImportNote(self._path, row.line, text, lost))
