"""List the conditions of a trial: its blackouts, and the load of metadata targets."""

from __future__ import annotations

from collections.abc import Iterable

from seatrial.acceptance.step_functions import LevelSpan, target_loads
from seatrial.acceptance.trial_history import TrialHistory
from seatrial.report.content import (
    Cell,
    Table,
    bounded,
)
from seatrial.trial.folder import Record
from seatrial.units import SECOND_NS


def conditions(record: Record, history: TrialHistory, now: int) -> list[Table]:
    """Return the tables of a trial's conditions that have rows; ``now`` in ns."""
    if history.start is None:
        return []
    made = [_blackouts(history, now), _loads(record, history, now)]
    return [table for table in made if table.rows]


def _blackouts(history: TrialHistory, now: int) -> Table:
    """Return the blackouts that had begun by the trial's end."""
    policy, begin = history.policy, history.start or 0
    rows: list[list[Cell]] = []
    for window in sorted(policy.blackouts, key=lambda each: (each.absolute, each.start)):
        start, end = window.span(begin)
        if start >= now or end <= begin:
            continue
        subject = policy.subject_of(window)
        rows.append([start, end, (end - start) / SECOND_NS, subject, window.why])
    columns = "from (UTC): time | to (UTC): time | length: seconds | of | why"
    about = (
        "As planned: nothing of theirs was started in that time. Unlike planned outages, criteria "
        "count it."
    )
    return bounded("Blackouts", columns, rows, about)


def _loads(record: Record, history: TrialHistory, now: int) -> Table:
    """Return the open files of a trial's own runs on each target, by its plan or suite."""
    rows: list[list[Cell]] = []
    for name, levels in target_loads(history, now).items():
        highest = max((level.value for level in levels), default=0.0)
        if highest:
            system = record.machine.file_systems.get(name.partition("/")[0])
            safe = system.safe_load if system is not None else 0.0
            above = _above(levels, safe) if safe else None
            rows.append([name, highest, safe or None, above])
    columns = (
        "target | highest: count, open files | safe: count, open files | time above safe: share"
    )
    about = "Of this trial's own runs, as the plan or test gives their open files; others' are not "
    about += "in it."
    if record.rehearsed:
        about += " What `seatrial rehearse` prints holds the load assumed of others, too."
    return bounded("Load of metadata targets", columns, rows, about)


def _above(levels: Iterable[LevelSpan], safe: float) -> float:
    """Return the share of the time in which a load was above the safe one."""
    levels = list(levels)
    time = sum(level.end - level.start for level in levels)
    return sum(level.end - level.start for level in levels if level.value > safe) / max(1, time)
