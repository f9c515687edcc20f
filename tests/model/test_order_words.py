"""Rank orders by words."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.model import orders
from seatrial.model.orders import (
    GridOrder,
    goes_up,
    nodes_of_ranks,
    order_in,
    order_of_grid,
    parse_order,
    slots_of_ranks,
    slots_of_tasks,
)


@pytest.mark.parametrize(
    ("words", "order"),
    [
        ("smp", [0, 1, 2, 3, 4, 5]),
        ("Round  robin", [0, 2, 4, 1, 3, 5]),
        ("round-robin", [0, 2, 4, 1, 3, 5]),
        ("folded", [0, 3, 4, 1, 2, 5]),
        ("random 7", orders.shuffled([3, 3], 7)),
        ("grid 2x3 by 2x1", [0, 3, 1, 4, 2, 5]),
        ("grid 2,3 by 2,1 column z", order_of_grid(GridOrder((2, 3), (2, 1), "C"))),
        ("grid 3x2 by 1x1 peano", order_of_grid(GridOrder((3, 2), (1, 1), "R", "P"))),
        ("grid 2x3 by 1 Hilbert", order_of_grid(GridOrder((2, 3), (1,), "R", "H"))),
        ("mfdn 3 CM", orders.mfdn(3, "DM", "CM")),
        ("mfdn 3 bcm from BDM", orders.mfdn(3, "BDM", "BCM")),
    ],
)
def test_words_are_what_the_functions_are(words: str, order: list[int]) -> None:
    assert parse_order(words).order([3, 3]) == order


def test_an_order_of_a_file() -> None:
    assert parse_order("file by hand.txt").file == "by hand.txt"
    assert order_in("3,1-2\n0\n", "file f", [2, 2]) == [3, 1, 2, 0]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("cyclic", "'cyclic' is no rank order; write smp, round robin"),
        ("random", "is no rank order"),
        ("file ", "is no rank order"),
        ("grid 4x4", "is no rank order"),
        ("grid 4x0 by 2x2", "-g 4,0: lengths are 1 or more"),
        ("grid 4x4 by 2x2x2", "a cell of 3 dimensions in a grid of 2"),
        ("grid 4x4 by 2x2 diagonal", "'diagonal' is none of row, column, Z, Peano, Hilbert"),
        ("mfdn 4 DM", "4 diagonals: MFDn takes an odd number"),
        ("mfdn 5 XM", "'XM' is none of DM, CM, BDM, BCM"),
        ("mfdn 5 BDM from DM", "give DM and CM, or BDM and BCM, together"),
    ],
)
def test_what_is_no_order_is_told(words: str, told: str) -> None:
    with pytest.raises(ValueError, match=r"\S") as error:
        parse_order(words)
    assert told in str(error.value)


def test_an_order_of_other_ranks_is_told() -> None:
    with pytest.raises(ValueError, match="grid 2x2 by 1x1 orders 4 ranks, and there are 6"):
        parse_order("grid 2x2 by 1x1").order([3, 3])
    with pytest.raises(ValueError, match="rank 1 is in the order twice"):
        order_in("0,1,1,2", "file f", [2, 2])
    with pytest.raises(ValueError, match="file f orders 3 ranks, and there are 4"):
        order_in("0,1,2", "file f", [2, 2])


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 40), st.integers(0, 99))
def test_slots_and_nodes_of_ranks_agree(nodes: int, tasks: int, seed: int) -> None:
    sizes = slots_of_tasks(nodes, tasks, -(-tasks // nodes))
    assert (sum(sizes), len(sizes)) == (tasks, min(nodes, tasks))
    assert sizes == sorted(sizes, reverse=True)
    order = orders.shuffled(sizes, seed)
    where = list(zip(nodes_of_ranks(order, sizes), slots_of_ranks(order, sizes), strict=True))
    assert sorted(where) == [
        (node, slot) for node, size in enumerate(sizes) for slot in range(size)
    ]
    assert goes_up(sorted(order), sizes)
    by_slot = sorted(range(tasks), key=where.__getitem__)
    assert by_slot == order
    falls = any(a > b and where[a][0] == where[b][0] for a, b in itertools.pairwise(order))
    assert goes_up(order, sizes) is not falls
