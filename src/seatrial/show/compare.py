"""Sides compared with the first one, row by row; each with the one before; or by their spread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from msgspec import Struct, to_builtins

from seatrial.judge.promises import COLUMN, NO_SHARE, share_cell, told
from seatrial.judge.statistics.significance import remedy
from seatrial.results.compare import Comparison, ComparisonRow, Mean, Sample
from seatrial.results.compare import State as Verdict
from seatrial.results.scaling import Ladder, LadderStep
from seatrial.results.selection import Difference
from seatrial.results.spread_comparison import SpreadComparison, SpreadRow, SpreadVerdict
from seatrial.show.draw import plots
from seatrial.show.draw.svg import Axis
from seatrial.show.formatting import WIDE
from seatrial.show.page import (
    Cell,
    Chart,
    Column,
    Link,
    Page,
    Part,
    Section,
    State,
    Table,
    Text,
    Tone,
)
from seatrial.show.text import letter_of
from seatrial.units import count, show_change, show_interval, show_signed, show_unit

VERDICTS: tuple[Verdict, ...] = (
    *("worse", "better", "given", "same", "unclear", "not compared", "missing"),
)
MAX_REASONS = 10
MAX_DRAWN = 40
MAX_ROWS = 5000  # of a page

SORTS = ("verdict", "change", "case", "metric")  # by their verdicts: as they were judged

_TONES: dict[str, Tone] = {
    "worse": "worse",
    "less steady": "worse",
    "better": "better",
    "steadier": "better",
    "unclear": "suspect",
}
_LOOKS: dict[str, tuple[str, int]] = {  # the colour and the form of a mark
    "worse": ("bad", 2),
    "less steady": ("bad", 2),
    "better": ("good", 4),
    "steadier": ("good", 4),
    "unclear": ("warn", 3),
    "given": ("muted", 3),
}


class Choice(Struct, frozen=True):
    """Which rows of comparisons are shown, and in which order; by default all, as they were
    judged."""

    verdict: str = ""
    sort: str = SORTS[0]
    rows: int = 0
    """How many at most; 0: all."""

    def of(self, rows: Sequence[ComparisonRow]) -> list[ComparisonRow]:
        """Return the rows with the verdict, sorted, the worst change first."""
        chosen = [row for row in rows if self.verdict in ("", row.verdict)]
        if self.sort == "change":
            return sorted(chosen, key=lambda row: (row.gain is None, row.gain or 0.0))
        if self.sort in ("case", "metric"):
            return sorted(chosen, key=lambda row: (getattr(row, self.sort), row.case, row.metric))
        return chosen

    def first(self, rows: Sequence[ComparisonRow]) -> list[ComparisonRow]:
        """Return the rows that are shown."""
        return self.of(rows)[: self.rows or None]


ALL = Choice()


def compare_page(
    compared: Sequence[Comparison],
    origins: Sequence[Sequence[Difference]],
    choice: Choice = ALL,
) -> Page:
    """Return the page of comparisons with the first side, each with that in which the sides differ
    besides."""
    names = [f"A: {compared[0].first}"]
    names += [f"{letter_of(i)}: {one.second}" for i, one in enumerate(compared, start=1)]
    sections = [Section("", names)]
    for i, (one, origin) in enumerate(zip(compared, origins, strict=True), start=1):
        sections += _comparison(one, origin, letter_of(i), choice)
    sections += [
        Section("", [Text(f"{each} (exit code 3, where nothing is worse)", only="terminal")])
        for each in _undecided(compared, by_option=", or say with --threshold what matters")
    ]
    return Page("Compare", sections, records=lambda: _record(compared, origins, choice))


def _record(
    compared: Sequence[Comparison], origins: Sequence[Sequence[Difference]], choice: Choice
) -> dict[str, Any]:
    return {
        "first": compared[0].first,
        "least": compared[0].least,
        "comparisons": [
            {
                "second": one.second,
                "across": one.across,
                "notices": one.notices,
                "differences": to_builtins(origin),
                "rows": to_builtins(choice.first(one.rows)),
                "undecided": len(one.undecided),
                "unanswered": len(one.unanswered),
                "doubts": one.doubts,
                "cures": to_builtins(one.cures),
                "geometric_means": to_builtins(one.means),
            }
            for one, origin in zip(compared, origins, strict=True)
        ],
    }


def _comparison(
    one: Comparison, origin: Sequence[Difference], letter: str, choice: Choice
) -> Iterator[Section]:
    across = f", across {', '.join(one.across)}" if one.across else ""
    notes = [Text(f"note: {notice}", "notice") for notice in one.notices]
    yield Section(f"{letter} compared with A{across}", notes)
    differences = _differences(origin, letter)
    yield Section("", [differences], only="terminal")
    doubts = [Text(each, "notice") for each in _undecided([one])]
    yield Section("", [*doubts, _counts(one), *_changes_drawn(one, letter, choice)], only="browser")
    chosen = choice.of(one.rows)
    samples = [sample for row in chosen for sample in (row.first, row.second)]
    yield Section("", [_rows(one, letter, choice), *told(each.promised for each in samples)])
    yield Section("", [*_reasons(chosen, letter)], only="terminal")
    yield Section("", [*_summary(one, letter)])
    alike = [] if origin else [_alike(one)]
    title = "In what the sides differ besides"
    yield Section(title, [differences, *alike], only="browser")


def _undecided(compared: Sequence[Comparison], by_option: str = "") -> Iterator[str]:
    """Yield what was left undecided: sides that may not be compared, rows without a right answer,
    and rows that could not have shown a change that matters, with the remedy."""
    for i, one in enumerate(compared, start=1):
        if one.doubts:
            doubts = "; ".join(one.doubts).replace("the second side", letter_of(i))
            yield f"undecided: {doubts}"
    if unanswered := sum(len(one.unanswered) for one in compared):
        yield f"no right answer on one side: {count(unanswered, 'row')}"
    if rows := [row for one in compared for row in one.undecided]:
        least = f"a change of {100 * compared[0].least:g} %"
        more_runs = remedy(max(row.needed for row in rows))
        yield f"undecided: {count(len(rows), 'row')} could not show {least}; {more_runs}{by_option}"


def _differences(differences: Sequence[Difference], letter: str) -> Table:
    columns = (
        Column("they differ in", value=lambda one: one.subject, fold=True),
        Column("what", value=_what, fold=True),
        Column("A", value=lambda one: one.first, fold=True),
        Column(letter, value=lambda one: one.second, fold=True),
    )
    return Table.of(columns, differences)


def _what(one: Difference) -> str:
    """Return what differs; of values that are too long to be shown, that they do."""
    is_told = one.first or one.second or one.subject == "trials"
    return one.what if is_told else f"{one.what} (they differ)"


def _alike(one: Comparison) -> str:
    if one.count("given"):
        return "Given figures do not tell how they were measured."
    return (
        "Nothing that is known of: machine, toolchains, tests, builds, inputs and environments are "
        "alike."
    )


def _tally(one: Comparison) -> list[tuple[Verdict, int]]:
    return [(verdict, number) for verdict in VERDICTS if (number := one.count(verdict))]


def _counts(one: Comparison) -> Text:
    """Return how many rows have each verdict, with links to these alone."""
    links = [Link(f"{number} {word}", query={"verdict": word}) for word, number in _tally(one)]
    return Text([*links, Link(f"all {len(one.rows)}", query={"verdict": ""})])


# ---- rows ----------------------------------------------------------------------------------------


def _rows(one: Comparison, letter: str, choice: Choice) -> Table:
    columns = (
        Column("verdict", "state", _verdict, fold=True),
        Column("case", value=lambda row: row.case, fold=True),
        Column("metric", value=_metric, fold=True),
        Column("A", "number", lambda row: row.first.median),
        Column(letter, "number", lambda row: row.second.median),
        Column("unit", value=lambda row: show_unit(row.unit, "{}"), fold=True),
        Column(COLUMN, "number", lambda row: _shares(row.first, row.second), fold=True),
        Column("better by", "number", _better_by),
        Column("95 %", "number", _interval),
        Column("n", value=_numbers),
        Column("why", value=partial(_why, letter=letter), fold=True, only="browser"),
    )
    all_of_them = Link(": all of them", query={"rows": str(MAX_ROWS)})
    total = len(choice.of(one.rows))
    return Table.of(columns, choice.first(one.rows), total=total, remainder=all_of_them)


def _verdict(row: ComparisonRow) -> State:
    return State(_word(row), _TONES.get(row.verdict, ""))


def _word(row: ComparisonRow) -> str:
    """Return the verdict, with the number of runs where these are few."""
    decided = row.verdict in ("better", "worse")
    return f"{row.verdict} ({row.why})" if decided and row.why else row.verdict


def _metric(row: ComparisonRow) -> Link:
    query = {"metric": row.metric, "test": row.test}
    return Link(row.metric, f"/history?{urlencode(query)}")


def _shares(first: Sample, second: Sample) -> str:
    """Return what share of what was promised each side is; "" where nothing was."""
    shares = [share_cell(sample.promised) for sample in (first, second)]
    if not (first.promised or second.promised) or set(shares) == {NO_SHARE}:
        return shares[0]
    return ", ".join(share or "-" for share in shares)


def _better_by(row: ComparisonRow) -> str:
    return "" if row.better_by is None else f"{_percent(row.better_by)} %"


def _interval(row: ComparisonRow) -> str:
    low, high = row.better_from, row.better_to
    return "" if low is None or high is None else f"{_percent(low)}..{_percent(high)}"


def _percent(value: float) -> str:
    """Return a difference in per cent with its sign and as many digits as a person reads."""
    return show_signed(value, 0 if abs(value) >= 100 else 1)


def _numbers(row: ComparisonRow) -> str:
    """Return the number of runs of both sides, and of those that are excluded."""
    excluded = ",".join(str(sum(each.excluded.values())) for each in (row.first, row.second))
    n = f"{row.first.n},{row.second.n}"
    return n if excluded == "0,0" else f"{n} ({excluded})"


def _why(row: ComparisonRow, letter: str) -> str:
    return "; ".join(_reasons_of(row, letter)).replace("--across", "“Across”")


def _reasons_of(row: ComparisonRow, letter: str) -> Iterator[str]:
    """Yield why a row is unclear, not compared or missing, and how its sides differ otherwise."""
    reason = row.why if _word(row) == row.verdict else ""
    where = f"{row.metric}: {row.range_words}" if row.best_at else ""
    for each in (reason, where, *(f"differs in {what}" for what in row.differs)):
        if each:
            yield each.replace("the first side", "A").replace("the second side", letter)


def _reasons(rows: Sequence[ComparisonRow], letter: str) -> Iterator[str]:
    """Yield the reasons of rows, each once."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        for reason in _reasons_of(row, letter):
            reasons.setdefault(reason, []).append(row.case)
    for reason, cases in [*reasons.items()][:MAX_REASONS]:
        yield f"{_cases(cases)}: {reason}"
    if len(reasons) > MAX_REASONS:
        yield f"{len(reasons) - MAX_REASONS} more reasons are in --format json"


