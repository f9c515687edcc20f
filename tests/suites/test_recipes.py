"""The recipes that ship, for applications that Debian packages: run natively, and through Slurm."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.journal.events import RunJudged
from seatrial.judge.outputs.hpcc import FIGURES
from tests.programs import Done, Workplace
from tests.slurm.cluster import SlurmCluster
from tests.suites.short_probes import nodes_of
from tests.suites.test_probes import figures_of

RECIPES = Path(__file__).parents[2] / "suites" / "recipes"
OF_LAMMPS = {f"{name}{{run=1}}" for name in ("loop_time", "timesteps", "atom_steps", "speed")}
OF_RESTART = {"restart_bytes", "write_seconds", "read_seconds", "write", "read"}
EXPECTED = {
    "hpcc": set(FIGURES),
    "lammps/lj": OF_LAMMPS,
    "lammps/tersoff": OF_LAMMPS,
    "lammps/restart": OF_RESTART,
    "nwchem": {"total_seconds", "task_seconds", "iteration_seconds", "recomputed"},
}
PACKAGED = "not reaxff"  # Debian's LAMMPS has no ReaxFF
SMALL = ("--set", "n=200", "--set", "copies=1", "--set", "steps=20", "--set", "half=10")

needs_applications = pytest.mark.needs("hpcc", "lmp", "nwchem", "mpirun.openmpi")


def debian() -> dict[str, Any]:
    """The Open MPI of the packages. Its ranks do not bind, and yield: this host may be busy."""
    options = ["--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    launcher = {"kind": "mpirun", "flavour": "openmpi", "command": "mpirun.openmpi"}
    return {"debian": {"cflags": "-O0", "launcher": {**launcher, "options": options}}}


def run(place: Workplace) -> Done:
    machine = str(place.machine)
    words = ("-m", machine, *SMALL, "-k", PACKAGED, "--name", "t")
    return place.seatrial("run", str(RECIPES), *words, timeout=600)


@needs_applications
def test_every_recipe_gives_its_figures_here(place: Workplace) -> None:
    place.local(cores=2, toolchains=debian())
    done = run(place)
    assert done.code == 0, done.said
    assert figures_of(place, "t") == EXPECTED


@needs_applications
@pytest.mark.slurm
def test_every_recipe_runs_in_jobs(place: Workplace, cluster: SlurmCluster) -> None:
    place.slurm(cluster, nodes=nodes_of(cluster, 2), toolchains=debian())
    done = run(place)
    assert done.code == 0, done.said
    assert figures_of(place, "t") == EXPECTED


@needs_applications
def test_what_lammps_has_not_and_a_restart_that_goes_wrong(place: Workplace) -> None:
    place.local(cores=2, toolchains=debian())
    words = ("run", str(RECIPES), "-m", str(place.machine), "--set", "copies=1")
    assert place.seatrial(*words, "-k", "reaxff", "--name", "t").code == 1
    (judged,) = place.events("t", RunJudged)
    assert (judged.verdict, judged.cause) == ("failed", "no ReaxFF")
    forgets = place.folder / "bin" / "lmp"  # the velocities, as it goes on
    forgets.parent.mkdir()
    forgets.write_text(
        '#!/bin/bash\nsed "s/^pair_style/velocity all set 0 0 0\\npair_style/" in.restart > in.f\n'
        'case "$*" in *second*) set -- "${@/in.restart/in.f}" ;; esac\nexec /usr/bin/lmp "$@"\n'
    )
    forgets.chmod(0o755)
    place.env["PATH"] = f"{forgets.parent}:{os.environ['PATH']}"
    assert place.seatrial(*words, "-k", "restart", "--name", "u").code == 1
    (judged,) = place.events("u", RunJudged)
    assert judged.verdict == "wrong answer"
    assert "energy of the run that went on" in judged.reason, judged.reason


@needs_applications
def test_nwchem_without_convergence_space_or_its_geometry(place: Workplace) -> None:
    place.local(cores=1, toolchains=debian())
    words = ("run", str(RECIPES), "-m", str(place.machine), "-k", "nwchem")
    varied = ("--set", "iterations=2,30", "--set", "disk=24,100000000")
    assert place.seatrial(*words, *varied, "--name", "t").code == 1
    judged = [(run.verdict, run.cause) for run in place.events("t", RunJudged)]
    refused = ("refused", "")
    assert sorted(judged) == [("failed", "not converged"), ("pass", ""), refused, refused]
    export = json.loads(place.seatrial("export", "t", "--format", "json").out)
    figures = {figure["name"]: figure["value"] for figure in export["metrics"]}
    assert figures["recomputed"] == 0, "all integrals were kept on disk"
    assert not [*place.folder.rglob("nwchem.??????")], "scratch files are removed"
    longer = place.folder / "bin" / "nwchem"  # bonds, by 0.7 %
    longer.parent.mkdir()
    longer.write_text(
        '#!/bin/bash\nsed "s/0\\.625617/0.630000/g" "$1" > longer.nw\n'
        "exec /usr/bin/nwchem longer.nw\n"
    )
    longer.chmod(0o755)
    place.env["PATH"] = f"{longer.parent}:{os.environ['PATH']}"
    assert place.seatrial(*words, "--set", "copies=1", "--name", "u").code == 1
    (wrong,) = place.events("u", RunJudged)
    assert wrong.verdict == "wrong answer"
    assert "energy" in wrong.reason, wrong.reason


def test_what_is_not_installed_is_left_out(place: Workplace) -> None:
    place.env["PATH"] = str(place.folder)
    done = place.seatrial("list", str(RECIPES), "-m", str(place.machine))
    assert done.code == 2
    assert "hpcc" in done.err
    assert "lmp" in done.err
    assert "nwchem" in done.err


def test_recipes_are_listed_for_a_large_machine(place: Workplace) -> None:
    for name in ("hpcc", "lmp", "nwchem"):
        (place.folder / name).touch(mode=0o755)
    place.env["PATH"] = f"{place.folder}:/usr/bin:/bin"
    nodes = [{"names": "n[0001-4096]", "cores": 96}]
    machine = {"machine": "large", "scheduler": "slurm", "nodes": nodes, "toolchains": {"gcc": {}}}
    place.machine.write_text(yaml.safe_dump(machine))
    words = ("--set", "hosts=1,4096", "--format", "json")
    done = place.seatrial("list", str(RECIPES), "-m", str(place.machine), *words)
    assert done.code == 0, done.said
    cases = json.loads(done.out)
    assert {case["test"] for case in cases} == {*EXPECTED, "lammps/reaxff"}
    assert {case["tasks"] for case in cases} == {96, 96 * 4096}
