"""The pace of a test whose share is no whole number of runs."""

from __future__ import annotations

import pytest

from seatrial.decide.in_flight import InFlightCounts, ResourceRequest
from seatrial.decide.mix import Pace
from seatrial.model.policy import Entry

NS = 10**9
TWO_NODES = ResourceRequest(entry=0, nodes=2, cores=0, width=2)
NOW = 1000 * NS
USUAL = 60.0  # seconds of a run


def allows(pace: Pace, counts: InFlightCounts, now: int, ahead: int = 0) -> bool:
    return pace.allowed([0], [2], counts, now, [USUAL], {0: ahead}) == [0]


def test_a_share_of_one_and_a_half_runs_is_kept_in_time() -> None:
    """Each run of 60 s uses up the share of 40 s."""
    pace, counts = Pace([3.0], [2], [0]), InFlightCounts([Entry(name="a")])
    assert allows(pace, counts, NOW)
    counts.launch(TWO_NODES, "")
    assert not allows(pace, counts, NOW, ahead=2), "one is launched now"
    pace.launched(0, 2, NOW, USUAL)
    for after, may in ((0, False), (39, False), (40, True)):
        assert allows(pace, counts, NOW + after * NS) == may
    assert not allows(pace, counts, NOW + 79 * NS, ahead=2)
    later = NOW + 40 * NS
    pace.launched(0, 2, later, USUAL)
    counts.launch(TWO_NODES, "")
    assert not allows(pace, counts, NOW + 1000 * NS), "two are the most"
    counts.end(TWO_NODES, "", True)
    assert not allows(pace, counts, NOW + 79 * NS)
    assert allows(pace, counts, NOW + 80 * NS)


def test_it_wakes_when_a_share_is_used_up() -> None:
    pace, counts = Pace([3.0, 5.0], [2, 2], [0, 2]), InFlightCounts([Entry(name="a")] * 2)
    for entry in (0, 1):
        pace.launched(entry, 2, NOW, USUAL)
        counts.launch(TWO_NODES._replace(entry=entry), "")
    due = pace.next_start(NOW, [], counts, [USUAL, USUAL])
    assert due is not None and 23.9 * NS < due - NOW <= 24 * NS, "2 of 5 nodes for 60 s"
    counts.launch(TWO_NODES._replace(entry=1), "")
    due = pace.next_start(NOW, [], counts, [USUAL, USUAL])
    assert due is not None and 39.9 * NS < due - NOW <= 40 * NS, "the other has its copies"
    assert pace.next_start(NOW + 41 * NS, [], counts, [USUAL, USUAL]) is None


def test_lost_time_is_made_up_for_by_one_run() -> None:
    pace = Pace([3.0], [2], [0])
    pace.launched(0, 2, NOW, USUAL)
    later = NOW + 1000 * NS
    assert pace.due(0, later, USUAL) == pytest.approx(later - 40 * NS, abs=NS // 1000)
    pace.launched(0, 2, later, USUAL)
    assert later - NS < pace.due(0, later, USUAL) <= later


def test_what_is_launched_now_puts_the_next_start_off() -> None:
    pace, counts = Pace([3.0], [2], [0]), InFlightCounts([Entry(name="a")])
    pace.launched(0, 2, NOW, USUAL)
    for launches, seconds in (([], 40), ([TWO_NODES], 80)):
        due = pace.next_start(NOW, launches, counts, [USUAL])
        assert due == pytest.approx(NOW + seconds * NS, abs=NS // 1000)
