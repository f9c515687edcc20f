"""Compare: two sides as ``seatrial compare`` judges them, drawn and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from seatrial import draw
from seatrial.store import queries
from seatrial.store.rows import TrialRow
from seatrial.studies.compare import (
    MIN_RELATIVE_CHANGE,
    Comparison,
    ComparisonRow,
    Mean,
    State,
    compare_sides,
)
from seatrial.studies.provenance import Difference, differences
from seatrial.studies.selection import gather, is_named
from seatrial.units import share_of, show_number
from seatrial.web.formatting import NARROW, WIDE
from seatrial.web.query import PageQuery
from seatrial.web.run_filters import names_rehearsal, side_of
from seatrial.web.state.server_state import ServerState

VERDICTS: tuple[State, ...] = ("worse", "better", "unclear", "same", "not compared", "missing")
SORTS = ("verdict", "change", "case", "metric")
ROWS = 100
MAX_ROWS = 5000
DRAWN = 40
MAX_NAMED = 300
TIMES = 10  # from this ratio on the ratio is shown, not per cent

_INKS = {"better": "good", "worse": "bad", "same": "muted", "unclear": "warn"}
_FORMS = {"better": 4, "worse": 2, "same": 1, "unclear": 3}


class ComparePage(Struct, frozen=True, kw_only=True):
    """The query and its answer. ``state`` is "asked" (no sides yet), "judging", "judged" or
    "refused" (``why``). ``matching`` rows have the verdict of the query; ``rows`` are the first
    of these."""

    before: str
    after: str
    metric: str
    test: str
    least: str
    across: str
    each_node: bool
    verdict: str
    sort: str
    state: str
    tags: list[str]
    latest: list[str]
    why: str = ""
    first: str = ""
    second: str = ""
    crossed: list[str] = []
    rehearsed: bool = False
    counts: dict[str, int] = {}
    rows: list[ComparisonRow] = []
    matching: int = 0
    means: list[Mean] = []
    notices: list[str] = []
    differences: list[Difference] = []

    def forest(self, wide: bool) -> Any:
        """Return the changes of the rows in per cent as SVG."""
        return forest(self.rows, share_of(self.least or MIN_RELATIVE_CHANGE), wide)

    def drawn(self) -> int:
        """Return how many of the rows can be drawn."""
        return sum(row.ratio is not None for row in self.rows)


class _Answer(NamedTuple):
    comparison: Comparison
    differences: list[Difference]
    rehearsed: bool


def data(state: ServerState, query: PageQuery) -> ComparePage:
    before, after = query.text("before"), query.text("after")
    trials = queries.trials(state.store())
    question: dict[str, Any] = {
        "before": before,
        "after": after,
        "metric": query.text("metric"),
        "test": query.text("test"),
        "least": query.text("least"),
        "across": query.text("across"),
        "each_node": query.flag("each_node"),
        "verdict": query.choice("verdict", VERDICTS),
        "sort": query.choice("sort", SORTS, "verdict"),
        "tags": [trial.tag for trial in trials][:MAX_NAMED],
    }
    question["latest"] = _latest(trials)
    least = query.share("least", "What matters", MIN_RELATIVE_CHANGE)
    rehearsed = query.flag("rehearsed")
    shown = query.number("rows", ROWS, least=1, most=MAX_ROWS)
    if not before or not after:
        return ComparePage(state="asked", **question)
    key = ("compare", *(question[name] for name in ("before", "after", "metric", "test")))
    key = (*key, least, question["across"], question["each_node"], rehearsed)
    version = tuple((trial.row, trial.last, trial.state) for trial in trials)
    study = state.studies.answer(key, version, lambda: _judged(state, question, least, rehearsed))
    answer = study.value
    if answer is None:
        made_up = names_rehearsal(state.store(), (before, after), rehearsed)
        why = study.reason.replace("--across", "“Across”")
        return ComparePage(state=study.state, why=why, rehearsed=made_up, **question)
    found = answer.comparison
    rows = [row for row in found.rows if question["verdict"] in ("", row.verdict)]
    return ComparePage(
        state="judged",
        first=found.first,
        second=found.second,
        crossed=found.across,
        rehearsed=answer.rehearsed,
        counts={verdict: found.count(verdict) for verdict in VERDICTS if found.count(verdict)},
        rows=_sorted(rows, question["sort"])[:shown],
        matching=len(rows),
        means=found.means,
        notices=found.notices,
        differences=answer.differences,
        **question,
    )


def _latest(trials: list[TrialRow]) -> list[str]:
    """Return the two latest measured trials of the machine that ran last, the earlier first."""
    measured = [trial for trial in trials if not trial.rehearsed and trial.passed]
    alike = [trial.tag for trial in measured if trial.machine == measured[0].machine]
    return alike[1::-1] if len(alike) > 1 else []


def _judged(state: ServerState, question: dict[str, Any], least: float, rehearsed: bool) -> _Answer:
    store = state.store()
    tests, metrics = ([question[name]] if question[name] else [] for name in ("test", "metric"))
    first, second = (
        gather(store, side_of(question[name], rehearsed), tests) for name in ("before", "after")
    )
    found = compare_sides(
        first,
        second,
        least,
        metric=(lambda name: is_named(name, metrics)) if metrics else None,
        across=[name.strip() for name in question["across"].split(",") if name.strip()],
        each_node=question["each_node"],
    )
    made_up = any(trial.rehearsed for side in (first, second) for trial in side.trials)
    return _Answer(found, differences(first, second), made_up)


def _sorted(rows: list[ComparisonRow], sort: str) -> list[ComparisonRow]:
    """Return the rows in the order of the judgement, or sorted with the worst change first."""
    if sort == "change":
        return sorted(rows, key=lambda row: (row.gain is None, row.gain or 0.0))
    if sort in ("case", "metric"):
        return sorted(rows, key=lambda row: (getattr(row, sort), row.case, row.metric))
    return rows


def forest(rows: Sequence[ComparisonRow], least: float, wide: bool = True) -> Any:
    """Draw the change of each row in per cent with its interval. Label and mark show the verdict,
    which also depends on whether larger is better."""
    intervals = []
    for row in [row for row in rows if row.ratio is not None][:DRAWN]:
        value, low, high = (_change(ratio) for ratio in (row.ratio, row.low, row.high))
        assert value is not None
        assert row.ratio is not None
        name = f"{row.case} {row.metric}"
        shown = f"{value:+.1f} %" if row.ratio < TIMES else f"×{show_number(row.ratio)}"
        label = f"{shown} {row.verdict}"
        intervals.append(
            draw.Interval(name, value, low, high, label, _INKS[row.verdict], _FORMS[row.verdict])
        )
    return draw.forest(
        intervals,
        title="Change from the first side to the second",
        about="A row for each metric of each case, with its 95 % interval",
        axis=draw.Axis("change of the figure", "%"),
        centre=0,
        bounds=[-100 * least, 100 * least],
        ends=("smaller", "larger"),
        width=WIDE if wide else NARROW,
        stacked=not wide,
    )


def _change(ratio: float | None) -> float | None:
    return None if ratio is None else 100 * (ratio - 1)
