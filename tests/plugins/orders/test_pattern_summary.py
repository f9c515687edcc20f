"""The figures and the map of a pattern."""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.plugins.orders.patterns import (
    NodeRanks,
    PairTraffic,
    Traffic,
    pattern_of,
    rank_map,
    summary_of,
)

ROWS = [[0, 1, 1, 10], [1, 2, 2, 30], [2, 2, 1, 5], [3, 0, 1, 100]]


def test_totals_and_the_share_off_node() -> None:
    """Of rank 3 the node is not known: what it sends is in neither share."""
    pattern = replace(
        pattern_of(4, ROWS), nodes=(NodeRanks("a", (0, 1)), NodeRanks("b", (2,))), missing=(3,)
    )
    told = summary_of(pattern, top=2)
    assert (told.sent, told.to_itself) == (Traffic(5, 145), Traffic(1, 5))
    assert told.off_node == Traffic(2, 30)
    assert told.top == [PairTraffic(3, 0, 1, 100), PairTraffic(1, 2, 2, 30)]
    assert summary_of(pattern_of(4, ROWS)).off_node is None


def test_sums_that_no_64_bits_hold() -> None:
    largest = 1 << 62
    rows = [[a, b, 1, largest] for a in range(3) for b in range(3)]
    assert summary_of(pattern_of(3, rows)).sent.volume == 9 * largest


def test_ranks_of_a_large_map_share_cells() -> None:
    cells, per = rank_map(pattern_of(5, [*ROWS, [4, 4, 1, 7]]), max_rows=3)
    assert per == 2
    assert cells.tolist() == [[10, 30, 0], [100, 5, 0], [0, 0, 7]]
