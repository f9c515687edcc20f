"""A case as lines of a job script: what they say, and that a job of them gets what a run gets."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from seatrial.model.machine import Launcher, Machine, NodeGroup, PageSettings, Toolchain
from seatrial.model.schedulers import Slurm
from seatrial.model.test import (
    Case,
    FromParameter,
    JobOptions,
    Requires,
    RunSettings,
    RunSpec,
    TaskPlacement,
    Test,
)
from seatrial.plugins.gridengine import GridEngine
from seatrial.plugins.pbs import Pbs
from seatrial.results.tuned import job_lines
from tests.execute.helpers import a_case
from tests.programs import Workplace
from tests.slurm.cluster import SlurmCluster
from tests.waiting import until

TEST = Test(
    name="t",
    folder="/t",
    app="t",
    modules=["fftw"],
    parameters={"places": [], "threads": []},
    environment={"OMP_PLACES": FromParameter("places"), "WORDS": "two words"},
    run=RunSpec(script="$LAUNCH app"),
)


def a_machine(**keys: Any) -> Machine:
    kind = NodeGroup(names="n[1-4]", cores=24, gpus=2, layout="pack:2 numa:2 core:6 pu:1")
    usual: dict[str, Any] = {
        "scheduler": "slurm",
        "slurm": Slurm(whole_nodes=True, partition="batch", options=["--mail-type=NONE"]),
        "launcher": Launcher(kind="srun"),
        "toolchains": {"gcc": Toolchain(modules=["gcc/12"], environment={"CHAIN": "1"})},
    }
    return Machine(machine="m", nodes=[kind], **{**usual, **keys})


def of(**keys: Any) -> Case:
    case = a_case(places="{0},{6}", threads=3)
    shape: dict[str, Any] = {"tasks": 8, "tasks_per_node": 4, "nodes": 2, "threads": 3}
    return msgspec.structs.replace(case, **{**shape, **keys})


def test_all_that_a_setting_has_is_in_the_lines() -> None:
    settings = RunSettings(
        pages="thp",
        malloc={"arena_max": 1},
        stripe_count=4,
        directory="/scratch",
        container="a.sif",
    )
    job = JobOptions(memory=4 << 30, qos="debug", gpus_per_node=2)
    case = of(settings=settings, job=job, placement=TaskPlacement(spread="pack"), exclusive=True)
    assert job_lines(a_machine(), TEST, case, ["threads"]) == [
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks=8",
        "#SBATCH --ntasks-per-node=4",
        "#SBATCH --cpus-per-task=3",
        "#SBATCH --time=1",
        "#SBATCH --exclusive",
        "#SBATCH --partition=batch",
        "#SBATCH --qos=debug",
        "#SBATCH --gpus-per-node=2",
        "#SBATCH --mem=4096M",
        "#SBATCH --mail-type=NONE",
        "# threads: 3",
        "module load gcc/12 fftw",
        "export CHAIN=1",
        "export WORDS='two words'",
        "export OMP_PLACES='{0},{6}'",
        "export OMP_NUM_THREADS=3",
        "export GLIBC_TUNABLES=${GLIBC_TUNABLES:+$GLIBC_TUNABLES:}glibc.malloc.arena_max=1:"
        "glibc.malloc.hugetlb=1",
        "cd /scratch",
        "lfs setstripe -c 4 .",
        "# in the container a.sif",
        "srun --nodes=2 --ntasks=8 --ntasks-per-node=4 "
        "--cpu-bind=mask_cpu:0x7,0x38,0x1c0,0xe00 --gpus-per-node=2 --mem=0 PROGRAM",
    ]


def test_lines_of_pbs() -> None:
    pbs = Pbs(queue="prod", account="acc", options=["-M", "me@here"])
    machine = replace(a_machine(scheduler="pbs", launcher=Launcher(kind="none")), pbs=pbs)
    test = msgspec.structs.replace(
        TEST, modules=[], environment={}, requires=Requires(features=["rome"])
    )
    assert job_lines(machine, test, of(exclusive=True), [])[:7] == [
        "#PBS -l select=2:ncpus=12:mpiprocs=4:ompthreads=3:rome=True",
        "#PBS -l place=scatter:excl",
        "#PBS -l walltime=60",
        "#PBS -q prod",
        "#PBS -A acc",
        "#PBS -M me@here",
        "module load gcc/12",
    ]


def test_lines_of_grid_engine() -> None:
    settings = GridEngine(queue="all.q", parallel={"mpi-12": 12}, exclusive="excl")
    none = Launcher(kind="none")
    machine = replace(a_machine(scheduler="gridengine", launcher=none), gridengine=settings)
    assert job_lines(machine, TEST, of(exclusive=True), [])[:3] == [
        "#$ -l h_rt=60,excl=true",
        "#$ -pe mpi-12 24",
        "#$ -q all.q",
    ]


def test_a_host_without_a_scheduler_has_no_lines_for_one() -> None:
    lines = job_lines(
        replace(a_machine(), scheduler="local"), TEST, of(exclusive=True), ["threads"]
    )
    assert lines[0].startswith("# threads: ") and not [line for line in lines if "#SBATCH" in line]


def test_pages_as_the_site_gives_them() -> None:
    site = PageSettings(modules=["craype-hugepages2M"], environment={"HUGETLB_MORECORE": "yes"})
    lines = job_lines(a_machine(pages={"2M": site}), TEST, of(settings=RunSettings(pages="2M")), [])
    assert "module load gcc/12 fftw craype-hugepages2M" in lines
    assert "export HUGETLB_MORECORE=yes" in lines
    assert not [line for line in lines if "GLIBC_TUNABLES" in line]


def test_files_of_a_run_are_made_or_named(tmp_path: Path) -> None:
    """A rankfile is written by the lines; what Seatrial wrote for the run is named."""
    openmpi = Launcher(kind="mpirun", flavour="openmpi")
    shape = {"nodes": 1, "tasks": 6, "tasks_per_node": 6, "threads": 2}
    lines = job_lines(a_machine(launcher=openmpi), TEST, of(**shape), [])
    assert lines[-1].endswith("--rankfile job.rankfile PROGRAM")
    assert not [line for line in lines if line.startswith("# job.")]
    start = next(at for at, line in enumerate(lines) if line.startswith("_cores="))
    script = "\n".join(lines[start:-1])
    subprocess.run(["bash", "-euc", script], cwd=tmp_path, check=True)
    assert len((tmp_path / "job.rankfile").read_text().splitlines()) == 6
    lines = job_lines(a_machine(), TEST, of(order="folded"), [])
    assert "# job.nodefile: from the directory of a run with this setting" in lines
    assert lines[-1].endswith("--nodelist=./job.nodefile --distribution=arbitrary PROGRAM")


def test_jobs_that_start_in_another_way() -> None:
    lines = job_lines(a_machine(launcher=Launcher(kind="none")), TEST, of(), [])
    assert lines[-1] == "export OMP_NUM_THREADS=3"
    compat = Launcher(kind="compat", flavour="openmpi")
    lines = job_lines(a_machine(launcher=compat), TEST, of(), [])
    assert lines[-1] == "# in a compat job: seatrial compat template mpi"


PROGRAM = """bash -c 'echo "rank $SLURM_PROCID, $OMP_NUM_THREADS, $OMP_PLACES, $GLIBC_TUNABLES"'"""


@pytest.mark.slurm
def test_a_job_of_the_lines_gets_what_the_runs_got(
    place: Workplace, cluster: SlurmCluster, tmp_path: Path
) -> None:
    place.slurm(cluster, launcher={"kind": "srun"})
    place.test(
        "app",
        f"$LAUNCH {PROGRAM}",
        parameters={"places": ["cores"]},
        environment={"OMP_PLACES": {"parameter": "places"}},
        run={"nodes": 2, "pages": "thp"},
    )
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    ran = sorted((place.run_folder("app") / "stdout").read_text().splitlines())
    record, (case,) = place.trial().record(), place.trial().cases()
    lines = job_lines(record.machine, record.tests["app"], case, [])
    text = "\n".join(["#!/bin/bash", *lines]).replace("PROGRAM", PROGRAM)
    (tmp_path / "job.sh").write_text(text)
    said = tmp_path / "said"
    cluster.run("sbatch", f"--output={said}", str(tmp_path / "job.sh"))
    until(lambda: said.exists() and len(said.read_text().splitlines()) == 2, "its ranks speak")
    assert sorted(said.read_text().splitlines()) == ran
    assert ran == [f"rank {rank}, 1, cores, glibc.malloc.hugetlb=1" for rank in (0, 1)]
