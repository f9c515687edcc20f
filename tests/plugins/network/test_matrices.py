"""All-pairs matrices from files: what is read, how ranks become nodes, groups, what is refused."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from seatrial.errors import UsageError
from seatrial.judge.statistics import all_pairs
from seatrial.plugins.network import matrices
from seatrial.plugins.network.matrices import (
    NO_GROUP,
    Matrix,
    is_matrix,
    judged,
    parsed,
    read,
)
from tests.judge.helpers import DATA

MPIGRAPH = DATA / "mpigraph.out"


def pairs_text(rates: np.ndarray, names: list[str]) -> str:
    """As the probe pairs writes it: row i, column j is what i receives from j."""
    lines = ["\t".join(["Recv", *names, ""])]
    for name, row in zip(names, rates, strict=True):
        lines.append("\t".join([f"{name} from", *(f"{rate:.3f}" for rate in row), ""]))
    return "\n".join(lines) + "\n"


def a_matrix(nodes: int, ranks: int = 1, noise: float = 0.01) -> Matrix:
    rng = random.Random(nodes)
    names = [f"n{i // ranks:03}:{i}" for i in range(nodes * ranks)]
    rates = np.array([[10000 * rng.gauss(1, noise) for _ in names] for _ in names])
    for a in range(len(names)):
        for b in range(len(names)):
            if a // ranks == b // ranks:
                rates[a, b] *= 20  # memory, not the network
    np.fill_diagonal(rates, 0)
    return Matrix(names, rates, "made")


def test_a_pairs_matrix_is_turned_to_senders_in_rows() -> None:
    names = ["a:0", "b:1", "c:2"]
    rates = np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0.0]])
    found = parsed(pairs_text(rates, names), "x")
    assert found.names == names
    assert found.hosts == ["a", "b", "c"]
    assert (found.rates == rates.T).all()


def test_mpigraph_is_the_mean_of_both_ends() -> None:
    found = read(MPIGRAPH)
    assert found.hosts == ["nid00001", "nid00002", "nid00003", "nid00004"]
    assert found.rates[0, 1] == pytest.approx((214.646 + 538.712) / 2)
    assert found.rates[3, 0] == pytest.approx((330.737 + 225.750) / 2)
    assert judged(found, {}).network.reason.startswith("4 nodes talk")
    labelled = "".join(f"[0] {line}" for line in MPIGRAPH.read_text().splitlines(keepends=True))
    assert is_matrix(labelled) and (parsed(labelled, "x").rates == found.rates).all()


def test_every_beginning_of_a_file_is_refused() -> None:
    rates = np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0.0]])
    for text in (pairs_text(rates, ["a:0", "b:1", "c:2"]), MPIGRAPH.read_text()):
        for end in range(len(text) - 1):
            with pytest.raises(ValueError, match=r"."):
                parsed(text[:end], "x")


def test_what_is_no_number_is_refused_and_what_has_other_decimals_is_not() -> None:
    text = pairs_text(np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0.0]]), ["a:0", "b:1", "c:2"])
    assert parsed(text.replace("4.000", "4.25"), "x").rates[2, 1] == 4.25
    for wrong in ("4.0.0", "", ".", "-4.000", "nan", "4.000.000"):
        with pytest.raises(ValueError, match="its row of 'b:1' has what is not a number"):
            parsed(text.replace("4.000", wrong), "x")
    with pytest.raises(ValueError, match="its row of 'a:0' has a rate of the rank with itself"):
        parsed(text.replace("a:0 from\t0.000", "a:0 from\t7.000"), "x")


@pytest.mark.parametrize("text", ["", "Recv\t\n", "Recv\ta:0\t\na:0 from\t0.000\t\n", "Send\t1"])
def test_what_is_no_matrix(tmp_path: Path, text: str) -> None:
    (tmp_path / "m").write_text(text)
    with pytest.raises(UsageError, match="is not a whole matrix: "):
        read(tmp_path / "m")


@pytest.mark.parametrize("name", ["none", "folder"])
def test_what_cannot_be_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match=name):
        read(tmp_path / name)


def test_ranks_of_a_node_are_one_node_and_its_memory_is_no_network() -> None:
    matrix = a_matrix(8, ranks=4)
    slow = [i for i, host in enumerate(matrix.hosts) if host == "n003"]
    matrix.rates[slow, :] *= 0.9
    found = judged(matrix, {})
    assert (found.unit, found.ranks, found.network.nodes) == ("node", 32, 8)
    assert [one.name for one in found.network.senders] == ["n003"]
    assert found.network.receivers == []
    assert max(nic.sent_most or 0 for nic in found.network.nics) < 12000
    by_rank = judged(matrix, {}, by_rank=True)
    assert (by_rank.unit, by_rank.network.nodes) == ("rank", 32)
    assert {one.name for one in by_rank.network.senders} == {matrix.names[i] for i in slow}


def test_the_ranks_of_a_single_node_are_judged_one_by_one() -> None:
    found = judged(a_matrix(1, ranks=8), {})
    assert (found.unit, found.ranks, found.network.nodes) == ("rank", 8, 8)


def test_nodes_with_unlike_numbers_of_ranks() -> None:
    names = ["a:0", "a:1", "b:2", "c:3"]
    rates = np.array([[0, 99, 4, 6], [99, 0, 8, 0], [1, 3, 0, 5], [2, 2, 7, 0.0]])
    found = judged(Matrix(names, rates, ""), {})
    assert found.hidden == 1  # a:1 cannot reach c:3, a:0 can
    values = {(nic.name, nic.sent, nic.received) for nic in found.network.nics}
    assert values == {("a", 6.0, 2.0), ("b", 3.5, 6.5), ("c", 4.5, 5.5)}


def test_groups_are_classes_and_a_cut_one_is_found() -> None:
    matrix = a_matrix(12)
    groups = {f"n{i:03}": f"g{i // 4}" for i in range(11)}  # n011 is in none
    member = np.array([i // 4 for i in range(12)])
    other = member[:, None] != member[None, :]
    matrix.rates[other] *= 0.5
    found = judged(matrix, groups)
    assert found.ungrouped == ["n011"]
    assert {pair.sender for pair in found.network.groups} == {"g0", "g1", "g2", NO_GROUP}
    assert found.network.senders == found.network.receivers == []
    matrix.rates[other & ((member == 1)[:, None] | (member == 1)[None, :])] = 0
    assert judged(matrix, groups).network.cut_off == ["g1"]


def test_memory_of_a_node_is_a_class_of_its_own_among_ranks() -> None:
    """In groups of two nodes, a third of a rank's links within its group are memory, twenty times
    as fast: in one class with the others they would pass for noise, or hide a slow rank."""
    matrix = a_matrix(8, ranks=4, noise=0.02)
    matrix.rates[5, :] *= 0.95
    groups = {f"n{i:03}": f"g{i // 2}" for i in range(8)}
    found = judged(matrix, groups, by_rank=True).network
    assert [one.name for one in found.senders] == [matrix.names[5]]
    assert (found.receivers, found.slow_links) == ([], 0)
    assert found.noise == pytest.approx(0.02, rel=0.2)


def test_of_many_groups_only_the_bad_pairs_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_pairs, "MAX_GROUP_PAIRS", 8)
    matrix = a_matrix(12)
    matrix.rates[:3, 3:6] = 0  # g0 cannot send to g1
    found = judged(matrix, {f"n{i:03}": f"g{i // 3}" for i in range(12)}).network
    assert [(pair.sender, pair.receiver, pair.cut) for pair in found.groups] == [("g0", "g1", True)]


def test_full_names_of_nodes_find_their_groups() -> None:
    matrix = a_matrix(6)
    named = Matrix(
        [f"{host}.site.org:{i}" for i, host in enumerate(matrix.hosts)], matrix.rates, ""
    )
    groups = {f"n{i:03}": f"g{i // 3}" for i in range(6)}
    assert judged(named, groups).ungrouped == []


def test_a_large_matrix_collapses_as_the_plain_medians() -> None:
    matrix = a_matrix(9, ranks=3)
    gaps = np.random.default_rng(1).random(matrix.rates.shape) < 0.2
    matrix.rates[gaps] = 0
    found, hidden = matrices._between(matrix.rates, matrix.hosts, [f"n{i:03}" for i in range(9)])
    plain = np.zeros((9, 9))
    count = 0
    for a in range(9):
        for b in range(9):
            block = matrix.rates[3 * a : 3 * a + 3, 3 * b : 3 * b + 3]
            if a != b and (block > 0).any():
                plain[a, b] = np.median(block[block > 0])
                count += int((block <= 0).sum())
    assert found == pytest.approx(plain)
    assert hidden == count
