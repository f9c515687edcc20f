"""Draw the figures of a component, each with its data as a table.

    for figure in figures(status, pairs): figure.title, figure.drawing

Everything that is drawn was computed by ``acceptance`` and ``studies``: the results of criteria,
the classes of outliers, the table of variability, scaling.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Final, Literal, NamedTuple

from seatrial.execute.trial_folder import Record
from seatrial.judge.derived import Whole, breakdowns
from seatrial.judge.promises import COLUMN, told
from seatrial.judge.statistics.outliers import Class
from seatrial.model.figures import ELAPSED
from seatrial.model.test import Case
from seatrial.results.criteria.view import Result
from seatrial.results.holds import gauge_spans
from seatrial.results.notes import Note
from seatrial.results.scaling import ScalingTable as Scaled
from seatrial.results.sizes import Cell as ScalingCell
from seatrial.results.slow_places import RunKind
from seatrial.results.status import Status, beside
from seatrial.results.store.queries import MEASURED
from seatrial.results.store.tables import MetricRow, RunOutcome
from seatrial.results.trial_history import RunHistory, Span, TrialHistory
from seatrial.results.utilisation import LevelSpan, few_levels, in_flight
from seatrial.results.variability import Variability
from seatrial.show.breakdowns import averaged, stacked
from seatrial.show.draw import plots
from seatrial.show.draw.plots import ChartSeries, Mark, ReferenceLine, ShadedSpan, chart
from seatrial.show.draw.plots import scaling as scaling_plot
from seatrial.show.draw.svg import Axis
from seatrial.show.page import Cell, Column, Table
from seatrial.show.report.content import (
    FEW_RUNS,
    ReportComponent,
    ReportFigure,
    bounded,
    columns_of,
    ended_by_verdict,
    filled,
    reported,
)
from seatrial.show.trial import sub_phases_table
from seatrial.show.variability import places_table, shared_table, spread_table
from seatrial.units import SECOND_NS, count, show_number, show_seconds, show_share

GaugeLimits = Mapping[str, Sequence[tuple[float, str]]]

MAX_SCALING_FIGURES: Final = 12
MAX_CURVES: Final = 8  # in a figure of scaling


def figures(status: Status, pairs: Sequence[Result]) -> list[ReportFigure]:
    """Return the figures of criteria and runs that have data. ``pairs``: the results of the
    criterion slowdown, first that of all cases together."""
    return [*_difference(pairs), *_runs(status), *_utilisation(status)]


# ---- alone and at full machine ------------------------------------------------------------


def _difference(pairs: Sequence[Result]) -> Iterator[ReportFigure]:
    """Yield the figure of each case at full machine against alone, from the slowdown results."""
    cases = pairs[1:] or pairs
    runs = (one.numbers.get(key) for one in cases for key in ("alone n", "full n"))
    if sum(n for n in runs if isinstance(n, int | float)) < FEW_RUNS:
        return
    columns = columns_of(
        "case",
        ("alone", "number"),
        ("n alone", "count"),
        ("at full machine", "number"),
        ("n full", "count"),
        ("waves", "count"),
        ("better by", "per cent"),
        ("95 % from", "per cent"),
        ("to", "per cent"),
        "state",
        "why",
    )
    title = "Each application alone and at full machine"
    about = (
        "Median at full machine against the median alone, in per cent; positive is better. Bars "
        "are intervals of 95 %."
    )
    data = bounded("Alone and at full machine", columns, map(_slowdown, cases))
    drawing = plots.forest(
        [_slowdown_drawn(one, one.value) for one in cases if one.value is not None],
        title=title,
        about=about,
        axis=Axis("better by", "%"),
        centre=0.0,
        ends=("worse at full machine", "better"),
        bars=True,
    )
    yield ReportFigure(title, about, data, str(drawing))


def _slowdown(one: Result) -> list[Cell]:
    """Return the row of a case."""
    medians = [_number(one, key) for key in ("alone", "alone n", "full", "full n", "waves")]
    interval = one.value, _number(one, "low"), _number(one, "high")
    return [one.subject, *medians, *interval, one.words, one.reason]


def _slowdown_drawn(one: Result, value: float) -> plots.Interval:
    colour, form = {"met": ("good", 1), "not met": ("bad", 8)}.get(one.state, ("muted", 4))
    low, high = _number(one, "low"), _number(one, "high")
    return plots.Interval(one.subject, value, low, high, f"{value + 0.0:+.2f} %", colour, form)


def _number(one: Result, key: str) -> int | float | None:
    value = one.numbers.get(key)
    return None if isinstance(value, str) else value


# ---- gauges -------------------------------------------------------------------------------


MAX_GAUGES: Final = 6
MAX_SPANS: Final = 400  # of a figure, and in its table


def gauge_figures(history: TrialHistory, now: int, limits: GaugeLimits) -> Iterator[ReportFigure]:
    """Yield the runs in flight over a trial's time, and beside them the readings of each gauge;
    nothing where none was read. ``limits``: of each gauge, what is drawn as a line."""
    read = [(name, gauge_spans(history, name, now)) for name in history.readings]
    drawn = [(name, spans) for name, spans in read if spans][:MAX_GAUGES]
    if not drawn or history.start is None:
        return
    clock = _TrialTime(history.start, hours=now - history.start >= 3 * 3600 * SECOND_NS)
    about = "Runs that held nodes at a time. The gauges beside it were read in the same time."
    yield _over_time("Runs in flight", about, "runs", in_flight(history, now), [], clock, now)
    for name, spans in drawn:
        failed = sum(value is None for _, value in history.readings[name])
        about = f"{count(len(history.readings[name]), 'reading')}"
        about += f", {failed} of which failed; a gap has none." if failed else "."
        lines = [ReferenceLine(at, text, "bad") for at, text in limits.get(name, ())]
        yield _over_time(f"Gauge {name}", about, name, spans, lines, clock, now)


def _over_time(
    title: str,
    about: str,
    what: str,
    spans: Sequence[LevelSpan],
    lines: list[ReferenceLine],
    clock: "_TrialTime",
    now: int,
) -> ReportFigure:
    """Return the figure of levels over a trial's time, from its start to ``now``."""
    points: list[tuple[float, float | None]] = []
    kept = few_levels(spans, MAX_SPANS)
    for level, following in zip(kept, [*kept[1:], None], strict=True):
        points.append((clock.at(level.start), level.value))
        if following is None or following.start > level.end:
            points += [(clock.at(level.end), level.value), (clock.at(level.end), None)]
    drawing = chart(
        [ChartSeries(what, points, "steps")],
        title=title,
        about=about,
        x=clock.axis._replace(title="time since the trial began", low=0.0, high=clock.at(now)),
        y=Axis(what),
        levels=lines,
        width=WIDTH,
        height=120,
    )
    columns = columns_of(("from (UTC)", "time"), ("to (UTC)", "time"), (what, "number"))
    rows: list[list[Cell]] = [[level.start, level.end, level.value] for level in kept]
    notes = []
    if len(kept) < len(spans):
        notes.append(f"of {len(spans):,} levels the least and the highest of each short span")
    table = bounded(title, columns, rows)
    return ReportFigure(title, about, table, str(drawing), notes, narrow=True)


