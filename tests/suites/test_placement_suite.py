"""The suite `placement`: the probes on nodes that are chosen by level, on a real Slurm."""

from __future__ import annotations

import itertools
import json
import math
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.execute.detect import detect
from seatrial.journal.events import MetricRecorded, RunJudged, ScriptStarted
from seatrial.model.machine import Toolchain
from seatrial.model.node_set import unfold
from tests.programs import Workplace
from tests.slurm.cluster import ClusterOptions, SlurmCluster
from tests.suites.short_probes import short

PLACEMENT = Path(__file__).parents[2] / "suites" / "placement"
HOPS = Path(__file__).parent / "data" / "hops.c"
TREE = {"kind": "tree", "levels": [{"router": 2}, {"chassis": 4}, {"group": 8}]}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    options = ClusterOptions(nodes=8, cores=1, hosts=True)
    with SlurmCluster(tmp_path_factory.mktemp("levels"), options) as cluster:
        yield cluster


def own_toolchain() -> Toolchain:
    chain = next(iter(detect("here").toolchains.values()))
    assert chain.launcher is not None, "make test brings an MPI where the machine has none"
    return chain


def a_place(
    place: Workplace,
    cluster: SlurmCluster,
    *options: str,
    topology: Mapping[str, Any] = TREE,
) -> None:
    chain = own_toolchain()
    assert chain.launcher is not None
    launcher = short(place.folder, chain.launcher, "--bind-to", "none", *options)
    toolchain = {
        "mpicc": chain.mpicc,
        "cflags": "-O0",
        "launcher": launcher,
        "environment": chain.environment,
    }
    place.slurm(cluster, {"poll": "0.5s"}, topology=topology, toolchains={"mpi": toolchain})


def started(place: Workplace, *words: str) -> None:
    line = ("run", str(PLACEMENT), "-m", str(place.machine), *words)
    done = place.seatrial(*line, timeout=120)
    assert done.code == 0, done.said


def medians(place: Workplace, tag: str, metric: str) -> dict[str, float]:
    """The least figure of each place, as recorded."""
    where = {case.id: str(case.parameters["place"]) for case in place.trial(tag).cases()}
    return least(
        (where[event.case], float(event.value))
        for event in place.events(tag, MetricRecorded)
        if event.metric == metric and event.value is not None
    )


def minima(place: Workplace, tag: str, metric: str) -> dict[str, float]:
    """The least figure of each place that a probe printed. Other work on this host raises each
    median, and leaves the least of many repetitions nearly as it is."""
    printed = rf"^{metric} min (\S+) median"
    where = {case.id: str(case.parameters["place"]) for case in place.trial(tag).cases()}
    return least(
        (where[run.case], float(found))
        for run in place.events(tag, RunJudged)
        for found in re.findall(printed, output(place, tag, run), re.MULTILINE)
    )


def output(place: Workplace, tag: str, run: RunJudged) -> str:
    return (place.trial(tag).run(run.test, run.run_id) / "stdout").read_text()


