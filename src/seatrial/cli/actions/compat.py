"""``seatrial compat``: a cluster inside a job, by hand."""

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import click
from msgspec.structs import replace

from seatrial.cli.run import command as run_command
from seatrial.errors import UsageError
from seatrial.machine.check import fault_of_names, fault_of_quorum
from seatrial.machine.load import find_machine, machine_file
from seatrial.machine.model import Compat
from seatrial.runs import compat
from seatrial.runs.compat import attach
from seatrial.runs.compat.job_directory import CompatNodes, settings_of, write

DIRECTORY = "SEATRIAL_COMPAT_DIR"


def run(
    machine: str | None,
    mode: Literal["shim", "sshd"] | None,
    names: tuple[str, ...],
    quorum: str | None,
    words: tuple[str, ...],
) -> None:
    for name in names:
        if told := fault_of_names(name):
            raise UsageError(f"-e {told}")
    if quorum is not None and (told := fault_of_quorum(quorum)):
        raise UsageError(f"--quorum {told}")
    compat = find_machine(machine).machine.compat if machine else Compat()
    compat = replace(compat, mode=mode or compat.mode, quorum=quorum or compat.quorum)
    job, nodes = _job_here()
    settings = settings_of(compat, nodes)._replace(remove=True)
    base = Path(os.environ.get(DIRECTORY) or ".").absolute()
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"compat-{job}-", dir=base))
        write(folder, settings, [*compat.environment, *names])
    except OSError as error:
        raise UsageError(
            f"{base}: the directory of the compat job cannot be made: {error.strerror}; let "
            f"{DIRECTORY} name a folder that you can write, and that the nodes share"
        ) from error
    _become(["bash", str(folder / "compat.sh"), "run", *words], dict(os.environ))


_JOBS: tuple[tuple[str, CompatNodes], ...] = (
    ("SLURM_JOB_ID", "slurm"),
    ("PBS_JOBID", "pbs"),
)
# Schedulers whose jobs cannot become compat jobs, by a variable that they set in each.
_UNKNOWN = {"LSB_JOBID": "LSF", "FLUX_JOB_ID": "Flux", "PJM_JOBID": "PJM", "COBALT_JOBID": "Cobalt"}


def _job_here() -> tuple[str, CompatNodes]:
    """Return the id of the job in which this process is, and how its nodes are reached. Raises
    UsageError in a job of a scheduler of which this is not known: it would be of one host,
    whatever the job has."""
    environment = os.environ
    for name, nodes in _JOBS:
        if job := environment.get(name):
            return re.sub(r"[^A-Za-z0-9._-]", "_", job), nodes
    if environment.get("SGE_ROOT") and (job := environment.get("JOB_ID")):
        return job, "gridengine"
    for name, scheduler in _UNKNOWN.items():
        if name in environment:
            raise UsageError(
                f"this is a job of {scheduler} ({name} is set); a compat job needs one of Slurm, "
                f"Grid Engine or PBS. For this host alone: `env -u {name} seatrial compat run ...`"
            )
    return str(os.getpid()), "here"


def execute(x11: bool, job: str, node: str, words: tuple[str, ...]) -> None:
    _enter(job, node, words, x11)


def login(x11: bool, job: str, node: str) -> None:
    _enter(job, node, (), x11)


def _enter(job: str, node: str, words: tuple[str, ...], x11: bool) -> None:
    found = attach.find_job(job)
    where = attach.node_of(found, node)
    terminal = sys.stdin.isatty()
    line = attach.attach(found, where, words, terminal=terminal, x11=x11)
    _become(line, attach.outside(os.environ, found))


def _become(line: list[str], environment: dict[str, str]) -> None:
    sys.stdout.flush()
    os.execvpe(line[0], line, environment)


def text_of(name: str) -> str:
    """Return the job script of a template."""
    return (Path(compat.__file__).parent / "templates" / f"{name}.sh").read_text()


def template(name: str) -> None:
    click.echo(text_of(name), nl=False)


# ---- what each node has --------------------------------------------------------------------------

SUITE = Path(compat.__file__).parent / "check"


def check(
    context: click.Context,
    machine: str | None,
    mode: str | None,
    tag: str | None,
    scratch: str,
    x11: bool,
) -> int:
    settings = (f"scratch={scratch}", f"x11={'needed' if x11 else 'optional'}")
    with with_mode(machine, mode) as chosen:
        found: int = context.invoke(
            run_command, suites=(str(SUITE),), machine=chosen, tag=tag, settings=settings
        )
    return found


@contextmanager
def with_mode(machine: str | None, mode: str | None) -> Iterator[str | None]:
    """Yield the machine; with another mode of compat jobs, if one is asked for, as a file that
    includes the machine's own. The trial's record has all of it, so the file may go."""
    if mode is None:
        yield machine
        return
    file = machine_file(machine)
    if file is None:
        raise UsageError("--mode: no file describes this machine; name one with -m")
    with tempfile.TemporaryDirectory(prefix="seatrial-") as folder:
        changed = Path(folder) / file.name
        about = {"include": str(file.absolute()), "compat": {"mode": mode}}
        # plain: a folder that was made for it alone
        changed.write_text(json.dumps(about))  # JSON is YAML
        yield str(changed)
