"""``seatrial compat``: a cluster inside a job, by hand."""

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import click
from msgspec.structs import replace

from seatrial.cli.commands.run import run as run_suite
from seatrial.cli.options import choice_option, list_option, machine_option, value_option
from seatrial.errors import UsageError
from seatrial.execute.detect import find_machine
from seatrial.model.machine_file import machine_file
from seatrial.plugins import compat
from seatrial.plugins.compat import attach
from seatrial.plugins.compat.keys import Compat, check_quorum, check_variables
from seatrial.plugins.compat.run import CompatNodes, compat_of, settings_of, write

DIRECTORY = "SEATRIAL_COMPAT_DIR"


_JOBS: tuple[tuple[str, CompatNodes], ...] = (
    ("SLURM_JOB_ID", "slurm"),
    ("PBS_JOBID", "pbs"),
)


# Schedulers whose jobs cannot become compat jobs, by a variable that they set in each.
_UNKNOWN = {"LSB_JOBID": "LSF", "FLUX_JOB_ID": "Flux", "PJM_JOBID": "PJM", "COBALT_JOBID": "Cobalt"}


SUITE = Path(compat.__file__).parent / "check"


_mode_option = choice_option(
    "--mode",
    of=["shim", "sshd"],
    default=None,
    help="How ssh reaches a node: by a step of the job, or by an sshd; default: the machine's.",
)


_x11_option = click.option(
    "--x11", is_flag=True, help="Refuse if the job has no display (salloc --x11)."
)


@click.group("compat")
def command() -> None:
    """Run a command in a compat job, or enter one.

    The nodes of a compat job look like a cluster of hosts with ssh.
    """


@command.command("run", context_settings={"allow_interspersed_args": False})
@machine_option
@_mode_option
@list_option(
    "-e",
    "--environment",
    "names",
    "NAME",
    "Pass this variable to the nodes, too; FLUENT_* passes all that begin so.",
)
@value_option(
    "--quorum",
    "NODES",
    "Go on if so many nodes answer, or so many per cent (95%); default: the machine's.",
)
@click.argument("words", nargs=-1, required=True, metavar="COMMAND...", type=click.UNPROCESSED)
def run(
    machine: str | None,
    mode: Literal["shim", "sshd"] | None,
    names: tuple[str, ...],
    quorum: str | None,
    words: tuple[str, ...],
) -> None:
    """Run COMMAND in the job in which this is typed, as a compat job.

    \b
    sbatch -N2 --wrap 'seatrial compat run -- ./farm.sh'
    salloc -N2 seatrial compat run bash

    Within COMMAND, ssh and rsh reach the nodes of the job; SEATRIAL_COMPAT/hosts
    lists them. The job is one of Slurm, Grid Engine or PBS; in no job, this host
    is the only node. The exit code is that of COMMAND.
    """
    for name in names:
        _require(check_variables, name, "-e")
    if quorum is not None:
        _require(check_quorum, quorum, "--quorum")
    compat = compat_of(find_machine(machine).machine) if machine else Compat()
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


@command.command("exec", context_settings={"allow_interspersed_args": False})
@_x11_option
@click.argument("job")
@click.argument("node")
@click.argument("words", nargs=-1, required=True, metavar="COMMAND...", type=click.UNPROCESSED)
def execute(x11: bool, job: str, node: str, words: tuple[str, ...]) -> None:
    """Run COMMAND on NODE of your running compat job JOB.

    It gets the environment of the job and starts in the job's directory.
    """
    _enter(job, node, words, x11)


@command.command("login", short_help="Open a shell on a node of your running compat job.")
@_x11_option
@click.argument("job")
@click.argument("node", default="")
def login(x11: bool, job: str, node: str) -> None:
    """Open a shell on NODE (default: the first) of your running compat job JOB.

    It has the environment of the job, and ends with it.
    """
    _enter(job, node, (), x11)


TEMPLATES = ("mpi", "hybrid", "gaussian", "serial", "kpoints", "replica", "namd", "espresso")


@command.command("template")
@click.argument("name", type=click.Choice(TEMPLATES))
def template(name: str) -> None:
    """Print a job script whose comments say what to change.

    \b
    mpi       an MPI program, by Open MPI, MPICH or Intel MPI over rsh
    hybrid    MPI between nodes, OpenMP within
    gaussian  Gaussian (g09, g16) with Linda
    serial    a farm of serial commands on all cores
    kpoints   WIEN2k, k-points in parallel by .machines
    replica   replica exchange over sockets
    namd      NAMD or another program of Charm++, by a nodelist
    espresso  Quantum ESPRESSO with its k-points in pools, by MPI

    \b
    seatrial compat template gaussian > job.sh && sbatch job.sh input.com
    """
    click.echo(text_of(name), nl=False)


@command.command("check")
@machine_option
@_mode_option
@click.option("--name", "tag", help="Tag of the trial; default: date, time and suite.")
@value_option(
    "--scratch", "FOLDER", "Where programs write on a node.", default="/tmp", show_default=True
)
@click.option("--x11", is_flag=True, help="A node without xauth fails, too.")
@click.pass_context
def check(
    context: click.Context,
    machine: str | None,
    mode: str | None,
    tag: str | None,
    scratch: str,
    x11: bool,
) -> int:
    """Check on each node what programs need.

    It is checked natively and in a compat job: ssh and rsh, names (getent), home, /tmp, /dev/shm,
    limits, locale, xauth, fork, dlopen, sockets. It is a trial with one run for each node and way;
    a node that lacks something fails, and its verdict names it.

    \b
    seatrial compat check -m frost
    seatrial compat check -m frost --mode sshd
    """
    settings = (f"scratch={scratch}", f"x11={'needed' if x11 else 'optional'}")
    with with_mode(machine, mode) as chosen:
        code: int = context.invoke(
            run_suite, suites=(str(SUITE),), machine=chosen, tag=tag, settings=settings
        )
    return code


def _require(rule: Callable[[str], None], text: str, option: str) -> None:
    """Raise UsageError if the value of an option breaks a rule."""
    try:
        rule(text)
    except ValueError as error:
        raise UsageError(f"{option} {error}") from None


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


def _enter(job: str, node: str, words: tuple[str, ...], x11: bool) -> None:
    running = attach.find_job(job)
    where = attach.node_of(running, node)
    terminal = sys.stdin.isatty()
    line = attach.attach(running, where, words, terminal=terminal, x11=x11)
    _become(line, attach.outside(os.environ, running))


def _become(line: list[str], environment: dict[str, str]) -> None:
    sys.stdout.flush()
    os.execvpe(line[0], line, environment)


def text_of(name: str) -> str:
    """Return the job script of a template."""
    return (Path(compat.__file__).parent / "templates" / f"{name}.sh").read_text()


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