# ---- runs ---------------------------------------------------------------------------------


_VERDICTS_DRAWN: Final = 6
_VERDICT_COLOURS: Final = ("good", "bad", 5, 4, 2, 7, 8)


def _runs(status: Status) -> Iterator[ReportFigure]:
    """Yield the figure of the runs of each test by verdict."""
    tests = {part.test: Counter(ended_by_verdict(part)) for part in status.parts}
    total = sum(tests.values(), Counter[str]())
    if total.total() < FEW_RUNS:
        return
    names = ["pass", *(name for name, _ in total.most_common() if name != "pass")]
    shown, rest = names[:_VERDICTS_DRAWN], names[_VERDICTS_DRAWN:]
    rows: list[list[Cell]] = []
    drawn = []
    for test, verdicts in tests.items():
        ended, passed = verdicts.total(), verdicts["pass"]
        shares = [passed / ended, 1 - passed / ended] if ended else [None, None]
        rows.append([test, ended, *(verdicts[name] for name in names), *shares])
        values = [*(verdicts[name] for name in shown), sum(verdicts[name] for name in rest)]
        missed = f", {show_share(1 - passed / ended)} did not" if passed < ended else ""
        label = f"{passed:,} of {ended:,} passed{missed}"
        drawn.append(plots.Bar(test, values if rest else values[:-1], label))
    columns = [Column("test"), *(Column(name, "count") for name in ("ended", *names))]
    columns += [Column("passed", "share"), Column("not passed", "share")]
    title = "Runs and failures of each application"
    about = (
        "Runs that ended, by their verdict; those that another run of their case replaced are "
        "called again. Recalled runs never started, and are left out."
    )
    drawing = plots.bars(
        drawn,
        title=title,
        about=about,
        axis=Axis("runs"),
        parts=[*shown, "others"] if rest else shown,
        colours=_VERDICT_COLOURS,
    )
    yield ReportFigure(title, about, bounded("Runs by verdict", columns, rows), str(drawing))


