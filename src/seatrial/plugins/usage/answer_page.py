"""Answers to questions about what others ran, as pages: for terminals, browsers, JSON and CSV.

page = usage_page(store, Question(by=("month", "size")), context_of(["hopper"]))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from math import isnan
from typing import Any, NamedTuple

from markupsafe import Markup
from msgspec.structs import replace

from seatrial.judge.statistics.significance import wilson
from seatrial.plugins.usage.attributes import MONTH, Context, zone_name
from seatrial.plugins.usage.jobs import FAILED
from seatrial.plugins.usage.questions import (
    HOUR,
    Answer,
    Measure,
    Question,
    Row,
    answer,
    hours_text,
)
from seatrial.plugins.usage.waits import SHARES
from seatrial.results.store.schema import Store
from seatrial.show.draw.plots import Bar, bars
from seatrial.show.draw.svg import WIDTH, Axis
from seatrial.show.page import Chart, Column, Page, Part, Section, Table, Text
from seatrial.units import in_per_cent, interval_in_per_cent, show_seconds

JOULES_OF_KWH = 3_600_000
PARTS = 5
"""Parts of a stacked bar beside the others."""
BAR = 44
"""Characters of the longest bar on a terminal."""
OTHERS = "(others)"
ADDED = ("hours", "jobs", "energy")
"""Questions whose rows add up to the whole."""
_CHARTED = {"waits": "Median", "failures": "Not well"}
"""The column that a chart shows, where it is not the first one."""


def usage_page(store: Store, asked: Question, context: Context) -> Page:
    """Return the answer to a question as a page. Raises UsageError if there are no jobs."""
    found = answer(store, asked, context)
    pivoted = len(asked.by) == 2 and asked.of in ADDED
    title = f"{asked.of.capitalize()} by {' and '.join(asked.by)}"
    parts: Sequence[Part] = ["No jobs."]
    if found.rows:
        parts = _pivoted(found) if pivoted else _plain(found)
    return Page(
        title,
        [Section(title, parts), *noted(found.notes)],
        summary=_summary(found, context),
        records=partial(_records, found),
        lines=partial(_lines, found),
    )


def noted(notes: Sequence[str]) -> list[Section]:
    """Return what is to be said of an answer as the last section of its page; no section where that
    is nothing."""
    return [Section("", [Text(note, "notice") for note in notes])] if notes else []


def _summary(found: Answer, context: Context) -> str:
    asked, total = found.asked, found.total
    said = {
        "hours": lambda: (
            f"{hours_text(total['seconds'])} {asked.unit} of {count_text(total['jobs'], 'job')} "
            "that started"
        ),
        "jobs": lambda: f"{count_text(total['jobs'], 'job')} that started",
        "users": lambda: (
            f"{count_text(total['users'], 'user')} with {count_text(total['jobs'], 'job')} "
            "that started"
        ),
        "waits": lambda: (
            f"{count_text(total['jobs'], 'job')}, {total['waiting']:,} of which had not started; "
            f"median of the waits: {wait_text(total['within_0.5'])}"
        ),
        "failures": lambda: (
            f"{total['failures']:,} of {count_text(total['ended'], 'job')} that ended did not end "
            f"well, {hours_text(total['seconds'])} {asked.unit}"
        ),
        "energy": lambda: (
            f"{total['joules'] / JOULES_OF_KWH:,.1f} kWh, known of {total['known']:,} of "
            f"{count_text(total['ended'], 'job')} that ended"
        ),
    }[asked.of]()
    return f"{said}; {span_text(found.since, found.until, context)}"


def count_text(number: int, noun: str) -> str:
    """Return a number of things with thousands apart: ``13,500 jobs``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def span_text(since: int, until: int, context: Context) -> str:
    """Return a span of time for people."""
    first, last = (
        f"{datetime.fromtimestamp(time, context.zone):%Y-%m-%d %H:%M}" for time in (since, until)
    )
    return f"{first} to {last} ({zone_name(context.zone)})."


# ---- columns -------------------------------------------------------------------------------------


class _ValueColumn(NamedTuple):
    """A column of a table, from the values of a row and those of the total."""

    title: str
    cell: Callable[[Mapping[str, Any], Mapping[str, Any]], str]
    spare: int = 0


