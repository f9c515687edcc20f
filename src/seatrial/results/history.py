"""How a metric went over time: one series for each case, its changes of level, the notes beside.

    for history in histories(store, "triad", Filters(machine="frost"), notes=diary.notes):
        history.series.points, history.course.changes, history.told

A series is of one case (test, parameters, numbers of nodes and tasks, toolchain) on one machine in
one stage (runs alone and runs at full machine differ without a change), over all trials. Figures
are of runs whose answer was right; what is left out is counted by its reason. Where unit or
direction of a metric changed between trials, the latest kind is judged.
"""

import os
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent import futures
from fnmatch import fnmatchcase
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError, suggest
from seatrial.grouping import grouped
from seatrial.hooks import load, provided
from seatrial.judge.promises import Promised, beside
from seatrial.judge.statistics import changes, spread
from seatrial.judge.statistics.changes import MIN_POINTS
from seatrial.judge.statistics.significance import wilson
from seatrial.judge.statistics.spread import Mode
from seatrial.model import codes
from seatrial.model.figures import ELAPSED
from seatrial.model.identifiers import is_case, is_like
from seatrial.results import bands
from seatrial.results.case_figures import CaseRuns, cases_by_id
from seatrial.results.given import GivenEntry, entries_of, given_cases, in_kind, name_of, unlike
from seatrial.results.notes import Near, Note, nearest
from seatrial.results.references import folders_of, promises_in
from seatrial.results.selection import Difference
from seatrial.results.store import queries
from seatrial.results.store.schema import Store
from seatrial.results.store.series import (
    MetricSeries,
    Point,
    case_names,
    latest_runs,
    measured,
    metric_names,
    not_measured,
    pass_counts,
)
from seatrial.results.store.tables import CaseName, Filters, Measured
from seatrial.units import NO_DIRECTION, SECOND_NS, count, direction_of, listed, unfit, unfit_of

MANY = 400  # series for which several processes are worth their start
MAX_NAMED = 12


class ReportedChange(Struct, frozen=True):
    """A change as people are told it. ``last`` and ``first`` are the times (ns) of the figures
    between which it was: those on either side of a step, the first of a drift and the first of its
    last level; ``percent`` is None where levels have no ratio, ``worse`` where the metric has no
    direction; ``facts`` are those of nodes that changed then, where somebody asked for them
    (``with_node_changes``)."""

    change: changes.LevelChange
    last: int
    first: int
    percent: float | None
    worse: bool | None
    near: Near | None
    facts: list[Difference] = []

    @property
    def drift(self) -> bool:
        return self.change.until is not None

    @property
    def since(self) -> int:
        """Return the time (ns) of the first figure of a new level, or of a drift."""
        return self.last if self.drift else self.first

    @property
    def word(self) -> str:
        """``worse`` or ``better``; "" for a metric without a direction."""
        return "" if self.worse is None else "worse" if self.worse else "better"

    @property
    def confirmed(self) -> bool:
        return self.change.tier == "confirmed"


class LevelModes(Struct, frozen=True):
    """The modes of the figures behind the points of a series, from one to another (ns), between two
    confirmed changes."""

    first: int
    last: int
    modes: list[Mode]


class History(Struct, frozen=True):
    """A series, its changes, and the notes of its machine within its time and shortly before.
    ``modes`` are there where the points are medians. ``given`` are figures of its case that others
    gave, where these were asked for; nothing is judged by them."""

    series: MetricSeries
    analysis: changes.SeriesAnalysis
    told: list[ReportedChange]
    notes: list[Note]
    modes: list[LevelModes] = []
    #: what was promised of the median, as the trial of the latest figure tells
    promised: Promised | None = None
    given: list[GivenEntry] = []

    @property
    def median(self) -> float | None:
        return statistics.median(self.series.values) if self.series.points else None

    @property
    def changed(self) -> bool:
        return any(each.confirmed for each in self.told)

    @property
    def levels(self) -> list[tuple[int, int, float]]:
        """Return (from, to, level), in ns, between each two confirmed changes."""
        points = self.series.points
        confirmed = [each.change for each in self.told if each.confirmed]
        if not confirmed:
            return []
        edges = [0, *(change.settled for change in confirmed), len(points)]
        heights = [confirmed[0].before, *(change.after for change in confirmed)]
        return [
            (points[start].time, points[end - 1].time, height)
            for (start, end), height in zip(pairwise(edges), heights, strict=True)
        ]

    @property
    def alarms(self) -> list[ReportedChange]:
        """Confirmed changes for the worse."""
        return [told for told in self.told if told.confirmed and told.worse]


