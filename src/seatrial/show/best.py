"""Settings by their best over a range, as sections of a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from seatrial.judge.promises import COLUMN, share_cell, told
from seatrial.results.best import BestTable, OverSizes, Setting, SizeRange
from seatrial.results.given import GivenEntry
from seatrial.results.store.by_case import causes
from seatrial.show.draw import plots
from seatrial.show.draw.svg import Axis
from seatrial.show.formatting import NARROW, WIDE
from seatrial.show.given import GIVEN, given_section, range_words, value_of
from seatrial.show.page import Cell, Chart, Column, Part, Section, State, Table, Text, Tone
from seatrial.units import (
    count,
    in_per_cent,
    interval_in_per_cent,
    listed,
    show_figure,
    show_unit,
)

DRAWN = 40

_LOOKS: dict[str, tuple[str, int]] = {
    "best": ("good", 4),
    "as good": ("good", 1),
    "unclear": ("muted", 1),
    "worse": ("muted", 3),
}
MAX_NAMED = 4
HOW = (
    "The best of several noisy cases looks better than it is. So all cases of all settings were "
    "judged together: a setting is worse only if each of its cases is, and an interval holds for "
    "all pairs of cases that might have been chosen."
)


def range_sections(table: BestTable) -> list[Section]:
    """Return the sections of a table of which each setting is the best of its range."""
    unit, better = show_unit(table.unit, " in {}"), f" ({table.better} is better)"
    over, range_ = ", ".join(table.over), ", ".join(table.best_of)
    title = f"{table.case}: {table.metric}{unit}{better} over {over}, best of {range_}"
    parts: list[Part] = []
    if table.along:
        parts.append(f"along with them: {', '.join(table.along)}")
    parts += [_rows(table), *_told(table), *([Text(HOW, "quiet")] if table.settings else [])]
    if any(one.ratio is not None for one in table.settings):
        caption = "Speed in per cent of that of the best setting"
        parts.append(Chart(lambda width: forest(table, width == WIDE), caption))
    sections = [Section(title, parts)]
    return [*sections, given_section(table.given)] if table.given else sections


def _rows(table: BestTable) -> Table:
    least = table.statistic == "least"
    figure = "least" if least else "median"
    titles = [
        *(Column(name, fold=True) for name in table.over),
        Column("best at", fold=True, spare=-1),
        Column(figure, "number", unit=table.unit),
        Column("runs", "count"),
        Column("tried", "count"),
        Column(COLUMN, "share"),
        Column("of best", "share"),
        Column("95 %", "share"),
        Column("", "state"),
        Column("excluded", fold=True, spare=1),
    ]
    rows = [_row(one, least) for one in table.settings]
    return Table(titles, [*rows, *(_given_row(entry, table) for entry in table.given)])


def _row(one: Setting, least: bool) -> list[Cell]:
    at = " ".join(f"{name}={value}" for name, value in one.at.items())
    return [
        *one.values.values(),
        at,
        one.least if least else one.median,
        one.n,
        f"{one.tried} of {one.tried + one.without}" if one.without else one.tried,
        share_cell(one.promised),
        in_per_cent(one.ratio),
        interval_in_per_cent(one.low, one.high),
        State(one.word, _tone(one)),
        one.reason if not one.n else causes(one.excluded),
    ]


def _given_row(entry: GivenEntry, table: BestTable) -> list[Cell]:
    ratio = in_per_cent(entry.ratio)
    at = range_words(entry) or "not told"
    figures: list[Cell] = [value_of(entry, table.unit), None, entry.tried, "", ratio, ""]
    return [*entry.values.values(), at, *figures, GIVEN, ""]


_TONES: dict[str, Tone] = {"best": "better", "worse": "quiet", "unclear": "suspect"}


def _tone(one: Setting) -> Tone:
    return _TONES.get(one.verdict, "")


def _told(table: BestTable) -> Iterator[str]:
    """Yield what is told below the rows: the best, ties, edges of ranges."""
    if table.reason:
        yield table.reason
        return
    best = table.settings[0]
    value = best.least if table.statistic == "least" else best.median
    where = _words(best.at)
    yield f"best: {best.name}: {show_figure(value or 0.0, table.unit)} at {where}"
    if table.indistinct:
        named = "; ".join(one.name for one in table.indistinct)
        yield f"cannot be told from the best: {named}"
        yield from dict.fromkeys(f"{one.name}: {one.reason}" for one in _unclear(table.indistinct))
    elif any(one.verdict == "worse" for one in table.settings):
        yield "all others that were measured are worse, beyond noise"
    for one in table.settings:
        yield from _of_range(one)
    yield from told(one.promised for one in table.settings)


def _unclear(settings: Sequence[Setting]) -> list[Setting]:
    return [one for one in settings if one.verdict == "unclear" and one.reason]


def _of_range(one: Setting) -> Iterator[str]:
    """Yield what is told of the range of one setting."""
    if one.ties:
        ties = listed([_words(each) for each in one.ties], MAX_NAMED)
        yield f"{one.name}: {_words(one.at)} cannot be told from {ties}"
    if one.edges:
        yield (
            f"{one.name}: {'; '.join(one.edges)}: the best may lie beyond "
            f"({count(one.tried, 'case')} with a figure)"
        )


def _words(at: dict[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in at.items())


def forest(table: BestTable, wide: bool) -> Any:
    """Return the speed of each setting in per cent of the best one's, with its interval, as
    SVG."""
    measured = [one for one in table.settings if one.ratio is not None]
    rows = []
    for one in measured[:DRAWN]:
        value = 100 * (one.ratio or 0.0)
        low, high = (end and 100 * end for end in (one.low, one.high))
        label = f"{value:.1f} % {one.verdict}"
        rows.append(plots.Interval(one.name, value, low, high, label, *_LOOKS[one.verdict]))
    for entry in [each for each in table.given if each.ratio is not None][:DRAWN]:
        name = ", ".join(f"{name}={value}" for name, value in entry.values.items())
        value = 100 * (entry.ratio or 0.0)
        rows.append(plots.Interval(name, value, None, None, f"{value:.1f} % given", "warn", 3))
    return plots.forest(
        rows,
        title=f"{table.case}: speed over that of the best setting",
        about="A row for each setting, with its 95 % interval",
        axis=Axis("of the best", "%"),
        centre=100,
        width=WIDE if wide else NARROW,
        stacked=not wide,
        bars=True,
    )


# ---- the best at each size -----------------------------------------------------------------------


def size_sections(one: OverSizes) -> list[Section]:
    """Return the section of a case whose settings are ranked at each size."""
    unit = show_unit(one.unit, "in {}, ")
    sizes = count(len(one.tables), "size")
    parts: list[Part] = [f"{unit}{one.better} is better; at each of {sizes}"]
    if one.along:
        parts.append(f"along with them: {', '.join(one.along)}")
    columns = [
        Column(one.x, "number"),
        Column("best", fold=True),
        Column("least" if one.statistic == "least" else "median", "number"),
        Column("runs", "count"),
        Column(COLUMN, "number"),
        Column("cannot be told from it", fold=True),
        Column("excluded", fold=True),
    ]
    rows = [_size_row(table, one) for table in one.tables]
    title = f"{one.case}: {one.metric} over {', '.join(one.over)}, by {one.x}"
    promised = (each.promised for table in one.tables for each in table.settings[:1])
    return [Section(title, [*parts, Table(columns, rows), *_size_words(one), *told(promised)])]


def _size_row(table: BestTable, one: OverSizes) -> list[Cell]:
    size = one.named(table.size or 0.0)
    if table.reason:
        return [size, "", None, None, "", "", table.reason]
    best = table.settings[0]
    figure = best.least if one.statistic == "least" else best.median
    others = [each.name for each in table.indistinct]
    failed = [
        f"{each.name}: {each.reason or causes(each.excluded)}"
        for each in table.settings
        if not each.n
    ]
    return [
        *(size, best.name, figure, best.n, share_cell(best.promised)),
        *(listed(others, MAX_NAMED), "; ".join(failed)),
    ]


def _size_words(one: OverSizes) -> Iterator[str]:
    """Yield which settings are best over which sizes, and of how many figures this is one."""
    if len(one.ranges) == 1 and len(one.ranges[0].settings) == one.settings:
        yield "no order beyond noise that holds at every size"
    elif one.ranges:
        named = (f"{_alike(each)} {_where(each, one)}" for each in one.ranges)
        yield f"best: {', '.join(named)}"
        if any(len(each.settings) > 1 for each in one.ranges):
            yield "or: neither is told to be worse than another at any of these sizes"
    yield from of_figures(one)
    if given := sum(len(table.given) for table in one.tables):
        yield f"{count(given, 'given figure')} not shown; --metric with a size shows those of it"


def _alike(each: SizeRange) -> str:
    more = ["others"] if len(each.settings) > MAX_NAMED else []
    return " or ".join([*each.settings[:MAX_NAMED], *more])


def _where(each: SizeRange, one: OverSizes) -> str:
    first, last = one.ranges[0], one.ranges[-1]
    if first is last:
        return "at every size"
    if each is first:
        return f"up to {one.named(each.end)}"
    if each is last:
        return f"from {one.named(each.start)}"
    return f"from {one.named(each.start)} to {one.named(each.end)}"


def of_figures(one: BestTable | OverSizes) -> Iterator[str]:
    """Yield that the metric was chosen of several."""
    if one.figures > 1:
        yield f"{one.metric} is one of {one.figures} figures; --metric names another"
