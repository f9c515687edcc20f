"""Rank orders: known ones, and that each is a permutation with as many tasks on a node as asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.model import orders
from seatrial.model.machine import Launcher
from seatrial.model.orders import (
    MfdnKind,
    Order,
    hosts_by_rank,
    mfdn,
    mfdn_cells,
    process_mapping,
    rank_order,
    rankfile,
)
from seatrial.model.requirements import doubt_of_mapping, refused_mapping

TWO = [4, 4]
DEALT: list[Callable[[list[int]], Order]] = [
    orders.smp,
    orders.round_robin,
    orders.folded,
    lambda sizes: orders.shuffled(sizes, 7),
]


def test_the_three_methods_of_mpich() -> None:
    assert orders.round_robin(TWO) == [0, 2, 4, 6, 1, 3, 5, 7]
    assert orders.smp(TWO) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert orders.folded(TWO) == [0, 3, 4, 7, 1, 2, 5, 6]
    assert orders.folded([3, 3, 1]) == [0, 4, 5, 1, 3, 6, 2], "a full node is passed over"
    assert orders.shuffled(TWO, 1) == orders.shuffled(TWO, 1) != orders.shuffled(TWO, 2)


@settings(max_examples=60)
@given(st.sampled_from(DEALT), st.integers(1, 200), st.integers(1, 20))
def test_every_order_is_a_permutation_that_fills_nodes_as_asked(
    make: Callable[[list[int]], Order], ranks: int, per_node: int
) -> None:
    sizes = orders.node_sizes(ranks, per_node)
    order = orders.checked(make(sizes), ranks)
    nodes = orders.nodes_of_ranks(order, sizes)
    counts = Counter(nodes)
    assert [counts[node] for node in range(len(sizes))] == sizes
    assert set(sizes[:-1]) <= {per_node}
    # what is written is read again, and each form says the same
    assert orders.parsed(rank_order(order, sizes)) == order
    names = [f"n{node}" for node in range(len(sizes))]
    assert hosts_by_rank(order, names, sizes).split() == [f"n{node}" for node in nodes]
    lines = rankfile(order, names, sizes).splitlines()
    assert [line.split(" slot")[0] for line in lines] == [
        f"rank {rank}=n{node}" for rank, node in enumerate(nodes)
    ]
    assert len({line.split("=", 1)[1] for line in lines}) == ranks, "no core is given twice"


@pytest.mark.parametrize(
    ("kind", "groups"),
    [("DM", [5, 4, 3, 2, 1]), ("CM", [5, 4, 3, 2, 1]), ("BDM", [3] * 5), ("BCM", [3] * 5)],
)
def test_mfdn_with_five_diagonals(kind: MfdnKind, groups: list[int]) -> None:
    cells = mfdn_cells(5, kind)
    assert len(set(cells)) == 15
    columns = Counter(column for _, column in cells)
    assert [columns[column] for column in sorted(columns)] == groups
    # each pair of a row and a column is there once, on either side of the diagonal
    assert {frozenset(cell) for cell in cells} == {
        frozenset((i, j)) for i in range(5) for j in range(i + 1)
    }


@pytest.mark.parametrize(("start", "wanted"), [("DM", "CM"), ("BDM", "BCM"), ("CM", "CM")])
def test_orders_of_mfdn_keep_its_groups_together(start: MfdnKind, wanted: MfdnKind) -> None:
    order = orders.checked(mfdn(5, start, wanted), 15)
    cells = mfdn_cells(5, start)
    assert [cells[rank] for rank in order] == mfdn_cells(5, wanted)
    if wanted in ("CM", "BCM"):
        columns = [cells[rank][1] for rank in order]
        assert columns == sorted(columns)
    assert mfdn(5, "DM", "DM") == list(range(15))
    assert mfdn(5, "DM", "CM")[:5] == [0, 5, 9, 12, 14]


def test_mfdn_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="4 diagonals: MFDn takes an odd number"):
        mfdn(4, "DM", "CM")
    with pytest.raises(ValueError, match=r"DM has no cell .* of BCM; give DM and CM, or"):
        mfdn(5, "DM", "BCM")
    with pytest.raises(ValueError, match="are more than"):
        mfdn_cells(5001, "DM")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0,1,x", "line 1: 'x' is no rank"),
        ("# a\n0 2-", "line 2: '2-' is no span"),
        ("3-1", "'3-1' is no span"),
        ("-1", "'-1' is no rank"),
    ],
)
def test_malformed_orders_are_told(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        orders.parsed(text)


def test_what_is_no_permutation_is_told() -> None:
    assert orders.parsed("# MPICH_RANK_ORDER\n0, 2-3 # two\n1\n") == [0, 2, 3, 1]
    with pytest.raises(ValueError, match="rank 1 is in the order twice"):
        orders.checked([0, 1, 1], 3)
    with pytest.raises(ValueError, match="rank 7 is in the order, as number 2 of the list; of 3"):
        orders.checked([0, 7, 1], 3)
    with pytest.raises(ValueError, match="rank 1 is not in the order; it has 2 of 3"):
        orders.checked([0, 2], 3)
    with pytest.raises(ValueError, match="5 ranks, but 2 nodes have 4 slots"):
        orders.nodes_of_ranks(range(5), [2, 2])
    with pytest.raises(ValueError, match="0 ranks: give 1 to"):
        orders.node_sizes(0, 4)
    with pytest.raises(ValueError, match="0 ranks per node: give at least 1"):
        orders.node_sizes(4, 0)


def test_a_mapping_that_cray_mpich_refuses() -> None:
    """As found on a real system: two nodes in turn, 252 ranks pass and 254 do not."""
    assert process_mapping([0, 0, 1, 1, 2, 2, 0]) == "(vector,(0,3,2),(0,1,1))"
    assert process_mapping([0, 2, 1]) == "(vector,(0,1,1),(2,1,1),(1,1,1))"
    for ranks, size in ((252, 1016), (254, 1024)):
        sizes = [ranks // 2] * 2
        order = orders.round_robin(sizes)
        assert len(process_mapping(orders.nodes_of_ranks(order, sizes))) == size
        cray = Launcher(kind="aprun", version="9.1")
        assert bool(refused_mapping(cray, order, sizes)) == (ranks == 254)
        assert refused_mapping(cray, orders.smp(sizes), sizes) == ""
        unknown = Launcher(kind="aprun")
        assert refused_mapping(unknown, order, sizes) == ""
        assert bool(doubt_of_mapping(unknown, order, sizes)) == (ranks == 254)
