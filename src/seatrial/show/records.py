"""The best figure ever of each machine, and those that others gave: the page of ``seatrial
records``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from seatrial.judge.promises import COLUMN, share_cell, told
from seatrial.results.given import GivenEntry
from seatrial.results.metric_records import MachineRecord, TestRecords
from seatrial.results.store.export import iso
from seatrial.show.formatting import run_address
from seatrial.show.given import GIVEN, conversion_words, reasons_of, value_of
from seatrial.show.page import Cell, Column, Figure, Link, Page, Part, Section, Table, Text
from seatrial.units import count, direction_text, in_per_cent

ABOUT = (
    "A record is one run, the best of n: more runs make it better by chance. The median is of all "
    "runs of its case. Given figures were not measured here."
)
_COLUMNS = (
    Column("machine", fold=True),
    Column("", "state"),
    Column("best", "number"),
    Column(COLUMN, "share"),
    Column("of best", "share"),
    Column("when", "time"),
    Column("n", "count"),
    Column("median", "number", spare=1),
    Column("runs", "count", spare=1),
    Column("run or source", fold=True, spare=-1),
    Column("case", fold=True, spare=2),
)
_LINE = (
    *("test", "metric", "unit", "better", "machine", "given", "value", "when", "n", "median"),
    *("runs", "run_id", "trial", "case", "source"),
)


def records_page(found: Sequence[TestRecords], metric: str) -> Page:
    """Return the page of the records of a metric, a section for each test."""
    return Page(
        f"Records of {metric}",
        [*map(_section, found), Section("", [Text(ABOUT, "quiet")])],
        _summary(found),
        partial(_records, found),
        partial(_lines, found),
    )


def _summary(found: Sequence[TestRecords]) -> str:
    machines = {one.machine for each in found for one in each.records}
    given = sum(len(each.given) for each in found)
    beside = f", {count(given, 'given figure')} beside" if given else ""
    return f"{count(len(found), 'test')}, {count(len(machines), 'machine')} measured{beside}"


def _section(one: TestRecords) -> Section:
    unit = "" if one.unit in ("", "1") else f"{one.unit}, "
    direction = direction_text(one.better) if one.better else "not known which is better"
    parts: list[Part] = [
        f"{unit}{direction}",
        _table(one),
        *told(record.promised for record in one.records),
        one.reason,
        *conversion_words(one.given),
        *reasons_of(one.given),
        *_last_words(one),
    ]
    return Section(f"{one.metric} of {one.test}", parts)


def _table(one: TestRecords) -> Table:
    """Return the records and the given figures, the best first; last those not compared."""
    rows = [(record.value, _measured_row(record)) for record in one.records]
    rows += [(entry.value, _given_row(entry, one)) for entry in one.given if not entry.reason]
    rows.sort(key=lambda row: row[0], reverse=one.better != "lower")
    last = [_given_row(entry, one) for entry in one.given if entry.reason]
    return Table(_COLUMNS, [*(row for _, row in rows), *last])


def _last_words(one: TestRecords) -> Iterator[Part]:
    if one.excluded:
        reasons = ", ".join(f"{number} {reason}" for reason, number in one.excluded.items())
        yield f"left out: {count(sum(one.excluded.values()), 'figure')}: {reasons}"
    if one.records:
        best = one.records[0]
        figure = Figure(best.value, one.unit)
        yield Text(["best measured:", figure, f"on {best.machine}, the best of {best.n}"])


def _measured_row(one: MachineRecord) -> list[Cell]:
    run = Link(f"{one.trial}/{one.run_id}", run_address(one))
    figures: list[Cell] = [
        one.value,
        share_cell(one.promised),
        in_per_cent(one.ratio),
        one.time,
        one.n,
    ]
    return [one.machine, None, *figures, one.median, one.runs, run, one.case]


def _given_row(entry: GivenEntry, one: TestRecords) -> list[Cell]:
    value = value_of(entry, one.unit)
    figures: list[Cell] = [value, "", in_per_cent(entry.ratio), entry.date, entry.n, None, None]
    origin = entry.source or entry.trial
    return [entry.system, GIVEN, *figures, origin, entry.case]


def _records(found: Sequence[TestRecords]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = msgspec.to_builtins(found)
    for each in records:
        for one in each["records"]:
            one["time"] = iso(one["time"])
    return records


def _lines(found: Sequence[TestRecords]) -> Iterator[Sequence[object]]:
    yield _LINE
    for each in found:
        about = (each.test, each.metric)
        for one in each.records:
            figures = (one.machine, "", one.value, iso(one.time), one.n, one.median, one.runs)
            yield *about, each.unit, each.better, *figures, one.run_id, one.trial, one.case, ""
        for entry in each.given:
            given = (entry.system, "given", entry.value, entry.date, entry.n, "", "")
            origin = ("", entry.trial, entry.case, entry.source)
            yield *about, entry.unit, entry.better, *given, *origin
