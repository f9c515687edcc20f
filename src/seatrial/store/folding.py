"""Events folded into rows: what a run, a build or a trial is by its events so far.

The fold goes on from the rows that are there, so a journal may come in pieces of any size. Facts
that may arrive late or twice (a job's own events are merged after the fact) are ordered by their
time, not by their place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from seatrial.journal import codes
from seatrial.journal.codes import EVENT_NUMBERS, Name
from seatrial.journal.events import Event
from seatrial.units import SECOND_NS

if TYPE_CHECKING:
    import sqlite3

LARGEST_INTEGER = 1 << 62
LONGEST_TEXT = 16384

_NUMBERS: dict[str, int] = {str(name): number for name, number in EVENT_NUMBERS.items()}
_QUEUED = EVENT_NUMBERS[Name.JOB_QUEUED]
_STARTED = EVENT_NUMBERS[Name.BINARY_EXECUTE_START]


class TrialState(Struct):
    """What a trial's row keeps of its journal."""

    id: int
    state: str = "new"
    state_time: int = 0
    started: int | None = None
    last: int | None = None
    damaged: int = 0
    offset: int = 0
    inode: int = 0
    size: int = -1
    modified: int = 0
    fingerprint: int = 0


class _Run(Struct):
    """A row of ``runs``, in the order of its columns."""

    id: int
    trial: int
    run_id: str
    case_row: int
    seq: int
    code: int = codes.PENDING.number
    why: str = ""
    began: int = LARGEST_INTEGER
    started: int | None = None
    ended: int | None = None
    elapsed: float | None = None
    finished: int | None = None
    exit_code: int | None = None
    job_id: str = ""
    nodes: str = ""
    path: str = ""
    again: bool = False
    target: str = ""
    stage: str = ""


class _Build(Struct):
    """A row of ``builds``, in the order of its columns."""

    trial: int
    key: str
    path: str = ""
    started: int | None = None
    ended: int | None = None
    value: int | None = None
    text: str = ""


def fold(database: sqlite3.Connection, trial: TrialState, events: Iterable[Event]) -> None:
    """Bring the rows of a trial up to date with its next events; ``trial`` itself is changed."""
    runs = _Runs(database, trial.id)
    builds: dict[str, _Build] = {}
    figures: list[tuple[int, int, float]] = []
    rows: list[tuple[Any, ...]] = []
    for event in events:
        if trial.last is None or event.time > trial.last:
            trial.last = event.time
        if event.run_id:
            run = runs.of(event)
            _change_run(run, event)
            if event.event == Name.CHECK_END:
                _judge(run, event)
            rows.append((run.id, None, *_facts(event)))
            if event.event == Name.METRIC and (value := _finite(event.value)) is not None:
                figures.append((run.id, runs.metric(event), value))
            continue
        rows.append((None, trial.id, *_facts(event)))
        if event.event in (Name.BUILD_START, Name.BUILD_END):
            _change_build(_build_of(database, trial.id, builds, event.alias), event)
        else:
            _change_trial(trial, event)
    runs.write()
    _insert(database, "INSERT INTO events VALUES", rows)
    _insert(database, "INSERT OR REPLACE INTO metrics VALUES", figures)
    _insert(database, "INSERT OR REPLACE INTO builds VALUES", map(_row, builds.values()))


class _Runs:
    """The runs that a piece of a journal speaks of: read once, changed in memory, written once."""

    def __init__(self, database: sqlite3.Connection, trial: int) -> None:
        self._database = database
        self._trial = trial
        self._known: dict[str, _Run] = {}
        self._metrics: dict[tuple[str, str, str], int] = {}
        (self._next,) = database.execute("SELECT coalesce(max(id), 0) + 1 FROM runs").fetchone()
        query = "SELECT count(*) FROM runs WHERE trial = ?"
        (self._seq,) = database.execute(query, (trial,)).fetchone()
        self._any_before = self._seq > 0

    def of(self, event: Event) -> _Run:
        run = self._known.get(event.run_id)
        if run is None:
            run = (self._any_before and self._read(event.run_id)) or self._make(event)
            self._known[event.run_id] = run
        return run

    def metric(self, event: Event) -> int:
        """The id of a metric's name, unit and direction."""
        key = (event.alias, event.unit, event.better)
        if key not in self._metrics:
            self._database.execute(
                "INSERT OR IGNORE INTO metric_names (name, unit, better) VALUES (?, ?, ?)", key
            )
            query = "SELECT id FROM metric_names WHERE name = ? AND unit = ? AND better = ?"
            self._metrics[key] = self._database.execute(query, key).fetchone()[0]
        return self._metrics[key]

    def write(self) -> None:
        rows = map(_row, self._known.values())
        _insert(self._database, "INSERT OR REPLACE INTO runs VALUES", rows)

    def _read(self, run_id: str) -> _Run | None:
        query = "SELECT * FROM runs WHERE run_id = ? AND trial = ?"
        row = self._database.execute(query, (run_id, self._trial)).fetchone()
        return _Run(*row) if row else None

    def _make(self, event: Event) -> _Run:
        run = _Run(self._next, self._trial, event.run_id, self._case_row(event), self._seq + 1)
        self._next += 1
        self._seq += 1
        return run

    def _case_row(self, event: Event) -> int:
        """The row of the event's case; one is made for a case that the trial's files know not."""
        query = "SELECT id FROM cases WHERE trial = ? AND case_id = ?"
        found = self._database.execute(query, (self._trial, event.case)).fetchone()
        if found:
            return int(found[0])
        self._database.execute(
            "INSERT OR IGNORE INTO tests (trial, name, app, tags) VALUES (?, ?, ?, '')",
            (self._trial, event.test, event.app),
        )
        self._database.execute(
            "INSERT INTO cases (trial, case_id, test, name, toolchain, parameters, node, build,"
            " repeat) SELECT trial, ?, id, ?, '', '{}', '', '', 0 FROM tests"
            " WHERE trial = ? AND name = ?",
            (event.case, event.test or event.case, self._trial, event.test),
        )
        return int(self._database.execute(query, (self._trial, event.case)).fetchone()[0])


