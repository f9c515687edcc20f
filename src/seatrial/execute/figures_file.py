"""A file of figures that somebody else measured, such as a vendor's: CSV, or what ``seatrial
parse`` prints.

    case,metric,unit,value,n,system,source,date
    "lulesh{size=60}@gcc",fom,zones/s,1480.5,5,Rosa,"CUG 2013, Fig. 3",2013-05

``read_figures`` returns the rows, or raises InvalidFiles with each fault, its line and column.
"""

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import InvalidFiles, UsageError, suggest
from seatrial.execute.creation import create, record_from_elsewhere
from seatrial.execute.trial_folder import GivenFrom, TrialFolder
from seatrial.files import read_regular, replace_file
from seatrial.journal.events import Event, FigureGiven, FiguresImported
from seatrial.journal.journal import Journal
from seatrial.model.figures import MetricValue, number
from seatrial.model.identifiers import run_id_of
from seatrial.model.test import Case
from seatrial.units import day_of, show_bytes

MAX_FILE_BYTES = 16 << 20
MAX_FAULTS = 100
LONGEST_ORIGIN = 200  # letters of a system, of a source
COLUMNS: dict[str, str] = {
    "case": "name of the case: `lulesh{size=60,mode=fast}@gcc`",
    "test": "in place of `case`: the test",
    "parameters": "of the test: `size=60,mode=fast`",
    "toolchain": "name of the toolchain, such as `gcc`",
    "stage": "`alone` or `full`",
    "metric": "name of the metric",
    "unit": "its unit; `1` for none",
    "better": "`higher` or `lower`; default: as the other side has it",
    "value": "the figure: mean or median of the measurements",
    "n": "number of measurements",
    "sd": "their standard deviation",
    "min": "the least of them",
    "max": "the greatest of them",
    "system": "what it was measured on; default: the machine of the import",
    "source": "where it stands, such as `CUG 2013, Fig. 3`; default: who gave it",
    "date": "when it was measured or published: `2013`, `2013-03` or `2013-03-14`",
}
_REQUIRED = ("metric", "unit", "value", "n")
CASE_NAME = re.compile(r"([^{}@%\s]+)(?:\{([^{}]*)\})?(?:@([^{}@%\s]+))?")
"""A case as people write it: test, parameters, toolchain."""
_DELIMITERS = ",;\t"
_PARSED = ("name", "value", "unit", "better", "labels")  # of a figure of ``seatrial parse``


class GivenRow(Struct, frozen=True, kw_only=True):
    """A row of the file: a metric of a case, and what its ``n`` measurements came to."""

    line: int
    test: str
    parameters: dict[str, str]
    toolchain: str
    stage: str
    metric: str
    unit: str
    better: str
    value: float
    n: int
    sd: float | None
    least: float | None
    greatest: float | None
    system: str
    source: str
    date: str

    @property
    def key(self) -> tuple[str, ...]:
        """What must be there once."""
        bound = (f"{name}={value}" for name, value in sorted(self.parameters.items()))
        return self.system, self.test, self.toolchain, self.stage, self.metric, *bound


def read_figures(
    path: Path, usual: Mapping[str, str] | None = None
) -> tuple[list[GivenRow], bytes]:
    """Return the rows of a file of figures, and its bytes. ``usual`` are values of the columns
    case, system, source and date for rows that have none. Raises InvalidFiles, and UsageError if
    the file cannot be read."""
    try:
        data = read_regular(path, MAX_FILE_BYTES)
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidFiles([f"{path}:{line}: is not UTF-8; save it as CSV UTF-8"]) from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        limit = show_bytes(MAX_FILE_BYTES)
        raise UsageError(f"{path}: cannot be read: {error} (at most {limit})") from error
    reader = _Reader(path, {name: value for name, value in (usual or {}).items() if value})
    return reader.read(text), data


