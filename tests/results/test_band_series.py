"""Latency by level over time: an upgrade as in the Franklin paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.model.machine import Machine, NodeGroup
from tests.cli.test_query_common import ask
from tests.results.store.trials import NOON, SECOND

from . import pingpongs

DAY = 86400 * SECOND
UPGRADE = 10  # days


def franklin(trials: Path, days: int = 18) -> None:
    """A run a day: core 0 is the fastest until an upgrade, then all cores are alike."""

    def old(a: int, b: int, x: int, y: int) -> float:
        return (5.46, 6.09, 6.74)[(x > 0) + (y > 0)]

    def new(a: int, b: int, x: int, y: int) -> float:
        return 6.46

    for day in range(days):
        latency = old if day < UPGRADE else new
        text = pingpongs.output(latency, cores=4, seed=day, noise=0.002)
        pingpongs.tell(trials, f"day{day:02}", [text], NOON + day * DAY)


def test_an_upgrade_shows_in_levels_and_modes(tmp_path: Path) -> None:
    franklin(tmp_path)
    answer = ask(tmp_path, "history", "latency_by_level", "--case", "system")
    assert (answer.code, answer.err) == (0, "")
    modes = answer.out.partition("pairs from")[2].splitlines()[1:5]
    assert [line.split()[-2] for line in modes] == ["6.2", "37.5", "56.2", "100.0"], answer.out
    assert all(len(line) <= 80 for line in answer.out.splitlines()), answer.out
    found: list[dict[str, Any]] = json.loads(
        ask(tmp_path, "history", "latency_by_level", "--format", "json").out
    )
    assert [one["case_name"].rpartition(": ")[2] for one in found] == pingpongs.ALL_LEVELS
    system = found[-1]
    assert system["n"] == 18 and "parts" not in system
    (change,) = system["changes"]
    assert (change["tier"], change["index"]) == ("confirmed", UPGRADE)
    before, after = (span["modes"] for span in system["modes"])
    assert [mode["centre"] for mode in before] == pytest.approx([5.46, 6.09, 6.74], rel=0.005)
    assert [16 * mode["share"] for mode in before] == pytest.approx([1, 6, 9], abs=0.2)
    assert [mode["centre"] for mode in after] == pytest.approx([6.46], rel=0.005)


def test_one_case_and_bandwidth(tmp_path: Path) -> None:
    pingpongs.tell(tmp_path, "one", [pingpongs.output()] * 2)
    listed = json.loads(ask(tmp_path, "history", "bandwidth_by_level", "--format", "json").out)
    assert [one["better"] for one in listed] == ["higher"] * 3
    again = ask(tmp_path, "history", "bandwidth_by_level", "--case", listed[1]["case"])
    assert again.code == 0 and "chassis" in again.out and "1 series" in again.out


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    pingpongs.tell(tmp_path, "mixed", [pingpongs.output(), pingpongs.output()[:-30]])
    out = ask(tmp_path, "history", "latency_by_level", "--case", "router").out
    assert "left out: 1 run: 1 without figures of pairs that can be read and placed" in out
    placeless = Machine(
        machine="bare", scheduler="slurm", nodes=[NodeGroup(names="n[1-8]", cores=4)]
    )
    other = tmp_path / "other"
    other.mkdir()
    pingpongs.tell(other, "bare", [pingpongs.output()], machine=placeless)
    refused = ask(other, "history", "latency_by_level")
    assert refused.code == 2 and "1 left out: of a machine without a topology" in refused.err
    assert refused.err.count("docs/how-to/machines.md#topology") == 1
