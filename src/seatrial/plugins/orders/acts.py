"""``seatrial order`` and ``seatrial pattern``: rank orders, and patterns of communication.

A pattern is recorded by a run, or made by rule; there are words for such:

    pattern = parse_pattern("halo 16x16x16")      # each rank and both neighbours in each dimension
    parse_pattern("halo 16x16 open")              # without the neighbours around the ends
    parse_pattern("transpose 64x64")              # all ranks of a row, then all of a column
    parse_pattern("mfdn 63 BDM")                  # MFDn with 63 diagonals
    parse_pattern("irregular 4096 seed 1")        # points of uneven density, near ones talk

A message of these has 1 byte: scores compare orders of the same pattern.
"""

import functools
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, get_args

import click
from msgspec import Struct

from seatrial.cli import Folders
from seatrial.cli.commands.run import run as run_suite
from seatrial.cli.query_common import opened
from seatrial.cli.tables import TextTable, labelled
from seatrial.errors import UsageError
from seatrial.execute import detect
from seatrial.execute.detect import find_machine
from seatrial.execute.prepare import new_tag
from seatrial.files import read_regular
from seatrial.lazy import Floats, Ints, np
from seatrial.model import orders
from seatrial.model.machine import Launcher, Machine
from seatrial.model.machine_topology import topology_of
from seatrial.model.node_set import fold, unfold
from seatrial.model.nodes import spans
from seatrial.model.orders import MAX_RANKS, GridOrder, MfdnKind, Order, mfdn_cells
from seatrial.model.requirements import doubt_of_mapping, refused_mapping, reorders
from seatrial.model.topology import Topology
from seatrial.plugins.orders.network_loads import PlacedNetwork, ScoreKind
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
from seatrial.plugins.orders.search import ScoredOrder, best_orders, missing_programs
from seatrial.results.store import queries
from seatrial.results.store.export import to_json
from seatrial.results.store.tables import Filters
from seatrial.show.text import folded
from seatrial.units import count, listed, show_bytes

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


# ---- rank orders ---------------------------------------------------------------------------------
#
# ``seatrial order``: rank orders, as MPI libraries and Slurm read them.


_MAX_FILE_BYTES = 64 << 20


_HOW = {
    "cray": "MPICH_RANK_REORDER_METHOD=3 MPICH_RANK_REORDER_FILE=FILE",
    "slurm": "SLURM_HOSTFILE=FILE srun --distribution=arbitrary",
    "openmpi": "mpirun --rankfile FILE",
    "mpich": "mpiexec -launcher ssh -f FILE, without -ppn (by Slurm: srun, or `run.order`)",
}


def _refusals(function: Callable[..., int]) -> Callable[..., int]:
    """Have what an order refuses told as bad input."""

    @functools.wraps(function)
    def wrapper(*objects: Any, **options: Any) -> int:
        try:
            return function(*objects, **options)
        except ValueError as error:
            raise UsageError(str(error)) from None

    return wrapper


@_refusals
def smp(ranks: int, per_node: int, **reader: Any) -> int:
    """Do ``seatrial order smp``; return the exit code."""
    sizes = orders.node_sizes(ranks, per_node)
    return _tell(orders.smp(sizes), sizes, **reader)


@_refusals
def round_robin(ranks: int, per_node: int, **reader: Any) -> int:
    """Do ``seatrial order round-robin``; return the exit code."""
    sizes = orders.node_sizes(ranks, per_node)
    return _tell(orders.round_robin(sizes), sizes, **reader)


@_refusals
def order_folded(ranks: int, per_node: int, **reader: Any) -> int:
    """Do ``seatrial order folded``; return the exit code."""
    sizes = orders.node_sizes(ranks, per_node)
    return _tell(orders.folded(sizes), sizes, **reader)


@_refusals
def random_order(ranks: int, per_node: int, seed: int, **reader: Any) -> int:
    """Do ``seatrial order random``; return the exit code."""
    sizes = orders.node_sizes(ranks, per_node)
    return _tell(orders.shuffled(sizes, seed), sizes, **reader)


@_refusals
def of_file(file: Path, per_node: int, **reader: Any) -> int:
    """Do ``seatrial order file``; return the exit code."""
    try:
        order = orders.parsed(read_regular(file, _MAX_FILE_BYTES).decode(errors="replace"))
        sizes = orders.node_sizes(len(order), per_node)
        orders.checked(order, len(order))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{file}: {reason}") from None
    return _tell(order, sizes, **reader)


@_refusals
def best(
    folders: Folders,
    /,
    pattern: str,
    machine: str | None,
    nodes: str,
    per_node: int | None,
    by: str,
    seconds: float | None,
    target: str,
) -> int:
    """Do ``seatrial order best``; return the exit code."""
    given = given_pattern(folders, pattern)
    tell_faults(given)
    result = search(given, machine, nodes, per_node, by, seconds or 0.0)
    click.echo(table(result), err=True)
    order = _best_accepted(result, target, machine)
    return _tell(order, result.sizes, target=target, nodes=nodes, machine=machine)


