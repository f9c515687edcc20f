"""mdtest 1.8 to 4: rates of creating, stating, reading, renaming and removing files, in ops/s.

SUMMARY rate (in ops/sec): (of 2 iterations)
   Operation                     Max            Min           Mean        Std Dev
   File creation                8273.442       3129.003       5701.223       3637.667
-- finished at 11/21/2026 18:58:34 --
"""

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, takewhile

from seatrial.judge.formats import once
from seatrial.model.figures import MetricValue, number, shown

_STARTED = re.compile(r"^mdtest-([0-9]*)\S+ was launched with \d+ total task", re.MULTILINE)
_FINISHED = re.compile(r"^-- finished at .*--[ \t]*$", re.MULTILINE)
# 1.8 and 1.9 say only SUMMARY; newer versions may have a second table, with times.
_SUMMARY = re.compile(
    r"^SUMMARY(?: rate)?(?: \(in ops/sec\))?: \(of (\d+) iterations?\)[ \t]*\n", re.MULTILINE
)
_HEAD = re.compile(r"^[ \t]+Operation[ \t]+(.*)\n", re.MULTILINE)
_OPERATION = re.compile(r"[ \t]*(?:(Directory|File|Tree) (\w+))[ \t]*:?[ \t]+(.+)")
_VERBOSE = re.compile(r"V-\d+: ")  # of -v
_OPERATIONS = {"creation", "stat", "rename", "read", "removal"}
# The rows of each kind, and the major version since which mdtest always prints them (0 if not run).
_ALWAYS = {
    "Directory": {"creation": 1, "stat": 1, "rename": 4, "removal": 1},
    "File": {"creation": 1, "stat": 1, "read": 3, "removal": 1},
    "Tree": {"creation": 1, "removal": 1},
}
_COMMAND = re.compile(r"^Command line used:[ \t]*\S+(.*)$", re.MULTILINE)
_FLAGS = re.compile(r"(?<!\S)-([A-Za-z]+)")
_PLAIN = ["Max", "Min", "Mean", "Std", "Dev"]
_PER_RANK = ["per", "Rank:", "Max", "Min", "Mean", "per", "Iteration:", *_PLAIN]
_STATISTICS = ("max", "min", "mean")


def parse(text: str) -> list[MetricValue]:
    """Return file_creation_max, file_creation_min, file_creation_mean and so on, over iterations,
    as far as they were run (mdtest prints 0 for the rest). Raises ValueError with the reason if the
    summary or the closing line is missing, or a row is not complete."""
    started = once(_STARTED, text, "line 'mdtest-... was launched with ... tasks'")
    finished = once(_FINISHED, text, "closing line '-- finished at'")
    summary = once(_SUMMARY, text, "summary of rates")
    head, lines = _table(text, summary.end(), finished.start())
    if head.split() not in (_PLAIN, _PER_RANK):
        raise ValueError(f"the head of its summary is not known: {shown(head)}")
    columns = 4 if head.split() == _PLAIN else 7
    rows = [_row(line, columns) for line in lines if _is_row(line)]
    kinds = {kind: None for kind, _, _ in rows}
    expected = _kinds_asked(text[started.end() : summary.start()])
    _require_rows((*expected, *kinds), {row[:2] for row in rows}, int(started[1] or 1))
    figures = list(chain.from_iterable(row for _, _, row in rows))
    if not figures:
        raise ValueError("its summary has no rate: nothing was run")
    return figures


def unknown_lines(text: str) -> Iterator[str]:
    """Yield the lines of the summary that are passed over, without those of -v."""
    summary, finished = _SUMMARY.search(text), _FINISHED.search(text)
    if summary and finished:
        _, lines = _table(text, summary.end(), finished.start())
        others = (line for line in lines if not _is_row(line) and not _VERBOSE.match(line))
        yield from (line for line in others if line.strip(" \t-"))


def _table(text: str, start: int, end: int) -> tuple[str, list[str]]:
    """Return the titles of the columns of the first table, and the lines below them."""
    head = _HEAD.search(text, start, max(start, end))
    if head is None:
        raise ValueError("the head of its summary is missing")
    lines = text[head.end() : max(head.end(), end)].split("\n")
    return head[1], [*takewhile(lambda line: not line.startswith("SUMMARY"), lines)]


def _is_row(line: str) -> bool:
    """Return whether a line is a row, whole or not: its first word is a kind, or it ends with
    several numbers."""
    words = line.split()
    numbers = len(words) > 3 and all(word[0].isdigit() for word in words[-3:])
    return bool(words) and (words[0] in _ALWAYS or numbers)


def _require_rows(kinds: Iterable[str], rows: Collection[tuple[str, str]], version: int) -> None:
    """Raise ValueError if a row is missing that mdtest always prints."""
    for kind in ("Tree", *kinds):
        for operation, since in _ALWAYS[kind].items():
            if version >= since and (kind, operation) not in rows:
                raise ValueError(f"its summary has no row '{kind} {operation}': it is not whole")


def _kinds_asked(head: str) -> list[str]:
    """Return which kinds of rows the command line asks for: with ``-F`` files alone, with ``-D``
    directories alone; none where it is not there."""
    command = _COMMAND.search(head)
    if command is None:
        return []
    flags = "".join(_FLAGS.findall(command[1].replace("'", "")))
    left_out = {"F": "Directory", "D": "File"}
    return [kind for flag, kind in left_out.items() if flag not in flags]


def _row(line: str, columns: int) -> tuple[str, str, list[MetricValue]]:
    """Return the kind and the operation of a row, and its figures."""
    row = _OPERATION.fullmatch(line)
    if row is None or row[2] not in _OPERATIONS:
        raise ValueError(f"its summary has a row that is not known: {shown(line)}")
    values = [number(word) for word in row[3].split()]
    if len(values) != columns:
        raise ValueError(f"a row of its summary is not whole: {shown(line)}")
    highest, lowest, mean = values[-4:-1]
    if not lowest <= mean + 0.001 or not mean <= highest + 0.001:
        raise ValueError(f"a mean is not between the least and the largest: {shown(line)}")
    figures = [
        MetricValue(f"{row[1]}_{row[2]}_{what}".lower(), value, "ops/s", "higher")
        for what, value in zip(_STATISTICS, (highest, lowest, mean), strict=True)
    ]
    return row[1], row[2], figures if any(values) else []
