"""Results in a table: a row for each figure, or for each run with a column for each figure.

columns = Columns(case="benchmark", metric="fom", value="result", time="date")
results = read_csv(Path("results.csv"), columns)
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    is_not_over,
    time_of,
)
from seatrial.units import listed

MAX_BYTES = 256 << 20
DELIMITERS = ",;\t|"
MAX_NAMED = 12
_WITH_UNIT = re.compile(r"(.*?\S)\s*[\[(]([^\[\]()]*)[\])]")
NAMES = ("case", "metric", "value", "unit", "better", "time", "node", "status", "id")
"""The columns that a table may have, under these names if no others are given."""
NUMBERS = ("nodes", "tasks", "threads")
"""Further ones, of whole numbers: a column of other texts is none of these."""


class Columns(Struct, frozen=True, kw_only=True):
    """The columns of a table by what they hold, "" for none."""

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
    #: Columns that belong to the case.
    parameters: tuple[str, ...] = ()
    #: Columns with a figure each, in place of ``metric`` and ``value``, with their units; "": the
    #: head of the column has it, such as ``triad[MB/s]``.
    figures: Mapping[str, str] = {}
    #: ``higher`` or ``lower``, by metric.
    directions: Mapping[str, str] = {}
    #: The test of all rows, if no column has the case.
    test: str = ""


class TableRow(NamedTuple):
    """A row: its line in the file, and its cells by their columns."""

    line: int
    cells: dict[str, str]


class ResultTable(NamedTuple):
    """The table in a file: its columns, its rows, and notes on lines that are none."""

    path: Path
    head: list[str]
    rows: list[TableRow]
    notes: list[ImportNote]


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
    columns = _with_numbers(table, _with_usual_names(table, columns))
    reader = _TableReader(table.path, columns, session, time)
    for row in table.rows:
        reader.take(row)
    return ImportedResults(reader.finished(), [*table.notes, *reader.notes], "")


def read_csv_table(path: Path) -> ResultTable:
    """Return the table in a file of comma-separated values. Raises UsageError."""
    notes: list[ImportNote] = []
    table = table_of(path, _csv_rows(path, text_of_table(path), notes))
    return table._replace(notes=[*table.notes, *notes])


def table_of(path: Path, rows: Iterable[tuple[int, list[str]]]) -> ResultTable:
    """Return the table of rows of cells, each with its line; the first one is the head.

    A row of another number of cells is left out with a note. Raises UsageError if there is no row.
    """
    head: list[str] = []
    table_rows, notes = [], []
    for line, cells in rows:
        if not head:
            head = cells
        elif len(cells) != len(head):
            text = f"has {len(cells)} values, and the head {len(head)}: left out"
            notes.append(ImportNote(path, line, text))
        else:
            table_rows.append(TableRow(line, dict(zip(head, cells, strict=True))))
    if not head:
        raise UsageError(f"{path}: is empty; its first line names the columns")
    return ResultTable(path, head, table_rows, notes)


def text_of_table(path: Path) -> str:
    """Return the text of a file with a table. Raises UsageError if it cannot be read."""
    try:
        return read_regular(path, MAX_BYTES).decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error


def _csv_rows(path: Path, text: str, notes: list[ImportNote]) -> Iterator[tuple[int, list[str]]]:
    """Yield line and cells of each row that is not empty; add a note where it is no CSV."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for written in reader:
            cells = [cell.strip() for cell in written]
            if any(cells):
                yield reader.line_num, cells
    except csv.Error as error:
        notes.append(ImportNote(path, reader.line_num, f"is no CSV from here on: {error}"))


def _with_usual_names(table: ResultTable, columns: Columns) -> Columns:
    """Return the columns, with those that have their usual names. Raises UsageError."""
    lower = {each.lower(): each for each in table.head}
    named = {name: lower[name] for name in _not_given(columns) if name in lower}
    if not columns.case and not columns.test and lower.get("test") not in columns.parameters:
        named.setdefault("case", lower.get("test", ""))
    columns = replace(columns, **named)
    _require_columns(table.path, table.head, columns)
    _require_case_and_figures(table.path, table.head, columns)
    return columns


