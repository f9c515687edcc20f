"""How long jobs like one wait: a table with intervals, and how many times as long as elsewhere.

like = Like(size=Size(3, "nodes"), walltime=36 * 3600)
page = waits_page(store, Question(by=("machine",)), context, like)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

from markupsafe import Markup
from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.lazy import Bools, np
from seatrial.plugins.usage.answer_page import count_text, noted, span_text
from seatrial.plugins.usage.attributes import (
    ATTRIBUTES,
    MONTH,
    UNKNOWN,
    Context,
    month_of,
    shown_names,
    title_of,
    words,
    zone_name,
)
from seatrial.plugins.usage.jobs import Jobs
from seatrial.plugins.usage.questions import Found, Question, load, notes_of
from seatrial.plugins.usage.waits import (
    FEW_DAYS,
    Estimate,
    Quantile,
    Ratio,
    Ready,
    Waits,
    estimate,
    ratio,
    waits_of,
)
from seatrial.results.store.schema import Store
from seatrial.show.draw.plots import Interval, forest
from seatrial.show.draw.svg import WIDTH, Axis
from seatrial.show.page import Chart, Column, Page, Section, Table
from seatrial.units import show_seconds

_SIZE = re.compile(r"([0-9][0-9_,]*)\s*(nodes?|cores?|)", re.ASCII)


class Size(NamedTuple):
    """A number of nodes or cores."""

    amount: int
    unit: Literal["nodes", "cores"]

    def __str__(self) -> str:
        return f"{self.amount:,} {self.unit if self.amount != 1 else self.unit[:-1]}"


def parse_size(text: str, unit: Literal["nodes", "cores"]) -> Size:
    """Return a size: ``3``, ``3nodes``, ``8,192 cores``. Raises ValueError with a remedy."""
    match = _SIZE.fullmatch(text.strip())
    amount = int(match[1].replace(",", "").replace("_", "")) if match else 0
    if match is None or not 1 <= amount <= 10**9:
        raise ValueError(f"{text!r} is no size; write e.g. 3nodes or 8192cores")
    named = match[2].rstrip("s")
    return Size(amount, unit if not named else "nodes" if named == "node" else "cores")


class Like(Struct, frozen=True, kw_only=True):
    """The job whose like is asked for."""

    #: None: of any size.
    size: Size | None = None
    #: The time limit, in s; None: any.
    walltime: float | None = None
    #: How many times as large or small, or as long or short, jobs are like it.
    within: float = 2.0
    #: From when on a job waits.
    ready: Ready = "eligible"

    @property
    def columns(self) -> set[str]:
        """The columns of jobs that it needs."""
        of_size = {self.size.unit} if self.size else set()
        return {"eligible", *of_size, *({"limit_s"} if self.walltime else ())}

    def are(self, jobs: Jobs) -> tuple[Bools, int]:
        """Return which jobs are like it, and of how many their size or limit is not known."""
        alike = np.ones(len(jobs), dtype=bool)
        unknown = np.zeros(len(jobs), dtype=bool)
        for wanted, column in (
            (self.size.amount if self.size else None, self.size.unit if self.size else ""),
            (self.walltime, "limit_s"),
        ):
            if wanted is not None:
                values = jobs.numbers[column]
                unknown |= values <= 0
                alike &= (values * self.within >= wanted) & (values <= wanted * self.within)
        return alike, int(unknown.sum())

    def __str__(self) -> str:
        parts = [f"of {self.size}"] if self.size else []
        parts += [f"with a limit of {show_seconds(self.walltime)}"] if self.walltime else []
        about = " and ".join(parts) if parts else "of any size and limit"
        exactly = "" if not parts or self.within == 1 else f", within a factor of {self.within:g}"
        return f"Jobs {about}{exactly}"


class Group(NamedTuple):
    """Jobs with one word, and their waits; how many times as long as those of the group that waits
    shortest."""

    word: str
    found: Estimate
    times: Ratio | None


class WaitAnswer(NamedTuple):
    """The waits of the groups."""

    asked: Question
    like: Like
    groups: list[Group]
    since: int
    until: int
    notes: list[str]

    @property
    def known(self) -> list[Group]:
        """The groups whose median is known with an interval, the one that waits shortest first."""
        return sorted(
            (group for group in self.groups if group.found.median.low is not None), key=_median
        )


def waits_page(store: Store, asked: Question, context: Context, like: Like) -> Page:
    """Return how long jobs like one wait, as a page. Raises UsageError if there are none."""
    found = answer(store, asked, context, like)
    title = f"Waits by {asked.by[0]}"
    return Page(
        title,
        [
            Section(title, [Chart(partial(_drawn, found)), _table(found)]),
            *noted(found.notes),
        ],
        summary=_summary(found, context),
        records=partial(_records, found, context),
        lines=partial(_lines, found),
    )


def answer(store: Store, asked: Question, context: Context, like: Like) -> WaitAnswer:
    """Return how long jobs like one wait. Raises UsageError if there are none."""
    if len(asked.by) != 1:
        raise UsageError("--by: waits are told by one name, such as machine, queue or month")
    found = load(store, asked, context, like.columns)
    alike, unknown = like.are(found.jobs)
    if not alike.any():
        raise UsageError(
            f"no job is like that ({like}); ask with --within {2 * like.within:g} for more"
        )
    chosen = found.only(alike)
    waits = waits_of(chosen.jobs, chosen.known_until, like.ready)
    groups = _groups(chosen, waits, asked, context)
    notes = [*found.notes, *notes_of(waits)]
    if unknown:
        notes.append(f"{count_text(unknown, 'job')} without a known size or limit: not counted.")
    if len(groups) > asked.top and asked.by != (MONTH,):
        notes.append(f"Intervals are of the {asked.top} words with the most jobs; --top asks more.")
    if any(group.found.one_by_one for group in groups):
        notes.append(
            f"Intervals of jobs of fewer than {FEW_DAYS} days take jobs as independent, and are "
            "too narrow if they waited for one reason."
        )
    notes.append(
        f"{like}. A wait is from when a job was {like.ready} to its start. Jobs that have not "
        "started, and those that were cancelled before, count as waiting (Kaplan and Meier). "
        "Intervals are of 95 %, by resampling days."
    )
    answered = WaitAnswer(asked, like, groups, found.since, found.until, notes)
    return answered._replace(groups=_with_ratios(answered))


def _groups(found: Found, waits: Waits, asked: Question, context: Context) -> list[Group]:
    """Return the waits of jobs that began to wait within the span, by what is asked."""
    name = asked.by[0]
    inside = np.flatnonzero((waits.ready >= found.since) & (waits.ready < found.until))
    if name == MONTH:
        codes, names = month_of(waits.ready[inside], context.zone)
    else:
        told = words(name, found.jobs, context)
        codes, names = told.codes[waits.places[inside]], told.names
    shown = shown_names(name, names, asked.names)
    ordered = name == MONTH or ATTRIBUTES[name].ordered
    number = np.bincount(codes, minlength=len(names))
    places = np.flatnonzero(number).tolist()
    if not ordered:
        places.sort(key=lambda code: (names[code] == UNKNOWN, -number[code], names[code]))
    by_code = inside[np.argsort(codes, kind="stable")]
    ends = np.cumsum(number)
    groups = [
        Group(
            shown[code],
            estimate(
                waits, by_code[ends[code] - number[code] : ends[code]], ordered or i < asked.top
            ),
            None,
        )
        for i, code in enumerate(places)
    ]
    # Few are compared, so by how long they wait; of many those with the most jobs come first.
    return groups if ordered or len(groups) > asked.top else sorted(groups, key=_by_median)


def _by_median(group: Group) -> tuple[bool, float]:
    return group.word == UNKNOWN, _median(group)


def _median(group: Group) -> float:
    seconds = group.found.median.seconds
    return np.inf if seconds is None else seconds


def _with_ratios(found: WaitAnswer) -> list[Group]:
    if not found.known:
        return found.groups
    shortest = found.known[0]
    return [
        group if group is shortest else group._replace(times=ratio(group.found, shortest.found))
        for group in found.groups
    ]


# ---- shown ---------------------------------------------------------------------------------------

_UNITS = ((259200.0, 86400.0, "d"), (3600.0, 3600.0, "h"), (60.0, 60.0, "min"), (0.0, 1.0, "s"))
"""From which time on a unit is used, its seconds, and its name."""


def quantile_text(found: Quantile) -> str:
    """Return a time with its interval in one unit: ``5.02 h (4.8..5.3)``; ``-`` if too many wait
    for it to be known."""
    if found.seconds is None:
        return "-"
    size, unit = next(each[1:] for each in _UNITS if found.seconds >= each[0])
    text = f"{found.seconds / size:.3g} {unit}"
    if found.low is None:
        return text
    high = "?" if found.high is None else f"{found.high / size:.3g}"
    return f"{text} ({found.low / size:.3g}..{high})"


def ratio_text(found: Ratio | None) -> str:
    """Return a ratio with its interval: ``4.0 (3.7..4.4)``."""
    if found is None:
        return ""
    if found.low is None:
        return _times(found.times)
    high = "?" if found.high is None else _times(found.high)
    return f"{_times(found.times)} ({_times(found.low)}..{high})"


def _times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.3g}"


def _drawn(found: WaitAnswer, width: int = WIDTH) -> Markup:
    """Draw the medians with their intervals, in hours."""
    rows = [
        Interval(
            group.word,
            median.seconds / 3600,
            None if median.low is None else median.low / 3600,
            None if median.high is None else median.high / 3600,
            quantile_text(median),
            1,
            1,
        )
        for group in _first(found)
        if (median := group.found.median).seconds is not None
    ]
    title = f"Median waits by {found.asked.by[0]}"
    return forest(
        rows, title=title, about=str(found.like), axis=Axis("median wait", "h"), width=width
    )


def _first(found: WaitAnswer) -> list[Group]:
    """Return the groups that are shown: all months, the first of others."""
    return found.groups if found.asked.by == (MONTH,) else found.groups[: found.asked.top]


def _table(found: WaitAnswer) -> Table:
    name = found.asked.by[0]
    rows = [
        [
            group.word,
            f"{group.found.jobs:,}",
            f"{group.found.waiting:,}" if group.found.waiting else "",
            quantile_text(group.found.median),
            *(quantile_text(each._replace(low=None)) for each in group.found.quantiles[1:]),
            ratio_text(group.times),
        ]
        for group in _first(found)
    ]
    columns = [
        Column(title_of(name), fold=True),
        Column("Jobs", "number"),
        Column("Not started", "number", spare=1),
        Column("Median (95 %)", "number"),
        Column("75 % in", "number", spare=2),
        Column("90 % in", "number"),
        Column("95 % in", "number", spare=3),
        Column("Times as long", "number"),
    ]
    return Table(columns, rows, total=len(found.groups), remainder="; --top shows more")


def _summary(found: WaitAnswer, context: Context) -> str:
    span = span_text(found.since, found.until, context)
    jobs = count_text(sum(group.found.jobs for group in found.groups), "job")
    known = found.known
    if len(known) < 2:
        return f"{jobs}; {span}"
    shortest, longest = known[0], known[-1]
    if len(known) > 2 or longest.times is None:
        ends = [
            f"{quantile_text(group.found.median)}: {group.word}" for group in (shortest, longest)
        ]
        return f"Medians from {ends[0]} to {ends[1]}; {jobs}; {span}"
    told = longest.times
    interval, nothing = "", ""
    if told.low is not None:
        high = "more than is known" if told.high is None else _times(told.high)
        interval = f", 95 % interval {_times(told.low)} to {high}"
        nothing = " (no difference is shown)" if told.low <= 1 else ""
    return (
        f"{longest.word} waits {_times(told.times)} times as long as {shortest.word}{interval}"
        f"{nothing}; {jobs}; {span}"
    )


def _records(found: WaitAnswer, context: Context) -> dict[str, Any]:
    like = found.like
    return {
        "by": found.asked.by[0],
        "size": None if like.size is None else {like.size.unit: like.size.amount},
        "walltime": like.walltime,
        "within": like.within,
        "from": like.ready,
        "since": found.since,
        "until": found.until,
        "zone": zone_name(context.zone),
        "rows": [
            {
                found.asked.by[0]: group.word,
                "jobs": group.found.jobs,
                "waiting": group.found.waiting,
                "quantiles": [each._asdict() for each in group.found.quantiles],
                "times": group.times._asdict() if group.times else None,
            }
            for group in found.groups
        ],
        "notes": found.notes,
    }


def _lines(found: WaitAnswer) -> Iterable[Sequence[object]]:
    ends = ("seconds", "low", "high")
    shares = [each.share for each in found.groups[0].found.quantiles] if found.groups else []
    titles = [f"within_{share:g}_{end}" for share in shares for end in ends]
    yield [found.asked.by[0], "jobs", "waiting", *titles, "times", "times_low", "times_high"]
    for group in found.groups:
        values = [value for each in group.found.quantiles for value in each[1:]]
        times: Sequence[float | None] = group.times or (None, None, None)
        yield [group.word, group.found.jobs, group.found.waiting, *values, *times]
