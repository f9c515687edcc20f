"""Read what runs of the OLCF Test Harness left: ``Status`` and ``Run_Archive`` of each test.

    results = read_results(Path("applications"))
    results.runs, results.notes, results.machine

A run has the folders ``Status/ID`` (an event a file, ``Event_200_check_end.txt``: one line of a
time, a value and ``name=value``, with tabs between) and ``Run_Archive/ID`` (``metrics.txt``,
``nodecheck.txt``, what scripts wrote), and a row of ``Status/rgt_status.txt``. Any of these may be
missing. Times are local ones without a zone; the id is the time of the launch in seconds since the
epoch, so the first event tells the zone. The format is that of ``harness/libraries/status_file.py``
in github.com/olcf/olcf-test-harness.
"""

import contextlib
import os
import re
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.files import open_descriptor
from seatrial.judge.log_rules import FINDINGS, NODECHECK, metric_of
from seatrial.judge.outputs import oth
from seatrial.judge.reading import Missing, TooLarge, Unreadable, read_text, tail
from seatrial.model import codes
from seatrial.model.node_set import fold
from seatrial.plugins.facts.collector import BAD, GOOD, MAX_NODES
from seatrial.plugins.importers.results import (
    ImportedFigure,
    ImportedResults,
    ImportedRun,
    ImportNote,
    machine_among,
)
from seatrial.units import SECOND_NS

# ---- status table --------------------------------------------------------------------------------
#
# Read ``Status/rgt_status.txt`` of the OLCF Test Harness: a row for each run of a test.
#
# The columns are start time, launch id (``TAG/USER@TIME``), id, run count, job, and the results of
# building, submitting and checking; ``***`` is nothing yet. The harness rewrites the file without
# a lock, so rows may be cut or missing.


FILE = "rgt_status.txt"
STATUS_TABLE_LIMIT = 256 << 20
COLUMNS = 8


class _StatusRow(NamedTuple):
    """A row, with its line; ``tag`` is that of its launch."""

    line: int
    start: str
    tag: str
    job: str
    build: str
    submit: str
    check: str


def _read_status_table(status: Path) -> tuple[dict[str, _StatusRow], list[ImportNote]]:
    """Return the rows by the ids of runs, and notes on lines that are none."""
    path = status / FILE
    try:
        text = read_text(status, FILE, STATUS_TABLE_LIMIT, "split the folder")
    except Missing:
        return {}, []
    except (Unreadable, TooLarge) as error:
        return {}, [ImportNote(path, 0, f"cannot be read: {error}")]
    rows: dict[str, _StatusRow] = {}
    notes = []
    for line, written in enumerate(text.splitlines(), 1):
        words = written.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != COLUMNS:
            what = f"has {len(words)} columns in place of {COLUMNS}"
            notes.append(ImportNote(path, line, f"the row {what}: left out"))
            continue
        start, launch, number, _, job, *results = words
        rows[number] = _StatusRow(line, start, launch.partition("/")[0], job, *results)
    return rows, notes


# ---- results -------------------------------------------------------------------------------------


STATUS = "Status"
ARCHIVE = "Run_Archive"
NO_VALUE = ("", "[NO_VALUE]", "***")
MAY_RUN_NS = 2 * 86_400 * SECOND_NS  # a run whose last event is younger may go on
MAX_ZONE_NS = 15 * 3600 * SECOND_NS
LATEST_S = 4e9  # seconds since the epoch: no run is from after 2096
LIMIT = 1 << 16  # bytes of an event

_SKIPPED = {STATUS, ARCHIVE, "Source", "Scripts", "Correct_Results", "Performance", ".git"}
_EVENT = re.compile(r"(partial\.)?Event_([0-9]{3})_\w+\.txt")
_PASSED_ON = {code.number for code in (codes.PASS, codes.FAILED, codes.WRONG_ANSWER)} | {
    code.number for code in (codes.PERFORMANCE, codes.NODE_FAILURE, codes.CANCELLED, codes.TIMEOUT)
}
_STARTED, _BUILD, _BUILT, _SUBMITTED, _QUEUED = "110", "120", "130", "150", "160"
_RUN, _RAN, _CHECK, _CHECKED = "170", "180", "190", "200"
_UNUSED = {"140", _CHECK}
_UNUSED_BESIDE = {_STARTED: _BUILD, _SUBMITTED: _QUEUED}  # not read if the other one is there
_QUARTER_NS = 900 * SECOND_NS  # zones differ by multiples of it


