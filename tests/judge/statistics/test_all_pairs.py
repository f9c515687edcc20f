from __future__ import annotations

import math

import numpy as np
import pytest
from bench.quality import nodes as quality

from seatrial.judge.statistics.all_pairs import medians, polish, survey


def test_slow_senders_and_a_cut_off_group_are_found() -> None:
    found, named = quality.links(12, seed=20)
    assert found.found / 4 >= 0.95
    assert found.false < 0.1
    assert named == 1


@pytest.mark.parametrize("groups", [None, ["a"] * 8 + ["b"] * 8])
def test_nodes_that_talk_among_themselves_alone_are_one_finding(groups: list[str] | None) -> None:
    """Not as many single pairs as there are from them to the others."""
    values = np.full((16, 16), 100.0)
    values[:3, 3:] = values[3:, :3] = 0
    values[15, :] = values[:, 15] = 0  # a dead node
    values[9, 10] = math.nan
    found = survey(values, groups=groups)
    assert found.apart == [["0", "1", "2"]]
    assert (found.silent, found.cut_off) == (["15"], [])
    assert (found.pairs, found.mute_pairs) == ([("9", "10")], 1)


def test_a_group_that_is_cut_off_is_told_once() -> None:
    values = np.full((16, 16), 100.0)
    values[:4, 4:] = values[4:, :4] = 0
    found = survey(values, groups=["a"] * 4 + ["b"] * 6 + ["c"] * 6)
    assert (found.cut_off, found.apart, found.mute_pairs) == (["a"], [], 0)


def test_every_kind_of_fault_is_told_apart() -> None:
    planted = quality.matrix(np.random.default_rng(1), 128, 8, 0, True, 0.0)
    values = planted.matrix
    values[:, 5] *= 0.9  # a slow receiver
    values[40, :] = values[:, 40] = 0  # a dead node
    values[1, 2] = math.nan  # a pair that cannot talk
    values[96:112, :16] *= 0.5  # one group to another
    found = survey(values, groups=planted.groups)
    assert [slow.name for slow in found.receivers] == ["5"]
    assert found.receivers[0].effect == pytest.approx(-0.1, abs=0.03)
    assert found.silent == ["40"]
    assert found.cut_off == ["g3"]
    assert (found.pairs, found.mute_pairs) == ([("1", "2")], 1)
    slow = [(g.sender, g.receiver) for g in found.slow_groups if not g.cut]
    assert slow == [("g6", "g0")]
    cut = {(g.sender, g.receiver) for g in found.groups if g.cut}
    assert len(cut) == 14
    assert all("g3" in pair for pair in cut)
    assert found.noise == pytest.approx(0.06, rel=0.1)


def test_slow_links_are_listed_worst_first() -> None:
    values = np.full((20, 20), 100.0) * np.exp(np.random.default_rng(2).normal(0, 0.01, (20, 20)))
    values[3, 4], values[7, 1] = 70.0, 50.0
    found = survey(values, names=[f"n{i}" for i in range(20)])
    assert [(link.sender, link.receiver) for link in found.links] == [("n7", "n1"), ("n3", "n4")]
    assert found.links[0].value == 50.0
    assert found.links[0].effect == pytest.approx(-0.5, abs=0.02)


def test_latency_is_judged_by_its_reciprocal() -> None:
    values = np.exp(np.random.default_rng(2).normal(0, 0.01, (20, 20)))
    values[3] *= 1.2
    values[9] *= 0.8
    found = survey(1 / values)
    assert [slow.name for slow in found.senders] == ["3"]


def test_rates_of_network_cards() -> None:
    values = np.array([[0, 1, 2, 3], [4, 0, 5, 6], [7, 8, 0, 9], [1, 1, 1, 0]], dtype=float)
    values[0, 2:] = math.nan
    found = survey(values, names=["b", "a", "c", "d"])
    first, second = found.nics[:2]
    assert (first.name, first.sent, first.sent_most) == ("a", 5, 6)
    assert (second.name, second.sent, second.received, second.received_most) == ("b", 1, 4, 7)


@pytest.mark.parametrize(
    "matrix", [[[0]], [[0, 1], [1, 0]], np.zeros((6, 6)), np.full((6, 6), np.nan)]
)
def test_too_little_is_told(matrix: list[list[float]]) -> None:
    found = survey(matrix)
    assert "what is slow can be told among 5 or more" in found.reason
    assert (found.senders, found.links, found.noise) == ([], [], None)


def test_equal_links_have_no_fault() -> None:
    found = survey(np.ones((6, 6)))
    assert (found.senders, found.receivers, found.links, found.reason) == ([], [], [], "")


def test_what_is_no_matrix_is_refused() -> None:
    with pytest.raises(ValueError, match="2 x 3; it must be square"):
        survey([[1, 2, 3], [1, 2, 3]])
    with pytest.raises(ValueError, match="1 names for 2 rows"):
        survey([[0, 1], [1, 0]], names=["a"])
    with pytest.raises(ValueError, match="two rows have one name"):
        survey([[0, 1], [1, 0]], names=["a", "a"])


def test_polish_takes_out_rows_and_columns() -> None:
    rows, columns = np.array([0.0, 1, -2, 0, 0]), np.array([0.0, 0, 3, -1, 0])
    rest = (rows[:, None] + columns[None, :]).astype(np.float32)
    rest[0, 0] = np.nan
    told = polish(rest)
    assert told[0] - told[0][0] == pytest.approx(rows)
    assert told[1] - told[1][0] == pytest.approx(columns)
    assert np.nanmax(np.abs(rest)) < 1e-6


def test_medians_are_those_of_numpy() -> None:
    rng = np.random.default_rng(4)
    matrix = rng.normal(0, 1, (300, 11)).astype(np.float32)
    matrix[rng.random(matrix.shape) < 0.3] = np.nan
    matrix[7] = np.nan
    told = medians(matrix)
    assert np.isnan(told[7])
    others = np.arange(300) != 7
    assert told[others] == pytest.approx(np.nanmedian(matrix[others], axis=1))


def test_rounded_figures_have_no_fault() -> None:
    values = np.round(np.random.default_rng(6).normal(2.0, 0.04, (64, 64)), 1)
    found = survey(1 / values)
    assert (found.senders, found.receivers, found.slow_links) == ([], [], 0)
    assert found.noise == pytest.approx(0.023, rel=0.1)
    values[3, 4] = 3.0
    values[9, 1] = 1000.0
    values[:, 7] += 0.6
    found = survey(1 / values)
    assert [(link.sender, link.receiver) for link in found.links] == [("9", "1"), ("3", "4")]
    assert [slow.name for slow in found.receivers] == ["7"]


def test_a_fault_among_equal_links_is_found() -> None:
    values = np.full((5, 5), 100.0)
    values[1, 2] = 80.0
    assert [link.value for link in survey(values).links] == [80.0]
    values = np.full((20, 20), 100.0)
    values[3] = 90.0
    assert [slow.name for slow in survey(values).senders] == ["3"]
