"""A case as lines of a job script of one's own: what its test asks of the scheduler, its variables
and settings, and the line that starts its tasks.

    job_lines(machine, test, case, ["threads", "pages"])
    # ["#SBATCH --nodes=1", ..., "# threads: 2", "# pages: thp", "export OMP_NUM_THREADS=2",
    #  "export GLIBC_TUNABLES=glibc.malloc.hugetlb=1", "srun --nodes=1 ... PROGRAM"]
"""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from seatrial.escaping import comment, shell_word
from seatrial.execute.backends import Job
from seatrial.execute.batch.batch import client_of
from seatrial.execute.environment import environment_lines, environments, exports
from seatrial.execute.launchers import launch_of
from seatrial.execute.script import run_variables, stripe_line, tunables_line
from seatrial.model.build import toolchain_of
from seatrial.model.identifiers import show
from seatrial.model.machine import Machine
from seatrial.model.task_placement import launcher_of
from seatrial.model.test import Case, Test
from seatrial.model.tune_file import setting_of

PROGRAM = "PROGRAM"  # stands for the program in a line that starts it

_OF_RUN = re.compile(r"\bjob\.[a-z]+\b")  # files that a run's directory has


def job_lines(machine: "Machine", test: "Test", case: "Case", axes: Sequence[str]) -> list[str]:
    """Return the lines of a job script that give a program what a case has. ``axes`` are the
    parameters that are named in comments. What a site's ``setup`` does is not among them."""
    return [
        *_request(machine, test, case),
        *(
            f"# {name}: {comment(show(value))}"
            for name, value in setting_of(case, list(axes)).items()
        ),
        *_variables(machine, test, case),
        *_directory(case),
        *_launch(machine, test, case),
    ]


def _request(machine: "Machine", test: "Test", case: "Case") -> list[str]:
    """Return the lines by which a job script asks the scheduler for its nodes and its time; none
    for this host, which has no scheduler."""
    if machine.scheduler == "local":
        return []
    job = Job(
        run_id="",
        path=Path(),
        nodes=case.nodes,
        tasks=case.tasks,
        tasks_per_node=case.tasks_per_node,
        threads=case.threads,
        walltime=case.walltime,
        node=case.node,
        exclusive=case.exclusive,
        features=tuple(test.requires.features),
        options=case.job,
    )
    client = client_of(machine)
    lines: list[str] = []
    for word in client.request_words(job, machine):
        if word.startswith("-") or not lines:
            lines.append(client.directive)
        lines[-1] += f" {shell_word(word)}"
    return lines


def _variables(machine: "Machine", test: "Test", case: "Case") -> list[str]:
    chain, found = toolchain_of(machine, test, case.toolchain), run_variables(machine, test, case)
    modules = [*machine.modules, *chain.modules, *test.modules, *found.modules]
    layers = [*environments(machine, test, case.toolchain), found.environment]
    lines = [f"module load {shlex.join(modules)}"] if modules else []
    pairs = [pair for layer in layers for pair in layer.items()]
    lines += [environment_lines({name: value}).rstrip() for name, value in pairs]
    own = {**found.parameters, "OMP_NUM_THREADS": case.threads}
    lines += [exports({name: value}).rstrip() for name, value in own.items()]
    return [*lines, *tunables_line(found.tunables).splitlines()]


def _directory(case: "Case") -> list[str]:
    settings = case.settings
    lines = [f"cd {shell_word(settings.directory)}"] if settings.directory else []
    return [*lines, *filter(None, [stripe_line(settings)])]


def _launch(machine: "Machine", test: "Test", case: "Case") -> list[str]:
    """Return the line that starts the tasks, after what it needs. A compat job has its own lines,
    and the line of a container is that of the site."""
    image = case.settings.container
    lines = [f"# in the container {comment(image)}"] if image else []
    if launcher_of(machine, test, case.toolchain, case.parameters).kind == "compat":
        return [*lines, "# in a compat job: seatrial compat template mpi"]
    bare = replace(case, settings=replace(case.settings, container=""))
    launch = launch_of(machine, test, bare)
    if not launch.line:
        return lines
    text = f"{launch.before}{launch.line} {PROGRAM}"
    made = set(re.findall(r">\| (job\.[a-z]+)", launch.before))
    needed = sorted(set(_OF_RUN.findall(text)) - made)
    if needed:
        lines.append(f"# {', '.join(needed)}: from the directory of a run with this setting")
    return [*lines, *text.replace("$_run/", "./").splitlines()]