class _OthEvent(NamedTuple):
    """An event of the harness: its time as if it were UTC (ns), its value, its other members."""

    time: int
    value: str
    members: list[str]

    def member(self, name: str) -> str:
        """Return a member, "" if it has none."""
        start = f"{name}="
        found = next((each for each in self.members if each.startswith(start)), start)
        value = found[len(start) :].rstrip("\n")
        return "" if value in NO_VALUE else value


class _Found(Struct):
    """What was read so far."""

    runs: list[ImportedRun] = []
    notes: list[ImportNote] = []
    machines: Counter[str] = Counter()


def read_results(
    root: Path, machine: str = "", tag: str = "", now: int | None = None
) -> ImportedResults:
    """Return the results of all tests below a folder; of a ``machine`` and of runs whose tag of the
    system log fits the pattern ``tag``, if these are given. Raises UsageError where there is none,
    or where results are of several machines."""
    found = _Found([], [], Counter())
    folders = 0
    for folder in tests_with_results(root.absolute()):
        folders += 1
        _TestReader(folder, found, machine, tag, now or time.time_ns()).read()
    if not folders:
        raise UsageError(
            f"{root}: has no test with a folder {STATUS} or {ARCHIVE}; name the folder with the "
            "applications of the harness"
        )
    of = machine_among(root, "machines", found.machines, machine)
    return ImportedResults(found.runs, found.notes, of)


def tests_with_results(root: Path) -> Iterator[Path]:
    """Yield the folders of tests at or below a folder that have results, in the order of their
    names. Links are not followed."""
    try:
        entries = sorted(os.scandir(root), key=lambda entry: entry.name)
    except OSError:
        return
    folders = [each.name for each in entries if each.is_dir(follow_symlinks=False)]
    if STATUS in folders or ARCHIVE in folders:
        yield root
        return
    for name in folders:
        if name not in _SKIPPED:
            yield from tests_with_results(root / name)


