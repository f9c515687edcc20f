"""Tables of jobs (CSV) of any tool: columns are named by options, or by a file.

# mapping.yaml
columns: {job: JobID, submitted: Submit, started: Start, ended: End, cores: NCPUS, limit: Hours}
units: {limit: h}
zone: Europe/Berlin
states: {GOOD: completed}
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar, get_args

from msgspec.structs import replace

from seatrial.cli import Folders
from seatrial.errors import InvalidFiles, UsageError, suggest
from seatrial.model.documents import Location, load_checked
from seatrial.model.file_model import FileModel, doc
from seatrial.model.moments import zone_of
from seatrial.plugins.usage.archive import Rejects
from seatrial.plugins.usage.importing import Ask, Batch, bring_in
from seatrial.plugins.usage.jobs import UNFINISHED, JobState, UserJob
from seatrial.plugins.usage.sources.files import lines_of, opened_text
from seatrial.units import listed, span_of

T = TypeVar("T")
TIMES = ("submitted", "eligible", "started", "ended")
SPANS = ("wait", "elapsed", "suspended", "limit", "cpu")
NUMBERS = ("attempt", "exit_code", "signal", "nodes", "cores", "gpus")
WORDS = (
    *("job", "state", "user", "account", "queue", "name", "executable", "reservation"),
    *("node_list", "reason", "cluster"),
)
FIELDS = (*TIMES, *SPANS, *NUMBERS, "energy", *WORDS)
_TEXTS = tuple(field for field in WORDS if field != "state")
NEEDED = ("job", "submitted")
UNITS = {"s": 1.0, "ms": 0.001, "min": 60.0, "h": 3600.0, "d": 86400.0}
ENERGY_UNITS = {"J": 1.0, "kJ": 1e3, "MJ": 1e6, "Wh": 3.6e3, "kWh": 3.6e6, "MWh": 3.6e9}
MOST = 1 << 40
UNKNOWN = ("", "-", "unknown", "none", "n/a", "na", "null", "nan", "-1")
"""What stands in a cell that says nothing."""

STATE_WORDS: Mapping[str, str] = {
    word: state
    for state, words in {
        "pending": "pending pd queued q waiting configuring",
        "running": "running r completing",
        "suspended": "suspended s held",
        "completed": "completed complete cd done ok success succeeded finished 0",
        "failed": "failed f fail error boot_fail",
        "timeout": "timeout to timelimit walltime deadline",
        "node_fail": "node_fail nf node_failure",
        "out_of_memory": "out_of_memory oom",
        "cancelled": "cancelled canceled ca deleted revoked removed",
        "preempted": "preempted pr",
        "requeued": "requeued rq",
    }.items()
    for word in words.split()
}
DOUBLE_HOUR = (
    "a time is in the hour that is there twice, as clocks are put back; the first is taken"
)
NO_CORES = "the cores are not known; they count no core-hours"


def _hint(word: str, known: Sequence[str]) -> str:
    return suggest(word, known) or f"there are {', '.join(known)}"


class TableMap(FileModel, frozen=True):
    """Which columns of a table say what of a job, and how they are read."""

    columns: Annotated[
        dict[str, str],
        doc(
            "by field of a job, the heading of its column: "
            f"{', '.join(FIELDS)}; a column that has the name of a field need not be named"
        ),
    ] = {}
    units: Annotated[
        dict[str, str],
        doc(
            f"by field, its unit: {', '.join(UNITS)} of spans of time (default s; clock times "
            f"such as 1-02:00:00 need none), {', '.join(ENERGY_UNITS)} of energy (default J)"
        ),
    ] = {}
    zone: Annotated[str, doc("time zone of times that have none, such as Europe/Berlin or UTC")] = (
        ""
    )
    time: Annotated[
        str,
        doc(
            "form of times: as of strptime (%d.%m.%Y %H:%M), seconds or milliseconds since 1970; "
            "default: ISO 8601, or seconds since 1970"
        ),
    ] = ""
    states: Annotated[dict[str, str], doc("by word of the table, the state of the job")] = {}
    delimiter: Annotated[str, doc("what stands between cells; default: , ; | or a tab")] = ""
    unknown: Annotated[list[str], doc("further words of cells that say nothing")] = []


def check_map(about: TableMap, at: Location) -> None:
    """Add the faults of a mapping."""
    for key, text in faults_of(about):
        at.fault(text, *key)


def faults_of(about: TableMap) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what is wrong in a mapping, each with its key."""
    for field in about.columns:
        if field not in FIELDS:
            yield ("columns", field), f"is no field of a job; {_hint(field, FIELDS)}"
    for field, unit in about.units.items():
        known = ENERGY_UNITS if field == "energy" else UNITS if field in SPANS else {}
        if not known:
            yield ("units", field), f"has no unit; these have: {', '.join((*SPANS, 'energy'))}"
        elif unit not in known:
            yield ("units", field), f"{unit!r} is no unit of it; there are {', '.join(known)}"
    for word, state in about.states.items():
        if state not in get_args(JobState):
            yield ("states", word), f"{state!r} is no state; {_hint(state, get_args(JobState))}"
    if len(about.delimiter) > 1:
        yield ("delimiter",), f"{about.delimiter!r} is more than one character"
    try:
        zone_of(about.zone)
    except ValueError as error:
        yield ("zone",), str(error)