def histories(
    store: Store,
    metric: str,
    filters: Filters,
    case: str = "",
    notes: Sequence[Note] = (),
    stage: str = "",
    *,
    given: bool = False,
) -> list[History]:
    """The history of a metric in every case that matches, by machine and case. ``case`` is a part
    of a case's name, a pattern, or a beginning of its id. Raises UsageError where none matches, not
    even a figure that was ``given``, where these are asked for."""
    try:
        found = series_of(store, metric, filters, case, stage)
    except UsageError:
        if given and number_given(store, metric, filters, case):
            return []
        raise
    judged = [
        _history(series, analysis, notes)
        for series, analysis in zip(found, _courses(found), strict=True)
    ]
    folders = folders_of(store)
    return [_with_promise(each, folders) for each in judged]


def _with_promise(history: History, folders: Mapping[tuple[str, str], str]) -> History:
    """Return a history with what was promised of its metric. ``folders``: those of trials, by their
    tags and machines."""
    series = history.series
    folder = folders.get((series.points[-1].trial, series.machine)) if series.points else None
    if folder is None:
        return history
    promises = promises_in(folder, series.test, series.case)
    return replace(history, promised=beside(promises, series.metric, history.median, series.unit))


_CaseKey = tuple[str, str]  # a machine, and the id of a case


def _wrong_runs(
    store: Store, filters: Filters, cases: Mapping[int, _CaseKey]
) -> dict[tuple[_CaseKey, str], Counter[str]]:
    """Return the runs without a right answer of each case and stage, by verdict; the cases are
    given by their rows."""
    wrong: dict[tuple[_CaseKey, str], Counter[str]] = {}
    for (row, stage), counts in not_measured(store, filters).items():
        if row in cases:
            wrong.setdefault((cases[row], stage), Counter()).update(counts)
    return wrong


def _no_metric(metric: str, known: Sequence[str]) -> str:
    more = f", and {len(known) - MAX_NAMED} more" if len(known) > MAX_NAMED else ""
    there = "there is only" if len(known) == 1 else "there are"
    remedy = suggest(metric, known) or f"{there} {', '.join(known[:MAX_NAMED])}{more}"
    return f"no run has a metric {metric[:100]!r}; {remedy}"


def series_of(
    store: Store, metric: str, filters: Filters, case: str = "", stage: str = ""
) -> list[MetricSeries]:
    """The series of a metric in every case that matches, those of a ``stage`` if one is given.
    Raises UsageError where none does."""
    known = metric_names(store)
    if metric not in known and metric.endswith("_by_level") and metric in bands.BY_LEVEL:
        return bands.series_by_level(store, metric, filters, case, stage)
    if metric != ELAPSED and metric not in known:
        raise UsageError(_no_metric(metric, [*known, ELAPSED]))
    cases = case_names(store)
    chosen = {
        number: (name.machine, name.case)
        for number, name in cases.items()
        if is_case(case, name.name, name.case)
    }
    rows = (row for row in measured(store, metric, filters) if row.case in chosen)
    wanted = (row for row in rows if stage in ("", row.stage))
    figures = grouped(wanted, lambda row: (chosen[row.case], row.stage))
    if not figures:
        raise UsageError(_no_series(store, metric, filters, case, stage))
    wrong = _wrong_runs(store, filters, chosen)
    found = [_series(metric, rows, cases, wrong.get(key)) for key, rows in figures.items()]
    return sorted(found, key=attrgetter("machine", "case_name", "case"))


