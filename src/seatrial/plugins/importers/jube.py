"""Read result tables of JUBE: of a file, or of all benchmark runs below a folder.

results = read_results(Path("bench_run"), Columns(figures={"bw": "MB/s"}))

A run of a benchmark has the folder ``OUTPATH/000000`` with ``configuration.xml`` (its name and
parameters), ``timestamps`` and ``result/NAME.dat``: a table in the style ``csv``, ``aligned``
(commas, too) or ``pretty`` (bars). A unit stands behind the name of a column: ``bw[MB/s]``.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.files import read_regular
from seatrial.model.figures import number
from seatrial.plugins.importers import table_results
from seatrial.plugins.importers.results import ImportedResults, ImportedRun, ImportNote, time_of

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


def read_results(root: Path, columns: table_results.Columns) -> ImportedResults:
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


def _read(path: Path, columns: table_results.Columns) -> ImportedResults:
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
    found = table_results.read_rows(table, of_table, session, started)
    runs = list(_identified(found.runs, session))
    return found._replace(runs=runs, notes=[*unknown, *notes, *found.notes])


def _table(path: Path) -> table_results.ResultTable:
    """Return the table in a file, in any of the styles of JUBE. Raises UsageError."""
    text = table_results.text_of_table(path)
    if text.startswith(SQLITE):
        told = "is a <database> of JUBE, and no table: add a <table> to its <result>"
        raise UsageError(f"{path}: {told}, then run `jube result` again")
    written = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    if written and _TITLE.fullmatch(written[0][1]):
        written = written[1:]
    if not written or "|" not in written[0][1]:
        return table_results.read_csv_table(path)
    rows = [(n, _cells(line)) for n, line in written if not _RULE.fullmatch(line)]
    return table_results.table_of(path, rows)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _kinds(
    table: table_results.ResultTable, columns: table_results.Columns, benchmark: _Benchmark | None
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
        name, unit = table_results.name_and_unit(head)
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


def _is_of_numbers(table: table_results.ResultTable, head: str) -> bool:
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
