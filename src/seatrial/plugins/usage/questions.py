"""Questions about what others ran: hours, jobs, users, waits, failures, energy, by attributes.

    asked = Question(by=("month", "size"), of="hours")
    found = answer(store, asked, context)         # its rows, the total, and what is not known
    found = load(store, asked, context, columns)  # the jobs, for other questions

A job holds its cores from its start to its end, or to when its machine was imported last, without
the time of its suspension. Of this time, what is within the span counts, cut at the ends of
calendar months; sums are whole core-seconds, without rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from seatrial.errors import UsageError, suggest
from seatrial.lazy import AnyInts, Bools, Floats, Indices, Ints, SmallInts, np
from seatrial.plugins.usage.attributes import (
    ATTRIBUTES,
    MONTH,
    UNKNOWN,
    Attribute,
    Context,
    glob_matches,
    month_starts,
    program_of,
    shown_names,
    words,
    zone_name,
)
from seatrial.plugins.usage.importing import gaps
from seatrial.plugins.usage.jobs import FAILED, NONE, UNFINISHED, Chosen, Jobs, Words, read_jobs
from seatrial.plugins.usage.waits import SHARES, Curve, Waits, waits_of
from seatrial.results.store.schema import Store
from seatrial.units import (
    in_per_cent,
    listed,
    show_share,
)

Measure = Literal["hours", "jobs", "users", "waits", "failures", "energy"]
Unit = Literal["core-hours", "node-hours"]

HOUR = 3600
MAX_CELLS = 5_000_000
TOP = 20
HINTS = 5
"""Names that are told to be added to the rules."""


class Question(Struct, frozen=True, kw_only=True):
    """What is asked of the jobs of others."""

    #: One or two of `ATTRIBUTES` or `MONTH`.
    by: tuple[str, ...] = (MONTH,)
    of: Measure = "hours"
    unit: Unit = "core-hours"
    #: The machine; "": all.
    machine: str = ""
    #: The span, in s; 0: from the first job, to what was imported last.
    since: int = 0
    until: int = 0
    #: Conditions that all must hold: ``application=g09,vasp``, ``queue!=debug``.
    where: tuple[str, ...] = ()
    #: Rows that are shown; JSON and CSV have all.
    top: int = TOP
    #: Whether the names of users may be shown.
    names: bool = False


# ---- the jobs of a question ----------------------------------------------------------------------


class Found(NamedTuple):
    """The jobs of a question, and what is to be said of them."""

    jobs: Jobs
    #: Up to when each job is known, in s.
    known_until: Ints
    #: The span, in s.
    since: int
    until: int
    notes: list[str]

    def only(self, chosen: Bools) -> Found:
        """Return the jobs that a mask chooses."""
        return self._replace(jobs=self.jobs.only(chosen), known_until=self.known_until[chosen])

    def amounts(self, unit: Unit) -> Ints:
        """Return how many cores (nodes) each job held; 0 where that is not known."""
        amounts: Ints = np.maximum(self.jobs.numbers[_amount_of(unit)], 0)
        return amounts


_NEEDED = frozenset({"submitted", "started", "ended", "suspended_s", "state", "asked"})


def load(store: Store, asked: Question, context: Context, columns: Collection[str] = ()) -> Found:
    """Return the jobs of a question with these columns. Those that run have as their end the time
    up to which their machine is known. Raises UsageError if there are none."""
    conditions = [parse_condition(text) for text in asked.where]
    names = {*asked.by, *(each.attribute for each in conditions)} - {MONTH}
    of_names = (ATTRIBUTES[name].columns(context) for name in names)
    needed = {*_NEEDED, *columns, _amount_of(asked.unit)}.union(*of_names)
    if asked.until and asked.since >= asked.until:
        raise UsageError("--since is not before --until; name an earlier time")
    chosen = Chosen(machine=asked.machine, since=asked.since, until=asked.until)
    jobs = read_jobs(store, chosen, needed)
    if not len(jobs):
        of_machine = f" of {asked.machine}" if asked.machine else ""
        raise UsageError(
            f"no jobs{of_machine} are known in this time; `seatrial usage import` brings them in"
        )
    missing = [gap.sentence for gap in gaps(store, asked.machine, asked.since, asked.until)]
    known_until = _known_until(jobs)
    found = Found(jobs, known_until, *_span(jobs, known_until, asked), missing)
    for condition in conditions:
        found = found.only(condition.holds(found.jobs, context))
        if not len(found.jobs):
            raise UsageError(f"no job has {condition.text} and all that is asked before it")
    return _with_ends(found, asked.unit)


def _amount_of(unit: Unit) -> str:
    return "cores" if unit == "core-hours" else "nodes"


def _known_until(jobs: Jobs) -> Ints:
    """Return up to when each job is known: when its record was asked for; where that is not known,
    the latest time of all jobs."""
    asked = jobs.numbers["asked"]
    latest = max(int(jobs.numbers[name].max()) for name in ("submitted", "started", "ended"))
    until: Ints = np.where(asked > 0, asked, latest)
    return until


def _span(jobs: Jobs, known_until: Ints, asked: Question) -> tuple[int, int]:
    """Return the span that is asked for, as far as there are jobs, in s."""
    runs = (jobs.numbers["started"] != NONE) & (jobs.numbers["ended"] == NONE)
    ends = np.where(runs, known_until, jobs.numbers["ended"])
    last = int(max(np.max(ends), np.max(jobs.numbers["submitted"]))) + 1
    since = max(asked.since, int(np.min(jobs.numbers["submitted"])))
    until = min(asked.until, last) if asked.until else last
    return since, max(until, since + 1)


def _with_ends(found: Found, unit: Unit) -> Found:
    """Return the jobs with an end of those that run, and what is not known of them."""
    jobs, notes = found.jobs, list(found.notes)
    started, ended = jobs.numbers["started"], jobs.numbers["ended"]
    began = started != NONE
    open_end = began & (ended == NONE)
    unfinished = jobs.words["state"].are(UNFINISHED)
    no_end = jobs.words["state"].are(["unknown"]) & (started == ended)
    lost = began & (open_end & ~unfinished | no_end)
    running = open_end & unfinished
    ended = np.where(running, found.known_until, np.where(lost, started, ended))
    if lost.any():
        notes.append(
            f"{_are(int(lost.sum()), 'job')} said to be over without the time of the end; "
            "their hours are not known and not counted."
        )
    if running.any():
        notes.append(
            f"{_are(int(running.sum()), 'job')} not over; what they used until their records were "
            "asked for is counted."
        )
    without = began & (found.amounts(unit) == 0)
    if without.any():
        notes.append(
            f"{_are(int(without.sum()), 'job')} without a number of {_amount_of(unit)}; "
            "their hours are not known and not counted."
        )
    numbers = {**jobs.numbers, "ended": ended}
    return found._replace(jobs=Jobs(numbers, jobs.words), notes=notes)


def _are(number: int, noun: str) -> str:
    return f"1 {noun} is" if number == 1 else f"{number:,} {noun}s are"


# ---- conditions


class Condition(NamedTuple):
    """That an attribute of a job is one of some words, or none of them."""

    attribute: str
    values: tuple[str, ...]
    negated: bool
    text: str
    #: The option that gave it, for messages.
    option: str = "--where"

    def holds(self, jobs: Jobs, context: Context) -> Bools:
        """Return for which jobs it holds. Raises UsageError for a word that none of them has."""
        codes, names = words(self.attribute, jobs, context)
        present = np.bincount(codes, minlength=len(names)) > 0
        there = [name for name, has in zip(names, present.tolist(), strict=True) if has]
        wanted = {name for value in self.values for name in self._named(value, there, context)}
        are: Bools = np.array([name in wanted for name in names], dtype=bool)[codes]
        return ~are if self.negated else are

    def _named(self, value: str, there: Sequence[str], context: Context) -> list[str]:
        matches = glob_matches([value])
        if named := [name for name in there if matches(name)]:
            return named
        attribute = ATTRIBUTES[self.attribute]
        if attribute.rules and (told := attribute.told_by_rules(value, context)) in there:
            return [told]
        near = suggest(value, there) or f"there are {listed(there, 8)}"
        raise UsageError(
            f"{self.option} {self.text}: no job has the {self.attribute} {value!r}; {near}"
        )


def parse_condition(text: str, option: str = "--where") -> Condition:
    """Return a condition of its text. Raises UsageError."""
    name, equals, value = text.partition("=")
    negated = name.endswith("!")
    name = name.removesuffix("!").strip()
    values = tuple(part.strip() for part in value.split(",") if part.strip())
    if not equals or not values:
        raise UsageError(f"{option} {text}: write NAME=VALUE, such as application=g09")
    if name not in ATTRIBUTES:
        remedy = "use --since and --until" if name == MONTH else _known_attributes(name)
        raise UsageError(f"{option} {text}: jobs are not told apart by {name!r}; {remedy}")
    return Condition(name, values, negated, text, option)


def matching(
    jobs: Jobs, conditions: Iterable[str], context: Context, option: str = "--where"
) -> Bools:
    """Return which jobs meet all of these conditions (``application=g09``). The jobs must have the
    columns of these attributes. Raises UsageError."""
    chosen = np.ones(len(jobs), dtype=bool)
    for text in conditions:
        chosen &= parse_condition(text, option).holds(jobs, context)
    return chosen


def parse_by(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the attributes of ``--by``, two at most. Raises UsageError."""
    names = tuple(name.strip() for text in texts for name in text.split(",") if name.strip())
    for name in names:
        if name not in ATTRIBUTES and name != MONTH:
            raise UsageError(
                f"--by: jobs are not told apart by {name!r}; {_known_attributes(name)}"
            )
    if len(set(names)) != len(names) or len(names) > 2:
        raise UsageError(
            f"--by {','.join(names)}: write one or two different names, such as month,size"
        )
    return names


