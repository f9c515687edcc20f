"""Draw the figures of a component, each with its data as a table.

    for figure in figures(status, pairs): figure.title, figure.drawing

Everything that is drawn was computed by ``acceptance`` and ``studies``: the results of criteria,
the classes of outliers, the table of variability, scaling.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from seatrial import draw
from seatrial.acceptance.criteria import Result
from seatrial.acceptance.status import Status
from seatrial.draw import scaling as scaling_plot
from seatrial.report.content import (
    FEW_RUNS,
    Cell,
    ReportColumn,
    ReportFigure,
    bounded,
    columns_of,
    ended_by_verdict,
)
from seatrial.store.queries import MEASURED
from seatrial.studies.evidence import RunKind
from seatrial.studies.scaling import ScalingTable as Scaled
from seatrial.units import show_share

MAX_SCALING_FIGURES: Final = 12
MAX_CURVES: Final = 8  # in a figure of scaling


def figures(status: Status, pairs: Sequence[Result]) -> list[ReportFigure]:
    """Return the figures of criteria and runs that have data. ``pairs``: the results of the
    criterion slowdown, first that of all cases together."""
    return [*_difference(pairs), *_runs(status), *_utilisation(status)]


# ---- alone and at full machine ------------------------------------------------------------


def _difference(pairs: Sequence[Result]) -> Iterator[ReportFigure]:
    """Yield the figure of each case at full machine against alone, from the slowdown results."""
    each = pairs[1:] or pairs
    runs = (one.numbers.get(key) for one in each for key in ("alone n", "full n"))
    if sum(n for n in runs if isinstance(n, int | float)) < FEW_RUNS:
        return
    rows: list[list[Cell]] = []
    drawn = []
    keys = ("alone", "alone n", "full", "full n", "waves")
    for one in each:
        numbers = {k: value for k, value in one.numbers.items() if not isinstance(value, str)}
        low, high = numbers.get("low"), numbers.get("high")
        cells = [numbers.get(key) for key in keys]
        rows.append([one.subject, *cells, one.value, low, high, one.words, one.why])
        if one.value is not None:
            colour = {"met": "good", "not met": "bad"}.get(one.state, "muted")
            form = {"met": 1, "not met": 8}.get(one.state, 4)
            label = f"{one.value + 0.0:+.2f} %"
            drawn.append(draw.Interval(one.subject, one.value, low, high, label, colour, form))
    columns = (
        "case | alone: number | n alone: count | at full machine: number | n full: count"
        " | waves: count | better by: per cent | 95 % from: per cent | to: per cent | state"
        " | why"
    )
    title = "Each application alone and at full machine"
    about = (
        "Median at full machine against the median alone, in per cent; positive is better. Bars "
        "are intervals of 95 %."
    )
    data = bounded("Alone and at full machine", columns, rows)
    drawing = draw.forest(
        drawn,
        title=title,
        about=about,
        axis=draw.Axis("better by", "%"),
        centre=0.0,
        ends=("worse at full machine", "better"),
        bars=True,
    )
    yield ReportFigure(title, about, data, str(drawing))


# ---- runs ---------------------------------------------------------------------------------


def _runs(status: Status) -> Iterator[ReportFigure]:
    """Yield the figure of the runs of each test by verdict."""
    total: Counter[str] = Counter()
    for part in status.parts:
        total.update(ended_by_verdict(part))
    if total.total() < FEW_RUNS:
        return
    names = ["pass", *(name for name, _ in total.most_common() if name != "pass")]
    shown = names[:6]
    rest = names[6:]
    legend = [*shown, *(["others"] if rest else [])]
    colours: list[int | str] = ["good", "bad", 5, 4, 2, 7, 8]
    rows: list[list[Cell]] = []
    drawn = []
    for part in status.parts:
        verdicts = ended_by_verdict(part)
        ended = sum(verdicts.values())
        passed = verdicts.get("pass", 0)
        rows.append([part.test, ended, *(verdicts.get(n, 0) for n in names)])
        rows[-1] += [passed / ended, 1 - passed / ended] if ended else [None, None]
        values = [verdicts.get(name, 0) for name in shown]
        values += [sum(verdicts.get(name, 0) for name in rest)] if rest else []
        label = f"{passed:,} of {ended:,} passed"
        missed = f", {show_share(1 - passed / ended)} did not" if passed < ended else ""
        drawn.append(draw.Bar(part.test, values, label + missed))
    columns = f"test | ended: count | {': count | '.join(names)}: count"
    columns += " | passed: share | not passed: share"
    title = "Runs and failures of each application"
    about = (
        "Runs that ended, by their verdict; those that another run of their case replaced are "
        "called again. Recalled runs never started, and are left out."
    )
    axis = draw.Axis("runs")
    drawing = draw.bars(drawn, title=title, about=about, axis=axis, parts=legend, colours=colours)
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
    data = bounded("Accepted over time", "until: seconds | accepted: share", points)
    whole = status.utilisation
    levels = (
        [] if whole is None else [draw.ReferenceLine(100 * whole, f"in all {100 * whole:.1f} %")]
    )
    drawing = draw.chart(
        [draw.ChartSeries("", _steps(points), "steps")],
        title=title,
        about=about,
        x=draw.Axis("time of the trial", kind="clock"),
        y=draw.Axis("accepted", "%", low=0, high=100),
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
        groups.append(draw.BoxGroup(kind.name, away))
        at = [away[round(share * (len(away) - 1))] for share in (0, 0.25, 0.5, 0.75, 1)]
        rows.append([kind.name, len(times), middle, *at])
    if not groups:
        return
    columns = (
        "runs of | n: count | median: number, s | least: per cent | 25 %: per cent"
        " | 50 %: per cent | 75 %: per cent | greatest: per cent"
    )
    title = "How alike runs are"
    about = (
        "Elapsed times of runs with a right answer, against the median of their kind: positive is "
        "slower. A box holds "
        "the middle half of them."
    )
    axis = draw.Axis("elapsed against the median", "%")
    data = bounded("Elapsed against the median", columns, rows)
    drawing = draw.boxes(groups, title=title, about=about, axis=axis)
    yield ReportFigure(title, about, data, str(drawing))


# ---- scaling ------------------------------------------------------------------------------


def scaling_figures(tables: Sequence[Scaled]) -> Iterator[ReportFigure]:
    """Yield a figure of speed-up over nodes, tasks or threads for each test and metric."""
    together: dict[tuple[str, str, str], list[Scaled]] = {}
    for one in tables:
        test = one.case.partition("{")[0].partition("@")[0]
        together.setdefault((test, one.metric, one.x), []).append(one)
    for (test, metric, x), panels in list(together.items())[:MAX_SCALING_FIGURES]:
        cells = [cell for panel in panels for line in panel.lines for cell in line.cells]
        if sum(cell.n for cell in cells) >= FEW_RUNS:
            yield _scaled(test, metric, x, panels)


def _scaled(test: str, metric: str, x: str, panels: Sequence[Scaled]) -> ReportFigure:
    rows: list[list[Cell]] = []
    curves = []
    for panel in panels:
        for line in panel.lines:
            points = []
            for cell in line.cells:
                measured: list[Cell] = [panel.case, cell.x, cell.median, cell.n, cell.speedup]
                rows.append([*measured, cell.low, cell.high, cell.ideal, cell.efficiency, cell.why])
                if cell.speedup is not None:
                    points.append((cell.x, cell.speedup, cell.low, cell.high))
            if points:
                curves.append(draw.Curve(panel.case, points))
    columns = columns_of(
        f"case | {x}: number | median: number | n: count | speed-up: number | 95 % from: number"
        " | to: number | ideal: number | efficiency: share | why not"
    )
    columns[2] = ReportColumn("median", "number", panels[0].unit)
    title = f"Scaling of {test} over {x}"
    better = f"{metric}, {panels[0].better} is better"
    fixed = all(panel.fixed for panel in panels)
    about = f"Speed-up of {better}, against the smallest number of {x}."
    if fixed:
        about = f"Speed by {better}, over that of the best {x}: the resources are the same."
    drawn = f"{len(curves)} curves, {MAX_CURVES} drawn"
    notes = [drawn] if len(curves) > MAX_CURVES else []
    drawing = scaling_plot(
        curves[:MAX_CURVES],
        title=title,
        about=about,
        x=draw.Axis(x),
        y=draw.Axis("speed over the best" if fixed else "speed-up"),
        ideal=0.0 if fixed else 1.0,
        height=150,
    )
    data = bounded(f"Scaling of {test}", columns, rows)
    return ReportFigure(title, about, data, str(drawing), notes)
