"""The PBS backend, through the command, on a real OpenPBS: arrays, end states, outages."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from seatrial.journal.events import JobEnded, JobQueued
from tests.pbs.server import NODES, PbsServer
from tests.programs import LONG_S, Workplace

pytestmark = pytest.mark.pbs

ROOT = Path(__file__).parents[2]
QUICK = {
    "backends.batch.SHORTEST_POLL": 0.2,
    "backends.batch.POLL_SHARE": 1.0,
    "backends.batch.LONGEST_BACK_OFF": 0.5,
    "backends.command_outages.CALM_SECONDS": 0.2,
}


@pytest.fixture
def quick(pbs_place: Workplace) -> Workplace:
    pbs_place.constants = dict(QUICK)
    return pbs_place


def test_the_shipped_probes_run(quick: Workplace, pbs: PbsServer) -> None:
    about = yaml.safe_load(quick.seatrial("machine", "--detect").out)
    variables = {"OMPI_ALLOW_RUN_AS_ROOT": 1, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": 1}
    nodes = [{"names": ",".join(NODES), "cores": 2}]  # MPI looks for the cores of this host
    quick.pbs(pbs, nodes=nodes, toolchains=about["toolchains"], environment=variables)
    suite = str(ROOT / "suites" / "probes")
    words = ("-m", str(quick.machine), "-k", "hello or pingpong and hosts=1", "--name", "t")
    done = quick.seatrial("run", suite, *words, timeout=2 * LONG_S)
    assert done.code == 0, done.said
    assert set(quick.verdicts().values()) == {"pass"}


def test_cases_of_one_shape_are_an_array_and_each_run_has_its_end(quick: Workplace) -> None:
    for i in range(3):
        quick.test(f"t{i}", f"echo run {i}; exit {i % 2}")
    quick.test("wide", "true", run={"nodes": 2, "tasks": 4})
    done = quick.run("--name", "t")
    assert done.code == 1, done.said
    ended = Counter(quick.verdicts().values())
    assert ended == {"pass": 3, "failed": 1}, done.said
    ids = {event.job_id for event in quick.events("t", JobQueued)}
    arrays = {each.partition("[")[0] for each in ids if "[" in each}
    assert len(ids) == 4 and len(arrays) == 1
    nodes = {event.run_id: event.nodes for event in quick.events("t", JobEnded)}
    assert all(nodes.values())
    quick.audit()
