"""Compare: two sides as ``seatrial compare`` judges them, drawn and as a table."""

from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.judge.statistics.significance import remedy
from seatrial.judge.statistics.two_samples import MIN_RELATIVE_CHANGE
from seatrial.results.compare import (
    Comparison,
    ComparisonRow,
    Cure,
    Difference,
    Mean,
    State,
    compare_sides,
)
from seatrial.results.fact_sources import node_differences
from seatrial.results.provenance import differences
from seatrial.results.scaling import Ladder, ladders
from seatrial.results.selection import gather, is_named, words_of
from seatrial.results.spread_comparison import SpreadComparison, compare_spreads
from seatrial.results.store import queries
from seatrial.results.store.tables import TrialRow
from seatrial.show.draw import plots
from seatrial.show.draw.svg import Axis
from seatrial.show.formatting import NARROW, WIDE
from seatrial.show.web.filters import names_rehearsal, side_of
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState
from seatrial.units import show_change

VERDICTS: tuple[State, ...] = (
    *("worse", "better", "given", "unclear", "same", "not compared", "missing"),
)
SORTS = ("verdict", "change", "case", "metric")
ROWS = 100
MAX_ROWS = 5000
DRAWN = 40
MAX_NAMED = 300

LADDERS = 12  # that are drawn

_SPREADS = {
    "less steady": ("bad", 2),
    "steadier": ("good", 4),
    "unclear": ("warn", 3),
    "not compared": ("muted", 1),
}
_INKS = {"better": "good", "worse": "bad", "same": "muted", "unclear": "warn", "given": "muted"}
_FORMS = {"better": 4, "worse": 2, "same": 1, "unclear": 3, "given": 3}


class _Question(NamedTuple):
    before: str
    after: str
    metric: str
    test: str
    across: str
    best_of: str
    each_node: bool
    elapsed: bool
    rehearsed: bool
    least: float
    between: str
    spread: bool


class ComparePage(Struct, frozen=True, kw_only=True):
    """The answer to a query."""

    #: "asked" (no sides yet), "judging", "judged" or "refused" (for a ``reason``).
    state: str
    #: The smallest change that matters, as a share.
    least: float
    #: Trials that the form suggests.
    tags: list[str]
    #: The two latest trials of a machine.
    latest: list[str]
    reason: str = ""
    first: str = ""
    second: str = ""
    crossed: list[str] = []
    rehearsed: bool = False
    #: How many rows have each verdict.
    counts: dict[str, int] = {}
    #: The first rows with the verdict of the query.
    rows: list[ComparisonRow] = []
    #: How many rows have that verdict.
    matching: int = 0
    means: list[Mean] = []
    notices: list[str] = []
    #: Why the sides could not be compared as a whole.
    doubts: list[str] = []
    #: How many rows could not show a change that matters, and what to do.
    undecided: int = 0
    remedy: str = ""
    without_elapsed: int = 0
    differences: list[Difference] = []
    cures: list[Cure] = []
    #: Over the sides between the two.
    ladders: list[Ladder] = []
    #: How much both vary, where that was asked.
    spread: SpreadComparison | None = None

    def ladder(self, one: Ladder, wide: bool) -> Any:
        """Return how many times as good each side is as the one before, and their product, as
        SVG."""
        rows = []
        for step in (*one.steps, one.product):
            if step.times is not None:
                name = "product" if step is one.product else step.second
                label, looks = f"x{step.times:.3g} {step.verdict}", _INKS.get(step.verdict, "muted")
                form = _FORMS.get(step.verdict, 1)
                rows.append(
                    plots.Interval(name, step.times, step.low, step.high, label, looks, form)
                )
        return _forest(rows, f"{one.case} {one.metric}: times as good", "times as good", wide)

    def spreads(self, wide: bool) -> Any:
        """Return the ratio of the spread of both sides in each row, as SVG."""
        rows = []
        for row in (self.spread.rows if self.spread else [])[:DRAWN]:
            if row.ratio is not None:
                label, looks = f"{row.ratio:.2g} {row.verdict}", _SPREADS[row.verdict]
                name = f"{row.case} {row.metric}"
                rows.append(plots.Interval(name, row.ratio, row.low, row.high, label, *looks))
        return _forest(rows, "Spread of the second side over the first", "ratio", wide)

    def forest(self, wide: bool) -> Any:
        """Return by how many per cent each row is better, with its interval, as SVG. Label and mark
        show the verdict."""
        intervals = []
        drawn = [(row, row.better_by) for row in self.rows if row.better_by is not None]
        for row, value in drawn[:DRAWN]:
            name, label = f"{row.case} {row.metric}", f"{show_change(value)} {row.verdict}"
            interval = row.better_from, row.better_to
            looks = _INKS[row.verdict], _FORMS[row.verdict]
            intervals.append(plots.Interval(name, value, *interval, label, *looks))
        return plots.forest(
            intervals,
            title="By how much the second side is better than the first",
            about="A row for each metric of each case, with its 95 % interval",
            axis=Axis("better by", "%"),
            centre=0,
            bounds=[-100 * self.least, 100 * self.least],
            ends=("worse", "better"),
            width=WIDE if wide else NARROW,
            stacked=not wide,
            bars=True,
        )