def _cases(cases: Sequence[str]) -> str:
    names = list(dict.fromkeys(cases))
    return names[0] if len(names) == 1 else f"{names[0]} and {count(len(names) - 1, 'other case')}"


# ---- in words ------------------------------------------------------------------------------------


def _summary(one: Comparison, letter: str) -> Iterator[Part]:
    counts = ", ".join(f"{number} {verdict}" for verdict, number in _tally(one))
    yield f"{counts}; at least {100 * one.least:g} % matters"
    if any(row.better_by is not None for row in one.rows):
        yield (
            f"better by: per cent of A's median by which {letter}'s is better; "
            "positive is better, also where lower is better"
        )
    if one.without_elapsed:
        cases = count(one.without_elapsed, "case")
        words = f"elapsed time of {cases} with a figure of merit:"
        yield Text(f"{words} shown with --elapsed", only="terminal")
        yield Text([words, Link("show it", query={"elapsed": "1"})], only="browser")
    if any(row.first.excluded or row.second.excluded for row in one.rows):
        yield "n: runs of A and of the other; in brackets those that are excluded"
    yield from (cure.words("A", letter) for cure in one.cures[:MAX_REASONS])
    yield from (_mean(mean, letter) for mean in one.means)


def _mean(mean: Mean, letter: str) -> str:
    without = f"; {count(mean.without, 'row')} without a ratio" if mean.without else ""
    return (
        f"{mean.metric}: {letter} is {mean.mean:.3f} times as good, the geometric mean of "
        f"{mean.ratios} ratios{_unclear(mean)}{without}"
    )


