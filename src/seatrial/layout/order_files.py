"""Rank orders as MPI libraries and Slurm read them, and what a library refuses.

rank_order(order, sizes)          # cray-mpich: MPICH_RANK_ORDER
hosts_by_rank(order, names, ...)  # Slurm: a file for SLURM_HOSTFILE and srun -m arbitrary
rankfile(order, names, sizes)     # Open MPI: mpirun --rankfile
"""

from collections.abc import Sequence
from itertools import groupby

from seatrial.layout.orders import nodes_of_ranks

MAX_MAPPING_BYTES = 1023  # of PMI_process_mapping; cray-mpich 9.1 refuses more


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
    found, first = [], 0
    for size in sizes:
        found.append(list(order[first : first + size]))
        first += size
    return found


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


def refused(order: Sequence[int], sizes: Sequence[int]) -> str:
    """Return why cray-mpich refuses an order; "" if it does not."""
    size = len(process_mapping(nodes_of_ranks(order, sizes)))
    if size <= MAX_MAPPING_BYTES:
        return ""
    return (
        f"PMI_process_mapping of this order has {size} bytes, and cray-mpich 9.1 refuses more than "
        f"{MAX_MAPPING_BYTES}; use larger cells, fewer ranks, or srun -m arbitrary"
    )
