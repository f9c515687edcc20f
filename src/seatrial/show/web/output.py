"""The small figures and links of a run's page: filters of its template."""

import contextlib
import errno
import os
import re
import stat
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from markupsafe import Markup
from msgspec import Struct

from seatrial.escaping import plain
from seatrial.execute.kept_files import OUTPUTS, TAIL
from seatrial.judge.checks import given_in, places_in
from seatrial.judge.placement import ThreadPlace
from seatrial.judge.promises import Promised, share_cell, told
from seatrial.model.nodes import spans
from seatrial.model.suite import PATTERN_FILE
from seatrial.model.task_placement import PLACEMENT_FILE
from seatrial.model.test import Test
from seatrial.results.one_run import RunPhase
from seatrial.results.references import Expected
from seatrial.results.store.tables import RunRow
from seatrial.show.draw import maps
from seatrial.show.draw.maps import MAX_CPUS, MAX_NODES
from seatrial.show.draw.svg import Scale, rect, tag
from seatrial.show.formatting import NARROW, WIDE, shares
from seatrial.show.web.page import PageQuery
from seatrial.units import show_figure

SPARK_WIDTH = 144.0
SPARK_HEIGHT = 30.0
MARGIN = 3.0


class RunMetric(Struct, frozen=True, kw_only=True):
    """A metric of the run with its expected value, and the values of earlier runs with their times
    (ns), oldest first."""

    name: str
    value: float
    unit: str
    better: str
    expected: Expected | None
    past: list[dict[str, Any]]
    promised: Promised | None = None


def phases_bar(phases: "Sequence[RunPhase]", now: int) -> Markup:
    """Return a bar of the phases of a run, in the order of time."""
    parts = [(phase.seconds(now), f"phase-{phase.name}", f"s {phase.name}") for phase in phases]
    return shares(*parts)


def sparkline(metric: RunMetric) -> Markup:
    """Draw the values of earlier runs, the run's own as a disc, and the band of the reference."""
    values = [past["value"] for past in metric.past] + [metric.value]
    low, high = (metric.expected.low, metric.expected.high) if metric.expected else (None, None)
    bounds = [bound for bound in (low, high) if bound is not None]
    shown = [*values, *bounds]
    across = Scale(0, len(values), MARGIN, SPARK_WIDTH - MARGIN)
    upwards = Scale(min(shown), max(shown), SPARK_HEIGHT - MARGIN, MARGIN)
    parts = []
    if bounds:
        top = 0.0 if high is None else upwards.at(high)
        bottom = SPARK_HEIGHT if low is None else upwards.at(low)
        parts.append(rect(0, top, SPARK_WIDTH, max(0.0, bottom - top), class_="band"))
        lines = "".join(f"M0 {upwards.at(bound):.1f}H{SPARK_WIDTH:g}" for bound in bounds)
        parts.append(tag("path", class_="bound", d=lines))
    if len(values) > 1:
        places = (
            f"{across.at(i):.1f} {upwards.at(value):.1f}" for i, value in enumerate(values, 1)
        )
        parts.append(tag("path", class_="past", d=f"M{'L'.join(places)}"))
    kind = "own missed" if metric.expected and metric.expected.meets is False else "own"
    x, y = across.at(len(values)), upwards.at(metric.value)
    parts.append(tag("circle", class_=kind, cx=x, cy=y, r=2.8))
    size = f"0 0 {SPARK_WIDTH:g} {SPARK_HEIGHT:g}"
    return tag("svg", *parts, class_="spark", viewBox=size, role="img", aria_label=_said(metric))


