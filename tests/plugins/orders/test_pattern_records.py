"""Records of ranks, added up to a pattern."""

from __future__ import annotations

import re

import pytest

from seatrial.plugins.orders.patterns import (
    NodeRanks,
    PatternCall,
    PatternMerger,
    Traffic,
    parsed_record,
    written,
)
from seatrial.plugins.orders.patterns import parsed as parsed_pattern


def a_record(rank: int, *rows: str, ranks: int = 3, host: str = "n001", calls: str = "") -> str:
    calls_too = calls.split(";") if calls else []
    head = f"seatrial record 1\nrank {rank}\nranks {ranks}\nhost {host}\noutside 1 2\n"
    head += f"pairs {len(rows)}\ncalls {len(calls_too)}\n"
    return head + "".join(f"{line}\n" for line in (*rows, *calls_too, "end"))


def test_what_sender_and_receiver_counted_of_a_pair_is_added() -> None:
    merger = PatternMerger(3)
    merger.add(parsed_record(a_record(0, "0 1 2 20", "1 0 1 5", calls="MPI_Send 16 2 20")))
    merger.add(parsed_record(a_record(1, "1 0 3 30", host="n002", calls="MPI_Send 16 3 30")))
    pattern = merger.pattern()
    rows = zip(pattern.senders, pattern.receivers, pattern.messages, pattern.volumes, strict=True)
    assert [tuple(map(int, row)) for row in rows] == [(0, 1, 2, 20), (1, 0, 4, 35)]
    assert pattern.calls == (PatternCall("MPI_Send", 16, 5, 50),)
    assert pattern.nodes == (NodeRanks("n001", (0,)), NodeRanks("n002", (1,)))
    assert pattern.missing == (2,)
    assert pattern.outside == Traffic(2, 4)


def test_a_program_that_starts_twice_is_added_up() -> None:
    merger = PatternMerger(3)
    for host in ("n001", "n002"):
        merger.add(parsed_record(a_record(0, "0 1 2 20", host=host)))
    pattern = merger.pattern()
    assert int(pattern.volumes[0]) == 40
    assert pattern.nodes == (NodeRanks("n001", (0,)),)
    with pytest.raises(ValueError, match="is of 4 ranks; the others are of 3"):
        merger.add(parsed_record(a_record(0, ranks=4)))


def test_the_pairs_with_the_most_bytes_are_kept() -> None:
    merger = PatternMerger(100, keep=10)
    for rank in range(100):
        rows = [f"{rank} {to} 1 {rank * 100 + to}" for to in range(100)]
        merger.add(parsed_record(a_record(rank, *rows, ranks=100)))
    pattern = merger.pattern()
    assert sorted(pattern.volumes.tolist()) == list(range(9990, 10000))
    assert pattern.dropped == Traffic(9990, sum(range(9990)))
    assert parsed_pattern(written(pattern)).dropped == pattern.dropped


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("end\n", "", "was cut short: 1 pairs and 1 calls make 10 lines"),
        ("seatrial record 1", "\x7fELF", "line 1 is not 'seatrial record 1'"),
        ("rank 0", "rank 3", "rank 3 of 3, 1 pairs, 1 calls cannot be"),
        ("ranks 3", "ranks 99999999", "cannot be"),
        ("pairs 1", "pairs 9999999", "cannot be"),
        ("host n001", "host <script>", "line 4: '<script>' is no name of a host"),
        ("0 1 2 20", "1 2 2 20", "has a pair without rank 0"),
        ("0 1 2 20", "0 9 2 20", "ranks go from 0 to 2"),
        ("0 1 2 20", "0 1 2 -20", "line 8: '0 1 2 -20' are not 4 numbers"),
        ("0 1 2 20", f"0 1 2 {1 << 50}", "more than 2^48 bytes"),
        ("MPI_Send 16", "\x1b[2J 16", "is no name of a call"),
    ],
)
def test_a_record_that_was_torn_or_made_up(old: str, new: str, said: str) -> None:
    text = a_record(0, "0 1 2 20", calls="MPI_Send 16 2 20")
    with pytest.raises(ValueError, match=re.escape(said)):
        parsed_record(text.replace(old, new))