# ---- one event ----------------------------------------------------------------------------


def _change_run(run: _Run, event: Event) -> None:
    if event.time < run.began:
        run.began = event.time
    if event.job_id:
        run.job_id = event.job_id
    if event.nodes:
        run.nodes = event.nodes
    change = _CHANGES.get(event.event)
    if change is not None:
        change(run, event)


def _made(run: _Run, event: Event) -> None:
    run.path = event.path or run.path


def _placed(run: _Run, event: Event) -> None:
    run.target = event.target or run.target
    run.stage = event.stage or run.stage


def _started(run: _Run, event: Event) -> None:
    run.started = max(run.started or 0, event.time)
    run.elapsed = _elapsed(run)
    if run.finished is None:
        run.code = codes.IN_PROGRESS.number


def _runs(run: _Run, event: Event) -> None:
    if run.finished is None:
        run.code = codes.IN_PROGRESS.number


def _ended(run: _Run, event: Event) -> None:
    if run.ended is None or event.time >= run.ended:
        run.ended = event.time
        run.exit_code = _whole(event.value)
        run.elapsed = _elapsed(run)


def _elapsed(run: _Run) -> float | None:
    """Seconds of the script; None while its last start has no end."""
    if run.started is None or run.ended is None or run.ended < run.started:
        return None
    return (run.ended - run.started) / SECOND_NS


def _judge(run: _Run, event: Event) -> None:
    if run.finished is None or event.time >= run.finished:
        run.finished = event.time
        code = _whole(event.value)
        run.code = codes.CHECK_ERROR.number if code is None else code
        run.why = event.text[:LONGEST_TEXT]
        run.again = event.again


_CHANGES: dict[str, Callable[[_Run, Event], None]] = {
    Name.LOGGING_START: _made,
    Name.SUBMIT_START: _placed,
    Name.JOB_START: _runs,
    Name.BINARY_EXECUTE_START: _started,
    Name.BINARY_EXECUTE_END: _ended,
}


def _change_trial(trial: TrialState, event: Event) -> None:
    state = _STATES.get(event.event)
    if state is None or event.time < trial.state_time:
        return
    if event.event == Name.TRIAL_START and trial.started is None:
        trial.started = event.time
    if state not in _OUTLASTED.get(trial.state, ()):
        trial.state = state
    trial.state_time = event.time


_STATES: dict[str, str] = {
    Name.TRIAL_START: "running",
    Name.TRIAL_RESUME: "running",
    Name.TRIAL_PAUSE: "paused",
    Name.TRIAL_CANCEL: "cancelled",
    Name.TRIAL_END: "ended",
    Name.TRIAL_ABANDON: "abandoned",
}

# What a person decided stands, though the trial then pauses or ends.
_OUTLASTED: dict[str, tuple[str, ...]] = {
    "cancelled": ("ended", "paused"),
    "abandoned": ("ended", "paused", "cancelled"),
}


def _build_of(
    database: sqlite3.Connection, trial: int, builds: dict[str, _Build], key: str
) -> _Build:
    if key not in builds:
        query = "SELECT * FROM builds WHERE trial = ? AND key = ?"
        row = database.execute(query, (trial, key)).fetchone()
        builds[key] = _Build(*row) if row else _Build(trial, key)
    return builds[key]


def _change_build(build: _Build, event: Event) -> None:
    build.path = event.path or build.path
    if event.event == Name.BUILD_START:
        build.started = max(build.started or 0, event.time)
    elif build.ended is None or event.time >= build.ended:
        build.ended = event.time
        build.value = _whole(event.value)
        build.text = event.text[:LONGEST_TEXT]


def _facts(event: Event) -> tuple[int, int, int | float | str | None, str, str]:
    """Time, number, value, detail and text of an event's row. The detail is what people look for:
    the job, the nodes, the metric's name; the name of an event that is not in the registry."""
    number = _NUMBERS.get(event.event, 0)
    value = event.value
    if isinstance(value, int) and not -LARGEST_INTEGER < value < LARGEST_INTEGER:
        value = str(value)
    if isinstance(value, str):
        value = value[:LONGEST_TEXT]
    detail = event.alias
    if number == _QUEUED:
        detail = event.job_id
    elif number == _STARTED:
        detail = event.nodes
    elif number == 0:
        detail = event.event
    return event.time, number, value, detail, (event.text or event.unit)[:LONGEST_TEXT]


def _whole(value: int | float | str | None) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    inside = isinstance(value, int) and -LARGEST_INTEGER < value < LARGEST_INTEGER
    return int(value) if inside and value is not None else None


def _finite(value: int | float | str | None) -> float | None:
    if value is None or isinstance(value, str):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _row(record: Struct) -> tuple[Any, ...]:
    return msgspec.structs.astuple(record)


def _insert(database: sqlite3.Connection, into: str, rows: Iterable[tuple[Any, ...]]) -> None:
    rows = list(rows)
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        database.executemany(f"{into} ({marks})", rows)