def _said(metric: RunMetric) -> str:
    """Describe the sparkline in words."""
    if not metric.past:
        return f"{show_figure(metric.value, metric.unit)}, the first of its case"
    values = sorted(past["value"] for past in metric.past)
    low, middle, high = values[0], values[len(values) // 2], values[-1]
    return (
        f"{show_figure(metric.value, metric.unit)}; {len(values)} earlier:"
        f" {show_figure(low, '')} to {show_figure(high, '')}, median {show_figure(middle, '')}"
    )


FILTERS = {"sparkline": sparkline, "share_cell": share_cell, "told": told}
GLOBALS: dict[str, Any] = {"phases_bar": phases_bar}


# ---- run files -----------------------------------------------------------------------------------
#
# Read the files of a run for other users: a few files by name, bounded, through no link.
#
#     tail(run, "stdout", 65536)           # FilePiece(text, size, start), or why there is none
#
# The journal says where a run's directory is. Its last parts are opened one by one without
# following links, so a job cannot make the server read another file by a link. A file system may
# hang: call these functions within ``state.background.in_time``.


BUILD_LOG = "build.log"
NAMES = (
    BUILD_LOG,
    "job.sh",
    "stdout",
    "stderr",
    "pairs.matrix",
    PLACEMENT_FILE,
    PATTERN_FILE,
    *(name + TAIL for name in OUTPUTS),
)

_KEY = re.compile("[0-9a-f]{1,64}")
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | os.O_NOFOLLOW
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class FilePiece(NamedTuple):
    """A part of a file: its text, the size of the whole file and the start of the part, in bytes.
    ``kept_tail``: ``keep`` of the test removed the file, and the text is of its end, which was
    kept."""

    text: str
    size: int
    start: int
    kept_tail: bool = False


def tail(run: RunRow, name: str, limit: int) -> FilePiece | str:
    """Return the last bytes of a file of a run, at most ``limit``, as text, or the reason why there
    is none, as a sentence without its subject. Of stdout and stderr that were removed, it is of the
    end that was kept."""
    piece = _read(run, name, limit, from_end=True)
    if isinstance(piece, str) and name in OUTPUTS:
        kept = _read(run, name + TAIL, limit, from_end=True)
        return piece if isinstance(kept, str) else kept._replace(kept_tail=True)
    return piece


def head(run: RunRow, name: str, limit: int) -> FilePiece | str:
    """Return the first bytes of a file of a run, at most ``limit``, or why there are none."""
    return _read(run, name, limit, from_end=False)


def _read(run: RunRow, name: str, limit: int, from_end: bool) -> FilePiece | str:
    if name not in NAMES:
        return "is no file that is shown"
    if run.rehearsed:
        return "is not there: a rehearsed run leaves no files"
    if not run.path:
        return "is not there: the run has no directory yet"
    has_folder = False
    try:
        with _build_folder(run) if name == BUILD_LOG else _folder(run) as folder:
            has_folder = True
            with _opened(name, _FILE, folder) as file:
                return _piece(file, limit, from_end)
    except FileNotFoundError:
        return "is not there" if has_folder else "is gone with its directory"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return f"is not shown: {reason}"


@contextlib.contextmanager
def _folder(run: RunRow) -> Iterator[int]:
    """Open the run's directory. The last parts of its path must be the test and the run; links
    before these are followed. Raises OSError, ValueError."""
    path = PurePosixPath(run.path)
    parts = PurePosixPath(run.test, run.run_id).parts
    if not path.is_absolute() or ".." in path.parts or path.parts[-len(parts) :] != parts:
        raise ValueError("its directory is not that of a run")
    base = "/" + "/".join(path.parts[1 : -len(parts)])
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(_opened(base, _FOLDER, None))
        for part in parts:
            folder = stack.enter_context(_opened(part, _FOLDER | os.O_NOFOLLOW, folder))
        yield folder


@contextlib.contextmanager
def _build_folder(run: RunRow) -> Iterator[int]:
    """Open the directory of the build of a run without a job: ``builds/KEY`` of its trial, which
    may be a link to a shared build. Raises OSError, ValueError."""
    path = PurePosixPath(run.path)
    if not path.is_absolute() or path.parts[-2:-1] != ("builds",) or not _KEY.fullmatch(path.name):
        raise ValueError("its directory is not that of a build")
    with contextlib.ExitStack() as stack:
        base = stack.enter_context(_opened(str(path.parent.parent), _FOLDER, None))
        builds = stack.enter_context(_opened("builds", _FOLDER | os.O_NOFOLLOW, base))
        yield stack.enter_context(_opened(path.name, _FOLDER, builds))


@contextlib.contextmanager
def _opened(name: str, flags: int, folder: int | None) -> Iterator[int]:
    try:
        # plain: by the open folder above, with O_NOFOLLOW and O_NONBLOCK
        descriptor = os.open(name, flags, dir_fd=folder)
    except NotADirectoryError as error:
        raise ValueError("a link or a file is where its directory was") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ValueError("it is a link, and links are not followed here") from error
        raise
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _piece(file: int, limit: int, from_end: bool) -> FilePiece:
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is no regular file")
    start = max(0, status.st_size - limit) if from_end else 0
    data = os.pread(file, limit, start)
    if start:  # do not begin in the middle of a character
        cut = len(data)
        data = data.lstrip(bytes(range(0x80, 0xC0)))
        start += cut - len(data)
    return FilePiece(data.decode("utf-8", errors="replace"), max(status.st_size, len(data)), start)


# ---- run placement -------------------------------------------------------------------------------
#
# Where the ranks of a run were, for its page: what its check ``placement`` read.


MAX_READ = 1 << 20


class RunPlacement(Struct, frozen=True, kw_only=True):
    """Where threads were, by the lines of a file. ``known`` is False if the file tells only where
    they may be. ``left_out``: nodes beyond those in ``nodes``."""

    file: str
    nodes: list[maps.NodeCores]
    left_out: int
    ranks: int
    threads: int
    known: bool

    def picture(self, wide: bool) -> Any:
        """Return the nodes with ranks on their CPUs, as SVG."""
        return maps.node_cores(
            self.nodes,
            title="Ranks on the CPUs of each node",
            about="A box for each CPU, with its number and the ranks whose threads were there",
            width=WIDE if wide else NARROW,
        )


def placement_of(run: RunRow, test: Test | None) -> RunPlacement | None:
    """Return where the threads of a run were; None if its test does not check it, or its file is
    not there or not whole."""
    name = next((check.in_file for check in test.verify if check.placement), "") if test else ""
    piece = head(run, name, MAX_READ) if name else None
    if not isinstance(piece, FilePiece) or piece.size > MAX_READ:
        return None
    try:
        places = places_in(piece.text)
    except ValueError:
        return None
    cpus_given = _cpus_given(run)
    by_node: dict[str, list[ThreadPlace]] = defaultdict(list)
    for place in places:
        by_node[place.node].append(place)
    return RunPlacement(
        file=name,
        nodes=[
            maps.NodeCores(node, _cpus(threads, cpus_given.get(node, frozenset())))
            for node, threads in [*by_node.items()][:MAX_NODES]
        ],
        left_out=max(0, len(by_node) - MAX_NODES),
        ranks=len({place.rank for place in places}),
        threads=len(places),
        known=all(place.cpu is not None for place in places),
    )


def _cpus_given(run: RunRow) -> dict[str, frozenset[int]]:
    """Return the CPUs that the job was given on its first node."""
    piece = head(run, PLACEMENT_FILE, MAX_READ)
    given = given_in(piece.text) if isinstance(piece, FilePiece) else None
    return {given.node: given.cpus} if given else {}


def _cpus(places: list[ThreadPlace], given: frozenset[int]) -> list[maps.CpuUse]:
    ranks: dict[int, list[int]] = defaultdict(list)
    numa: dict[int, int | None] = {}
    for place in places:
        for cpu in place.allowed or () if place.cpu is None else (place.cpu,):
            ranks[cpu].append(place.rank)
            numa[cpu] = place.numa
    everything = given.union(ranks, *(place.allowed or () for place in places))
    return [
        maps.CpuUse(cpu, numa.get(cpu), spans(set(ranks[cpu])), len(ranks[cpu]))
        for cpu in sorted(everything)[:MAX_CPUS]
    ]


# ---- run text ------------------------------------------------------------------------------------
#
# The text of a run's files on a page: the end of a file, or the lines that a search finds there.


MAX_TEXT_READ = 256 << 10  # bytes that are read of a file, from its end
USUAL = 32 << 10  # bytes that are shown without a search
MAX_LINE = 2000  # characters of a line that are shown
MAX_FOUND = 300  # lines of a search
AROUND = 2  # lines that are shown before and after each
SEARCH_S = 1.0


class Output(Struct, frozen=True, kw_only=True):
    """A file on a page."""

    name: str
    #: Of the whole file, in bytes.
    size: int = 0
    #: How many bytes of its start were not read.
    left_out: int = 0
    #: Runs of consecutive lines, each with its ``number`` in the part that was read, from 1, and
    #: its ``parts``: texts, and whether the search matches them.
    blocks: list[list[dict[str, Any]]] = []
    #: How many lines the search matches.
    found: int = 0
    #: Whether there may be more.
    cut: bool = False
    #: The reason why there is nothing.
    absent: str = ""
    #: Whether it is the end of a file that ``keep`` removed.
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
    limit = MAX_TEXT_READ if search or whole else USUAL
    piece = tail(run, name, limit)
    if isinstance(piece, str):
        return Output(name=name, absent=piece)
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


def _around(lines: list[str], hits: Hits) -> list[list[dict[str, Any]]]:
    near = {j for i in hits for j in range(i - AROUND, i + AROUND + 1)}
    blocks: list[list[dict[str, Any]]] = []
    for i in sorted(near.intersection(range(len(lines)))):
        if i - 1 not in near or not blocks:
            blocks.append([])
        blocks[-1].append(_line(i + 1, lines[i], hits.get(i, [])))
    return blocks


def _line(number: int, line: str, spans: list[tuple[int, int]]) -> dict[str, Any]:
    parts: list[tuple[str, bool]] = []
    at = 0
    for start, end in spans:
        if start >= MAX_LINE:
            break
        parts += [(line[at:start], False), (line[start:end], True)]
        at = end
    rest = line[at : max(at, MAX_LINE)]
    parts.append((rest, False))
    if (more := len(line) - at - len(rest)) > 0:
        parts.append((f" … {more} more characters", False))
    return {"number": number, "parts": [part for part in parts if part[0]]}
