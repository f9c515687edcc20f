"""``seatrial machine``: show a machine file, or detect this machine."""

import click

from seatrial.cli import complete
from seatrial.cli.actions import action
from seatrial.cli.options import choice_option, format_option


@click.command("machine")
@click.argument("name", required=False, shell_complete=complete.machines)
@click.option("--detect", is_flag=True, help="Describe this host anew, whatever files say.")
@choice_option(
    "--scheduler",
    of=["local", "slurm", "pbs", "gridengine"],
    show_default=False,
    help="With --detect: describe this host, or the cluster that Slurm, PBS or Grid Engine shows.",
)
@click.option("--check", is_flag=True, help="Compare the file with what Slurm shows.")
@click.option("--topology", is_flag=True, help="Show its network: levels, hops, bisection.")
@click.option(
    "--pair", nargs=2, metavar="NODE NODE", help="With --topology: the path between two nodes."
)
@format_option("text", "json", help="With --topology: as text or as JSON.")
@action
def command() -> None:
    """Show a machine's description as YAML, or detect this machine.

    \b
    seatrial machine                                   this host
    seatrial machine --detect > machines/laptop.yaml   keep it, then edit it
    seatrial machine --detect --scheduler slurm        this login node's cluster
    seatrial machine frost --check                     the file beside Slurm
    seatrial machine frost --topology --pair n1 n9     its network
    """
