"""Draw elapsed time against start for each kind of runs, with outliers by their class.

for figure in courses(varied.kinds, notes, outages): figure.title
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from seatrial.draw import Axis, ChartSeries, Mark, ReferenceLine, ShadedSpan, chart
from seatrial.report.content import FEW_RUNS, Cell, ReportFigure, Table, bounded
from seatrial.statistics.outliers import Class
from seatrial.store.rows import RunOutcome
from seatrial.studies.evidence import RunKind
from seatrial.studies.note_file import Note
from seatrial.units import SECOND_NS, count, show_number, show_seconds

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


def courses(
    kinds: Sequence[RunKind], notes: Sequence[Note], outages: Sequence[ShadedSpan]
) -> Iterator[ReportFigure]:
    """Yield a figure for each kind with FEW_RUNS or more of known time, up to MAX_FIGURES."""
    marks = [Mark(note.time / SECOND_NS, note.text) for note in notes[:MAX_NOTES]]
    shown = [kind for kind in kinds if _timed(kind)]
    for number, kind in enumerate(shown[:MAX_FIGURES]):
        figure = _course(kind, marks, outages)
        if number == MAX_FIGURES - 1 and len(shown) > MAX_FIGURES:
            figure.notes.append(
                f"{count(len(shown) - MAX_FIGURES, 'further kind')} of runs not drawn"
            )
        yield figure


def _timed(kind: RunKind) -> bool:
    known = sum(one.script_started is not None and one.elapsed is not None for one in kind.runs)
    return known >= FEW_RUNS


def _course(kind: RunKind, marks: list[Mark], outages: Sequence[ShadedSpan]) -> ReportFigure:
    title = f"Elapsed time against start: {kind.name}"
    tally = Counter(outlier.kind for outlier in kind.found.outliers)
    said = ", ".join(f"{n} {CLASSES[name]}" for name, n in tally.items()) or "none stands out"
    about = f"{len(kind.runs):,} runs; {said}."
    levels = []
    if (middle := kind.found.median) is not None:
        about += f" Median of the complete ones {show_seconds(middle)}."
        levels = [ReferenceLine(middle, f"median {show_number(middle)} s", "text")]
    points, untold, undrawn = _points(kind)
    notes = [kind.found.why] if kind.found.why else []
    if undrawn:
        listed = ", ".join(
            f"{number} {CLASSES[name] if name else 'as the others'}"
            for name, number in undrawn.items()
        )
        number = undrawn.total()
        notes.insert(
            0,
            f"{count(number, 'run')} whose script has no times {'is' if number == 1 else 'are'} "
            f"not drawn: {listed}.",
        )
    if untold:
        notes.insert(0, "Runs ended at their walltime told no time; they are drawn there.")
    drawing = chart(
        _series(points),
        title=title,
        about=about,
        x=Axis("start (UTC)", kind="time"),
        y=Axis("elapsed", "s"),
        marks=marks,
        spans=outages,
        levels=levels,
        width=WIDTH,
        height=120,
    )
    return ReportFigure(title, about, _table(kind), str(drawing), notes, narrow=True)


_Points = dict[str, list[tuple[float, float | None]]]  # by class, "" for runs that are usual


def _points(kind: RunKind) -> tuple[_Points, int, Counter[Class | Literal[""]]]:
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
            points[name].append((run.script_started / SECOND_NS, height))
        else:
            undrawn[name] += 1
    return points, untold, undrawn


def _in_order(kind: RunKind) -> Iterator[tuple[RunOutcome, Class | Literal[""], str]]:
    """Yield the runs in order of their start, with their class and the reason for it."""
    found = {outlier.run: outlier for outlier in kind.found.outliers}
    for run in sorted(kind.runs, key=lambda run: run.script_started or 0):
        outlier = found.get(f"{run.trial}/{run.run_id}")
        yield run, outlier.kind if outlier else "", outlier.why if outlier else ""


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
    columns = "script started (UTC): time | run | elapsed: number, s | verdict | class | why"
    rows: list[Sequence[Cell]] = []
    for run, name, why in sorted(_in_order(kind), key=lambda each: not each[1]):
        found = (run.script_started, run.run_id, run.elapsed, run.verdict)
        rows.append((*found, CLASSES[name] if name else "", why))
    return bounded(f"Runs of {kind.name}", columns, rows, "those that stand out first")