class _TestReader:
    """Reads the results of one test into what was found so far."""

    def __init__(self, folder: Path, found: _Found, machine: str, tag: str, now: int) -> None:
        self._folder = folder
        self._status = str(folder / STATUS)
        self._archive = str(folder / ARCHIVE)
        self._found = found
        self._machine = machine
        self._tag = tag
        self._now = now
        self._known_shift: int | None = None
        self._test = f"{folder.parent.name}/{folder.name}"

    def read(self) -> None:
        rows, notes = _read_status_table(Path(self._status))
        self._found.notes += notes
        in_status, in_archive = _folders(self._status), _folders(self._archive)
        for number in sorted(in_status | rows.keys()):
            run = None
            if number in in_status:
                run = self._run_of_events(number, number in in_archive, rows.get(number))
            elif number in rows:
                run = self._run_of_row(number, rows[number])
            if run is not None:
                self._found.runs.append(run)
        for number in sorted(in_archive - in_status - rows.keys()):
            self._note(f"{self._archive}/{number}", "nothing tells how the run ended: left out")

    # ---- by its events --------------------------------------------------------------------

    def _run_of_events(
        self, number: str, archived: bool, row: _StatusRow | None
    ) -> ImportedRun | None:
        where = f"{self._status}/{number}"
        events = self._events(where)
        if not events:
            if row is not None:
                return self._run_of_row(number, row)
            self._note(where, "has no event: left out")
            return None
        last = events[max(events)]
        if not self._is_wanted(last.member("machine"), last.member("rgt_system_log_tag")):
            return None
        shift = self._shift(number, min(events.values()).time, min(events) in (_STARTED, _BUILD))
        times = {name: event.time + shift for name, event in events.items()}
        verdict = _verdict(events) or self._lost(where, last, max(times.values()))
        if verdict is None:
            return None
        code, reason = verdict
        run = ImportedRun(
            test=self._test,
            id=number,
            app=self._folder.parent.name,
            time=_first_time(number, times.values()),
            queued=times.get(_QUEUED),
            started=times.get(_RUN),
            ended=times.get(_RAN),
            judged=times.get(_CHECKED),
            code=code,
            reason=reason,
            cause=_cause(code, events),
            job_id=_job_id(events, row),
            figures=_build_time(times),
            path=f"{self._archive}/{number}" if archived else "",
            place=where,
        )
        if archived:
            self._found.notes += read_archive(Path(run.path), run, _CHECKED in events)
        return run

    def _lost(self, where: str, last: _OthEvent, time: int) -> tuple[int, str] | None:
        """Return the code and the reason of a run without an end; None if it may still run."""
        if self._now - time < MAY_RUN_NS:
            self._note(where, "its last event is less than two days old; it may run: left out")
            return None
        self._note(where, "has no end of its check: imported as lost", lost=False)
        name = last.member("event_name") or "unknown"
        return codes.LOST.number, f"the harness recorded no end; its last event is {name}"

    def _events(self, where: str) -> dict[str, _OthEvent]:
        """Return the events of a run by their numbers."""
        events: dict[str, _OthEvent] = {}
        partial = []
        files = self._event_files(where)
        for number, match in files.items():
            name = match[0]
            if match[1]:
                partial.append((number, name))
            elif number not in _UNUSED and _UNUSED_BESIDE.get(number) not in files:
                try:
                    events[number] = _event(f"{where}/{name}")
                except (OSError, ValueError) as error:
                    self._note(f"{where}/{name}", f"is no event of the harness: {error}; left out")
        for number, name in partial:
            if number not in events:
                self._note(f"{where}/{name}", "the event was being written: left out")
        return events

    def _event_files(self, where: str) -> dict[str, re.Match[str]]:
        """Return the names of the files of a run's events by their numbers."""
        try:
            names = os.listdir(where)  # noqa: PTH208 - for each of 100,000 runs
        except OSError as error:
            self._note(where, f"cannot be read: {error.strerror}")
            return {}
        found: dict[str, re.Match[str]] = {}
        for name in sorted(names, reverse=True):
            if match := _EVENT.fullmatch(name):
                found[match[2]] = match
            elif name.startswith("Event_"):
                self._note(f"{where}/{name}", "is an event of the test's own: left out")
        return found

    # ---- by its row -----------------------------------------------------------------------

    def _run_of_row(self, number: str, row: _StatusRow) -> ImportedRun | None:
        """Return the run of a row of the status file, of which nothing else is left."""
        place = f"{self._status}/rgt_status.txt:{row.line}"
        path = Path(self._status, "rgt_status.txt")
        if not self._is_wanted("", row.tag):
            return None
        try:
            time = _time(row.start)
        except ValueError:
            text = "has no readable start time: left out"
            self._found.notes.append(ImportNote(path, row.line, text))
            return None
        judged = _verdict_of(row.build, row.submit, row.check)
        if judged is None:
            text = "the row has no result, and the run no events: left out"
            self._found.notes.append(ImportNote(path, row.line, text))
            return None
        time += self._shift(number, time, True)
        text = "only the row is left of the run: no times of its job"
        self._found.notes.append(ImportNote(path, row.line, text, lost=False))
        return ImportedRun(
            test=self._test,
            id=number,
            app=self._folder.parent.name,
            time=time,
            code=judged[0],
            reason=judged[1],
            job_id=_job_id({}, row),
            place=place,
        )

    def _shift(self, number: str, first: int, is_launch: bool) -> int:
        """Return what makes local times of a run UTC (ns). The id is the time of the launch, so its
        first event tells the zone; where there is none, the zone of another run or of this host
        counts."""
        if is_launch and (known := _zone_shift(number, first)) is not None:
            self._known_shift = known
        if self._known_shift is not None:
            return self._known_shift
        local = first / SECOND_NS
        ahead = local - datetime.fromtimestamp(local, UTC).replace(tzinfo=None).timestamp()
        return -round(ahead) * SECOND_NS

    def _is_wanted(self, machine: str, tag: str) -> bool:
        if self._machine and machine and machine != self._machine:
            return False
        if self._tag and not fnmatchcase(tag, self._tag):
            return False
        if machine:
            self._found.machines[machine] += 1
        return True

    def _note(self, path: str, text: str, lost: bool = True) -> None:
        self._found.notes.append(ImportNote(Path(path), 0, text, lost))


