"""``seatrial pattern``: record which rank of a program sends how much to which, and show it.

A pattern may be made by rule, too; there are words for such:

    pattern = parse_pattern("halo 16x16x16")      # each rank and both neighbours in each dimension
    parse_pattern("halo 16x16 open")              # without the neighbours around the ends
    parse_pattern("transpose 64x64")              # all ranks of a row, then all of a column
    parse_pattern("mfdn 63 BDM")                  # MFDn with 63 diagonals
    parse_pattern("irregular 4096 seed 1")        # points of uneven density, near ones talk

A message of these has 1 byte: scores compare orders of the same pattern.
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import click
from msgspec import Struct

from seatrial.cli import Folders
from seatrial.cli.commands.run import run as run_suite
from seatrial.cli.query_common import opened
from seatrial.cli.tables import TextTable, labelled
from seatrial.errors import UsageError
from seatrial.execute.prepare import new_tag
from seatrial.lazy import Floats, Ints, np
from seatrial.model.nodes import spans
from seatrial.model.orders import MAX_RANKS, MfdnKind, mfdn_cells
from seatrial.plugins.orders.patterns import (
    Pattern,
    PatternSummary,
    Traffic,
    faults_of,
    pattern_of_run,
    read_pattern,
    stencil,
    summary_of,
)
from seatrial.results.store import queries
from seatrial.results.store.export import to_json
from seatrial.results.store.tables import Filters
from seatrial.units import count, show_bytes

_MAX_NODES = 8
_MAX_RANKS_SHOWN = 40


def record(
    context: click.Context,
    /,
    suites: tuple[str, ...],
    tag: str | None,
    quiet: bool,
    **selection: Any,
) -> int:
    """Do ``seatrial pattern record``; return the exit code."""
    folders: Folders = context.obj
    if any(char.isspace() or char == ":" for char in str(folders.trials.resolve())):
        raise UsageError(
            f"{folders.trials}: the linker preloads no library from a path with blanks or colons; "
            "give another folder by --trials"
        )
    tag = tag or new_tag(folders.trials, list(suites))
    labels = (("pattern", "recorded"),)
    code: int = context.invoke(
        run_suite, suites=suites, tag=tag, quiet=quiet, labels=labels, pattern=True, **selection
    )
    _tell_runs(folders, tag)
    return code


def show(folders: Folders, source: str, top: int, form: str) -> int:
    """Do ``seatrial pattern show``; return the exit code."""
    given = given_pattern(folders, source)
    summary = summary_of(given.pattern, top)
    if form == "json":
        click.echo(to_json(summary), nl=False)
    else:
        click.echo("\n\n".join([_head(given.name, summary), *_tables(summary)]))
    tell_faults(given)
    return 0


def _tell_runs(folders: Folders, tag: str) -> None:
    rows = TextTable("run | case~ | ranks> | messages> | bytes> | off node>")
    notes = []
    with opened(folders) as store:
        runs = queries.runs(store, Filters(trial=tag))
    for one in runs:
        if one.script_started is None:  # its verdict says why
            continue
        try:
            pattern = pattern_of_run(Path(one.path))
        except ValueError as error:
            notes.append(f"{one.run_id}: {error}")
            continue
        summary = summary_of(pattern)
        notes += [f"{one.run_id}: {fault}" for fault in faults_of(Path(one.path), pattern)]
        sent = (f"{summary.sent.number:,}", show_bytes(summary.sent.volume))
        rows.add(
            one.run_id[:8],
            one.case_name,
            summary.ranks,
            *sent,
            _share(summary.off_node, summary.sent),
        )
    if text := str(rows).rstrip("\n"):
        click.echo(f"\n{text}\n\n`seatrial pattern show RUN` shows a pattern")
    for note in notes:
        click.echo(f"note: {note}", err=True)


def _head(name: str, summary: PatternSummary) -> str:
    lines = [("pattern", name), ("ranks", f"{summary.ranks:,}")]
    for node in summary.nodes[:_MAX_NODES]:
        shown = spans(node.ranks)
        cut = shown if len(shown) <= _MAX_RANKS_SHOWN else f"{shown[:_MAX_RANKS_SHOWN]}..."
        lines.append((f"on {node.node}", cut))
    if len(summary.nodes) > _MAX_NODES:
        lines.append(("and on", f"{len(summary.nodes) - _MAX_NODES:,} more nodes"))
    lines.append(("sent", f"{_told(summary.sent)}, {summary.pairs:,} pairs of ranks"))
    if summary.off_node is not None:
        share = _share(summary.off_node, summary.sent)
        lines.append(("off node", f"{_told(summary.off_node)}, {share} of the bytes"))
    for title, traffic in (("to itself", summary.to_itself), ("outside", summary.outside)):
        lines += [(title, _told(traffic))] if traffic.number else []
    if summary.dropped.number:
        few = f"{count(summary.dropped.number, 'pair')}, {show_bytes(summary.dropped.volume)}"
        lines.append(("left out", f"{few}: those with the fewest bytes"))
    return labelled(lines)


def _tables(summary: PatternSummary) -> list[str]:
    pairs = TextTable("from> | to> | messages> | bytes> | share>")
    for one in summary.top:
        share = _share(Traffic(1, one.volume), summary.sent)
        pairs.add(one.sender, one.receiver, f"{one.messages:,}", f"{one.volume:,}", share)
    calls = TextTable("call | up to> | calls> | bytes>")
    for call in summary.calls:
        calls.add(call.name, show_bytes(call.size), f"{call.number:,}", f"{call.volume:,}")
    return [text for table in (pairs, calls) if (text := str(table).rstrip("\n"))]


def _told(traffic: Traffic) -> str:
    noun = "message" if traffic.number == 1 else "messages"
    return f"{traffic.number:,} {noun}, {show_bytes(traffic.volume)}"


def _share(part: Traffic | None, whole: Traffic) -> str:
    if part is None or not whole.volume:
        return ""
    return f"{100 * part.volume / whole.volume:.1f} %"


# ---- recorded pattern ----------------------------------------------------------------------------
#
# Communication patterns that commands are given: a file, or the run that was recorded.


class GivenPattern(Struct, frozen=True):
    """A pattern, the file or the run that it is of, and sentences about what it lacks."""

    pattern: Pattern
    name: str
    faults: list[str]


def given_pattern(folders: Folders, text: str) -> GivenPattern:
    """Return the pattern of a file or a run, or that words say. Raises UsageError with what is
    wrong, and where."""
    file = Path(text)
    try:
        if is_pattern_in_words(text) and not file.exists():
            return GivenPattern(parse_pattern(text), text, [])
        if file.exists() or "." in file.name:
            return GivenPattern(read_pattern(file), text, [])
        if " " in text:
            raise UsageError(f"{text!r} are no words for a pattern; write e.g. {EXAMPLES}")
        return _recorded(folders, text)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"{file}: {error}" if file.exists() else str(error)) from None


def _recorded(folders: Folders, run_id: str) -> GivenPattern:
    with opened(folders) as store:
        run = queries.run(store, run_id)
    if not run.path:
        raise UsageError(f"run {run_id} has no directory yet; wait until it has run")
    pattern = pattern_of_run(Path(run.path))
    faults = faults_of(Path(run.path), pattern)
    return GivenPattern(pattern, f"{run.trial}/{run.run_id}", faults)


def tell_faults(given: GivenPattern) -> None:
    """Tell on stderr what a pattern lacks."""
    for fault in given.faults:
        click.echo(f"note: {fault}", err=True)


# ---- patterns by rule ----------------------------------------------------------------------------


EXAMPLES = "halo 16x16x16, transpose 64x64, mfdn 63 BDM, irregular 4096"
MAX_PAIRS = 1 << 26
_NEIGHBOURS = 8.0  # of a point, on average
_HEAVIEST = 64
_SIZE = r"\d{1,7}(?:[x,]\d{1,7})*"
_HALO = re.compile(rf"halo ({_SIZE})( open)?", re.IGNORECASE)
_TRANSPOSE = re.compile(r"transpose (\d{1,7})[x,](\d{1,7})", re.IGNORECASE)
_MFDN = re.compile(r"mfdn (\d{1,6}) (\w+)", re.IGNORECASE)
_IRREGULAR = re.compile(r"irregular (\d{1,7})(?: seed (\d{1,9}))?", re.IGNORECASE)


def is_pattern_in_words(text: str) -> bool:
    """Return whether a text begins as the words for a pattern do."""
    return " " in text and text.split()[0].lower() in ("halo", "transpose", "mfdn", "irregular")


def parse_pattern(text: str) -> Pattern:
    """Return the pattern that words say. Raises ValueError with what to write."""
    words = " ".join(text.split())
    if match := _HALO.fullmatch(words):
        shape = tuple(map(int, re.split("[x,]", match[1])))
        _check(math.prod(shape), math.prod(shape) * 2 * len(shape), words)
        return stencil(shape, periodic=not match[2])
    if match := _TRANSPOSE.fullmatch(words):
        rows, columns = int(match[1]), int(match[2])
        _check(rows * columns, rows * columns * (rows + columns), words)
        return transpose(rows, columns)
    if match := _MFDN.fullmatch(words):
        diagonals, kind = int(match[1]), match[2].upper()
        if kind not in get_args(MfdnKind):
            raise ValueError(f"{match[2]!r} is none of {', '.join(get_args(MfdnKind))}")
        _check(diagonals * (diagonals + 1) // 2, diagonals**3, words)
        return mfdn_triangle(diagonals, kind)  # type: ignore[arg-type]
    if match := _IRREGULAR.fullmatch(words):
        _check(int(match[1]), int(match[1]), words)
        return irregular(int(match[1]), int(match[2] or 0))
    raise ValueError(f"{text!r} is no pattern; write {EXAMPLES}")


def _check(ranks: int, pairs: int, words: str) -> None:
    if not 1 <= ranks <= MAX_RANKS:
        raise ValueError(f"{words}: {ranks} ranks: there can be 1 to {MAX_RANKS}")
    if pairs > MAX_PAIRS:
        raise ValueError(f"{words}: about {pairs} pairs; {MAX_PAIRS} are the most")


def transpose(rows: int, columns: int) -> Pattern:
    """Return the pattern of a Fourier transform over pencils: the ranks of a row of a grid of
    ranks, row-major, send to each other, and so do those of a column."""
    numbers = np.arange(rows * columns).reshape(rows, columns)
    return _among([*numbers, *numbers.T], rows * columns)


def mfdn_triangle(diagonals: int, kind: MfdnKind = "BDM") -> Pattern:
    """Return the pattern of MFDn, whose ranks each have a cell of the lower half of a symmetric
    matrix, and are numbered by ``kind``.

    A cell (i, j) is multiplied with part j of the input vector and, as it stands for (j, i), too,
    with part i. So part g of a vector goes to all cells of column g and of row g, and its sums come
    back from them (Aktulga et al. 2014). All of them hold a piece of the part, and each sends its
    piece to each other one: an all-gather, and a reduction the other way. Raises ValueError."""
    cells = np.array(mfdn_cells(diagonals, kind), dtype=np.int64)
    groups = [np.flatnonzero((cells == number).any(axis=1)) for number in range(diagonals)]
    return _among(groups, len(cells))


def _among(groups: Sequence[Ints], ranks: int) -> Pattern:
    """Return a pattern in which all ranks of a group send a byte to each other."""
    senders, receivers = [], []
    for group in groups:
        a, b = np.repeat(group, len(group)), np.tile(group, len(group))
        senders.append(a[a != b])
        receivers.append(b[a != b])
    return _pattern(ranks, np.concatenate(senders), np.concatenate(receivers))


def _pattern(ranks: int, a: Ints, b: Ints, volumes: "Ints | None" = None) -> Pattern:
    ones = np.ones(len(a), np.int64)
    return Pattern(ranks, a, b, ones, ones if volumes is None else volumes)


def irregular(ranks: int, seed: int = 0) -> Pattern:
    """Return the pattern of a mesh that was refined in some places: points in a square, half of
    them near a few centres, send to those within a radius, the more the nearer. Ranks are
    numbered at random. The same seed gives the same pattern."""
    random = np.random.default_rng(seed)
    centres = random.random((4, 2))
    spread = random.choice([0.03, 0.06, 0.12], ranks)[:, None]
    near = centres[random.integers(0, 4, ranks)] + spread * random.standard_normal((ranks, 2))
    points = np.where(random.random((ranks, 1)) < 0.5, random.random((ranks, 2)), near) % 1.0
    radius = math.sqrt(_NEIGHBOURS / (math.pi * ranks))
    a, b, apart = _near(points, radius)
    volumes = np.maximum(1, _HEAVIEST * (1 - apart / radius)).astype(np.int64)
    return _pattern(ranks, np.concatenate([a, b]), np.concatenate([b, a]), np.tile(volumes, 2))


def _near(points: Floats, radius: float) -> tuple[Ints, Ints, Floats]:
    """Return the pairs of points within a radius, once each, and how far apart they are. Points
    are sorted into square cells, so that only those of cells that touch are compared."""
    side = max(1, int(1 / radius))
    cell = (points * side).astype(np.int64)
    keys = cell[:, 0] * (side + 2) + cell[:, 1]  # no row of cells touches the end of another
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    pairs = []
    for offset in (0, 1, side + 1, side + 2, side + 3):
        first = np.searchsorted(ordered, ordered + offset, "left")
        last = np.searchsorted(ordered, ordered + offset, "right")
        if offset == 0:
            first = np.arange(len(order)) + 1
        number = np.maximum(0, last - first)
        a = np.repeat(np.arange(len(order)), number)
        b = np.arange(len(a)) - np.repeat(np.cumsum(number) - number - first, number)
        one, other = order[a], order[b]
        apart = np.hypot(*(points[one] - points[other]).T)
        close = apart < radius
        pairs.append((one[close], other[close], apart[close]))
    one, other, apart = (np.concatenate(each) for each in zip(*pairs, strict=True))
    return one, other, apart
