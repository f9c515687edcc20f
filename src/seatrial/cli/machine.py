"""``seatrial machine``: show a machine file, or detect this machine."""

from __future__ import annotations

import click
import msgspec

from seatrial.cli import complete
from seatrial.lazy import yaml
from seatrial.machine.detect import detect as detect_host
from seatrial.machine.detect import this_host
from seatrial.machine.detect_slurm import detect_slurm
from seatrial.machine.load import find_machine


@click.command("machine")
@click.argument("name", required=False, shell_complete=complete.machines)
@click.option("--detect", is_flag=True, help="Describe this host anew, whatever files say.")
@click.option(
    "--scheduler",
    type=click.Choice(["local", "slurm"]),
    default="local",
    help="With --detect: describe this host, or the cluster that sinfo shows.",
)
def command(name: str | None, detect: bool, scheduler: str) -> int:
    """Show a machine's description as YAML, or detect this machine.

    \b
    seatrial machine                                   this host
    seatrial machine --detect > machines/laptop.yaml   keep it, then edit it
    seatrial machine --detect --scheduler slurm        this login node's cluster
    """
    if detect:
        found = detect_slurm(name) if scheduler == "slurm" else detect_host(name or this_host())
    else:
        found = find_machine(name).machine
    values = msgspec.to_builtins(found)
    click.echo(yaml.safe_dump(values, sort_keys=False, width=88), nl=False)
    return 0
