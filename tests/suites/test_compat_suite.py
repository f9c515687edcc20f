"""The recipes for compatibility mode that ship: real workers over rsh, on nodes that are hosts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from seatrial.journal.events import RunJudged
from tests.programs import LONG_S, Workplace
from tests.slurm.cluster import SlurmCluster
from tests.suites.test_recipes import debian

SUITE = Path(__file__).parents[2] / "suites" / "compat"
SMALL = ("number=2", "exchanges=60", "points=8")
PASSED = {"espresso": 2, "farm": 1, "kpoints": 1, "linda": 1, "namd": 1, "replica": 1, "serial": 2}


def told(place: Workplace, tag: str) -> dict[str, list[tuple[str, str]]]:
    """The verdicts of a trial with their reasons, by test."""
    export = json.loads(place.seatrial("export", tag, "--format", "json").out)
    found: dict[str, list[tuple[str, str]]] = {}
    for run in export["runs"]:
        found.setdefault(run["test"], []).append((run["verdict"], run["why"]))
    return found


@pytest.mark.needs("pw.x", "mpirun.openmpi")
@pytest.mark.slurm(hosts=True)
def test_every_recipe_is_right_on_two_nodes(place: Workplace, cluster: SlurmCluster) -> None:
    place.slurm(cluster, toolchains=debian())
    small = [word for each in SMALL for word in ("--set", each)]
    done = place.seatrial(
        "run", str(SUITE), "-m", str(place.machine), *small, "--name", "t", timeout=300
    )
    assert done.code == 0, done.said
    assert {test: len(runs) for test, runs in told(place, "t").items()} == PASSED
    metrics = json.loads(place.seatrial("export", "t", "--format", "json").out)["metrics"]
    energies = [each["value"] for each in metrics if each["name"] == "energy"]
    assert len(energies) == 2 and energies[0] == energies[1], "natively and in compat"
    folders = {
        judged.test: place.trial("t").run(judged.test, judged.run_id)
        for judged in place.events("t", RunJudged)
    }
    said = (folders["linda"] / "stdout").read_text()
    assert "worker 0 on n00" in said and "linda: 2 workers, started by rsh" in said
    machines = (folders["kpoints"] / ".machines").read_text().splitlines()
    assert len({line.split(":")[1] for line in machines if line[0] == "1"}) == 2


@pytest.mark.slurm(hosts=True)
def test_k_points_run_by_mpi_on_a_node_and_on_two(place: Workplace, cluster: SlurmCluster) -> None:
    programs = Path(sys.executable).parent
    if not (programs / "mpirun").exists():
        pytest.skip("Open MPI's wheel is not installed")
    roots = ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT")
    place.slurm(
        cluster,
        toolchains={"five": {"mpicc": str(programs / "mpicc"), "cflags": "-O0"}},
        environment={name + end: 1 for name in roots for end in ("", "_CONFIRM")},
        setup=f"export PATH={programs}:$PATH",
    )
    ways = "kpoints and (ranks=2 and span=1 or ranks=1 and span=2)"
    of_two = ("-k", ways, "--set", "points=6", "--set", "places=1")
    done = place.seatrial(
        *("run", str(SUITE), "-m", str(place.machine), "--name", "t", *of_two),
        *("--set", "ranks=1,2", "--set", "span=1,2"),
        timeout=4 * LONG_S,
    )
    assert done.code == 0, done.said
    machines = []
    for judged in place.events("t", RunJudged):
        folder = place.trial("t").run("kpoints", judged.run_id)
        text = (folder / ".machines").read_text()
        machines += [re.sub(r"n\d+", "N", line) for line in text.splitlines() if line[0] == "1"]
    assert sorted(machines) == ["1:N:1 N:1", "1:N:2", "1:N:2"]


@pytest.mark.slurm(hosts=True)
def test_what_does_not_come_or_dies_is_named(place: Workplace, cluster: SlurmCluster) -> None:
    """A worker on a node that is not of the job, a replica that is killed, a command that fails."""
    place.slurm(cluster, toolchains={"plain": {"cflags": "-O0"}})
    broken = ("--set", "further=n099", "--set", "killed=1", "--set", "broken=5", "--name", "t")
    names = ("-k", "linda or replica or farm")
    done = place.seatrial("run", str(SUITE), "-m", str(place.machine), *names, *broken)
    assert done.code == 1, done.said
    reasons = told(place, "t")
    ((linda, why_linda),), ((replica, why_replica),) = reasons["linda"], reasons["replica"]
    assert (linda, replica) == ("failed", "failed")
    assert "worker on n099 never came: rsh ended with exit code 255" in why_linda
    assert "replica 1 on n00" in why_replica and "went away after 100 of 200" in why_replica
    ((farm, why_farm),) = reasons["farm"]
    assert farm == "failed" and "command 5 on n00" in why_farm and "exit code 7" in why_farm


def test_a_command_of_a_farm_that_fails_is_told_with_its_own_words(tmp_path: Path) -> None:
    """The last line of its stderr is in the reason; causes are sought at the end of it."""
    root = "mpirun has detected an attempt to run as root.\n\nProceed at your own risk."
    (tmp_path / "said").write_text(f"------\n{root}\n------\n")
    (tmp_path / "places").write_text("n001\n")
    (tmp_path / "commands").write_text("true\ncat said >&2; exit 3\necho >&2; exit 4\n")
    (tmp_path / "rsh").write_text('#!/bin/bash\nexec bash -c "$2"\n')
    (tmp_path / "rsh").chmod(0o755)
    done = subprocess.run(
        ["bash", str(SUITE / "farm/farm.sh"), "places", "commands"],
        cwd=tmp_path,
        env={**os.environ, "RSH": "./rsh"},
        capture_output=True,
        text=True,
        timeout=LONG_S,
        check=False,
    )
    assert done.returncode == 1 and "1 of 3 commands ended well" in done.stdout
    assert done.stderr.splitlines() == [
        *("------", *root.splitlines(), "------"),
        "seatrial: command 1 on n001 failed with exit code 3: cat said >&2; exit 3: "
        "Proceed at your own risk.",
        "seatrial: command 2 on n001 failed with exit code 4: echo >&2; exit 4",
    ]


def test_recipes_are_listed_for_a_large_machine(place: Workplace) -> None:
    nodes = [{"names": "n[0001-4096]", "cores": 96}]
    machine = {"machine": "large", "scheduler": "slurm", "nodes": nodes, "toolchains": {"gcc": {}}}
    place.machine.write_text(yaml.safe_dump(machine))
    words = ("--set", "hosts=1,4096", "--set", "workers=96", "--format", "json", "-k", "linda")
    done = place.seatrial("list", str(SUITE), "-m", str(place.machine), *words)
    assert done.code == 0, done.said
    assert {case["tasks"] for case in json.loads(done.out)} == {96, 96 * 4096}