def _utilisation(status: Status) -> Iterator[ReportFigure]:
    """Yield the figure of the share of node-hours in accepted work over time."""
    points = status.over_time
    ended = sum(sum(ended_by_verdict(part).values()) for part in status.parts)
    if len(points) < 2 or not status.duration or ended < FEW_RUNS:
        return
    title = "Node-hours in accepted work over the trial's time"
    about = (
        f"Share of the available node-hours in runs that passed, in {len(points)} spans of the "
        "trial's clock."
    )
    data = bounded(
        "Accepted over time", columns_of(("until", "seconds"), ("accepted", "share")), points
    )
    whole = status.utilisation
    levels = (
        [] if whole is None else [plots.ReferenceLine(100 * whole, f"in all {100 * whole:.1f} %")]
    )
    drawing = plots.chart(
        [plots.ChartSeries("", _steps(points), "steps")],
        title=title,
        about=about,
        x=Axis("time of the trial", kind="clock"),
        y=Axis("accepted", "%", low=0, high=100),
        levels=levels,
        height=160,
    )
    yield ReportFigure(title, about, data, str(drawing))


def _steps(points: Sequence[tuple[float, float]]) -> list[tuple[float, float | None]]:
    """Return the spans that end at these points as steps, in per cent.

    Where no nodes were available there is no span, and the steps have a gap.
    """
    width = min(after - before for (before, _), (after, _) in pairwise([(0.0, 0.0), *points]))
    steps: list[tuple[float, float | None]] = []
    before = 0.0
    for end, share in points:
        if end - before > 1.5 * width:
            steps.append((before, None))
        steps += [(end - width, 100 * share), (end, 100 * share)]
        before = end
    return steps


# ---- elapsed times ------------------------------------------------------------------------


def spread(kinds: Sequence[RunKind]) -> Iterator[ReportFigure]:
    """Yield the figure of elapsed times against the median of their kind."""
    groups = []
    rows: list[list[Cell]] = []
    for kind in kinds:
        times = [
            one.elapsed
            for one in kind.runs
            if one.code in MEASURED and one.elapsed is not None and one.elapsed > 0
        ]
        if len(times) < FEW_RUNS:
            continue
        middle = median(times)
        away = sorted(100 * (time / middle - 1) for time in times)
        groups.append(plots.BoxGroup(kind.name, away))
        at = [away[round(share * (len(away) - 1))] for share in (0, 0.25, 0.5, 0.75, 1)]
        rows.append([kind.name, len(times), middle, *at])
    if not groups:
        return
    columns = columns_of(
        "runs of",
        ("n", "count"),
        ("median", "number", "s"),
        ("least", "per cent"),
        ("25 %", "per cent"),
        ("50 %", "per cent"),
        ("75 %", "per cent"),
        ("greatest", "per cent"),
    )
    title = "How alike runs are"
    about = (
        "Elapsed times of runs with a right answer, against the median of their kind: positive is "
        "slower. A box holds "
        "the middle half of them."
    )
    axis = Axis("elapsed against the median", "%")
    data = bounded("Elapsed against the median", columns, rows)
    drawing = plots.boxes(groups, title=title, about=about, axis=axis)
    yield ReportFigure(title, about, data, str(drawing))


# ---- scaling ------------------------------------------------------------------------------