@_refusals
def mfdn(
    diagonals: int,
    kind: MfdnKind,
    numbered: MfdnKind | None,
    per_node: int,
    **reader: Any,
) -> int:
    """Do ``seatrial order mfdn``; return the exit code."""
    usual: MfdnKind = "BDM" if kind in ("BDM", "BCM") else "DM"
    order = orders.mfdn(diagonals, numbered or usual, kind)
    return _tell(order, orders.node_sizes(len(order), per_node), **reader)


@_refusals
def grid(
    major: orders.Major | None,
    curve: orders.Curve | None,
    shape: str,
    cell: str | None,
    along: str | None,
    limit: int,
    per_node: int | None,
    per_line: int,
    quiet: bool,
    start: int,
    unknown: bool,
    position: str | None,
    **reader: Any,
) -> int:
    """Do ``seatrial order grid``; return the exit code."""
    if unknown or position:
        _refuse_unknown("-T" if unknown else f"{position!r}, coordinates as an argument,")
    if major is None:
        raise UsageError("give -C or -R: how the program numbers the ranks of its grid")
    if min(limit, per_line, start) < 0:
        raise UsageError("-m, -n and -s are 0 or more")
    if not cell and curve != "H":
        raise UsageError("give -c, the lengths of a cell; only -H has cells of 1 rank without it")
    lengths = _lengths(shape)
    cells = _lengths(cell) if cell else (1,) * len(lengths)
    axes = _lengths(along) if along else ()
    ordered_grid = GridOrder(lengths, cells, major, curve or "Z", start, limit, axes)
    order = [rank - start for rank in orders.order_of_grid(ordered_grid)]
    text = orders.written(ordered_grid, per_line, quiet)
    sizes = orders.node_sizes(len(order), per_node or math.prod(ordered_grid.cell))
    if start and reader["target"] != "cray":
        raise UsageError(
            f"-s {start}: a file for {reader['target']} has all ranks from 0; leave it out"
        )
    return _tell(order, sizes, text, **reader)


def _refuse_unknown(option: str) -> NoReturn:
    raise UsageError(
        f"{option} of HPE's grid_order is not known here: what it does is in no public text; "
        "leave it out"
    )


def _tell(
    order: Order,
    sizes: list[int],
    text: str = "",
    *,
    target: str,
    nodes: str,
    machine: str | None,
) -> int:
    """Print an order for its reader; ``text`` is that for cray. Raises UsageError if nodes have too
    few slots, or the reader refuses the order; where that is not known, stderr says so."""
    orders.checked(order, sum(sizes))
    names = unfold(nodes) if nodes else ()
    if target != "cray" and not names:
        raise UsageError(f"--for {target} names the nodes; give --nodes, e.g. n[1-4]")
    if names:
        _check_number(names, sizes)
    if target == "cray":
        _check_accepted(order, sizes, machine)
        text = text or orders.rank_order(order, sizes)
    else:
        written = orders.rankfile if target == "openmpi" else orders.hosts_by_rank
        text = written(order, names[: len(sizes)], sizes)
    click.echo(text, nl=False)
    click.echo(f"for {target}: {_HOW[target]}", err=True)
    return 0


def _check_number(names: Sequence[str], sizes: Sequence[int], subject: str = "") -> None:
    """Raise UsageError where there are fewer nodes than the ranks need."""
    if len(sizes) > len(names):
        raise UsageError(
            f"{subject}{count(sum(sizes), 'rank')} of {sizes[0]} a node need "
            f"{count(len(sizes), 'node')}; --nodes has {len(names)}; give more --nodes, or a "
            "larger -N"
        )


def _check_accepted(order: Order, sizes: Sequence[int], machine: str | None) -> None:
    """Raise UsageError where the cray-mpich of a machine refuses an order; warn where that is not
    known."""
    launcher = _cray_of(machine)
    if reason := refused_mapping(launcher, order, sizes):
        raise UsageError(reason)
    if doubt := doubt_of_mapping(launcher, order, sizes):
        text = f"warning: {doubt}" + ("" if machine else ", and name it with --machine")
        click.echo(folded(text), err=True)


def _cray_of(machine: str | None) -> Launcher:
    """Return the launcher of a machine, or of one of its toolchains, for which cray-mpich orders
    the ranks; one of which nothing is known where none is named."""
    model = find_machine(machine).machine if machine else None
    launchers = (
        [model.launcher, *(each.launcher for each in model.toolchains.values())] if model else []
    )
    found = (each for each in launchers if each is not None and reorders(each))
    return next(found, Launcher(kind="aprun"))