def _unclear(mean: Mean) -> str:
    """Return how many rows of a mean are unclear, and what that means for it."""
    if not mean.unclear:
        return ""
    some = "all" if mean.unclear == mean.ratios else str(mean.unclear)
    caution = ": no evidence of a difference" if 2 * mean.unclear > mean.ratios else ""
    return f", {some} of them unclear{caution}"


# ---- drawn ---------------------------------------------------------------------------------------


def _changes_drawn(one: Comparison, letter: str, choice: Choice) -> list[Part]:
    """Return the picture of by how many per cent each row is better."""
    marks = [
        _mark(
            f"{row.case} {row.metric}",
            row.better_by,
            (row.better_from, row.better_to),
            show_change(row.better_by),
            row.verdict,
        )
        for row in choice.first(one.rows)
        if row.better_by is not None
    ]
    title = f"By how much {letter} is better than A"
    caption = f"{title}, with 95 % intervals; dashed: what matters"
    bounds = [-100 * one.least, 100 * one.least]
    more: Any = {"bounds": bounds, "ends": ("worse", "better"), "bars": True}
    return _forest(marks, title, caption, Axis("better by", "%"), centre=0, **more)


def _mark(
    name: str, value: float, ends: tuple[float | None, float | None], words: str, verdict: str
) -> plots.Interval:
    """Return a row of a picture, whose label and mark show its verdict."""
    looks = _LOOKS.get(verdict, ("muted", 1))
    return plots.Interval(name, value, *ends, f"{words} {verdict}", *looks)


