"""Tables of the conditions of a trial: blackouts, and loads of metadata targets.

conditions(record, accounts, now)          # tables
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from seatrial.judge.accounts import Accounts
from seatrial.judge.levels import Level, target_loads
from seatrial.report.content import Cell, Column, Table, bounded
from seatrial.trial.folder import Record
from seatrial.units import SECOND_NS

MAX_ROWS: Final = 200


def conditions(record: Record, accounts: Accounts, now: int) -> list[Table]:
    """Return the tables of a trial's conditions that have rows; ``now`` in ns."""
    if not accounts.spans:
        return []
    made = [_blackouts(accounts, now), _loads(record, accounts, now)]
    return [table for table in made if table.rows]


def _blackouts(accounts: Accounts, now: int) -> Table:
    """Return the blackouts that had begun by the trial's end."""
    policy = accounts.policy
    rows: list[list[Cell]] = []
    for window in sorted(policy.blackouts, key=lambda each: (each.absolute, each.start)):
        since = 0 if window.absolute else accounts.start
        start, end = (since + round(at * SECOND_NS) for at in (window.start, window.end))
        if start >= now or end <= accounts.start:
            continue
        tests = ", ".join(policy.entries[i].name for i in window.entries)
        what = " on ".join(filter(None, (tests, window.nodes))) or "everything"
        rows.append([start, end, (end - start) / SECOND_NS, what, window.why])
    columns = [
        Column("from (UTC)", "time"),
        Column("to (UTC)", "time"),
        Column("length", "seconds"),
        Column("of"),
        Column("why"),
    ]
    about = (
        "As planned: nothing of theirs was started in that time. Unlike planned outages, criteria "
        "count it."
    )
    return bounded("Blackouts", columns, rows, about, MAX_ROWS)


def _loads(record: Record, accounts: Accounts, now: int) -> Table:
    """Return the open files of a trial's own runs on each target, by its plan or suite."""
    rows: list[list[Cell]] = []
    for name, levels in target_loads(accounts, now).items():
        highest = max((level.value for level in levels), default=0.0)
        if highest:
            system = record.machine.file_systems.get(name.partition("/")[0])
            safe = system.safe_load if system is not None else 0.0
            above = _above(levels, safe) if safe else None
            rows.append([name, highest, safe or None, above])
    columns = [
        Column("target"),
        Column("highest", "count", "open files"),
        Column("safe", "count", "open files"),
        Column("time above safe", "share"),
    ]
    about = "Of this trial's own runs, as the plan or test gives their open files; others' are not "
    about += "in it."
    if record.rehearsed:
        about += " What `seatrial rehearse` prints holds the load assumed of others, too."
    return bounded("Load of metadata targets", columns, rows, about, MAX_ROWS)


def _above(levels: Iterable[Level], safe: float) -> float:
    """Return the share of the time in which a load was above the safe one."""
    levels = list(levels)
    time = sum(level.end - level.start for level in levels)
    return sum(level.end - level.start for level in levels if level.value > safe) / max(1, time)
