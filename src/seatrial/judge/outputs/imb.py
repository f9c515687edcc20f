"""Intel MPI Benchmarks (IMB-MPI1, -NBC, -RMA, -EXT, -MT): every column of every message size.

# Benchmarking Allreduce
# #processes = 2
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            8         1000         0.31         0.35         0.33
# All processes entering MPI_Finalize
"""

import re
from collections.abc import Iterator

from seatrial.judge.formats import is_row, not_rows, once, whole
from seatrial.model.figures import MetricValue, number, shown
from seatrial.units import Better

_TITLE = re.compile(
    r"^#[ \t]+Intel ?\(R\) MPI Benchmarks?(?: Suite)? V?(\d\.\d[.\d]*|20\d\d[.\d]*)(?: [^,\n]*)?,",
    re.MULTILINE,
)
_BENCHMARK = re.compile(r"^#[ \t]*Benchmarking[ \t]+(\S+).*$", re.MULTILINE)
_PROCESSES = re.compile(r"#[ \t]*#processes[ \t]*=[ \t]*(\d+)[ \t]*(?:[;(].*)?")
_GROUPS = re.compile(r"#[ \t]*\([ \t]*(\d+) groups of (\d+) processes each.*")
_MODE = re.compile(r"#[ \t]*MODE:[ \t]*(\S+).*")
_WITHIN = (_PROCESSES, _GROUPS, _MODE)  # a benchmark's lines
_LISTED = re.compile(r"^#[ \t]+(?:\(Multi-\))?(\w+)[ \t]*$", re.MULTILINE)  # of -multi
_END = re.compile(r"^# All processes entering MPI_Finalize", re.MULTILINE)
_COLUMNS: dict[str, tuple[str, str, Better]] = {
    "t[usec]": ("time", "us", "lower"),
    "t_min[usec]": ("time_min", "us", "lower"),
    "t_max[usec]": ("time_max", "us", "lower"),
    "t_avg[usec]": ("time_avg", "us", "lower"),
    "t_ovrl[usec]": ("time_overlapped", "us", "lower"),
    "t_pure[usec]": ("time_pure", "us", "lower"),
    "overlap[%]": ("overlap", "%", "higher"),
    "Mbytes/sec": ("bandwidth", "MB/s", "higher"),
    "Msg/sec": ("message_rate", "1/s", "higher"),
}
_PASSED_OVER = {"#repetitions", "t_CPU[usec]"}
_LABELS = {"#bytes": "bytes", "Group": "group"}
_FIRST_OF_MB = 2018  # older versions print MiB/s under the same heading
_MIB = 1.048576
_AGREES = 0.005


def parse(text: str) -> list[MetricValue]:
    """Return time, bandwidth and so on, by column, labelled ``benchmark``, ``processes`` and
    ``bytes`` (except for a barrier). Raises ValueError with the reason if a row or the closing line
    is missing, a sample was given up, a column is not known, or IMB found defects."""
    version = int(once(_TITLE, text, "title 'Intel(R) MPI Benchmarks ...'")[1].partition(".")[0])
    once(_END, text, "closing line '# All processes entering MPI_Finalize'")
    usual = "MB/s" if version >= _FIRST_OF_MB else "MiB/s"
    before, *parts = _BENCHMARK.split(text)
    if any(one.fullmatch(line) for line in before.split("\n") for one in _WITHIN):
        raise ValueError("a line '# Benchmarking' is missing")
    figures: list[MetricValue] = []
    for benchmark, block in zip(parts[::2], parts[1::2], strict=True):
        of_block = _of_block(benchmark, block, usual)
        if not of_block:
            raise ValueError(f"it has no figures of {shown(benchmark)}")
        figures += of_block
    _require_modes(figures)
    _require_listed(before, figures)
    _require_equal_sizes(figures)
    return figures


def unknown_lines(text: str) -> Iterator[str]:
    """Yield the lines among the rows that are passed over."""
    _, *parts = _BENCHMARK.split(text)
    for block in parts[1::2]:
        yield from not_rows(block.split("\n"))


