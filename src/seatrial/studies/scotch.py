"""Mappings of ranks to nodes by Scotch, where its program is on the PATH (Debian: ``scotch``).

    found = mapped(graph, network)       # the node of each rank; None without Scotch

Scotch is asked for parts of equal size (``-b0.001 -cq``): by default it puts 33 ranks on some nodes
of 32. The caller checks what it gives. It has one thread: with more, each run gives another mapping
of the same pattern, and takes longer. Formats: Pellegrini, Scotch and libScotch 7.0 User's Guide.
"""

import logging
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from seatrial.arrays import Ints
from seatrial.layout.network_loads import PlacedNetwork
from seatrial.layout.patterns import RankGraph
from seatrial.lazy import np

_PROGRAMS = ("scotch_gmap", "gmap")
_SECONDS = 60.0
_ONE_THREAD = {"SCOTCH_PTHREAD_NUMBER": "1"}
_LARGEST_WEIGHT = 1 << 20
_LOG = logging.getLogger(__name__)


def program() -> str | None:
    """Return the path of Scotch's program for mappings; None if there is none."""
    return next(filter(None, map(shutil.which, _PROGRAMS)), None)


def mapped(graph: RankGraph, network: PlacedNetwork, seconds: float = _SECONDS) -> "Ints | None":
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
            told = done.stderr.decode(errors="replace").strip()[:200]
            _LOG.warning("%s failed with code %s: %s", gmap, done.returncode, told)
            return None
    found = np.zeros(graph.ranks, dtype=np.int64)
    found[parts[:, 0]] = nodes[parts[:, 1] % len(nodes)]
    return found


def _source(graph: RankGraph) -> str:
    """Return the text of a source graph with weights of edges, which are integers."""
    largest = float(graph.weights.max(initial=1.0))
    scale = min(1.0, _LARGEST_WEIGHT / largest)
    weights = np.maximum(1, np.rint(graph.weights * scale)).astype(np.int64)
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
