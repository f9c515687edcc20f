"""Results in a table: a row for each figure, or for each run with a column for each figure.

columns = Columns(case="benchmark", metric="fom", value="result", time="date")
results = read_csv(Path("results.csv"), columns)
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

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


# ---- jube ----------------------------------------------------------------------------------------
#
# Read result tables of JUBE: of a file, or of all benchmark runs below a folder.
#
# results = read_jube(Path("bench_run"), Columns(figures={"bw": "MB/s"}))
#
# A run of a benchmark has the folder ``OUTPATH/000000`` with ``configuration.xml`` (its name and
# parameters), ``timestamps`` and ``result/NAME.dat``: a table in the style ``csv``, ``aligned``
# (commas, too) or ``pretty`` (bars). A unit stands behind the name of a column: ``bw[MB/s]``.


CONFIGURATION, TIMESTAMPS, RESULT = "configuration.xml", "timestamps", "result"
LIMIT = 64 << 20
SQLITE = "SQLite format 3\0"
_RULE = re.compile(r"[\s|+-]+")
_TITLE = re.compile(r"[^|,]*:\s*")
_OWN = "jube_"


class _Benchmark(NamedTuple):
    """A run of a benchmark: its folder, its name, the names of its parameters, when it started (ns;
    0 if that is not known)."""

    folder: Path
    name: str
    parameters: frozenset[str]
    started: int


def read_jube(root: Path, columns: Columns) -> ImportedResults:
    """Return the results in the tables of a file or folder. ``columns`` are what people said of
    them. Raises UsageError if there is no table."""
    runs: list[ImportedRun] = []
    notes: list[ImportNote] = []
    files = list(_files(root.absolute()))
    if not files:
        raise UsageError(f"{root}: has no table of JUBE (result/*.dat); run `jube result` first")
    for path in files:
        try:
            found = _read(path, columns)
        except UsageError as error:
            if root.is_file():
                raise
            notes.append(ImportNote(path, 0, str(error).removeprefix(f"{path}:")[:300].lstrip()))
            continue
        runs += found.runs
        notes += found.notes
    return ImportedResults(_together(runs), notes, "")


def _together(runs: Iterable[ImportedRun]) -> list[ImportedRun]:
    """Return the runs of all tables, each once: tables of one benchmark tell of the same runs. Two
    are the same if they have the same id, which has the parameters and the place among equals."""
    found: dict[str, ImportedRun] = {}
    for run in runs:
        first = found.setdefault(run.id, run)
        if first is not run:
            there = {figure.name for figure in first.figures}
            more = [figure for figure in run.figures if figure.name not in there]
            first.figures = [*first.figures, *more]
    return list(found.values())


def _identified(runs: Iterable[ImportedRun], session: str) -> Iterator[ImportedRun]:
    """Yield the runs of a table with ids that are the same in all tables of their benchmark."""
    seen: Counter[str] = Counter()
    for run in runs:
        key = "\n".join((session, run.test, *sorted(f"{n}={v}" for n, v in run.parameters.items())))
        seen[key] += 1
        run.id = f"{key}\n{seen[key]}"
        yield run


def _files(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
    else:
        yield from sorted(root.rglob("result/*.dat"))


def _read(path: Path, columns: Columns) -> ImportedResults:
    table = _table(path)
    benchmark, unknown = _benchmark(path)
    name = columns.test or (benchmark.name if benchmark else path.stem)
    parameters, figures, notes = _kinds(table, columns, benchmark)
    of_table = replace(columns, test=name, parameters=tuple(parameters), figures=figures)
    session, started = str(path), 0
    if benchmark:
        session, started = str(benchmark.folder), benchmark.started
    if started:  # wherever it was copied to
        session = f"{Path(session).name} {started}"
    found = read_rows(table, of_table, session, started)
    runs = list(_identified(found.runs, session))
    return found._replace(runs=runs, notes=[*unknown, *notes, *found.notes])


def _table(path: Path) -> ResultTable:
    """Return the table in a file, in any of the styles of JUBE. Raises UsageError."""
    text = text_of_table(path)
    if text.startswith(SQLITE):
        told = "is a <database> of JUBE, and no table: add a <table> to its <result>"
        raise UsageError(f"{path}: {told}, then run `jube result` again")
    written = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    if written and _TITLE.fullmatch(written[0][1]):
        written = written[1:]
    if not written or "|" not in written[0][1]:
        return read_csv_table(path)
    rows = [(n, _cells(line)) for n, line in written if not _RULE.fullmatch(line)]
    return table_of(path, rows)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _kinds(
    table: ResultTable, columns: Columns, benchmark: _Benchmark | None
) -> tuple[list[str], dict[str, str], list[ImportNote]]:
    """Return the columns that are parameters, those that are figures with their units, and notes on
    the others. What people said comes first, then parameters of the benchmark; of the rest, columns
    of numbers are figures."""
    parameters, figures = list(columns.parameters), dict(columns.figures)
    used = {columns.case, columns.time, columns.node, columns.status, columns.id}
    used |= {*parameters, *figures}
    varied = _parameters_of(benchmark) if not parameters else frozenset()
    notes = []
    for head in table.head:
        if head in used or head.startswith(_OWN):
            continue
        used.add(head)
        name, unit = name_and_unit(head)
        may_be_figure = bool(benchmark or unit)
        if name in varied:
            parameters.append(head)
        elif columns.figures:
            continue
        elif may_be_figure and _is_of_numbers(table, head):
            figures[head] = ""
        else:
            text = f"column {head!r} is neither a parameter nor a figure; see --parameter, --figure"
            notes.append(ImportNote(table.path, 1, text, lost=True))
    return parameters, figures, notes


def _parameters_of(benchmark: _Benchmark | None) -> frozenset[str]:
    return benchmark.parameters if benchmark else frozenset()


def _is_of_numbers(table: ResultTable, head: str) -> bool:
    """Return whether a column has a number somewhere, and no other text."""
    cells = [row.cells[head] for row in table.rows if row.cells[head] not in ("", "nan", "None")]
    try:
        for cell in cells:
            number(cell)
    except ValueError:
        return False
    return bool(cells)


def _benchmark(path: Path) -> tuple[_Benchmark | None, list[ImportNote]]:
    """Return the benchmark's run that wrote a table, None where its configuration is not there, and
    notes on what is not known of it."""
    if path.parent.name != RESULT:
        return None, []  # a table alone
    folder = path.parent.parent
    file = folder / CONFIGURATION
    try:
        benchmark = _configuration(file)
    except (OSError, ValueError, SyntaxError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        text = "name and parameters of its benchmark are not known, see --test and --parameter"
        return None, [ImportNote(file, 0, f"cannot be read ({reason}): {text}")]
    names = frozenset(each.get("name", "") for each in benchmark.iter("parameter"))
    found = _Benchmark(folder, benchmark.get("name", path.stem), names, 0)
    try:
        return found._replace(started=_started(folder / TIMESTAMPS)), []
    except (OSError, ValueError) as error:
        what = "cannot be read" if isinstance(error, OSError) else "names no start"
        what = "is not there" if isinstance(error, FileNotFoundError) else what
        text = f"{what}: the time of its results is that of the last change of their table"
        return found, [ImportNote(folder / TIMESTAMPS, 0, text)]


def _configuration(file: Path) -> ElementTree.Element:
    """Return the element <benchmark> of a configuration. Raises OSError, ValueError and
    SyntaxError."""
    root = ElementTree.fromstring(read_regular(file, LIMIT))
    benchmark = root.find("benchmark") if root.tag != "benchmark" else root
    if benchmark is None:
        raise ValueError("it has no <benchmark>")
    return benchmark


def _started(path: Path) -> int:
    """Return when a run of a benchmark started (ns). Raises OSError and ValueError."""
    text = read_regular(path, LIMIT).decode(errors="replace")
    match = re.search(r"^start:\s*(.+)$", text, re.MULTILINE)
    if match is None:
        raise ValueError("no start")
    return time_of(match[1])
