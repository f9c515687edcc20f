"""Events folded into rows: what a run, a build or a trial is by its events so far.

The fold goes on from the rows that are there, so a journal may come in pieces of any size. Facts
that may arrive late or twice (a job's own events are merged after the fact) are ordered by their
time, not by their place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Struct

from seatrial.journal import codes
from seatrial.journal.codes import EVENT_NUMBERS, Name
from seatrial.journal.events import Event, finite
from seatrial.store.run_upserts import (
    LONGEST_NAME,
    MAX_INTEGER,
    RunState,
    RunUpserts,
    TrialState,
    replace,
)
from seatrial.store.schema import Writer
from seatrial.units import SECOND_NS

LONGEST_TEXT = 16384

_MIN, _MAX = -MAX_INTEGER, MAX_INTEGER
_METRIC = EVENT_NUMBERS[Name.METRIC]
_EVENT = ("run", "time", "seq", "number", "value", "detail", "text")
_TRIAL_EVENT = ("trial", *_EVENT[1:])


class _Build(Struct):
    """A row of ``builds``, in the order of its columns."""

    trial: int
    key: str
    path: str = ""
    started: int | None = None
    ended: int | None = None
    value: int | None = None
    text: str = ""


def fold(writer: Writer, trial: TrialState, events: Sequence[Event]) -> None:
    """Bring the rows of a trial up to date with its next events; ``trial`` itself is changed."""
    events, cases = _bounded(events)
    runs = RunUpserts(writer, trial, cases)
    known, meaning = runs.known.get, _MEANING.get
    figures: dict[tuple[int, int], float] = {}
    rows: list[tuple[Any, ...]] = []
    of_trial: list[tuple[int, Event]] = []
    for seq, event in enumerate(events, trial.events + 1):  # often 150,000 of them a second
        run_id = event.run_id
        if not run_id:
            of_trial.append((seq, event))
            continue
        run = known(run_id) or runs.make(event)
        number, change, detail = meaning(event.event) or _UNKNOWN
        time, value = event.time, event.value
        if time < run.began:
            run.began = time
        if time > run.last:
            run.last = time
        if event.job_id:
            run.job_id = event.job_id
        if event.nodes:
            run.nodes = event.nodes
        if change is not None:
            change(run, event)
        elif number == _METRIC and (figure := finite(value)) is not None:
            figures[run.id, runs.metric(event)] = figure
        if value is not None and (value.__class__ is not int or not _MIN < value < _MAX):
            value = _kept(value)
        word = event.alias if detail is None else detail(event)[:LONGEST_TEXT]
        text = event.text or event.unit
        rows.append((run.id, time, seq, number, value, word, text and text[:LONGEST_TEXT]))
    trial.events += len(events)
    _fold_trial(writer, trial, of_trial)
    if rows:
        trial.last = max(trial.last or 0, max(run.last for run in runs.known.values()))
        writer.insert("events", _EVENT, rows)
    runs.write(figures)


def _fold_trial(writer: Writer, trial: TrialState, events: Sequence[tuple[int, Event]]) -> None:
    """The events that are of no run, with their places in the journal."""
    builds: dict[str, _Build] = {}
    rows = []
    for seq, event in events:
        number, _, detail = _MEANING.get(event.event, _UNKNOWN)
        word = event.alias if detail is None else detail(event)[:LONGEST_TEXT]
        text = (event.text or event.unit)[:LONGEST_TEXT]
        rows.append((trial.id, event.time, seq, number, _kept(event.value), word, text))
        trial.last = max(trial.last or 0, event.time)
        if event.event in (Name.BUILD_START, Name.BUILD_END):
            _change_build(_build_of(writer, trial.id, builds, event.alias), event)
        else:
            _change_trial(trial, event)
    if rows:
        writer.insert("trial_events", _TRIAL_EVENT, rows)
    replace(writer, "builds", "trial, key", list(builds.values()))


def _bounded(events: Sequence[Event]) -> tuple[Sequence[Event], dict[str, str]]:
    """The same with names as indexes of either database hold them; and the case of each run."""
    cases = {event.run_id: event.case for event in reversed(events)}  # of first events
    names = (*cases, *cases.values())
    if max(map(len, names), default=0) > LONGEST_NAME or "\0" in "".join(names):
        events = [
            msgspec.structs.replace(event, run_id=_name(event.run_id), case=_name(event.case))
            for event in events
        ]
        cases = {event.run_id: event.case for event in reversed(events)}
    cases.pop("", None)
    return events, cases


def _name(text: str) -> str:
    """A name of bounded length without NUL, which PostgreSQL cannot hold: what is looked up must
    be what is kept."""
    return text[:LONGEST_NAME].replace("\0", "\ufffd")


# ---- one event ----------------------------------------------------------------------------


def _made(run: RunState, event: Event) -> None:
    run.path = event.path or run.path


def _placed(run: RunState, event: Event) -> None:
    run.target = event.target or run.target
    run.stage = event.stage or run.stage


def _started(run: RunState, event: Event) -> None:
    run.started = max(run.started or 0, event.time)
    run.elapsed = _elapsed(run)
    run.environment = event.alias or run.environment
    if run.finished is None:
        run.code = codes.IN_PROGRESS.number


def _runs(run: RunState, event: Event) -> None:
    if run.finished is None:
        run.code = codes.IN_PROGRESS.number


def _ended(run: RunState, event: Event) -> None:
    if run.ended is None or event.time >= run.ended:
        run.ended = event.time
        run.exit_code = _whole(event.value)
        run.elapsed = _elapsed(run)


def _elapsed(run: RunState) -> float | None:
    """Seconds of the script; None while its last start has no end."""
    if run.started is None or run.ended is None or run.ended < run.started:
        return None
    return (run.ended - run.started) / SECOND_NS


def _judge(run: RunState, event: Event) -> None:
    if run.finished is None or event.time >= run.finished:
        run.finished = event.time
        code = _whole(event.value)
        run.code = codes.CHECK_ERROR.number if code is None else code
        run.why = event.text[:LONGEST_TEXT]
        run.again = event.again


_Change = Callable[[RunState, Event], None]
_CHANGES: dict[str, _Change] = {
    Name.LOGGING_START: _made,
    Name.SUBMIT_START: _placed,
    Name.JOB_START: _runs,
    Name.BINARY_EXECUTE_START: _started,
    Name.BINARY_EXECUTE_END: _ended,
    Name.CHECK_END: _judge,
}
# What people look for in a row of an event, where that is not its alias.
_Detail = Callable[[Event], str]
_DETAILS: dict[str, _Detail] = {
    Name.JOB_QUEUED: attrgetter("job_id"),
    Name.BINARY_EXECUTE_START: attrgetter("nodes"),
    Name.NODE_DOWN: attrgetter("nodes"),
    Name.NODE_UP: attrgetter("nodes"),
    Name.NODE_EXCLUDE: attrgetter("nodes"),
    Name.NODE_ADMIT: attrgetter("nodes"),
}
# What an event's name stands for: its number, what it changes of a run, the detail of its row.
_Meaning = tuple[int, _Change | None, _Detail | None]
_MEANING: dict[str, _Meaning] = {
    str(name): (number, _CHANGES.get(name), _DETAILS.get(name))
    for name, number in EVENT_NUMBERS.items()
}
_UNKNOWN: _Meaning = (0, None, attrgetter("event"))  # a name of a later version's


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


def _build_of(writer: Writer, trial: int, builds: dict[str, _Build], key: str) -> _Build:
    key = _name(key)
    if key not in builds:
        columns = ", ".join(_Build.__struct_fields__)
        query = f"SELECT {columns} FROM builds WHERE trial = ? AND key = ?"
        found = writer.rows(query, (trial, key))
        builds[key] = _Build(*found[0]) if found else _Build(trial, key)
    return builds[key]


def _change_build(build: _Build, event: Event) -> None:
    build.path = event.path or build.path
    if event.event == Name.BUILD_START:
        build.started = max(build.started or 0, event.time)
    elif build.ended is None or event.time >= build.ended:
        build.ended = event.time
        build.value = _whole(event.value)
        build.text = event.text[:LONGEST_TEXT]


def _kept(value: int | float | str | None) -> int | float | str | None:
    """An event's value as a row holds it."""
    if isinstance(value, int) and not _MIN < value < _MAX:
        value = str(value)
    return value[:LONGEST_TEXT] if isinstance(value, str) else value


def _whole(value: int | float | str | None) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    inside = isinstance(value, int) and _MIN < value < _MAX
    return int(value) if inside and value is not None else None
