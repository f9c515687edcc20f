"""Read all results of ReFrame in a folder: what logs and reports tell of a run becomes one.

results = read_results(Path("perflogs"), machine="daint")

A report tells how a run ended, and a log of 3.x and 4.0 when: its runs are found in the report by
their names and jobs.
"""

import contextlib
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.files import read_regular
from seatrial.judge.reading import TooLarge, Unreadable, read_text
from seatrial.judge.references import Reference, identity
from seatrial.model import codes
from seatrial.model.figures import number
from seatrial.model.file_model import Scalar
from seatrial.model.node_set import fold
from seatrial.plugins.importers.results import (
    ImportedFigure,
    ImportedResults,
    ImportedRun,
    ImportNote,
    machine_among,
    time_of,
)
from seatrial.units import SECOND_NS

# ---- entry ---------------------------------------------------------------------------------------
#
# What a log or a report of ReFrame tells of a run: its case, its figures, what was expected.


_NONE = ("", "null", "none", "nan")
_TIMES = ("s", "sec", "secs", "second", "seconds", "ms", "us", "ns", "min", "h")
_PARAMETER = re.compile(r"\s+%")
_FIXTURE = re.compile(r"\s+~\S.*")


class ReframeFigure(NamedTuple):
    """A figure, and what ReFrame expected: a reference (None: nothing), and by which fraction of it
    the figure may be lower and higher (None: by any)."""

    name: str
    value: float
    unit: str
    reference: float | None
    lower: float | None
    upper: float | None

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the greatest figure that ReFrame lets pass. Of a reference of 0 the bounds
        are figures themselves."""
        if self.reference is None:
            return -math.inf, math.inf
        base, scale = (self.reference, abs(self.reference)) if self.reference else (0.0, 1.0)
        least = -math.inf if self.lower is None else base + scale * self.lower
        most = math.inf if self.upper is None else base + scale * self.upper
        return least, most

    @property
    def is_relative(self) -> bool:
        """Whether the limits can be written as shares of the reference."""
        return (
            (self.reference or 0) > 0
            and (self.lower is None or -1 < self.lower <= 0)
            and (self.upper is None or 0 <= self.upper <= 1)
        )

    @property
    def is_met(self) -> bool:
        """Whether the figure is within its limits; rounding is no miss."""
        least, most = self.limits
        slack = 1e-9 * max(abs(self.value), abs(self.reference or 0.0))
        return least - slack <= self.value <= most + slack

    @property
    def better(self) -> str:
        """Which is better: ReFrame does not say. Bounds on one side tell, else the unit: of rates
        higher, of times lower."""
        if self.reference is not None and (self.lower is None) != (self.upper is None):
            return "lower" if self.lower is None else "higher"
        unit = self.unit.strip().lower()
        if unit.endswith(("/s", "/sec", "bps", "flops")):
            return "higher"
        return "lower" if unit in _TIMES else "none"


class ReframeEntry(Struct, kw_only=True):
    """A run as a log or a report has it. ``finished`` is None where that does not tell the time of
    its end; then it ended at some time within ``session`` (ns)."""

    name: str
    system: str
    partition: str
    environ: str
    place: str
    result: str
    job: str = ""
    submitted: int | None = None
    finished: int | None = None
    session: tuple[int, int] = (0, 0)
    phase: str = ""
    reason: str = ""
    exit_code: int | None = None
    hosts: str = ""
    path: str = ""
    tasks: int = 0
    tasks_per_node: int = 0
    figures: list[ReframeFigure] = []

    @property
    def missed(self) -> str:
        """The names of the figures outside of their limits; "" for none."""
        return ", ".join(figure.name for figure in self.figures if not figure.is_met)

    @property
    def key(self) -> tuple[str, ...]:
        """What is the same in the log and in the report of a run, but for the time."""
        return self.name, self.system, self.partition, self.environ, self.job


def run_of(entry: ReframeEntry, directions: dict[str, str]) -> ImportedRun:
    """Return the run of an entry. ``directions`` are those of metrics for which people gave one."""
    test, parameters = case_of(entry.name)
    if entry.partition not in ("", "default"):
        parameters["partition"] = entry.partition
    time = entry.finished or entry.session[0]
    code, reason = _verdict(entry)
    nodes = entry.tasks // entry.tasks_per_node if entry.tasks_per_node else 0
    return ImportedRun(
        test=test,
        tasks=entry.tasks,
        exit_code=entry.exit_code,
        hosts=entry.hosts,
        path=entry.path,
        place=entry.place,
        id="\n".join((*entry.key, str(time // SECOND_NS))),
        time=min(time, entry.submitted or time),
        code=code.number,
        parameters=parameters,
        toolchain=entry.environ,
        nodes=nodes,
        queued=entry.submitted,
        ended=entry.finished,
        reason=reason,
        job_id=entry.job,
        figures=[
            ImportedFigure(each.name, each.value, each.unit, directions.get(each.name, each.better))
            for each in entry.figures
        ],
    )


def references_of(entry: ReframeEntry) -> Iterable[Reference]:
    """Yield what ReFrame expected of the figures of a run, for cases as that of the run."""
    test, parameters = case_of(entry.name)
    if entry.partition not in ("", "default"):
        parameters["partition"] = entry.partition
    where: dict[str, Any] = {"test": test, "where": parameters, "toolchain": entry.environ}
    for each in entry.figures:
        if each.reference is None or (each.lower is None and each.upper is None):
            continue
        of: dict[str, Any] = {**where, "metric": each.name, "unit": each.unit}
        least, most = each.limits
        if each.is_relative:
            yield Reference(**of, value=each.reference, lower=each.lower, upper=each.upper)
        else:
            yield Reference(**of, min=_finite(least), max=_finite(most))


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


def case_of(name: str) -> tuple[str, dict[str, Scalar]]:
    """Return the test and the parameters of a display name such as ``Stream %size=8 %gpu=no``;
    ``~system`` behind it, of fixtures, is no part of it."""
    test, *pieces = _PARAMETER.split(_FIXTURE.sub("", name.strip()))
    parameters: dict[str, Scalar] = {}
    for piece in pieces:
        key, _, value = piece.partition("=")
        parameters[key.strip()] = value.strip()
    return test, parameters


def figure_of(name: str, value: float, unit: str, *expected: object) -> ReframeFigure:
    """Return a figure; ``expected`` are its reference, its lower and its upper bound as ReFrame
    writes them. Raises ValueError for what is no number."""
    reference, lower, upper = map(number_or_none, expected)
    if not reference and lower is None and upper is None:
        reference = None  # ReFrame's way to expect nothing
    return ReframeFigure(name, value, unit, reference, lower, upper)


def number_or_none(written: object) -> float | None:
    """Return a finite number that is written as text or JSON; None for none. Raises ValueError for
    other text."""
    if written is None or str(written).strip().lower() in _NONE:
        return None
    value = float(str(written))
    return value if math.isfinite(value) else None


def _verdict(entry: ReframeEntry) -> tuple[codes.Code, str]:
    """Return the verdict of a run, and its reason."""
    result = entry.result.lower()
    if result in ("pass", "success", "xpass"):
        return codes.PASS, ""
    reason = entry.reason or f"ReFrame recorded {entry.result}"
    if result == "xfail":
        return codes.KNOWN, reason
    if result.startswith("abort"):
        return codes.CANCELLED, reason
    phase = _failed_phase(entry)
    if phase == "performance":
        return codes.PERFORMANCE, entry.reason or f"{entry.missed}: outside the bounds of ReFrame"
    if not result and not phase:
        return codes.PASS, ""  # a log of 3.x: it has runs alone whose answer was right
    return _OF_PHASES.get(phase, codes.FAILED), reason


def _failed_phase(entry: ReframeEntry) -> str:
    """Return the phase in which a run failed; "" if none is known."""
    return entry.phase or ("performance" if entry.missed else "")


_OF_PHASES = {
    "sanity": codes.WRONG_ANSWER,
    "compile": codes.BUILD_FAILED,
    "compile_wait": codes.BUILD_FAILED,
    "setup": codes.LAUNCH_FAILED,
}


# ---- results -------------------------------------------------------------------------------------


_LOG = re.compile(r".*\.log(\.h[0-9]+)?")
_LATE_NS = 3600 * SECOND_NS  # a log's time may be so much later than the end of the session


def read_results(
    root: Path, machine: str = "", directions: Mapping[str, str] | None = None
) -> ImportedResults:
    """Return the results in a log, a report, or all of these below a folder; those of the system
    ``machine`` if several are there. ``directions`` are ``higher`` or ``lower`` by metrics. Raises
    UsageError if there is none, or if several systems are there."""
    entries, notes = _read_files(root)
    systems = Counter(entry.system for entry in entries if entry.system)
    name = machine_among(root, "systems", systems, machine)
    if len(systems) > 1:
        entries = [entry for entry in entries if entry.system == machine]
    entries.sort(key=lambda entry: entry.finished or entry.session[0])
    runs = [run_of(entry, dict(directions or {})) for entry in entries]
    return ImportedResults(runs, notes, name, list(_latest_references(entries)))


def _read_files(root: Path) -> tuple[list[ReframeEntry], list[ImportNote]]:
    """Return the runs in all files, each once, and notes. Raises UsageError if there is no file."""
    reported: list[ReframeEntry] = []
    logged: list[ReframeEntry] = []
    notes: list[ImportNote] = []
    files = list(_files(root.absolute()))
    if not files:
        raise UsageError(f"{root}: has no performance log (*.log) and no report (*.json)")
    for path in files:
        is_report = path.suffix == ".json"
        entries, more = read_report(path) if is_report else read_perflog(path)
        (reported if is_report else logged).extend(entries)
        notes += more
    return _together(reported, logged), notes


def _files(root: Path) -> Iterator[Path]:
    """Yield the logs and reports below a folder in the order of their names, or the file itself."""
    if not root.is_dir():
        yield root
        return
    for where, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            if name.endswith(".json") or _LOG.fullmatch(name):
                yield Path(where, name)


def _together(
    reported: Sequence[ReframeEntry], logged: Sequence[ReframeEntry]
) -> list[ReframeEntry]:
    """Return the runs of reports and logs, each once: what a report says of one counts."""
    by_key: dict[tuple[str, ...], list[ReframeEntry]] = {}
    for entry in logged:
        by_key.setdefault(entry.key, []).append(entry)
    found = []
    for entry in reported:
        same = by_key.get(entry.key, [])
        in_log = next((one for one in same if _is_same(entry, one)), None)
        if in_log is not None:
            same.remove(in_log)
            entry = replace(entry, finished=in_log.finished)
        found.append(entry)
    return [*found, *(entry for same in by_key.values() for entry in same)]


def _is_same(reported: ReframeEntry, logged: ReframeEntry) -> bool:
    assert logged.finished is not None  # a line of a log has its time
    if reported.finished is not None:
        return reported.finished // SECOND_NS == logged.finished // SECOND_NS
    first, last = reported.session
    return first - SECOND_NS <= logged.finished <= last + _LATE_NS


def _latest_references(entries: Sequence[ReframeEntry]) -> Iterator[Reference]:
    """Yield the references of each case and metric that its latest run had."""
    latest = {identity(each): each for entry in entries for each in references_of(entry)}
    yield from latest.values()


# ---- perflog -------------------------------------------------------------------------------------
#
# Read performance logs of ReFrame.
#
# Those of 4.x are tables: the first line names the columns, such as ``copy_value``, ``copy_unit``,
# ``copy_ref``, ``copy_lower_thres``; commas separated them in 4.0, bars since. In those of 3.x
# each line has one figure:
#
#     2021-02-01T10:00:00|reframe 3.12.0|Stream %n=1 @daint:gpu+gnu|jobid=12|copy=9|ref=8 (l=-0.1,
#     u=null)|MB/s


MAX_BYTES = 1 << 30
_LINE = re.compile(
    r"(?P<time>[^|]+)\|reframe [^|]*\|(?P<info>[^|]+)\|jobid=(?P<job>[^|]*)"
    r"\|(?P<name>[^|=]+)=(?P<value>[^|]*)"
    r"\|ref=(?P<ref>\S+) \(l=(?P<lower>[^,]+), u=(?P<upper>[^)]+)\)\|(?P<unit>.*)"
)
_INFO = re.compile(r"(.+?) (?:@|on )(\S+?):(\S+?)(?:\+| using )(\S+)")
_KNOWN = ("job_completion_time", "jobid", "system", "environ", "partition")


def read_perflog(path: Path) -> tuple[list[ReframeEntry], list[ImportNote]]:
    """Return the runs of a log, and notes on lines that could not be read."""
    try:
        lines = read_text(path.parent, path.name, MAX_BYTES, "split the file").splitlines()
    except (Unreadable, TooLarge) as error:
        return [], [ImportNote(path, 0, f"cannot be read: {error}")]
    entries: dict[tuple[str, ...], ReframeEntry] = {}
    notes = []
    columns: list[str] = []
    delimiter = "|"
    for line, written in enumerate(lines, 1):
        if not written.strip():
            continue
        if found := _head(written):
            delimiter, columns = found
            continue
        place = f"{path}:{line}"
        try:
            if columns:
                entry = _of_table(place, columns, written.split(delimiter))
                entries[(place,)] = entry
            else:
                _take_figure(entries, place, written)
        except ValueError as error:
            notes.append(ImportNote(path, line, f"{error}: left out"))
    return list(entries.values()), notes


def _head(line: str) -> tuple[str, list[str]] | None:
    """Return what separates the columns of a table, and their names, if the line is its head."""
    for delimiter in "|,;\t":
        columns = line.split(delimiter)
        if sum(name in columns for name in _KNOWN) >= 3:
            return delimiter, columns
    return None


def _of_table(place: str, columns: list[str], cells: list[str]) -> ReframeEntry:
    if len(cells) != len(columns):
        raise ValueError(f"has {len(cells)} values, and the head {len(columns)}")
    row = dict(zip(columns, cells, strict=True))
    finished = _time(row, "job_completion_time_unix") or _time(row, "job_completion_time")
    if finished is None:
        raise ValueError("has no time of completion")
    name = row.get("display_name") or row.get("name", "")
    if not name:
        raise ValueError("has no name of the test")
    return ReframeEntry(
        name=name,
        system=row.get("system", ""),
        partition=row.get("partition", ""),
        environ=row.get("environ", ""),
        place=place,
        result=row.get("result", ""),
        job=_text(row, "jobid"),
        submitted=_time(row, "job_submit_time"),
        finished=finished,
        exit_code=_whole(row, "job_exitcode"),
        hosts=_text(row, "job_nodelist"),
        tasks=_whole(row, "num_tasks") or 0,
        tasks_per_node=_whole(row, "num_tasks_per_node") or 0,
        figures=list(_figures(row)),
    )


def _figures(row: Mapping[str, str]) -> Iterator[ReframeFigure]:
    for column, written in row.items():
        name = column.removesuffix("_value")
        if name == column or f"{name}_unit" not in row or number_or_none(written) is None:
            continue
        sides = (f"{name}_lower", f"{name}_upper")
        bounds = [row.get(f"{side}_thres", row.get(side)) for side in sides]
        yield _figure(name, written, row[f"{name}_unit"], row.get(f"{name}_ref"), *bounds)


def _figure(name: str, written: str, unit: str, *expected: str | None) -> ReframeFigure:
    plain = unit.strip()
    unit = "1" if plain.lower() in ("", "none", "null", "(null)") else plain
    return figure_of(name, number(written), unit, *expected)


def _take_figure(entries: dict[tuple[str, ...], ReframeEntry], place: str, line: str) -> None:
    """Add a line of a log of 3.x to the run that it is of. Raises ValueError."""
    match = _LINE.fullmatch(line)
    info = _INFO.match(match["info"]) if match else None
    if match is None or info is None:
        raise ValueError("is no line of a performance log of ReFrame 3.x, and no head of 4.x")
    figure = _figure(*match.group("name", "value", "unit", "ref", "lower", "upper"))
    finished = time_of(match["time"])
    key = (match["time"], match["info"], match["job"])
    entry = entries.get(key)
    if entry is None:
        name, system, partition, environ = info.groups()
        entry = entries[key] = ReframeEntry(
            name=name,
            system=system,
            partition=partition,
            environ=environ,
            place=place,
            result="",
            job=match["job"] if number_or_none_text(match["job"]) else "",
            finished=finished,
        )
    if all(figure.name != each.name for each in entry.figures):
        entry.figures = [*entry.figures, figure]


def number_or_none_text(written: str) -> bool:
    """Return whether a text is a value: ReFrame writes None and null for none."""
    return written.strip().lower() not in ("", "none", "null")


def _text(row: Mapping[str, str], name: str) -> str:
    written = row.get(name, "").strip()
    return written if number_or_none_text(written) else ""


def _time(row: Mapping[str, str], name: str) -> int | None:
    written = _text(row, name)
    return time_of(written) if written else None


def _whole(row: Mapping[str, str], name: str) -> int | None:
    with contextlib.suppress(ValueError):
        found = number_or_none(row.get(name))
        return None if found is None else int(found)
    return None


# ---- report --------------------------------------------------------------------------------------
#
# Read run reports of ReFrame: JSON with ``session_info`` and ``runs`` of ``testcases``.
#
# Reports of 3.x and 4.0 have ``perfvars``, a list, and no times of test cases; since 4.1 they have
# ``perfvalues`` by ``SYSTEM:PARTITION:METRIC`` and the time of completion.


REPORT_MAX_BYTES = 1 << 30
LONGEST_REASON = 400


def read_report(path: Path) -> tuple[list[ReframeEntry], list[ImportNote]]:
    """Return the runs of a report, and notes on what could not be read."""
    try:
        report = msgspec.json.decode(read_regular(path, REPORT_MAX_BYTES))
        session = report["session_info"]
        span = (_moment(session, "time_start"), _moment(session, "time_end"))
        cases = [case for run in report["runs"] for case in run["testcases"]]
    except OSError as error:
        return [], [ImportNote(path, 0, f"cannot be read: {error.strerror or error}")]
    except (ValueError, RecursionError) as error:
        return [], [ImportNote(path, 0, f"is no whole JSON: {error}; left out")]
    except (KeyError, TypeError, AttributeError):
        return [], [ImportNote(path, 0, "is JSON, but no run report of ReFrame: left out")]
    entries = []
    notes = []
    for position, case in enumerate(cases, 1):
        place = f"{path}: test case {position}"
        try:
            entry = _entry(case, place, span)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"test case {position} is not as ReFrame writes it ({error!r}): left out"
            notes.append(ImportNote(path, 0, what))
            continue
        if entry.result in ("skip", "skipped", "None"):
            notes.append(ImportNote(path, 0, f"{entry.name}: was skipped: left out", False))
            continue
        entries.append(entry)
    return entries, notes


def _moment(session: dict[str, Any], name: str) -> int:
    exact = session.get(f"{name}_unix")
    return time_of(str(exact if exact is not None else session[name]))


def _entry(case: dict[str, Any], place: str, span: tuple[int, int]) -> ReframeEntry:
    def given(*names: str) -> Any:
        """The first of these keys that has a value; "" for none."""
        return next(filter(None, map(case.get, names)), "")

    variables = given("check_vars") or case
    system, _, partition = case["system"].partition(":")
    job = case.get("jobid")
    nodes = given("job_nodelist", "nodelist")
    return ReframeEntry(
        name=given("display_name") or case["name"],
        system=system,
        partition=given("partition") or partition,
        environ=given("environ", "environment"),
        place=place,
        result=str(case["result"]),
        job="" if job is None else str(job),
        submitted=_time_or_none(case.get("job_submit_time")),
        finished=_time_or_none(given("job_completion_time_unix", "job_completion_time") or None),
        session=span,
        phase=given("fail_phase"),
        reason=str(given("fail_reason")).strip()[:LONGEST_REASON],
        exit_code=_report_whole(case.get("job_exitcode")),
        hosts=fold([str(each) for each in nodes]),
        path=str(given("outputdir")),
        tasks=_report_whole(variables.get("num_tasks")) or 0,
        tasks_per_node=_report_whole(variables.get("num_tasks_per_node")) or 0,
        figures=list(_report_figures(case)),
    )


def _time_or_none(written: object) -> int | None:
    return None if written is None else time_of(str(written))


def _report_whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _report_figures(case: dict[str, Any]) -> Iterator[ReframeFigure]:
    for name, given in (case.get("perfvalues") or {}).items():
        value, reference, lower, upper, unit, *_ = given
        yield from _report_figure(name.split(":", 2)[-1], value, unit, reference, lower, upper)
    for given in case.get("perfvars") or []:
        expected = map(given.get, ("reference", "thres_lower", "thres_upper"))
        yield from _report_figure(given["name"], given["value"], given.get("unit"), *expected)


def _report_figure(
    name: str, value: object, unit: object, *expected: object
) -> Iterator[ReframeFigure]:
    """Yield a figure; none where ReFrame has no finite one."""
    with contextlib.suppress(ValueError):
        figure = number_or_none(value)
        if figure is not None:
            yield figure_of(name, figure, str(unit or "1"), *expected)
