"""Mappings of ranks to nodes by METIS, where ``pymetis`` is installed (``seatrial[orders]``).

    found = mapped(graph, network, sizes)       # the node of each rank; None without pymetis

METIS knows no networks. So it halves the ranks, and the halves, ..., as the network of the nodes is
halved (Karypis and Kumar 1998; ``layout/bisection.py``).
"""

import importlib.util
from collections.abc import Sequence

from seatrial.arrays import Bools, Floats, Ints
from seatrial.layout.bisection import bisected
from seatrial.layout.network_loads import PlacedNetwork
from seatrial.layout.patterns import RankGraph
from seatrial.lazy import np

_LARGEST_WEIGHT = 1 << 20


def is_installed() -> bool:
    """Return whether METIS can be used."""
    return importlib.util.find_spec("pymetis") is not None


def mapped(
    graph: RankGraph, network: PlacedNetwork, sizes: Sequence[int], seed: int = 0
) -> "Ints | None":
    """Return the node of each rank; node i has ``sizes[i]`` of them. None without pymetis."""
    if not is_installed():
        return None
    import pymetis

    def split(number: int, wanted: int, a: Ints, b: Ints, weights: Floats) -> Bools:
        if not 0 < wanted < number:
            return np.full(number, wanted == number)
        share = wanted / number
        parts = pymetis.part_graph(
            2,
            pymetis.CSRAdjacency(np.searchsorted(a, np.arange(number + 1)), b),
            eweights=_integers(weights),
            tpwgts=[share, 1 - share],
            recursive=True,
            options=pymetis.Options(ufactor=1, seed=seed),
        )
        first: Bools = np.array(parts.vertex_part, dtype=np.int64) == 0
        return first

    return bisected(graph, network, sizes, split)


def _integers(weights: Floats) -> Ints:
    """Return weights as METIS takes them: integers from 1 on."""
    scale = min(1.0, _LARGEST_WEIGHT / float(weights.max(initial=1.0)))
    integers: Ints = np.maximum(1, np.rint(weights * scale)).astype(np.int64)
    return integers