def _known_attributes(name: str) -> str:
    known = [*ATTRIBUTES, MONTH]
    return suggest(name, known) or f"write one of {', '.join(known)}"


# ---- time, cut at months


class Pieces(NamedTuple):
    """The time that jobs held their cores, in pieces within the spans of some bounds."""

    #: The place of the job of each piece, and that of the span.
    places: Ints
    spans: Ints
    seconds: Ints


def pieces_of(jobs: Jobs, bounds: Ints) -> Pieces:
    """Return the pieces of time within the spans between bounds (ascending, in s)."""
    started = jobs.numbers["started"]
    over = jobs.numbers["ended"] - jobs.numbers["suspended_s"]
    begin = np.maximum(started, bounds[0])
    end = np.minimum(over, bounds[-1])
    places = np.flatnonzero((started != NONE) & (end > begin))
    begin, end = begin[places], end[places]
    span = np.searchsorted(bounds, begin, side="right") - 1
    found: list[tuple[Ints, Ints, Ints]] = []
    while len(places):
        cut = np.minimum(end, bounds[span + 1])
        found.append((places, span, cut - begin))
        more = end > cut
        places, begin, end, span = places[more], cut[more], end[more], span[more] + 1
    columns = zip(*found, strict=True) if found else ([], [], [])
    return Pieces(*(np.concatenate([np.zeros(0, np.int64), *column]) for column in columns))


