"""GPCNeT network_load_test and network_test: latency, bandwidth, allreduce, and the impact of load.

|          RR Two-sided Lat (8 B) |          5.3 |         12.1 |         usec |      (Avg, 99%)
|          RR Two-sided Lat (8 B) |                 2.1X |                2.1X |      (impact)
"""

import re
from collections.abc import Iterator, Mapping

from seatrial.judge.formats import UniqueValues, once
from seatrial.model.figures import MetricValue, number, shown
from seatrial.units import Better

_TITLE = re.compile(r"^Network(Load)? Tests v(\S+)", re.MULTILINE)
_ALONE = ("isolated",)  # the only table of network_test
# The tests of network_test, in their order, unless a site has changed its source.
_TESTS = (
    "RR Two-sided Lat",
    "RR Get Lat",
    "RR Two-sided BW",
    "RR Put BW",
    "RR Two-sided BW+Sync",
    "Nat Two-sided BW",
    "Multiple Allreduce",
    "Multiple Alltoall",
)
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
    decimal). network_test has isolated tests alone. Raises ValueError with the reason if a table is
    missing or does not agree with the others."""
    load = once(_TITLE, text, "title 'NetworkLoad Tests' or 'Network Tests'")[1]
    tables = _tables(text)
    for which in _TABLES if load else _ALONE:
        if not tables[which]:
            raise ValueError(f"its table of {which} network tests is missing")
    if not load:
        if tables["congested"] or tables["impact"]:
            raise ValueError("its title 'NetworkLoad Tests' is missing")
        return _of_network_test(text, tables["isolated"])
    return _of_load_test(tables)


def _of_load_test(tables: Mapping[str, Table]) -> list[MetricValue]:
    """Return the figures of each test, isolated and congested, and its factors."""
    tests = list(tables["isolated"])
    if extra := set(tables["impact"]) - set(tests):
        raise ValueError(f"its isolated tests have no whole row of {shown(min(extra))}")
    figures: list[MetricValue] = []
    for test in tests:
        alone, loaded, impact = (tables[which][test] for which in _TABLES)
        unit = _unit(test, alone, loaded)
        for column, name in _COLUMNS.items():
            values = [number(row[column]) for row in (alone, loaded)]
            figures += _of_test(test, name, values, *unit, impact[column])
    return figures


def _unit(test: str, *rows: UniqueValues[str]) -> tuple[str, Better]:
    units = {row["Units"] for row in rows}
    if not units <= set(_UNITS) or len(units) > 1:
        raise ValueError(f"the unit of {test!r} is not known, or not one: {shown(min(units))}")
    return _UNITS[units.pop()]


def _of_network_test(text: str, table: Table) -> list[MetricValue]:
    """Return the figures of the isolated tests. The program prints no closing line: a line below
    each row, and the usual tests from the first to the last."""
    *_, last = (line for line in text.split("\n") if line[:1] in ("|", "+"))
    names = tuple(test.partition(" (")[0] for test in table)
    if last[0] != "+" or (len(names) < len(_TESTS) and names == _TESTS[: len(names)]):
        raise ValueError(f"its table is not whole: the last row is {shown(names[-1])}")
    figures: list[MetricValue] = []
    for test, row in table.items():
        unit, better = _unit(test, row)
        labels: dict[str, int | str] = {"test": test, "network": "isolated"}
        for column, name in _COLUMNS.items():
            value = number(row[column])
            if value <= 0:
                raise ValueError(f"{test!r} has a figure that is not positive")
            figures.append(MetricValue(name, value, unit, better, labels=labels))
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
