"""A sustained trial on the emulated Slurm, with a node, a job, an answer, a test and the controller
that fail, and seatrial itself killed: each is found, classed and answered, and nothing is lost."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from seatrial.journal.codes import Name
from tests.programs import Workplace
from tests.slurm.cluster import SlurmCluster
from tests.trial.disturbed import (
    FAULTS,
    Scene,
    disturbances,
    nothing_lost_or_doubled,
    options,
    supervise,
)

pytestmark = pytest.mark.slurm

SECONDS = 34.0
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
        scene.write(f"{SECONDS:g}s", quiet_for="5s")
        kills = [chance.uniform(0.0, SECONDS) for _ in range(KILLS)]
        acts = disturbances(scene, SECONDS, quick=True)
        assert supervise(scene.start, acts, kills) == KILLS
        yield scene


@pytest.mark.parametrize("found", FAULTS, ids=lambda check: check.__name__)
def test_each_fault_is_found_classed_and_answered(
    scene: Scene, found: Callable[[Scene], str]
) -> None:
    print(found(scene))


def test_nothing_is_lost_or_doubled(scene: Scene) -> None:
    nothing_lost_or_doubled(scene)
    assert len(scene.events(Name.TRIAL_START)) == 1
    assert len(scene.events(Name.TRIAL_RESUME)) == KILLS


def test_the_nodes_are_kept_busy(scene: Scene) -> None:
    assert scene.occupancy() >= LEAST_OCCUPANCY