def _lengths(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and len(part) < 8 for part in parts):
        raise ValueError(f"{text!r} are no lengths; write e.g. 4,4,4")
    return tuple(map(int, parts))


# ---- order best ----------------------------------------------------------------------------------
#
# The search of ``seatrial order best``: what it reads, and the table that it shows.


_MAX_NAME = 38


class BestOrders(Struct, frozen=True):
    """The candidates, the best first, the slots of each node, and nodes that get no jobs now."""

    candidates: list[ScoredOrder]
    sizes: list[int]
    away: list[str] = []


def search(
    given: GivenPattern,
    machine: str | None,
    nodes: str,
    per_node: int | None,
    by: str,
    seconds: float,
) -> BestOrders:
    """Return the orders found for a pattern. Raises UsageError where the pattern does not fit the
    nodes, a node has too few CPUs, or it is not in the machine's network."""
    pattern = given.pattern
    names = unfold(nodes)
    per_node = per_node or -(-pattern.ranks // max(1, len(names)))
    sizes = orders.node_sizes(pattern.ranks, per_node)
    _check_number(names, sizes, f"{given.name}: ")
    model = find_machine(machine).machine
    if machine is not None:
        _check_nodes(model, names)
    names = names[: len(sizes)]
    _check_slots(model, dict(zip(names, sizes, strict=True)))
    network = _network(model, names)
    kind: ScoreKind = next(k for k in get_args(ScoreKind) if k == by.replace("-", "_"))
    candidates = best_orders(pattern, network, sizes, kind, seconds)
    return BestOrders(candidates, sizes, _away(model, names))


def _best_accepted(result: BestOrders, target: str, machine: str | None) -> Order:
    """Return the best order that its reader does not refuse, and tell which it refuses; the best of
    all if it refuses each."""
    found = {one.name: one.order for one in result.candidates if one.order is not None}
    best, launcher = next(iter(found.values())), _cray_of(machine)
    refused: dict[str, str] = {}
    for name, order in found.items() if target == "cray" else ():
        if not (reason := refused_mapping(launcher, order, result.sizes)):
            if refused:
                text = f"{listed([*refused], 2)}: passed over: {next(iter(refused.values()))}"
                click.echo(folded(f"{text}. Written: {name}"), err=True)
            return order
        refused[name] = reason
    return best


def _check_nodes(machine: Machine, nodes: Sequence[str]) -> None:
    known = {node for kind in machine.nodes for node in unfold(kind.names)}
    if unknown := [node for node in nodes if node not in known]:
        raise UsageError(
            f"{fold(unknown)}: not among the nodes of {machine.machine}, {fold(known)}; "
            "correct --nodes, or name another machine with -m"
        )


def _check_slots(machine: Machine, ranks_of: dict[str, int]) -> None:
    for kind in machine.nodes:
        cpus = kind.cores * kind.threads_per_core
        for node in unfold(kind.names):
            if ranks_of.get(node, 0) > cpus:
                raise UsageError(
                    f"{node} would get {count(ranks_of[node], 'rank')} and has "
                    f"{count(cpus, 'CPU')}; give more --nodes, or fewer --tasks-per-node"
                )


def _away(machine: Machine, nodes: Sequence[str]) -> list[str]:
    """Return the nodes that Slurm gives no jobs now; none where no Slurm answers, as an order can
    be sought on any host."""
    if machine.scheduler != "slurm":
        return []
    try:
        states = detect.states()
    except UsageError:
        return []
    return [node for node in nodes if node in states and states[node].away]


def _network(machine: Machine, nodes: tuple[str, ...]) -> PlacedNetwork:
    topology = topology_of(machine)
    if topology is None:  # all nodes are as far from each other
        topology = Topology("tree", nodes, ())
    lost = next((node for node in nodes if node not in topology.number_of), None)
    if lost is not None:
        raise UsageError(
            f"{lost} has no place in the network of {machine.machine}; "
            f"`seatrial machine {machine.machine} --topology` shows which nodes have one"
        )
    return PlacedNetwork(topology, [topology.number_of[node] for node in nodes])


def table(result: BestOrders) -> str:
    """Return the candidates and what they cost, and why others were refused."""
    rows = TextTable("order | off-node bytes> | hop-bytes> | busiest link>")
    lines = []
    for one in result.candidates:
        if one.score is None:
            lines.append(f"{one.name}: refused, as it has {one.refused}")
            continue
        name = one.name if len(one.name) <= _MAX_NAME else f"{one.name[: _MAX_NAME - 3]}..."
        rows.add(name, *(f"{figure:,.0f}" for figure in one.score))
    if result.away:
        text = (
            f"{fold(result.away)}: down or drained, so Slurm gives no jobs there now; give other "
        )
        lines.append(folded(f"{text}--nodes, or use the order when Slurm does"))
    lines += missing_programs()
    return "\n".join([str(rows).rstrip("\n"), *lines])
