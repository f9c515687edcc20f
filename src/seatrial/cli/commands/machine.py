"""The commands below "Describe the machine"."""

import click

from seatrial.cli.commands import act
from seatrial.cli.options import (
    choice_option,
    complete,
    format_option,
    selection_options,
)
from seatrial.model.schedulers import schedulers


@click.command("place")
@selection_options
@format_option("text", "json")
@act("seatrial.cli.suite:place")
def place() -> None:
    """Show on which cores of a node the tasks of each case run.

    SUITE is a folder with tests, or that of one test (default: the current one). Nothing is run.
    Cores are drawn by NUMA domain, each with the rank that has it; `.` is a free one. With a rank
    order these are slots, and the ranks of the slots of each node follow.
    """


@click.command("machine")
@click.argument("name", required=False, shell_complete=complete("machines"))
@click.option("--detect", is_flag=True, help="Describe this host anew, whatever files say.")
@choice_option(
    "--scheduler",
    of=list(schedulers()),
    show_default=False,
    help="With --detect: describe this host, or the cluster that Slurm, PBS or Grid Engine shows.",
)
@click.option("--check", is_flag=True, help="Compare the file with what Slurm shows.")
@click.option("--topology", is_flag=True, help="Show its network: levels, hops, bisection.")
@click.option(
    "--pair", nargs=2, metavar="NODE NODE", help="With --topology: the path between two nodes."
)
@format_option("text", "json", help="With --topology: as text or as JSON.")
@act("seatrial.cli.machine:machine")
def machine() -> None:
    """Show a machine's description as YAML, or detect this machine.

    \b
    seatrial machine                                   this host
    seatrial machine --detect > machines/laptop.yaml   keep it, then edit it
    seatrial machine --detect --scheduler slurm        this login node's cluster
    seatrial machine frost --check                     the file beside Slurm
    seatrial machine frost --topology --pair n1 n9     its network
    """
