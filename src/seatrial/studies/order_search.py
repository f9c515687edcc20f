"""The search for the best rank order with the help of other programs: METIS and Scotch.

found = best_orders(pattern, network, sizes, by="hop_bytes", seconds=10)
"""

from collections.abc import Callable, Sequence
from functools import partial

from seatrial.arrays import Ints
from seatrial.layout.best_order import ScoredOrder, ranked, usual_seconds
from seatrial.layout.network_loads import PlacedNetwork, ScoreKind
from seatrial.layout.patterns import Pattern, graph_of
from seatrial.studies import metis, scotch

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
    if scotch.program() is not None:
        limit = max(5.0, _SHARE_OF_SCOTCH * seconds)
        others["scotch"] = partial(scotch.mapped, graph, network, limit)
    if metis.is_installed():
        for seed in _SEEDS:
            others[f"metis, seed {seed}"] = partial(metis.mapped, graph, network, sizes, seed)
    return ranked(pattern, network, sizes, others, by, seconds)


def missing_programs() -> list[str]:
    """Return a sentence for each program that gives no candidate, as it is not installed."""
    found = []
    if not metis.is_installed():
        found.append(
            "METIS gave no candidate: pymetis is not installed (pip install 'seatrial[orders]')"
        )
    if scotch.program() is None:
        found.append("Scotch gave no candidate: it is not on the PATH (Debian: scotch)")
    return found
