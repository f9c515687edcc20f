"""Settings and the best of them: one by one, by their best over a range, or at each size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

from markupsafe import Markup
from msgspec import to_builtins

from seatrial.judge.promises import COLUMN, share_cell, told
from seatrial.judge.statistics.significance import remedy
from seatrial.model.figures import place_of_value
from seatrial.results.best import BestTable, OverSizes, Setting, SizeRange
from seatrial.results.case_figures import causes
from seatrial.results.given import GivenEntry
from seatrial.results.sizes import are_numbers
from seatrial.show.draw import plots
from seatrial.show.draw.svg import Axis
from seatrial.show.formatting import WIDE
from seatrial.show.given import GIVEN, given_section, range_words, value_of
from seatrial.show.page import (
    Cell,
    Chart,
    Column,
    Figure,
    Page,
    Part,
    Section,
    State,
    Table,
    Text,
    Tone,
)
from seatrial.show.scaling import of_figures
from seatrial.units import (
    count,
    in_per_cent,
    interval_in_per_cent,
    listed,
    show_unit,
)

DRAWN = 40

_LOOKS: dict[str, tuple[str, int]] = {
    "best": ("good", 4),
    "as good": ("good", 1),
    "unclear": ("muted", 1),
    "worse": ("muted", 3),
}
MAX_NAMED = 6
MAX_TIES = 4
HOW = (
    "The best of several noisy cases looks better than it is. So all cases of all settings were "
    "judged together: a setting is worse only if each of its cases is, and an interval holds for "
    "all pairs of cases that might have been chosen."
)
CAPTION = "Speed in per cent of that of the best setting, with 95 % intervals"

Shown = Sequence[BestTable | OverSizes]


def best_page(shown: Shown) -> Page:
    """Return the page of some tables of settings, and of the cases that are in none."""
    sections = [section for one in shown for section in _sections(one)]
    of_ranges = any(table.best_of and table.settings for table in _tables(shown))
    left_out = shown[0].left_out_words if shown else ""
    last: list[Part] = [
        Text(HOW if of_ranges else "", "quiet"),
        f"left out: {left_out}" if left_out else "",
    ]
    sections.append(Section("", last))
    return Page("Best settings", sections, records=lambda: to_builtins(_tables(shown)))


def _tables(shown: Shown) -> list[BestTable]:
    return [
        table for one in shown for table in (one.tables if isinstance(one, OverSizes) else [one])
    ]


def _sections(one: BestTable | OverSizes) -> list[Section]:
    if isinstance(one, OverSizes):
        return [_size_section(one)]
    about: list[Part] = [
        f"along with them: {', '.join(one.along)}" if one.along else "",
        f"constant resources: {count(one.cores, 'core')} in each setting" if one.cores else "",
        *(Text(each, only="browser") for each in _told(one)),
        *_chart(one),
        *_grid(one),
        _rows(one),
    ]
    by_option = "; --metric names another"
    told = [Text(each, only="terminal") for each in _told(one, by_option)]
    given = [given_section(one.given)] if one.given else []
    return [Section(_title(one), about), Section("", told), *given]


def _title(one: BestTable) -> str:
    unit = show_unit(one.unit, " in {}")
    better = f" ({one.better} is better)" if any(each.n for each in one.settings) else ""
    range_ = f", best of {', '.join(one.best_of)}" if one.best_of else ""
    return f"{one.case}: {one.metric}{unit}{better} over {', '.join(one.over)}{range_}"


def _chart(one: BestTable) -> list[Part]:
    """Return the picture of the settings, if several can be compared."""
    if all(each.ratio is None for each in one.settings):
        return []
    return [Chart(partial(forest, one), CAPTION)]


def _grid(one: BestTable) -> list[Part]:
    """Return the settings over two parameters as a table of both."""
    if len(one.over) != 2 or one.reason:
        return []
    by_values = {tuple(each.values.values()): each for each in one.settings}
    down, across = (
        sorted(dict.fromkeys(values), key=place_of_value) for values in zip(*by_values, strict=True)
    )
    rows = [[row, *(_share(by_values.get((row, each))) for each in across)] for row in down]
    columns = [Column(" by ".join(one.over)), *(Column(name, "share") for name in across)]
    title = "Per cent of the best; marked: on the plateau"
    return [Table(columns, rows, title=title, only="browser")]


def _share(one: Setting | None) -> Cell:
    if one is None:
        return ""
    if one.ratio is None:
        return State("failed", "quiet")
    share = in_per_cent(one.ratio)
    return State(share, "better") if one.on_plateau else share


def _rows(table: BestTable) -> Table:
    least = table.statistic == "least"
    columns = [
        *(_value_column(name, table) for name in table.over),
        Column("best at", fold=True, spare=-1),
        Column("least" if least else "median", "number"),
        Column("bound", "number"),
        Column("runs", "count"),
        Column("tried", "count"),
        Column(COLUMN, "share"),
        Column("of the best", "share"),
        Column("95 %", "share", spare=-1),
        Column("", "state"),
        Column("excluded", fold=True),
    ]
    rows = [_row(one, least) for one in table.settings]
    return Table(columns, [*rows, *(_given_row(entry, table) for entry in table.given)])


def _value_column(name: str, table: BestTable) -> Column:
    bound = [one.values for one in table.settings] + [entry.values for entry in table.given]
    values = [values[name] for values in bound if name in values]
    return Column(name, "number" if are_numbers(values) else "text", fold=True)


def _row(one: Setting, least: bool) -> list[Cell]:
    return [
        *one.values.values(),
        _words(one.at),
        one.least if least else one.median,
        one.bound if least else None,
        one.n,
        _tried(one),
        share_cell(one.promised),
        in_per_cent(one.ratio),
        interval_in_per_cent(one.low, one.high),
        State("" if one.verdict == "no figure" else one.word, _TONES.get(one.verdict, "")),
        _excluded(one),
    ]


def _tried(one: Setting) -> Cell:
    """Return how many cases of a range have a figure; nothing for a setting of one case."""
    if one.without:
        return f"{one.tried} of {one.tried + one.without}"
    return one.tried or None


def _excluded(one: Setting) -> str:
    """Return which runs were left out; of a setting without a figure why it has none."""
    return causes(one.excluded) if one.n or not one.reason else one.reason


def _given_row(entry: GivenEntry, table: BestTable) -> list[Cell]:
    at = (range_words(entry) or "not told") if table.best_of else ""
    figures: list[Cell] = [value_of(entry, table.unit), None, None, entry.tried or None, ""]
    return [*entry.values.values(), at, *figures, in_per_cent(entry.ratio), "", GIVEN, ""]


_TONES: dict[str, Tone] = {"best": "better", "worse": "quiet", "unclear": "suspect"}


def _told(one: BestTable, by_option: str = "") -> Iterator[Cell]:
    """Yield what is told of the settings: the best, those as good, edges of ranges."""
    if one.reason:
        yield one.reason
        return
    best = one.settings[0]
    figure = best.least if one.statistic == "least" else best.median
    where = [f"at {_words(best.at)}"] if best.at else []
    yield [f"best: {best.name}:", Figure(figure or 0.0, one.unit), *where]
    yield from _others(one)
    if one.agreement[1]:
        yield "best in {} of {} {}".format(*one.agreement, one.blocks)
    yield from _plateau(one)
    yield from chain.from_iterable(map(_of_range, one.settings))
    if one.figures > 1:
        yield f"{one.metric} is one of {one.figures} figures{by_option}"
    yield from told(each.promised for each in one.settings)
    if failed := sum(each.verdict == "no figure" for each in one.settings):
        yield f"{count(failed, 'setting')} without a figure"


def _others(one: BestTable) -> Iterator[str]:
    """Yield which settings cannot be told from the best one, or that all are worse."""
    if one.indistinct:
        yield f"cannot be told from the best: {_named(one.indistinct)}"
        yield from _unclear(one.indistinct)
    elif any(each.verdict == "worse" for each in one.settings):
        measured = " that were measured" if one.given else ""
        yield f"all others{measured} are worse, beyond noise"


def _plateau(one: BestTable) -> Iterator[str]:
    """Yield which settings are about as good as the best one, and where figures drop."""
    around = [each for each in one.settings[1:] if each.on_plateau]
    if one.plateau and around:
        named = f"plateau: the best and {_named(around)}"
        yield f"{named}: within 5 % of it, or as good within the noise"
    for drop in one.drops:
        yield drop.words(one.over[0])


def _unclear(settings: list[Setting]) -> Iterator[str]:
    """Yield why settings are unclear, each reason once, and the remedy."""
    reasons: dict[str, list[Setting]] = {}
    for each in settings:
        if each.verdict == "unclear" and each.reason:
            reasons.setdefault(each.reason, []).append(each)
    for reason, unclear in list(reasons.items())[:MAX_NAMED]:
        whose = "all of these" if 1 < len(unclear) == len(settings) else _named(unclear)
        yield f"{whose}: {reason}"
    if needed := max((each.needed for each in settings), default=0):
        yield remedy(needed)


def _named(settings: list[Setting]) -> str:
    more = len(settings) - MAX_NAMED
    named = "; ".join(each.name for each in settings[:MAX_NAMED])
    return f"{named} and {more} more" if more > 0 else named


def _of_range(one: Setting) -> Iterator[str]:
    """Yield what is told of the range of one setting."""
    if one.ties:
        ties = listed([_words(each) for each in one.ties], MAX_TIES)
        yield f"{one.name}: {_words(one.at)} cannot be told from {ties}"
    if one.edges:
        yield (
            f"{one.name}: {'; '.join(one.edges)}: the best may lie beyond "
            f"({count(one.tried, 'case')} with a figure)"
        )


def _words(at: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in at.items())


def forest(table: BestTable, width: int) -> Markup:
    """Draw the speed of each setting in per cent of the best one's, with its interval."""
    measured = [_interval(one) for one in table.settings if one.ratio is not None]
    given = [_given_interval(each) for each in table.given if each.ratio is not None]
    return plots.forest(
        [*measured[:DRAWN], *given[:DRAWN]],
        title=f"{table.case}: speed over that of the best setting",
        about="A row for each setting, with its 95 % interval",
        axis=Axis("of the best", "%"),
        centre=100,
        width=width,
        stacked=width < WIDE,
        bars=True,
    )