def _not_given(columns: Columns) -> list[str]:
    """Return the names of columns that may have their usual names, as no option names them."""
    names = [name for name in NAMES if not getattr(columns, name)]
    return [name for name in names if not (columns.figures and name in _OF_FIGURES)]


def _require_case_and_figures(path: Path, head: Sequence[str], columns: Columns) -> None:
    """Raise UsageError if no column has the case or the figures."""
    if not columns.case and not columns.test:
        raise UsageError(
            f"{path}:1: no column has the case; name it with --case, or give --test; there are "
            f"{listed(list(head), MAX_NAMED)}"
        )
    if not columns.figures and not (columns.metric and columns.value):
        raise UsageError(
            f"{path}:1: no column has the metric or its value; name them with --metric and "
            f"--value, or each column with a figure with --figure; there are "
            f"{listed(list(head), MAX_NAMED)}"
        )


def _require_columns(path: Path, head: Sequence[str], columns: Columns) -> None:
    """Raise UsageError if a column that an option names is not there."""
    named = [(name, getattr(columns, name)) for name in (*NAMES, *NUMBERS)]
    unnamed = [("", name) for name in (*columns.parameters, *columns.figures)]
    for option, name in (*named, *unnamed):
        if name and name not in head:
            hint = suggest(name, head) or f"there are {listed(list(head), MAX_NAMED)}"
            raise UsageError(f"{path}:1: has no column {name!r}{_option(option)}; {hint}")


def _with_numbers(table: ResultTable, columns: Columns) -> Columns:
    """Return the columns, with those of nodes, tasks and threads that have these names, hold whole
    numbers alone, and are nothing else."""
    lower = {each.lower(): each for each in table.head}
    used = {*columns.parameters, *columns.figures, *(getattr(columns, name) for name in NAMES)}
    numbers = {}
    for name in NUMBERS:
        column = lower.get(name, "")
        if getattr(columns, name) or not column or column in used:
            continue
        if all(_is_whole(row.cells[column]) for row in table.rows):
            numbers[name] = column
    return replace(columns, **numbers)


def _is_whole(text: str) -> bool:
    return not text or (text.isascii() and text.isdecimal() and int(text) > 0)


_NOTHING = {"-", "--", "nan", "none", "null", "na", "n/a"}
"""What stands in the place of the figure of a run that did not pass."""
_OF_FIGURES = ("metric", "value", "unit", "better")


def _option(name: str) -> str:
    return f" (--{name})" if name else ""


def name_and_unit(head: str) -> tuple[str, str]:
    """Return the metric and the unit in a head such as ``triad[MB/s]`` or ``triad (MB/s)``."""
    match = _WITH_UNIT.fullmatch(head)
    return (match[1], match[2]) if match else (head, "")


def _case_of(text: str) -> tuple[str, dict[str, Scalar], str]:
    """Return test, parameters and toolchain of a case such as ``lulesh{size=60}@gcc``; of any other
    text, that as the test."""
    match = CASE_NAME.fullmatch(text)
    if match is None:
        return text, {}, ""
    pieces = [piece.partition("=") for piece in (match[2] or "").split(",") if piece]
    if not all(name.strip() and sign for name, sign, _ in pieces):
        return text, {}, ""
    return match[1], {name.strip(): value.strip() for name, _, value in pieces}, match[3] or ""


_CLOCK = re.compile(r"(?:(\d{1,4})-)?(\d{1,5}):(\d{2}):(\d{2}(?:\.\d+)?)", re.ASCII)


def _value_of(name: str, unit: str, written: str) -> tuple[float, str]:
    """Return the value of a metric and its unit: seconds for a time as sacct has it, such as
    ``1-02:00:00``. Raises ValueError with the name and the remedy."""
    if (match := _CLOCK.fullmatch(written)) is None:
        return _number_of(name, written), unit or "1"
    if unit not in ("", "s"):
        raise ValueError(f"{name}: {written} are seconds, and its unit is {unit}")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds, "s"


