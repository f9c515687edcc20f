"""Fold events into rows: the state of a run, a build or a trial by its events so far.

The fold goes on from the rows that are there, so a journal may come in pieces of any size. Events
may arrive late or twice, as a job's own events are merged after it has ended. So they count by
their time, not by their place.
"""

import math
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from seatrial.journal import events
from seatrial.journal.trial_life import TrialLife, TrialState
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

_OF_PEOPLE = (events.RunJudgedAgain, events.RunReviewed)  # long after the trial, as a rule
_BESIDE = (events.ReferencesCorrected, *events.PERSONAL)  # so are these, of no run
_APPENDED = -1  # the place of who judged a run, and why, which are several members


class _Places(NamedTuple):
    """The number of a kind of event, and where ``astuple`` has the members that its row needs: 0
    for none."""

    number: int
    value: int
    detail: int
    text: int


def _places_in(kind: type[events.Event]) -> _Places:
    names = kind.__struct_encode_fields__
    at = {name: place for place, name in enumerate(names)}
    detail = _APPENDED if kind in _OF_PEOPLE else at.get(_DETAILS.get(kind, "alias"), 0)
    value = at.get(_VALUES.get(kind, "value"), 0)
    return _Places(kind.number, value, detail, at.get("text", at.get("unit", 0)))


_KINDS: tuple[type[events.Event], ...] = (*events.EVENT_KINDS.values(), events.UnknownEvent)
_PLACES = {kind: _places_in(kind) for kind in _KINDS}
_PLACES_OF_RUNS: dict[type[events.Event], _Places] = {
    kind: places for kind, places in _PLACES.items() if issubclass(kind, events.RunEvent)
}
_TIME, _RUN_ID = map(events.RunEvent.__struct_fields__.index, ("time", "run_id"))
_run_id_of, _case_of = attrgetter("run_id"), attrgetter("case")


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
    for block in blocks:
        _fold_block(writer, trial, runs, block)
    runs.write()


def _fold_block(
    writer: Writer, trial: TrialRecord, runs: RunUpserts, block: Sequence[events.Event]
) -> None:
    block, cases = _bounded(block)
    runs.look_up(cases)
    known, places_of, figures = runs.known.get, _PLACES_OF_RUNS.get, runs.figures
    rows: list[tuple[Any, ...]] = []
    of_trial: list[tuple[int, events.Event]] = []
    latest = trial.last or 0
    for seq, event in enumerate(block, trial.events + 1):  # often 200,000 of them a second
        places = places_of(event.__class__)
        members = astuple(event)  # quicker than to read each by its name
        if places is None or not members[_RUN_ID]:
            of_trial.append((seq, event))
            continue
        run = known(members[_RUN_ID]) or runs.make(cast(events.RunEvent, event))
        time = members[_TIME]
        if event.__class__ in _OF_PEOPLE:
            members = (*members, event.by_and_why)
        elif time > run.last:
            run.last = time
            if time > latest:
                latest = time
        run.life.apply(event)
        if event.__class__ is events.MetricRecorded:
            figure = events.finite(event.value)
            if figure is not None:
                figures[run.id, runs.metric(event)] = figure
        elif event.__class__ is events.FigureGiven:
            runs.keep_given(run.id, event)
        rows.append(_row(run.id, seq, members, places))
    trial.events += len(block)
    if rows:
        trial.last = latest
        writer.insert("events", _EVENT, rows)
    _fold_trial(writer, trial, of_trial)


def _row(of: int, seq: int, members: Sequence[Any], places: _Places) -> tuple[Any, ...]:
    """Return the row of an event of the run or trial ``of``."""
    number, at_value, at_detail, at_text = places
    value = members[at_value] if at_value else None
    if value is not None and (value.__class__ is not int or not _MIN < value < _MAX):
        value = _kept(value)
    detail = members[at_detail] if at_detail else ""
    text = members[at_text] if at_text else ""
    if len(detail) + len(text) > LONGEST_TEXT:
        detail, text = detail[:LONGEST_TEXT], text[:LONGEST_TEXT]
    return of, members[_TIME], seq, number, value, detail, text


def _fold_trial(
    writer: Writer, trial: TrialRecord, block: Sequence[tuple[int, events.Event]]
) -> None:
    """Fold the events that are of no run, with their places in the journal."""
    builds: dict[str, _Build] = {}
    rows = []
    life = TrialLife(math.inf, TrialState(trial.state))  # it may be extended
    for seq, event in block:
        rows.append(_row(trial.id, seq, astuple(event), _PLACES[type(event)]))
        if not isinstance(event, _BESIDE):
            trial.last = max(trial.last or 0, event.time)
        if isinstance(event, events.BuildStarted | events.BuildEnded):
            _change_build(_build_of(writer, trial.id, builds, event.key), event)
        else:
            _change_trial(trial, life, event)
    if rows:
        writer.insert("trial_events", _TRIAL_EVENT, rows)
    if builds:
        changed = map(astuple, builds.values())
        writer.upsert("builds", _Build.__struct_fields__, "trial, key", changed)


def _change_trial(trial: TrialRecord, life: TrialLife, event: events.Event) -> None:
    if event.time >= trial.state_time and life.apply(event):
        trial.state = life.state.value
        trial.state_time = event.time
        if isinstance(event, events.TrialStarted) and trial.started is None:
            trial.started = event.time


def _bounded(block: Sequence[events.Event]) -> tuple[Sequence[events.Event], dict[str, str]]:
    """Return the events with names that the indexes of either database can hold, and the case of
    each run."""
    cases = _cases(block)
    names = (*cases, *cases.values())
    if max(map(len, names), default=0) > LONGEST_NAME or "\0" in "".join(names):
        block = [
            msgspec.structs.replace(event, run_id=_name(event.run_id), case=_name(event.case))
            if isinstance(event, events.RunEvent)
            else event
            for event in block
        ]
        cases = _cases(block)
    return block, cases


def _cases(block: Sequence[events.Event]) -> dict[str, str]:
    """Return the case of each run, by its first event."""
    ids, cases_of = map(_run_id_of, reversed(block)), map(_case_of, reversed(block))
    cases = dict(zip(ids, cases_of, strict=True))  # of the same run, the last one is kept
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


def _kept(value: int | float | str | None) -> int | float | str | None:
    """Return an event's value as a row holds it; an empty text is none."""
    if isinstance(value, int) and not _MIN < value < _MAX:
        value = str(value)
    return (value[:LONGEST_TEXT] or None) if isinstance(value, str) else value
