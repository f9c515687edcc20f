"""Count the verdicts and the waits in the queue of each test of a trial, and list open alerts."""

from collections import Counter
from statistics import median
from typing import NamedTuple

from seatrial.acceptance.trial_history import RaisedAlert, TrialHistory
from seatrial.journal.codes import RECALLED, code_of
from seatrial.journal.run_life import RunLife
from seatrial.units import SECOND_NS


class Waits(NamedTuple):
    """How long the runs that started had been queued, in seconds. ``high`` is the 95th percentile
    by the nearest rank, which is the longest where there are fewer than 20 runs."""

    n: int
    median: float
    high: float
    longest: float


def verdicts(history: TrialHistory) -> dict[str, Counter[str]]:
    """Return how many runs of each test have which verdict. Those whose case runs again are
    ``again``, but recalled ones are ``recalled``."""
    found: dict[str, Counter[str]] = {case.test: Counter() for case in history.cases}
    for run in history.runs:
        if run.over:
            found[history.test_of(run)][verdict_of(run)] += 1
    return found


def verdict_of(run: RunLife) -> str:
    """Return the name under which a run that is over is counted."""
    reruns = run.will_rerun and run.code != RECALLED.number
    return "again" if reruns else code_of(run.code).name


def open_alerts(history: TrialHistory, since: int) -> list[tuple[RaisedAlert, int]]:
    """Return the alerts raised since then that are not over, the latest of each subject with how
    often it was raised, the latest first."""
    times = Counter((told.kind, told.subject) for told in history.alerts if not told.over)
    found: dict[tuple[str, str], RaisedAlert] = {}
    for told in reversed(history.alerts):
        if told.time < since:
            break
        found.setdefault((told.kind, told.subject), told)
    return [(told, times[key]) for key, told in found.items() if not told.over]


def waits(history: TrialHistory, now: int) -> dict[str, Waits]:
    """Return the waits of each test of which a run has started."""
    found: dict[str, list[float]] = {}
    for run in history.runs:
        held = run.held_nodes(now)
        if held is not None and (waited := run.waited(held, now)) is not None:
            seconds = (waited[1] - waited[0]) / SECOND_NS
            found.setdefault(history.test_of(run), []).append(seconds)
    result = {}
    for test, times in found.items():
        times.sort()
        most = -(-len(times) * 95 // 100)  # rounded up: the nearest rank, never below the median
        result[test] = Waits(len(times), median(times), times[most - 1], times[-1])
    return result