# ---- what is asked by ----------------------------------------------------------------------------


class _Axis(NamedTuple):
    """What rows are told apart by."""

    name: str
    title: str
    names: tuple[str, ...]
    ordered: bool
    #: Of each job; None of months, which are told by a time.
    codes: SmallInts | None


class _Grid(NamedTuple):
    """The cells of one or two axes: all pairs of their words."""

    axes: tuple[_Axis, ...]
    #: The bounds of months, in s; those of the span without months.
    bounds: Ints

    @property
    def size(self) -> int:
        return int(np.prod([len(axis.names) for axis in self.axes]))

    def cells(self, places: Ints, spans: Ints) -> Ints:
        """Return the cells of jobs (their places) in months (their numbers)."""
        cell = np.zeros(len(places), dtype=np.int64)
        for axis in self.axes:
            codes = spans if axis.codes is None else axis.codes[places]
            cell = cell * len(axis.names) + codes
        return cell

    def spans_of(self, times: Ints) -> Ints:
        """Return the months of times within the span."""
        spans: Ints = np.searchsorted(self.bounds, times, side="right") - 1
        return spans


def _grid(found: Found, asked: Question, context: Context) -> _Grid:
    bounds, months = np.array([found.since, found.until]), tuple[str, ...]()
    if MONTH in asked.by:
        bounds, months = month_starts(found.since, found.until, context.zone)
    axes = []
    for name in asked.by:
        if name == MONTH:
            axes.append(_Axis(MONTH, "Month", months, True, None))
            continue
        attribute = ATTRIBUTES[name]
        codes, names = words(name, found.jobs, context)
        axes.append(_Axis(name, attribute.title, names, attribute.ordered, codes))
    grid = _Grid(tuple(axes), bounds)
    if grid.size > MAX_CELLS:
        raise UsageError(
            f"--by {','.join(asked.by)}: {grid.size:,} rows at most; narrow it with --where"
        )
    return grid


