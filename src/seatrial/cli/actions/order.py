"""``seatrial order``: rank orders, as MPI libraries and Slurm read them."""

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from seatrial.cli import Folders, order_best
from seatrial.cli.recorded_pattern import given_pattern, tell_faults
from seatrial.errors import UsageError
from seatrial.files import read_regular
from seatrial.layout import grid_order, order_files, orders
from seatrial.layout.grid_order import GridOrder
from seatrial.layout.orders import MfdnKind, Order
from seatrial.machine.node_sets import unfold
from seatrial.units import count

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
    def told(*objects: Any, **options: Any) -> int:
        try:
            return function(*objects, **options)
        except ValueError as error:
            raise UsageError(str(error)) from None

    return told


def _tell(
    order: Order,
    sizes: list[int],
    target: str,
    nodes: str,
    text: str = "",
    may_be_refused: bool = False,
) -> int:
    """Print an order for its reader; ``text`` is that for cray. Raises UsageError if nodes have too
    few slots, or the reader refuses the order; ``may_be_refused``: then stderr says so."""
    orders.checked(order, sum(sizes))
    names = unfold(nodes) if nodes else ()
    if target != "cray" and not names:
        raise UsageError(f"--for {target} names the nodes; give --nodes, e.g. n[1-4]")
    if names and len(sizes) > len(names):
        raise UsageError(
            f"{count(sum(sizes), 'rank')} of {sizes[0]} a node need {count(len(sizes), 'node')}; "
            f"--nodes has {len(names)}; give more --nodes, or a larger -N"
        )
    names = names[: len(sizes)]
    if target == "cray":
        refused = order_files.refused(order, sizes)
        if refused and not may_be_refused:
            raise UsageError(refused)
        if refused:
            click.echo(f"warning: {refused}", err=True)
        told = text or order_files.rank_order(order, sizes)
    elif target == "openmpi":
        told = order_files.rankfile(order, names, sizes)
    else:
        told = order_files.hosts_by_rank(order, names, sizes)
    click.echo(told, nl=False)
    click.echo(f"for {target}: {_HOW[target]}", err=True)
    return 0


# ---- by number of ranks -------------------------------------------------------------------


@_refusals
def smp(ranks: int, per_node: int, target: str, nodes: str) -> int:
    sizes = orders.node_sizes(ranks, per_node)
    return _tell(orders.smp(sizes), sizes, target, nodes)


@_refusals
def round_robin(ranks: int, per_node: int, target: str, nodes: str) -> int:
    sizes = orders.node_sizes(ranks, per_node)
    return _tell(orders.round_robin(sizes), sizes, target, nodes)


@_refusals
def folded(ranks: int, per_node: int, target: str, nodes: str) -> int:
    sizes = orders.node_sizes(ranks, per_node)
    return _tell(orders.folded(sizes), sizes, target, nodes)


@_refusals
def random_order(ranks: int, per_node: int, seed: int, target: str, nodes: str) -> int:
    sizes = orders.node_sizes(ranks, per_node)
    return _tell(orders.shuffled(sizes, seed), sizes, target, nodes)


@_refusals
def of_file(file: Path, per_node: int, target: str, nodes: str) -> int:
    try:
        order = orders.parsed(read_regular(file, _MAX_FILE_BYTES).decode(errors="replace"))
        sizes = orders.node_sizes(len(order), per_node)
        orders.checked(order, len(order))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{file}: {reason}") from None
    return _tell(order, sizes, target, nodes)


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
    given = given_pattern(folders, pattern)
    tell_faults(given)
    found = order_best.search(given, machine, nodes, per_node, by, seconds or 0.0)
    click.echo(order_best.table(found), err=True)
    assert found.candidates[0].order is not None
    return _tell(found.candidates[0].order, found.sizes, target, nodes, may_be_refused=True)


@_refusals
def mfdn(
    diagonals: int,
    kind: MfdnKind,
    numbered: MfdnKind | None,
    per_node: int,
    target: str,
    nodes: str,
) -> int:
    own: MfdnKind = "BDM" if kind in ("BDM", "BCM") else "DM"
    order = orders.mfdn(diagonals, numbered or own, kind)
    return _tell(order, orders.node_sizes(len(order), per_node), target, nodes)


# ---- grids --------------------------------------------------------------------------------


def _lengths(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and len(part) < 8 for part in parts):
        raise ValueError(f"{text!r} are no lengths; write e.g. 4,4,4")
    return tuple(map(int, parts))


@_refusals
def grid(
    major: grid_order.Major | None,
    curve: grid_order.Curve | None,
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
    target: str,
    nodes: str,
) -> int:
    if unknown or position:
        told = "-T" if unknown else f"{position!r}, coordinates as an argument,"
        raise UsageError(
            f"{told} of HPE's grid_order is not known here: what it does is in no public text; "
            "leave it out"
        )
    if major is None:
        raise UsageError("give -C or -R: how the program numbers the ranks of its grid")
    if min(limit, per_line, start) < 0:
        raise UsageError("-m, -n and -s are 0 or more")
    if not cell and curve != "H":
        raise UsageError("give -c, the lengths of a cell; only -H has cells of 1 rank without it")
    lengths = _lengths(shape)
    cells = _lengths(cell) if cell else (1,) * len(lengths)
    axes = _lengths(along) if along else ()
    asked = GridOrder(lengths, cells, major, curve or "Z", start, limit, axes)
    order = [rank - start for rank in grid_order.order_of_grid(asked)]
    text = grid_order.written(asked, per_line, quiet)
    sizes = orders.node_sizes(len(order), per_node or math.prod(asked.cell))
    if start and target != "cray":
        raise UsageError(f"-s {start}: a file for {target} has all ranks from 0; leave it out")
    return _tell(order, sizes, target, nodes, text)
