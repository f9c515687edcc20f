"""Bands of trials: levels, modes, kinds of cores."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

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
    latency = answer.out.partition("bandwidth in MiB/s")[0]
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


# ---- a torus ------------------------------------------------------------------------------

SHAPE = {"x": 17, "y": 8, "z": 24}  # Franklin's


def torus_pairs(planted: float, noise: float = 0.02, count: int = 400, seed: int = 3) -> str:
    """Return what the probe prints of random pairs of Franklin, with us a hop planted."""
    rng, lines = random.Random(seed), []
    nodes = [(x, y, z) for x in range(17) for y in range(8) for z in range(24)]
    for number in range(count):
        a, b = rng.sample(nodes, 2)
        hops = sum(
            min(abs(i - j), n - abs(i - j)) for i, j, n in zip(a, b, SHAPE.values(), strict=True)
        )
        us = 6.0 + planted * hops + rng.gauss(0, noise)
        ends = " ".join("c{}-{}-{}".format(*node) for node in (a, b))
        figures = f"latency {us:.3f} us bandwidth {1e4 - 20 * hops + rng.gauss(0, 9):.1f} MiB/s"
        lines.append(f"pair {2 * number} {2 * number + 1} nodes {ends} cpus 0 0 {figures}")
    return "\n".join([*lines, "pingpong finished, all messages correct", ""])


def franklin_file(folder: Path, **network: Any) -> Path:
    names = "c[0-16]-[0-7]-[0-23]"
    about = {"kind": "torus", "axes": SHAPE, "names": "c{x}-{y}-{z}", **network}
    machine = {
        "machine": "franklin",
        "scheduler": "slurm",
        "nodes": [{"names": names, "cores": 4}],
        "topology": about,
    }
    path = folder / "franklin.yaml"
    path.write_text(yaml.safe_dump(machine))
    return path


def told_of(folder: Path, output: str, *options: str) -> str:
    (folder / "pairs.txt").write_text(output)
    machine = franklin_file(folder)
    done = ask(folder, "bands", str(folder / "pairs.txt"), "-m", str(machine), *options)
    assert done.code == 0, done.err
    return done.out


def test_a_hop_on_a_torus_has_its_cost(tmp_path: Path) -> None:
    told = json.loads(told_of(tmp_path, torus_pairs(0.053), "--json"))
    hop = told["latency"]["hop"]
    assert hop["cost"] == pytest.approx(0.053, abs=0.001)
    assert 0.049 <= hop["low"] <= 0.053 <= hop["high"] <= 0.057
    assert 35 * hop["cost"] == pytest.approx(1.9, abs=0.06)
    classes = [band["level"] for band in told["latency"]["bands"]]
    assert classes == ["1 to 6 hops", "7 to 12 hops", "13 to 18 hops", "19 to 24 hops"]
    assert told["latency"]["expected_mean"] == pytest.approx(6.0 + 0.053 * 12.2, abs=0.03)
    assert told["bandwidth"]["hop"]["cost"] == pytest.approx(-20, abs=0.5)
    assert not told["latency"]["odd"]
    out = told_of(tmp_path, torus_pairs(0.053))
    assert "0.053 us a hop (0.05" in out
    assert "at 1 hop, 7.2" in out and "at 24, the longest way: 1.2" in out and "us more" in out
    assert "MiB/s less" in out and "nothing to compare" not in out


def test_no_cost_of_a_hop_is_told_where_there_is_none(tmp_path: Path) -> None:
    out = told_of(tmp_path, torus_pairs(0.0))
    assert "no cost of a hop can be told" in out and "us a hop (0" not in out


def test_a_slow_pair_is_odd_beside_the_line(tmp_path: Path) -> None:
    """A near pair that is as slow as a far one is usual in no class that would hide it."""
    lines = torus_pairs(0.2).splitlines()
    near = min(lines[:-1], key=lambda line: float(line.split("latency ")[1].split()[0]))
    us = float(near.split("latency ")[1].split()[0])
    slow = near.replace(f"latency {us:.3f}", f"latency {us + 1.5:.3f}")
    told = told_of(tmp_path, "\n".join(slow if line == near else line for line in lines) + "\n")
    odd = [line for line in told.splitlines() if line.startswith("beyond its band")]
    assert len(odd) == 1 and near.split()[4] in odd[0] and "usual at that distance" in odd[0]


def test_a_first_level_that_is_no_router_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text(torus_pairs(0.053, count=9))
    machine = franklin_file(tmp_path, levels=[{"plane": 192}])
    done = ask(tmp_path, "bands", str(tmp_path / "pairs.txt"), "-m", str(machine))
    assert done.code == 2
    assert "192 nodes; names put 1 node at each place of the axes" in done.err
    assert "write {router: 1} before plane" in done.err
    machine = franklin_file(tmp_path, levels=[{"router": 1}, {"plane": 192}])
    assert ask(tmp_path, "bands", str(tmp_path / "pairs.txt"), "-m", str(machine)).code == 0