def _of_block(benchmark: str, block: str, usual: str) -> list[MetricValue]:
    figures: list[MetricValue] = []
    labels: dict[str, int | str] = {"benchmark": benchmark}
    columns = [""]
    for line in block.split("\n"):
        words = line.split()
        if "#processes" in words:
            if "processes" in labels:
                raise ValueError("a line '# Benchmarking' is missing")
            labels = {**labels, "processes": int(whole(_PROCESSES, line)[1][:9])}
        elif groups := _GROUPS.fullmatch(line):
            if "groups" in labels:
                raise ValueError("a line '# Benchmarking' is missing")
            processes = labels.get("processes", int(groups[2][:9]))  # of -multi: of each group
            labels = {**labels, "processes": processes, "groups": int(groups[1][:9])}
        elif mode := _MODE.fullmatch(line):
            labels, columns = {**labels, "mode": mode[1]}, [""]
        elif "#repetitions" in words:
            if "processes" not in labels:
                raise ValueError(f"the line '# #processes' of {benchmark!r} is missing")
            if columns != [""]:
                raise ValueError("a line '# Benchmarking' is missing")
            columns = words
        elif columns != [""] and is_row(line):
            figures += _row(labels, columns, words, usual)
    return figures


def _require_modes(figures: list[MetricValue]) -> None:
    """Raise ValueError if a benchmark has some figures with a mode and some without one."""
    with_mode: dict[int | str, bool] = {}
    for figure in figures:
        benchmark, has = figure.labels["benchmark"], "mode" in figure.labels
        if with_mode.setdefault(benchmark, has) != has:
            raise ValueError(f"a line '# MODE:' of {shown(str(benchmark))} is missing")


def _require_listed(head: str, figures: list[MetricValue]) -> None:
    """Raise ValueError if a benchmark that the head lists has no figures. One process alone cannot
    run most of them."""
    _, _, listed = head.partition("List of Benchmarks to run:")
    names = _LISTED.findall(listed)
    benchmarks = {str(figure.labels["benchmark"]).removeprefix("Multi-") for figure in figures}
    alone = all(figure.labels["processes"] == 1 for figure in figures)
    if missing := [name for name in names if name not in benchmarks and not alone]:
        raise ValueError(f"it lists {shown(missing[0])}, and has no figures of it")


def _require_equal_sizes(figures: list[MetricValue]) -> None:
    """Raise ValueError if a benchmark has other sizes with one number of processes than with
    another."""
    sizes: dict[tuple[object, ...], dict[object, set[object]]] = {}
    for figure in figures:
        labels = dict(figure.labels)
        processes, size = labels.pop("processes"), labels.pop("bytes", None)
        labels.pop("group", None)
        labels.pop("groups", None)
        of = sizes.setdefault((figure.name, *sorted(labels.items())), {})
        of.setdefault(processes, set()).add(size)
    for (_, *where), of in sizes.items():
        if len(set(map(frozenset, of.values()))) > 1:
            raise ValueError(f"a row is missing: sizes differ by processes: {shown(str(where))}")


def _row(
    labels: dict[str, int | str], columns: list[str], cells: list[str], usual: str
) -> list[MetricValue]:
    values = _values(columns, cells)
    labels = {**labels, **{_LABELS[c]: int(v) for c, v in values.items() if c in _LABELS}}
    figures = []
    for column, value in values.items():
        if column in _LABELS or column in _PASSED_OVER:
            continue
        if column not in _COLUMNS:
            raise ValueError(f"it has a column that is not known: {shown(column)}")
        name, unit, better = _COLUMNS[column]
        if name != "bandwidth":
            figures.append(MetricValue(name, value, unit, better, labels=labels))
        elif values.get("#bytes") != 0:  # always 0 for 0 bytes
            unit = _megabyte(values) or usual
            figures.append(MetricValue(name, value, unit, better, labels=labels))
    return figures


def _values(columns: list[str], cells: list[str]) -> dict[str, float]:
    """Return the values of a row by their columns. Raises ValueError if IMB says of it itself that
    it cannot be used."""
    line = " ".join(cells)
    if "time-out" in line or "out-of-mem" in line:
        raise ValueError(f"IMB gave a sample up: {shown(line)}")
    if len(cells) != len(columns):
        raise ValueError(f"it should have {len(columns)} columns: {shown(line)}")
    values = {column: number(cell) for column, cell in zip(columns, cells, strict=True)}
    if values.pop("defects", 0):
        raise ValueError(f"IMB found defects: {shown(line)}")
    return values


def _megabyte(values: dict[str, float]) -> str:
    """Return the unit of a row's Mbytes/sec, as it follows from the bytes and the time: a call
    moves the message once, twice (Sendrecv) or four times (Exchange). Return "" if neither unit
    fits."""
    time = values.get("t[usec]", values.get("t_max[usec]", 0.0))
    size = values.get("#bytes", 0.0)
    if not size or not time:
        return ""
    times = values["Mbytes/sec"] * time / size
    for unit, moved in (("MB/s", times), ("MiB/s", times * _MIB)):
        if any(abs(moved / count - 1) < _AGREES for count in (1, 2, 4)):
            return unit
    return ""
