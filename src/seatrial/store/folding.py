"""Fold events into rows: the state of a run, a build or a trial by its events so far.

The fold goes on from the rows that are there, so a journal may come in pieces of any size. Events
may arrive late or twice, as a job's own events are merged after it has ended. So they count by
their time, not by their place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from seatrial.journal.encoding import members
from seatrial.journal.events import (
    EVENT_KINDS,
    BuildEnded,
    BuildEvent,
    BuildStarted,
    Event,
    JobQueued,
    MetricRecorded,
    NodeAdmitted,
    NodeDown,
    NodeExcluded,
    NodeUp,
    RunEvent,
    RunJudgedAgain,
    ScriptStarted,
    TrialStarted,
    UnknownEvent,
    finite,
)
from seatrial.journal.lifecycle import TrialLife, TrialState
from seatrial.store.run_upserts import (
    LONGEST_NAME,
    LONGEST_TEXT,
    MAX_INTEGER,
    RunUpserts,
    TrialRecord,
)
from seatrial.store.schema import Writer

_MIN, _MAX = -MAX_INTEGER, MAX_INTEGER
_EVENT = ("run", "time", "seq", "number", "value", "detail", "text")
_TRIAL_EVENT = ("trial", *_EVENT[1:])

# The member of an event that its row has as detail, where that is not its alias.
_DETAILS: dict[type[Event], str] = {
    JobQueued: "job_id",
    ScriptStarted: "nodes",
    NodeDown: "nodes",
    NodeUp: "nodes",
    NodeExcluded: "nodes",
    NodeAdmitted: "nodes",
    RunJudgedAgain: "by_and_why",
}
_ColumnsOf = Callable[[Any], tuple[Any, ...]]
_COLUMNS: dict[type[Event], _ColumnsOf] = {
    kind: members(kind, "number", "value", _DETAILS.get(kind, "alias"), "text", "unit")
    for kind in EVENT_KINDS.values()
} | {UnknownEvent: members(UnknownEvent, "number", "value", "kind", "text", "unit")}


class _Build(Struct):
    """A row of ``builds``, in the order of its columns."""

    trial: int
    key: str
    path: str = ""
    started: int | None = None
    ended: int | None = None
    value: int | None = None
    text: str = ""


def fold(writer: Writer, trial: TrialRecord, events: Sequence[Event]) -> None:
    """Update the rows of a trial by its next events; ``trial`` itself is changed."""
    events, cases = _bounded(events)
    runs = RunUpserts(writer, trial, cases)
    known = runs.known.get
    figures: dict[tuple[int, int], float] = {}
    rows: list[tuple[Any, ...]] = []
    of_trial: list[tuple[int, Event]] = []
    for seq, event in enumerate(events, trial.events + 1):  # often 150,000 of them a second
        if not isinstance(event, RunEvent) or not event.run_id:
            of_trial.append((seq, event))
            continue
        run = known(event.run_id) or runs.make(event)
        if event.time > run.last and event.__class__ is not RunJudgedAgain:
            run.last = event.time  # a person judges long after the trial
        run.life.apply(event)
        if event.__class__ is MetricRecorded:
            figure = finite(event.value)
            if figure is not None:
                figures[run.id, runs.metric(event)] = figure
        number, value, detail, text, unit = _COLUMNS[event.__class__](event)
        if value is not None and (value.__class__ is not int or not _MIN < value < _MAX):
            value = _kept(value)
        detail = detail[:LONGEST_TEXT] if detail else ""
        text = (text or unit or "")[:LONGEST_TEXT]
        rows.append((run.id, event.time, seq, number, value, detail, text))
    trial.events += len(events)
    _fold_trial(writer, trial, of_trial)
    if rows:
        trial.last = max(trial.last or 0, max(run.last for run in runs.known.values()))
        writer.insert("events", _EVENT, rows)
    runs.write(figures)


def _fold_trial(writer: Writer, trial: TrialRecord, events: Sequence[tuple[int, Event]]) -> None:
    """Fold the events that are of no run, with their places in the journal."""
    builds: dict[str, _Build] = {}
    rows = []
    life = TrialLife(math.inf, TrialState(trial.state))  # it may be extended
    for seq, event in events:
        number, value, detail, text, unit = _COLUMNS[type(event)](event)
        detail, text = (detail or "")[:LONGEST_TEXT], (text or unit or "")[:LONGEST_TEXT]
        rows.append((trial.id, event.time, seq, number, _kept(value), detail, text))
        trial.last = max(trial.last or 0, event.time)
        if isinstance(event, BuildStarted | BuildEnded):
            _change_build(_build_of(writer, trial.id, builds, event.key), event)
        else:
            _change_trial(trial, life, event)
    if rows:
        writer.insert("trial_events", _TRIAL_EVENT, rows)
    if builds:
        changed = map(msgspec.structs.astuple, builds.values())
        writer.upsert("builds", _Build.__struct_fields__, "trial, key", changed)


def _change_trial(trial: TrialRecord, life: TrialLife, event: Event) -> None:
    if event.time >= trial.state_time and life.apply(event):
        trial.state = life.state.value
        trial.state_time = event.time
        if isinstance(event, TrialStarted) and trial.started is None:
            trial.started = event.time


def _bounded(events: Sequence[Event]) -> tuple[Sequence[Event], dict[str, str]]:
    """Return the events with names that the indexes of either database can hold, and the case of
    each run."""
    cases = _cases(events)
    names = (*cases, *cases.values())
    if max(map(len, names), default=0) > LONGEST_NAME or "\0" in "".join(names):
        events = [
            msgspec.structs.replace(event, run_id=_name(event.run_id), case=_name(event.case))
            if isinstance(event, RunEvent)
            else event
            for event in events
        ]
        cases = _cases(events)
    return events, cases


def _cases(events: Sequence[Event]) -> dict[str, str]:
    """Return the case of each run, by its first event."""
    cases = {each.run_id: each.case for each in reversed(events) if isinstance(each, RunEvent)}
    cases.pop("", None)
    return cases


def _name(text: str) -> str:
    """Return a name of bounded length without NUL, which PostgreSQL cannot hold. So a lookup finds
    what was kept."""
    return text[:LONGEST_NAME].replace("\0", "\ufffd")


def _build_of(writer: Writer, trial: int, builds: dict[str, _Build], key: str) -> _Build:
    key = _name(key)
    if key not in builds:
        columns = ", ".join(_Build.__struct_fields__)
        query = f"SELECT {columns} FROM builds WHERE trial = ? AND key = ?"
        found = writer.rows(query, (trial, key))
        builds[key] = _Build(*found[0]) if found else _Build(trial, key)
    return builds[key]


def _change_build(build: _Build, event: BuildEvent) -> None:
    build.path = event.path or build.path
    if isinstance(event, BuildStarted):
        build.started = max(build.started or 0, event.time)
    elif isinstance(event, BuildEnded) and (build.ended is None or event.time >= build.ended):
        build.ended = event.time
        build.value = event.code
        build.text = event.log[:LONGEST_TEXT]


def _kept(value: int | float | str | None) -> int | float | str | None:
    """Return an event's value as a row holds it."""
    if isinstance(value, int) and not _MIN < value < _MAX:
        value = str(value)
    return value[:LONGEST_TEXT] if isinstance(value, str) else value