def sums_of(cells: AnyInts, values: Ints, size: int) -> Ints:
    """Return the sum of each cell, exactly."""
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, cells, values)
    return sums


def _distinct(cells: Ints, codes: Ints, number: int, size: int) -> Ints:
    """Return how many distinct codes each cell has."""
    pairs = np.unique(cells * number + codes)
    return np.bincount(pairs // number, minlength=size)


# ---- what is asked of ----------------------------------------------------------------------------


class _Measured(NamedTuple):
    """What each cell has, and all of them have together."""

    #: Whether a cell has anything.
    present: Bools
    #: By name; what is not known is NaN.
    values: Mapping[str, Ints | Floats]
    total: Mapping[str, int | float | None]
    #: The name by which rows are ordered and shared.
    main: str


def _started_within(found: Found) -> Ints:
    """Return the places of the jobs that started within the span."""
    started = found.jobs.numbers["started"]
    return np.flatnonzero((started >= found.since) & (started < found.until) & (started != NONE))


def _ended_within(found: Found) -> Ints:
    """Return the places of the jobs that ended within the span, having started."""
    ended, started = found.jobs.numbers["ended"], found.jobs.numbers["started"]
    over = ~found.jobs.words["state"].are(UNFINISHED)
    within = (ended >= found.since) & (ended < found.until)
    return np.flatnonzero((started != NONE) & over & within)


def _counted(cells: Ints, size: int) -> Ints:
    return np.bincount(cells, minlength=size)


def _hours(found: Found, asked: Question, grid: _Grid) -> _Measured:
    pieces = pieces_of(found.jobs, grid.bounds)
    amounts = found.amounts(asked.unit)[pieces.places]
    cells = grid.cells(pieces.places, pieces.spans)
    seconds = sums_of(cells, pieces.seconds * amounts, grid.size)
    places = _started_within(found)
    started = grid.cells(places, grid.spans_of(found.jobs.numbers["started"][places]))
    jobs = _counted(started, grid.size)
    present = (seconds > 0) | (jobs > 0)
    total = {"seconds": int(seconds.sum()), "jobs": len(places)}
    return _Measured(present, {"seconds": seconds, "jobs": jobs}, total, "seconds")


def _jobs(found: Found, asked: Question, grid: _Grid) -> _Measured:
    places = _started_within(found)
    cells = grid.cells(places, grid.spans_of(found.jobs.numbers["started"][places]))
    jobs = _counted(cells, grid.size)
    never = int(np.count_nonzero(found.jobs.numbers["started"] == NONE))
    if never:
        found.notes.append(f"{_are(never, 'job')} not counted: they have not started.")
    return _Measured(jobs > 0, {"jobs": jobs}, {"jobs": len(places)}, "jobs")


def _users(found: Found, asked: Question, grid: _Grid) -> _Measured:
    pieces = pieces_of(found.jobs, grid.bounds)
    started = _started_within(found)
    places = np.concatenate([pieces.places, started])
    spans = np.concatenate([pieces.spans, grid.spans_of(found.jobs.numbers["started"][started])])
    codes, names = found.jobs.words["user"]
    of_job = codes[places].astype(np.int64)
    if "" in names:
        known = of_job != names.index("")
        unknown = len(np.unique(places[~known]))
        if unknown:
            found.notes.append(f"{_are(unknown, 'job')} of unknown users, who are not counted.")
        places, spans, of_job = places[known], spans[known], of_job[known]
    cells = grid.cells(places, spans)
    users = _distinct(cells, of_job, len(names), grid.size)
    jobs = _counted(
        grid.cells(started, grid.spans_of(found.jobs.numbers["started"][started])), grid.size
    )
    total = {"users": len(np.unique(of_job)), "jobs": len(started)}
    return _Measured((users > 0) | (jobs > 0), {"users": users, "jobs": jobs}, total, "users")


def _waits(found: Found, asked: Question, grid: _Grid) -> _Measured:
    waits = waits_of(found.jobs, found.known_until)
    found.notes.extend(notes_of(waits))
    inside = np.flatnonzero((waits.ready >= found.since) & (waits.ready < found.until))
    cells = grid.cells(waits.places[inside], grid.spans_of(waits.ready[inside]))
    jobs = _counted(cells, grid.size)
    waiting = sums_of(cells, (~waits.started[inside]).astype(np.int64), grid.size)
    names = [f"within_{share:g}" for share in SHARES]
    values = {name: np.full(grid.size, np.nan) for name in names}
    order = np.argsort(cells, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(cells[order])) + 1):
        if not len(part):
            break  # there are none at all
        curve = Curve.of(waits.seconds[inside[part]], waits.started[inside[part]])
        for name, share in zip(names, SHARES, strict=True):
            within = curve.quantile(share)
            values[name][cells[part[0]]] = np.nan if within is None else within
    whole = Curve.of(waits.seconds[inside], waits.started[inside])
    total = {"jobs": len(inside), "waiting": int(waiting.sum())} | {
        name: whole.quantile(share) for name, share in zip(names, SHARES, strict=True)
    }
    return _Measured(jobs > 0, {"jobs": jobs, "waiting": waiting, **values}, total, "jobs")


