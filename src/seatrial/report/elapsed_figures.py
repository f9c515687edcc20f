"""Figures of elapsed time against start, one for each kind of runs: outliers by their class.

for figure in courses(found): figure.title
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, get_args

from markupsafe import Markup

from seatrial.draw import Axis, ChartSeries, Mark, ReferenceLine, chart
from seatrial.report.content import Cell, ReportColumn, ReportFigure, Table, bounded
from seatrial.report.trial_findings import TrialFindings
from seatrial.statistics.outliers import Class
from seatrial.store.rows import RunOutcome
from seatrial.studies.evidence import RunKind
from seatrial.units import SECOND_NS, count, show_number, show_seconds

MAX_FIGURES: Final = 24  # figures
MAX_NOTES: Final = 30  # that are marked in a figure
WIDTH: Final = 420  # they stand side by side

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


def courses(found: TrialFindings) -> Iterator[ReportFigure]:
    """A figure for each kind of which two runs or more told their time; the first of them."""
    shown = [kind for kind in found.varied.kinds if _timed(kind)]
    for number, kind in enumerate(shown[:MAX_FIGURES]):
        figure = _course(kind, found)
        if number == MAX_FIGURES - 1 and len(shown) > MAX_FIGURES:
            figure.notes.append(
                f"{count(len(shown) - MAX_FIGURES, 'further kind')} of runs not drawn"
            )
        yield figure


def _timed(kind: RunKind) -> bool:
    return sum(one.script_started is not None and one.elapsed is not None for one in kind.runs) > 1


def _course(kind: RunKind, found: TrialFindings) -> ReportFigure:
    title = f"Elapsed time against start: {kind.name}"
    tally = Counter(outlier.kind for outlier in kind.found.outliers)
    said = ", ".join(f"{n} {CLASSES[name]}" for name, n in tally.items()) or "none stands out"
    about = f"{len(kind.runs):,} runs; {said}."
    if kind.found.median is not None:
        about += f" Median of the complete ones {show_seconds(kind.found.median)}."
    points, untold = _points(kind)
    notes = [kind.found.why] if kind.found.why else []
    if untold:
        notes.insert(0, "Runs ended at their walltime told no time; they are drawn there.")
    drawing = _drawing(kind, points, found, title, about)
    return ReportFigure(title, about, _table(kind), str(drawing), notes, narrow=True)


_Points = dict[str, list[tuple[float, float | None]]]  # by class, "" for those like the others


def _points(kind: RunKind) -> tuple[_Points, int]:
    """(start, elapsed) of the runs, and how many of them told no time: those that were ended at
    their walltime stand there."""
    points: _Points = {"": [], **{name: [] for name in CLASSES}}
    untold = 0
    for each in _in_order(kind):
        height = each.run.elapsed
        if height is None and each.kind == "walltime":
            height, untold = each.run.walltime, untold + 1
        if each.run.script_started is not None and height is not None:
            points[each.kind].append((each.run.script_started / SECOND_NS, height))
    return points, untold


class _Classed(NamedTuple):
    run: RunOutcome
    kind: Class | Literal[""]
    why: str


def _in_order(kind: RunKind) -> Iterator[_Classed]:
    """The runs by their start, with their class."""
    found = {outlier.run: outlier for outlier in kind.found.outliers}
    for run in sorted(kind.runs, key=lambda run: run.script_started or 0):
        outlier = found.get(f"{run.trial}/{run.run_id}")
        yield _Classed(run, outlier.kind if outlier else "", outlier.why if outlier else "")


def _drawing(
    kind: RunKind, points: _Points, found: TrialFindings, title: str, about: str
) -> Markup:
    series = [ChartSeries("as the others", points[""], "dots", 1, 1)]
    series += [
        ChartSeries(f"{CLASSES[name]} ({len(points[name])})", points[name], "dots", *_LOOKS[name])
        for name in get_args(Class)
        if points[name]
    ]
    middle = kind.found.median
    levels = (
        [] if middle is None else [ReferenceLine(middle, f"median {show_number(middle)} s", "text")]
    )
    return chart(
        series,
        title=title,
        about=about,
        x=Axis("start (UTC)", kind="time"),
        y=Axis("elapsed", "s"),
        marks=[Mark(note.time / SECOND_NS, note.text) for note in found.notes[:MAX_NOTES]],
        spans=found.outages,
        levels=levels,
        width=WIDTH,
        height=120,
    )


def _table(kind: RunKind) -> Table:
    """The runs, those that stand out first."""
    columns = [
        *(
            ReportColumn("script started (UTC)", "time"),
            ReportColumn("run"),
            ReportColumn("elapsed", "number", "s"),
        ),
        *(ReportColumn("verdict"), ReportColumn("class"), ReportColumn("why")),
    ]
    ordered = sorted(_in_order(kind), key=lambda each: not each.kind)
    rows: list[list[Cell]] = [
        [
            *(each.run.script_started, each.run.run_id, each.run.elapsed, each.run.verdict),
            *(CLASSES[each.kind] if each.kind else "", each.why),
        ]
        for each in ordered
    ]
    return bounded(f"Runs of {kind.name}", columns, rows, "those that stand out first")