def _forest(
    marks: Sequence[plots.Interval],
    title: str,
    caption: str,
    axis: Axis,
    centre: float,
    **more: Any,
) -> list[Part]:
    """Return the picture of values with their intervals, if there are some."""

    def drawn(width: int) -> Markup:
        about = "A row for each, with its 95 % interval"
        sizes: Any = {"width": width, "stacked": width < WIDE}
        shown = marks[:MAX_DRAWN]
        return plots.forest(
            shown, title=title, about=about, axis=axis, centre=centre, **sizes, **more
        )

    return [Chart(drawn, caption)] if marks else []


# ---- each side with the one before ---------------------------------------------------------------


def ladder_page(built: Sequence[Ladder]) -> Page:
    """Return the ladders, one below the other, with a row for each side."""
    return Page("Compare", ladder_sections(built), records=lambda: to_builtins(built))


def ladder_sections(built: Sequence[Ladder]) -> list[Section]:
    legend = (
        "times as good: above 1 is better, also where lower is better; the last row is the product "
        "of the steps, with its own interval"
    )
    return [*map(_ladder, built), Section("", [legend])]


def _ladder(one: Ladder) -> Section:
    unit = show_unit(one.unit, " in {}")
    title = f"{one.case}: {one.metric}{unit} ({one.better or 'unknown'} is better)"
    columns = (
        Column("side", fold=True),
        Column("median", "number"),
        Column("runs", "count"),
        Column("times as good", "number"),
        Column("95 %", "number"),
        Column("", "state"),
        Column("why", fold=True, spare=-1),
    )
    rows: list[list[Cell]] = [[one.steps[0].first, one.medians[0], one.n[0], "", "", "", ""]]
    for step, median, n in zip(one.steps, one.medians[1:], one.n[1:], strict=True):
        rows.append([step.second, median, n, *_step(step)])
    rows.append(["product", None, None, *_step(one.product)])
    return Section(title, [*_steps_drawn(one), Table(columns, rows)])