def scaling_figures(tables: Sequence[Scaled]) -> Iterator[ReportFigure]:
    """Yield a figure of speed-up over nodes, tasks or threads for each test and metric."""
    together: dict[tuple[str, str, str], list[Scaled]] = {}
    for one in tables:
        test = one.case.partition("{")[0].partition("@")[0]
        together.setdefault((test, one.metric, one.x), []).append(one)
    for (test, metric, x), panels in list(together.items())[:MAX_SCALING_FIGURES]:
        if sum(cell.n for cell in _cells_of(panels)) >= FEW_RUNS:
            yield _scaled(test, metric, x, panels)


def _cells_of(panels: Sequence[Scaled]) -> list[ScalingCell]:
    """Return the cells of all lines of some tables."""
    return [cell for panel in panels for line in panel.lines for cell in line.cells]


def _of_cell(one: ScalingCell) -> list[Cell]:
    """Return the row of a cell, without its case."""
    share = one.promised.share if one.promised else None
    interval = one.speedup, one.low, one.high
    return [one.x, one.median, one.n, share, *interval, one.ideal, one.efficiency, one.reason]


def _scaled(test: str, metric: str, x: str, panels: Sequence[Scaled]) -> ReportFigure:
    rows: list[list[Cell]] = []
    curves = []
    for case, cells in [(panel.case, line.cells) for panel in panels for line in panel.lines]:
        rows += [[case, *_of_cell(one)] for one in cells]
        points = [(c.x, c.speedup, c.low, c.high) for c in cells if c.speedup is not None]
        if points:
            curves.append(plots.Curve(case, points))
    columns = columns_of(
        "case",
        (x, "number"),
        ("median", "number", panels[0].unit),
        ("n", "count"),
        (COLUMN, "share"),
        ("speed-up", "number"),
        ("95 % from", "number"),
        ("to", "number"),
        ("ideal", "number"),
        ("efficiency", "share"),
        "why not",
    )
    title = f"Scaling of {test} over {x}"
    better = f"{metric}, {panels[0].better} is better"
    fixed = all(panel.fixed for panel in panels)
    about = f"Speed-up of {better}, against the smallest number of {x}."
    if fixed:
        about = f"Speed by {better}, over that of the best {x}: the resources are the same."
    drawn = f"{len(curves)} curves, {MAX_CURVES} drawn"
    notes = [drawn] if len(curves) > MAX_CURVES else []
    notes += told(one.promised for one in _cells_of(panels))
    drawing = scaling_plot(
        curves[:MAX_CURVES],
        title=title,
        about=about,
        x=Axis(x),
        y=Axis("speed over the best" if fixed else "speed-up"),
        ideal=0.0 if fixed else 1.0,
        height=150,
    )
    data = bounded(f"Scaling of {test}", columns, rows)
    return ReportFigure(title, about, data, str(drawing), notes)


# ---- parts of a whole ---------------------------------------------------------------------


def parts_figures(record: Record, history: TrialHistory) -> Iterator[ReportFigure]:
    """Yield a figure of the parts of each whole that a test names: their mean shares in the runs of
    each case with a right answer."""
    together: dict[tuple[str, str], list[tuple[str, int, Whole]]] = {}
    for case, wholes in _wholes(record, history):
        for one in wholes:
            together.setdefault((case.test, one[0].name), []).append(
                (case.name, len(one), averaged(one))
            )
    for (test, name), rows in together.items():
        yield _parts(test, name, rows)


def _wholes(record: Record, history: TrialHistory) -> Iterator[tuple[Case, list[list[Whole]]]]:
    """Yield the cases whose test names parts, with the wholes of their runs, by name."""
    right: dict[int, list[RunHistory]] = {}
    for run in history.runs:
        if run.right and not run.is_excluded:
            right.setdefault(run.case, []).append(run)
    for number, case in enumerate(history.cases):
        parts = record.tests[case.test].parts
        found: dict[str, list[Whole]] = {}
        for run in right.get(number, ()) if parts else ():
            for whole in breakdowns(parts, _of_run(run)):
                if whole.parts:
                    found.setdefault(whole.name, []).append(whole)
        if found:
            yield case, list(found.values())


def _of_run(run: RunHistory) -> list[MetricRow]:
    """Return the figures of a run, with the time of its script."""
    names = dict.fromkeys([*(run.figures or {}), ELAPSED])
    known = [(name, run.figure(name)) for name in names]
    return [MetricRow(name, one.value, one.unit, one.better) for name, one in known if one]


