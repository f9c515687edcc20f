"""History: a metric over time in each case, with changes of its level, notes and references; or how
often the runs of each test passed."""

from statistics import median
from typing import Any, NamedTuple, get_args

from msgspec import Struct
from msgspec.structs import replace

from seatrial import draw
from seatrial.errors import TrialError
from seatrial.store import queries
from seatrial.store.rows import Filters, MetricRow, TrialRow
from seatrial.store.series import metric_names
from seatrial.structs import copied
from seatrial.studies import note_file
from seatrial.studies.band_series import BY_LEVEL
from seatrial.studies.difference import Difference
from seatrial.studies.history import History, LevelModes, ReportedChange, histories
from seatrial.studies.history_facts import with_facts
from seatrial.studies.note_file import Note
from seatrial.studies.one_run import Expected, expected
from seatrial.studies.success_rate import SUCCESS_RATE, is_success_rate, success_rates
from seatrial.suite.model import Stage
from seatrial.units import SECOND_NS, better_by, show_change
from seatrial.verify.figures import ELAPSED
from seatrial.web.formatting import NARROW, WIDE
from seatrial.web.pages.history_rates import RateLine, rate_lines
from seatrial.web.query import PageQuery
from seatrial.web.run_filters import names_rehearsal
from seatrial.web.state.server_state import ServerState

MULTIPLES = 24  # small plots on a page
POINTS = 50  # rows of the table of figures
MAX_POINTS = 5000
MAX_DRAWN = 2000  # figures of a series
MAX_NAMED = 400


Drawn = tuple[float, float, bool]  # time in s, value, whether it was rehearsed
Trials = dict[tuple[str, str], TrialRow]  # by tag and machine


class ChangeMark(Struct, frozen=True, kw_only=True):
    """A change of level between the values at ``last`` and ``until`` (ns), a step or a ``drift``;
    it is marked at its ``time``. ``percent`` is None if
    the levels have no ratio. ``note`` is the nearest one, ``near`` how far it is; ``facts`` are
    those of nodes that changed then."""

    time: int
    last: int
    until: int
    drift: bool
    before: float
    after: float
    percent: float | None
    tier: str
    worse: bool | None
    note: str
    near: str
    facts: list[Difference]


class HistoryLine(Struct, frozen=True, kw_only=True):
    """A series of ``n`` values, of which so many are ``rehearsed``. ``measured`` and ``made_up``
    (rehearsed) are (s since the epoch, value); a long series is thinned to the least and the
    greatest in each of many spans. ``levels`` are (from, to, level) between confirmed changes, and
    the first level of a drift as far as its last one.
    ``reference`` is that of the latest run."""

    machine: str
    case: str
    case_name: str
    test: str
    stage: str
    unit: str
    better: str
    n: int
    median: float | None
    noise: float | None
    excluded: dict[str, int]
    reason: str
    rehearsed: int
    measured: list[tuple[float, float]]
    made_up: list[tuple[float, float]]
    levels: list[tuple[float, float, float]]
    changes: list[ChangeMark]
    modes: list[LevelModes]
    notes: list[Note]
    reference: Expected | None

    def chart(self, large: bool, metric: str, wide: bool = False) -> Any:
        """Draw values as dots, levels as lines, changes and notes as marks, as SVG."""
        dots = ((metric, self.measured, 1, 1), ("rehearsed", self.made_up, 4, 3))
        series = [
            draw.ChartSeries(name if large else "", points, "dots", colour, form)
            for name, points, colour, form in dots
            if points
        ]
        for number, (start, end, level) in enumerate(self.levels):
            name = "level" if large and not number else ""
            series.append(draw.ChartSeries(name, [(start, level), (end, level)], "line", 2, 1))
        marks = [
            draw.Mark(
                change.time / SECOND_NS,
                _told(change, self.better),
                _ink(change),
            )
            for change in self.changes
            if large or change.tier == "confirmed"
        ]
        if large:
            marks += [draw.Mark(note.time / SECOND_NS, note.text) for note in self.notes]
        wanted = self.reference
        bounds = (
            ((wanted.value, "reference"), (wanted.low, "least"), (wanted.high, "most"))
            if wanted
            else ()
        )
        return draw.chart(
            series,
            title=f"{metric} of {self.case_name} on {self.machine}",
            about=f"{self.n} figures, {len(self.changes)} changes, {len(self.notes)} notes",
            x=draw.Axis(kind="time"),
            y=draw.Axis(metric if large else "", self.unit if large else ""),
            marks=sorted(marks, key=lambda mark: mark.at),
            levels=[draw.ReferenceLine(y, text) for y, text in bounds if y is not None],
            width=WIDE if wide else NARROW,
            height=280 if large else 110,
        )


