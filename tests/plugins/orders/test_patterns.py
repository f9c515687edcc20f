"""The file of a communication pattern: what it keeps, and what it refuses."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from seatrial.plugins.orders.patterns import (
    NodeRanks,
    Pattern,
    PatternCall,
    Traffic,
    parsed,
    pattern_of,
    written,
)

CALLS = [PatternCall("MPI_Allreduce", 8, 3, 24), PatternCall("MPI_Isend", 0, 1)]
NODES = (NodeRanks("n001", (0, 1)), NodeRanks("n002", (3,)))
WHOLE = replace(
    pattern_of(5, [[0, 3, 10, 81920], [3, 3, 1, 0]], CALLS),
    nodes=NODES,
    missing=(2, 4),
    outside=Traffic(1, 7),
    dropped=Traffic(3, 9),
)
TEXT = """\
seatrial pattern 1
ranks 5
pairs 2
calls 2
nodes 2
missing 2,4
outside 1 7
dropped 3 9
0 3 10 81920
3 3 1 0
MPI_Allreduce 8 3 24
MPI_Isend 0 1 0
n001 0-1
n002 3
end
"""


def test_a_file_keeps_all_of_a_pattern() -> None:
    assert written(WHOLE) == TEXT
    assert written(parsed(TEXT)) == TEXT


def test_a_file_of_an_earlier_version_has_no_bytes_of_calls() -> None:
    text = TEXT.replace("MPI_Allreduce 8 3 24", "MPI_Allreduce 8 3")
    assert parsed(text).calls[0] == PatternCall("MPI_Allreduce", 8, 3, 0)


def test_a_pattern_without_pairs() -> None:
    empty: Pattern = parsed(written(pattern_of(3, [])))
    assert (empty.ranks, len(empty.senders)) == (3, 0)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("nodes 2", "nodes 3", "make 16 lines with `end` as the last, and there are 15"),
        ("missing 2,4", "missing 4,2", "line 6: '2': ranks go up, from 0 to 4"),
        ("missing 2,4", "missing 2-99999999999", "line 6: '2-99999999999': ranks go up"),
        ("outside 1 7", "outside 1", "line 7: '1' are not 2 numbers"),
        ("0 3 10 81920", "0 3 10", "line 9: '0 3 10' are not 4 numbers"),
        ("0 3 10 81920", "0 3 10 9" + "0" * 18, "are not 4 numbers"),
        ("0 3 10 81920", "0 5 10 1", "the pair '0 5 10 1' does not fit: ranks go from 0 to 4"),
        ("MPI_Isend 0 1 0", "<b> 0 1 0", "line 12: '<b> 0 1 0' is no name of a call"),
        ("n002 3", "n002 1-3", "line 14: 'n002 1-3' is no node with ranks of its own"),
        ("end\n", "", "was cut short or changed"),
    ],
)
def test_what_a_file_cannot_have(old: str, new: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        parsed(TEXT.replace(old, new))