def _parts(test: str, name: str, rows: Sequence[tuple[str, int, Whole]]) -> ReportFigure:
    columns = columns_of(
        "case", ("runs", "count"), "part", ("mean", "number", rows[0][2].unit), ("share", "share")
    )
    cells: list[list[Cell]] = [
        [case, n, part.name, part.value, part.share] for case, n, one in rows for part in one.parts
    ]
    title = f"Parts of {name} of {test}"
    about = "Mean shares over the runs with a right answer; other is what the parts leave."
    drawing = stacked([(case, one) for case, _, one in rows], title)
    return ReportFigure(title, about, bounded(title, columns, cells), str(drawing))


# ---- elapsed figures -----------------------------------------------------------------------------
#
# Draw elapsed time against start for each kind of runs, with outliers by their class.


MAX_FIGURES: Final = 24  # figures
MAX_NOTES: Final = 30  # marked in a figure
WIDTH: Final = 420  # two figures stand side by side

CLASSES: Final[dict[Class, str]] = {
    "walltime": "at its walltime",
    "slow": "slow",
    "short": "too short",
    "failed": "failed",
}
_LOOKS: Final[dict[Class, tuple[int | str, int]]] = {  # colour, shape
    "walltime": ("bad", 3),
    "slow": (5, 2),
    "short": (4, 5),
    "failed": ("bad", 8),
}


class _TrialTime(NamedTuple):
    """The axis of the time since a trial began (ns): in hours, of a trial under three hours in
    what fits."""

    start: int
    hours: bool

    @property
    def axis(self) -> Axis:
        name = "start since the trial began"
        return Axis(name, "h") if self.hours else Axis(name, kind="clock")

    def at(self, time: int) -> float:
        return (time - self.start) / SECOND_NS / (3600 if self.hours else 1)


def courses(
    kinds: Sequence[RunKind], notes: Sequence[Note], outages: Sequence[Span], start: int
) -> Iterator[ReportFigure]:
    """Yield a figure for each kind with FEW_RUNS or more of known time, up to MAX_FIGURES.
    ``start``: when the trial began, in ns."""
    shown = [kind for kind in kinds if _timed(kind)]
    last = max((run.script_started or 0 for kind in shown for run in kind.runs), default=0)
    clock = _TrialTime(start, hours=last - start >= 3 * 3600 * SECOND_NS)
    marks = [Mark(clock.at(note.time), note.text) for note in notes[:MAX_NOTES]]
    spans = [ShadedSpan(clock.at(begin), clock.at(end), "outage") for begin, end in outages]
    for number, kind in enumerate(shown[:MAX_FIGURES]):
        figure = _course(kind, marks, spans, clock)
        if number == MAX_FIGURES - 1 and len(shown) > MAX_FIGURES:
            figure.notes.append(
                f"{count(len(shown) - MAX_FIGURES, 'further kind')} of runs not drawn"
            )
        yield figure


def _timed(kind: RunKind) -> bool:
    known = sum(one.script_started is not None and one.elapsed is not None for one in kind.runs)
    return known >= FEW_RUNS


def _course(
    kind: RunKind, marks: list[Mark], outages: Sequence[ShadedSpan], clock: _TrialTime
) -> ReportFigure:
    title = f"Elapsed time against start: {kind.name}"
    tally = Counter(outlier.kind for outlier in kind.found.outliers)
    classes = ", ".join(f"{n} {CLASSES[name]}" for name, n in tally.items()) or "none stands out"
    about = f"{len(kind.runs):,} runs; {classes}."
    levels = []
    if (middle := kind.found.median) is not None:
        about += f" Median of the complete ones {_median_words(middle)}."
        levels = [ReferenceLine(middle, f"median {show_number(middle)} s", "text")]
    points, untold, undrawn = _points(kind, clock)
    notes = [*_undrawn(untold, undrawn), *filter(None, [kind.found.reason])]
    drawing = chart(
        _series(points),
        title=title,
        about=about,
        x=clock.axis,
        y=Axis("elapsed", "s"),
        marks=marks,
        spans=outages,
        levels=levels,
        width=WIDTH,
        height=120,
    )
    return ReportFigure(title, about, _table(kind), str(drawing), notes, narrow=True)