def _forest(rows: list[plots.Interval], title: str, axis: str, wide: bool) -> Any:
    return plots.forest(
        rows,
        title=title,
        about="Each with its 95 % interval; 1: no difference",
        axis=Axis(axis, kind="log"),
        centre=1,
        width=WIDE if wide else NARROW,
        stacked=not wide,
    )


class _Answer(NamedTuple):
    comparison: Comparison
    differences: list[Difference]
    rehearsed: bool
    ladders: list[Ladder]
    spread: SpreadComparison | None


def data(state: ServerState, query: PageQuery) -> ComparePage:
    question = _Question(
        **query.texts("before", "after", "metric", "test", "across", "best_of", "between"),
        **query.flags("each_node", "elapsed", "rehearsed", "spread"),
        least=query.share("least", "What matters", MIN_RELATIVE_CHANGE),
    )
    trials = queries.trials(state.store())
    verdict = query.choice("verdict", VERDICTS)
    sort = query.choice("sort", SORTS, "verdict")
    shown = query.number("rows", ROWS, least=1, most=MAX_ROWS)
    page = ComparePage(
        state="asked",
        least=question.least,
        tags=[trial.tag for trial in trials][:MAX_NAMED],
        latest=_latest(trials),
    )
    if not question.before or not question.after:
        return page
    version = tuple((trial.row, trial.last, trial.state) for trial in trials)
    study = state.studies.answer(("compare", question), version, lambda: _judged(state, question))
    answer = study.value
    if answer is None:
        made_up = names_rehearsal(
            state.store(), (question.before, question.after), question.rehearsed
        )
        reason = study.reason.replace("--across", "“Across”").replace("--best-of", "“Best of”")
        return replace(page, state=study.state, reason=reason, rehearsed=made_up)
    comparison = answer.comparison
    rows = [row for row in comparison.rows if verdict in ("", row.verdict)]
    return replace(
        page,
        state="judged",
        first=comparison.first,
        second=comparison.second,
        crossed=comparison.across,
        rehearsed=answer.rehearsed,
        counts={
            verdict: comparison.count(verdict) for verdict in VERDICTS if comparison.count(verdict)
        },
        rows=_sorted(rows, sort)[:shown],
        matching=len(rows),
        means=comparison.means,
        notices=comparison.notices,
        doubts=comparison.doubts,
        undecided=len(comparison.undecided),
        remedy=remedy(max((row.needed for row in comparison.undecided), default=0)),
        without_elapsed=comparison.without_elapsed,
        differences=answer.differences,
        cures=comparison.cures,
        ladders=answer.ladders[:LADDERS],
        spread=answer.spread,
    )


def _latest(trials: list[TrialRow]) -> list[str]:
    """Return the two latest measured trials of the machine that ran last, the earlier first."""
    measured = [trial for trial in trials if not (trial.rehearsed or trial.given) and trial.passed]
    alike = [trial.tag for trial in measured if trial.machine == measured[0].machine]
    return alike[1::-1] if len(alike) > 1 else []


def _judged(state: ServerState, question: _Question) -> _Answer:
    tests = [question.test] if question.test else []
    texts = (question.before, *question.between.split(), question.after)
    sides = [
        gather(state.store(), side_of(text, question.rehearsed), tests, given=True)
        for text in texts
    ]
    first, second = sides[0], sides[-1]
    chosen = (lambda name: is_named(name, [question.metric])) if question.metric else None
    across = [name.strip() for name in question.across.split(",") if name.strip()]

    def compare(i: int, j: int) -> Comparison:
        more = (question.least, chosen, across, question.each_node, question.elapsed)
        return compare_sides(sides[i], sides[j], *more, words_of(question.best_of))

    spread = None
    if question.spread:
        spread = compare_spreads(first, second, chosen, across, question.each_node)
    return _Answer(
        compare(0, len(sides) - 1),
        differences(first, second) + node_differences(state.store(), first, second),
        any(trial.rehearsed for side in sides for trial in side.trials),
        ladders(len(sides), compare) if question.between.split() else [],
        spread,
    )


def _sorted(rows: list[ComparisonRow], sort: str) -> list[ComparisonRow]:
    """Return the rows in the order of the judgement, or sorted with the worst change first."""
    if sort == "change":
        return sorted(rows, key=lambda row: (row.gain is None, row.gain or 0.0))
    if sort in ("case", "metric"):
        return sorted(rows, key=lambda row: (getattr(row, sort), row.case, row.metric))
    return rows
