"""Fold events into rows: the state of a run, a build or a trial by its events so far.

The fold goes on from the rows that are there, so a journal may come in pieces of any size. Events
may arrive late or twice, as a job's own events are merged after it has ended. So they count by
their time, not by their place.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import astuple

from seatrial.journal import events
from seatrial.journal.run_life import RUN_KINDS
from seatrial.journal.trial_life import TrialLife, TrialState
from seatrial.store.run_upserts import (
    LONGEST_TEXT,
    MAX_INTEGER,
    RunRecord,
    RunUpserts,
    TrialRecord,
    bounded,
)
from seatrial.store.schema import Writer

ROWS_AT_ONCE = 4096  # of a table

_MIN, _MAX = -MAX_INTEGER, MAX_INTEGER
_EVENT = ("run", "time", "seq", "number", "value", "detail", "text")
_TRIAL_EVENT = ("trial", *_EVENT[1:])

# The members of an event that its row has as value and as detail, where these are others.
_VALUES: dict[type[events.Event], str] = {
    events.ScriptStarted: "gpus",
    events.RunSubmitted: "nodes",
}
_DETAILS: dict[type[events.Event], str] = {
    events.JobQueued: "job_id",
    events.ScriptStarted: "nodes",
    events.NodeDown: "nodes",
    events.NodeUp: "nodes",
    events.NodeExcluded: "nodes",
    events.NodeAdmitted: "nodes",
    events.UnknownEvent: "kind",
}

_Late = events.RunJudgedAgain | events.RunReviewed  # by people, long after the trial as a rule
_BESIDE = (events.ReferencesCorrected, *events.PERSONAL)  # so are these, of no run
_OF_BUILDS = (events.BuildStarted, events.BuildEnded)
_APPENDED = -1  # the place of who judged a run, and why, which are several members


_Rows = list[tuple[Any, ...]]


_Further = Callable[[RunUpserts, RunRecord, Any], None]

# What the fold does with an event of a kind. Of its row: the number of the kind, and where
# ``astuple`` has the members that are its value, detail and text, 0 for none. Then: whether it is
# of a run, whether people write it, whether it may change the life of a run, and what else there is
# to do, if anything. A plain tuple, as Python unpacks no other quickly.
_Kind = tuple[int, int, int, int, bool, bool, bool, _Further | None]


def _kind(kind: type[events.Event]) -> _Kind:
    at = {name: place for place, name in enumerate(kind.__struct_encode_fields__)}
    is_late = issubclass(kind, _Late)
    return (
        kind.number,
        at.get(_VALUES.get(kind, "value"), 0),
        _APPENDED if is_late else at.get(_DETAILS.get(kind, "alias"), 0),
        at.get("text", at.get("unit", 0)),
        issubclass(kind, events.RunEvent),
        is_late,
        kind in RUN_KINDS,
        _FURTHER.get(kind),
    )


def _keep_metric(runs: RunUpserts, run: RunRecord, event: events.MetricRecorded) -> None:
    figure = events.finite(event.value)
    if figure is not None:
        runs.figures[run.id, runs.metric(event)] = figure


_FURTHER: dict[type[events.Event], _Further] = {
    events.MetricRecorded: _keep_metric,
    events.FigureGiven: RunUpserts.keep_given,
}
_ALL: tuple[type[events.Event], ...] = (*events.EVENT_KINDS.values(), events.UnknownEvent)
_KINDS = {kind: _kind(kind) for kind in _ALL}
_TIME, _RUN_ID = map(events.RunEvent.__struct_fields__.index, ("time", "run_id"))


class _Build(Struct):
    """A row of ``builds``, in the order of its columns."""

    trial: int
    key: str
    path: str = ""
    started: int | None = None
    ended: int | None = None
    value: int | None = None
    text: str = ""


def fold(writer: Writer, trial: TrialRecord, blocks: Iterable[Sequence[events.Event]]) -> None:
    """Update the rows of a trial by the next events of its journal; ``trial`` itself is changed. A
    block is folded before the next one is asked for: small ones stay in the processor's cache."""
    runs = RunUpserts(writer, trial)
    of_runs: _Rows = []
    of_trial: _Rows = []
    for block in blocks:
        _fold_trial(writer, trial, _fold_runs(trial, runs, block, of_runs, of_trial))
        trial.events += len(block)
        if len(of_runs) >= ROWS_AT_ONCE:
            writer.insert("events", _EVENT, of_runs)
            of_runs.clear()
    if of_runs:
        writer.insert("events", _EVENT, of_runs)
    if of_trial:
        writer.insert("trial_events", _TRIAL_EVENT, of_trial)
    runs.write()


