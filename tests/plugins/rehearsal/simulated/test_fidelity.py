"""EASY backfill against a simulation of another kind, on random workloads: the same start times."""

from __future__ import annotations

import os

import pytest
from bench.bare_simulation import compiled_run, simulate
from hypothesis import given, settings

from seatrial.plugins.rehearsal.queue import SimulatedJob
from tests.plugins.rehearsal.simulated.helpers import cluster, ends, machine, starts, to_the_end
from tests.plugins.rehearsal.simulated.workloads import Asked, Workload, second_by_second, workloads

os.environ["NUMBA_OPT"] = "0"  # optimising takes longer than all that is run here

BACKFILLED = Workload(4, [Asked(0, 3, 10, 10), Asked(1, 4, 5, 5), Asked(2, 1, 8, 8)])
ALL_THAT_END_THEN = Workload(
    # 2 + 2 nodes come free at 10; the first waiter needs 3 of 5, so 2 are extra: for the last
    5,
    [Asked(0, 2, 10, 10), Asked(0, 2, 10, 10), Asked(1, 3, 5, 5), Asked(2, 1, 30, 30)],
)
SHORT_ONES_LEAVE_THE_EXTRA = Workload(
    # one node is extra beside the first waiter; the short job gives its node back in time
    4,
    [Asked(0, 2, 10, 10), Asked(1, 3, 5, 5), Asked(1, 1, 5, 5), Asked(1, 1, 30, 30)],
)


def batch(workload: Workload, compiled: bool) -> list[float]:
    submit, nodes, elapsed, walltime = zip(*workload.jobs, strict=True)
    found = simulate(submit, nodes, elapsed, walltime, workload.total, compiled=compiled)
    return [float(start) for start in found]


def online(workload: Workload) -> list[float]:
    jobs = [
        (job.submit, SimulatedJob(str(number), job.nodes, job.walltime, job.elapsed))
        for number, job in enumerate(workload.jobs)
    ]
    told = to_the_end(cluster(machine(workload.total)), jobs)
    began, ended = starts(told), ends(told)
    for number, job in enumerate(workload.jobs):
        time, update = ended[str(number)]
        assert time == began[str(number)] + min(job.elapsed, job.walltime)
        assert update.state == ("COMPLETED" if job.elapsed <= job.walltime else "TIMEOUT")
    return [began[str(number)] for number in range(len(workload.jobs))]


BY_HAND = [
    (BACKFILLED, [0, 10, 2]),
    (ALL_THAT_END_THEN, [0, 0, 10, 2]),
    (SHORT_ONES_LEAVE_THE_EXTRA, [0, 10, 1, 1]),
]


@pytest.mark.parametrize(("workload", "expected"), BY_HAND)
def test_cases_worked_out_by_hand(workload: Workload, expected: list[int]) -> None:
    assert second_by_second(workload) == expected
    assert batch(workload, compiled=False) == expected
    assert online(workload) == expected


@settings(max_examples=100, deadline=None)
@given(workloads())
def test_the_batch_simulation_starts_jobs_when_the_definition_does(workload: Workload) -> None:
    assert batch(workload, compiled=False) == second_by_second(workload)


@settings(max_examples=100, deadline=None)
@given(workloads())
def test_the_online_cluster_starts_jobs_when_the_definition_does(workload: Workload) -> None:
    assert online(workload) == second_by_second(workload)


@settings(max_examples=40, deadline=None)
@given(workloads())
def test_what_is_compiled_gives_the_same(workload: Workload) -> None:
    assert compiled_run() is not None
    assert batch(workload, compiled=True) == batch(workload, compiled=False)


@settings(max_examples=100, deadline=None)
@given(workloads())
def test_the_first_in_the_queue_is_never_delayed(workload: Workload) -> None:
    """Once a job is first, it starts no later than by the walltimes of what runs then."""
    jobs, began = workload.jobs, batch(workload, compiled=False)
    order = sorted(range(len(jobs)), key=lambda number: jobs[number].submit)
    for place, number in enumerate(order):
        job = jobs[number]
        first = max([job.submit, *(began[earlier] for earlier in order[:place])])
        running = [
            other
            for other in order
            if began[other] <= first < began[other] + min(jobs[other].elapsed, jobs[other].walltime)
            and other != number
        ]
        by = first
        while sum(jobs[o].nodes for o in running if began[o] + jobs[o].walltime > by) > (
            workload.total - job.nodes
        ):
            by += 1
        assert began[number] <= by


def test_impossible_workloads_are_refused() -> None:
    with pytest.raises(ValueError, match="jobs of 1 to 5 nodes, of 4"):
        simulate([0, 0], [1, 5], [1, 1], [1, 1], 4)
    with pytest.raises(ValueError, match="of one length"):
        simulate([0], [1, 2], [1, 1], [1, 1], 4)