class _Reader:
    def __init__(self, path: Path, usual: Mapping[str, str]) -> None:
        self._path = path
        self._usual = usual
        self._faults: list[str] = []
        self._columns: list[str] = []
        self._noun = ""  # of a place, in front of its number

    def read(self, text: str) -> list[GivenRow]:
        """Return the rows of a text. Raises InvalidFiles."""
        rows = self._read_parsed(text) if text.lstrip()[:1] in ("[", "{") else self._read_csv(text)
        self._raise()
        seen: dict[tuple[str, ...], int] = {}
        for row in rows:
            if (before := seen.setdefault(row.key, row.line)) != row.line:
                where = f"{self._noun or 'line '}{before}"
                self._fault(row.line, "metric", f"this metric of this case is in {where}")
        self._raise()
        return rows

    def _read_parsed(self, text: str) -> list[GivenRow]:
        """Return the rows of what ``seatrial parse`` prints. The case is told by ``usual``."""
        try:
            figures = json.loads(text)
        except (ValueError, RecursionError) as error:
            line = getattr(error, "lineno", 1)
            self._fault(line, "", f"is no JSON: {getattr(error, 'msg', 'nested too deep')}")
            self._raise()
        if "case" not in self._usual:
            self._fault(1, "", "does not tell of which case its figures are; name it with --case")
        if not isinstance(figures, list) or not figures:
            self._fault(1, "", "has no list of figures such as `seatrial parse` prints")
        self._raise()
        self._noun = "figure "
        rows = (self._parsed(place, figure) for place, figure in enumerate(figures, 1))
        return [row for row in rows if row is not None]

    def _parsed(self, place: int, figure: Any) -> GivenRow | None:
        """Return the row of one figure of ``seatrial parse``; None if it has faults."""
        before = len(self._faults)
        self._check_parsed(place, figure)
        if len(self._faults) > before:
            return None
        labels, value = figure.get("labels", {}), figure.get("value", "")
        metric = MetricValue(figure.get("name", ""), 0, "", "none", labels=labels).full_name
        unit, better = figure.get("unit", "") or "1", figure.get("better", "")
        columns = {"metric": metric, "unit": unit, "better": better, "value": str(value), "n": "1"}
        return self._row(place, columns)

    def _check_parsed(self, place: int, figure: Any) -> None:
        if not isinstance(figure, dict) or not isinstance(figure.get("labels", {}), dict):
            self._fault(place, "", f"is no figure with {', '.join(_PARSED)}")
            return
        for name in figure.keys() - set(_PARSED):
            self._fault(place, str(name)[:60], f"is none of {', '.join(_PARSED)}")
        texts = {name: figure.get(name, "") for name in ("name", "unit", "better")}
        for name, value in (texts | figure.get("labels", {})).items():
            if not isinstance(value, str) and (name in texts or not _is_number(value)):
                self._fault(place, name[:60], f"{str(value)[:60]!r} is no text")
        value = figure.get("value", "")
        if value != "" and not _is_number(value):
            self._fault(place, "value", f"{str(value)[:60]!r} is no number")

    def _read_csv(self, text: str) -> list[GivenRow]:
        if "case" in self._usual:
            self._fault(1, "", "names its cases itself: leave out --case, which is for JSON")
        rows = list(filter(None, self._csv_rows(text)))
        if not self._columns:
            self._fault(1, "", f"is empty; the first line names the columns: {', '.join(COLUMNS)}")
        elif not rows and not self._faults:
            self._fault(1, "", "has no figure below its head")
        return rows

    def _csv_rows(self, text: str) -> Iterator[GivenRow | None]:
        """Yield the rows of a text; None for each that has faults."""
        first = text.lstrip("\r\n").partition("\n")[0]
        delimiter = max(_DELIMITERS, key=first.count)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        try:
            for cells in (list(map(str.strip, each)) for each in reader):
                if not any(cells):
                    continue
                if self._columns:
                    yield self._csv_row(reader.line_num, cells)
                else:
                    self._read_head(reader.line_num, cells)
        except csv.Error as error:
            self._fault(reader.line_num, "", f"is no CSV: {error}")

    def _read_head(self, line: int, cells: Sequence[str]) -> None:
        self._columns = [cell.lower() for cell in cells]
        for name in self._columns:
            if name not in COLUMNS:
                remedy = suggest(name, COLUMNS) or f"there are {', '.join(COLUMNS)}"
                self._fault(line, name or "(no name)", f"is no column; {remedy}")
            elif self._columns.count(name) > 1:
                self._fault(line, name, "this column is there twice")
        missing = [name for name in _REQUIRED if name not in self._columns]
        if ("case" in self._columns) == ("test" in self._columns):
            missing.insert(0, "one of case and test")
        if missing:
            self._fault(line, "", f"the head lacks {', '.join(missing)}")
        self._raise()

    def _csv_row(self, line: int, cells: list[str]) -> GivenRow | None:
        """Return the row of a line; None if it has faults."""
        if len(cells) != len(self._columns):
            counts = f"{len(cells)} values, and the head {len(self._columns)} columns"
            self._fault(line, "", f"has {counts}; put quotes around a value with a comma")
            return None
        return self._row(line, dict(zip(self._columns, cells, strict=True)))

    def _row(self, line: int, written: Mapping[str, str]) -> GivenRow | None:
        """Return a row by its columns; None if it has faults."""
        before = len(self._faults)
        given = {**self._usual, **{name: value for name, value in written.items() if value}}
        test, parameters, toolchain = self._case(line, given)
        value = self._number(line, given, "value", required=True)
        spread = {name: self._number(line, given, name) for name in ("sd", "min", "max")}
        n = self._count(line, given)
        self._check_spread(line, value, spread)
        if not given.get("metric"):
            self._fault(line, "metric", "is missing")
        if not given.get("unit"):
            self._fault(line, "unit", "is missing; 1 for none")
        self._choice(line, given, "better", ("higher", "lower", "none"))
        self._choice(line, given, "stage", ("alone", "full"))
        self._check_origin(line, given)
        if len(self._faults) > before or value is None:
            return None
        return GivenRow(
            line=line,
            test=test,
            parameters=parameters,
            toolchain=toolchain,
            stage=given.get("stage", ""),
            metric=given["metric"],
            unit=given["unit"],
            better=given.get("better", "") or ("lower" if given["metric"] == "elapsed" else ""),
            value=value,
            n=n,
            sd=spread["sd"],
            least=spread["min"],
            greatest=spread["max"],
            system=" ".join(given.get("system", "").split()),
            source=" ".join(given.get("source", "").split()),
            date=given.get("date", ""),
        )

    def _check_origin(self, line: int, given: Mapping[str, str]) -> None:
        for name in ("system", "source"):
            if (length := len(given.get(name, ""))) > LONGEST_ORIGIN:
                self._fault(line, name, f"has {length} letters; at most {LONGEST_ORIGIN}")
        try:
            day_of(given.get("date", "") or "2000")
        except ValueError as error:
            self._fault(line, "date", str(error))

    def _case(self, line: int, given: Mapping[str, str]) -> tuple[str, dict[str, str], str]:
        if "test" in self._columns:
            if not given.get("test"):
                self._fault(line, "test", "is missing")
            parameters = self._parameters(line, "parameters", given.get("parameters", ""))
            return given.get("test", ""), parameters, given.get("toolchain", "")
        for name in ("parameters", "toolchain"):
            if given.get(name):
                self._fault(line, name, "is a part of `case`; leave it empty")
        name = given.get("case", "")
        match = CASE_NAME.fullmatch(name)
        if match is None:
            self._fault(line, "case", f"{name!r} is no case such as lulesh{{size=60}}@gcc")
            return "", {}, ""
        return match[1], self._parameters(line, "case", match[2] or ""), match[3] or ""

    def _parameters(self, line: int, column: str, text: str) -> dict[str, str]:
        parameters: dict[str, str] = {}
        for piece in filter(None, map(str.strip, text.split(","))):
            name, sign, value = (part.strip() for part in piece.partition("="))
            if not (name and sign and value) or name in parameters:
                wrong = "is there twice" if name in parameters else "is no NAME=VALUE"
                self._fault(line, column, f"{piece!r} {wrong}")
            parameters[name] = value
        return parameters

    def _number(
        self, line: int, given: Mapping[str, str], name: str, required: bool = False
    ) -> float | None:
        text = given.get(name, "")
        if not text:
            if required:
                self._fault(line, name, "is missing")
            return None
        try:
            return number(text)
        except ValueError as error:
            hint = "; write a point, and no separator of thousands" if "," in text else ""
            self._fault(line, name, f"{error}{hint}")
            return None

    def _count(self, line: int, given: Mapping[str, str]) -> int:
        text = given.get("n", "")
        if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < 1:
            self._fault(line, "n", f"{text!r} is no number of measurements; at least 1")
            return 1
        return int(text)

    def _check_spread(
        self, line: int, value: float | None, spread: Mapping[str, float | None]
    ) -> None:
        sd, least, greatest = spread["sd"], spread["min"], spread["max"]
        if sd is not None and sd < 0:
            self._fault(line, "sd", f"{sd:g} is less than 0")
        if value is None:
            return
        if least is not None and least > value:
            self._fault(line, "min", f"{least:g} is above the value {value:g}")
        if greatest is not None and greatest < value:
            self._fault(line, "max", f"{greatest:g} is below the value {value:g}")

    def _choice(self, line: int, given: Mapping[str, str], name: str, words: Sequence[str]) -> None:
        if (text := given.get(name, "")) and text not in words:
            self._fault(line, name, f"{text!r} is none of {', '.join(words)}")

    def _fault(self, line: int, column: str, what: str) -> None:
        at = f": {self._noun}" if self._noun else ":"
        place = f"{self._path}{at}{line}" + (f": {column}" if column else "")
        self._faults.append(f"{place}: {what}")

    def _raise(self) -> None:
        if self._faults:
            raise InvalidFiles(list(_bounded(self._faults)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _bounded(faults: Sequence[str]) -> Iterator[str]:
    yield from faults[:MAX_FAULTS]
    if len(faults) > MAX_FAULTS:
        yield f"and {len(faults) - MAX_FAULTS} faults more"


# ---- given ---------------------------------------------------------------------------------------
#
# Makes a trial of figures that somebody else gave, such as a vendor's: nothing of it ran.
#
#     folder = import_figures(trials, "vt", "aurora", Path("vt.csv"), by="me@login1")
#
# It has a record, cases and a journal, as each trial has, so that the store can be rebuilt. Its
# events are of kinds of their own, which nothing that counts runs or measurements takes for these.


def import_figures(
    trials: Path, tag: str, machine: str, file: Path, by: str, **usual: str
) -> TrialFolder:
    """Make the trial ``tag`` of the figures in a file, on a machine of that name. ``usual``: case,
    source and date of figures that have none. Raises InvalidFiles for faults in the file, and
    UsageError where there is such a trial."""
    rows, data = read_figures(file, {"system": machine, "source": by} | _given(usual))
    digest = hashlib.sha256(data).hexdigest()
    cases = {_case_id(row): _case(row) for row in rows}
    record = record_from_elsewhere(tag, machine)
    given = GivenFrom(file=str(file.absolute()), sha256=digest, by=by, on=record.created)
    folder = create(trials, replace(record, given=given), cases.values())
    kept = "figures.json" if data.lstrip()[:1] in (b"[", b"{") else "figures.csv"
    replace_file(folder.path / kept, data)
    imported = FiguresImported(figures=len(rows), file=str(file.absolute()), sha256=digest, by=by)
    _write(folder, machine, [imported, *(_event(folder.tag, row) for row in rows)])
    return folder


def _given(usual: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in usual.items() if value}


def _write(folder: TrialFolder, machine: str, events: Sequence[Event]) -> None:
    with Journal.take(folder.journal) as journal:
        for event in events:
            named = replace(event, time=journal.now(), trial=folder.tag, machine=machine)
            journal.append(named)
        journal.flush(durable=True)


def _case_id(row: GivenRow) -> str:
    bound = sorted(row.parameters.items())
    text = "\0".join([row.test, row.system, row.toolchain, *(f"{n}={v}" for n, v in bound)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _case(row: GivenRow) -> Case:
    """Return the case of a row. How many nodes it had is not known."""
    return Case(
        id=_case_id(row),
        test=row.test,
        parameters=dict(row.parameters),
        toolchain=row.toolchain,
        nodes=0,
        tasks=0,
        tasks_per_node=0,
        threads=0,
        walltime=0.0,
        repeat=0,
    )


def _event(tag: str, row: GivenRow) -> FigureGiven:
    case = _case_id(row)
    run_id = run_id_of(tag, case, row.line)
    return FigureGiven(
        test=row.test,
        case=case,
        run_id=run_id,
        metric=row.metric,
        figure=row.value,
        unit=row.unit,
        better=row.better,
        n=row.n,
        sd=row.sd,
        least=row.least,
        greatest=row.greatest,
        stage=row.stage,
        line=row.line,
        system=row.system,
        source=row.source,
        date=row.date,
    )
