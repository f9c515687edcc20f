"""Why a history that shows no change for the worse is no proof that there is none.

doubts(store, "triad", filters, histories(store, "triad", filters))
# ["stream{n=2}: 3 figures are too few to show a change; 8 or more are needed"]
"""

from collections.abc import Iterator, Sequence

from seatrial.journal import codes
from seatrial.statistics.changes import MIN_POINTS
from seatrial.store import queries
from seatrial.store.rows import CaseName, Filters
from seatrial.store.schema import Store
from seatrial.store.series import case_names, latest_runs, measured
from seatrial.structs import copied
from seatrial.studies.history import History
from seatrial.studies.metric_series import MetricSeries
from seatrial.units import NO_DIRECTION, count, listed

_VERDICTS = frozenset(code.name for code in codes.CODES.values())

MAX_NODES = 5  # that are named
Key = tuple[str, str, str]  # machine, case, stage


def doubts(store: Store, metric: str, filters: Filters, found: Sequence[History]) -> list[str]:
    """Return a sentence for each reason why no change could be seen: too few figures, figures in
    another unit, a latest run without a figure, earlier trials that ``filters`` leave out."""
    names = case_names(store)
    said = [text for history in found for text in _of_series(history)]
    said += _stale(metric, found, _latest(store, filters, names))
    said += _nodes_left_out(found)
    if filters.trial:
        others = _in_other_trials(store, metric, filters, names)
        if own := [one for one in found if _key(one.series) in others]:
            said.append(
                f"{filters.trial} alone cannot show a change from other trials, which have figures "
                f"of {len(own)} of {len(found)} series: leave out --trial"
            )
    return said


def _of_series(history: History) -> Iterator[str]:
    series, name = history.series, history.series.case_name
    if series.better == NO_DIRECTION:
        yield f"{name}: it has no direction (better: none), so no change is for the worse"
        return
    if history.analysis.few:
        trials = len({point.trial for point in series.points})
        of = f" of {count(trials, 'trial')}" if trials else ""
        few = count(len(series.points), "figure")
        yield f"{name}: {few}{of} cannot show a change; {MIN_POINTS} or more are needed"
    elif history.analysis.limit:
        yield f"{name}: {history.analysis.limit}"
    for reason, number in series.excluded.items():
        if reason not in _VERDICTS:
            yield f"{name}: {count(number, 'figure')} left out: {reason}; choose by --since"


def _stale(metric: str, found: Sequence[History], latest: dict[Key, int]) -> Iterator[str]:
    """Yield which series end before the latest run of their case."""
    for history in found:
        series = history.series
        last = series.points[-1].time if series.points else 0
        if latest.get(_key(series), 0) > last:
            yield f"{series.case_name}: its latest run gave no {metric}"


def _nodes_left_out(found: Sequence[History]) -> Iterator[str]:
    """Yield the nodes that lack in the newest trial of the cases that differ from theirs in the
    node alone."""
    alike: dict[tuple[str, str, str], list[MetricSeries]] = {}
    for history in found:
        series = history.series
        stem, mark, _ = series.case_name.rpartition("%")
        if mark and series.points:
            alike.setdefault((series.machine, stem, series.stage), []).append(series)
    for (_, stem, _), several in alike.items():
        newest = max((series.points[-1] for series in several), key=lambda point: point.time)
        lacking = [
            series.case_name.rpartition("%")[2]
            for series in several
            if series.points[-1].trial != newest.trial
        ]
        if lacking:
            nodes = f"{len(lacking)} of {count(len(several), 'node')}"
            yield f"{stem}: {nodes} gave nothing in {newest.trial}: {listed(lacking, MAX_NODES)}"


def _latest(store: Store, filters: Filters, names: dict[int, CaseName]) -> dict[Key, int]:
    found: dict[Key, int] = {}
    for (row, stage), time in latest_runs(store, filters).items():
        key = (names[row].machine, names[row].case, stage)
        found[key] = max(time, found.get(key, 0))
    return found


def _in_other_trials(
    store: Store, metric: str, filters: Filters, names: dict[int, CaseName]
) -> set[Key]:
    """Return the series of which trials that are not chosen have figures."""
    chosen = queries.trial(store, filters.trial).tag
    everywhere = measured(store, metric, copied(Filters, filters, trial=""))
    return {
        (names[row.case].machine, names[row.case].case, row.stage)
        for row in everywhere
        if names[row.case].trial != chosen
    }


def _key(series: MetricSeries) -> Key:
    return series.machine, series.case, series.stage
