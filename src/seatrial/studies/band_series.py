"""Latency and bandwidth by level of the network over time: a series for each case and level.

    series_by_level(store, "latency_by_level", Filters(machine="franklin"))

A figure is the median of the pairs of ranks of a level in one run of the test or application
``pingpong``.
"""

from collections import Counter, defaultdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from seatrial.errors import UsageError
from seatrial.layout.topology import NODE, SYSTEM, Topology
from seatrial.lazy import LazyModule
from seatrial.store import queries
from seatrial.store.rows import Filters, RunRow
from seatrial.store.schema import Store
from seatrial.studies.bands import METRICS, PairMetric, lines_of_file, placed
from seatrial.studies.metric_series import MetricSeries, Point
from seatrial.suite.name_patterns import is_like
from seatrial.trial.folder import TrialFolder

if TYPE_CHECKING:
    from seatrial.machine import topologies
else:  # machines that are known
    topologies = LazyModule("seatrial.machine.topologies")

APP = "pingpong"
BY_LEVEL = {f"{metric.name}_by_level": metric for metric in METRICS}


class _Key(NamedTuple):
    """What a series is of. ``height`` is the number of the level."""

    machine: str
    case: str
    stage: str
    height: int
    level: str


def series_by_level(
    store: Store, name: str, filters: Filters, case: str = "", stage: str = ""
) -> list[MetricSeries]:
    """Return the series of one of BY_LEVEL, by machine, case and level. ``case`` is a part of a
    case's name, a pattern, or a beginning of its id with the level. Raises UsageError where there
    is none."""
    metric = BY_LEVEL[name]
    networks: dict[str, Topology | None] = {}
    found: dict[_Key, list[tuple[RunRow, list[float]]]] = defaultdict(list)
    excluded: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for run in reversed(queries.runs(store, filters)):  # the oldest first
        if (
            APP not in (run.app, run.test)
            or run.code not in queries.MEASURED
            or stage not in ("", run.stage)
        ):
            continue
        trial = queries.trial_of(store, run)
        if trial.path not in networks:
            networks[trial.path] = topologies.topology_of(
                TrialFolder(Path(trial.path)).record().machine
            )
        network = networks[trial.path]
        own = run.machine, run.case, run.stage
        if network is None:
            excluded[own]["of a machine without a topology"] += 1
            continue
        try:
            levels = _by_level(run, metric, network)
        except UsageError:
            excluded[own]["without figures of pairs that can be read and placed"] += 1
            continue
        for (height, level), values in levels.items():
            key = _Key(*own, height, level)
            if is_like(f"{run.case_name}: {level}", case) or _case_of(key).startswith(case):
                found[key].append((run, values))
    if not found:
        reasons = sum(excluded.values(), Counter[str]())
        why = "".join(f"; {count} left out: {reason}" for reason, count in reasons.items())
        raise UsageError(
            f"{name}: no right run of the probe {APP} matches{why}; it needs runs of {APP} on a "
            "machine whose file tells its `topology` (docs/how-to/machines.md#topology)"
        )
    return [_series(name, key, found[key], excluded[key[:3]]) for key in sorted(found)]


def _by_level(
    run: RunRow, metric: PairMetric, network: Topology
) -> dict[tuple[int, str], list[float]]:
    """Return the figures of a run by the number and the name of their level."""
    names = [NODE, *(level.name for level in network.levels), SYSTEM]
    found: dict[tuple[int, str], list[float]] = defaultdict(list)
    for line, _, level in placed(lines_of_file(Path(run.path) / "stdout"), network):
        found[names.index(level), level].append(getattr(line, metric.name))
    return found


def _series(
    name: str, key: _Key, runs: list[tuple[RunRow, list[float]]], excluded: Counter[str]
) -> MetricSeries:
    latest = runs[-1][0]
    stage = f" [{key.stage}]" if key.stage else ""
    metric = BY_LEVEL[name]
    return MetricSeries(
        metric=name,
        machine=key.machine,
        case=_case_of(key),
        case_name=f"{latest.case_name}{stage}: {key.level}",
        test=latest.test,
        toolchain=latest.toolchain,
        stage=key.stage,
        unit=metric.unit,
        better=metric.better,
        points=[
            Point(run.script_started or run.created, median(values), run.run_id, run.trial)
            for run, values in runs
        ],
        excluded=dict(excluded),
        parts=[values for _, values in runs],
    )


def _case_of(key: _Key) -> str:
    """Return the id of a case and a level."""
    return f"{key.case}:{key.level}"
