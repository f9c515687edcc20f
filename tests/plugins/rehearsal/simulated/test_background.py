"""Jobs of others on the simulated cluster."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from random import Random

import pytest

from seatrial.model.file_model import Duration, Share
from seatrial.plugins.rehearsal.cluster import background, made
from seatrial.plugins.rehearsal.keys import Background
from seatrial.plugins.rehearsal.queue import SimulatedJob
from tests.plugins.rehearsal.simulated.helpers import (
    cluster,
    free_nodes,
    machine,
    placed,
    starts,
    to_the_end,
)


def line(number: int, submit: int, run_time: int, processors: int, asked_time: int = -1) -> str:
    return (
        f"{number} {submit} -1 {run_time} {processors} -1 -1 {processors} {asked_time}"
        " -1 1 1 1 -1 1 -1 -1 -1\n"
    )


def test_the_jobs_of_a_log_take_nodes_and_are_told_to_nobody(tmp_path: Path) -> None:
    file = tmp_path / "log.swf"
    file.write_text("; MaxProcs: 16\n" + line(7, 1000, 50, 12, 100) + line(8, 1010, 30, 16))
    others = Background(swf=str(file), cores_per_node=4)
    jobs = [(5.0, SimulatedJob("large", 2, 100, 10)), (5.0, SimulatedJob("small", 1, 10, 10))]
    told = to_the_end(cluster(machine(4, background=others)), jobs)
    assert starts(told) == {"large": 50, "small": 5}
    assert set(placed(told)) == {"large", "small"}


def test_what_a_log_has_too_much_is_told(tmp_path: Path) -> None:
    file = tmp_path / "log.swf"
    file.write_text(
        line(1, 0, 10, 1) + "rubbish\n" + line(2, 5, -1, 4) + line(3, 5, 9, 99) + line(4, 3, 9, 2)
    )
    arrivals, remarks = background(Background(swf=str(file)), 8, Random(1))
    assert [(time, job.nodes, job.walltime) for time, job in arrivals] == [(0, 1, 10), (3, 2, 9)]
    assert remarks == [
        f"{file}: 1 damaged line left out: not 18 numbers",
        f"{file}: 1 job left out: no run time or processors",
        f"{file}: 1 job left out: more than 8 nodes",
    ]


def test_made_jobs_ask_for_the_load_that_is_given() -> None:
    """Offered load over 1,000 mean elapsed times; the tolerance is four standard deviations."""
    model = Background(load=Share("60%"), nodes=[1, 2, 200], elapsed=Duration("1m"))
    span = 1_000 * 60.0
    arrivals = list(takewhile(lambda arrival: arrival[0] < span, made(model, 100, Random(1))))
    assert {job.nodes for _, job in arrivals} == {1, 2}
    asked = sum(job.nodes * job.elapsed for _, job in arrivals) / (100 * span)
    assert asked == pytest.approx(0.6, rel=4 * 2 / len(arrivals) ** 0.5)
    assert all(job.elapsed <= job.walltime <= 3 * job.elapsed for _, job in arrivals)


def test_others_keep_a_machine_as_busy_as_they_ask() -> None:
    others = Background(load=Share(0.5), nodes=[1, 2, 4], elapsed=Duration(100))
    simulated = cluster(machine(40, background=others), horizon_s=50_000)
    samples = []
    while (now := simulated.next_time()) is not None:
        assert not simulated.advance(now)
        samples.append(free_nodes(simulated))
    assert sum(samples) / len(samples) / 40 == pytest.approx(0.5, abs=0.1)