def _share(name: str) -> Callable[[Mapping[str, Any], Mapping[str, Any]], str]:
    def share(row: Mapping[str, Any], total: Mapping[str, Any]) -> str:
        return in_per_cent(row[name] / total[name]) if total[name] else ""

    return share


def _number(name: str) -> Callable[[Mapping[str, Any], Mapping[str, Any]], str]:
    return lambda row, _: f"{row[name]:,}"


def _number_or_blank(name: str) -> Callable[[Mapping[str, Any], Mapping[str, Any]], str]:
    return lambda row, _: f"{row[name]:,}" if row[name] else ""


def _of_hours(asked: Question) -> list[_ValueColumn]:
    return [
        _ValueColumn(asked.unit.capitalize(), lambda row, _: hours_text(row["seconds"])),
        _ValueColumn("Share", _share("seconds")),
        _ValueColumn("Jobs", _number("jobs")),
    ]


def _of_jobs(_: Question) -> list[_ValueColumn]:
    return [_ValueColumn("Jobs", _number("jobs")), _ValueColumn("Share", _share("jobs"))]


def _of_users(_: Question) -> list[_ValueColumn]:
    return [
        _ValueColumn("Users", _number("users")),
        _ValueColumn("Of all", _share("users")),
        _ValueColumn("Jobs", _number("jobs")),
    ]


def _of_waits(_: Question) -> list[_ValueColumn]:
    def within(share: float) -> Callable[[Mapping[str, Any], Mapping[str, Any]], str]:
        return lambda row, _: wait_text(row[f"within_{share:g}"])

    titles = ("Median", "75 % within", "90 % within", "95 % within")
    return [
        _ValueColumn("Jobs", _number("jobs")),
        _ValueColumn("Not started", _number_or_blank("waiting")),
        *(
            _ValueColumn(title, within(share), spare)
            for title, share, spare in zip(titles, SHARES, (0, 2, 0, 3), strict=True)
        ),
    ]


def wait_text(seconds: float | None) -> str:
    """Return a wait; ``-`` for one that is not known."""
    if seconds is None or isnan(seconds):
        return "-"
    return show_seconds(seconds) if seconds >= 1 else "0 s"


def _of_failures(asked: Question) -> list[_ValueColumn]:
    def interval(row: Mapping[str, Any], _: Mapping[str, Any]) -> str:
        return interval_in_per_cent(*wilson(row["failures"], row["ended"])) if row["ended"] else ""

    def part(row: Mapping[str, Any], _: Mapping[str, Any]) -> str:
        return in_per_cent(row["failures"] / row["ended"]) if row["ended"] else ""

    titles = ("Failed", "Time limit", "Node failed", "Out of memory")
    return [
        _ValueColumn("Ended", _number("ended")),
        _ValueColumn("Not well", _number("failures")),
        _ValueColumn("Part", part),
        _ValueColumn("95 %", interval, 2),
        *(
            _ValueColumn(title, _number_or_blank(name), 1)
            for title, name in zip(titles, FAILED, strict=True)
        ),
        _ValueColumn(
            f"{asked.unit.capitalize()} of these", lambda row, _: hours_text(row["seconds"]), 3
        ),
    ]


def _of_energy(_: Question) -> list[_ValueColumn]:
    def known(part: str, whole: str) -> Callable[[Mapping[str, Any], Mapping[str, Any]], str]:
        return lambda row, _: in_per_cent(row[part] / row[whole]) if row[whole] else ""

    return [
        _ValueColumn("kWh", lambda row, _: f"{row['joules'] / JOULES_OF_KWH:,.1f}"),
        _ValueColumn("Share", _share("joules")),
        _ValueColumn("Jobs", _number("ended")),
        _ValueColumn("Known of jobs", known("known", "ended")),
        _ValueColumn("Of hours", known("seconds_known", "seconds")),
    ]


_COLUMNS: Mapping[Measure, Callable[[Question], Sequence[_ValueColumn]]] = {
    "hours": _of_hours,
    "jobs": _of_jobs,
    "users": _of_users,
    "waits": _of_waits,
    "failures": _of_failures,
    "energy": _of_energy,
}


