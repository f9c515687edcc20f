"""The guard finds the program of a launch line: behind options, their values, and tools."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from seatrial.execute.launchers import launch_of
from seatrial.model.machine import Launcher
from seatrial.model.task_placement import with_proof
from seatrial.model.test import JobOptions, RunSettings
from seatrial.plugins.guard.launch_rules import LaunchRule, rules_header
from seatrial.plugins.guard.program import compile_to
from tests.execute.test_binding import (
    APRUN,
    HOPPER,
    LAUNCHERS,
    MPICH,
    OPENMPI,
    TEST,
    a_machine_of,
    of_shape,
)
from tests.mpich import MPIEXEC, NEEDS_MPICH
from tests.plugins.guard import programs_to_judge as programs

pytestmark = pytest.mark.usefixtures("quick_compiler")
RULE = LaunchRule(name="no-mpt2", refuse='name == "mpt2.x"', message="MPT 2 stops the machine.")
# Makes the file that its first argument names.
TOUCHING = """
#include <fcntl.h>
int main(int count, char **words) { return count > 1 && creat(words[1], 0600) < 0; }
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the guard, programs, and what stands for programs in the values of options."""
    folder: Path = tmp_path_factory.mktemp("launches")
    (folder / "log").mkdir()
    compile_to(folder / "guard", rules_header([RULE], str(folder / "log")))
    programs.compiled(folder, "mpt2.x", TOUCHING)
    programs.compiled(folder, "good.x", programs.PLAIN)
    for name in ("rsh", "ssh", "apptainer"):
        programs.compiled(folder, name, programs.PLAIN)
    (folder / "own.sh").write_text('#!/bin/sh\nexec "$@"\n')
    (folder / "own.sh").chmod(0o755)
    (folder / "cut.x").write_bytes((folder / "good.x").read_bytes()[:2000])
    (folder / "cut.x").chmod(0o755)
    (folder / "mpt2.sh").write_text("./mpt2.x\n")
    (folder / "sub").mkdir()
    programs.compiled(folder / "sub", "mpt2.x", TOUCHING)
    return folder


def asked(place: Path, *words: str, launcher: str = "") -> tuple[int, dict[str, str]]:
    """Return the exit code of the guard, and what it says, by its first words."""
    line = ["./guard", "launch", *(["-l", launcher] if launcher else []), "--", *words]
    environment = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}"}
    done = subprocess.run(line, cwd=place, env=environment, capture_output=True, text=True)
    told = dict(each.split("\t", 1) for each in done.stdout.splitlines())
    assert done.returncode == int("refuse" in told) and not done.stderr, done
    return done.returncode, told


REFUSED = """\
mpirun -n 2 mpt2.x
mpirun -n 2 --mca plm_ssh_agent ssh mpt2.x
mpirun --mca plm_rsh_agent rsh --mca btl tcp,self --hostfile job.hosts -np 2 ./mpt2.x in.txt
mpirun --prtemca plm_ssh_agent rsh --map-by ppr:1:numa:PE=3 --bind-to core mpt2.x
mpirun -gmca btl self -x PATH -H good.x,n2 -wdir sub ./mpt2.x
mpirun --host good.x --rankfile good.x --tag-output --report-bindings mpt2.x
mpirun -n 1 good.x : -n 2 -x A=good.x mpt2.x
mpirun --app=good.x -n2 mpt2.x
mpirun --new-option mpt2.x
mpirun --new-option rsh mpt2.x
mpiexec -launcher ssh -launcher-exec rsh -f machines -n 2 mpt2.x
mpiexec -bootstrap ssh -bootstrap-exec rsh -genv A good.x -env B=1 -ppn 2 mpt2.x
mpiexec -genvlist A,B -hosts good.x,n2 -bind-to user:0+1 -map-by numa -l mpt2.x
mpiexec -n 4 --ppn 4 --depth 3 --cpu-bind list:0-2 mpt2.x
mpiexec -outfile-pattern good.x -prepend-rank -iface rsh -np 2 mpt2.x
srun -N2 -n 4 --ntasks-per-node 2 -p good.x -J rsh mpt2.x
srun -lu -c3 --cpu-bind=none --mpi pmix --exp ALL -w good.x mpt2.x
srun --chdir sub ./mpt2.x
srun -D sub -K -I30 --exact ./mpt2.x
aprun -n 24 -N 24 -S 6 -d 1 -cc cpu -ss -L good.x mpt2.x
jsrun -n 2 -a 4 -c 12 -g 6 -r 1 -d packed -b packed:3 mpt2.x
mpirun -n 2 taskset -c 0 mpt2.x
mpirun -n 2 env -i -u HOME --chdir=sub A=1 B=./good.x mpt2.x
mpirun numactl -m 0 --cpunodebind 0 mpt2.x
mpirun numactl --localalloc taskset 0x1 ./mpt2.x
mpirun /usr/bin/time -v -o good.x mpt2.x
mpirun time -f %e mpt2.x
mpirun timeout -k 3 --signal TERM 1h mpt2.x
mpirun nice -n 5 ionice -c 2 -n 0 mpt2.x
mpirun setarch x86_64 -R mpt2.x
mpirun setarch -R mpt2.x
mpirun stdbuf -oL -e 0 mpt2.x
mpirun chrt -f 1 nohup setsid -w mpt2.x
mpirun /lib64/ld-linux-x86-64.so.2 --library-path /good.x ./mpt2.x
mpirun ./own.sh -v 3 ./mpt2.x
mpirun apptainer exec image.sif ./mpt2.x
mpirun ./job.gpus ./job.bind ./job.container mpt2.x
argv env A=1 numactl -l mpt2.x --mca a b
argv ./mpt2.x
shell A=1 exec ./mpt2.x -n 3
shell cd sub && env "A=b c" './mpt2.x' > out; true
shell true; (/usr/bin/time ./mpt2.x) | cat"""


@pytest.mark.parametrize("line", REFUSED.splitlines())
def test_the_program_is_found(place: Path, line: str) -> None:
    launcher, words = line.split(" ", 1)
    if launcher == "shell":
        assert asked(place, words, launcher=launcher)[0] == 1
        return
    code, told = asked(place, *shlex.split(words), launcher=launcher)
    assert code == 1 and told["refuse"].endswith("/mpt2.x: MPT 2 stops the machine. (rule no-mpt2)")
    if launcher not in ("argv", "jsrun") and " -d" not in line:  # any launcher knows the others'
        assert asked(place, *shlex.split(words))[0] == 1


@pytest.mark.parametrize(
    "line",
    [
        "mpirun -n 2 good.x mpt2.x",
        "mpirun -n 2 --mca plm_ssh_agent mpt2.x good.x",
        "mpirun -x mpt2.x -n 2 taskset -c 0 ./good.x ./mpt2.x",
        "srun -J mpt2.x -n2 good.x",
        "mpirun -n 1 good.x : -n 1 env A=mpt2.x good.x -x mpt2.x",
        "argv good.x -n 2 : mpt2.x",
        "mpirun /usr/bin/env : good.x : /usr/bin/time :",
        "shell echo mpt2.x; good.x ./mpt2.x",
    ],
)
def test_values_and_arguments_are_no_programs(place: Path, line: str) -> None:
    launcher, words = line.split(" ", 1)
    told = asked(place, *([words] if launcher == "shell" else words.split()), launcher=launcher)
    assert told == (0, {})


@pytest.mark.parametrize(
    ("line", "reason", "logged"),
    [
        ("mpirun -n 2 none.x ./mpt2.x", "none.x: no program is found in the launch line", True),
        ("mpirun -configfile mpt2.x", "launch line: no program is found in the launch", True),
        ("srun --multi-prog mpt2.sh", "mpt2.sh: no program is found in the launch line", True),
        ("mpirun env -S ./mpt2.x", "/usr/bin/env: no program is found behind it", True),
        ("mpirun taskset -p 1", "/usr/bin/taskset: no program is found behind it", True),
        ("mpirun -n 2 cut.x", "cut.x: is no whole program of a kind that the guard reads", True),
        ("argv bash -c ./mpt2.x", "what a shell starts is not seen", False),
        ("argv bash -e mpt2.sh", "what a shell starts is not seen", False),
        ("argv ./own.sh", "own.sh: what it starts is not seen", False),
    ],
)
def test_a_launch_that_is_not_judged_goes_on_and_is_told(
    place: Path, line: str, reason: str, logged: bool
) -> None:
    launcher, words = line.split(" ", 1)
    log = place / "log" / f"{os.geteuid()}.log"
    before = log.read_text().count("\tunjudged\t") if log.exists() else 0
    code, told = asked(place, *words.split(), launcher=launcher)
    assert code == 0 and reason in told["unjudged"], told
    after = log.read_text().count("\tunjudged\t") if log.exists() else 0
    assert after - before == int(logged)


LAUNCHES = [
    *LAUNCHERS.values(),
    Launcher(kind="jsrun"),
    Launcher(kind="none"),
    *(replace(each, kind="compat") for each in (OPENMPI, MPICH)),
    *(replace(each, options=["--verbose"]) for each in (OPENMPI, APRUN)),
]


def test_behind_every_line_that_seatrial_makes(place: Path) -> None:
    """Those of each launcher, with tasks on cores and NUMA domains, GPUs, containers, recorders."""
    placements: list[dict[str, Any]] = [
        {},
        {"bind": "none"},
        {"bind": "numa", "numa_policy": "local"},
        {"spread": "socket", "numa_policy": "interleave"},
    ]
    recorded = replace(TEST, run=replace(TEST.run, pattern=True))
    proved = with_proof(replace(TEST, run=replace(TEST.run, prove=True)))
    kinds = [*product((1, 2), ("", "/i.sif"), (TEST, recorded, proved), (0, 1))]
    lines = set()
    for launcher, placement, layout in product(LAUNCHES, placements, (HOPPER, None)):
        machine = a_machine_of(launcher, layout)
        for nodes, container, test, gpus in kinds:
            case = of_shape(4, 3, nodes, **placement)
            settings = RunSettings(container=container)
            case = replace(case, settings=settings, job=JobOptions(gpus_per_task=gpus))
            lines.add(launch_of(machine, test, case).line)
    assert len(lines) > 100
    assert any("rsh" in line for line in lines) and any("./job.container" in line for line in lines)
    assert any("./job.threads" in line for line in lines)
    for line in sorted(lines):
        name, *words = [*shlex.split(line), "./mpt2.x"]
        if name.startswith("."):  # there is no launcher
            name, words = "", [name, *words]
        assert asked(place, *words, launcher="" if name == "numactl" else name)[0] == 1, line


def run_and_judged(place: Path, command: Path | str, *words: str) -> None:
    environment = {
        **os.environ,
        "PATH": f"{place}:{os.environ['PATH']}",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    done = subprocess.run([command, *words], env=environment, capture_output=True, cwd=place)
    assert done.returncode == 0, done.stderr
    assert (place / "ran").exists()
    (place / "ran").unlink()
    assert asked(place, *words, launcher=Path(command).name.partition(".")[0])[0] == 1


@pytest.mark.needs("mpicc")
@pytest.mark.parametrize("command", [Path(sys.prefix) / "bin/mpirun", Path("/usr/bin/mpirun")])
def test_open_mpi_starts_the_program_that_the_guard_finds(place: Path, command: Path) -> None:
    """Open MPI 5 of the environment, and the one of the system where there is one."""
    if not command.exists():
        pytest.skip(f"{command} is not here")
    agents = [word for name in ("ssh", "rsh") for word in ("--mca", f"plm_{name}_agent", "rsh")]
    tools = ["env", "A=1", "timeout", "20", "taskset", "-c", "0"]
    words = ["--bind-to", "none", "-x", "HOME", "-n", "1", "-wdir", str(place / "sub"), *tools]
    run_and_judged(place, command, *agents, *words, "./mpt2.x", str(place / "ran"))


@NEEDS_MPICH
def test_mpich_starts_the_program_that_the_guard_finds(place: Path) -> None:
    options = ["-launcher", "ssh", "-launcher-exec", "rsh", "-genv", "A", "./good.x", "-n", "1"]
    run_and_judged(place, MPIEXEC, *options, "timeout", "20", "./mpt2.x", str(place / "ran"))
