"""GPCNeT network_load_test: latency, bandwidth and allreduce, alone and congested, and the impact.

|          RR Two-sided Lat (8 B) |          5.3 |         12.1 |         usec |      (Avg, 99%)
|          RR Two-sided Lat (8 B) |                 2.1X |                2.1X |      (impact)
"""

import re
from collections.abc import Iterator

from seatrial.judge.outputs._text import UniqueValues, once
from seatrial.model.figures import MetricValue, number, shown
from seatrial.units import Better

_TITLE = re.compile(r"^NetworkLoad Tests v(\S+)", re.MULTILINE)
_TABLES = {
    "isolated": re.compile(r"Isolated Network Tests"),
    "congested": re.compile(r"Network Tests running with Congestion Tests(?: \(.*\))?"),
    "impact": re.compile(r"Network Tests running with Congestion Tests - Key Results"),
}
_UNITS: dict[str, tuple[str, Better]] = {
    "usec": ("us", "lower"),
    "MiB/s/rank": ("MiB/s/rank", "higher"),
}
_COLUMNS = {"Avg": "avg", "99%": "p99"}
_MIN_ROUNDED = 0.0501  # factors have one decimal

Table = UniqueValues[UniqueValues[str]]  # test -> column -> text


def parse(text: str) -> list[MetricValue]:
    """Return avg and p99 of each test, labelled ``test`` and ``network`` (isolated or congested),
    and the factors impact_avg and impact_p99, computed from these (the program prints them with one
    decimal). Raises ValueError with the reason if a table is missing or does not agree with the
    others."""
    once(_TITLE, text, "title 'NetworkLoad Tests'")
    tables = _tables(text)
    for which, table in tables.items():
        if not table:
            raise ValueError(f"its table of {which} network tests is missing")
    tests = list(tables["isolated"])
    if extra := set(tables["impact"]) - set(tests):
        raise ValueError(f"its isolated tests have no whole row of {shown(min(extra))}")
    figures: list[MetricValue] = []
    for test in tests:
        alone, loaded, impact = (tables[which][test] for which in _TABLES)
        unit = alone["Units"]
        if unit not in _UNITS or loaded["Units"] != unit:
            raise ValueError(f"the unit of {test!r} is not known, or not one: {shown(unit)}")
        for column, name in _COLUMNS.items():
            values = [number(row[column]) for row in (alone, loaded)]
            figures += _of_test(test, name, values, *_UNITS[unit], impact[column])
    return figures


def _of_test(
    test: str, name: str, values: list[float], unit: str, better: Better, printed: str
) -> list[MetricValue]:
    """Return the figures of a test. ``values``: alone and loaded; ``printed``: the factor."""
    alone, loaded = values
    if not printed.endswith("X"):
        raise ValueError(f"the impact factor of {test!r} is not whole: {shown(printed)}")
    factor = number(printed[:-1])
    if alone <= 0 or loaded <= 0:
        raise ValueError(f"{test!r} has a figure that is not positive")
    impact = loaded / alone if better == "lower" else alone / loaded
    if abs(impact - factor) > _MIN_ROUNDED:
        raise ValueError(f"it says {printed} for {test!r}, but its tables give {impact:.2f}X")
    return [
        *(
            MetricValue(name, value, unit, better, labels={"test": test, "network": network})
            for network, value in zip(_TABLES, values, strict=False)
        ),
        MetricValue(f"impact_{name}", impact, "1", "lower", labels={"test": test}),
    ]


def _rows_of(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the rows of all tables, each as it is and by its cells."""
    for line in text.split("\n"):
        row = line.strip(" \t")
        if not row.startswith("|"):
            continue
        if len(row) < 2 or not row.endswith("|"):
            raise ValueError(f"a row of its tables is not whole: {shown(row)}")
        yield row, [cell.strip() for cell in row[1:-1].split("|")]


def _tables(text: str) -> dict[str, Table]:
    """Return the rows of the three kinds of table. A verbose build has more columns, a table of
    congested tests for each test, and rows and tables of the congestors; all these are skipped."""
    tables: dict[str, Table] = {which: UniqueValues() for which in _TABLES}
    which, columns = "", [""]
    for row, cells in _rows_of(text):
        if len(cells) == 1:
            titles = (which for which, title in _TABLES.items() if title.fullmatch(cells[0]))
            which, columns = next(titles, ""), [""]
        elif cells[0] in ("Name", ""):
            columns = cells
        elif which and len(cells) != len(columns):
            raise ValueError(f"a row of its tables is not whole: {shown(row)}")
        elif which and (which != "congested" or cells[0] in tables["isolated"]):
            values = tables[which][cells[0]] = UniqueValues()
            for column, cell in zip(columns, cells, strict=True):
                values[column] = cell
    return tables