def _plain(found: Answer) -> list[Part]:
    """Return the rows as one table, with bars where they add up."""
    shown = _first_rows(found)
    columns = _COLUMNS[found.asked.of](found.asked)
    titled = [
        *(Column(title, fold=True) for title in found.titles),
        *(Column(each.title, "number", spare=each.spare) for each in columns),
    ]
    rows = [
        [*row.words, *(each.cell(row.values, found.total) for each in columns)] for row in shown
    ]
    of = found.asked.of
    titles = [each.title for each in columns]
    label = len(found.titles) + titles.index(_CHARTED.get(of, titles[0]))
    charted = [
        Bar(" ".join(row.words), [_scaled(found, row)], str(cells[label]))
        for row, cells in zip(shown, rows, strict=True)
    ]
    if of in ADDED and found.asked.by == (MONTH,):
        titled.append(Column("", only="terminal"))
        _add_bars(rows, [bar.values for bar in charted])
    return [
        _chart(found, charted, [_CHARTED.get(of, of)]),
        Table(titled, rows, total=len(found.rows), remainder="; --top shows more"),
    ]


def _add_bars(rows: Sequence[list[str]], values: Sequence[Sequence[float]]) -> None:
    """Add a cell with a bar to each row."""
    largest = max(map(sum, values), default=0) or 1
    for cells, of_row in zip(rows, values, strict=True):
        cells.append(_bar(of_row, largest, "#", BAR // 2))


def _first_rows(found: Answer) -> list[Row]:
    """Return the rows that are shown: all months, the first of others."""
    return found.rows if found.asked.by == (MONTH,) else found.rows[: found.asked.top]


def _scaled(found: Answer, row: Row) -> float:
    """Return what a chart shows of a row, in its unit."""
    if found.asked.of == "waits":
        return float(row.values["within_0.5"]) / HOUR
    unit = {"seconds": HOUR, "joules": JOULES_OF_KWH}.get(found.main, 1)
    return float(row.values[found.main]) / unit


def _chart(found: Answer, rows: Sequence[Bar], parts: Sequence[str]) -> Chart:
    units = {"hours": found.asked.unit, "energy": "kWh", "waits": "median in hours"}
    unit = units.get(found.asked.of, found.asked.of)
    drawn = partial(
        drawn_bars,
        rows,
        title=f"{found.asked.of.capitalize()} by {' and '.join(found.asked.by)}",
        parts=list(parts),
        unit=unit,
    )
    return Chart(drawn)


def drawn_bars(
    rows: Sequence[Bar], *, title: str, parts: Sequence[str], unit: str, width: int = WIDTH
) -> Markup:
    """Draw bars whose parts have the colours of series."""
    colours = [number + 1 for number in range(len(parts))]
    return bars(rows, title=title, parts=parts, colours=colours, axis=Axis(unit), width=width)


class _Pivot(NamedTuple):
    """Rows of the first attribute, each with the parts of the second."""

    names: list[str]
    parts: list[str]
    #: Of each row, the main value of each part.
    stacked: list[list[float]]
    #: Of each row, the first two cells: its sum, and its share.
    sums: list[list[str]]

    @classmethod
    def of(cls, found: Answer) -> _Pivot:
        """Return the rows of an answer. The largest words of the second attribute are the parts;
        the others are one part."""
        values: dict[str, dict[str, float]] = {}
        sums: dict[str, dict[str, Any]] = {}
        whole: dict[str, float] = {}
        for row in found.rows:
            name, part = row.words
            value = _scaled(found, row)
            values.setdefault(name, {})[part] = value
            whole[part] = whole.get(part, 0.0) + value
            of_row = sums.setdefault(name, dict.fromkeys(row.values, 0))
            for key in of_row:
                of_row[key] += row.values[key]
        parts = _parts(found.words[1], whole)
        columns = _COLUMNS[found.asked.of](found.asked)[:2]
        return cls(
            list(values),
            parts,
            [_stacked(of_row, parts) for of_row in values.values()],
            [[each.cell(of_row, found.total) for each in columns] for of_row in sums.values()],
        )

    def first(self, number: int) -> _Pivot:
        """Return the first rows."""
        return self._replace(
            names=self.names[:number], stacked=self.stacked[:number], sums=self.sums[:number]
        )


LETTERS = "ABCDEFGH"


def _pivoted(found: Answer) -> list[Part]:
    """Return the rows as stacked bars, and the share of each part in a table."""
    pivot = _Pivot.of(found)
    rows = len(pivot.names)
    if found.asked.by[0] != MONTH:
        pivot = pivot.first(found.asked.top)
    letters = "".join(
        "." if part == OTHERS else letter
        for letter, part in zip(LETTERS, pivot.parts, strict=False)
    )
    largest = max(map(sum, pivot.stacked), default=0.0) or 1.0
    lines = list(zip(pivot.names, pivot.sums, pivot.stacked, strict=True))
    bar_rows = [
        [name, sums[0], _bar(of_row, largest, letters, BAR)] for name, sums, of_row in lines
    ]
    share_rows = [
        [name, sums[1], *(in_per_cent(part / (sum(of_row) or 1.0)) for part in of_row)]
        for name, sums, of_row in lines
    ]
    first = Column(found.titles[0], fold=True)
    parts = [part.strip("()") for part in pivot.parts]
    lettered = [f"{letter} {part}" for letter, part in zip(letters, parts, strict=True)]
    sum_title = _COLUMNS[found.asked.of](found.asked)[0].title
    charted = [Bar(name, of_row, sums[0]) for name, sums, of_row in lines]
    shares = Table(
        [first, Column("Of all", "number"), *_part_columns(lettered)],
        share_rows,
        total=rows,
        remainder="; --top shows more",
        about="Each part is a share of its row.",
        only="terminal",
    )
    return [
        Table([first, Column(sum_title, "number"), Column("")], bar_rows, only="terminal"),
        _chart(found, charted, pivot.parts),
        shares,
        replace(shares, columns=[*shares.columns[:2], *_part_columns(parts)], only="browser"),
    ]


def _part_columns(titles: Sequence[str]) -> list[Column]:
    return [Column(title, "number", fold=True) for title in titles]


def _parts(ordered: Sequence[str], whole: Mapping[str, float]) -> list[str]:
    """Return the parts of stacked bars: the largest words, in their order, and the others."""
    if len(ordered) <= PARTS + 1:
        return list(ordered)
    largest = set(sorted(ordered, key=lambda each: -whole[each])[:PARTS])
    return [*(each for each in ordered if each in largest), OTHERS]


def _stacked(of_row: Mapping[str, float], parts: Sequence[str]) -> list[float]:
    values = [of_row.get(part, 0.0) for part in parts]
    if parts[-1] == OTHERS:
        values[-1] = sum(value for name, value in of_row.items() if name not in parts)
    return values


def _bar(values: Sequence[float], largest: float, letters: str, width: int) -> str:
    """Return parts as letters, end to end; their sum is rounded, not each."""
    text, until = "", 0.0
    for letter, value in zip(letters, values, strict=True):
        until += value
        text += letter * (round(width * until / largest) - len(text))
    return text


def _records(found: Answer) -> dict[str, Any]:
    asked = found.asked
    return {
        "by": list(asked.by),
        "of": asked.of,
        "unit": asked.unit,
        "machine": asked.machine,
        "where": list(asked.where),
        "since": found.since,
        "until": found.until,
        "zone": found.zone,
        "total": {name: _plain_value(value) for name, value in found.total.items()},
        "rows": [
            {
                **dict(zip(asked.by, row.words, strict=True)),
                **{name: _plain_value(value) for name, value in row.values.items()},
                **_share_of(found, row),
            }
            for row in found.rows
        ],
        "notes": found.notes,
    }


def _plain_value(value: Any) -> Any:
    return None if isinstance(value, float) and isnan(value) else value


def _share_of(found: Answer, row: Row) -> dict[str, float | None]:
    whole = found.total.get(found.main)
    share = row.values[found.main] / whole if whole else None
    return {"share": share}


def _lines(found: Answer) -> Iterable[Sequence[object]]:
    names = list(found.rows[0].values) if found.rows else []
    yield [*found.asked.by, *names, "share"]
    for row in found.rows:
        values = [_plain_value(row.values[name]) for name in names]
        yield [*row.words, *values, _share_of(found, row)["share"]]
