"""Rank orders: which rank is in which slot of the nodes.

    order = folded([4, 4])          # [0, 3, 4, 7, 1, 2, 5, 6]: two nodes of 4 slots each
    nodes_of_ranks(order, [4, 4])   # [0, 1, 1, 0, 0, 1, 1, 0]

An order lists ranks by slot: the slots of the first node, then those of the second, ... It is a
permutation of 0 to n - 1. ``sizes`` are the slots of each node; they add up to n.
"""

import itertools
import random
from collections.abc import Sequence
from itertools import groupby
from typing import Literal

Order = list[int]
MfdnKind = Literal["DM", "CM", "BDM", "BCM"]
MAX_RANKS = 1 << 22


def node_sizes(ranks: int, per_node: int) -> list[int]:
    """Return the slots of each node; the last one may have fewer. Raises ValueError."""
    if not 1 <= ranks <= MAX_RANKS:
        raise ValueError(f"{ranks} ranks: give 1 to {MAX_RANKS}")
    if per_node < 1:
        raise ValueError(f"{per_node} ranks per node: give at least 1")
    whole, rest = divmod(ranks, per_node)
    return [per_node] * whole + [rest] * (rest > 0)


def slots_of_tasks(nodes: int, tasks: int, per_node: int) -> list[int]:
    """Return how many tasks each node has: the first nodes are full, and each has a task if there
    are enough; nodes without one are left out. Launchers do the same."""
    sizes, left = [], tasks
    for after in reversed(range(nodes)):
        slots = min(per_node, max(left - after, min(left, 1)))
        if not slots:
            break
        sizes.append(slots)
        left -= slots
    return sizes


def smp(sizes: Sequence[int]) -> Order:
    """Return ranks in their order: a node is filled before the next (MPICH_RANK_REORDER_METHOD=1,
    the default of most libraries)."""
    return list(range(sum(sizes)))


def round_robin(sizes: Sequence[int]) -> Order:
    """Return ranks dealt out to the nodes in turn (MPICH_RANK_REORDER_METHOD=0)."""
    return _dealt(sizes, folds=False)


def folded(sizes: Sequence[int]) -> Order:
    """Return ranks dealt out to the nodes forth and back (MPICH_RANK_REORDER_METHOD=2)."""
    return _dealt(sizes, folds=True)


def _dealt(sizes: Sequence[int], folds: bool) -> Order:
    """Deal out ranks, turn by turn; a node that is full is passed over."""
    ranks_of_nodes: list[list[int]] = [[] for _ in sizes]
    rank = 0
    for turn in range(max(sizes, default=0)):
        open_nodes = [node for node, size in enumerate(sizes) if size > turn]
        for node in reversed(open_nodes) if folds and turn % 2 else open_nodes:
            ranks_of_nodes[node].append(rank)
            rank += 1
    return [rank for ranks in ranks_of_nodes for rank in ranks]


def shuffled(sizes: Sequence[int], seed: int) -> Order:
    """Return a random order, the same for the same seed."""
    order = smp(sizes)
    random.Random(seed).shuffle(order)
    return order


# ---- MFDn ---------------------------------------------------------------------------------


def _check_diagonals(number: int) -> None:
    if number < 1 or number % 2 == 0:
        raise ValueError(f"{number} diagonals: MFDn takes an odd number, such as 5")
    if number * (number + 1) // 2 > MAX_RANKS:
        raise ValueError(f"{number} diagonals are more than {MAX_RANKS} ranks")


