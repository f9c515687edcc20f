"""The command line that starts the tasks of a case: srun, mpirun, mpiexec or none."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping

from seatrial.machine.model import Launcher, Machine
from seatrial.suite.model import Case, Test

_BINDING = re.compile(r"-bind-to[ =](\S*)")


def launcher_of(machine: Machine, test: Test, toolchain: str) -> Launcher:
    """Return the launcher of a test's cases: of the kind that the test asks for; else the
    machine's; else, where the machine names none, the toolchain's own."""
    chain = machine.toolchains.get(toolchain)
    own = chain.launcher if chain else None
    wanted = test.run.launcher
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
    kinds = dict.fromkeys((case.test, case.toolchain) for case in cases)
    found = [launcher_of(machine, tests[test], toolchain) for test, toolchain in kinds]
    return [one for i, one in enumerate(found) if one not in found[:i]]


def launch_line(machine: Machine, test: Test, case: Case) -> str:
    """Return the value of $LAUNCH, quoted for the shell; "" where the script starts itself."""
    launcher = launcher_of(machine, test, case.toolchain)
    if launcher.kind == "none":
        return ""
    program = shlex.quote(launcher.command or launcher.kind)
    if launcher.kind == "srun":
        arguments = _srun(case)
    else:
        arguments = ["-n", str(case.tasks), *_placement(launcher, machine, case)]
    return " ".join([program, *arguments, *map(shlex.quote, launcher.options)])


def _srun(case: Case) -> list[str]:
    """Return the size of the step. It gets the GPUs of its job, and all memory of it: a step takes
    the memory that it asks for from the steps beside it."""
    options = []
    if case.job.gpus_per_node:
        options.append(f"--gpus-per-node={case.job.gpus_per_node}")
    if case.job.gpus_per_task:
        options.append(f"--gpus-per-task={case.job.gpus_per_task}")
    if case.at_once > 1:
        options.append("--exact")  # other pieces have the other cores of the job
    if case.job.memory or case.at_once > 1:
        options.append("--mem=0")
    return [
        f"--nodes={case.nodes}",
        f"--ntasks={case.tasks}",
        f"--ntasks-per-node={case.tasks_per_node}",
        f"--cpus-per-task={case.threads}",
        *options,
    ]


def _placement(launcher: Launcher, machine: Machine, case: Case) -> list[str]:
    """Return the options that bind each task to cores of its own, or to none where there are too
    few. The default would bind all threads of a task to one core. Options of the machine about
    binding replace these."""
    per_node, threads = case.tasks_per_node, case.threads
    fits = per_node * threads <= min(kind.cores for kind in machine.nodes)
    bound = _BINDING.search(" ".join(launcher.options))
    if launcher.flavour == "openmpi":
        to = bound[1] if bound else "core" if fits else "none"
        # Open MPI 5 refuses PE together with another binding.
        cores = f":PE={threads}" if to.startswith(("core", "hwt")) else ""
        place = f"ppr:{per_node}:node{cores if fits else ':OVERSUBSCRIBE'}"
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        return [*root, "--map-by", place, *([] if bound else ["--bind-to", to])]
    if launcher.flavour == "mpich":
        ours = ["-bind-to", f"core:{threads}"] if fits and not bound else []
        return ["-ppn", str(per_node), *ours]
    return []
