"""A sustained trial on the emulated Slurm, with a node, a job, an answer, a test and the controller
that fail, and seatrial itself killed: each is found, classed and answered, and nothing is lost."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from seatrial.journal.events import TrialResumed, TrialStarted
from tests.execute.disturbed import (
    FAULTS,
    Act,
    Scene,
    disturbances,
    nothing_lost_or_doubled,
    options,
    pause_when_seen,
    supervise,
)
from tests.programs import Workplace
from tests.slurm.cluster import SlurmCluster

pytestmark = pytest.mark.slurm

SECONDS = 26.0  # it goes on for longer where a slow machine has not answered all by then
PATIENCE_S = 120.0
KILLS = 3
LEAST_OCCUPANCY = 0.6  # it is 0.8 to 0.95 where nobody else computes


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """The trial when it is over. Its seed is printed; SEATRIAL_SEED repeats it."""
    folder: Path = tmp_path_factory.mktemp("disturbed")
    seed = int(os.environ.get("SEATRIAL_SEED") or time.time_ns() % 1_000_000)
    print(f"SEATRIAL_SEED={seed}")
    chance = random.Random(seed)
    with SlurmCluster(folder / "cluster", options()) as cluster:
        scene = Scene(Workplace(folder), cluster, tick=0.25)
        scene.write("5m", quiet_for="5s")
        # The last one has a trial to take up, whatever the others left.
        kills = [chance.uniform(0.0, SECONDS) for _ in range(KILLS - 1)]
        kills.append(chance.uniform(SECONDS / 2, SECONDS))
        acts = disturbances(scene, SECONDS, quick=True)
        acts.append(Act(SECONDS, lambda: pause_when_seen(scene, KILLS + 1, PATIENCE_S)))
        assert supervise(scene.start, acts, kills, codes=[3]) == KILLS
        yield scene


@pytest.mark.parametrize("found", FAULTS, ids=lambda check: check.__name__)
def test_each_fault_is_found_classed_and_answered(
    scene: Scene, found: Callable[[Scene], str]
) -> None:
    print(found(scene))


def test_nothing_is_lost_or_doubled(scene: Scene) -> None:
    nothing_lost_or_doubled(scene)
    assert len(scene.events(TrialStarted)) == 1
    # One that is killed while it starts has not told yet that it goes on; the last one has.
    assert 1 <= len(scene.events(TrialResumed)) <= KILLS


def test_the_nodes_are_kept_busy(scene: Scene) -> None:
    share = scene.occupancy()
    print(f"occupancy {share:.3f}")
    assert share >= LEAST_OCCUPANCY
