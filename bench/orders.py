"""Rank orders found by ``seatrial order best``, beside those of others: hop-bytes and the load of
the busiest link, and how long the search takes.

Each pattern is put on a tree, a dragonfly and a torus, 32 ranks to a node. The others are ranks in
their order, the best cell of ``grid_order`` along any curve, Scotch's ``gmap``, METIS (parts in the
order of the nodes), and a random order. A mapping that puts 33 ranks on a node does not count.

The cases run side by side, one on each CPU of the host, each with one thread. So a time is that of
a search with one CPU, or more where something else is at work.

    python -m bench orders
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
import pymetis

from bench.measuring import Row
from seatrial.lazy import Ints
from seatrial.model.machine import NetworkModel
from seatrial.model.machine_topology import made
from seatrial.plugins.orders import search
from seatrial.plugins.orders.acts import parse_pattern
from seatrial.plugins.orders.network_loads import PlacedNetwork, ScoreKind
from seatrial.plugins.orders.patterns import Pattern, RankGraph, graph_of
from seatrial.plugins.orders.search import best_orders, curved_orders, likely_shapes, scored

PER_NODE = 32
TORI = {63: (7, 3, 3), 128: (8, 4, 4), 768: (12, 8, 8), 2048: (16, 16, 8)}
PATTERNS = (
    "halo 16x16x16",
    "halo 48x32x16",
    "halo 64x64",
    "transpose 64x64",
    "mfdn 63 BDM",
    "irregular 4096",
)
LARGE = ("halo 64x32x32", "irregular 65536")
NETWORKS = ("tree", "dragonfly", "torus")
LIMITS = {4096: 10, 65536: 60}  # ranks: seconds
MEASURES: dict[ScoreKind, str] = {"hop_bytes": "hop-bytes", "link_load": "largest link load"}
GAIN = 0.95  # of Scotch's figure, or less: a better order


class Compared(NamedTuple):
    """One figure of an order by us and by the others; None where a mapping does not fit."""

    ours: float
    others: dict[str, float | None]


def networks(nodes: int) -> dict[str, PlacedNetwork]:
    """Return the networks, of so many nodes each."""
    axes = dict(zip("xyz", TORI[nodes], strict=True))
    models = {
        "tree": NetworkModel(kind="tree", levels=[{"switch": 16}, {"pod": 64}]),
        "dragonfly": NetworkModel(kind="dragonfly", levels=[{"router": 4}, {"group": 32}]),
        "torus": NetworkModel(kind="torus", axes=axes),
    }
    names = [f"n{number:04}" for number in range(1, nodes + 1)]
    return {kind: PlacedNetwork(made(model, names), range(nodes)) for kind, model in models.items()}


def others_of(pattern: Pattern, network: PlacedNetwork) -> Iterator[tuple[str, Ints | None]]:
    """Yield the node of each rank by everyone else."""
    graph = graph_of(pattern)
    slots = np.repeat(np.arange(len(network)), PER_NODE)
    yield "smp", slots
    for _, of in curved_orders(likely_shapes(pattern), PER_NODE):
        yield "grid_order", of
    yield "Scotch", search.by_scotch(graph, network)
    for recursive in (False, True):
        yield "METIS", by_metis(graph, len(network), recursive)
    yield "random", np.random.default_rng(1).permutation(slots)


def by_metis(graph: RankGraph, nodes: int, recursive: bool) -> Ints:
    """Return METIS's parts, one a node."""
    parts = pymetis.part_graph(
        nodes,
        pymetis.CSRAdjacency(graph.starts, graph.neighbours),
        eweights=graph.weights.astype(np.int64),
        recursive=recursive,
        options=pymetis.Options(ufactor=1),
    )
    return np.array(parts.vertex_part, dtype=np.int64)


def compared(
    pattern: Pattern, network: PlacedNetwork, measures: tuple[ScoreKind, ...]
) -> tuple[dict[ScoreKind, Compared], float]:
    """Return both figures, and the seconds of the longest search."""
    sizes = [PER_NODE] * len(network)
    found: dict[ScoreKind, Compared] = {}
    others = [
        (name, of if of is None else scored(name, of, pattern, network, sizes).score)
        for name, of in others_of(pattern, network)
    ]
    longest = 0.0
    for by in measures:
        began = time.monotonic()
        best = best_orders(pattern, network, sizes, by)[0]
        longest = max(longest, time.monotonic() - began)
        assert best.score is not None
        figures: dict[str, float | None] = {}
        for name, score in others:
            own = None if score is None else float(getattr(score, by))
            figures[name] = _least(figures.get(name), own)
        found[by] = Compared(float(getattr(best.score, by)), figures)
    return found, longest


def _least(a: float | None, b: float | None) -> float | None:
    return min((each for each in (a, b) if each is not None), default=None)


class Case(NamedTuple):
    """A pattern on a network, with what was found."""

    words: str
    kind: str
    ranks: int
    found: dict[ScoreKind, Compared]
    seconds: float


def case(words: str, kind: str) -> Case:
    """Return what is found for one pattern on one network."""
    pattern = parse_pattern(words)
    measures: tuple[ScoreKind, ...] = tuple(MEASURES)[: 1 if words in LARGE else 2]
    network = networks(pattern.ranks // PER_NODE)[kind]
    return Case(words, kind, pattern.ranks, *compared(pattern, network, measures))


def cases() -> Iterator[Case]:
    """Yield all cases, each from a process of its own that has one thread."""
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    workers = len(os.sched_getaffinity(0))
    with ProcessPoolExecutor(workers, get_context("spawn"), max_tasks_per_child=1) as pool:
        asked = [(words, kind) for words in (*PATTERNS, *LARGE) for kind in NETWORKS]
        yield from pool.map(case, *zip(*asked, strict=True))


def measure() -> Iterator[Row]:
    """Yield a line for each pattern, network and figure; then how many were reached."""
    worse = gained = beside_scotch = 0
    slowest: dict[int, float] = {}
    for words, kind, ranks, found, seconds in cases():
        limit = min(each for each in LIMITS if each >= ranks)
        slowest[limit] = max(slowest.get(limit, 0.0), seconds)
        for by, one in found.items():
            by_scotch = one.others.get("Scotch")
            worse += one.ours > min(each for each in one.others.values() if each is not None)
            beside_scotch += by_scotch is not None
            gained += by_scotch is not None and one.ours <= GAIN * by_scotch
            yield _row(f"{words} on a {kind}, {MEASURES[by]}", one, seconds, by_scotch)
    yield Row("Worse than the best of the others", str(worse), "0 allowed", "")
    yield Row(
        "At least 5 % below Scotch, where Scotch fills no node beyond its slots",
        f"{gained} of {beside_scotch}",
        "half",
        f"{gained / max(1, beside_scotch):.2f}",
    )
    for ranks, seconds in slowest.items():
        yield Row(
            f"Longest search, up to {ranks:,} ranks",
            f"{seconds:.1f} s",
            f"{LIMITS[ranks]} s",
            f"{seconds / LIMITS[ranks]:.2f}",
        )


def _row(claim: str, one: Compared, seconds: float, by_scotch: float | None) -> Row:
    beside = ", ".join(
        f"{name} {figure:,.0f}" if figure is not None else f"{name} overfills"
        for name, figure in one.others.items()
    )
    ratio = f"{one.ours / by_scotch:.2f}" if by_scotch else "-"
    return Row(claim, f"{one.ours:,.0f} in {seconds:.1f} s", beside, ratio)
