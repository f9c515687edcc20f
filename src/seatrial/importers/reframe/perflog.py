"""Read performance logs of ReFrame.

Those of 4.x are tables: the first line names the columns, such as ``copy_value``, ``copy_unit``,
``copy_ref``, ``copy_lower_thres``; commas separated them in 4.0, bars since. In those of 3.x each
line has one figure:

    2021-02-01T10:00:00|reframe 3.12.0|Stream %n=1 @daint:gpu+gnu|jobid=12|copy=9|ref=8 (l=-0.1,
    u=null)|MB/s
"""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from seatrial.importers.notes import ImportNote
from seatrial.importers.reframe.entry import ReframeEntry, ReframeFigure, figure_of, number_or_none
from seatrial.importers.times import time_of
from seatrial.lazy import regex
from seatrial.verify.figures import number
from seatrial.verify.reading import TooLarge, Unreadable, read_text

MAX_BYTES = 1 << 30
_LINE = regex(
    r"(?P<time>[^|]+)\|reframe [^|]*\|(?P<info>[^|]+)\|jobid=(?P<job>[^|]*)"
    r"\|(?P<name>[^|=]+)=(?P<value>[^|]*)"
    r"\|ref=(?P<ref>\S+) \(l=(?P<lower>[^,]+), u=(?P<upper>[^)]+)\)\|(?P<unit>.*)"
)
_INFO = regex(r"(.+?) (?:@|on )(\S+?):(\S+?)(?:\+| using )(\S+)")
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
    found = _LINE.fullmatch(line)
    info = _INFO.match(found["info"]) if found else None
    if found is None or info is None:
        raise ValueError("is no line of a performance log of ReFrame 3.x, and no head of 4.x")
    figure = _figure(*found.group("name", "value", "unit", "ref", "lower", "upper"))
    finished = time_of(found["time"])
    key = (found["time"], found["info"], found["job"])
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
            job=found["job"] if number_or_none_text(found["job"]) else "",
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
