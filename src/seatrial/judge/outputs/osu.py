"""OSU micro-benchmarks 3 to 7: every column of every message size, with or without -f.

# OSU MPI Allreduce Latency Test v7.3
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
8                       1.51              1.21              1.92        1000

They have no closing line: a file that was cut between two lines gives the figures of the whole
lines before, and it is the run's exit code that tells. Sizes double from row to row (after 0 comes
1), so that a row that is missing in the middle is noticed.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from seatrial.judge.formats import end_whole, is_row, not_rows
from seatrial.model.figures import MetricValue, number, shown
from seatrial.units import Better

_TITLE_LINE = re.compile(r"^(# OSU .*)\n", re.MULTILINE)
_TITLE = re.compile(r"# OSU (.+?)(?: Test)? v[3-7][.\d]*[ \t]*")
_HEADER = re.compile(r"# (?:Size(?:[ \t]{2,}|\t)|.*(?:\(us\)|MB/s))")
_APART = re.compile(r"[ \t]{2,}|\t|[ \t](?=P\d{1,3} Tail )")  # tails stand one blank apart
_COLUMNS: tuple[tuple[re.Pattern[str], str, str, Better], ...] = (
    (re.compile(r"(?:Avg )?Lat(?:ency)? ?\(us\)"), "latency", "us", "lower"),
    (re.compile(r"(Min|Max) Lat(?:ency)? ?\(us\)"), "latency_{}", "us", "lower"),
    (re.compile(r"(P\d+) Tail Lat(?:ency)? ?\(us\)"), "latency_{}", "us", "lower"),
    (re.compile(r"(P\d+) Tail BW ?\(MB/s\)"), "bandwidth_{}", "MB/s", "higher"),
    (re.compile(r"Overall ?\(us\)"), "overall", "us", "lower"),
    (re.compile(r"Pure Comm\. ?\(us\)"), "communication", "us", "lower"),
    (re.compile(r"Overlap ?\(%\)"), "overlap", "%", "higher"),
    (re.compile(r"(?:(?:Bi-)?Bandwidth )?\(?MB/s\)?"), "bandwidth", "MB/s", "higher"),
    (re.compile(r"Messages/s"), "message_rate", "1/s", "higher"),
)
# Columns that are ignored: settings, and the parts of the overall time of a non-blocking call.
_PASSED_OVER = re.compile(
    r"Iterations|Transmit Size|(?:Compute|Coll\. Init|MPI_Test|MPI_Wait|(?:Min|Max) Comm\.) ?\(us\)"
)
_CHECKED = re.compile(r"Validation")


def parse(text: str) -> list[MetricValue]:
    """Return latency, bandwidth, message_rate and so on, by column, labelled ``benchmark`` (its
    title) and ``bytes`` (except for a barrier). Raises ValueError with the reason if there are none
    below a title, a row is not complete, a column is not known, or OSU's own validation failed."""
    end_whole(text)
    before, *parts = _TITLE_LINE.split(text)
    if not parts or any(map(_HEADER.match, before.split("\n"))):
        raise ValueError("its title '# OSU ... Test v...' is missing")
    figures: list[MetricValue] = []
    for head, block in zip(parts[::2], parts[1::2], strict=True):
        title = _TITLE.fullmatch(head)
        if title is None:
            raise ValueError(f"its title is not '# OSU ... Test v' and 3 to 7: {shown(head)}")
        rows = list(_rows(title[1], block))
        _require_whole_ends(block)
        if not any(rows):
            raise ValueError(f"it has no figures below the title of {shown(title[1])}")
        _require_doubling(rows)
        figures += [figure for row in rows for figure in row]
    return figures


def unknown_lines(text: str) -> Iterator[str]:
    """Yield the lines among the rows that are passed over."""
    _, *parts = _TITLE_LINE.split(text)
    for block in parts[1::2]:
        yield from not_rows(block.split("\n"))


def _rows(benchmark: str, block: str) -> Iterator[list[MetricValue]]:
    """Yield the figures of each row of a benchmark."""
    columns: list[str] = []
    for line in block.split("\n"):
        if _HEADER.match(line):
            if columns:
                raise ValueError(f"a title '# OSU ...' is missing before {shown(line)}")
            columns = _APART.split(line.strip("# \t"))
        elif columns and is_row(line):
            yield _row(benchmark, columns, line)


def _require_doubling(rows: list[list[MetricValue]]) -> None:
    """Raise ValueError if sizes do not double from row to row."""
    sizes = [int(row[0].labels.get("bytes", -1)) if row else -1 for row in rows]
    for last, size in pairwise(sizes):
        if last >= 0 and size != (2 * last or 1):
            raise ValueError(f"a row between {last} and {size} bytes is missing")


def _require_whole_ends(block: str) -> None:
    """Raise ValueError if the last number of a row has not as many decimals as that of the first:
    it was cut. A launcher that labels lines ends the last one itself."""
    ends = [line.split()[-1] for line in filter(is_row, block.split("\n"))]
    for end in ends:
        if len(end.partition(".")[2]) != len(ends[0].partition(".")[2]):
            raise ValueError(f"a row ends with {shown(end)}: it is not whole")


def _row(benchmark: str, columns: list[str], line: str) -> list[MetricValue]:
    cells = line.split()
    if len(cells) != len(columns):
        raise ValueError(f"it should have {len(columns)} columns: {shown(line)}")
    labels: dict[str, int | str] = {"benchmark": benchmark}
    figures = []
    for column, cell in zip(columns, cells, strict=True):
        if column == "Size":
            labels = {**labels, "bytes": int(number(cell))}
        elif _CHECKED.fullmatch(column):
            if cell != "Pass":
                raise ValueError(f"its validation says {shown(cell)}: {shown(line)}")
        elif not _PASSED_OVER.fullmatch(column):
            name, unit, better = _meaning(column)
            figures.append(MetricValue(name, number(cell), unit, better, labels=labels))
    return figures


def _meaning(column: str) -> tuple[str, str, Better]:
    for pattern, name, unit, better in _COLUMNS:
        if match := pattern.fullmatch(column):
            return name.format(*(word.lower() for word in match.groups())), unit, better
    raise ValueError(f"it has a column that is not known: {shown(column)}")