# ---- rows ----------------------------------------------------------------------------------------


class _JobTable:
    """A table that is asked for jobs."""

    name = "csv"
    cluster = ""

    def __init__(self, path: Path, about: TableMap) -> None:
        self.path = path
        self.about = about

    def batches(self, ask: Ask, rejects: Rejects) -> Iterator[Batch]:
        """Yield all of the table. Raises UsageError."""
        with opened_text(self.path) as opened:
            jobs = ask.of_span(self._jobs(opened.text, ask.machine, rejects))
            yield Batch(jobs, str(self.path), opened.written, ask.covered, of_file=True)

    def _jobs(self, text: io.TextIOWrapper, machine: str, rejects: Rejects) -> Iterator[UserJob]:
        lines = (line for _, line in lines_of(self.path, text))
        first = next(lines, "").removeprefix("\ufeff")
        delimiter = self.about.delimiter or max(",;|\t", key=first.count)
        reader = csv.reader(chain([first], lines), delimiter=delimiter)
        seen = set[int]()
        try:
            head = [cell.strip() for cell in next(reader, [])]
            make = _RowReader(self._places(head), self.about, machine, rejects)
            line = reader.line_num + 1
            for cells in reader:
                place, line = f"{self.path}:{line}", reader.line_num + 1
                if not any(cells):
                    continue
                try:
                    if len(cells) != len(head):
                        raise ValueError(f"has {len(cells)} cells; the first line has {len(head)}")
                    job = make.job(cells)
                    if (key := hash((job.job, job.submitted, job.attempt))) in seen:
                        raise ValueError(f"job {job.job} is there twice; the first one counts")
                    seen.add(key)
                    yield job
                except NoZone as error:
                    raise UsageError(f"{place}: {error}") from None
                except ValueError as error:
                    rejects.add(place, str(error), _row_text(cells, delimiter))
        except csv.Error as error:
            raise UsageError(
                f"{self.path}:{reader.line_num}: is no row of a table: {error}; nothing of it was "
                "imported"
            ) from error

    def _places(self, head: list[str]) -> dict[str, int]:
        """Return the place of each field's column. Raises UsageError with all faults."""
        plain = {name.lower().replace(" ", "_"): name for name in head}
        columns = {field: plain[field] for field in FIELDS if field in plain} | self.about.columns
        if faults := [f"{self.path}:1: {text}" for text in _head_faults(head, columns)]:
            raise InvalidFiles(faults)
        return {field: head.index(name) for field, name in columns.items()}


