"""IOR 2.10, 3 and 4, as text, JSON or CSV: bandwidth of write and read in MiB/s over repetitions.

Summary of all tests:
Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   Max(OPs) ...
write         547.70     540.32     544.01       3.69     547.70 ...
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import NamedTuple

from msgspec import DecodeError, Struct, field

from seatrial.judge.formats import end_whole, json_in, once, whole
from seatrial.model.figures import MetricValue, number, shown
from seatrial.model.file_model import decoder

_TITLE = re.compile(r"^IOR-\S+: MPI Coordinated Test of Parallel I/O", re.MULTILINE)
_FINISHED = re.compile(r"^(?:Run finished|Finished)[ \t]*:", re.MULTILINE)
_HEADER = re.compile(
    r"^Operation[ \t]+Max[ \t]?\(MiB\)[ \t]+Min[ \t]?\(MiB\)[ \t]+Mean[ \t]?\(MiB\)"
    r"[ \t]+Std ?Dev\b.*$",
    re.MULTILINE,
)
_BLANK_WITHIN = re.compile(r"[ \t](?=\(|Dev\b)")  # "Max (MiB)" and "Std Dev", in old versions
_RAN = re.compile(r"^(write|read)[ \t]", re.MULTILINE)
_MAX = re.compile(r"Max (Write|Read):[ \t]+(\S+) MiB/sec[ \t]+\((\S+) MB/sec\)[ \t]*")
_FAULT = re.compile(r"^(?:ior )?ERROR\b.*|incorrect data on (?:write|read).*", re.M | re.I)
_CSV_ROW = re.compile(r"(?:write|read)(?:,|$)|.*,[0-9.]+,")  # whole or not
_CSV_HEAD = re.compile(r"^access,bw\(MiB/s\),.*,iter$", re.MULTILINE)
_STATISTICS = ("max", "min", "mean")


def parse(text: str) -> list[MetricValue]:
    """Return write_max, write_min, write_mean, read_max, read_min and read_mean, as far as they
    were run. Those of a second and further test in one output are labelled ``test``; where its
    tests differ in the size of transfers or blocks, all are labelled ``bytes`` or ``block`` in its
    place, and ``test`` from the second of the same sizes on. Without a
    summary (2.10 without -v) only the two maxima are returned. Raises ValueError with the reason if
    the closing line is missing, a row is not complete, or IOR found wrong data."""
    if fault := _FAULT.search(text):
        raise ValueError(f"IOR says {shown(fault[0])}")
    json, csv = json_in(text), _CSV_HEAD.search(text)
    if [bool(json), bool(csv), bool(_TITLE.search(text))].count(True) > 1:
        raise ValueError("it has outputs of more than one form; judge one run at a time")
    if json:
        return _of_json(json)
    if csv:
        return _of_csv(text)
    once(_TITLE, text, "title 'IOR-...: MPI Coordinated Test of Parallel I/O'")
    once(_FINISHED, text, "closing line 'Finished'")
    head = _HEADER.search(text)
    return _of_maxima(text) if head is None else _of_summary(text, head)


def _of_summary(text: str, head: re.Match[str]) -> list[MetricValue]:
    columns = _BLANK_WITHIN.sub("", head[0]).split()
    found: list[_Row] = []
    repetitions: dict[str, list[int]] = {}  # of each row of an operation, 0 where not told
    for line in _rows_of(text[head.end() + 1 :]):
        words = line.split()
        if len(words) < (len(columns) if "Test#" in columns else 5):
            raise ValueError(f"a row of its summary is not whole: {shown(line)}")
        row = dict(zip(columns, words, strict=False))
        repetitions.setdefault(words[0], []).append(int(number(row.get("reps", "0"))))
        values = [number(word) for word in words[1:4]]
        numbers = (int(number(row.get(name, "0"))) for name in ("Test#", "xsize", "blksiz"))
        found.append(_checked(_Row(words[0], values, *numbers)))
    _require_rows(Counter(row[1] for row in _RAN.finditer(text, 0, head.start())), repetitions)
    if not found:
        raise ValueError("its summary of all tests has no rows")
    return _figures(found)


def _require_rows(ran: Mapping[str, int], repetitions: Mapping[str, list[int]]) -> None:
    """Raise ValueError if a summary lacks rows of operations that ran, so many times each."""
    for operation, times in ran.items():
        rows = repetitions.get(operation, [])
        if not rows or (all(rows) and sum(rows) < times):
            raise ValueError(f"its summary has no row of {operation}, or too few")


def unknown_lines(text: str) -> Iterator[str]:
    """Yield the lines of the summary, or of the CSV table, that are passed over."""
    if head := _CSV_HEAD.search(text):
        lines = text[head.end() + 1 :].split("\n")
        yield from (line for line in lines if line.strip() and not _CSV_ROW.match(line))
    elif head := _HEADER.search(text):
        others = (line for line in _below_head(text[head.end() + 1 :]) if not _is_row(line))
        yield from (line for line in others if line.strip(" \t-"))


def _rows_of(text: str) -> Iterator[str]:
    """Yield the rows of a summary below its head."""
    return filter(_is_row, _below_head(text))


def _is_row(line: str) -> bool:
    """Return whether a line is a row, whole or not: it begins with an operation, or has numbers
    behind its first word."""
    operation, *words = line.split()
    numbers = len(words) > 2 and all(word[0].isdigit() for word in words[:3])
    return operation in ("write", "read") or numbers


def _below_head(text: str) -> Iterator[str]:
    """Yield the lines of a summary below its head."""
    for line in text.split("\n"):
        if not line.strip() or line.startswith("Max ") or _FINISHED.match(line):
            return
        yield line


def _of_maxima(text: str) -> list[MetricValue]:
    if "Summary of all tests:" in text:
        raise ValueError("the head of its summary is missing")
    rows = [text[row.start() :].partition("\n")[0].split() for row in _RAN.finditer(text)]
    if len(set(map(len, rows))) > 1:  # some are of a summary
        raise ValueError("its rows are not of one table: the head of its summary is missing")
    maxima = _requested(text)
    if not maxima:
        raise ValueError("it has neither a summary of all tests nor a line 'Max Write:'")
    if rows and {name for name, _ in maxima} != {words[0] for words in rows}:
        raise ValueError("its maxima are not of the operations that it ran: a line is missing")
    return [MetricValue(f"{name}_max", rate, "MiB/s", "higher") for name, rate in maxima]


def _requested(text: str) -> list[tuple[str, float]]:
    """Return the operations that were requested, each with its maximum; 0 is told of others."""
    lines = [line for line in text.split("\n") if line.startswith(("Max Write:", "Max Read:"))]
    return [(name, rate) for name, rate in map(_maximum, lines) if rate]


def _maximum(line: str) -> tuple[str, float]:
    """Return the operation and the MiB/s of a line ``Max Write: ...``."""
    operation, *rates = whole(_MAX, line).groups()
    mib, mb = map(number, rates)
    if abs(mib * 1.048576 - mb) > 0.01 + 1e-3 * mb:
        raise ValueError(f"its MiB/s and MB/s do not agree: {shown(line)}")
    return operation.lower(), mib


def _of_csv(text: str) -> list[MetricValue]:
    """Return the figures of the table of ``summaryFormat=CSV``, a row each time that something was
    written or read. It has no closing line."""
    end_whole(text)
    head = once(_CSV_HEAD, text, "head of its table")
    columns = head[0].split(",")
    rates: dict[str, list[float]] = {}
    for line in text[head.end() + 1 :].split("\n"):
        if not _CSV_ROW.match(line):
            continue
        operation, *cells = line.split(",")
        if operation not in ("write", "read"):
            raise ValueError(f"it should begin with write or read: {shown(line)}")
        if len(cells) + 1 != len(columns):
            raise ValueError(f"it should have {len(columns)} columns: {shown(line)}")
        earlier = rates.setdefault(operation, [])
        if cells[-1] != str(len(earlier)):
            raise ValueError(f"it should be repetition {len(earlier)}: {shown(line)}")
        earlier.append(number(cells[0]))
    if len(set(map(len, rates.values()))) != 1:
        raise ValueError(
            "it has not as many rows of write as of read" if rates else "it has no rows"
        )
    return _figures(
        [
            _checked(_Row(operation, [max(values), min(values), fmean(values)]))
            for operation, values in rates.items()
        ]
    )


class _Row(NamedTuple):
    """An operation of a test: max, min and mean, and the bytes of a transfer and of a block."""

    operation: str
    values: list[float]
    test: int = 0
    transfer: int = 0
    block: int = 0


def _checked(row: _Row) -> _Row:
    """Return a row. Raises ValueError if it is of no operation, or its mean cannot be."""
    if row.operation not in ("write", "read"):
        raise ValueError(f"its summary has a row that is not known: {shown(row.operation)}")
    highest, lowest, mean = row.values
    if not lowest <= mean + 0.01 or not mean <= highest + 0.01:
        raise ValueError(f"its mean of {row.operation} is not between the least and the largest")
    return row


class _Summary(Struct):
    operation: str
    highest: float = field(name="bwMaxMIB")
    lowest: float = field(name="bwMinMIB")
    mean: float = field(name="bwMeanMIB")
    test: int = field(name="TestID", default=0)
    transfer: int = field(name="transferSize", default=0)
    block: int = field(name="blockSize", default=0)

    @property
    def plain(self) -> _Row:
        values = [self.highest, self.lowest, self.mean]
        return _checked(_Row(self.operation, values, self.test, self.transfer, self.block))


class _Result(Struct):
    access: str = ""


class _Test(Struct):
    test: int = field(name="TestID", default=0)
    results: list[_Result] = field(name="Results", default=[])


class _Output(Struct):
    version: str = field(name="Version")
    finished: str = field(name="Finished")
    summary: list[_Summary]
    tests: list[_Test] = []


def _of_json(text: str) -> list[MetricValue]:
    try:
        output = decoder(_Output).decode(text)
    except (DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise ValueError(f"its JSON is not whole, or not IOR's: {error}") from None
    ran = {(test.test, each.access) for test in output.tests for each in test.results}
    summarised = {(row.test, row.operation) for row in output.summary}
    missing = [access for _, access in sorted(ran - summarised) if access in ("write", "read")]
    if missing:
        raise ValueError(f"its summary has no row of {missing[0]}")
    return _figures([row.plain for row in output.summary])


Labels = dict[str, int | str]


def _figures(rows: list[_Row]) -> list[MetricValue]:
    """Return the figures of the rows of all tests."""
    labels = _labels_of(rows)
    return [figure for row in rows for figure in _of_row(row, labels[row.test])]


def _labels_of(rows: list[_Row]) -> dict[int, Labels]:
    """Return the labels of each test: the sizes in which tests differ, and the number among those
    that share them, but for the first."""
    sizes = {row.test: {"bytes": row.transfer, "block": row.block} for row in rows}
    differ = [name for name in ("bytes", "block") if len({own[name] for own in sizes.values()}) > 1]
    if not differ:
        return {test: {"test": test} if test else {} for test in sizes}
    found: dict[int, Labels] = {}
    earlier: Counter[tuple[int, ...]] = Counter()
    for test, own in sizes.items():
        key = tuple(own[name] for name in differ)
        found[test] = {name: own[name] for name in differ}
        if earlier[key]:
            found[test]["test"] = earlier[key]
        earlier[key] += 1
    return found


def _of_row(row: _Row, labels: Labels) -> list[MetricValue]:
    return [
        MetricValue(f"{row.operation}_{what}", value, "MiB/s", "higher", labels=labels)
        for what, value in zip(_STATISTICS, row.values, strict=True)
    ]
