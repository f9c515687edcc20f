"""Figures of what a matrix shows, with the groups of a machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from seatrial.plugins.network.matrices import findings_in

from .test_matrices import pairs_text

NAMES = [f"n{i:03}:{i}" for i in range(24)]
GROUPS = {f"n{i:03}": "abc"[i // 8] for i in range(24)}


def figures(folder: Path, rates: np.ndarray, groups: dict[str, str]) -> dict[str, float]:
    (folder / "pairs.matrix").write_text(pairs_text(rates, NAMES))
    return {one.name.removeprefix("network_"): one.value for one in findings_in(folder, groups)}


def between_groups(share: float) -> np.ndarray:
    """Rates of groups that talk with each other at a share of the rate within them."""
    rates = np.random.default_rng(3).normal(9000, 45, (24, 24))
    group = np.arange(24) // 8
    rates[group[:, None] != group[None, :]] *= share
    np.fill_diagonal(rates, 0)
    return rates


def test_groups_make_slow_links_between_them_usual(tmp_path: Path) -> None:
    assert figures(tmp_path, between_groups(0.5), GROUPS)["findings"] == 0


def test_groups_that_are_cut_off_and_pairs_of_groups_that_are_slow(tmp_path: Path) -> None:
    rates = between_groups(0.8)
    group = np.arange(24) // 8
    rates[(group == 2)[:, None] != (group == 2)[None, :]] = 0
    found = figures(tmp_path, rates, GROUPS)
    assert (found["cut_groups"], found["mute_pairs"], found["silent_nodes"]) == (1, 0, 0)
    rates = between_groups(0.8)
    rates[:8, 8:16] *= 0.8
    assert figures(tmp_path, rates, GROUPS)["slow_groups"] == 1


def test_a_node_of_the_run_that_is_not_in_the_matrix_is_silent(tmp_path: Path) -> None:
    (tmp_path / "pairs.matrix").write_text(pairs_text(between_groups(1), NAMES))
    for nodes, silent in (
        ("n[000-023]", 0),
        ("n[000-025]", 2),
        ("nid[1-24]", 0),
        ("nid[1-25]", 25),
    ):
        found = {one.name: one.value for one in findings_in(tmp_path, {}, nodes)}
        assert found["network_silent_nodes"] == found["network_findings"] == silent, nodes


def test_the_output_of_mpigraph_on_stdout_is_read(tmp_path: Path) -> None:
    data = Path(__file__).parents[2] / "judge/outputs/data/mpigraph.out"
    (tmp_path / "stdout").write_bytes(data.read_bytes())
    names = [one.name for one in findings_in(tmp_path, {})]
    assert names[-1] == "network_findings" and len(names) == 7
    (tmp_path / "stdout").write_text("hello\n")
    assert findings_in(tmp_path, {}) == []
