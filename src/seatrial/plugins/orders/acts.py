"""``seatrial order``: rank orders, as MPI libraries and Slurm read them."""

import functools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, get_args

import click
from msgspec import Struct

from seatrial.cli import Folders
from seatrial.cli.tables import TextTable
from seatrial.errors import UsageError
from seatrial.execute import detect
from seatrial.execute.detect import find_machine
from seatrial.files import read_regular
from seatrial.model import orders
from seatrial.model.machine import Launcher, Machine
from seatrial.model.machine_topology import topology_of
from seatrial.model.node_set import fold, unfold
from seatrial.model.orders import GridOrder, MfdnKind, Order
from seatrial.model.requirements import doubt_of_mapping, refused_mapping, reorders
from seatrial.model.topology import Topology
from seatrial.plugins.orders.network_loads import PlacedNetwork, ScoreKind
from seatrial.plugins.orders.pattern_acts import GivenPattern, given_pattern, tell_faults
from seatrial.plugins.orders.search import ScoredOrder, best_orders, missing_programs
from seatrial.show.text import folded
from seatrial.units import count, listed

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
