"""A rehearsal beside what really happened: the same small plan on the emulated Slurm, and rehearsed
with the elapsed times that were measured there.

Of four such trials on two shared cores, beside the mean of five seeds, utilisation was within
0.045, accepted runs in all within 12 %, those of a test within 4.8; on a host of four busy cores
utilisation was 0.12 lower, as each start takes longer there. The bounds leave as much again.
What remains: Slurm looks once a second and takes a limit of seconds for a minute, so that it fills
gaps less well, and half a minute holds a handful of large runs.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import pytest

from seatrial.plugins.rehearsal.plan_rehearsal import Rehearsed
from seatrial.plugins.rehearsal.report import rehearse_plan
from tests.execute.disturbed import SIZES, Scene, options, supervise
from tests.execute.plans import TAG, ends
from tests.programs import Workplace
from tests.slurm.cluster import SlurmCluster

pytestmark = pytest.mark.slurm

SECONDS = 25
SEEDS = range(1, 6)
# What this cluster takes: sbatch, and the scheduler with the shell of the job script.
DELAYS = {"submit_delay": "100ms", "start_delay": "100ms", "poll": "1s"}


class Pair(NamedTuple):
    """Accepted runs by test, and utilisation: as they really were, and rehearsed with each seed."""

    accepted: Counter[str]
    utilisation: float
    rehearsed: list[Rehearsed]

    def rehearsed_runs(self, test: str) -> float:
        """The mean of the seeds."""
        tallies = [tally for one in self.rehearsed for tally in one.tests]
        return fmean(tally.accepted for tally in tallies if tally.test == test)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder: Path = tmp_path_factory.mktemp("fidelity")
    place = Workplace(folder)
    with SlurmCluster(folder / "cluster", options()) as cluster:
        scene = Scene(place, cluster, tick=0.25)
        elapsed = {"tests": {"*": {"elapsed": {"trial": TAG}}}}
        scene.write(f"{SECONDS}s", "20s", doubtful=False, rehearsal=elapsed, model=DELAYS)
        supervise(scene.start)
    status = place.seatrial("accept", "status", "plan.yaml", "--format", "json")
    (trial,) = json.loads(status.out)["trials"]
    plan, store = folder / "plan.yaml", place.trials / "store.sqlite"
    rehearsed = [
        rehearse_plan(plan, trials=place.trials, store=store, seed=seed).first[0] for seed in SEEDS
    ]
    accepted = Counter(event.test for event in ends(place) if event.verdict == "pass")
    utilisation = trial["criteria"][0][0]["value"]
    return Pair(accepted, utilisation, rehearsed)


def test_utilisation(pair: Pair) -> None:
    foretold = fmean(one.utilisation for one in pair.rehearsed)
    print(foretold, pair.utilisation)
    assert abs(foretold - pair.utilisation) <= 0.2


def test_accepted_runs(pair: Pair) -> None:
    foretold = {test: pair.rehearsed_runs(test) for test in SIZES}
    print(foretold, pair.accepted)
    assert sum(foretold.values()) == pytest.approx(pair.accepted.total(), rel=0.25)
    for test, runs in foretold.items():
        assert abs(runs - pair.accepted[test]) <= max(3, 0.4 * pair.accepted[test])
