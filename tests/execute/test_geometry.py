"""The cores of tasks: by hand, and by properties over layouts and shapes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.execute.geometry import Cores, in_objects, place, widened
from seatrial.model import nodes
from seatrial.model.nodes import NodeLayout, from_sockets, spans
from seatrial.model.test import Spread

HOPPER = nodes.parse_synthetic("pack:2 numa:2 core:6 pu:1")
SPREADS: list[Spread] = ["numa", "socket", "pack"]


def shown(placed: list[Cores] | None) -> str:
    return " ".join(map(spans, placed)) if placed else "-"


@pytest.mark.parametrize(
    ("tasks", "threads", "spread", "cores"),
    [
        (4, 3, "numa", "0-2 6-8 12-14 18-20"),
        (4, 3, "socket", "0-2 3-5 12-14 15-17"),
        (4, 3, "pack", "0-2 3-5 6-8 9-11"),
        (8, 3, "numa", "0-2 3-5 6-8 9-11 12-14 15-17 18-20 21-23"),
        (2, 6, "numa", "0-5 12-17"),
        (3, 6, "numa", "0-5 6-11 12-17"),
        (6, 1, "numa", "0 1 6 12 13 18"),
        (4, 4, "pack", "0-3 6-9 12-15 18-21"),  # none across two domains
        (2, 12, "numa", "0-11 12-23"),
        (1, 8, "numa", "0-3,6-9"),  # two domains, evenly
        (6, 4, "numa", "0-3 4-5,10-11 6-9 12-15 16-17,22-23 18-21"),  # two must cross
        (1, 24, "pack", "0-23"),
        (25, 1, "numa", "-"),
    ],
)
def test_tasks_on_hopper(tasks: int, threads: int, spread: Spread, cores: str) -> None:
    assert shown(place(HOPPER, tasks, threads, spread)) == cores


def test_one_domain_of_several_sockets() -> None:
    layout = nodes.parse_synthetic("numa:1 pack:2 core:4 pu:1")
    for spread in ("numa", "socket"):
        assert shown(place(layout, 4, 1, spread)) == "0 1 4 5"
    assert shown(place(layout, 4, 1, "pack")) == "0 1 2 3"
    assert shown(place(layout, 1, 6, "socket")) == "0-2,4-6"
    assert shown(place(layout, 2, 4, "numa", tasks_per_numa=2)) == "0-3 4-7"
    assert place(layout, 2, 4, "numa", tasks_per_numa=1) is None
    virtual = nodes.parse_synthetic("numa:1 pack:8 core:1 pu:1")
    assert shown(place(virtual, 2, 4, "numa", tasks_per_numa=2)) == "0-3 4-7"
    assert shown(place(virtual, 2, 3, "numa")) == "0-2 3-5"


def test_tasks_of_a_domain_and_cores_to_spare() -> None:
    assert shown(place(HOPPER, 4, 1, "numa", tasks_per_numa=2)) == "0 1 6 7"
    assert shown(place(HOPPER, 8, 2, "numa", tasks_per_numa=2)) == (
        "0-1 2-3 6-7 8-9 12-13 14-15 18-19 20-21"
    )
    assert place(HOPPER, 9, 1, "numa", tasks_per_numa=2) is None
    assert shown(place(HOPPER, 1, 23, "pack", spare=1)) == "0-22"
    spared = place(HOPPER, 20, 1, "pack", spare=4) or []
    assert {*range(24)} - {core for cores in spared for core in cores} == {5, 11, 17, 23}
    assert place(HOPPER, 21, 1, "pack", spare=4) is None


def test_bound_to_more_than_its_cores() -> None:
    assert spans(widened(HOPPER, (6, 7), "core")) == "6-7"
    assert spans(widened(HOPPER, (6, 7), "numa")) == "6-11"
    assert spans(widened(HOPPER, (6, 7), "socket")) == "0-11"
    assert spans(widened(HOPPER, (5, 6), "numa")) == "0-11"


@st.composite
def layouts(draw: st.DrawFn) -> NodeLayout:
    """Nodes whose domains may differ in size, as where cores are off, or span sockets."""
    sizes = draw(
        st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=4), min_size=1, max_size=3)
    )
    texts: list[list[str]] = []
    start = 0
    for socket in sizes:
        texts.append([])
        for size in socket:
            texts[-1].append(f"{start}-{start + size - 1}")
            start += size
    return from_sockets(texts, [f"0-{start - 1}"] if draw(st.booleans()) else [])


def even_layouts() -> st.SearchStrategy[NodeLayout]:
    shape = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 6))
    return shape.map(lambda n: nodes.parse_synthetic(f"pack:{n[0]} numa:{n[1]} core:{n[2]} pu:1"))


def domains_of(layout: NodeLayout, cores: Cores) -> set[int]:
    return {layout.cores[core].domain for core in cores}


@settings(deadline=None)
@given(
    layout=layouts(),
    tasks=st.integers(1, 24),
    threads=st.integers(1, 12),
    spread=st.sampled_from(SPREADS),
    spare=st.integers(0, 3),
)
def test_sets_are_disjoint_and_within_a_domain_where_they_can_be(
    layout: NodeLayout, tasks: int, threads: int, spread: Spread, spare: int
) -> None:
    placed = place(layout, tasks, threads, spread, spare=spare)
    assert (placed is None) == (tasks * threads + spare > len(layout.cores))
    if placed is None:
        return
    used = [core for cores in placed for core in cores]
    assert len(used) == len(set(used)) == tasks * threads
    assert all(len(cores) == threads for cores in placed)
    assert placed == sorted(placed)
    if spare == 0:
        room = sum(len(cores) // threads for cores in layout.domains.values())
        whole = sum(len(domains_of(layout, cores)) == 1 for cores in placed)
        assert whole >= min(room, tasks)
        one_socket = sum(
            len({layout.cores[core].socket for core in cores}) == 1 for cores in placed
        )
        assert one_socket >= min(sum(len(c) // threads for c in layout.parts.values()), tasks)


@settings(deadline=None)
@given(layout=even_layouts(), tasks=st.integers(1, 24), threads=st.integers(1, 6))
def test_spread_is_never_worse_balanced_than_packed(
    layout: NodeLayout, tasks: int, threads: int
) -> None:
    """Cores in use of each domain: the most less the fewest, also beside consecutive cores."""
    spread = place(layout, tasks, threads, "numa")
    if spread is None:
        return
    consecutive = in_objects([range(len(layout.cores))], tasks, tasks, threads) or []
    packed = place(layout, tasks, threads, "pack") or []
    assert _imbalance(layout, spread) <= _imbalance(layout, packed)
    if all(len(domains_of(layout, cores)) == 1 for cores in consecutive):
        assert _imbalance(layout, spread) <= _imbalance(layout, consecutive)


def _imbalance(layout: NodeLayout, placed: list[Cores]) -> int:
    used = Counter(layout.cores[core].domain for cores in placed for core in cores)
    counts = [used[domain] for domain in layout.domains]
    return max(counts) - min(counts)
