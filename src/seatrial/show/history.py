"""The history of a metric, or of how often runs passed: the page of ``seatrial history``."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial.judge.promises import COLUMN, share_cell, told
from seatrial.judge.statistics.changes import MIN_POINTS
from seatrial.results.given import GivenEntry
from seatrial.results.history import (
    SUCCESS_RATE,
    History,
    ReportedChange,
    SuccessRate,
    SuccessRates,
)
from seatrial.results.references import Expected
from seatrial.results.store.export import iso
from seatrial.results.store.series import Point
from seatrial.show.formatting import run_address, trial_address
from seatrial.show.given import given_section
from seatrial.show.page import (
    Cell,
    Column,
    Dots,
    Figure,
    Link,
    Mark,
    Page,
    Part,
    Section,
    State,
    Table,
    Text,
    TimeChart,
    Tone,
)
from seatrial.show.text import GIVEN, LEGEND, show_minute
from seatrial.units import (
    better_by,
    count,
    day_of,
    direction_text,
    in_per_cent,
    interval_in_per_cent,
    show_change,
    show_figure,
    show_unit,
)

MAX_LARGE = 4  # series that are shown in full; of more only those that changed are
MAX_ROWS = 100  # series of an overview
MAX_NOTES = 26
NEAR = 0.5  # least share of what was promised that is drawn with it
MAX_RATES = 50  # of a test, the latest

REHEARSED = State("rehearsed", "rehearsed")


class View(Struct, frozen=True):
    """Which part of an answer is shown, and what is known beside it."""

    first: int = 0
    number: int = MAX_ROWS
    """The series of an overview, from the ``first`` on."""
    points: int = 0
    """Rows of the table of figures, if there is one series."""
    rehearsed: frozenset[tuple[str, str]] = frozenset()
    """Tags and machines of trials whose figures were never measured."""
    reference: Callable[[History], Expected | None] = lambda history: None
    """Returns the reference by which the latest run of a series was judged."""

    def made_up(self, history: History, point: Point) -> bool:
        return (point.trial, history.series.machine) in self.rehearsed


_TERMINAL = View()
_OF_NOISE = "noise: robust standard deviation beside the changes, over the median"

# ---- a metric -----------------------------------------------------------------------------


def by_change(histories: Sequence[History]) -> list[History]:
    """Return the series in the order in which people look at them: the greatest confirmed change
    for the worse first, then other changes, then those without one."""
    return sorted(histories, key=_severity, reverse=True)


def _severity(history: History) -> float:
    shares = ((abs(each.percent or 0), each.worse) for each in history.told if each.confirmed)
    return max((share if worse else -1 / (1 + share) for share, worse in shares), default=-2.0)


def history_page(
    histories: Sequence[History],
    metric: str,
    view: View = _TERMINAL,
    others: Sequence[GivenEntry] = (),
) -> Page:
    """Return the page of some series of a metric, and of ``others``: given figures of cases that
    have no series."""
    if len(histories) <= MAX_LARGE:
        sections = [_whole(history, view) for history in histories]
    else:
        sections = _overview(histories, view)
    if any(isinstance(p, TimeChart) for each in sections if not each.small for p in each.parts):
        signs = [f"{GIVEN} given, not measured"] if any(each.given for each in histories) else []
        sections.append(Section("", [LEGEND, *signs, _OF_NOISE], only="terminal"))
    if len(histories) == 1 and view.points:
        sections.append(_figures(histories[0], view))
    if others:
        sections += _others(others, metric)
    return Page(
        f"History of {metric}",
        sections,
        _summary(histories),
        partial(history_records, histories, others),
        partial(_lines, histories, others),
    )


def _others(entries: Sequence[GivenEntry], metric: str) -> list[Section]:
    """Return the given figures of cases that have no series, over time where they have dates."""
    title = f"Given, of cases that have no series: {metric}"
    units = sorted({entry.unit for entry in entries})
    section = given_section(entries, title)
    points = [point for point in map(_given_point, entries) if point[0] is not None]
    if not points or len(units) > 1:
        return [section]
    about = f"{count(len(points), 'given figure')}"
    chart = TimeChart(title, about, [], metric, units[0], caption="Given figures", given=points)
    return [replace(section, parts=[chart, *section.parts])]


def _given_point(entry: GivenEntry) -> tuple[int | None, float, str]:
    """Return a given figure as charts show it."""
    date = f", {entry.date}" if entry.date else ""
    return (
        day_of(entry.date) if entry.date else None,
        entry.value,
        f"given: {entry.system}{date}",
    )


def _drawn_given(history: History) -> tuple[list[GivenEntry], list[GivenEntry]]:
    """Return the given figures of a series that are drawn, and those that are not: one far beyond
    the others would leave no room for them."""
    known = [entry for entry in history.given if not entry.reason]
    values = history.series.values
    if not values:
        return known, []
    low, high = min(values), max(values)
    reach = max(high - low, abs(high), abs(low))
    drawn = [entry for entry in known if low - reach <= entry.value <= high + reach]
    return drawn, [entry for entry in known if entry not in drawn]


def _summary(histories: Sequence[History]) -> str:
    if not histories:
        return "nothing was measured here"
    confirmed = sum(each.confirmed for history in histories for each in history.told)
    alarms = sum(len(history.alarms) for history in histories)
    few = sum(history.analysis.few for history in histories)
    parts = []
    if few < len(histories):
        changes = f"{count(confirmed, 'confirmed change')}, {alarms} for the worse"
        parts.append(changes if confirmed else "no change")
    if few:
        parts.append(f"too few figures to tell in {few} of them, {MIN_POINTS} or more are needed")
    return f"{len(histories)} series: {'; '.join(parts)}"


def _overview(histories: Sequence[History], view: View) -> list[Section]:
    """Return a table of many series, and in full those that changed most; in a browser a small
    chart of each, too."""
    ordered = by_change(histories)
    shown = ordered[view.first : view.first + view.number]
    changed = [each for each in ordered if each.changed]
    advertised = told(each.promised for each in shown)
    sections = [Section("", [_series_table(shown, len(histories)), *advertised])]
    if not view.first:
        sections += [_whole(each, view) for each in changed[:MAX_LARGE]]
    if more := changed[MAX_LARGE:]:
        words = f"{len(more)} more series changed; --case shows one"
        sections.append(Section("", [words], only="terminal"))
    return [*sections, *(_small(each, view) for each in shown)]


def _series_table(shown: Sequence[History], total: int) -> Table:
    several = len({history.series.machine for history in shown}) > 1
    columns = [
        Column("case", value=_link, fold=True),
        Column("machine", value=lambda each: each.series.machine if several else ""),
        Column("n", "count", lambda each: len(each.series.points)),
        Column("left out", "count", lambda each: sum(each.series.excluded.values()) or None),
        Column("median", "number", lambda each: Figure(each.median, each.series.unit)),
        Column(COLUMN, "share", lambda each: share_cell(each.promised)),
        Column("noise", "share", _noise),
        Column("better by", value=_short, fold=True),
    ]
    remainder = " without a change; --format json shows all"
    return Table.of(columns, shown, total=total, remainder=remainder)


def _link(history: History, title: str = "") -> Link:
    """Return the link to a series alone."""
    series = history.series
    query = {"case": series.case, "machine": series.machine, "stage": series.stage}
    return Link(title or series.case_name, query=query | {"first": "", "test": ""})


def _noise(history: History) -> str:
    share = history.analysis.noise / abs(history.median) if history.median else 0
    return f"{100 * share:.2g} %" if share else ""


def _short(history: History) -> str:
    """Return in a few words how a series changed."""
    if history.analysis.reason:
        return "too few" if history.analysis.few else "none: all equal"
    suspect = sum(not each.confirmed for each in history.told)
    words = [_percent(history, each) for each in history.told if each.confirmed]
    words += [f"{suspect} suspect"] if suspect else []
    return ", ".join(words) or ("hardly enough figures" if history.analysis.limit else "")


def _percent(history: History, change: ReportedChange) -> str:
    """Return by how much a level is better than the one before; its change if the metric has no
    direction."""
    if change.percent is None:
        return ""
    return show_change(better_by(change.percent, history.series.better))


def _mark(history: History, view: View) -> Cell:
    """Return the mark of a series of which some or all was rehearsed."""
    total = len(history.series.points)
    made_up = sum(view.made_up(history, point) for point in history.series.points)
    if not made_up:
        return None
    return [REHEARSED, State(f"{made_up} of {total}" if made_up < total else "", "quiet")]


# ---- a series -----------------------------------------------------------------------------


def _whole(history: History, view: View) -> Section:
    """Return a series with all that is known of it."""
    series, analysis = history.series, history.analysis
    unit, direction = show_unit(series.unit, "{}, "), direction_text(series.better)
    share = _noise(history)
    noise = f", noise {share or show_figure(analysis.noise, series.unit)}" if analysis.noise else ""
    centre = "" if history.median is None else f", median {show_figure(history.median, '')}"
    figures = count(len(series.points), "figure")
    parts: list[Part] = [f"{unit}{direction}, {figures}{centre}{noise}"]
    if history.promised is not None:
        reached = history.promised.share is not None
        share = f"; the median is {share_cell(history.promised)} of it" if reached else ""
        parts.append(history.promised.words + share)
    if series.excluded:
        reasons = ", ".join(f"{number} {reason}" for reason, number in series.excluded.items())
        parts.append(f"left out: {count(sum(series.excluded.values()), 'run')}: {reasons}")
    parts.append(_chart(history, view))
    if analysis.reason:
        parts.append(f"nothing can be concluded: {analysis.reason}")
    elif not history.told:
        parts.append("no change")
    parts += [_changes(history), *_facts(history), _modes(history), analysis.limit, _notes(history)]
    if history.given:
        beside = given_section(history.given)
        parts += [beside.title + ":", *beside.parts, *_not_drawn(history)]
    title = f"{series.metric} of {series.case_name} on {series.machine}"
    return Section(title, parts, _link(history, title), _mark(history, view))


def _not_drawn(history: History) -> list[Part]:
    far = [entry.system for entry in _drawn_given(history)[1]]
    return [f"too far from the measured figures to be drawn: {', '.join(far)}"] if far else []


def _small(history: History, view: View) -> Section:
    series = history.series
    few = "; too few to judge" if history.analysis.few else ""
    figures = count(len(series.points), "figure")
    about = f"on {series.machine}{show_unit(series.unit, ', {}')}, {figures}{few}"
    mark = [State(about, "quiet"), _mark(history, view)]
    chart = [_chart(history, view, small=True)]
    return Section("", chart, _link(history), mark, small=True, stressed=history.changed)


def _chart(history: History, view: View, small: bool = False) -> TimeChart:
    series, changes = history.series, history.told
    dots: dict[bool, list[tuple[int, float]]] = {False: [], True: []}  # by whether rehearsed
    for point in series.points:
        dots[view.made_up(history, point)].append((point.time, point.value))
    wanted = view.reference(history) or Expected("")
    advertised = history.promised.value if history.promised and _is_near(history) else None
    return TimeChart(
        f"{series.metric} of {series.case_name} on {series.machine}",
        f"{len(series.points)} figures, {len(changes)} changes, {len(history.notes)} notes",
        [Dots(series.metric, dots[False]), Dots("rehearsed", dots[True], 4, 3)],
        series.metric,
        series.unit,
        [*_change_marks(history), *_note_marks(history)],
        history.levels,
        (
            (wanted.value, "reference"),
            (wanted.low, "least"),
            (wanted.high, "most"),
            (advertised, "advertised"),
        ),
        "Figures over time; lines: levels; marks: changes and notes",
        small,
        given=[_given_point(entry) for entry in _drawn_given(history)[0]],
    )


def _is_near(history: History) -> bool:
    """Return whether what was promised can be drawn beside the figures without pressing them into
    a line."""
    share = history.promised.share if history.promised else None
    return share is not None and NEAR < share < 1 / NEAR


def _change_marks(history: History) -> list[Mark]:
    return [
        Mark(
            each.since,
            _percent(history, each) + "?" * (not each.confirmed),
            _tone(each),
            "C" if each.confirmed else "s",
            bar=each.confirmed,
        )
        for each in history.told
    ]


def _note_marks(history: History) -> list[Mark]:
    notes = zip(string.ascii_lowercase, history.notes[-MAX_NOTES:], strict=False)
    return [Mark(note.time, note.text, letter=letter) for letter, note in notes]


def _tone(change: ReportedChange) -> Tone:
    if not change.confirmed or change.worse is None:
        return "suspect"
    return "worse" if change.worse else "better"


def _changes(history: History) -> Table:
    points, unit = history.series.points, history.series.unit
    several = len({point.trial for point in points}) > 1

    def note(change: ReportedChange) -> str:
        return f"{change.near.note.text} ({change.near.distance})" if change.near else ""

    columns = [
        Column(
            "change",
            "state",
            lambda each: State(f"{each.change.tier}{' drift' * each.drift}", _tone(each)),
        ),
        Column("since", "time", lambda each: each.since),
        Column("trial", value=lambda each: points[each.change.index].trial if several else ""),
        Column("before", "number", lambda each: Figure(each.change.before, unit)),
        Column("after", "number", lambda each: Figure(each.change.after, unit)),
        Column(
            "by" if history.series.better == "none" else "better by",
            "number",
            lambda each: _percent(history, each) or "no ratio",
        ),
        Column("", value=lambda each: State(each.word, _tone(each)) if each.word else ""),
        Column("nearest note", value=note, fold=True),
    ]
    return Table.of(columns, history.told)


def _facts(history: History) -> Iterator[str]:
    """Yield the facts of nodes that changed with each level."""
    for change in history.told:
        for each in change.facts:
            values = f": {each.first or 'none'} -> {each.second or 'none'}"
            yield (
                f"facts that changed by {show_minute(change.first)}: {each.subject}: {each.what}"
                + (values if each.first or each.second else "")
            )


def _modes(history: History) -> Table:
    """Return the modes of the figures between two changes, with their shares."""
    columns = [
        Column("pairs from", "time"),
        Column("to", "time"),
        Column("mode", "number"),
        Column("share", "share"),
    ]
    rows: list[list[Cell]] = []
    for span in history.modes:
        ends: list[Cell] = [span.first, span.last]
        for mode in span.modes:
            centre = Figure(mode.centre, history.series.unit)
            rows.append([*ends, centre, f"{100 * mode.share:.1f} %"])
            ends = [None, None]
    return Table(columns, rows)


def _notes(history: History) -> Table:
    """Return the notes beside a series, with their letters in the plot of a terminal."""
    columns = [
        Column("", value=lambda pair: pair[0], only="terminal"),
        Column("time", "time", lambda pair: pair[1].time),
        Column("note", value=lambda pair: pair[1].text, fold=True),
        Column("by", value=lambda pair: pair[1].user),
    ]
    notes = history.notes[-MAX_NOTES:]
    return Table.of(columns, zip(string.ascii_lowercase, notes, strict=False))


def _figures(history: History, view: View) -> Section:
    """Return the latest figures with their runs."""
    series = history.series

    def trial(point: Point) -> list[Cell]:
        mark = REHEARSED if view.made_up(history, point) else ""
        return [Link(point.trial, trial_address(point.trial)), mark]

    columns = [
        Column("started", "time", lambda point: point.time),
        Column(series.metric, "number", lambda point: Figure(point.value, series.unit)),
        Column("trial", value=trial),
        Column("run", value=lambda point: Link(point.run_id[:8], run_address(point))),
    ]
    latest = series.points[::-1][: view.points]
    more = [":", Link("show them", query={"points": "5000"})]
    table = Table.of(columns, latest, total=len(series.points), remainder=more)
    return Section("Figures", [table], only="browser")


def history_records(
    histories: Sequence[History], others: Sequence[GivenEntry] = ()
) -> list[dict[str, Any]]:
    """Return series as JSON has them; behind them one of no points, with the ``others``."""
    records = [_record(history) for history in histories]
    if others:
        given = msgspec.to_builtins(others)
        records.append({"metric": others[0].metric, "n": 0, "points": [], "given": given})
    return records


def _record(history: History) -> dict[str, Any]:
    series = msgspec.structs.asdict(history.series)
    del series["parts"]
    return {
        **series,
        "n": len(history.series.points),
        "noise": history.analysis.noise,
        "why": history.analysis.reason,
        "limit": history.analysis.limit,
        "changes": [_change_record(each) for each in history.told],
        "modes": [
            msgspec.to_builtins(span) | {"first": iso(span.first), "last": iso(span.last)}
            for span in history.modes
        ],
        **({"promised": msgspec.to_builtins(history.promised)} if history.promised else {}),
        "notes": [
            {"time": iso(n.time), "machine": n.machine, "text": n.text, "id": n.id}
            for n in history.notes
        ],
        "points": [
            {"time": iso(p.time), "value": p.value, "run": p.run_id, "trial": p.trial}
            for p in history.series.points
        ],
        "given": msgspec.to_builtins(history.given),
    }


def _change_record(reported: ReportedChange) -> dict[str, Any]:
    change, near = reported.change, reported.near
    note = None
    if near is not None:
        note = {"text": near.note.text, "time": iso(near.note.time), "seconds": near.seconds}
    return {
        "tier": change.tier,
        "kind": "drift" if reported.drift else "step",
        "index": change.index,
        "until": change.until,
        "since": iso(reported.since),
        "last_before": None if reported.drift else iso(reported.last),
        "settled": iso(reported.first),
        "before": change.before,
        "after": change.after,
        "percent": reported.percent,
        "worse": reported.worse,
        "strength": change.strength if change.strength != float("inf") else None,
        "nearest_note": note,
        "facts": [msgspec.structs.asdict(each) for each in reported.facts],
    }


def _lines(
    histories: Sequence[History], others: Sequence[GivenEntry] = ()
) -> Iterator[Sequence[object]]:
    """Yield a row for each figure; ``change`` is set on the first one of a new level. Given figures
    are there where they were asked for, with ``given`` in two more columns: their source."""
    titles = ("machine", "case", "case_name", "metric", "unit", "time", "value", "run", "trial")
    given = [*(entry for history in histories for entry in history.given), *others]
    more: tuple[str, ...] = ("given", "source") if given else ()
    yield *titles, "change", "stage", *more
    for history in histories:
        series = history.series
        tiers = {told.change.settled: told.change.tier for told in history.told}
        about = (series.machine, series.case, series.case_name, series.metric, series.unit)
        for index, point in enumerate(series.points):
            figure = (iso(point.time), point.value, point.run_id, point.trial)
            yield *about, *figure, tiers.get(index, ""), series.stage, *("" for _ in more)
    for entry in given:
        told = (entry.system, "", entry.case, entry.metric, entry.unit, entry.date, entry.value)
        yield *told, "", entry.trial, "", "", "given", entry.source


# ---- how often runs passed ----------------------------------------------------------------

_RATE = ("time", "trial", "passed", "counted", "value", "low", "high")


def rates_page(rates: Sequence[SuccessRates], first: int = 0, number: int | None = None) -> Page:
    """Return the page of the success rates of tests, those that did worst the latest time first."""
    ordered = sorted(rates, key=lambda one: (one.rates[-1].rate, one.test, one.machine))
    shown = ordered[first:] if number is None else ordered[first : first + number]
    about = (
        "The share of the runs that passed, of each trial and day, with its 95 % interval; tests "
        "that did worst the latest time first. Cancelled runs, known failures, and runs that ran "
        "again for what nodes or the scheduler did are not counted."
    )
    return Page(
        f"History of {SUCCESS_RATE}",
        [
            Section("", [Text(about, "quiet")], only="browser"),
            *(
                Section(
                    f"{SUCCESS_RATE} of {each.test} on {each.machine}",
                    [_rate_chart(each), _rate_table(each)],
                )
                for each in shown
            ),
        ],
        f"{len(rates)} series; changes of rates are not judged",
        partial(_rate_records, rates),
        partial(_rate_lines, rates),
    )


def _rate_table(series: SuccessRates) -> Table:
    columns = [
        Column("since", "time", lambda rate: rate.time),
        Column("trial", value=lambda rate: Link(rate.trial, trial_address(rate.trial)), fold=True),
        Column("passed", "count", lambda rate: rate.passed),
        Column("of", "count", lambda rate: rate.counted),
        Column("rate", "share", lambda rate: in_per_cent(rate.rate)),
        Column("95 %", "share", lambda rate: interval_in_per_cent(*rate.interval)),
    ]
    return Table.of(columns, series.rates)


def _rate_chart(series: SuccessRates) -> TimeChart:
    """Return the rates as dots, and the ends of their intervals."""
    latest = series.rates[-MAX_RATES:]
    return TimeChart(
        f"Success rate of {series.test} on {series.machine}",
        f"{len(latest)} rates, each of a trial and a day",
        [
            Dots("95 %", [(rate.time, 100 * rate.interval[0]) for rate in latest], 4, 3),
            Dots("", [(rate.time, 100 * rate.interval[1]) for rate in latest], 4, 3),
            Dots("passed", [(rate.time, 100 * rate.rate) for rate in latest]),
        ],
        "passed",
        "%",
        caption="Success rate over time",
        only="browser",
    )


def _rate_records(rates: Sequence[SuccessRates]) -> list[dict[str, Any]]:
    return [
        {
            "metric": SUCCESS_RATE,
            "machine": series.machine,
            "test": series.test,
            "points": [dict(zip(_RATE, _values(rate), strict=True)) for rate in series.rates],
        }
        for series in rates
    ]


def _rate_lines(rates: Sequence[SuccessRates]) -> Iterator[Sequence[object]]:
    yield "machine", "test", *_RATE
    for series in rates:
        for rate in series.rates:
            yield series.machine, series.test, *_values(rate)


def _values(rate: SuccessRate) -> tuple[object, ...]:
    return iso(rate.time), rate.trial, rate.passed, rate.counted, rate.rate, *rate.interval
