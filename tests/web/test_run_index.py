"""Where the nodes of a run are on the machine."""

from __future__ import annotations

import pytest

from seatrial.web.nodes.run_index import Names


@pytest.mark.parametrize(
    ("folded", "places"),
    [
        ("n[2-3]", [(1, 2)]),
        ("n[1,3-4]", [(0, 0), (2, 3)]),
        ("n[3-4,1]", [(0, 0), (2, 3)]),  # in any order
        ("n[1-3,2-4]", [(0, 3)]),  # a node counts once
        ("n[4-1]", []),  # as a job may write it
    ],
)
def test_places_of_a_node_set(folded: str, places: list[tuple[int, int]]) -> None:
    assert list(Names(["n1", "n2", "n3", "n4"]).spans(folded)) == places
