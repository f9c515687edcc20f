"""The command line that starts the tasks of a case: srun, mpirun, mpiexec, aprun or none."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.file_model import Scalar
from seatrial.machine.model import Launcher, Machine
from seatrial.runs.binding import RANKFILE, aprun, mpi, numa_policy, rankfile, srun
from seatrial.runs.geometry import TaskGeometry, geometry_of
from seatrial.runs.rsh_launch import rsh_options
from seatrial.suite.asked_launcher import asked_launcher
from seatrial.suite.model import Case, Test


def launcher_of(
    machine: Machine, test: Test, toolchain: str, parameters: Mapping[str, Scalar]
) -> Launcher:
    """Return the launcher of a case: of the kind that its test asks for; else the machine's; else,
    where the machine names none, the toolchain's own. That of a compat job has the MPI of the
    toolchain or the machine, if it names none itself."""
    found = _of_kind(machine, test, toolchain, parameters)
    if found.kind != "compat" or _has_mpi(found):
        return found
    chain = machine.toolchains.get(toolchain)
    for one in (chain.launcher if chain else None, machine.launcher):
        if one is not None and one.kind in ("mpirun", "mpiexec"):
            return replace(one, kind="compat", command=one.command or one.kind)
    return found


def _has_mpi(launcher: Launcher) -> bool:
    return bool(launcher.command) or launcher.flavour != "other"


def _of_kind(
    machine: Machine, test: Test, toolchain: str, parameters: Mapping[str, Scalar]
) -> Launcher:
    chain = machine.toolchains.get(toolchain)
    own = chain.launcher if chain else None
    wanted = asked_launcher(test.run, parameters)
    if wanted is None:
        return machine.launcher if machine.launcher.kind != "none" or own is None else own
    if machine.launcher.kind == wanted:
        return machine.launcher
    if own is not None and wanted in ("mpirun", "mpiexec"):
        return own
    return Launcher(kind=wanted)


def launchers_of(
    machine: Machine, tests: Mapping[str, Test], cases: Iterable[Case]
) -> list[Launcher]:
    """Return the launchers of cases, each once."""
    found: list[Launcher] = []
    for case in cases:
        one = launcher_of(machine, tests[case.test], case.toolchain, case.parameters)
        if one not in found:
            found.append(one)
    return found


class LaunchLine(NamedTuple):
    """The value of $LAUNCH, quoted for the shell ("" where the script starts itself), and bash that
    writes the rankfile that it names."""

    line: str
    rankfile: str = ""


def launch_of(machine: Machine, test: Test, case: Case) -> LaunchLine:
    """Return how the tasks of a case are started."""
    launcher = launcher_of(machine, test, case.toolchain, case.parameters)
    policy = numa_policy(launcher, case)
    over_rsh = launcher.kind == "compat"
    if launcher.kind == "none" or (over_rsh and not _has_mpi(launcher)):
        return LaunchLine(" ".join(policy))
    found = geometry_of(machine, test, case)
    geometry = found if isinstance(found, TaskGeometry) else None
    if launcher.kind == "srun":
        arguments = [*_step(case), *srun(launcher, case, geometry), *_of_job(case)]
    elif launcher.kind == "aprun":
        arguments = aprun(case, geometry)
    else:
        arguments = ["-n", str(case.tasks), *(rsh_options(launcher.flavour) if over_rsh else [])]
        arguments += mpi(launcher, machine, case, geometry)
    program = shlex.quote(launcher.command or ("mpirun" if over_rsh else launcher.kind))
    words = [program, *arguments, *map(shlex.quote, launcher.options), *policy]
    if geometry is None or RANKFILE not in arguments:
        return LaunchLine(" ".join(words))
    return LaunchLine(" ".join(words), rankfile(machine, case, geometry))


def launch_line(machine: Machine, test: Test, case: Case) -> str:
    """Return the value of $LAUNCH."""
    return launch_of(machine, test, case).line


def _step(case: Case) -> list[str]:
    """Return the size of a step of srun."""
    return [
        f"--nodes={case.nodes}",
        f"--ntasks={case.tasks}",
        f"--ntasks-per-node={case.tasks_per_node}",
    ]


def _of_job(case: Case) -> list[str]:
    """Return what a step gets of its job: the GPUs, and all memory, because a step takes the memory
    that it asks for from the steps beside it."""
    options = []
    if case.job.gpus_per_node:
        options.append(f"--gpus-per-node={case.job.gpus_per_node}")
    if case.job.gpus_per_task:
        options.append(f"--gpus-per-task={case.job.gpus_per_task}")
    if case.at_once > 1:
        options.append("--exact")  # other pieces have the other cores of the job
    return [*options, *(["--mem=0"] if case.job.memory or case.at_once > 1 else [])]