def notes_of(waits: Waits) -> list[str]:
    """Return what is to be said of waits."""
    notes = []
    if waits.held:
        notes.append(f"{_are(waits.held, 'job')} not counted: held, or waiting for other jobs.")
    if waits.assumed:
        notes.append(
            f"{_are(waits.assumed, 'job')} without the time at which they could start; their waits "
            "begin at the submission."
        )
    return notes


def _failures(found: Found, asked: Question, grid: _Grid) -> _Measured:
    jobs = found.jobs
    places = _ended_within(found)
    cells = grid.cells(places, grid.spans_of(jobs.numbers["ended"][places]))
    state = jobs.words["state"]
    values = {"ended": _counted(cells, grid.size)}
    for name in FAILED:
        values[name] = _counted(cells[state.are([name])[places]], grid.size)
    failed = state.are(FAILED)[places]
    values["failures"] = _counted(cells[failed], grid.size)
    seconds = jobs.seconds_within(0, found.until) * found.amounts(asked.unit)
    values["seconds"] = sums_of(cells[failed], seconds[places][failed], grid.size)
    unknown = int(np.count_nonzero(state.are(["unknown"])[places]))
    if unknown:
        found.notes.append(f"{_are(unknown, 'job')} in an unknown state: failed or not.")
    total = {name: int(column.sum()) for name, column in values.items()}
    return _Measured(values["ended"] > 0, values, total, "failures")


