"""The probes that ship, built and run for real: natively, and in jobs of a real Slurm."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml
from msgspec import to_builtins
from msgspec.structs import replace

from seatrial.execute.detect import detect
from seatrial.model.test import Case
from seatrial.results.bands import pair_lines
from tests.programs import Workplace
from tests.slurm.cluster import SlurmCluster
from tests.suites.short_probes import short

PROBES = Path(__file__).parents[2] / "suites" / "probes"
FIGURES = {
    "collectives": {"allreduce_8", "alltoall_2k", "barrier", "bcast_512k"},
    "compute": {"rate"},
    "congestion": {
        *(
            f"{of}{{test={test},network={network}}}"
            for of in ("avg", "p99")
            for test in ("latency", "bandwidth", "allreduce")
            for network in ("isolated", "congested")
        ),
        *(
            f"impact_{of}{end}{{test={test}}}"
            for of in ("avg", "p99")
            for end in ("", "_low", "_high")
            for test in ("latency", "bandwidth", "allreduce")
        ),
    },
    "hello": {"init"},
    "io": {"read", "write"},
    "metadata": {"file_create", "file_remove", "file_stat"},
    "pairs": {"average", "slowest"},
    "pingpong": {"bandwidth", "latency"},
    "ring": {"natural_bandwidth", "natural_latency", "random_bandwidth", "random_latency"},
    "stream": {"copy", "triad"},
}


def figures_of(place: Workplace, tag: str) -> dict[str, set[str]]:
    """The positive figures of the passed runs of a trial, by test."""
    export = json.loads(place.seatrial("export", tag, "--format", "json").out)
    found: dict[str, set[str]] = {}
    for run in export["runs"]:
        assert run["verdict"] == "pass", run
        found.setdefault(run["test"], set())
    tests = {run["run_id"]: run["test"] for run in export["runs"]}
    for figure in export["metrics"]:
        assert figure["value"] > 0, figure
        found[tests[figure["run_id"]]].add(figure["name"])
    return found


def test_every_probe_gives_its_figures_here(place: Workplace) -> None:
    """One case of each, and two of the short ones."""
    words = (
        "not (compute or stream or ring or io) or ring and ranks=2 or compute and threads=2"
        " or stream and touch=all and threads=2"
        " or io and (api=posix and files=each or api=mpiio and files=one)"
    )
    other = place.folder / "other"
    other.mkdir()
    small = (f"folder={other}", "elements=1M", "order=256", "block=2M")
    settings = [word for each in small for word in ("--set", each)]
    chain = next(iter(detect("here").toolchains.values()))
    assert chain.launcher is not None, "make test brings an MPI where the machine has none"
    launcher = short(place.folder, chain.launcher)
    toolchain = to_builtins(replace(chain, cflags="-O0")) | {"launcher": launcher}
    place.local(cores=2, toolchains={"mpi": toolchain})
    chosen = ("-m", str(place.machine), "-k", words, *settings)
    done = place.seatrial("run", str(PROBES), *chosen, "--name", "t", timeout=600)
    assert done.code == 0, done.said
    assert figures_of(place, "t") == FIGURES
    assert_intervals_hold_their_figures(place)
    network = place.seatrial("network", "t", "--json")
    assert network.code == 0, network.said
    by_kind = {
        "impacts" if "impacts" in one else one["unit"]: one for one in json.loads(network.out)
    }
    assert (by_kind["rank"]["ranks"], len(by_kind["rank"]["nics"])) == (4, 4)
    assert len(by_kind["impacts"]["impacts"]) == 6


def assert_intervals_hold_their_figures(place: Workplace) -> None:
    (output, *_) = (place.folder / "trials" / "t" / "runs").glob("pingpong*/*/stdout")
    for pair in pair_lines(output.read_text()):
        for figure, interval in (
            (pair.latency, pair.latency_interval),
            (pair.bandwidth, pair.bandwidth_interval),
        ):
            assert interval is not None and interval[0] <= figure <= interval[1], pair


@pytest.mark.parametrize(("probe", "said"), [("compute", ""), ("stream", "-r 5")])
def test_a_variable_of_the_caller_is_no_option_of_a_probe(
    tmp_path: Path, probe: str, said: str
) -> None:
    (tmp_path / probe).write_text("#!/bin/sh\necho $*\n")
    (tmp_path / probe).chmod(0o755)
    script = yaml.safe_load((PROBES / probe / "test.yaml").read_text())["run"]["script"]
    caller = {**os.environ, "size": "-x", "order": "auto", "elements": "auto"}
    ran = ["bash", "-c", script]
    out = subprocess.check_output(ran, env={**caller, "BUILD": str(tmp_path)}, text=True)
    assert out.strip() == said


def test_every_probe_is_listed_for_a_large_machine(place: Workplace) -> None:
    nodes = [{"names": "n[0001-4096]", "cores": 96, "numa_domains": 8}]
    chain = {"mpicc": "mpicc"}
    machine = {"machine": "large", "scheduler": "slurm", "nodes": nodes}
    place.machine.write_text(yaml.safe_dump(machine | {"toolchains": {"gcc": chain}}))
    done = place.seatrial("list", str(PROBES), "-m", str(place.machine), "--format", "json")
    assert done.code == 0, done.said
    cases = [Case(**case) for case in json.loads(done.out)]
    assert {case.test for case in cases} == set(FIGURES)
    stream = [case for case in cases if case.test == "stream"]
    assert max(case.threads for case in stream) == 96
    for touch in ("all", "one"):  # each line of a scaling begins with one thread
        assert min(case.threads for case in stream if case.parameters["touch"] == touch) == 1
    turned = ("-k", "pairs", "--set", "ranks=1", "--set", "hosts=8", "--format", "json")
    done = place.seatrial("list", str(PROBES), "-m", str(place.machine), *turned)
    (case,) = (Case(**each) for each in json.loads(done.out))
    assert (case.tasks, case.name) == (8, "pairs{hosts=8,ranks=1}@gcc")


@pytest.mark.slurm(hosts=True)
def test_probes_with_mpi_run_in_jobs(place: Workplace, cluster: SlurmCluster) -> None:
    """On one node, and across two; the MPI does not bind, as all nodes have the same two cores."""
    chain = next(iter(detect("here").toolchains.values()))
    assert chain.launcher is not None, "make test brings an MPI where the machine has none"
    launcher = short(place.folder, chain.launcher, "--bind-to", "none")
    toolchain = to_builtins(replace(chain, cflags="-O0")) | {"launcher": launcher}
    place.slurm(cluster, toolchains={"mpi": toolchain})
    words = "(hello or pingpong or collectives) and not hosts=2 or pairs and hosts=2"
    done = place.seatrial(
        *("run", str(PROBES), "-m", str(place.machine), "-k", words, "--name", "t"), timeout=120
    )
    assert done.code == 0, done.said
    found = figures_of(place, "t")
    assert found == {name: FIGURES[name] for name in ("hello", "pingpong", "collectives", "pairs")}
    (network,) = json.loads(place.seatrial("network", "t", "--json").out)
    first, second = (nic["name"] for nic in network["nics"])
    assert (first, second) in itertools.combinations(cluster.node_names, 2)
    assert "in no group" not in place.seatrial("network", "t").out
