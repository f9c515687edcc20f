"""Charges as pages: for the terminal, the server, JSON and CSV; sums that add up.

    page = charges_page(store, ChargeQuestion(machine="hopper", by=("account",)))
    page = job_page(store, ChargeQuestion(machine="hopper"), "1234")

Each job is rounded once: its charge to the decimals of its file, its core-hours to two. So rows add
up to their sum to the last digit, and a job has the same figures in each table. JSON and CSV have
whole core-seconds beside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, tzinfo
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.lazy import Ints, np
from seatrial.plugins.usage.attributes import (
    ATTRIBUTES,
    MONTH,
    Context,
    context_of,
    month_of,
    title_of,
    words,
    zone_name,
)
from seatrial.plugins.usage.charges import (
    NEEDED,
    NO_CHARGES,
    Charged,
    ChargesFile,
    Piece,
    charge,
    charge_text,
    charges_of,
    held_seconds,
)
from seatrial.plugins.usage.importing import gaps
from seatrial.plugins.usage.jobs import NONE, Chosen, Jobs, Words, known_machines, read_jobs
from seatrial.plugins.usage.settings import machine_of
from seatrial.results.store.schema import Store
from seatrial.show.page import Cell, Column, Items, Page, Part, Section, Table, Text
from seatrial.units import count, listed, show_seconds

HOUR = 3600
T = TypeVar("T", int, Ints)
TOP = 30
HIDDEN = "user"
"""What stands, with a number, for the name of a user that is not shown."""


class ChargeQuestion(Struct, frozen=True, kw_only=True):
    """What is asked of charges."""

    #: One or two of `seatrial.plugins.usage.attributes.ATTRIBUTES`, or month.
    by: tuple[str, ...] = ("account",)
    #: The machine; "": all that have jobs.
    machine: str = ""
    #: Jobs that ended from then on, and before then, in s; 0: no bound.
    since: int = 0
    until: int = 0
    #: A charges.yaml in place of that of the machine.
    charges: Path | None = None
    #: Whether the names of users may be shown.
    names: bool = False
    #: Rows that are shown; JSON and CSV have all.
    top: int = TOP


# ---- sums ----------------------------------------------------------------------------------------


class Sum(NamedTuple):
    """What some jobs have together."""

    jobs: int = 0
    core_seconds: int = 0
    #: core-hours in hundredths, each job rounded
    hundredths: int = 0
    #: in units of the last decimal
    steps: int = 0
    #: of the jobs, those whose charge or refund is not known
    without: int = 0

    def plus(self, other: Sum) -> Sum:
        return Sum(*(a + b for a, b in zip(self, other, strict=True)))

    def charge(self, decimals: int) -> str | None:
        """Return the charge or refund; None where that of no job is known."""
        return None if 0 < self.jobs == self.without else charge_text(self.steps, decimals)


Sums = dict[tuple[str, ...], Sum]
Rows = Sequence[tuple[tuple[str, ...], Sum]]


def sums_by(columns: Sequence[Words], core_seconds: Ints, steps: Ints) -> Sums:
    """Return the sums of jobs by one word or several of each."""
    codes = np.zeros(len(steps), dtype=np.int64)
    for column in columns:
        codes = codes * len(column.names) + column.codes
    used, places = np.unique(codes, return_inverse=True)
    known = steps != NONE
    values = (
        np.ones_like(steps),
        core_seconds,
        hundredths(core_seconds),
        np.where(known, steps, 0),
        (~known).astype(int),
    )
    totals = np.zeros((len(used), len(values)), dtype=np.int64)
    for i, value in enumerate(values):
        np.add.at(totals[:, i], places, value)
    sizes = [len(column.names) for column in columns]
    keys = np.unravel_index(used, sizes) if len(used) else [used] * len(sizes)
    names = [
        [column.names[code] for code in key.tolist()]
        for column, key in zip(columns, keys, strict=True)
    ]
    return dict(zip(zip(*names, strict=True), (Sum(*row) for row in totals.tolist()), strict=True))


def merged(parts: Iterator[Sums]) -> Sums:
    """Return sums of several machines or incidents as one."""
    found: Sums = {}
    for part in parts:
        for key, each in part.items():
            found[key] = found.get(key, Sum()).plus(each)
    return found


def total_of(sums: Sums) -> Sum:
    total = Sum()
    for each in sums.values():
        total = total.plus(each)
    return total


def hundredths(seconds: T) -> T:
    """Return core-seconds in hundredths of a core-hour, rounded; a half goes up."""
    return (200 * seconds + HOUR) // (2 * HOUR)


def hours_text(number: int) -> str:
    """Return hundredths of hours as hours."""
    return grouped(charge_text(number, 2))


def grouped(number: str) -> str:
    """Return a number with commas between thousands."""
    whole, point, decimals = number.partition(".")
    return f"{int(whole):,}{point}{decimals}"


def ordered(sums: Sums, by: Sequence[str], names: bool) -> Rows:
    """Return the rows, the largest first, or in the order of months; without the names of users if
    they may not be shown."""
    if by[0] == MONTH:
        rows = sorted(sums.items())
    else:
        rows = sorted(sums.items(), key=lambda row: (-row[1].steps, -row[1].core_seconds, row[0]))
    if names or "user" not in by:
        return rows
    place = by.index("user")
    numbers = {name: i for i, name in enumerate(dict.fromkeys(key[place] for key, _ in rows), 1)}
    return [
        ((*key[:place], f"{HIDDEN} {numbers[key[place]]}", *key[place + 1 :]), each)
        for key, each in rows
    ]


class SumColumns(NamedTuple):
    """How a table of sums is told."""

    by: Sequence[str]
    titles: Sequence[str]
    hours: str
    steps: str
    without: str


def sums_table(rows: Rows, told: SumColumns, decimals: int, top: int) -> Table:
    """Return the rows with their sum below them."""
    empty = [""] * (len(told.by) - 1)
    shown = [([*key], each) for key, each in rows[:top]]
    if rest := rows[top:]:
        shown.append(([f"{len(rest)} more", *empty], total_of(dict(rest))))
    shown.append((["Sum", *empty], total_of(dict(rows))))
    columns = [
        *(Column(title, fold=True) for title in told.titles),
        Column("Jobs", "count"),
        Column(told.hours, "number"),
        Column(told.steps, "number"),
        Column(told.without, "number", spare=1),
    ]
    cells = [
        [
            *key,
            each.jobs,
            hours_text(each.hundredths),
            "unknown" if (charge := each.charge(decimals)) is None else grouped(charge),
            each.without or "",
        ]
        for key, each in shown
    ]
    return Table(columns, cells)


# ---- charges -------------------------------------------------------------------------------------


class _OfMachine(NamedTuple):
    """The jobs of a machine, and what they are charged."""

    name: str
    charges: ChargesFile | None
    jobs: Jobs
    steps: Ints
    reasons: Words


class _Charges(NamedTuple):
    """What jobs are charged, by what tells them apart."""

    machines: Sequence[str]
    rows: Rows
    decimals: int
    zone: tzinfo | None
    #: Why jobs have no charge.
    without: Rows
    notes: Sequence[str]


def charges_page(store: Store, asked: ChargeQuestion) -> Page:
    """Return what jobs are charged. A job counts whole when it has ended: its month is that of its
    end. Raises UsageError and InvalidFiles."""
    found = _charges(store, asked)
    total = total_of(dict(found.rows))
    titles = [title_of(name) for name in asked.by]
    told = SumColumns(asked.by, titles, "Core-hours", "Charge", "Not charged")
    table = sums_table(found.rows, told, found.decimals, asked.top)
    reasons = [reasons_table(found.without)] if found.without else []
    charged = grouped(charge_text(total.steps, found.decimals))
    summary = f"{count(total.jobs - total.without, 'job')} charged {charged} in all"
    if total.without:
        summary += f"; {count(total.without, 'job')} without a charge, named above"
    return Page(
        "Charges",
        [
            Section(f"Charges by {' and '.join(asked.by)}", [table]),
            *(Section("Jobs without a charge", [reason]) for reason in reasons),
            Section("", [Items(found.notes)]),
        ],
        summary=f"{summary}.",
        records=lambda: _charges_record(found, asked, total),
        lines=lambda: _charges_lines(found, asked),
    )


def _charges(store: Store, asked: ChargeQuestion) -> _Charges:
    if asked.until and asked.since >= asked.until:
        raise UsageError("--since is not before --until; name an earlier time")
    machines = machines_with_jobs(store, asked.machine)
    context = context_of(machines)
    columns = columns_of(asked.by, context)
    found = [_of_machine(store, name, asked, columns) for name in machines]
    files = [each.charges for each in found if each.charges is not None]
    decimals = max((each.decimals for each in files), default=2)
    zone = files[0].zone if files else context.zone
    sums = merged(_sums_of(each, asked.by, context, zone, decimals) for each in found)
    notes = [*_notes_of_charges(found, zone), *_notes_of_span(asked)]
    for name in machines:
        notes += [f"{gap.sentence}." for gap in gaps(store, name, asked.since, asked.until)]
    rows = ordered(sums, asked.by, asked.names)
    return _Charges(machines, rows, decimals, zone, _without(found), notes)


def _charges_record(found: _Charges, asked: ChargeQuestion, total: Sum) -> dict[str, Any]:
    return {
        "machines": found.machines,
        "since": asked.since,
        "until": asked.until,
        "time_zone": zone_name(found.zone),
        "total": record_of(total, found.decimals, "charge"),
        "rows": [
            dict(zip(asked.by, key, strict=True)) | record_of(each, found.decimals, "charge")
            for key, each in found.rows
        ],
        "not_charged": [
            {"reason": key[0], "jobs": each.jobs, "core_seconds": each.core_seconds}
            for key, each in found.without
        ],
        "notes": found.notes,
    }


def _charges_lines(found: _Charges, asked: ChargeQuestion) -> Iterator[Sequence[object]]:
    yield *asked.by, "jobs", "core_seconds", "charge", "jobs_not_charged"
    for key, each in found.rows:
        charged = each.charge(found.decimals) or ""
        yield *key, each.jobs, each.core_seconds, charged, each.without


def record_of(each: Sum, decimals: int, key: str) -> dict[str, Any]:
    """Return a sum for JSON; what has decimals is a text, so that it stays exact."""
    return {
        "jobs": each.jobs,
        "core_seconds": each.core_seconds,
        key: each.charge(decimals),
        "jobs_without": each.without,
    }


def machines_with_jobs(store: Store, machine: str) -> list[str]:
    """Return the machine that is asked for, or all that have jobs. Raises UsageError for one that
    has none."""
    names = known_machines(store)
    if not names:
        raise UsageError("no jobs are known; `seatrial usage import` brings them in")
    if machine and machine not in names:
        known = listed(names, 8)
        raise UsageError(f"{machine}: no jobs of it are known; there are those of {known}")
    return [machine] if machine else names


def columns_of(by: Sequence[str], context: Context) -> set[str]:
    """Return the columns of jobs that sums need."""
    of_rows = (ATTRIBUTES[name].columns(context) for name in by if name in ATTRIBUTES)
    return {"machine", *NEEDED}.union(*of_rows)


def _of_machine(
    store: Store, name: str, asked: ChargeQuestion, columns: Collection[str]
) -> _OfMachine:
    chosen = Chosen(machine=name, since=asked.since, until=asked.until)
    jobs = read_jobs(store, chosen, columns)
    ended = jobs.numbers["ended"]
    within = (ended == NONE) | (ended >= asked.since)
    if asked.until:
        within &= ended < asked.until
    jobs = jobs.only(within)
    charges = charges_of(machine_of(name), asked.charges)
    if charges is None:
        none = np.full(len(jobs), NONE, dtype=np.int64)
        return _OfMachine(name, None, jobs, none, Words.alike(NO_CHARGES, len(jobs)))
    charged = charge(charges, jobs)
    return _OfMachine(name, charges, jobs, charged.steps, charged.reasons)


def _sums_of(
    each: _OfMachine, by: Sequence[str], context: Context, zone: tzinfo | None, decimals: int
) -> Sums:
    """Return the sums of a machine, with that many decimals."""
    more = 10 ** (decimals - each.charges.decimals) if each.charges else 1
    steps = np.where(each.steps == NONE, NONE, each.steps * more)
    columns = [words_of(name, each.jobs, context, zone) for name in by]
    return sums_by(columns, _core_seconds(each.jobs), steps)


def _core_seconds(jobs: Jobs) -> Ints:
    return held_seconds(jobs) * np.maximum(jobs.numbers["cores"], 0)


def words_of(name: str, jobs: Jobs, context: Context, zone: tzinfo | None) -> Words:
    if name != MONTH:
        return words(name, jobs, context)
    ended = jobs.numbers["ended"]
    over = np.flatnonzero(ended != NONE)
    months = month_of(ended[over], zone)
    codes = np.full(len(jobs), len(months.names), dtype=np.int32)
    codes[over] = months.codes
    return Words(codes, (*months.names, "(not ended)"))


def _without(found: Sequence[_OfMachine]) -> Rows:
    """Return why jobs have no charge, with how many there are."""
    parts = []
    for each in found:
        some = each.steps == NONE
        reasons = each.reasons.only(some)
        parts.append(sums_by([reasons], _core_seconds(each.jobs)[some], each.steps[some]))
    sums = merged(iter(parts))
    return sorted(sums.items(), key=lambda row: -row[1].jobs)


def reasons_table(rows: Rows) -> Table:
    """Return reasons with the jobs that have them."""
    columns = [Column("Why", fold=True), Column("Jobs", "count"), Column("Core-hours", "number")]
    cells: list[list[Cell]] = [[k[0], each.jobs, hours_text(each.hundredths)] for k, each in rows]
    return Table(columns, cells)


def _notes_of_charges(found: Sequence[_OfMachine], zone: tzinfo | None) -> list[str]:
    """Return how charges are made, and of which machines none are known."""
    notes = []
    for each in found:
        if each.charges is None:
            notes.append(f"{each.name}: {NO_CHARGES}.")
        else:
            unit, rounding = each.charges.unit, each.charges.rounding
            to = f"to {count(each.charges.decimals, 'decimal')} ({rounding})"
            notes.append(f"{each.name}: {unit} x rate x factors, each job rounded {to}.")
    return [*notes, f"A job is charged when it ends; dates are those of {zone_name(zone)}."]


def _notes_of_span(asked: ChargeQuestion) -> list[str]:
    words = [
        f"{word} {datetime.fromtimestamp(edge):%Y-%m-%d %H:%M}"
        for word, edge in (("from", asked.since), ("before", asked.until))
        if edge
    ]
    return [f"Jobs that ended {' and '.join(words)}."] if words else []


# ---- one job -------------------------------------------------------------------------------------


def job_page(store: Store, asked: ChargeQuestion, job: str) -> Page:
    """Return how the charge of a job is made, step by step; of each attempt, and of each job that
    had this id. Raises UsageError."""
    sections, records = list[Section](), list[dict[str, Any]]()
    for name in machines_with_jobs(store, asked.machine):
        machine = machine_of(name)
        jobs = read_jobs(store, Chosen(machine=name, since=asked.since, until=asked.until))
        jobs = jobs.only(jobs.words["job"].are([job]))
        charges = charges_of(machine, asked.charges)
        for place in range(len(jobs)):
            one = jobs.only(np.array([place]))
            section, record = _told_job(name, one, charges)
            sections.append(section)
            records.append(record)
    if not sections:
        raise UsageError(f"--job {job}: no job of this id is known; `seatrial usage` has all")
    return Page(f"Charge of job {job}", sections, records=lambda: records)


def _told_job(
    machine: str, one: Jobs, charges: ChargesFile | None
) -> tuple[Section, dict[str, Any]]:
    def word(name: str) -> str:
        return one.words[name].texts()[0]

    def number(name: str) -> int:
        return int(one.numbers[name][0])

    zone = charges.zone if charges is not None else None
    attempt = f", attempt {number('attempt')}" if number("attempt") else ""
    title = f"Job {word('job')} on {machine}{attempt}"
    about = [
        f"{key} {word(key)}" for key in ("state", "account", "queue", "node_list") if word(key)
    ]
    about += [count(number(key), key[:-1]) for key in ("nodes", "cores") if number(key) > 0]
    parts: list[Part] = [", ".join(about)]
    record: dict[str, Any] = {"machine": machine, "job": word("job"), "steps": []}
    if charges is None:
        return Section(title, [*parts, Text(NO_CHARGES, "notice")]), record | {"reason": NO_CHARGES}
    charged = charge(charges, one)
    rows = [_told_piece(piece, charges, one, zone) for piece in charged.pieces]
    columns = [
        Column("From"), Column("To"), Column("Kind"), Column("Time"), Column("Held", "number"),
        Column("Rate", "number"), Column("By", fold=True), Column("Charge", "number"),
    ]  # fmt: skip
    parts.append(Table(columns, rows))
    parts.append(Text(_ending(charged, charges)))
    reason = charged.reason(0)
    record["steps"] = [dict(zip(_STEP, row, strict=True)) for row in rows]
    record |= {"reason": reason} if reason else {"charge": charged.total()}
    return Section(title, parts), record


_STEP = ("from", "to", "node_kind", "time", "held", "rate", "by", "charge")


def _told_piece(piece: Piece, charges: ChargesFile, one: Jobs, zone: tzinfo | None) -> list[str]:
    """Return a step: what the job held between two dates, by which rules, and what that costs."""
    start = max(piece.start, int(one.numbers["started"][0]))
    end = min(piece.end, int(one.numbers["ended"][0]))
    held = Fraction(int(piece.seconds[0]) * int(piece.amounts[0]), HOUR)
    rate, base = piece.rates[int(piece.codes[0])], int(piece.base[0])
    rules = [f"base[{base}]{_why(charges.base[base])}"] if base != NONE else ["no rule"]
    rules += [
        f"factors[{i}]{_why(charges.factors[i])}" for i, fits in piece.factors.items() if fits[0]
    ]
    unit = charges.unit.removesuffix("s").replace("-hour", "-h")
    return [
        _clock(start, zone),
        _clock(end, zone),
        piece.kind,
        show_seconds(int(piece.seconds[0])),
        f"{_decimal(held)} {unit}",
        _decimal(rate),
        ", ".join(rules),
        _decimal(held * rate),
    ]


def _why(rule: Any) -> str:
    return f" ({rule.reason})" if rule.reason else ""


def _clock(second: int, zone: tzinfo | None) -> str:
    return f"{datetime.fromtimestamp(second, zone):%Y-%m-%d %H:%M:%S}"


def _decimal(value: Fraction) -> str:
    """Return a number with six decimals at most, marked where there are more."""
    millionths, rest = divmod(value * 10**6, 1)
    text = charge_text(int(millionths), 6).rstrip("0").rstrip(".")
    return f"{text}..." if rest else text


def _ending(charged: Charged, charges: ChargesFile) -> str:
    if reason := charged.reason(0):
        return f"No charge: {reason}."
    least = f", at least {charges.minimum}" if charges.minimum.fraction else ""
    return (
        f"In sum {_decimal(charged.exact(0))}; rounded to {count(charges.decimals, 'decimal')} "
        f"({charges.rounding}{least}): {charged.total()}."
    )
