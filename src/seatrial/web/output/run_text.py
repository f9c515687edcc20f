"""The text of a run's files on a page: the end of a file, or the lines that a search finds there.

search = search_of(query)                           # from find= and regex=1, or None
output_of(run, "stdout", search, whole=False)       # Output(blocks=[Block(...)], found=3, ...)
"""

import re
import time
from typing import NamedTuple

from msgspec import Struct

from seatrial.store.rows import RunRow
from seatrial.verify.reading import plain
from seatrial.web.output.run_files import FileMissing, FilePiece, tail
from seatrial.web.query import PageQuery

MAX_READ = 256 << 10  # bytes that are read of a file, from its end
USUAL = 32 << 10  # bytes that are shown without a search
MAX_LINE = 2000  # characters of a line that are shown
MAX_FOUND = 300  # lines of a search
AROUND = 2  # lines that are shown before and after each
SEARCH_S = 1.0


class OutputSegment(NamedTuple):
    """A piece of a line; ``found``: whether it matches the search."""

    text: str
    found: bool


class OutputLine(Struct, frozen=True):
    """A line: its number in the part of the file that was read, from 1, and its pieces."""

    number: int
    parts: list[OutputSegment]


class Output(Struct, frozen=True, kw_only=True):
    """A file on a page. ``size`` is that of the whole file, ``left_out`` how many bytes of its
    start were not read. ``blocks`` are runs of consecutive lines. ``found`` counts the lines of a
    search; ``cut``: there may be more. ``absent`` is the reason why there is nothing.
    ``kept_tail``: it is the end of a file that ``keep`` removed."""

    name: str
    size: int = 0
    left_out: int = 0
    blocks: list[list[OutputLine]] = []
    found: int = 0
    cut: bool = False
    absent: str = ""
    kept_tail: bool = False


def search_of(query: PageQuery) -> re.Pattern[str] | None:
    """Return the pattern of a query's search, None if there is none: text that ignores case, or
    with ``regex`` a regular expression."""
    text = query.text("find")
    if query.flag("regex"):
        return query.pattern("find")
    return re.compile(re.escape(text), re.IGNORECASE) if text else None


def output_of(run: RunRow, name: str, search: re.Pattern[str] | None, whole: bool) -> Output:
    """Return the end of a file, or the lines of it that a search finds."""
    limit = MAX_READ if search or whole else USUAL
    piece = tail(run, name, limit)
    if isinstance(piece, FileMissing):
        return Output(name=name, absent=piece.why)
    lines = lines_of(piece)
    hits, cut = _search(lines, search) if search else ({}, False)
    all_lines = [[_line(i, line, []) for i, line in enumerate(lines, 1)]]
    return Output(
        name=name,
        size=piece.size,
        left_out=piece.start,
        blocks=_around(lines, hits) if search else all_lines,
        found=len(hits),
        cut=cut,
        kept_tail=piece.kept_tail,
    )


def lines_of(piece: FilePiece) -> list[str]:
    """Return its lines without control characters; a first line that is cut off begins with …."""
    text = piece.text.removesuffix("\n")
    lines = [plain(line.removesuffix("\r").expandtabs()) for line in text.split("\n")]
    if piece.start and lines:
        lines[0] = "…" + lines[0]
    return lines if text else []


Hits = dict[int, list[tuple[int, int]]]


def _search(lines: list[str], search: re.Pattern[str]) -> tuple[Hits, bool]:
    """Return the spans of the matches by line, and whether there may be more."""
    until = time.monotonic() + SEARCH_S
    hits: Hits = {}
    for i in range(len(lines) - 1, -1, -1):  # from the end, which matters most
        if len(hits) >= MAX_FOUND or time.monotonic() > until:
            return hits, True
        matches = [match.span() for match in search.finditer(lines[i])]
        if spans := [(start, end) for start, end in matches if start < end]:
            hits[i] = spans
    return hits, False


def _around(lines: list[str], hits: Hits) -> list[list[OutputLine]]:
    near = {j for i in hits for j in range(i - AROUND, i + AROUND + 1)}
    blocks: list[list[OutputLine]] = []
    for i in sorted(near.intersection(range(len(lines)))):
        if i - 1 not in near or not blocks:
            blocks.append([])
        blocks[-1].append(_line(i + 1, lines[i], hits.get(i, [])))
    return blocks


def _line(number: int, line: str, spans: list[tuple[int, int]]) -> OutputLine:
    parts: list[OutputSegment] = []
    at = 0
    for start, end in spans:
        if start >= MAX_LINE:
            break
        parts += [OutputSegment(line[at:start], False), OutputSegment(line[start:end], True)]
        at = end
    rest = line[at : max(at, MAX_LINE)]
    parts.append(OutputSegment(rest, False))
    if (more := len(line) - at - len(rest)) > 0:
        parts.append(OutputSegment(f" … {more} more characters", False))
    return OutputLine(number, [part for part in parts if part.text])
