"""The facts of nodes that changed when the level of a history did.

with_facts(store, histories)
"""

from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.store.schema import Store, marks
from seatrial.studies.changed_facts import (
    CollectedStates,
    ComparedRuns,
    RunDigest,
    changed_between_runs,
    changed_between_trials,
)
from seatrial.studies.difference import Difference
from seatrial.studies.history import History, ReportedChange
from seatrial.studies.metric_series import Point
from seatrial.studies.node_facts import collected, in_force

MAX_RUNS = 20  # of each side of a change, those next to it
MAX_LEVELS = 12  # changes of a level whose facts are read, the latest


def with_facts(store: Store, found: Sequence[History]) -> list[History]:
    """Return histories whose latest confirmed changes have the facts of nodes that changed then: by
    the digests of the runs on both sides, or, where one has none, by the last trial that collected
    facts before the change, and the first one after it."""
    confirmed = [told.first for history in found for told in history.told if told.confirmed]
    since = min(sorted(confirmed)[-MAX_LEVELS:], default=0)
    machines: dict[str, CollectedStates] = {}
    changed: list[History] = []
    for history in found:
        name = history.series.machine
        edges = [0, *(told.change.settled for told in history.told), len(history.series.points)]
        told = []
        for number, one in enumerate(history.told, 1):
            if one.confirmed and one.first >= since:
                if name not in machines:
                    machines[name] = CollectedStates(collected(store, name))
                start, middle, end = edges[number - 1 : number + 2]
                points = history.series.points
                before = points[max(start, middle - MAX_RUNS) : middle][::-1]
                if one.drift:
                    before = points[one.change.index : middle][:MAX_RUNS]
                after = points[middle : min(end, middle + MAX_RUNS)]
                sides = [_runs_of_points(store, each) for each in (before, after)]
                one = replace(one, facts=_of_change(machines[name], one, *sides))
            told.append(one)
        changed.append(replace(history, told=told))
    return changed


def _of_change(
    states: CollectedStates,
    told: ReportedChange,
    before: Sequence[RunDigest],
    after: Sequence[RunDigest],
) -> list[Difference]:
    if before and after and all(run.digest for run in (*before, *after)):
        return changed_between_runs(ComparedRuns(states, before), ComparedRuns(states, after))
    one = in_force(states.collections, told.last)
    later = [each for each in states.collections if each.time > told.last]
    return changed_between_trials(one, later[-1]) if one and later else []


def _runs_of_points(store: Store, points: Sequence[Point]) -> list[RunDigest]:
    """Return the runs of points, in their order; points that are medians of runs have none."""
    wanted = {(point.trial, point.run_id): i for i, point in enumerate(points)}
    names = [point.run_id for point in points]
    columns = "trials.tag, runs.run_id, runs.nodes, runs.node_facts, runs.created"
    where = f"runs.run_id IN ({marks(len(names))})"
    sql = f"SELECT {columns} FROM runs JOIN trials ON trials.id = runs.trial WHERE {where}"
    found = [
        (wanted[tag, run_id], RunDigest(*row))
        for tag, run_id, *row in store.rows(sql, names)
        if (tag, run_id) in wanted
    ]
    return [run for _, run in sorted(found, key=lambda each: each[0])]