def _series(
    metric: str,
    rows: list[Measured],
    cases: dict[int, CaseName],
    wrong: Counter[str] | None,
) -> MetricSeries:
    latest, name = rows[-1], cases[rows[-1].case]
    excluded: Counter[str] = Counter(wrong or {})
    points = []
    unit, better = latest.unit, latest.better
    all_fit = not unfit_of([row.value for row in rows])
    for row in rows:
        if row.unit != unit:
            excluded[f"in {row.unit}, the latest is in {unit}"] += 1
        elif row.better != better:
            excluded[f"{row.better} was better, of the latest {better} is"] += 1
        elif not all_fit and (reason := unfit(row.value)):
            excluded[reason] += 1
        else:
            points.append(Point(row.time, row.value, row.run_id, cases[row.case].trial))
    return MetricSeries(
        metric=metric,
        machine=name.machine,
        case=name.case,
        case_name=f"{name.name} [{latest.stage}]" if latest.stage else name.name,
        test=name.test,
        toolchain=name.toolchain,
        stage=latest.stage,
        unit=unit,
        better=direction_of(better),
        points=points,
        excluded=dict(excluded),
    )


# ---- what cannot be found -----------------------------------------------------------------


def _no_series(store: Store, metric: str, filters: Filters, case: str, stage: str) -> str:
    """Which of the given conditions nothing meets."""
    given = {
        "--test": filters.test,
        "--case": case,
        "--machine": filters.machine,
        "--toolchain": filters.toolchain,
        "--stage": stage,
    }
    said = " ".join(f"{option} {value}" for option, value in given.items() if value)
    since = " in that time" if filters.since else ""
    hint = "" if filters.rehearsed else "; rehearsals are asked for with --rehearsed"
    machines = sorted({name.machine for name in case_names(store).values()})
    known = f"; there are runs on {', '.join(machines[:MAX_NAMED])}" if machines else ""
    return (
        f"no run with a right answer has {metric!r}{since}"
        f"{f' with {said}' if said else ''}{known}{hint}"
    )


# ---- changes ------------------------------------------------------------------------------


