"""The line that starts a case's tasks: srun, mpirun, mpiexec or nothing."""

from __future__ import annotations

import os
import shlex

from seatrial.machine.model import Launcher, Machine
from seatrial.suite.model import Case, Test


def launcher_of(machine: Machine, test: Test, case: Case) -> Launcher:
    """The launcher of a case: what the test asks for, else the toolchain's own where the machine
    names none, else the machine's."""
    toolchain = machine.toolchains.get(case.toolchain)
    own = toolchain.launcher if toolchain else None
    wanted = test.run.launcher
    if wanted is None:
        return machine.launcher if machine.launcher.kind != "none" or own is None else own
    if machine.launcher.kind == wanted:
        return machine.launcher
    if own is not None and wanted in ("mpirun", "mpiexec"):
        return own
    return Launcher(kind=wanted)


def launch_line(machine: Machine, test: Test, case: Case) -> str:
    """The value of $LAUNCH, quoted for the shell; empty where the script starts itself."""
    launcher = launcher_of(machine, test, case)
    if launcher.kind == "none":
        return ""
    program = launcher.command or launcher.kind
    if launcher.kind == "srun":
        arguments = _srun(case)
    elif launcher.flavour == "openmpi":
        arguments = _openmpi(case, machine)
    elif launcher.flavour == "mpich":
        arguments = _mpich(case, machine)
    else:
        arguments = [f"-n={case.tasks}".replace("=", " ")]
    return " ".join([shlex.quote(program), *arguments, *map(shlex.quote, launcher.options)])


def _srun(case: Case) -> list[str]:
    return [
        f"--nodes={case.nodes}",
        f"--ntasks={case.tasks}",
        f"--ntasks-per-node={case.tasks_per_node}",
        f"--cpus-per-task={case.threads}",
    ]


def _openmpi(case: Case, machine: Machine) -> list[str]:
    """Each task is bound to its own cores where there are enough, else tasks share them unbound:
    the default would bind all threads of a task to one core."""
    line = ["-n", str(case.tasks)]
    if os.geteuid() == 0:
        line.append("--allow-run-as-root")
    if _fits(case, machine):
        line += ["--map-by", f"ppr:{case.tasks_per_node}:node:PE={case.threads}"]
        return [*line, "--bind-to", "core"]
    return [*line, "--oversubscribe", "--bind-to", "none"]


def _mpich(case: Case, machine: Machine) -> list[str]:
    line = ["-n", str(case.tasks), "-ppn", str(case.tasks_per_node)]
    return [*line, "-bind-to", f"core:{case.threads}"] if _fits(case, machine) else line


def _fits(case: Case, machine: Machine) -> bool:
    return case.tasks_per_node * case.threads <= min(kind.cores for kind in machine.nodes)
