"""Fold events into rows: the state of a run, a build or a trial by its events so far.

The fold goes on from the rows that are there, so a journal may come in pieces of any size. Events
may arrive late or twice, as a job's own events are merged after it has ended. So they count by
their time, not by their place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

from seatrial.journal import events
from seatrial.journal.encoding import members
from seatrial.journal.run_life import RUN_KINDS
from seatrial.journal.trial_life import TrialLife, TrialState
from seatrial.store.columns import read
from seatrial.store.run_upserts import LONGEST_TEXT, MAX_INTEGER, RunUpserts, bounded
from seatrial.store.schema import Writer
from seatrial.store.tables import (
    BUILDS,
    EVENTS,
    TRIAL_EVENTS,
    StoredBuild,
    StoredEvent,
    StoredRun,
    StoredTrial,
)

ROWS_AT_ONCE = 4096  # of a table

_OF_BUILDS = (events.BuildStarted, events.BuildEnded)


def _keep_metric(runs: RunUpserts, run: StoredRun, event: events.MetricRecorded) -> None:
    figure = events.finite(event.value)
    if figure is not None:
        runs.figures[run.id, runs.metric(event)] = figure


_Further = Callable[[RunUpserts, StoredRun, Any], None]
_FURTHER: dict[type[events.Event], _Further] = {
    events.MetricRecorded: _keep_metric,
    events.FigureGiven: RunUpserts.keep_given,
}


class _Storing(NamedTuple):
    """How the events of a class are stored."""

    #: reads the members that their rows have as value, detail and text, None for none
    members: Callable[[events.Event], tuple[Any, ...]]
    #: whether they may change the life of a run
    is_of_life: bool
    #: what else there is to do, if anything
    further: _Further | None


def _storing(kind: type[events.Event]) -> _Storing:
    return _Storing(
        members=members(kind, kind.stored_value, kind.stored_detail, kind.stored_text),
        is_of_life=kind in RUN_KINDS,
        further=_FURTHER.get(kind),
    )


_CLASSES: tuple[type[events.Event], ...] = (*events.EVENT_KINDS.values(), events.UnknownEvent)
_STORING = {kind: _storing(kind) for kind in _CLASSES}


def fold(writer: Writer, trial: StoredTrial, blocks: Iterable[Sequence[events.Event]]) -> None:
    """Update the rows of a trial by the next events of its journal; ``trial`` itself is changed. A
    block is folded before the next one is asked for: small ones stay in the processor's cache."""
    runs = RunUpserts(writer, trial)
    of_runs: list[StoredEvent] = []
    of_trial: list[StoredEvent] = []
    for block in blocks:
        others = _fold_runs(trial, runs, block, of_runs)
        _fold_trial(writer, trial, others, of_trial)
        trial.events += len(block)
        if len(of_runs) >= ROWS_AT_ONCE:
            writer.insert(EVENTS, of_runs)
            of_runs.clear()
    if of_runs:
        writer.insert(EVENTS, of_runs)
    if of_trial:
        writer.insert(TRIAL_EVENTS, of_trial)
    runs.write()


def _fold_runs(
    trial: StoredTrial, runs: RunUpserts, block: Sequence[events.Event], rows: list[StoredEvent]
) -> list[tuple[int, events.Event]]:
    """Fold the events of runs, and add their rows. Returns the events of no run, each with its
    place in the journal."""
    others: list[tuple[int, events.Event]] = []
    for seq, event in enumerate(runs.look_up(block), trial.events + 1):
        storing = _STORING[type(event)]
        if not event.run_id:
            others.append((seq, event))
            continue
        run = runs.of(cast(events.RunEvent, event))
        if not event.is_late and event.time > run.last:
            run.last = event.time
            trial.last = max(trial.last or 0, event.time)
        if storing.is_of_life:
            run.apply(event)
        if storing.further is not None:
            storing.further(runs, run, event)
        value, detail, text = _stored(event, storing)
        rows.append(StoredEvent(run.id, event.time, seq, event.number, value, detail, text))
    return others


def _stored(event: events.Event, storing: _Storing) -> tuple[int | float | str | None, str, str]:
    """Return the value, the detail and the text of an event as its row has them."""
    value, detail, text = storing.members(event)
    if isinstance(value, str):
        value = value[:LONGEST_TEXT] or None
    elif isinstance(value, int) and not -MAX_INTEGER < value < MAX_INTEGER:
        value = str(value)
    return value, (detail or "")[:LONGEST_TEXT], (text or "")[:LONGEST_TEXT]


def _fold_trial(
    writer: Writer,
    trial: StoredTrial,
    block: Sequence[tuple[int, events.Event]],
    rows: list[StoredEvent],
) -> None:
    """Fold the events that are of no run, and add their rows."""
    builds: dict[str, StoredBuild] = {}
    life = TrialLife(math.inf, TrialState(trial.state))  # it may be extended
    latest = -1 if trial.last is None else trial.last
    for seq, event in block:
        if event.time > latest and not event.is_late:
            trial.last = latest = event.time
        if isinstance(event, _OF_BUILDS):
            _change_build(_build_of(writer, trial.id, builds, event.key), event)
        else:
            _change_trial(trial, life, event)
        storing = _STORING[type(event)]
        value, detail, text = _stored(event, storing)
        rows.append(StoredEvent(trial.id, event.time, seq, event.number, value, detail, text))
    if builds:
        writer.upsert(BUILDS, builds.values())


def _change_trial(trial: StoredTrial, life: TrialLife, event: events.Event) -> None:
    if event.time >= trial.state_time and life.apply(event):
        trial.state = life.state.value
        trial.state_time = event.time
        if isinstance(event, events.TrialStarted) and trial.started is None:
            trial.started = event.time


def _build_of(writer: Writer, trial: int, builds: dict[str, StoredBuild], key: str) -> StoredBuild:
    key = bounded(key)
    if key not in builds:
        query = "FROM builds WHERE trial = ? AND key = ?"
        there = read(writer, StoredBuild, "builds", query, (trial, key))
        builds[key] = there[0] if there else StoredBuild(trial, key)
    return builds[key]


def _change_build(build: StoredBuild, event: events.BuildEvent) -> None:
    build.path = event.path or build.path
    if isinstance(event, events.BuildStarted):
        build.started = max(build.started or 0, event.time)
    elif isinstance(event, events.BuildEnded) and (
        build.ended is None or event.time >= build.ended
    ):
        build.ended = event.time
        build.value = event.code
        build.text = event.log[:LONGEST_TEXT]
