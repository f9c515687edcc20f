"""Compare, Scaling, Ratio, Best and Matrix: studies of sides, which a form names."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from msgspec import to_builtins
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.judge.statistics.two_samples import MIN_RELATIVE_CHANGE
from seatrial.model.figures import ELAPSED
from seatrial.results import ratios
from seatrial.results.best import BestQuery, BestTable, OverSizes, best_settings, over_sizes
from seatrial.results.case_figures import CORES, parameters_of, varying
from seatrial.results.compare import Comparison, compare_sides
from seatrial.results.given import GivenEntry, measured_sides
from seatrial.results.matrix import ATTRIBUTES, MatrixQuery, ResultMatrix, reasons_of, result_matrix
from seatrial.results.provenance import differences, node_differences
from seatrial.results.ratios import AXES
from seatrial.results.scaling import (
    PAYS,
    CurveTable,
    Ladder,
    ScalingQuery,
    ScalingTable,
    is_over_size,
    ladders,
    over_x,
    without_metric,
)
from seatrial.results.selection import (
    Difference,
    Side,
    cases_of,
    gather,
    is_named,
    trials_of,
    words_of,
)
from seatrial.results.sizes import are_numbers, is_size, labels_of, values_of
from seatrial.results.spread_comparison import SpreadComparison, compare_spreads
from seatrial.results.store import queries
from seatrial.results.store.tables import TrialRow
from seatrial.show.best import best_page
from seatrial.show.compare import (
    MAX_ROWS,
    SORTS,
    VERDICTS,
    Choice,
    compare_page,
    ladder_sections,
    spread_sections,
)
from seatrial.show.given import given_over
from seatrial.show.matrix import matrix_page
from seatrial.show.page import Link, Page, Section, Text
from seatrial.show.ratio import ratio_page
from seatrial.show.scaling import scaling_page
from seatrial.show.web.page import PageQuery
from seatrial.show.web.server_state import ServerState
from seatrial.show.web.study_view import (
    HOW_TO_WRITE_SIDES,
    Field,
    StudyView,
    choices_of,
    in_words_of_form,
    names_rehearsal,
    side_of,
    suggested_metrics,
    suggested_trials,
    version_of,
)

T = TypeVar("T")

TABLES = 8  # on a page

# ---- compare -------------------------------------------------------------------------------------

COMPARE_ASKS = "Name two sides: two trials, two toolchains of one, two spans of time."
ROWS = 100
MAX_LADDERS = 12


class _CompareQuestion(NamedTuple):
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


class _CompareAnswer(NamedTuple):
    comparison: Comparison
    differences: list[Difference]
    rehearsed: bool
    ladders: list[Ladder]
    spreads: list[SpreadComparison]


def _compare_fields(tags: list[str]) -> list[Field]:
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


def compare(state: ServerState, query: PageQuery) -> StudyView:
    question = _CompareQuestion(
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
        fields=_compare_fields(suggested_trials(state)),
        help=HOW_TO_WRITE_SIDES,
        asks=COMPARE_ASKS,
        choices=_latest(trials),
    )
    if not question.before or not question.after:
        return view
    view = replace(view, title=f"{question.after} compared with {question.before}")
    study = state.studies.answer(
        ("compare", question), version_of(trials), lambda: _compare_judged(state, question)
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
    return replace(
        view, state="judged", rehearsed=answer.rehearsed, answer=_compare_page(answer, choice)
    )


def _compare_page(answer: _CompareAnswer, choice: Choice) -> Page:
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


def _compare_judged(state: ServerState, question: _CompareQuestion) -> _CompareAnswer:
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
    return _CompareAnswer(
        compare(0, len(sides) - 1),
        differences(first, second) + node_differences(state.store(), first, second),
        any(trial.rehearsed for side in sides for trial in side.trials),
        ladders(len(sides), compare) if question.between.split() else [],
        spreads,
    )


# ---- scaling -------------------------------------------------------------------------------------

SCALING_ASKS = "Name a trial whose cases differ in their threads, tasks, nodes or a parameter."
LINES = ("toolchain", "machine", "trial", "stage")
PAYS_FROM = "Pays from"
_NUMBER = re.compile(r"\d+(\.\d+)?")


class _ScalingAnswer(NamedTuple):
    """The tables of what was chosen; the ``xs`` are all that can grow."""

    query: ScalingQuery
    xs: list[str]
    tables: Sequence[ScalingTable] | Sequence[CurveTable]
    without: list[str]
    given: list[GivenEntry]


def _scaling_fields(metrics: list[str]) -> list[Field]:
    return [
        Field("Over", "x", "threads, nodes", 10),
        Field("Metric", "metric", "of most runs", suggested=metrics),
        Field("Lines by", "by", "toolchain, trial"),
        Field(PAYS_FROM, "pays", "50%", 5),
        Field("weak: the work grows, too", "weak", box=True),
        Field("fixed: the same resources everywhere", "fixed", box=True),
        Field("size: x is a size of the work", "size", box=True),
    ]


def scaling(state: ServerState, query: PageQuery) -> StudyView:
    question = ScalingQuery(
        x=query.text("x"),
        metric=query.text("metric"),
        by=words_of(query.text("by")),
        weak=query.flag("weak"),
        fixed=query.flag("fixed"),
        size=query.flag("size"),
        pays=query.share("pays", PAYS_FROM, PAYS),
    )
    metrics = suggested_metrics(state, ELAPSED)
    form = StudyView(title="Scaling", fields=_scaling_fields(metrics), asks=SCALING_ASKS)
    view, found = cases_view(
        state, query, form, question, partial(_scaling_judged, question), given=True
    )
    if found is None:
        return view
    return replace(
        view.suggesting(x=found.xs).choosing(x=found.query.x),
        answer=_scaling_page(found, view.first),
        found=len(found.tables),
    )


def _scaling_page(found: _ScalingAnswer, first: int) -> Page:
    """Return the answer, from a table on, with links to what else can grow."""
    page = scaling_page(_of_page(found.tables, first), found.query, found.without, found.given)
    if len(found.xs) < 2:
        return page
    names = [name if name == found.query.x else Link(name, query={"x": name}) for name in found.xs]
    return replace(page, sections=[Section("", [Text(["over", *names], "quiet")]), *page.sections])


def _scaling_judged(question: ScalingQuery, every: list[Side]) -> _ScalingAnswer:
    """Choose what grows and what the lines are by, where that was not asked for."""
    sides = measured_sides(every)
    xs = _that_grow(sides)
    x = question.x or next(iter(xs), "")
    if not x:
        raise UsageError(
            "nothing varies in these cases: no number of nodes, tasks or threads and no parameter "
            "has two values"
        )
    question = replace(question, x=x)
    if not question.by and not is_over_size(sides, question):
        question = replace(question, by=_usual_lines(sides, x))
    tables = over_x(sides, question)
    return _ScalingAnswer(
        question, xs, tables, without_metric(sides, question), given_over(every, tables)
    )


def _usual_lines(sides: list[Side], x: str) -> tuple[str, ...]:
    names = (*LINES, "tasks") if x == CORES else LINES
    return tuple(name for name in names if name != x and len(_values_of(sides, name)) > 1)


def _that_grow(sides: list[Side]) -> list[str]:
    """Return the parameters that have two values or more, those first whose values are numbers."""
    written = dict.fromkeys(name for side in sides for one in side.cases for name in one.parameters)
    several = [name for name in (*written, *AXES) if len(_values_of(sides, name)) > 1]
    numbers = [name for name in several if all(map(_NUMBER.fullmatch, _values_of(sides, name)))]
    xs = dict.fromkeys([*numbers, *(name for name in several if name in written)])
    if not {"tasks", "threads"} <= xs.keys() and CORES not in written:
        xs.pop(CORES, None)  # they are no more than one of these
    return list(dict.fromkeys([*xs, *_sizes(sides)]))


def _sizes(sides: list[Side]) -> list[str]:
    """Return the labels of figures that have two sizes or more."""
    cases = cases_of(sides)
    labels = {name: values_of(cases, name) for name in labels_of(cases)}
    return [name for name, each in labels.items() if len(each) > 1 and is_size(each, True)]


def _values_of(sides: list[Side], name: str) -> set[str]:
    return {value for side in sides for value in side.all_of(name)} - {""}


# ---- ratio ---------------------------------------------------------------------------------------

RATIO_ASKS = (
    "Name a trial whose cases ran in two ways: with two toolchains, or two values of a parameter."
)


class _RatioAsked(NamedTuple):
    of: str
    x: str
    metric: str
    weak: bool
    fixed: bool


class _RatioAnswer(NamedTuple):
    """The tables of what was chosen: ``of`` and ``x``; what else can be, and the tests that one way
    lacks."""

    of: str
    ofs: list[str]
    x: str
    xs: list[str]
    tables: list[ratios.RatioTable]
    without: list[str]


def _ratio_fields(metrics: list[str]) -> list[Field]:
    return [
        Field("Ways", "of", "toolchain=native,compat", 24),
        Field("Over", "x", "tasks, nodes", 10),
        Field("Metric", "metric", ELAPSED, suggested=metrics),
        Field("weak: the work grows, too", "weak", box=True),
        Field("fixed: the same resources everywhere", "fixed", box=True),
    ]


def ratio(state: ServerState, query: PageQuery) -> StudyView:
    question = _RatioAsked(
        **query.texts("of", "x", "metric"), weak=query.flag("weak"), fixed=query.flag("fixed")
    )
    metrics = suggested_metrics(state, ELAPSED)
    form = StudyView(title="Ratio", fields=_ratio_fields(metrics), asks=RATIO_ASKS)
    view, found = cases_view(state, query, form, question, partial(_ratio_judged, question))
    if found is None:
        return view
    tables = found.tables
    return replace(
        view.suggesting(of=found.ofs, x=found.xs).choosing(of=found.of, x=found.x),
        answer=ratio_page(_of_page(tables, view.first), tables, found.without),
        found=len(tables),
    )


def _ratio_judged(asked: _RatioAsked, sides: list[Side]) -> _RatioAnswer:
    """Choose the ways and the size, where they were not asked for."""
    varies = varying(cases_of(sides))
    ofs = []
    for name in sorted(varies, key=lambda name: name != "toolchain"):
        values = _values(sides, name)
        if len(values) == 2:
            ofs.append(f"{name}={','.join(values)}")
    ways = asked.of or next(iter(ofs), "")
    if not ways:
        raise UsageError("no parameter of these cases has two values; name two of a larger number")
    way, first, second = ratios.two_values(ways)
    sizes = [name for name in dict.fromkeys([*ratios.AXES, *varies]) if name != way]
    sizes = [name for name in sizes if len(_values(sides, name)) > 1]
    query = ratios.RatioQuery(
        of=way,
        values=(first, second),
        x=asked.x or _usual_size(sides, sizes),
        metric=asked.metric,
        weak=asked.weak,
        fixed=asked.fixed,
    )
    tables = ratios.ratios(sides, query)
    return _RatioAnswer(ways, ofs, query.x, sizes, tables, ratios.without_both(sides, tables))


def _usual_size(sides: list[Side], sizes: list[str]) -> str:
    """Return the size that is chosen where none was asked for: the first whose values are
    numbers."""
    numbers = (name for name in sizes if are_numbers(_values(sides, name)))
    return next(numbers, next(iter(sizes), ratios.AXES[0]))


def _values(sides: list[Side], name: str) -> list[str]:
    """Return the values of a parameter, in the order of the cases."""
    values = dict.fromkeys(one.attribute(name) for one in cases_of(sides))
    return [value for value in values if value]


# ---- best ----------------------------------------------------------------------------------------

BEST_ASKS = "Name a trial whose cases differ in a parameter."


def best(state: ServerState, query: PageQuery) -> StudyView:
    question = BestQuery(
        over=words_of(query.text("over")),
        best_of=words_of(query.text("best_of")),
        metric=query.text("metric"),
        x=query.text("x"),
        statistic="least" if query.flag("least") else "median",
    )

    def judged(sides: list[Side]) -> tuple[Sequence[str], list[BestTable | OverSizes]]:
        return varying(cases_of(sides)), over_sizes(best_settings(sides, question))

    metrics = suggested_metrics(state)
    fields = [
        Field("Over", "over", "all that vary", 16),
        Field("Metric", "metric", "of most runs", suggested=metrics),
        Field("Best of", "best_of", "such as nodes,tasks", 16),
        Field("By", "x", "bytes, if several", 10),
        Field("by the best of the runs, not their median", "least", box=True),
    ]
    form = StudyView(title="Best setting", fields=fields, asks=BEST_ASKS)
    view, found = cases_view(state, query, form, question, judged, given=True)
    if found is None:
        return view
    names, tables = found
    return replace(
        view.suggesting(over=names, best_of=names, x=names),
        answer=best_page(_of_page(tables, view.first)),
        found=len(tables),
    )


# ---- matrix --------------------------------------------------------------------------------------

MATRIX_ASKS = "Name a trial: its tests are shown by toolchains, or by a parameter."


def matrix(state: ServerState, query: PageQuery) -> StudyView:
    question = MatrixQuery(
        by=query.text("by") or "toolchain",
        metric=query.text("metric"),
        each_case=query.flag("cases"),
    )
    test = query.text("test")

    def judged(sides: list[Side]) -> tuple[Sequence[str], ResultMatrix]:
        reasons = reasons_of(state.store(), trials_of(sides), [test] if test else [])
        names = dict.fromkeys([*parameters_of(cases_of(sides)), *ATTRIBUTES])
        return [*names], result_matrix(sides, question, reasons)

    fields = [
        Field("Columns", "by", "toolchain", 10),
        Field("Metric", "metric", "each test's", suggested=suggested_metrics(state)),
        Field("a row for each case", "cases", box=True),
    ]
    form = StudyView(title="Matrix", fields=fields, asks=MATRIX_ASKS)
    view, found = cases_view(state, query, form, question, judged)
    if found is None:
        return view
    names, result = found
    return replace(view.suggesting(by=names), answer=matrix_page(result))


# ---- what they share -----------------------------------------------------------------------------


def cases_view(
    state: ServerState,
    query: PageQuery,
    view: StudyView,
    asked: Hashable,
    judge: Callable[[list[Side]], T],
    given: bool = False,
) -> tuple[StudyView, T | None]:
    """Return the view of a study of cases of trials without its answer, and what ``judge`` made of
    the sides that the query names; None where it is not judged. It is made in the background.

    Of ``view`` the title is the study's name, and the fields are its own; ``asked``: what they say.
    ``given``: sides may be figures that somebody gave."""
    view = replace(
        view,
        fields=fields_of_cases(state, view.fields),
        help=HOW_TO_WRITE_SIDES,
        choices=choices_of("trial", suggested_trials(state)),
        first=query.number("first", 0),
        shown=TABLES,
    )
    written, test, rehearsed = query.text("trial"), query.text("test"), query.flag("rehearsed")
    if not written:
        return view, None
    texts = written.split()

    def judged() -> tuple[T, bool]:
        tests = [test] if test else []
        sides = [
            gather(state.store(), side_of(text, rehearsed), tests, given=given) for text in texts
        ]
        made_up = any(trial.rehearsed for side in sides for trial in side.trials)
        return judge(sides), made_up

    version = version_of(queries.trials(state.store()))
    name = (view.title, asked, written, test, rehearsed)
    study = state.studies.answer(name, version, judged)
    value, made_up = study.value or (None, names_rehearsal(state.store(), texts, rehearsed))
    return replace(
        view,
        title=f"{view.title} of {written}",
        state=study.state,
        reason=in_words_of_form(study.reason, view.fields),
        rehearsed=made_up,
    ), value


def _of_page(tables: Sequence[T], first: int) -> Sequence[T]:
    """Return the tables of a page from the ``first`` on, or of the first page if there are none."""
    return tables[first : first + TABLES] or tables[:TABLES]


def fields_of_cases(state: ServerState, fields: Sequence[Field]) -> list[Field]:
    """Return the fields of a form that names trials, with those of the study's own; boxes last."""
    tags = suggested_trials(state)
    every = [
        Field("Trials", "trial", "sweep, or sweep:toolchain=gcc*", 30, tags, required=True),
        *fields,
        Field("Test", "test", "all, or a pattern"),
        Field("patterns choose rehearsals", "rehearsed", box=True),
    ]
    return sorted(every, key=lambda field: field.box)
