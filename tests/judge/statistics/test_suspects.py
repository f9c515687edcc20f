from __future__ import annotations

import random

import numpy as np
from bench.quality import nodes as quality

from seatrial.judge.statistics.outliers import RunOnNodes, find_suspects


def test_eight_among_six_thousand_are_found() -> None:
    told = quality.accused("8 bad, jobs of 500, each ruins its jobs, 2 % fail by chance", 6, 10)
    assert told.found >= 7.5
    assert told.none_false == 1


def test_chance_accuses_none() -> None:
    told = quality.accused("none bad, jobs of 400, 30 % fail by chance", 8, 10)
    assert told.none_false == 1


def jobs_with(bad: str, count: int = 60, size: int = 6, seed: int = 1) -> list[RunOnNodes]:
    source = random.Random(seed)
    names = [f"n{i:02d}" for i in range(40)]
    picked = [source.sample(names, size) for _ in range(count)]
    return [RunOnNodes(nodes, bad in nodes or source.random() < 0.03) for nodes in picked]


def test_a_suspect_has_its_evidence() -> None:
    found = find_suspects(jobs_with("n07"))
    (suspect,) = found.suspects
    assert (suspect.names, suspect.kind) == (["n07"], "node")
    assert suspect.bad == suspect.runs > suspect.expected
    assert 0 < suspect.p < 1e-3
    assert found.unexplained == found.bad - suspect.bad


def test_whichever_of_the_nodes_is_bad_is_accused() -> None:
    for number in range(40):
        bad = f"n{number:02d}"
        assert [s.names for s in find_suspects(jobs_with(bad, count=120)).suspects] == [[bad]]


def test_a_bad_switch_is_accused_rather_than_its_nodes() -> None:
    source = random.Random(5)
    groups = {f"n{i:03d}": [f"switch{i // 8}"] for i in range(320)}
    jobs = []
    for _ in range(120):
        nodes = source.sample(list(groups), 8)
        jobs.append(RunOnNodes(nodes, any(groups[node] == ["switch3"] for node in nodes)))
    found = find_suspects(jobs, groups)
    assert [(s.names, s.kind) for s in found.suspects] == [(["switch3"], "group")]
    assert found.unexplained == 0


def test_a_bad_node_is_accused_rather_than_its_switch() -> None:
    jobs = jobs_with("n07", count=120)
    groups = {f"n{i:02d}": [f"switch{i // 8}"] for i in range(40)}
    assert [s.names for s in find_suspects(jobs, groups).suspects] == [["n07"]]


def test_what_was_always_together_cannot_be_told_apart() -> None:
    jobs = [
        RunOnNodes([*nodes, "twin"] if "n07" in nodes else nodes, bad)
        for nodes, bad in jobs_with("n07")
    ]
    assert [s.names for s in find_suspects(jobs).suspects] == [["n07", "twin"]]


def test_large_jobs_fail_more_and_that_is_no_ones_fault() -> None:
    rng = np.random.default_rng(2)
    names = [f"n{i}" for i in range(1000)]
    jobs = []
    for _ in range(200):
        size = int(rng.choice([10, 400]))
        jobs.append(
            RunOnNodes(rng.choice(names, size, replace=False).tolist(), rng.random() < size / 500)
        )
    assert find_suspects(jobs).suspects == []


def test_what_cannot_be_judged_is_told() -> None:
    assert "0 runs" in find_suspects([]).reason
    assert "3 runs" in find_suspects([RunOnNodes(["a"], True)] * 3).reason
    assert find_suspects(
        [RunOnNodes(["a"], True), *[RunOnNodes(["b"], True)] * 9]
    ).reason.startswith("all of the 10 runs")
    assert find_suspects(
        [RunOnNodes(["a"], False), *[RunOnNodes(["b"], False)] * 9]
    ).reason.startswith("none of the 10")
    assert (
        "the same nodes"
        in find_suspects([*[RunOnNodes(["a"], True)] * 5, *[RunOnNodes(["a"], False)] * 5]).reason
    )