def _number_of(name: str, written: str) -> float:
    """Return the value of a metric. Raises ValueError with the name and the remedy."""
    try:
        return number(written)
    except ValueError as error:
        hint = "; write a point, and no separator of thousands" if "," in written else ""
        raise ValueError(f"{name}: {error}{hint}") from None


def _are_of_one_run(run: ImportedRun, other: ImportedRun) -> bool:
    """Return whether two rows tell of one run: it has the same size, and each has other figures."""
    if (run.nodes, run.tasks, run.threads) != (other.nodes, other.tasks, other.threads):
        return False
    names = {figure.name for figure in run.figures}
    return bool(names) and names.isdisjoint(figure.name for figure in other.figures)


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
        name = self._cell(row, self._columns.case) or self._columns.test
        run = self._run(row, name)
        key = self._key(row, name)
        same = self._runs.setdefault(key, [])
        for other in same:
            if _are_of_one_run(run, other):
                other.figures = [*other.figures, *run.figures]
                other.code = other.code or run.code
                return
        run.id = "\n".join((*key, str(len(same))))
        same.append(run)

    def _run(self, row: TableRow, name: str) -> ImportedRun:
        """Return the run of a row of the case ``name``, without its id. Raises ValueError."""
        at = self._columns
        time = self._time(row)
        code = self._verdict(row)
        figures = self._figures(row, code)
        nodes, tasks, threads = (self._number(row, each) for each in NUMBERS)
        test, parameters, toolchain = _case_of(name)
        parameters |= {each: self._cell(row, each) for each in at.parameters}
        return ImportedRun(
            test=test,
            id="",
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

    def _time(self, row: TableRow) -> int:
        return time_of(row.cells[self._columns.time]) if self._columns.time else self._time_of_all

    def _verdict(self, row: TableRow) -> codes.Code:
        if not self._columns.status:
            return codes.PASS
        if not (written := self._cell(row, self._columns.status)):
            raise ValueError("has no status, though the table has statuses")
        if is_not_over(written):
            raise ValueError(f"its status is {written[:40]!r}: it is not over")
        if (code := code_of_word(written)) is None:
            raise ValueError(f"status {written[:40]!r} is none of pass, failed, timeout, ...")
        return code

    def _figures(self, row: TableRow, code: codes.Code) -> list[ImportedFigure]:
        """Return the figures of a row. One that did not pass need not have any. Raises
        ValueError."""
        passed = code is codes.PASS
        cells = self._cells_of_figures(row)
        figures = [each for cell in cells if (each := self._figure(row, passed, *cell))]
        if passed and not figures:
            raise ValueError("has no figure")
        return figures

    def _figure(
        self, row: TableRow, passed: bool, name: str, unit: str, written: str
    ) -> ImportedFigure | None:
        """Return a figure; None where a row need not have it. Raises ValueError."""
        if not written and (not passed or self._columns.figures):
            return None
        if not passed and written.lower() in _NOTHING:
            return None
        try:
            value, unit = _value_of(name, unit, written)
        except ValueError as error:
            if passed:
                raise
            self._note(row, f"{error}: left out, the run did not pass")
            return None
        return ImportedFigure(name, value, unit, self._better(row, name))

    def _cells_of_figures(self, row: TableRow) -> Iterator[tuple[str, str, str]]:
        """Yield metric, unit and text of each figure that a row may have. Raises ValueError."""
        at = self._columns
        for column, unit in at.figures.items():
            name, unit_of_head = name_and_unit(column)
            yield name, unit or unit_of_head, row.cells[column]
        if not at.figures:
            name = row.cells[at.metric]
            if not name:
                raise ValueError("has no metric")
            yield name, self._cell(row, at.unit), row.cells[at.value]

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
        found = self._columns.directions.get(name, "none")
        if written:
            text = f"better is {written[:40]!r}, which is none of higher, lower and none"
            self._note(row, f"{text}: {found} was taken", False)
        return found

    def _cell(self, row: TableRow, column: str) -> str:
        return row.cells.get(column, "") if column else ""

    def _note(self, row: TableRow, text: str, lost: bool = True) -> None:
        self.notes.append(ImportNote(self._path, row.line, text, lost))
