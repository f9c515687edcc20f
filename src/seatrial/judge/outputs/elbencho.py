"""elbencho 2 and 3, its CSV: rate, operations and entries a second, latency of each phase.

    elbencho --csvfile elbencho.csv -w -r --lat ...

The figures are those up to the end of the last worker. Rates are whole MiB/s in this file. Phases
that only wait (SYNC, DROPCACHES) have none: where the page cache was not passed by (``--direct``),
what is synchronised later is not in a rate.
"""

import re
from collections.abc import Iterator, Mapping

from seatrial.judge.formats import end_whole, once
from seatrial.model.figures import MetricValue, number, shown
from seatrial.units import Direction

FILE = "elbencho.csv"

_HEAD = re.compile(r"^ISO date,label,path type,.*,operation,.*,version,command$", re.MULTILINE)
_ROW = re.compile(r"\d{4}-\d\d-\d\dT")
_COMMAND = re.compile(r'("[^"]*" )+ ?')
_WAITS = frozenset({"SYNC", "DROPCACHE", "DROPCACHES"})
# What is asked for by the words of a command line, and the phase that then has a row.
_ASKED = {"w": "WRITE", "r": "READ", "d": "MKDIRS", "F": "RMFILES", "D": "RMDIRS"}
_ASKED_LONG = {
    "--write": "WRITE",
    "--read": "READ",
    "--stat": "STAT",
    "--mkdirs": "MKDIRS",
    "--delfiles": "RMFILES",
    "--deldirs": "RMDIRS",
}
_COLUMNS: dict[str, tuple[str, str, Direction]] = {
    "MiB/s [last]": ("", "MiB/s", "higher"),
    "IOPS [last]": ("_iops", "ops/s", "higher"),
    "entries/s [last]": ("_entries", "ops/s", "higher"),
    "IO lat us [avg]": ("_latency", "us", "lower"),
    "IO lat us [max]": ("_latency_max", "us", "lower"),
}


def parse(text: str) -> list[MetricValue]:
    """Return write, write_iops, write_entries, write_latency and write_latency_max, so of read, and
    of other phases what they have, such as rmfiles_entries. Raises ValueError with the reason if a
    row is not whole, or a phase that the command line asks for has none."""
    end_whole(text)
    head = once(_HEAD, text, "head 'ISO date,label,path type,...'")
    columns = head[0].split(",")
    figures: list[MetricValue] = []
    ran: set[str] = set()
    asked: set[str] = set()
    for line in text[head.end() + 1 :].split("\n"):
        if not _ROW.match(line):
            continue
        row = _row(line, columns)
        ran.add(row["operation"])
        asked |= _asked(row["command"])
        figures += _figures(row)
    if missing := sorted(asked - ran):
        raise ValueError(f"it has no row of {missing[0]}, which its command asks for: see stderr")
    if not figures:
        raise ValueError("it has no rows with figures")
    return figures


def unknown_lines(text: str) -> Iterator[str]:
    """Yield the lines below the head that are passed over."""
    if head := _HEAD.search(text):
        lines = text[head.end() + 1 :].split("\n")
        yield from (line for line in lines if line.strip() and not _ROW.match(line))


def _row(line: str, columns: list[str]) -> dict[str, str]:
    """Return the cells of a row. The command, which is last, may hold commas."""
    cells = line.split(",", len(columns) - 1)
    if len(cells) != len(columns) or not _COMMAND.fullmatch(cells[-1].rstrip() + " "):
        raise ValueError(f"a row of it is not whole: {shown(line)}")
    return dict(zip(columns, cells, strict=True))


def _asked(command: str) -> set[str]:
    """Return the phases that a command line asks for."""
    phases = set()
    for word in re.findall(r'"([^"]*)"', command)[1:]:
        if word.startswith("--"):
            phases.add(_ASKED_LONG.get(word, ""))
        elif word.startswith("-"):
            phases |= {_ASKED.get(letter, "") for letter in word[1:]}
    return phases - {""}


def _figures(row: Mapping[str, str]) -> Iterator[MetricValue]:
    phase = row["operation"]
    if phase in _WAITS:
        return
    if not phase.isupper():
        raise ValueError(f"it has a row of no phase: {shown(phase)}")
    for column, (ending, unit, better) in _COLUMNS.items():
        if cell := row.get(column, ""):
            yield MetricValue(f"{phase.lower()}{ending}", number(cell), unit, better)
