from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from bench.quality import job_suspects as quality
from bench.quality.job_suspects import HEALTHY, World, made

from seatrial.plugins.usage.job_suspects import GroupLevel, JobSuspects, NodeJobs, find


class Job(NamedTuple):
    """A job of a kind, on some nodes, by their numbers."""

    kind: int
    nodes: Sequence[int]
    bad: bool


def judged(
    jobs: Sequence[Job],
    nodes: int = 40,
    levels: Sequence[GroupLevel] = (),
    step: int = 600,
    sorts: Sequence[int] = (),
) -> JobSuspects:
    """Ask about jobs that ended one after another."""
    places = [(i, node) for i, job in enumerate(jobs) for node in sorted(set(job.nodes))]
    job, place = np.array(places, dtype=np.int64).T
    log = NodeJobs(
        bad=np.array([one.bad for one in jobs]),
        kind=np.array([one.kind for one in jobs]),
        sort=np.array(sorts or [0] * len(jobs)),
        ended=np.arange(len(jobs)) * step,
        nodes=np.array([len(set(one.nodes)) for one in jobs]),
        job=job,
        first=place,
        last=place,
    )
    return find(log, [f"n{i:02d}" for i in range(nodes)], levels, blame=(0.5, 0.5))


def accused(found: JobSuspects) -> list[str]:
    return [name for one in found.suspects for name in one.names]


def background(count: int, seed: int, bad: int = -1, kinds: int = 12, nodes: int = 40) -> list[Job]:
    """Jobs of several users on one to six nodes; 2 % fail, and all on a bad node."""
    rng = np.random.default_rng(seed)
    jobs = []
    for _ in range(count):
        there = rng.choice(nodes, int(rng.integers(1, 7)), replace=False).tolist()
        jobs.append(Job(int(rng.integers(kinds)), there, bad in there or rng.random() < 0.02))
    return jobs


def test_eight_among_six_thousand_are_found() -> None:
    told, _, _ = quality.accused(World(2000), 1)
    assert (told.found, told.false) == (8, 0)
    late, _, _ = quality.accused(World(3000, since=0.7), 1)
    assert late.found >= 7 and late.false == 0


