"""The command ``compat``."""

import click

from seatrial.cli.commands import act
from seatrial.cli.options import (
    choice_option,
    list_option,
    machine_option,
    value_option,
)

_mode_option = choice_option(
    "--mode",
    of=["shim", "sshd"],
    default=None,
    help="How ssh reaches a node: by a step of the job, or by an sshd; default: the machine's.",
)


_x11_option = click.option(
    "--x11", is_flag=True, help="Refuse if the job has no display (salloc --x11)."
)
TEMPLATES = ("mpi", "hybrid", "gaussian", "serial", "kpoints", "replica", "namd", "espresso")


@click.group("compat")
def compat() -> None:
    """Run a command in a compat job, or enter one.

    The nodes of a compat job look like a cluster of hosts with ssh.
    """


@compat.command("run", context_settings={"allow_interspersed_args": False})
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
@act("seatrial.plugins.compat.acts:run")
def compat_run() -> None:
    """Run COMMAND in the job in which this is typed, as a compat job.

    \b
    sbatch -N2 --wrap 'seatrial compat run -- ./farm.sh'
    salloc -N2 seatrial compat run bash

    Within COMMAND, ssh and rsh reach the nodes of the job; SEATRIAL_COMPAT/hosts
    lists them. The job is one of Slurm, Grid Engine or PBS; in no job, this host
    is the only node. The exit code is that of COMMAND.
    """


@compat.command("exec", context_settings={"allow_interspersed_args": False})
@_x11_option
@click.argument("job")
@click.argument("node")
@click.argument("words", nargs=-1, required=True, metavar="COMMAND...", type=click.UNPROCESSED)
@act("seatrial.plugins.compat.acts:execute")
def compat_exec() -> None:
    """Run COMMAND on NODE of your running compat job JOB.

    It gets the environment of the job and starts in the job's directory.
    """


@compat.command("login", short_help="Open a shell on a node of your running compat job.")
@_x11_option
@click.argument("job")
@click.argument("node", default="")
@act("seatrial.plugins.compat.acts:login")
def compat_login() -> None:
    """Open a shell on NODE (default: the first) of your running compat job JOB.

    It has the environment of the job, and ends with it.
    """


@compat.command("template")
@click.argument("name", type=click.Choice(TEMPLATES))
@act("seatrial.plugins.compat.acts:template")
def compat_template() -> None:
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


@compat.command("check")
@machine_option
@_mode_option
@click.option("--name", "tag", help="Tag of the trial; default: date, time and suite.")
@value_option(
    "--scratch", "FOLDER", "Where programs write on a node.", default="/tmp", show_default=True
)
@click.option("--x11", is_flag=True, help="A node without xauth fails, too.")
@click.pass_context
@act("seatrial.plugins.compat.acts:check")
def compat_check() -> None:
    """Check on each node what programs need.

    It is checked natively and in a compat job: ssh and rsh, names (getent), home, /tmp, /dev/shm,
    limits, locale, xauth, fork, dlopen, sockets. It is a trial with one run for each node and way;
    a node that lacks something fails, and its verdict names it.

    \b
    seatrial compat check -m frost
    seatrial compat check -m frost --mode sshd
    """
