"""Compare: two sides, the sides between them, and how much both vary."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import to_builtins
from msgspec.structs import replace

from seatrial.judge.statistics.two_samples import MIN_RELATIVE_CHANGE
from seatrial.results.compare import Comparison, Difference, compare_sides
from seatrial.results.fact_sources import node_differences
from seatrial.results.provenance import differences
from seatrial.results.scaling import Ladder, ladders
from seatrial.results.selection import gather, is_named, words_of
from seatrial.results.spread_comparison import SpreadComparison, compare_spreads
from seatrial.results.store import queries
from seatrial.results.store.tables import TrialRow
from seatrial.show.compare import (
    MAX_ROWS,
    SORTS,
    VERDICTS,
    Choice,
    compare_page,
    ladder_sections,
    spread_sections,
)
from seatrial.show.page import Link, Page
from seatrial.show.web.filters import (
    HOW_TO_WRITE_SIDES,
    in_words_of_form,
    names_rehearsal,
    side_of,
    suggested_trials,
)
from seatrial.show.web.page import PageQuery
from seatrial.show.web.server_state import ServerState
from seatrial.show.web.study_view import Field, StudyView, version_of

ASKS = "Name two sides: two trials, two toolchains of one, two spans of time."
ROWS = 100
MAX_LADDERS = 12


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


class _Answer(NamedTuple):
    comparison: Comparison
    differences: list[Difference]
    rehearsed: bool
    ladders: list[Ladder]
    spreads: list[SpreadComparison]


def _fields(tags: list[str]) -> list[Field]:
    return [
        Field("A, before", "before", "nightly-0412", 30, tags, required=True),
        Field("B, after", "after", "nightly-0413:toolchain=gcc*", 30, tags, required=True),
        Field("Between", "between", "versions, for a ladder", 20, tags),
        Field("Metric", "metric", "all, or a pattern"),
        Field("Test", "test", "all, or a pattern"),
        Field("What matters", "least", "2%", 5),
        Field("Across", "across", "parameter", 10),
        Field("Best of", "best_of", "nodes,tasks", 10),
        Field("Verdict", "verdict", choices=VERDICTS),
        Field("Sort by", "sort", SORTS[0], choices=SORTS[1:]),
        Field("each node", "each_node", box=True),
        Field("elapsed times, too", "elapsed", box=True),
        Field("spread, too", "spread", box=True),
        Field("patterns choose rehearsals", "rehearsed", box=True),
    ]


def data(state: ServerState, query: PageQuery) -> StudyView:
    question = _Question(
        **query.texts("before", "after", "metric", "test", "across", "best_of", "between"),
        **query.flags("each_node", "elapsed", "rehearsed", "spread"),
        least=query.share("least", "What matters", MIN_RELATIVE_CHANGE),
    )
    choice = Choice(
        query.choice("verdict", VERDICTS),
        query.choice("sort", SORTS, SORTS[0]),
        query.number("rows", ROWS, least=1, most=MAX_ROWS),
    )
    trials = queries.trials(state.store())
    view = StudyView(
        title="Compare",
        fields=_fields(suggested_trials(state)),
        help=HOW_TO_WRITE_SIDES,
        asks=ASKS,
        choices=_latest(trials),
    )
    if not question.before or not question.after:
        return view
    view = replace(view, title=f"{question.after} compared with {question.before}")
    study = state.studies.answer(
        ("compare", question), version_of(trials), lambda: _judged(state, question)
    )
    answer = study.value
    if answer is None:
        sides = question.before, question.after
        return replace(
            view,
            state=study.state,
            reason=in_words_of_form(study.reason, view.fields),
            rehearsed=names_rehearsal(state.store(), sides, question.rehearsed),
        )
    return replace(view, state="judged", rehearsed=answer.rehearsed, answer=_page(answer, choice))


def _page(answer: _Answer, choice: Choice) -> Page:
    """Return the comparison, below it the ladders and the spreads that were asked for."""
    page = compare_page([answer.comparison], [answer.differences], choice)
    sections = [*page.sections]
    if answer.ladders:
        sections += ladder_sections(answer.ladders[:MAX_LADDERS])
    if answer.spreads:
        sections += spread_sections(answer.spreads)

    def records() -> dict[str, Any]:
        beside = {"ladders": answer.ladders[:MAX_LADDERS], "spreads": answer.spreads}
        return {**page.records(), **to_builtins(beside)}

    return replace(page, sections=sections, records=records)


def _latest(trials: list[TrialRow]) -> list[Link]:
    """Return the comparison of the two latest measured trials of the machine that ran last."""
    measured = [trial for trial in trials if not (trial.rehearsed or trial.given) and trial.passed]
    alike = [trial.tag for trial in measured if trial.machine == measured[0].machine]
    if len(alike) < 2:
        return []
    after, before = alike[:2]
    words = f"The latest trial with the one before it: {after} with {before}"
    return [Link(words, query={"before": before, "after": after})]


def _judged(state: ServerState, question: _Question) -> _Answer:
    tests = [question.test] if question.test else []
    texts = (question.before, *question.between.split(), question.after)
    sides = [
        gather(state.store(), side_of(text, question.rehearsed), tests, given=True)
        for text in texts
    ]
    first, second = sides[0], sides[-1]
    chosen = (lambda name: is_named(name, [question.metric])) if question.metric else None
    across = words_of(question.across)

    def compare(i: int, j: int) -> Comparison:
        more = (question.least, chosen, across, question.each_node, question.elapsed)
        return compare_sides(sides[i], sides[j], *more, words_of(question.best_of))

    spreads = []
    if question.spread:
        spreads = [compare_spreads(first, second, chosen, across, question.each_node)]
    return _Answer(
        compare(0, len(sides) - 1),
        differences(first, second) + node_differences(state.store(), first, second),
        any(trial.rehearsed for side in sides for trial in side.trials),
        ladders(len(sides), compare) if question.between.split() else [],
        spreads,
    )
