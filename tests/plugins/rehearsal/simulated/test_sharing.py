"""File systems that runs share: stretch by processor sharing, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from seatrial.model.file_model import Span, typed
from seatrial.model.machine import FileSystem, Machine, MetadataTarget
from seatrial.plugins.rehearsal.keys import FileSystemModel, LoadLevel
from seatrial.plugins.rehearsal.queue import SimulatedJob, speed, stretch
from tests.plugins.rehearsal.simulated.helpers import START, S, cluster, ends, machine, to_the_end


def shared(nodes: int = 8, **model: object) -> Machine:
    capacity: dict[str, Any] = {"rehearsal": typed(model, FileSystemModel)}
    work = FileSystem(path="/work", targets=["mdt0", MetadataTarget(name="mdt1")], **capacity)
    return machine(nodes, {"work": work})


def run(run_id: str, elapsed: float = 100, **demand: object) -> SimulatedJob:
    more = {"file_system": "work", "target": "mdt0", "metadata": 0.5, "opens": 100.0, **demand}
    return SimulatedJob(run_id, 1, 10_000, elapsed, **more)  # type: ignore[arg-type]


def end_times(described: Machine, *jobs: tuple[float, SimulatedJob]) -> dict[str, float]:
    told = to_the_end(cluster(described), jobs)
    return {run_id: time for run_id, (time, _) in ends(told).items()}


def test_the_formula() -> None:
    assert speed(0.5, 0.0, stretch(50, 100), 1.0) == 1
    assert speed(0.5, 0.0, stretch(200, 100), 1.0) == pytest.approx(1 / 1.5)
    assert speed(0.25, 0.5, stretch(400, 100), stretch(3, 2)) == pytest.approx(
        1 / (0.25 + 0.25 * 4 + 0.5 * 1.5)
    )
    assert stretch(1e9, 0) == 1


def test_up_to_its_capacity_a_target_costs_nothing() -> None:
    jobs = [(0.0, run("a")), (10.0, run("b"))]
    assert end_times(shared(metadata=200), *jobs) == {"a": 100, "b": 110}


def test_beyond_it_all_on_the_target_are_stretched_while_it_lasts() -> None:
    """Both run from 10 on with load 200 of 100: half of the time doubles, the speed is 1/1.5. The
    first has 90 s to go, so it ends at 10 + 135; the other then has 10 s to go, alone."""
    jobs = [(0.0, run("a")), (10.0, run("b"))]
    assert end_times(shared(metadata=100), *jobs) == {"a": 145, "b": 155}


def test_on_another_target_nobody_is_disturbed() -> None:
    jobs = [(0.0, run("a")), (10.0, run("b", target="mdt1"))]
    assert end_times(shared(metadata=100), *jobs) == {"a": 100, "b": 110}


def test_all_on_one_target_visibly_hurts() -> None:
    def last(targets: list[str]) -> float:
        jobs = [(0.0, run(str(n), target=targets[n % len(targets)])) for n in range(8)]
        return max(end_times(shared(metadata=400), *jobs).values())

    assert last(["mdt0", "mdt1"]) == 100
    assert last(["mdt0"]) == 150


def test_who_is_placed_nowhere_is_on_the_first_target() -> None:
    jobs = [(0.0, run("a")), (0.0, run("b", target=""))]
    assert end_times(shared(metadata=100), *jobs) == {"a": 150, "b": 150}


def test_objects_are_shared_by_all_targets() -> None:
    """Each asks 2 GB/s of 3: with o = 0.5 the speed is 1 / (0.5 + 0.5 * 4/3)."""
    demand = {"metadata": 0.0, "objects": 0.5, "bandwidth": 2.0}
    jobs = [(0.0, run("a", **demand)), (0.0, run("b", target="mdt1", **demand))]
    found = end_times(shared(objects=2, bandwidth=1.5), *jobs)
    assert found == pytest.approx({"a": 100 * 7 / 6, "b": 100 * 7 / 6}, abs=1e-6)


def test_production_loads_the_targets_over_time() -> None:
    """From 50 s to 200 s others hold 300 open files on mdt0 beside our 100: the speed is 0.4."""
    levels = [
        LoadLevel(since=Span(50), load=300, target="mdt0"),
        LoadLevel(since=Span(200), load=0),
    ]
    described = shared(metadata=100, production=levels)
    jobs = [(0.0, run("a")), (0.0, run("b", target="mdt1"))]
    assert end_times(described, *jobs) == {"a": 175, "b": 100}  # 50 + 50 / 0.4


def test_the_load_is_told_for_gauges() -> None:
    described = shared(metadata=100, production=[LoadLevel(since=Span(0), load=7)])
    simulated = cluster(described)
    simulated.submit(START, [run("a"), run("b", target="mdt1", opens=30.0)])
    simulated.advance(START + 10 * S)
    assert simulated.files.load("work", "mdt0") == 107
    assert simulated.files.load("work", "mdt1") == 37
    assert simulated.files.load("work") == 107
    simulated.cancel(START + 20 * S, ["a"])
    simulated.advance(START + 20 * S)
    assert simulated.files.load("work") == 37
    to_the_end(simulated)
    assert simulated.files.load("work") == 7


def test_the_highest_load_of_each_target_is_kept_with_the_time_above_what_is_safe() -> None:
    """mdt0 bears 100 to 100 s, 200 to 150 s, 250 to 200 s, then 150: of 400 s it is above 180 for
    100. mdt1 comes to 180 with 50 of others, which is just safe."""
    levels = [LoadLevel(since=Span(150), load=50), LoadLevel(since=Span(200), load=50)]
    described = shared(production=levels)
    system = replace(described.file_systems["work"], safe_load=180)
    simulated = cluster(replace(described, file_systems={"work": system}))
    simulated.submit(
        START, [run("a", elapsed=400), run("c", elapsed=400, target="mdt1", opens=130)]
    )
    simulated.advance(START + 100 * S)
    simulated.submit(START + 100 * S, [run("b", elapsed=100)])
    simulated.advance(START + 400 * S)
    first, second = simulated.files.loads(simulated.now)
    assert (first.file_system, first.target, first.highest, first.safe) == (
        "work",
        "mdt0",
        250,
        180,
    )
    assert first.above == pytest.approx(100 / 400)
    assert (second.target, second.highest, second.above) == ("mdt1", 180, 0)


def test_walltimes_hold_for_stretched_and_hung_runs() -> None:
    jobs = [
        (0.0, replace(run("stretched", opens=400.0), walltime=120.0)),
        (0.0, replace(run("hung", hangs=True), walltime=60.0)),
    ]
    told = to_the_end(cluster(shared(metadata=100)), jobs)
    assert {i: (t, f.state) for i, (t, f) in ends(told).items()} == {
        "stretched": (120, "TIMEOUT"),
        "hung": (60, "TIMEOUT"),
    }


@st.composite
def demands(draw: st.DrawFn) -> list[tuple[float, SimulatedJob]]:
    jobs = []
    for number in range(draw(st.integers(1, 8))):
        metadata = draw(st.sampled_from([0.0, 0.25, 0.5]))
        demand = {
            "target": draw(st.sampled_from(["mdt0", "mdt1"])),
            "metadata": metadata,
            "objects": draw(st.sampled_from([0.0, 0.5])),
            "opens": float(draw(st.integers(0, 200))),
            "bandwidth": float(draw(st.integers(0, 4))),
        }
        elapsed = float(draw(st.integers(1, 100)))
        jobs.append((float(draw(st.integers(0, 60))), run(str(number), elapsed, **demand)))
    return jobs


@settings(max_examples=60, deadline=None)
@given(demands())
def test_groups_give_what_a_run_by_run_integration_gives(
    jobs: list[tuple[float, SimulatedJob]],
) -> None:
    """Every change of load is followed for every run by itself, in steps from event to event."""
    expected: dict[str, float] = {}
    left = {job.run_id: job.elapsed for _, job in jobs}
    now = 0.0
    while len(expected) < len(jobs):
        active = [job for time, job in jobs if time <= now and job.run_id not in expected]
        asked = sum(job.bandwidth for job in active)
        speeds = {}
        for job in active:
            load = sum(other.opens for other in active if other.target == job.target)
            speeds[job.run_id] = 1 / (
                1 + job.metadata * (max(1, load / 150) - 1) + job.objects * (max(1, asked / 5) - 1)
            )
        ending = [now + left[job.run_id] / speeds[job.run_id] for job in active]
        following = min(ending + [time for time, _ in jobs if time > now])
        for job in active:
            left[job.run_id] -= (following - now) * speeds[job.run_id]
            if left[job.run_id] < 1e-7:
                expected[job.run_id] = following
        now = following
    found = end_times(shared(metadata=150, bandwidth=5), *jobs)
    assert found == pytest.approx(expected, abs=1e-5)