class Shown(Struct, frozen=True):
    """A value, when its run's script started (ns), and the run."""

    time: int
    value: float
    run_id: str
    trial: str
    rehearsed: bool


class HistoryPage(Struct, frozen=True, kw_only=True):
    """The series that match, those that changed for the worse first. ``state`` is "asked",
    "judging", "judged", "refused" (``reason``) or "rates" (of success, in place of series)."""

    state: str
    metrics: list[str]
    reason: str = ""
    lines: list[HistoryLine] = []
    found: int = 0
    first: int = 0
    changed: int = 0
    alarms: int = 0
    points: list[Shown] = []
    damaged_notes: int = 0
    any_rehearsed: bool = False
    rates: list[RateLine] = []


class _Answer(NamedTuple):
    """The judged series, and the lines that were made of them, by their places."""

    histories: list[History]
    damaged: int
    lines: dict[int, HistoryLine]


def data(state: ServerState, query: PageQuery) -> HistoryPage:
    store = state.store()
    trials = queries.trials(store)
    filters = Filters(
        **query.texts("test", "machine", "toolchain", "trial"),
        since=query.moment("since"),
        until=query.moment("until"),
        rehearsed=query.flag("rehearsed"),
    )
    metric, case = query.text("metric"), query.text("case")
    stage = query.choice("stage", get_args(Stage))
    first = query.number("first", 0)
    points = query.number("points", POINTS, least=1, most=MAX_POINTS)
    metrics = list(dict.fromkeys([ELAPSED, SUCCESS_RATE, *BY_LEVEL, *metric_names(store)]))[
        :MAX_NAMED
    ]
    page = HistoryPage(state="asked", metrics=metrics)
    if not metric:
        return page
    version = (_notes_mark(state), *((trial.row, trial.last, trial.passed) for trial in trials))
    if is_success_rate(store, metric):
        rates = state.studies.answer(
            (SUCCESS_RATE, case, stage, filters),
            version,
            lambda: success_rates(state.store(), filters, case, stage),
        )
        if rates.value is None:
            return replace(page, state=rates.state, reason=rates.reason)
        return replace(
            page,
            state="rates",
            found=len(rates.value),
            first=first,
            rates=rate_lines(rates.value)[first : first + MULTIPLES],
        )
    name = ("history", metric, case, stage, filters)
    study = state.studies.answer(
        name, version, lambda: _judged(state, metric, filters, case, stage)
    )
    answer = study.value
    if answer is None:
        made_up = bool(filters.trial) and names_rehearsal(store, [filters.trial], rehearsed=False)
        return replace(page, state=study.state, reason=study.reason, any_rehearsed=made_up)
    found = answer.histories
    if first >= len(found):
        first = max(0, (len(found) - 1) // MULTIPLES * MULTIPLES)
    latest = found[0].series.points[::-1][:points] if len(found) == 1 else []
    machine = found[0].series.machine if found else ""
    shown = found[first : first + MULTIPLES]
    trial_of = {(trial.tag, trial.machine): trial for trial in reversed(trials)}
    lines = []
    for place, each in enumerate(shown, start=first):
        if place not in answer.lines:
            answer.lines[place] = _line(state, each, trial_of)
        lines.append(answer.lines[place])
    return replace(
        page,
        state="judged",
        lines=lines,
        found=len(found),
        first=first,
        changed=sum(any(told.confirmed for told in each.told) for each in found),
        alarms=sum(bool(each.alarms) for each in found),
        points=[
            copied(Shown, point, rehearsed=_made_up(trial_of.get((point.trial, machine))))
            for point in latest
        ],
        damaged_notes=answer.damaged,
        any_rehearsed=any(line.rehearsed for line in lines),
    )


def _made_up(trial: TrialRow | None) -> bool:
    return trial is not None and trial.rehearsed


def _notes_mark(state: ServerState) -> int:
    try:
        return (state.folder / note_file.FILE).stat().st_mtime_ns
    except OSError:
        return 0


def _judged(state: ServerState, metric: str, filters: Filters, case: str, stage: str) -> _Answer:
    try:
        notes = note_file.read(state.folder / note_file.FILE)
    except TrialError:
        notes = note_file.Diary([])
    store = state.store()
    found = with_facts(store, histories(store, metric, filters, case, notes.notes, stage))
    return _Answer(sorted(found, key=_rank), notes.damaged, {})


def _rank(history: History) -> tuple[float, str, str]:
    """Return the rank of a series: the worst confirmed change first, then the other changes."""
    shares = [
        abs(told.percent or 0) if told.worse else -1 / (1 + abs(told.percent or 0))
        for told in history.told
        if told.confirmed
    ]
    worst = max(shares, default=-2.0)
    return (-worst, history.series.case_name, history.series.machine)


# ---- a series -----------------------------------------------------------------------------


def _line(state: ServerState, history: History, trial_of: Trials) -> HistoryLine:
    series, analysis = history.series, history.analysis
    middle = median(series.values) if series.values else None
    points = [
        (point.time / SECOND_NS, point.value, _made_up(trial_of.get((point.trial, series.machine))))
        for point in series.points
    ]
    drawn = _thinned(points)
    return copied(
        HistoryLine,
        series,
        n=len(series.points),
        median=middle,
        noise=analysis.noise / abs(middle) if middle else None,
        reason=analysis.why,
        rehearsed=sum(made_up for _, _, made_up in points),
        measured=[(time, value) for time, value, made_up in drawn if not made_up],
        made_up=[(time, value) for time, value, made_up in drawn if made_up],
        levels=_levels(history),
        changes=[_change(told) for told in history.told],
        modes=history.modes,
        notes=history.notes,
        reference=_expected(state, history, trial_of),
    )


def _thinned(points: list[Drawn]) -> list[Drawn]:
    """Return few enough values to draw: the least and the greatest in each of many spans."""
    if len(points) <= MAX_DRAWN:
        return points
    first, length = points[0][0], points[-1][0] - points[0][0] or 1.0
    spans: dict[int, list[Drawn]] = {}
    for point in points:
        spans.setdefault(int((point[0] - first) / length * (MAX_DRAWN // 2 - 1)), []).append(point)
    return [
        point
        for own in spans.values()
        for point in sorted({min(own, key=lambda p: p[1]), max(own, key=lambda p: p[1])})
    ]


def _levels(history: History) -> list[tuple[float, float, float]]:
    """Return the level between each two confirmed changes."""
    points = history.series.points
    confirmed = [told.change for told in history.told if told.confirmed]
    if not confirmed:
        return []
    edges = [0, *(change.settled for change in confirmed), len(points)]
    heights = [confirmed[0].before, *(change.after for change in confirmed)]
    return [
        (points[start].time / SECOND_NS, points[end - 1].time / SECOND_NS, height)
        for start, end, height in zip(edges, edges[1:], heights, strict=False)
    ]


def _change(told: ReportedChange) -> ChangeMark:
    return copied(
        ChangeMark,
        told,
        time=told.since,
        until=told.first,
        drift=told.drift,
        before=told.change.before,
        after=told.change.after,
        tier=told.change.tier,
        note=told.near.note.text if told.near is not None else "",
        near=told.near.distance if told.near is not None else "",
    )


def _expected(state: ServerState, history: History, trial_of: Trials) -> Expected | None:
    """Return the reference by which the latest run was judged."""
    series = history.series
    if not series.points:
        return None
    last = series.points[-1]
    trial = trial_of.get((last.trial, series.machine))
    if trial is None:
        return None
    case = next((c for c in queries.cases_of(state.store(), trial) if c.id == series.case), None)
    if case is None:
        return None
    figure = MetricRow(series.metric, last.value, series.unit, series.better)
    return expected(figure, case, state.records.references(state.store(), trial), series.stage)


def _ink(change: ChangeMark) -> str:
    if change.tier != "confirmed" or change.worse is None:
        return "warn"
    return "bad" if change.worse else "good"


def _told(change: ChangeMark, better: str) -> str:
    """Return by how much a level is better than the one before."""
    percent = "" if change.percent is None else show_change(better_by(change.percent, better))
    return percent if change.tier == "confirmed" else f"{percent}?"