def _fold_runs(
    trial: TrialRecord,
    runs: RunUpserts,
    block: Sequence[events.Event],
    of_runs: _Rows,
    of_trial: _Rows,
) -> list[events.Event]:
    """Fold the events of runs, and add the rows of all. Returns the events of no run."""
    others: list[events.Event] = []
    block = runs.look_up(block)
    known, latest, before = runs.known.get, trial.last or 0, len(of_runs)
    for seq, event in enumerate(block, trial.events + 1):  # often 200,000 of them a second
        number, at_value, at_detail, at_text, is_of_run, is_late, of_life, further = _KINDS[
            type(event)
        ]
        members = astuple(event)  # quicker than to read each by its name
        if is_of_run and members[_RUN_ID]:
            run = known(members[_RUN_ID]) or runs.make(cast(events.RunEvent, event))
            if is_late:
                members = (*members, cast("_Late", event).by_and_why)
            elif members[_TIME] > run.last:
                run.last = time = members[_TIME]
                if time > latest:
                    latest = time
            if of_life:
                run.life.apply(event)
            if further is not None:
                further(runs, run, event)
            of, rows = run.id, of_runs
        else:
            others.append(event)
            of, rows = trial.id, of_trial
        value = members[at_value] if at_value else None
        if value == "":
            value = None  # an empty text is none
        elif value is not None and (type(value) is not int or not _MIN < value < _MAX):
            value = _kept(value)
        detail = members[at_detail] if at_detail else ""
        text = members[at_text] if at_text else ""
        if len(detail) + len(text) > LONGEST_TEXT:
            detail, text = detail[:LONGEST_TEXT], text[:LONGEST_TEXT]
        rows.append((of, members[_TIME], seq, number, value, detail, text))
    if len(of_runs) > before:
        trial.last = latest
    return others


def _fold_trial(writer: Writer, trial: TrialRecord, block: Sequence[events.Event]) -> None:
    """Fold the events that are of no run."""
    builds: dict[str, _Build] = {}
    life = TrialLife(math.inf, TrialState(trial.state))  # it may be extended
    latest = -1 if trial.last is None else trial.last
    for event in block:
        if event.time > latest and not isinstance(event, _BESIDE):
            trial.last = latest = event.time
        if isinstance(event, _OF_BUILDS):
            _change_build(_build_of(writer, trial.id, builds, event.key), event)
        else:
            _change_trial(trial, life, event)
    if builds:
        changed = map(astuple, builds.values())
        writer.upsert("builds", _Build.__struct_fields__, "trial, key", changed)


def _change_trial(trial: TrialRecord, life: TrialLife, event: events.Event) -> None:
    if event.time >= trial.state_time and life.apply(event):
        trial.state = life.state.value
        trial.state_time = event.time
        if isinstance(event, events.TrialStarted) and trial.started is None:
            trial.started = event.time


def _build_of(writer: Writer, trial: int, builds: dict[str, _Build], key: str) -> _Build:
    key = bounded(key)
    if key not in builds:
        columns = ", ".join(_Build.__struct_fields__)
        query = f"SELECT {columns} FROM builds WHERE trial = ? AND key = ?"
        found = writer.rows(query, (trial, key))
        builds[key] = _Build(*found[0]) if found else _Build(trial, key)
    return builds[key]


def _change_build(build: _Build, event: events.BuildEvent) -> None:
    build.path = event.path or build.path
    if isinstance(event, events.BuildStarted):
        build.started = max(build.started or 0, event.time)
    elif isinstance(event, events.BuildEnded) and (
        build.ended is None or event.time >= build.ended
    ):
        build.ended = event.time
        build.value = event.code
        build.text = event.log[:LONGEST_TEXT]


def _kept(value: float | str) -> int | float | str:
    """Return an event's value as a row holds it."""
    if isinstance(value, str):
        return value[:LONGEST_TEXT]
    if isinstance(value, int) and not _MIN < value < _MAX:
        return str(value)
    return value