@pytest.mark.parametrize("name", [*HEALTHY])
def test_healthy_nodes_are_not_accused(name: str) -> None:
    world = HEALTHY[name]
    told, _, _ = quality.accused(world._replace(jobs=world.jobs // 3), 2)
    assert told.none_false == 1


def test_a_suspect_has_its_evidence() -> None:
    found = judged(background(300, 1, bad=7))
    (suspect,) = found.suspects
    assert (suspect.names, suspect.level) == (["n07"], "node")
    assert suspect.bad == suspect.jobs and len(suspect.bad) > 20 * suspect.expected
    assert suspect.p < 1e-9 and suspect.kinds > 6
    assert suspect.since is None
    assert found.unexplained == found.bad - len(suspect.bad)


def test_evidence_that_is_rare_elsewhere_weighs_more() -> None:
    jobs = [*background(900, 1), *(Job(kind, [7], True) for kind in range(4))]
    rare = judged(jobs, sorts=[0] * 900 + [1] * 4)
    usual = judged(jobs, sorts=[0] * 900 + [0] * 4)
    assert accused(rare) == accused(usual) == ["n07"]
    assert rare.suspects[0].gain > usual.suspects[0].gain + 1


def test_users_who_never_leave_their_nodes_accuse_none() -> None:
    """Whatever is uneven in their failures is explained by the nodes as well as by themselves."""
    world = HEALTHY["the same, users who fail unlike often"]
    assert [made(world, seed).find().suspects for seed in (2, 3, 4)] == [[], [], []]


def test_a_user_whose_jobs_fail_everywhere_explains_them() -> None:
    rng = np.random.default_rng(3)
    jobs = background(300, 2)
    for number in range(120):  # most of them on one node
        node = 5 if number % 2 else int(rng.integers(40))
        jobs.insert(int(rng.integers(len(jobs))), Job(99, [node], True))
    found = judged(jobs)
    assert found.suspects == []
    assert found.by_kind > 100


def test_a_script_that_was_broken_on_one_node_accuses_it_not() -> None:
    """Its jobs failed at once, so that the next ones got the same node."""
    jobs = background(300, 4)
    jobs[100:100] = [Job(99, [5], False)] * 20 + [Job(99, [5], True)] * 200
    jobs += [Job(99, [i % 40], False) for i in range(60)]
    assert judged(jobs).suspects == []


def test_a_node_that_eats_the_jobs_of_one_user_is_accused() -> None:
    """Jobs fail at once there, and pass elsewhere at the same time."""
    jobs = background(300, 5)
    rng = np.random.default_rng(6)
    array = [Job(99, [5], True) if rng.random() < 0.6 else Job(99, [9], False) for _ in range(200)]
    jobs[100:100] = array
    assert accused(judged(jobs)) == ["n05"]


def test_a_bad_cabinet_is_accused_rather_than_its_nodes() -> None:
    rng = np.random.default_rng(7)
    cabinet = GroupLevel("cabinet", [f"c{i}" for i in range(5)], np.arange(40) // 8)
    blade = GroupLevel("blade", [f"b{i}" for i in range(10)], np.arange(40) // 4)
    jobs = [
        job._replace(bad=job.bad or (any(n // 8 == 3 for n in job.nodes) and rng.random() < 0.6))
        for job in background(500, 7)
    ]
    found = judged(jobs, levels=[blade, cabinet])
    assert [(one.names, one.level) for one in found.suspects] == [(["c3"], "cabinet")]
    found = judged(background(500, 8, bad=7), levels=[blade, cabinet])
    assert [(one.names, one.level) for one in found.suspects] == [(["n07"], "node")]


def test_it_is_told_since_when_a_node_is_bad() -> None:
    jobs = [*background(400, 9), *background(200, 10, bad=7)]
    (suspect,) = judged(jobs).suspects
    assert suspect.names == ["n07"]
    assert suspect.since is not None
    assert 400 <= suspect.since / 600 < 430


def test_an_hour_in_which_all_fail_accuses_nobody() -> None:
    jobs = background(600, 11)
    for number in range(300, 360):
        jobs[number] = jobs[number]._replace(bad=number % 3 > 0, nodes=[number % 4])
    found = judged(jobs, step=60)
    assert found.suspects == []
    assert found.hours and found.by_hour >= 30


def test_who_needs_more_jobs_is_accused_with_them() -> None:
    jobs = background(300, 12)
    ruined = [Job(kind, [39], True) for kind in (3, 5)]
    jobs = [job for job in jobs if 39 not in job.nodes]
    few = judged([*jobs, *ruined])
    assert few.suspects == []
    (nearest, *_) = few.runners_up
    assert (nearest.names, nearest.bad, nearest.jobs) == (["n39"], 2, 2)
    assert 1 <= nearest.more_jobs <= 3
    more = [Job(kind, [39], True) for kind in range(6, 6 + nearest.more_jobs)]
    assert accused(judged([*jobs, *ruined, *more])) == ["n39"]


def test_the_reach_says_what_would_be_found() -> None:
    for harm, at_least, below in ((1.0, 0.85, 1.01), (0.1, -1, 0.2)):
        log = made(World(600, nodes=300, bad=0, largest=20), 13)
        (reach,) = (one for one in log.find().reach if one.share == harm)
        assert at_least < reach.found / reach.nodes < below
        found = 0
        for seed in range(6):
            planted = made(World(600, nodes=300, bad=1, largest=20, harm=harm), seed)
            told = [{*one.names, *one.alternatives} for one in planted.find().suspects]
            found += any(planted.planted & one for one in told)
        assert abs(found / 6 - reach.found / reach.nodes) <= 0.3


def test_what_was_always_together_cannot_be_told_apart() -> None:
    jobs = [
        job._replace(nodes=[*job.nodes, 50] if 7 in job.nodes else job.nodes)
        for job in background(300, 14, bad=7)
    ]
    assert [one.names for one in judged(jobs, nodes=51).suspects] == [["n07", "n50"]]


def test_what_cannot_be_judged_is_told() -> None:
    good, bad = Job(1, [1], False), Job(1, [2], True)
    assert "3 jobs" in judged([good] * 3).reason
    assert judged([good] * 30).reason.startswith("none of the 30 jobs")
    assert judged([bad] * 30).reason.startswith("all of the 30 jobs")
    assert "the same nodes" in judged([good, Job(1, [1], True)] * 30).reason