def _folders(path: str) -> set[str]:
    """Return the names of the folders in a folder, without links such as ``latest``."""
    with contextlib.suppress(OSError), os.scandir(path) as entries:
        return {each.name for each in entries if each.is_dir(follow_symlinks=False)}
    return set()


def _event(path: str) -> _OthEvent:
    """Return the event in a file. Raises OSError and ValueError."""
    descriptor = open_descriptor(path, os.O_RDONLY)
    try:
        data = os.read(descriptor, LIMIT)
    finally:
        os.close(descriptor)
    if not data.strip():
        raise ValueError("it is empty")
    written, *others = data.decode(errors="replace").split("\t")
    return _OthEvent(_time(written), others[0].strip() if others else "", others[1:])


def _time(text: str) -> int:
    """Return a local time as if it were UTC (ns)."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text.strip()[:40]!r} is no time") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp()) * SECOND_NS + moment.microsecond * 1000


def _launch(number: str) -> int:
    """Return the time (ns) of the launch of a run, which is its id; 0 if that is no time."""
    try:
        seconds = float(number)
    except ValueError:
        return 0
    return round(seconds * SECOND_NS) if 0 < seconds < LATEST_S else 0


def _zone_shift(number: str, first: int) -> int | None:
    """Return what makes local times of a run UTC (ns), by its id and its first event (ns), which
    comes within minutes; None where the id is no time."""
    ahead = round((first - _launch(number)) / _QUARTER_NS) * _QUARTER_NS
    return -ahead if abs(ahead) <= MAX_ZONE_NS else None


def _verdict(events: dict[str, _OthEvent]) -> tuple[int, str] | None:
    names = (_BUILT, _SUBMITTED, _CHECKED)
    return _verdict_of(*(events[name].value if name in events else "" for name in names))


def _verdict_of(build: str, submit: str, check: str) -> tuple[int, str] | None:
    """Return the verdict and its reason, by the results of building, submitting and checking; None
    if the run has no end."""
    if check not in NO_VALUE and check not in ("-1", "17"):
        return _verdict_of_check(check)
    if build not in (*NO_VALUE, "0"):
        return codes.BUILD_FAILED.number, f"its build ended with {build}"
    if submit not in (*NO_VALUE, "0"):
        return codes.LAUNCH_FAILED.number, f"its submission ended with {submit}"
    return None


def _verdict_of_check(check: str) -> tuple[int, str]:
    number = int(check) if re.fullmatch("-?[0-9]{1,9}", check) else None
    if number == codes.PASS.number:
        return number, ""
    if number in _PASSED_ON:
        return number, f"the harness recorded {number}, {codes.code_of(number).name}"
    return codes.CHECK_ERROR.number, f"its check ended with {check}, which is no result"


def _first_time(number: str, times: Collection[int]) -> int:
    """Return the time (ns) of the launch of a run, or that of its first event if that is earlier or
    its id is no time."""
    return min(_launch(number) or min(times), *times)


def _cause(code: int, events: Mapping[str, _OthEvent]) -> str:
    """Return the cause that the check of a run named; "" for a run that passed."""
    if code == codes.PASS.number or _CHECKED not in events:
        return ""
    return events[_CHECKED].member("check_alias")


def _job_id(events: Mapping[str, _OthEvent], row: _StatusRow | None) -> str:
    """Return the id of a run's job by its events, or else by its row; "" if neither has it."""
    text = events[_QUEUED].value if _QUEUED in events else row.job if row else ""
    return "" if text in NO_VALUE else text