def _interval(one: Setting) -> plots.Interval:
    value = 100 * (one.ratio or 0.0)
    low, high = (end and 100 * end for end in (one.low, one.high))
    label = f"{value:.1f} % {one.verdict}"
    return plots.Interval(one.name, value, low, high, label, *_LOOKS[one.verdict])


def _given_interval(entry: GivenEntry) -> plots.Interval:
    name = ", ".join(f"{name}={value}" for name, value in entry.values.items())
    value = 100 * (entry.ratio or 0.0)
    return plots.Interval(name, value, None, None, f"{value:.1f} % given", "warn", 3)


# ---- the best at each size -----------------------------------------------------------------------


def _size_section(one: OverSizes) -> Section:
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
    return Section(title, [*parts, Table(columns, rows), *_size_words(one), *told(promised)])


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
        *(listed(others, MAX_TIES), "; ".join(failed)),
    ]


def _size_words(one: OverSizes) -> Iterator[Part]:
    """Yield which settings are best over which sizes, and of how many figures this is one."""
    if len(one.ranges) == 1 and len(one.ranges[0].settings) == one.settings:
        yield "no order beyond noise that holds at every size"
    elif one.ranges:
        named = (f"{_alike(each)} {_where(each, one)}" for each in one.ranges)
        yield f"best: {', '.join(named)}"
        if any(len(each.settings) > 1 for each in one.ranges):
            yield "or: neither is told to be worse than another at any of these sizes"
    yield from of_figures(one.metric, one.figures)
    if given := sum(len(table.given) for table in one.tables):
        yield f"{count(given, 'given figure')} not shown; --metric with a size shows those of it"


def _alike(each: SizeRange) -> str:
    more = ["others"] if len(each.settings) > MAX_TIES else []
    return " or ".join([*each.settings[:MAX_TIES], *more])


def _where(each: SizeRange, one: OverSizes) -> str:
    first, last = one.ranges[0], one.ranges[-1]
    if first is last:
        return "at every size"
    if each is first:
        return f"up to {one.named(each.end)}"
    if each is last:
        return f"from {one.named(each.start)}"
    return f"from {one.named(each.start)} to {one.named(each.end)}"
