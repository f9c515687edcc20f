"""The search for the best rank order with the help of other programs: METIS and Scotch.

found = best_orders(pattern, network, sizes, by="hop_bytes", seconds=10)
"""

import importlib.util
import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from seatrial.errors import with_extra
from seatrial.lazy import Bools, Floats, Ints, np
from seatrial.plugins.orders.best_order import ScoredOrder, ranked, usual_seconds
from seatrial.plugins.orders.bisection import bisected
from seatrial.plugins.orders.network_loads import PlacedNetwork, ScoreKind
from seatrial.plugins.orders.patterns import Pattern, RankGraph, graph_of

_SEEDS = (1, 2, 3)  # METIS finds another mapping by each
_SHARE_OF_SCOTCH = 0.3  # of the time


def best_orders(
    pattern: Pattern,
    network: PlacedNetwork,
    sizes: Sequence[int],
    by: ScoreKind = "hop_bytes",
    seconds: float = 0.0,
) -> list[ScoredOrder]:
    """Return the candidates as ``ranked`` does, with those of the programs that are installed."""
    graph = graph_of(pattern)
    seconds = seconds or usual_seconds(pattern.ranks)
    others: dict[str, Callable[[], Ints | None]] = {}
    if program() is not None:
        limit = max(5.0, _SHARE_OF_SCOTCH * seconds)
        others["scotch"] = partial(by_scotch, graph, network, limit)
    if is_installed():
        for seed in _SEEDS:
            others[f"metis, seed {seed}"] = partial(by_metis, graph, network, sizes, seed)
    return ranked(pattern, network, sizes, others, by, seconds)


def missing_programs() -> list[str]:
    """Return a sentence for each program that gives no candidate, as it is not installed."""
    sentences = []
    if not is_installed():
        sentences.append(
            f"METIS gave no candidate: pymetis is not installed ({with_extra('orders')})"
        )
    if program() is None:
        sentences.append("Scotch gave no candidate: it is not on the PATH (Debian: scotch)")
    return sentences


# ---- metis ---------------------------------------------------------------------------------------
#
# Mappings of ranks to nodes by METIS, where ``pymetis`` is installed (``seatrial[orders]``).
#
#     found = mapped(graph, network, sizes)       # the node of each rank; None without pymetis
#
# METIS knows no networks. So it halves the ranks, and the halves, ..., as the network of the nodes
# is halved (Karypis and Kumar 1998; ``plugins/orders/bisection.py``).


_LARGEST_WEIGHT = 1 << 20


def is_installed() -> bool:
    """Return whether METIS can be used."""
    return importlib.util.find_spec("pymetis") is not None


def by_metis(
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
    """Return weights as METIS and Scotch take them: integers from 1 on."""
    scale = min(1.0, _LARGEST_WEIGHT / float(weights.max(initial=1.0)))
    integers: Ints = np.maximum(1, np.rint(weights * scale)).astype(np.int64)
    return integers


# ---- scotch --------------------------------------------------------------------------------------
#
# Mappings of ranks to nodes by Scotch, where its program is on the PATH (Debian: ``scotch``).
#
#     found = mapped(graph, network)       # the node of each rank; None without Scotch
#
# Scotch is asked for parts of equal size (``-b0.001 -cq``): by default it puts 33 ranks on some
# nodes of 32. The caller checks what it gives. It has one thread: with more, each run gives
# another mapping of the same pattern, and takes longer. Formats: Pellegrini, Scotch and libScotch
# 7.0 User's Guide.


_PROGRAMS = ("scotch_gmap", "gmap")
_SECONDS = 60.0
_ONE_THREAD = {"SCOTCH_PTHREAD_NUMBER": "1"}
_LOG = logging.getLogger(__name__)


def program() -> str | None:
    """Return the path of Scotch's program for mappings; None if there is none."""
    return next(filter(None, map(shutil.which, _PROGRAMS)), None)


def by_scotch(graph: RankGraph, network: PlacedNetwork, seconds: float = _SECONDS) -> "Ints | None":
    """Return the node of each rank by Scotch; None where there is no Scotch, or it fails or takes
    longer than this, which is logged."""
    gmap = program()
    if gmap is None:
        return None
    target, nodes = _target(network)
    with tempfile.TemporaryDirectory(prefix="seatrial-scotch-") as name:
        folder = Path(name)
        (folder / "pattern.grf").write_text(_source(graph))
        (folder / "nodes.tgt").write_text(target)
        words = [gmap, "-b0.001", "-cq", "pattern.grf", "nodes.tgt", "ranks.map"]
        try:
            done = subprocess.run(
                words,
                cwd=folder,
                env=os.environ | _ONE_THREAD,
                capture_output=True,
                timeout=seconds,
                check=False,
            )
            rows = np.array((folder / "ranks.map").read_text().split()[1:], dtype=np.int64)
            parts = rows.reshape(-1, 2)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            _LOG.warning("%s gave no mapping: %s", gmap, error)
            return None
    if done.returncode or len(parts) != graph.ranks:
        output = done.stderr.decode(errors="replace").strip()[:200]
        _LOG.warning("%s failed with code %s: %s", gmap, done.returncode, output)
        return None
    node_of = np.zeros(graph.ranks, dtype=np.int64)
    node_of[parts[:, 0]] = nodes[parts[:, 1] % len(nodes)]
    return node_of


def _source(graph: RankGraph) -> str:
    """Return the text of a source graph with weights of edges, which are integers."""
    weights = _integers(graph.weights)
    rows = np.stack([weights, graph.neighbours], axis=1)
    lines = [f"0\n{graph.ranks} {len(weights)}\n0 010"]
    for rank in range(graph.ranks):
        own = rows[graph.starts[rank] : graph.starts[rank + 1]]
        lines.append(" ".join(map(str, [len(own), *own.reshape(-1).tolist()])))
    return "\n".join(lines) + "\n"


def _target(network: PlacedNetwork) -> tuple[str, Ints]:
    """Return the text of a target, and the node of each of its numbers: a torus that is whole, a
    tree of equal units; else a network in which all nodes are as far from each other."""
    if network.topology.kind == "torus":
        shape = [int(each) for each in network.shape]
        if len(network) == np.prod(shape) and len(shape) in (2, 3):
            lengths = " ".join(map(str, shape))
            return f"torus{len(shape)}D {lengths}\n", np.lexsort(list(network.at.T))
        return f"cmplt {len(network)}\n", np.arange(len(network))
    nodes = np.lexsort([np.arange(len(network)), *network.units])
    levels, below, hops = [], 1, 0
    for height, unit in enumerate([*network.units, np.zeros(len(network), np.int64)]):
        each = set(np.bincount(unit)[np.unique(unit)].tolist())
        if len(each) > 1:
            return f"cmplt {len(network)}\n", nodes
        own = each.pop()
        if own > below:
            far = network.topology.hops_at(height)
            levels.append(f"{own // below} {max(1, far - hops)}")
            below, hops = own, far
    if not levels:
        return f"cmplt {len(network)}\n", nodes
    return f"tleaf {len(levels)} {' '.join(reversed(levels))}\n", nodes