def _energy(found: Found, asked: Question, grid: _Grid) -> _Measured:
    jobs = found.jobs
    places = _ended_within(found)
    cells = grid.cells(places, grid.spans_of(jobs.numbers["ended"][places]))
    energy = jobs.numbers["energy_j"][places]
    known = energy != NONE
    seconds = (jobs.seconds_within(0, found.until) * found.amounts(asked.unit))[places]
    values = {
        "joules": sums_of(cells[known], energy[known], grid.size),
        "ended": _counted(cells, grid.size),
        "known": _counted(cells[known], grid.size),
        "seconds": sums_of(cells, seconds, grid.size),
        "seconds_known": sums_of(cells[known], seconds[known], grid.size),
    }
    total = {name: int(column.sum()) for name, column in values.items()}
    return _Measured(values["ended"] > 0, values, total, "joules")


class _Kind(NamedTuple):
    """A kind of question."""

    measure: Callable[[Found, Question, _Grid], _Measured]
    #: The columns of jobs that it needs.
    needs: tuple[str, ...] = ()


_KINDS: Mapping[Measure, _Kind] = {
    "hours": _Kind(_hours),
    "jobs": _Kind(_jobs),
    "users": _Kind(_users, ("user",)),
    "waits": _Kind(_waits, ("eligible",)),
    "failures": _Kind(_failures),
    "energy": _Kind(_energy, ("energy_j",)),
}


# ---- the answer ----------------------------------------------------------------------------------


class Row(NamedTuple):
    """A row of an answer: its words, and its values by name."""

    words: tuple[str, ...]
    values: Mapping[str, Any]


class Answer(NamedTuple):
    """The answer to a question."""

    asked: Question
    titles: tuple[str, ...]
    #: The words of each attribute, in their order.
    words: tuple[tuple[str, ...], ...]
    rows: list[Row]
    total: Mapping[str, Any]
    main: str
    since: int
    until: int
    zone: str
    notes: list[str]


def answer(store: Store, asked: Question, context: Context) -> Answer:
    """Return the answer to a question. Raises UsageError if there are no jobs."""
    kind = _KINDS[asked.of]
    found = load(store, asked, context, kind.needs)
    grid = _grid(found, asked, context)
    measured = kind.measure(found, asked, grid)
    rows, of_axes = _rows(grid, measured, asked)
    told = {
        axis.name: Words(axis.codes, axis.names) for axis in grid.axes if axis.codes is not None
    }
    notes = [*found.notes, *hints(found, asked, told)]
    if MONTH in asked.by:
        notes.append(f"Months are those of the time zone {zone_name(context.zone)}.")
    return Answer(
        asked,
        tuple(axis.title for axis in grid.axes),
        of_axes,
        rows,
        measured.total,
        measured.main,
        found.since,
        found.until,
        zone_name(context.zone),
        notes,
    )


def _rows(
    grid: _Grid, measured: _Measured, asked: Question
) -> tuple[list[Row], tuple[tuple[str, ...], ...]]:
    """Return the rows that have anything, and the words of each axis, in the order of the words or
    by their main value; those of unknown words come last."""
    cells = np.flatnonzero(measured.present)
    codes = np.unravel_index(cells, [len(axis.names) for axis in grid.axes])
    main = measured.values[measured.main][cells]
    ranks, words_of_rows, words_of_axes = zip(
        *(
            _words_of(axis, of_axis, main, asked.names)
            for axis, of_axis in zip(grid.axes, codes, strict=True)
        ),
        strict=True,
    )
    order = np.lexsort(ranks[::-1])
    keys = list(zip(*words_of_rows, strict=True))
    columns = {name: column[cells][order].tolist() for name, column in measured.values.items()}
    rows = [
        Row(keys[place], dict(zip(columns, values, strict=True)))
        for place, values in zip(order.tolist(), zip(*columns.values(), strict=True), strict=True)
    ]
    return rows, words_of_axes


