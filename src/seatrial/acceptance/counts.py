"""Sums over a trial: verdicts and waits in the queue, test by test; alerts that are open."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import NamedTuple

from seatrial.acceptance.trial_history import RaisedAlert, TrialHistory
from seatrial.journal.codes import code_of
from seatrial.units import SECOND_NS


class Waits(NamedTuple):
    """How long the runs that started had been queued, in seconds; ``high`` is the least of their
    waits that 95 % of them did not exceed, the longest where they are fewer than 20."""

    n: int
    median: float
    high: float
    longest: float


def verdicts(history: TrialHistory) -> dict[str, Counter[str]]:
    """How many runs of each test have which verdict; those that are run again are ``again``."""
    found: dict[str, Counter[str]] = {case.test: Counter() for case in history.cases}
    for run in history.runs:
        if run.over:
            name = "again" if run.again else code_of(run.code).name
            found[history.test_of(run)][name] += 1
    return found


def open_alerts(history: TrialHistory, since: int) -> list[tuple[RaisedAlert, int]]:
    """The alerts told since then that are not over, the latest of each subject, with how often it
    was told; the latest first."""
    times = Counter((told.kind, told.subject) for told in history.alerts if not told.over)
    found: dict[tuple[str, str], RaisedAlert] = {}
    for told in reversed(history.alerts):
        if told.time < since:
            break
        found.setdefault((told.kind, told.subject), told)
    return [(told, times[key]) for key, told in found.items() if not told.over]


def waits(history: TrialHistory, now: int) -> dict[str, Waits]:
    """The waits of each test of which a run has started."""
    found: dict[str, list[float]] = {}
    for run in history.runs:
        held = run.on_nodes(now)
        if held is not None and (waited := run.waited(held, now)) is not None:
            seconds = (waited[1] - waited[0]) / SECOND_NS
            found.setdefault(history.test_of(run), []).append(seconds)
    return {test: _waits(sorted(times)) for test, times in found.items()}


def _waits(times: list[float]) -> Waits:
    most = -(-len(times) * 95 // 100)  # rounded up: the nearest rank, never below the median
    return Waits(len(times), median(times), times[most - 1], times[-1])
