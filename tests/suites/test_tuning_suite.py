"""The applications that ship to be tuned: their answers for real, and their tunings."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.model.documents import Faults
from seatrial.model.tune_file import load_tune
from tests.programs import Workplace
from tests.slurm.cluster import SlurmCluster
from tests.suites.short_probes import nodes_of
from tests.suites.test_probes import figures_of
from tests.suites.test_recipes import debian

TUNING = Path(__file__).parents[2] / "suites" / "tuning"
APPLICATIONS = ("espresso", "gromacs", "lammps")
EXPECTED = {"espresso": {"scf_time"}, "gromacs": {"speed"}, "lammps": {"loop_time"}}
COARSE_ENERGY = -62.87357  # Ry, with one k-point in place of four, and a lower cut-off
COMMANDS = ("gmx", "gmx_mpi", "lmp", "pw.x")

needs_applications = pytest.mark.needs(*COMMANDS, "mpirun.openmpi")


@needs_applications
def test_every_application_gives_its_answer_here(place: Workplace) -> None:
    place.local(cores=1, toolchains=debian())  # a second rank would spin while it waits
    small = ("--set", "steps=20", "--set", "pages=thp", "--name", "t")
    done = place.seatrial("run", str(TUNING), "-m", str(place.machine), *small, timeout=600)
    assert done.code == 0, done.said
    assert figures_of(place, "t") == EXPECTED


def with_coarse_silicon(folder: Path) -> Path:
    """Copy the suite; its silicon takes a tenth of the time, and has the energy of that."""
    suite = folder / "tuning"
    shutil.copytree(TUNING, suite)
    for name, old, new in (
        ("si.in", "4 4 4 1 1 1", "2 2 2 1 1 1"),
        ("si.in", "ecutwfc = 18", "ecutwfc = 8"),
        ("test.yaml", "equals: -63.37744", f"equals: {COARSE_ENERGY}"),
    ):
        file = suite / "espresso" / name
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))
    return suite


@needs_applications
def test_a_wrong_energy_is_told(place: Workplace) -> None:
    """A lattice that is a little longer has another energy: the check is no formality."""
    test = with_coarse_silicon(place.folder) / "espresso"
    silicon = test / "si.in"
    silicon.write_text(silicon.read_text().replace("10.26", "10.36"))
    place.local(cores=1, toolchains=debian())
    done = place.seatrial("run", str(test), "-m", str(place.machine), "--name", "t", timeout=600)
    assert done.code == 1, done.said
    assert "wrong answer" in done.said
    assert "energy: " in done.said


SHORT: dict[str, dict[str, Any]] = {
    "espresso": {"axes": {"threads": [1], "pages": ["default", "thp"]}},
    "gromacs": {
        "axes": {"threads": [1], "pages": ["default", "thp"]},
        "parameters": {"steps": 10, "copies": 2},
    },
    "lammps": {
        "axes": {"threads": [1], "styles": ["plain", "opt"]},
        "parameters": {"steps": 10, "copies": 1},
    },
}


@needs_applications
@pytest.mark.slurm
@pytest.mark.parametrize("name", APPLICATIONS)
def test_a_tuning_in_jobs_ends_in_advice(
    name: str, place: Workplace, cluster: SlurmCluster
) -> None:
    """Two settings of each, in one allocation."""
    place.slurm(cluster, nodes=nodes_of(cluster, 1), toolchains=debian())
    about = yaml.safe_load((TUNING / name / "tune.yaml").read_text())
    about |= {
        "suite": str(with_coarse_silicon(place.folder)),
        "where": [],
        "cost": "100%",
        **SHORT[name],
    }
    about |= {"blocks": {"rounds": 1, "allocations": 1}}
    small = place.folder / "tune.yaml"
    small.write_text(yaml.safe_dump(about))
    done = place.seatrial("tune", str(small), "-m", str(place.machine), "--name", "t", timeout=300)
    assert done.code == 0, done.said
    found = json.loads(place.seatrial("advise", "t", "--format", "json").out)
    assert [each["n"] for each in found["settings"]] == [1, 1]
    assert found["advised"] == 0, "one run of each shows no difference"
    assert "mpirun.openmpi -n " in found["script"][-1]


@pytest.mark.parametrize("name", APPLICATIONS)
def test_a_tuning_is_loaded(name: str, place: Workplace) -> None:
    faults = Faults()
    loaded = load_tune(TUNING / name / "tune.yaml", faults)
    assert loaded is not None
    assert not faults.found
    assert {"threads", "spread", "pages"} <= set(loaded.tune.axes)


@pytest.mark.parametrize(("sockets", "domains"), [(1, 1), (2, 8)])
def test_all_cores_are_used_on_a_large_machine(
    place: Workplace, sockets: int, domains: int
) -> None:
    large_machine(place, cores=128, sockets=sockets, numa_domains=domains)
    words = ("--set", "hosts=1,512", "--set", "threads=1,2,8", "--set", "styles=plain,omp")
    done = place.seatrial("list", str(TUNING), "-m", str(place.machine), *words, "--format", "json")
    assert done.code == 0, done.said
    cases = json.loads(done.out)
    assert {case["test"] for case in cases} == set(APPLICATIONS)
    assert {case["tasks"] * case["parameters"]["threads"] for case in cases} == {128, 128 * 512}


def test_what_is_not_installed_is_left_out(place: Workplace) -> None:
    place.env["PATH"] = str(place.folder)
    done = place.seatrial("list", str(TUNING), "-m", str(place.machine))
    assert done.code == 2
    assert all(f"command {command}," in done.err for command in ("gmx", "lmp", "pw.x"))
    for name in APPLICATIONS:
        tune = str(TUNING / name / "tune.yaml")
        done = place.seatrial("tune", tune, "-m", str(place.machine))
        assert done.code == 2
        assert "PATH" in done.err
        assert "Traceback" not in done.err


def large_machine(place: Workplace, **node: Any) -> None:
    for name in COMMANDS:
        (place.folder / name).touch(mode=0o755)
    place.env["PATH"] = f"{place.folder}:/usr/bin:/bin"
    nodes = [{"names": "n[0001-0512]", **node}]
    machine = {"machine": "large", "scheduler": "slurm", "nodes": nodes, "toolchains": {"gcc": {}}}
    place.machine.write_text(yaml.safe_dump(machine))