def _words_of(
    axis: _Axis, codes: Indices, main: Ints | Floats, with_names: bool
) -> tuple[Indices, list[str], tuple[str, ...]]:
    """Return of an axis the rank of each row's word, these words, and all that any row has in their
    order."""
    ranked = _ranked(axis, codes, main)
    names = shown_names(axis.name, axis.names, with_names)
    there = {*codes.tolist()}
    in_order = tuple(names[code] for code in ranked.tolist() if code in there)
    return np.argsort(ranked)[codes], [names[code] for code in codes.tolist()], in_order


def _ranked(axis: _Axis, codes: Indices, main: Ints | Floats) -> Indices:
    """Return the codes of an axis in the order of its rows."""
    sums = np.bincount(codes, weights=main, minlength=len(axis.names))
    unknown = np.array([name == UNKNOWN for name in axis.names])
    by = np.arange(len(sums)) if axis.ordered else -sums
    return np.lexsort((by, unknown))


def hints(found: Found, asked: Question, told: Mapping[str, Words]) -> list[str]:
    """Return, for each attribute that rules tell, how many hours they miss, and the names that are
    to be added to them first. ``told``: the words of the jobs, by attribute."""
    told_of = []
    for name, of_jobs in told.items():
        attribute = ATTRIBUTES[name]
        if not attribute.rules:
            continue
        missed = of_jobs.are([UNKNOWN])
        seconds = seconds_of(found, asked.unit)
        hours, whole = int(seconds[missed].sum()), int(seconds.sum())
        if not hours:
            continue
        text = (
            f"No rule tells the {name} of {show_share(hours / whole)} of the hours "
            f"({hours_text(hours)} {asked.unit})."
        )
        if asked.names:
            first = _first_names(found.jobs.only(missed), seconds[missed], attribute, whole)
            text += f" To add first to `{attribute.rules}` (--{attribute.option} FILE): {first}."
        told_of.append(text)
    return told_of


def seconds_of(found: Found, unit: Unit) -> Ints:
    """Return the core-seconds (node-seconds) of each job within the span."""
    return found.jobs.seconds_within(found.since, found.until) * found.amounts(unit)


def _first_names(jobs: Jobs, seconds: Ints, attribute: Attribute, whole: int) -> str:
    """Return the names that tell most of these hours, each with its share of all hours."""
    codes, names = _telling_names(jobs, attribute)
    sums: dict[str, int] = {}
    for name, value in zip(names, sums_of(codes, seconds, len(names)).tolist(), strict=True):
        sums[name] = sums.get(name, 0) + value
    ranked = sorted(sums, key=lambda name: (-sums[name], name))
    return listed(
        [f"{name} ({in_per_cent(sums[name] / whole)})" for name in ranked if sums[name]], HINTS
    )


def _telling_names(jobs: Jobs, attribute: Attribute) -> Words:
    """Return the name of each job that a rule would go by, with what it is: of an application the
    program, where it is recorded."""
    codes, names = jobs.words[attribute.next_rule]
    told = [f"{attribute.next_rule} {name or UNKNOWN}" for name in names]
    if attribute.rules != "applications" or "executable" not in jobs.words:
        return Words(codes, tuple(told))
    programs = jobs.words["executable"]
    of_program = [program_of(name.partition("\n")[0]) for name in programs.names]
    has = np.array([bool(name) for name in of_program], dtype=bool)[programs.codes]
    told += [f"executable {name}" for name in of_program]
    return Words(np.where(has, programs.codes + len(names), codes), tuple(told))


def hours_text(seconds: int) -> str:
    """Return core-seconds as hours: ``12,345``, ``1.25``."""
    hours = seconds / HOUR
    return f"{hours:,.0f}" if hours >= 100 or hours == int(hours) else f"{hours:,.2f}"