def _median_words(seconds: float) -> str:
    """Return a time as the axis has it, in seconds; a longer one also in hours and minutes."""
    words = show_seconds(seconds)
    return words if seconds < 60 else f"{seconds:,.4g} s ({words})"


def _undrawn(untold: int, undrawn: Counter[Class | Literal[""]]) -> Iterator[str]:
    """Yield which runs are not drawn where they ended, or not at all."""
    if untold:
        yield "Runs ended at their walltime told no time; they are drawn there."
    if undrawn:
        number = undrawn.total()
        classes = ", ".join(
            f"{n} {CLASSES[name] if name else 'as the others'}" for name, n in undrawn.items()
        )
        yield (
            f"{count(number, 'run')} whose script has no times {'is' if number == 1 else 'are'} "
            f"not drawn: {classes}."
        )


_Points = dict[str, list[tuple[float, float | None]]]  # by class, "" for runs that are usual


def _points(kind: RunKind, clock: _TrialTime) -> tuple[_Points, int, Counter[Class | Literal[""]]]:
    """Return (start, elapsed) of the runs by class, how many of these have no elapsed time, and how
    many of each class are not drawn.

    Runs that ended at their walltime are drawn at it; others without times are not.
    """
    undrawn: Counter[Class | Literal[""]] = Counter()
    points: _Points = {"": [], **{name: [] for name in CLASSES}}
    untold = 0
    for run, name, _ in _in_order(kind):
        height = run.elapsed
        if height is None and name == "walltime":
            height = run.walltime
            untold += run.script_started is not None
        if run.script_started is not None and height is not None:
            points[name].append((clock.at(run.script_started), height))
        else:
            undrawn[name] += 1
    return points, untold, undrawn


def _in_order(kind: RunKind) -> Iterator[tuple[RunOutcome, Class | Literal[""], str]]:
    """Yield the runs in order of their start, with their class and the reason for it."""
    outliers = {outlier.run: outlier for outlier in kind.found.outliers}
    for run in sorted(kind.runs, key=lambda run: run.script_started or 0):
        outlier = outliers.get(f"{run.trial}/{run.run_id}")
        yield run, outlier.kind if outlier else "", outlier.reason if outlier else ""


def _series(points: _Points) -> list[ChartSeries]:
    return [
        ChartSeries("as the others", points[""], "dots", 1, 1),
        *(
            ChartSeries(f"{text} ({len(points[name])})", points[name], "dots", *_LOOKS[name])
            for name, text in CLASSES.items()
            if points[name]
        ),
    ]


def _table(kind: RunKind) -> Table:
    """Return the table of the runs, outliers first."""
    columns = columns_of(
        ("script started (UTC)", "time"),
        "run",
        ("elapsed", "number", "s"),
        "verdict",
        "class",
        "why",
    )
    rows: list[Sequence[Cell]] = []
    for run, name, reason in sorted(_in_order(kind), key=lambda each: not each[1]):
        about_run = (run.script_started, run.run_id, run.elapsed, run.verdict)
        rows.append((*about_run, CLASSES[name] if name else "", reason))
    return bounded(f"Runs of {kind.name}", columns, rows, "those that stand out first")


# ---- tables --------------------------------------------------------------------------------------
#
# Make the tables of a component: node-hours, the mix, sub-phases, variability, notes.


MAX_ROWS: Final = 500  # of a table that belongs to no figure
SHORT: Final = 16  # digits of a checksum in a table


def phases(parts: Sequence[ReportComponent]) -> list[Table]:
    """Return the tables of the phases of a plan with their dates, and of the components that ran
    beside each other, if it has any."""
    return filled(_phases(parts), _beside_each_other(parts))


def _phases(parts: Sequence[ReportComponent]) -> Table:
    by_phase: dict[str, list[ReportComponent]] = {}
    for part in parts:
        if part.status.phase:
            by_phase.setdefault(part.status.phase, []).append(part)
    rows: list[list[Cell]] = []
    for phase, some in by_phase.items():
        names = ", ".join(part.status.component for part in some)
        rows.append([phase, names, max(part.status.nodes for part in some), *_time_of(some)])
    columns = columns_of(
        "phase", "components", ("nodes", "count"), ("from (UTC)", "time"), ("to (UTC)", "time")
    )
    return bounded("Phases", columns, rows)