def mfdn_cells(diagonals: int, kind: MfdnKind) -> list[tuple[int, int]]:
    """Return the cell (row, column) of the symmetric matrix that each rank of MFDn has.

    ``diagonals`` (n_d) is odd; there are n_d (n_d + 1) / 2 ranks. DM goes along the diagonals of
    the lower triangle, CM along its columns. BDM and BCM are the balanced ones, in which each
    column has (n_d + 1) / 2 cells: rows (j + k) mod n_d for k from 0 (Maris et al. 2010, Aktulga et
    al. 2014). Raises ValueError for an even number.
    """
    _check_diagonals(diagonals)
    n = diagonals
    half = range((n + 1) // 2)
    match kind:
        case "DM":
            return [(j + k, j) for k in range(n) for j in range(n - k)]
        case "CM":
            return [(i, j) for j in range(n) for i in range(j, n)]
        case "BDM":
            return [((j + k) % n, j) for k, j in itertools.product(half, range(n))]
        case "BCM":
            return [((j + k) % n, j) for j, k in itertools.product(range(n), half)]


def mfdn(diagonals: int, start: MfdnKind, wanted: MfdnKind) -> Order:
    """Return the order that puts ranks numbered by ``start`` in the slots of ``wanted``: the cells
    of a column (or diagonal) of ``wanted`` stand together. Both must be balanced, or both not, as
    only these have the same cells. Raises ValueError."""
    rank_of = {cell: rank for rank, cell in enumerate(mfdn_cells(diagonals, start))}
    cells = mfdn_cells(diagonals, wanted)
    if (lost := next((cell for cell in cells if cell not in rank_of), None)) is not None:
        raise ValueError(
            f"{start} has no cell {lost} of {wanted}; give DM and CM, or BDM and BCM, together"
        )
    return [rank_of[cell] for cell in cells]


# ---- any order ----------------------------------------------------------------------------


def parsed(text: str) -> Order:
    """Return the order that a file in the format of MPICH_RANK_ORDER has: ranks and spans with
    commas or blanks between, and comments. Raises ValueError with the line."""
    ranks: Order = []
    for number, line in enumerate(text.splitlines(), 1):
        for word in line.partition("#")[0].replace(",", " ").split():
            try:
                ranks += _span(word)
            except ValueError as error:
                raise ValueError(f"line {number}: {word!r} is {error}") from None
    return ranks


def _span(word: str) -> range:
    """Return the ranks of a word such as ``5`` or ``4-7``."""
    first, dash, last = word.partition("-")
    if not all(part.isascii() and part.isdigit() for part in (first, last or "0")):
        raise ValueError("no rank; write e.g. 0,2,4-7")
    ranks = range(int(first), int(last if dash and last else first) + 1)
    if (dash and not last) or not 0 < len(ranks) <= MAX_RANKS:
        raise ValueError("no span of ranks; write e.g. 4-7")
    return ranks


def checked(order: Sequence[int], ranks: int) -> Order:
    """Return an order of this many ranks. Raises ValueError with the rank that is missing, twice or
    too large."""
    seen: dict[int, int] = {}
    for slot, rank in enumerate(order, 1):
        if rank in seen:
            raise ValueError(
                f"rank {rank} is in the order twice, as number {seen[rank]} and number {slot} of "
                "the list; each rank must be there once"
            )
        if not 0 <= rank < ranks:
            raise ValueError(
                f"rank {rank} is in the order, as number {slot} of the list; of {ranks} the last "
                f"is {ranks - 1}, and each must be there once"
            )
        seen[rank] = slot
    if len(seen) < ranks:
        lost = next(rank for rank in range(ranks) if rank not in seen)
        raise ValueError(f"rank {lost} is not in the order; it has {len(seen)} of {ranks}")
    return list(order)


def goes_up(order: Sequence[int], sizes: Sequence[int]) -> bool:
    """Return whether the ranks of each node go up with its slots."""
    ends = set(itertools.accumulate(sizes))
    return all(
        a < b for slot, (a, b) in enumerate(itertools.pairwise(order), 1) if slot not in ends
    )


def with_nodes_in_order(
    order: Sequence[int], sizes: Sequence[int], numbers: Sequence[int]
) -> tuple[Order, list[int]]:
    """Return an order, and its sizes, with the nodes of these numbers one after the other."""
    starts = [0, *itertools.accumulate(sizes)]
    ranks_of_nodes = [list(order[starts[number] : starts[number + 1]]) for number in numbers]
    return [*itertools.chain.from_iterable(ranks_of_nodes)], [*map(len, ranks_of_nodes)]


def slots_of_ranks(order: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return the slot of each rank on its node, from 0 on."""
    slots = [0] * len(order)
    for rank, slot in zip(order, (slot for size in sizes for slot in range(size)), strict=False):
        slots[rank] = slot
    return slots


def nodes_of_ranks(order: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return the number of the node of each rank. Raises ValueError if there are more ranks than
    slots."""
    if len(order) > sum(sizes):
        raise ValueError(f"{len(order)} ranks, but {len(sizes)} nodes have {sum(sizes)} slots")
    slots = (node for node, size in enumerate(sizes) for _ in range(size))
    nodes = [0] * len(order)
    for rank, node in zip(order, slots, strict=False):
        nodes[rank] = node
    return nodes


# ---- order files ---------------------------------------------------------------------------------
#
# Rank orders as MPI libraries and Slurm read them.
#
#     rank_order(order, sizes)          # cray-mpich: MPICH_RANK_ORDER
#     hosts_by_rank(order, names, ...)  # Slurm: a file for SLURM_HOSTFILE and srun -m arbitrary
#     rankfile(order, names, sizes)     # Open MPI: mpirun --rankfile


def rank_order(order: Sequence[int], sizes: Sequence[int]) -> str:
    """Return the text of MPICH_RANK_ORDER: a line for each node. No spans: not all read them."""
    return "".join(f"{','.join(map(str, ranks))}\n" for ranks in _by_node(order, sizes))


def hosts_by_rank(order: Sequence[int], names: Sequence[str], sizes: Sequence[int]) -> str:
    """Return the host of each rank, a line each: Slurm's host file, and hydra's, too."""
    return "".join(f"{names[node]}\n" for node in nodes_of_ranks(order, sizes))


def rankmap(order: Sequence[int], sizes: Sequence[int]) -> str:
    """Return the number of the node of each rank: ``-rankmap`` of MPICH's mpiexec, from 4.1 on."""
    return ",".join(map(str, nodes_of_ranks(order, sizes)))


def rankfile(order: Sequence[int], names: Sequence[str], sizes: Sequence[int]) -> str:
    """Return a rankfile of Open MPI 4 and 5, in which a rank has the core with the number of its
    place on the node."""
    lines = {}
    for name, ranks in zip(names, _by_node(order, sizes), strict=True):
        lines.update({rank: f"rank {rank}={name} slot={slot}" for slot, rank in enumerate(ranks)})
    return "".join(f"{lines[rank]}\n" for rank in sorted(lines))


def _by_node(order: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """Return the ranks of each node, by slot."""
    by_node, first = [], 0
    for size in sizes:
        by_node.append(list(order[first : first + size]))
        first += size
    return by_node


def process_mapping(nodes: Sequence[int]) -> str:
    """Return PMI_process_mapping of ranks on these nodes: blocks of (first node, nodes, ranks of
    each)."""
    blocks: list[tuple[int, int, int]] = []
    for node, same in groupby(nodes):
        ranks = len(list(same))
        first, number, each = blocks[-1] if blocks else (-1, 0, 0)
        if number and each == ranks and node == first + number:
            blocks[-1] = (first, number + 1, each)
        else:
            blocks.append((node, 1, ranks))
    return f"(vector,{','.join(f'({a},{b},{c})' for a, b, c in blocks)})"