def _head_faults(head: Sequence[str], columns: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with the first line of a table, of which these are the columns of
    fields."""
    for name in dict.fromkeys(head):
        if name and head.count(name) > 1:
            yield f"has the column {name!r} twice; rename one"
    for field, name in columns.items():
        if name not in head:
            hint = suggest(name, head) or f"it has {listed(head, 20)}"
            yield f"has no column {name!r} (for {field}); {hint}"
    for field in NEEDED:
        if field not in columns:
            remedy = f"say it: --column {field}=HEADING; it has {listed(head, 20)}"
            yield f"no column is known for {field}; {remedy}"


def _row_text(cells: Sequence[str], delimiter: str) -> str:
    """Return a row as it stands in the table."""
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="").writerow(cells)
    return text.getvalue()


class _RowReader:
    """Makes jobs of rows."""

    def __init__(
        self, places: Mapping[str, int], about: TableMap, machine: str, rejects: Rejects
    ) -> None:
        self._places = places
        self._units = {field: UNITS[about.units.get(field, "s")] for field in SPANS}
        self._joule = ENERGY_UNITS[about.units.get("energy", "J")]
        self._time = time_reader(about.time, zone_of(about.zone))
        self._states = {**STATE_WORDS, **{k.lower(): v for k, v in about.states.items()}}
        self._unknown = {*UNKNOWN, *(word.lower() for word in about.unknown)}
        self._machine = machine
        self._note = rejects.note

    def job(self, cells: Sequence[str]) -> UserJob:
        """Return the job of a row. Raises ValueError with the column, and NoZone."""
        said = {
            field: text
            for field, place in self._places.items()
            if (text := cells[place].strip()).lower() not in self._unknown
        }
        numbers = _read(NUMBERS, said, self._number)
        spans = _read(SPANS, said, self._span)
        words = _read(_TEXTS, said, lambda _, text: text)
        for field in NEEDED:
            if field not in said:
                raise ValueError(f"{field} is not said")
        times = self._times(said, spans)
        state = self._state(said, numbers, times)
        _require_whole(state, times)
        if times.get("started") is not None and not numbers.get("cores"):
            self._note(NO_CORES)
        about: dict[str, Any] = {**words, **times, **numbers}
        return UserJob(
            machine=self._machine,
            state=state,
            suspended_s=spans.get("suspended", 0),
            limit_s=spans.get("limit") or None,
            cpu_s=spans.get("cpu"),
            energy_j=_read(("energy",), said, self._energy).get("energy"),
            **about,
        )

    def _times(self, said: Mapping[str, str], spans: Mapping[str, int]) -> dict[str, int]:
        """Return the times of a row. One that is there twice is the first that is not before those
        that came before it."""
        times: dict[str, int] = {}
        before, twice = 0, False
        for field, (time, later) in _read(TIMES, said, self._moment).items():
            if later is not None and time < before:
                time = later
            elif later is not None:
                twice = True
            times[field] = before = time
        if twice:
            self._note(DOUBLE_HOUR)
        if "started" not in times and "wait" in spans and "ended" in times:
            times["started"] = times["submitted"] + spans["wait"]
        if "ended" not in times and "elapsed" in spans and "started" in times:
            times["ended"] = times["started"] + spans["elapsed"]
        return times

    def _moment(self, field: str, text: str) -> Moment:
        try:
            return self._time(text)
        except NoZone as error:
            raise NoZone(f"{field}: {error}") from None
        except ValueError as error:
            raise ValueError(f"{field}: {error}") from None

    def _state(
        self, said: Mapping[str, str], numbers: Mapping[str, int], times: Mapping[str, int]
    ) -> str:
        """Return the state: by its word, else by the exit code, else by the times."""
        if "state" in said:
            word = said["state"].lower()
            found = self._states.get(word) or self._states.get(word.split()[0].rstrip("+"))
            if found is None:
                self._note(f"the state {said['state'][:40]!r} is not known; map it by --state")
            return found or "unknown"
        if "ended" not in times:
            return "running" if "started" in times else "pending"
        if "exit_code" in numbers:
            return "failed" if numbers["exit_code"] else "completed"
        return "unknown"

    def _number(self, field: str, text: str) -> int:
        value = _finite(field, text)
        if value != int(value) or not 0 <= value < MOST:
            raise ValueError(f"{field}: {text[:40]!r} is no whole number of 0 or more")
        return int(value)

    def _span(self, field: str, text: str) -> int:
        if ":" in text:
            try:
                return round(span_of(text))
            except ValueError as error:
                raise ValueError(f"{field}: {error}") from None
        value = _finite(field, text) * self._units[field]
        if not 0 <= value < MOST:
            raise ValueError(f"{field}: {text[:40]!r} is no span of time")
        return round(value)

    def _energy(self, field: str, text: str) -> int:
        value = _finite(field, text) * self._joule
        if not 0 <= value < 1 << 60:
            raise ValueError(f"{field}: {text[:40]!r} is no energy")
        return round(value)


def _read(
    fields: Iterable[str], said: Mapping[str, str], read: Callable[[str, str], T]
) -> dict[str, T]:
    """Return the values of those of some fields of which a row says something."""
    return {field: read(field, said[field]) for field in fields if field in said}


def _require_whole(state: str, times: Mapping[str, int]) -> None:
    """Raise ValueError where the times and the state do not go together."""
    submitted, started, ended = times["submitted"], times.get("started"), times.get("ended")
    if started is not None and started < submitted:
        raise ValueError(f"started: is {submitted - started} s before it was submitted")
    if ended is not None and ended < (submitted if started is None else started):
        raise ValueError("ended: is before it was submitted or started")
    if state in UNFINISHED and ended is not None:
        raise ValueError(f"state: is {state}, and it has an end")
    if state not in UNFINISHED and ended is None:
        raise ValueError(f"state: is {state}, and no end (or start and elapsed time) is said")


def _finite(field: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        hint = "; write a point, and no separator of thousands" if "," in text else ""
        raise ValueError(f"{field}: {text[:40]!r} is no number{hint}") from None
    if not math.isfinite(value):
        raise ValueError(f"{field}: {text[:40]!r} is no finite number")
    return value


# ---- the command ---------------------------------------------------------------------------------


class _Pair(NamedTuple):
    """NAME=VALUE of an option."""

    name: str
    value: str


def parse_pair(text: str) -> _Pair:
    name, sign, value = text.partition("=")
    if not (name.strip() and sign and value.strip()):
        raise ValueError(f"{text!r}: write NAME=VALUE")
    return _Pair(name.strip(), value.strip())


def import_table(
    folders: Folders,
    path: Path,
    map_file: Path | None,
    columns: tuple[_Pair, ...],
    units: tuple[_Pair, ...],
    states: tuple[_Pair, ...],
    zone: str,
    time: str,
    delimiter: str,
    **chosen: Any,
) -> int:
    """Do ``seatrial usage import csv``; return the exit code."""
    about = load_checked(map_file, TableMap, check_map) if map_file else TableMap()
    about = replace(
        about,
        columns={**about.columns, **dict(columns)},
        units={**about.units, **dict(units)},
        states={**about.states, **dict(states)},
        zone=zone or about.zone,
        time=time or about.time,
        delimiter={"tab": "\t"}.get(delimiter, delimiter) or about.delimiter,
    )
    if faults := [
        f"--{key[0].rstrip('s')} {'='.join(key[1:])}: {text}" for key, text in faults_of(about)
    ]:
        raise UsageError("\n".join(faults))
    return bring_in(folders, _JobTable(path, about), **chosen)


# ---- times ---------------------------------------------------------------------------------------
#
# Times of files: with a time zone of their own, or in one that is said.


LATEST = 1 << 33  # s since 1970, in the year 2242
_UNITS = {"seconds": 1, "milliseconds": 1000}


class NoZone(UsageError):
    """A time has no zone, and none was said."""


class Moment(NamedTuple):
    """A time in s since 1970. ``later``: that of the second hour, where clocks were put back and
    the time is there twice; else None."""

    time: int
    later: int | None = None


def time_reader(form: str, zone: tzinfo | None) -> Callable[[str], Moment]:
    """Return what reads times in a form: ``seconds`` or ``milliseconds`` since 1970, a format of
    strptime, or "": ISO 8601, or seconds since 1970. It raises ValueError for what is none, and
    NoZone."""

    def read(text: str) -> Moment:
        if form in _UNITS or (not form and _is_number(text)):
            return Moment(_bounded(_seconds(text, _UNITS.get(form, 1)), text))
        try:
            found = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
        except ValueError:
            expected = f"as {form!r}" if form else "such as 2026-11-20T14:03:00+01:00"
            raise ValueError(f"{text[:40]!r} is no time {expected}") from None
        moment = _with_zone(found, zone, text)
        return moment._replace(time=_bounded(moment.time, text))

    return read


def _is_number(text: str) -> bool:
    return text.isascii() and text.replace(".", "", 1).isdecimal() and len(text) != len("20261120")


def _seconds(text: str, unit: int) -> int:
    try:
        return int(float(text) // unit)
    except (ValueError, OverflowError):
        raise ValueError(f"{text[:40]!r} is no number of seconds") from None


def _bounded(time: int, text: str) -> int:
    if not 0 < time < LATEST:
        raise ValueError(f"{text[:40]!r} is not between the years 1970 and 2242: another unit?")
    return time


def _with_zone(found: datetime, zone: tzinfo | None, text: str) -> Moment:
    """Return a time that was read. Raises NoZone, and ValueError for one that clocks left out."""
    if found.tzinfo is not None:
        return Moment(int(found.timestamp()))
    if zone is None:
        raise NoZone(f"{text[:40]!r} has no time zone; say it, such as --zone Europe/Berlin")
    first, second = found.replace(tzinfo=zone, fold=0), found.replace(tzinfo=zone, fold=1)
    if first.utcoffset() == second.utcoffset():
        return Moment(int(first.timestamp()))
    if _local(first, zone) != found:
        raise ValueError(f"{text[:40]!r} does not exist in {zone}: clocks were put forward then")
    return Moment(int(first.timestamp()), int(second.timestamp()))


def _local(moment: datetime, zone: tzinfo) -> datetime:
    """Return the local time of a moment, by way of UTC."""
    return moment.astimezone(UTC).astimezone(zone).replace(tzinfo=None, fold=0)