def least(figures: Iterable[tuple[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for where, figure in figures:
        found[where] = min(figure, found.get(where, math.inf))
    return found


@pytest.mark.slurm(hosts=True)
def test_latency_rises_with_the_level_as_the_delays_do(
    place: Workplace, cluster: SlurmCluster
) -> None:
    """Messages are delayed by 1, 2 and 4 ms: a ring, a pair of nodes and collectives show it."""
    library = place.folder / "hops.so"
    mpicc = own_toolchain().mpicc
    subprocess.run([mpicc, "-O2", "-shared", "-fPIC", "-o", library, HOPS], check=True)
    a_place(place, cluster, "-x", f"LD_PRELOAD={library}")  # for the ranks alone
    pairs = "router|within chassis and across router|within group and across chassis"
    shallow, middle, deep = pairs.split("|")
    turned = ("--set", "hosts=2", "--set", "place=router,chassises")
    started(place, "-k", "ring", *turned, "--name", "ring")
    ring = minima(place, "ring", "natural latency")
    assert 1000 < ring["router"] < ring["chassises"]
    assert medians(place, "ring", "natural_latency")["chassises"] > 4000
    assert medians(place, "ring", "random_latency")["chassises"] > 4000
    started(place, "-k", "pingpong", "--name", "pingpong")
    latency = minima(place, "pingpong", "latency")
    assert set(latency) == {shallow, middle, deep}, "one group: none is across groups"
    assert 1000 < latency[shallow] < latency[middle] < latency[deep]
    recorded = medians(place, "pingpong", "latency")
    assert recorded[middle] > 2000 and recorded[deep] > 4000
    turned = ("--set", "hosts=4", "--set", "place=X,Y")
    started(place, "-k", "collectives", *turned, "--name", "axes", "-j", "1")  # Y of all nodes
    for metric in ("bcast_8", "alltoall_8"):
        along = medians(place, "axes", metric)
        assert along["X"] > 1500 and along["Y"] > 4000, f"{metric}: a chassis, and both"


@pytest.mark.slurm(hosts=True)
def test_every_probe_runs_where_it_is_placed(place: Workplace, cluster: SlurmCluster) -> None:
    a_place(place, cluster)
    chosen = "pairs and place=chassis or collectives and place=Y"
    started(place, "-k", chosen, "--set", "hosts=4", "--name", "t")
    assert set(place.verdicts().values()) == {"pass"}
    a_place(place, cluster, topology={"kind": "torus", "axes": {"x": 2, "y": 2, "z": 2}})
    turned = ("--set", "hosts=2", "--set", "place=Z,X")
    started(place, "-k", "collectives", *turned, "--name", "axes", "-j", "1")
    cases = {case.id: case.parameters["place"] for case in place.trial("axes").cases()}
    nodes = {cases[ran.case]: unfold(ran.nodes) for ran in place.events("axes", ScriptStarted)}
    first = cluster.node_names[0]
    assert nodes == {"Z": (first, cluster.node_names[1]), "X": (first, cluster.node_names[4])}
    curves = place.seatrial("scaling", "axes", "--x", "bytes", "--metric", "bcast").out
    assert "collectives" in curves and "bcast over bytes" in curves and "512 KiB" in curves
    assert "place=Z" in curves and "place=X" in curves


def test_the_tables_of_a_cray_xc(place: Workplace) -> None:
    """Rings and pairs by level, collectives by axis: what the papers show for six groups."""
    names = [
        f"c{cabinet}-0c{chassis}s{router}n{node}"
        for cabinet, chassis, router, node in itertools.product(
            range(4), range(3), range(16), range(4)
        )
    ]
    topology = {
        "kind": "dragonfly",
        "names": "c{cabinet}-{row}c{chassis}s{router}n{node}",
        "order": ["row", "cabinet", "chassis", "router", "node"],
        "levels": [{"router": 4}, {"chassis": 64}, {"group": 384}],
    }
    nodes = [{"names": ",".join(names), "cores": 8}]
    machine = {"machine": "xc", "scheduler": "slurm", "nodes": nodes, "topology": topology}
    chain = {"toolchains": {"cray": {"mpicc": "cc"}}, "launcher": {"kind": "srun"}}
    place.machine.write_text(yaml.safe_dump({**machine, **chain}))
    words = ("list", str(PLACEMENT), "-m", str(place.machine), "--format", "json")
    done = place.seatrial(*words)
    assert done.code == 0, done.said
    found = [(case["test"], case["parameters"]["place"]) for case in json.loads(done.out)]
    by_level = ["chassis", "within group and across chassis", "groups"]
    expected = [(test, where) for test in ("pairs", "ring") for where in by_level]
    expected += [("collectives", axis) for axis in ("X", "Y", "Z", "random")]
    hops = ("router", "within chassis and across router", "within group and across chassis")
    expected += [("pingpong", where) for where in (*hops, "across group")]
    assert sorted(found) == sorted(expected)