def _build_time(times: Mapping[str, int]) -> list[ImportedFigure]:
    """Return the time of a build as a figure, if both its ends are known."""
    if _BUILD not in times or _BUILT not in times or times[_BUILT] < times[_BUILD]:
        return []
    seconds = (times[_BUILT] - times[_BUILD]) / SECOND_NS
    return [ImportedFigure("build_time", seconds, "s", "lower")]


# ---- archive -------------------------------------------------------------------------------------
#
# Read what the scripts of a run left in ``Run_Archive/ID``: figures, and what each node said.


OUTPUT = "output_check.txt"
LAST_BYTES = 4096
LONGEST_REASON = 400
_NODE = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")


def read_archive(folder: Path, run: ImportedRun, is_whole: bool) -> list[ImportNote]:
    """Add to a run what its archive tells, and return notes on what is not readable there. One
    that is not ``is_whole`` was being written: the last line of a file may be cut."""
    notes = _read_metrics(folder, run, is_whole)
    notes += _read_nodes(folder, run)
    if run.code not in (codes.PASS.number, codes.LOST.number):
        last = _last_line(folder / OUTPUT)
        run.reason = f"{last} ({run.reason})" if last else run.reason
    return notes


def _read_metrics(folder: Path, run: ImportedRun, is_whole: bool) -> list[ImportNote]:
    text, notes = _text_of(folder / oth.FILE)
    if is_whole and not text.endswith("\n"):
        text += "\n"
    figures = {figure.name: figure for figure in run.figures}
    own = frozenset(figures)  # the harness's own, such as build_time
    lines: dict[str, int] = {}
    for line, written in enumerate(text.splitlines(keepends=True), 1):
        if not written.strip():
            continue
        try:
            found = oth.parse(written)
        except ValueError:
            text = "is not `name = number`, or is cut: left out"
            notes.append(ImportNote(folder / oth.FILE, line, text))
            continue
        for figure in found:
            if figure.name in own:
                text = "is a figure of the harness itself: left out"
                notes.append(ImportNote(folder / oth.FILE, line, text))
                continue
            if first := lines.get(figure.name):
                text = "is there again: the last one counts, as with the harness"
                notes.append(ImportNote(folder / oth.FILE, first, text, lost=False))
            lines[figure.name] = line
            figures[figure.name] = ImportedFigure(figure.name, figure.value)
    run.figures = list(figures.values())
    return notes


def _read_nodes(folder: Path, run: ImportedRun) -> list[ImportNote]:
    """Take the nodes of a run, and how many checks failed on each, from ``nodecheck.txt``."""
    text, notes = _text_of(folder / NODECHECK)
    failed: Counter[str] = Counter()  # by node; 0 for one without a failure
    for line, written in enumerate(text.splitlines(), 1):
        words = written.split(maxsplit=2)
        if not words or words[0].startswith("#"):
            continue
        node, status = words[0], "".join(words[1:2]).upper()
        if not _NODE.fullmatch(node) or status not in GOOD | BAD:
            text = "is not `NODE STATUS MESSAGE` with a status that the harness knows: left out"
            notes.append(ImportNote(folder / NODECHECK, line, text))
        else:
            failed[node] += status in BAD
    if failed:
        run.hosts = fold(list(failed))
        bad = [(metric_of(node), number) for node, number in sorted(failed.items()) if number]
        run.figures = [
            *run.figures,
            *(
                ImportedFigure(name, float(number), "1", "lower")
                for name, number in [(FINDINGS, failed.total()), *bad[:MAX_NODES]]
            ),
        ]
    return notes


def _text_of(path: Path) -> tuple[str, list[ImportNote]]:
    """Return the text of a file; "" if it is not there, or cannot be read, of which there is a
    note."""
    try:
        return read_text(path.parent, path.name), []
    except Missing:
        return "", []
    except Unreadable as error:
        return "", [ImportNote(path, 0, f"cannot be read: {error}")]


def _last_line(path: Path) -> str:
    """Return the last line of a file that is not empty; "" if there is none."""
    found = tail(path, LAST_BYTES)
    lines = [line.strip() for line in found.text.splitlines()] if found else []
    return plain_line(next(filter(None, reversed(lines)), "")[:LONGEST_REASON])
