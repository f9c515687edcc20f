"""Bands of trials: levels, modes, kinds of cores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_query_common import ask

from . import pingpongs


def franklin(a: int, b: int, x: int, y: int) -> float:
    """Return us as in the paper: core 0 of each node takes the interrupts."""
    return (5.46, 6.09, 6.74)[(x > 0) + (y > 0)]


def trials(folder: Path, *outputs: str) -> None:
    pingpongs.tell(folder, "bands", outputs)


def test_a_trial_with_kinds_of_cores(tmp_path: Path) -> None:
    trials(tmp_path, pingpongs.output(franklin, cores=4, noise=0.004))
    answer = ask(tmp_path, "bands", "bands")
    assert (answer.code, answer.err) == (0, "")
    assert all(len(line) <= 80 for line in answer.out.splitlines()), answer.out
    latency = answer.out.partition("bandwidth MiB/s")[0]
    assert "0 to 0" in latency and "0 to 1-3" in latency and "1-3 to 1-3" in latency
    assert latency.count("6.25 %") == latency.count("56.2 %") == 3
    record = json.loads(ask(tmp_path, "bands", "bands", "--json").out)["latency"]
    assert record["cores"]["cpus"] == [[0], [1, 2, 3]]
    chassis = record["modes"]["system"]
    assert [mode["centre"] for mode in chassis] == pytest.approx([5.46, 6.09, 6.74], rel=0.005)
    assert [16 * mode["share"] for mode in chassis] == pytest.approx([1, 6, 9], abs=0.5)
    mean = sum(us * share for us, share in zip((5.46, 6.09, 6.74), (1, 6, 9), strict=True)) / 16
    assert record["expected_mean"] == pytest.approx(mean, rel=0.002)
    shares = [band["share"] for band in record["core_bands"] if band["level"] == "system"]
    assert shares == pytest.approx([1 / 16, 6 / 16, 9 / 16])


def test_equal_cores_are_not_told(tmp_path: Path) -> None:
    trials(tmp_path, pingpongs.output(cores=2))
    answer = ask(tmp_path, "bands", "bands")
    assert answer.code == 0 and "cores" not in answer.out
    record = json.loads(ask(tmp_path, "bands", "bands", "--json").out)
    assert record["latency"]["cores"] is None and record["latency"]["core_bands"] == []