def _courses(found: list[MetricSeries]) -> list[changes.SeriesAnalysis]:
    processes = min(os.cpu_count() or 1, 8, len(found) // MANY + 1)
    if processes < 2:
        return [changes.analyse(series.values) for series in found]
    with futures.ProcessPoolExecutor(processes) as pool:
        return list(pool.map(changes.analyse, [series.values for series in found], chunksize=50))


def _history(
    series: MetricSeries, analysis: changes.SeriesAnalysis, notes: Sequence[Note]
) -> History:
    concerned = [note for note in notes if note.concerns(series.machine)]
    told = [_told(series, change, concerned) for change in analysis.changes]
    first = series.points[0].time if series.points else 0
    last = series.points[-1].time if series.points else 0
    margin = max((last - first) // 20, 3600 * SECOND_NS)
    near = [note for note in concerned if first - margin <= note.time <= last + margin]
    return History(series, analysis, told, near, _modes(series, told))


def _modes(series: MetricSeries, told: Sequence[ReportedChange]) -> list[LevelModes]:
    """Return the modes of a series' parts between confirmed changes."""
    if not series.parts:
        return []
    edges = [0, *(each.change.settled for each in told if each.confirmed), len(series.points)]
    return [
        LevelModes(
            series.points[start].time,
            series.points[end - 1].time,
            spread.find([value for part in series.parts[start:end] for value in part]),
        )
        for start, end in pairwise(edges)
    ]


def _told(
    series: MetricSeries, change: changes.LevelChange, notes: Sequence[Note]
) -> ReportedChange:
    before = change.index - 1 if change.until is None else change.index
    last, first = series.points[before].time, series.points[change.settled].time
    percent = None if change.ratio is None else 100 * (change.after / change.before - 1)
    if percent is not None and change.before < 0:
        percent = -percent
    rose = change.after > change.before
    worse = None if series.better == "none" else rose == (series.better == "lower")
    return ReportedChange(change, last, first, percent, worse, nearest(notes, last, first))


# ---- given figures -------------------------------------------------------------------------------


class BesideGiven(NamedTuple):
    """Histories with the given figures of their cases, and the ``others``: those of cases that have
    no history here."""

    histories: list[History]
    others: list[GivenEntry]


def number_given(store: Store, metric: str, filters: Filters, case: str = "") -> int:
    """Return how many given figures there are of a metric, by test, case and toolchain."""
    return sum(len(entries_of(one, metric)) for one in _given_like(store, filters, case))


def beside_given(
    store: Store, metric: str, found: Sequence[History], filters: Filters, case: str = ""
) -> BesideGiven:
    """Return histories with the figures that others gave for their cases, on whatever system."""
    cases = cases_by_id(store)
    like = [
        replace(cases[one.series.case], stage=one.series.stage)
        if one.series.case in cases
        else None
        for one in found
    ]
    own: list[list[GivenEntry]] = [[] for _ in found]
    others: list[GivenEntry] = []
    for one in _given_like(store, filters, case):
        places = [i for i, each in enumerate(like) if each and not unlike(one, each)]
        for entry in entries_of(one, metric):
            for i in places:
                series = found[i].series
                own[i].append(in_kind(entry, (metric, series.unit, series.better)))
            if not places:
                others.append(entry)
    histories = [replace(one, given=given) for one, given in zip(found, own, strict=True)]
    return BesideGiven(histories, others)


def _given_like(store: Store, filters: Filters, case: str) -> list[CaseRuns]:
    """Return the given cases of these tests, cases and toolchains; a given one may have none."""
    return [
        one
        for one in given_cases(store)
        if is_like(one.test, filters.test)
        and is_case(case, name_of(one), one.case)
        and (not one.toolchain or fnmatchcase(one.toolchain, filters.toolchain or "*"))
    ]


# ---- history check -------------------------------------------------------------------------------
#
# Why a history that shows no change for the worse is no proof that there is none.
#
#     doubts(store, "triad", filters, histories(store, "triad", filters))
#     # ["stream{n=2}: 3 figures are too few to show a change; 8 or more are needed"]


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
    everywhere = measured(store, metric, replace(filters, trial=""))
    return {
        (names[row.case].machine, names[row.case].case, row.stage)
        for row in everywhere
        if names[row.case].trial != chosen
    }


def _key(series: MetricSeries) -> Key:
    return series.machine, series.case, series.stage


# ---- success rate --------------------------------------------------------------------------------
#
# How the success rate of a test went over time: the share of its runs that passed.
#
#     for series in success_rates(store, Filters(machine="frost")):
#         series.test, [(rate.trial, rate.passed, rate.counted) for rate in series.rates]
#
# There is a rate for each trial and day (UTC), with its 95 % interval. It counts the runs that the
# criterion ``pass_rate`` counts: no cancelled ones, no known failures, and none that ran again for
# what nodes or the scheduler did.


SUCCESS_RATE = "success_rate"


class SuccessRate(Struct):
    """The runs of a test that a trial created on one day: how many ``counted``, and how many of
    them ``passed``. ``time`` is when the first was created (ns)."""

    time: int
    trial: str
    passed: int = 0
    counted: int = 0

    @property
    def rate(self) -> float:
        return self.passed / self.counted

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.passed, self.counted)


class SuccessRates(Struct, frozen=True):
    """The rates of a test on a machine, by time."""

    machine: str
    test: str
    rates: list[SuccessRate]


def is_success_rate(store: Store, metric: str) -> bool:
    """Return whether the success rate is asked for: its name, unless runs have such a metric."""
    return metric == SUCCESS_RATE and metric not in metric_names(store)


def success_rates(
    store: Store, filters: Filters, case: str = "", stage: str = ""
) -> list[SuccessRates]:
    """Return the rates of each test, by machine and test. ``case`` is a part of a case's name, a
    pattern, or a beginning of its id. Raises UsageError where no run counts."""
    names = case_names(store)
    found: dict[tuple[str, str], dict[tuple[str, int], SuccessRate]] = {}
    for row in pass_counts(store, filters, stage):
        name = names[row.case]
        if not is_case(case, name.name, name.case):
            continue
        days = found.setdefault((name.machine, name.test), {})
        rate = days.setdefault((row.trial, row.day), SuccessRate(row.time, row.trial))
        rate.passed += row.passed
        rate.counted += row.counted
    if not found:
        raise UsageError(f"{SUCCESS_RATE}: no run that counts matches; see `seatrial runs`")
    return [SuccessRates(*key, [*found[key].values()]) for key in sorted(found)]


def with_node_changes(store: Store, histories: list[History]) -> list[History]:
    """Return histories with what changed on the nodes when their levels did."""
    for source in provided("seatrial_fact_sources"):
        histories = load(source.changes)(store, histories)
    return histories