def _time_of(parts: Sequence[ReportComponent]) -> tuple[int | None, int | None]:
    """Return when the first of some components began, and when all had ended."""
    begun = [part.begun for part in parts if part.begun is not None]
    ended = [part.ended or 0 for part in parts]
    return min(begun, default=None), max(ended) if all(ended) else None


def _beside_each_other(parts: Sequence[ReportComponent]) -> Table:
    rows = [
        (use.words, use.nodes, round(use.node_hours, 1), use.utilisation)
        for use in beside([part.status for part in parts])
    ]
    columns = columns_of(
        "components", ("nodes", "count"), ("node-hours", "number"), ("accepted", "share")
    )
    about = "by one clock: the nodes of each count until the last of them ended"
    return bounded("Components beside each other", columns, rows, about)


def node_hours(status: Status) -> Iterator[Table]:
    """Yield the table of node-hours by use, from the criterion on utilisation."""
    results = [each[0] for each in status.criteria if each[0].criterion == "utilisation"]
    if not results:
        return
    numbers = results[0].numbers
    available = numbers.get("available node-hours")
    if not isinstance(available, int | float) or not available:
        return
    rows = (
        (name.removesuffix(" node-hours"), hours, hours / available)
        for name, hours in numbers.items()
        if name.endswith(" node-hours") and isinstance(hours, int | float)
    )
    columns = columns_of("use", ("node-hours", "number"), ("of those available", "share"))
    yield bounded("Where node-hours went", columns, rows)


def node_shares(status: Status) -> Iterator[Table]:
    """Yield the table of the planned and the achieved share of each test of a mix."""
    shares = status.node_shares
    if shares is None or shares.unclaimed is None:
        return
    rows: list[Sequence[Cell]] = []
    for each in shares.tests:
        points = 100 * (each.achieved - (each.planned or 0.0))
        planned = "fill" if each.only_fills else each.planned
        rows.append((each.test, planned, each.achieved, points, each.node_hours))
    rows.append(("no run", shares.unclaimed, shares.unused, None, None))
    columns = columns_of(
        "test",
        ("planned", "share"),
        ("achieved", "share"),
        ("difference", "number", "points"),
        ("node-hours", "number"),
    )
    about = (
        "Of the node-hours that were available: what the plan gives to each test, and what its "
        "jobs held, whatever their verdicts."
    )
    yield bounded("The mix, planned and achieved", columns, rows, about)


def sub_phases(status: Status) -> Iterator[Table]:
    """Yield the table of the sub-phases, if there are several or it is of a plan."""
    parts = status.sub_phases
    if len(parts) < 2 and not status.plan:
        return
    about = "the stretches between pauses and interruptions"
    yield reported("Sub-phases", sub_phases_table(parts), about)


def variability_tables(varied: Variability) -> list[Table]:
    """Return how much runs vary, what those that stand out share, and where their nodes were."""
    about_spread = (
        "Over the runs with a right answer; sd: standard deviation (n - 1), CV: sd over mean, "
        "MAD: median absolute deviation."
    )
    about_shared = (
        "p: the chance of as many in any span, node or group at all. Of nodes that were always "
        "together none can be told from the others."
    )
    about_places = (
        "ratio: of the times at the two ends, with its interval of 95 %; p: by permutations, "
        "corrected for all covariates of all tests."
    )
    about_spread += "".join(f" {words}." for words in told(row.promised for row in varied.rows))
    tables = [
        (spread_table(varied.rows), "Variability", about_spread),
        (shared_table(varied), "What runs that stand out share", about_shared),
        (places_table(varied), "Times and places in the network", about_places),
    ]
    return [
        bounded(title, table.columns, table.rows, about, MAX_ROWS) for table, title, about in tables
    ]


def notes_table(notes: Iterable[Note]) -> Table:
    """Return the table of what people noted."""
    rows = (
        (note.time, note.text, f"{note.user}@{note.host}" if note.user else "") for note in notes
    )
    columns = columns_of(("time (UTC)", "time"), "noted", "by")
    return bounded("Notes on the machine", columns, rows, "by `seatrial note`", MAX_ROWS)
