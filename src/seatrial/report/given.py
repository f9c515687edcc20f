"""The figure of what was measured beside figures that somebody else gave, such as a vendor."""

from collections.abc import Iterator
from typing import Final

from seatrial.draw import Axis, Interval, forest
from seatrial.errors import UsageError
from seatrial.report.content import Cell, ReportFigure, bounded
from seatrial.store.schema import Store
from seatrial.studies.compare import compare_sides
from seatrial.studies.comparison import ComparisonRow
from seatrial.studies.selection import Side, SideSelection, gather
from seatrial.trial.folder import TrialFolder

MAX_ROWS: Final = 40
_COLUMNS = (
    "case | metric | unit | given: number | n given: count | measured: number | n measured: count"
    " | better by: per cent | 95 % from: per cent | to: per cent"
)


def given_side(store: Store, tag: str) -> Side:
    """Return figures that somebody else gave, as a side. Raises UsageError if the trial measured
    its own."""
    side = gather(store, SideSelection(tag, tag, {}), given=True)
    if not side.given:
        raise UsageError(f"--given {tag}: its figures were measured; name imported ones")
    return side


def beside_given(store: Store, folder: TrialFolder, given: Side) -> Iterator[ReportFigure]:
    """Yield the figure of a trial beside given figures, if a case is in both; of runs alone where
    the trial has some."""
    try:
        own = gather(store, SideSelection(folder.tag, str(folder.path), {}))
    except UsageError:  # a checklist, or a trial in which nothing has run
        return
    stages = own.all_of("stage")
    if "alone" in stages and len(given.all_of("stage")) == 1:
        cases = [case for case in own.cases if case.stage == "alone"]
        own = Side(own.text, own.trials, cases, {"stage": "alone"})
    try:
        rows = compare_sides(given, own, elapsed=True).rows
    except UsageError:  # no case is on both sides
        return
    shown = [row for row in rows if row.better_by is not None and row.verdict == "given"]
    if not shown:
        return
    drawing = forest(
        [_interval(row, row.better_by or 0.0) for row in shown[:MAX_ROWS]],
        title=f"Measured, beside the figures of {given.text}",
        about="by how many per cent what was measured is better",
        axis=Axis("better by", "%"),
        centre=0.0,
        ends=("worse than given", "better"),
        bars=True,
    )
    about = (
        f"The figures of {given.text} were given, not measured here. Positive: what was measured "
        "is better. The intervals of 95 % are of what was measured alone. No criterion rests on "
        "them."
    )
    data = bounded(f"Beside the figures of {given.text}", _COLUMNS, map(_cells, shown))
    yield ReportFigure(f"Beside given figures: {given.text}", about, data, str(drawing))


def _interval(row: ComparisonRow, value: float) -> Interval:
    name, label = f"{row.case} {row.metric}", f"{value + 0.0:+.2f} %, given"
    return Interval(name, value, row.better_from, row.better_to, label, "muted", 4)


def _cells(row: ComparisonRow) -> list[Cell]:
    first, second = row.first, row.second
    ends = row.better_by, row.better_from, row.better_to
    return [row.case, row.metric, row.unit, first.median, first.n, second.median, second.n, *ends]
