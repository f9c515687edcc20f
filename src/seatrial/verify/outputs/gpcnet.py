"""GPCNeT network_load_test: latency, bandwidth and allreduce, alone and congested, and the impact.

|          RR Two-sided Lat (8 B) |          5.3 |         12.1 |         usec |      (Avg, 99%)
|          RR Two-sided Lat (8 B) |                 2.1X |                2.1X |      (impact)
"""

from __future__ import annotations

import re

from seatrial.units import Better
from seatrial.verify.figures import MetricValue, number, shown
from seatrial.verify.outputs._text import once

_TITLE = re.compile(r"^NetworkLoad Tests v(\S+)", re.MULTILINE)
_TABLES = (
    ("isolated", re.compile(r"Isolated Network Tests")),
    ("congested", re.compile(r"Network Tests running with Congestion Tests(?: \(.*\))?")),
    ("impact", re.compile(r"Network Tests running with Congestion Tests - Key Results")),
)
_UNITS: dict[str, tuple[str, Better]] = {
    "usec": ("us", "lower"),
    "MiB/s/rank": ("MiB/s/rank", "higher"),
}
_COLUMNS = {"Avg": "avg", "99%": "p99"}
_MIN_ROUNDED = 0.0501  # factors have one decimal

Table = dict[str, dict[str, str]]  # test -> column -> text


def parse(text: str) -> list[MetricValue]:
    """Return avg and p99 of each test, labelled ``test`` and ``network`` (isolated or congested),
    and the factors impact_avg and impact_p99, computed from these (the program prints them with one
    decimal). Raises ValueError with the reason if a table is missing or does not agree with the
    others."""
    once(_TITLE, text, "title 'NetworkLoad Tests'")
    tables = _tables(text)
    for which, _ in _TABLES:
        if not tables.get(which):
            raise ValueError(f"its table of {which} network tests is missing")
    tests = list(tables["isolated"])
    if missing := [
        (which, test) for which, _ in _TABLES for test in tests if test not in tables[which]
    ]:
        raise ValueError(f"its table {missing[0][0]!r} has no whole row of {missing[0][1]!r}")
    if extra := set(tables["impact"]) - set(tests):
        raise ValueError(f"its isolated tests have no whole row of {shown(min(extra))}")
    figures: list[MetricValue] = []
    for test in tests:
        for column, name in _COLUMNS.items():
            figures += _of_test(test, column, name, tables)
    return figures


def _of_test(test: str, column: str, name: str, tables: dict[str, Table]) -> list[MetricValue]:
    unit = tables["isolated"][test]["Units"]
    if unit not in _UNITS or tables["congested"][test]["Units"] != unit:
        raise ValueError(f"the unit of {test!r} is not known, or not one: {shown(unit)}")
    shown_unit, better = _UNITS[unit]
    alone, loaded = (number(tables[which][test][column]) for which in ("isolated", "congested"))
    told = tables["impact"][test][column]
    if not told.endswith("X"):
        raise ValueError(f"the impact factor of {test!r} is not whole: {shown(told)}")
    factor = number(told[:-1])
    if alone <= 0 or loaded <= 0:
        raise ValueError(f"{test!r} has a figure that is not positive")
    impact = loaded / alone if better == "lower" else alone / loaded
    if abs(impact - factor) > _MIN_ROUNDED:
        raise ValueError(f"it says {told} for {test!r}, but its tables give {impact:.2f}X")
    return [
        MetricValue(name, alone, shown_unit, better, labels={"test": test, "network": "isolated"}),
        MetricValue(
            name, loaded, shown_unit, better, labels={"test": test, "network": "congested"}
        ),
        MetricValue(f"impact_{name}", impact, "1", "lower", labels={"test": test}),
    ]


def _tables(text: str) -> dict[str, Table]:
    """Return the rows of the three kinds of table. A verbose build has more columns, a table of
    congested tests for each test, and rows and tables of the congestors; all these are skipped."""
    tables: dict[str, Table] = {}
    which, columns = "", [""]
    for line in text.split("\n"):
        row = line.strip(" \t")
        if not row.startswith("|"):
            continue
        if len(row) < 2 or not row.endswith("|"):
            raise ValueError(f"a row of its tables is not whole: {shown(row)}")
        cells = [cell.strip() for cell in row[1:-1].split("|")]
        if len(cells) == 1:
            which, columns = _kind(cells[0]), [""]
        elif cells[0] in ("Name", ""):
            columns = cells
        elif which:
            if len(cells) != len(columns):
                raise ValueError(f"a row of its tables is not whole: {shown(row)}")
            table = tables.setdefault(which, {})
            if which == "isolated" or which == "impact" or cells[0] in tables.get("isolated", {}):
                if cells[0] in table:
                    raise ValueError(f"it has {shown(cells[0])} twice; judge one run at a time")
                table[cells[0]] = dict(zip(columns, cells, strict=True))
                if not set(_COLUMNS) <= set(columns):
                    raise ValueError(f"a table of it has no columns {' and '.join(_COLUMNS)}")
    return tables


def _kind(title: str) -> str:
    return next((which for which, pattern in _TABLES if pattern.fullmatch(title)), "")