def _steps_drawn(one: Ladder) -> list[Part]:
    """Return the picture of the steps and their product."""
    steps = [(step.second, step) for step in one.steps] + [("product", one.product)]
    marks = [
        _mark(side, step.times, (step.low, step.high), f"x{step.times:.3g}", step.verdict)
        for side, step in steps
        if step.times is not None
    ]
    title = f"{one.case} {one.metric}: times as good"
    caption = "Each side beside the one before, and the product"
    return _forest(marks, title, caption, Axis("times as good", kind="log"), centre=1)


def _step(step: LadderStep) -> list[Cell]:
    times = "" if step.times is None else f"x{step.times:.3g}"
    interval = show_interval(step.low, step.high)
    return [times, interval, State(step.verdict, _TONES.get(step.verdict, "")), step.reason]


# ---- which side varies more ----------------------------------------------------------------------

_SPREADS: tuple[SpreadVerdict, ...] = ("less steady", "steadier", "unclear", "not compared")


def spread_page(compared: Sequence[SpreadComparison]) -> Page:
    """Return all comparisons with the first side, one below the other."""
    return Page("Compare", spread_sections(compared), records=lambda: to_builtins(compared))


def spread_sections(compared: Iterable[SpreadComparison]) -> list[Section]:
    legend = (
        "A and B: robust deviations in per cent of the medians; ratio: B over A, with its 95 % "
        "bootstrap interval; the verdict is by the test of Brown and Forsythe"
    )
    sections = [section for one in compared for section in _spread(one)]
    return [*sections, Section("", [legend])]


def _spread(one: SpreadComparison) -> Iterator[Section]:
    across = f", across {', '.join(one.across)}" if one.across else ""
    columns = (
        Column("verdict", "state", lambda row: State(row.verdict, _TONES.get(row.verdict, ""))),
        Column("case", value=lambda row: row.case, fold=True),
        Column("metric", value=lambda row: row.metric, fold=True),
        Column("A", "number", lambda row: _share(row.first)),
        Column("B", "number", lambda row: _share(row.second)),
        Column("ratio", "number", lambda row: "" if row.ratio is None else f"{row.ratio:.2g}"),
        Column("95 %", "number", _ratio_interval),
        Column("p", "number", lambda row: "" if row.p is None else f"{row.p:.2g}", spare=1),
        Column("n", "number", lambda row: f"{row.n[0]},{row.n[1]}"),
    )
    table = Table.of(columns, one.rows)
    title = f"spread of B = {one.second} compared with A = {one.first}{across}"
    yield Section(title, [*_spreads_drawn(one), table])
    reasons = dict.fromkeys(
        f"{row.case} {row.metric}: {row.reason}" for row in one.rows if row.reason
    )
    tally = ", ".join(
        f"{number} {verdict}" for verdict in _SPREADS if (number := one.count(verdict))
    )
    yield Section("", [*list(reasons)[:MAX_REASONS], tally])


def _spreads_drawn(one: SpreadComparison) -> list[Part]:
    """Return the picture of the ratios of both spreads."""
    marks = [
        _mark(
            f"{row.case} {row.metric}",
            row.ratio,
            (row.low, row.high),
            f"{row.ratio:.2g}",
            row.verdict,
        )
        for row in one.rows
        if row.ratio is not None
    ]
    title = "Robust deviation of B over that of A"
    caption = f"{title}; above 1: B varies more"
    return _forest(marks, title, caption, Axis("ratio", kind="log"), centre=1)


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2g} %"


def _ratio_interval(row: SpreadRow) -> str:
    return "" if row.low is None or row.high is None else f"{row.low:.2g}..{row.high:.2g}"
