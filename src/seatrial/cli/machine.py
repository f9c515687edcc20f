"""``seatrial machine``: show a machine file, or detect this machine."""

from __future__ import annotations

import click
import msgspec

from seatrial.cli import complete, topology_page
from seatrial.errors import UsageError
from seatrial.lazy import yaml
from seatrial.machine.check_slurm import differences
from seatrial.machine.detect import detect as detect_host
from seatrial.machine.detect import this_host
from seatrial.machine.detect_slurm import detect_cluster
from seatrial.machine.load import find_machine
from seatrial.machine.model import Machine
from seatrial.units import count


@click.command("machine")
@click.argument("name", required=False, shell_complete=complete.machines)
@click.option("--detect", is_flag=True, help="Describe this host anew, whatever files say.")
@click.option(
    "--scheduler",
    type=click.Choice(["local", "slurm"]),
    default="local",
    help="With --detect: describe this host, or the cluster that sinfo shows.",
)
@click.option("--check", is_flag=True, help="Compare the file with what Slurm shows.")
@click.option("--topology", is_flag=True, help="Show its network: levels, hops, bisection.")
@click.option(
    "--pair", nargs=2, metavar="NODE NODE", help="With --topology: the path between two nodes."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="With --topology: as text or as JSON.",
)
def command(
    name: str | None,
    detect: bool,
    scheduler: str,
    check: bool,
    topology: bool,
    pair: tuple[str, str] | None,
    form: str,
) -> int:
    """Show a machine's description as YAML, or detect this machine.

    \b
    seatrial machine                                   this host
    seatrial machine --detect > machines/laptop.yaml   keep it, then edit it
    seatrial machine --detect --scheduler slurm        this login node's cluster
    seatrial machine frost --check                     the file beside Slurm
    seatrial machine frost --topology --pair n1 n9     its network
    """
    hint = ""
    if topology:
        if check or detect:
            raise UsageError("--topology shows the file's network; leave --check, --detect out")
        click.echo(topology_page.shown(find_machine(name).machine, pair, form == "json"))
        return 0
    if pair or form == "json":
        raise UsageError("--pair and --format are about a network; give --topology, too")
    if check and detect:
        raise UsageError("--detect describes anew, --check looks at a file; give one of them")
    if check:
        return _check(find_machine(name).machine)
    if detect and scheduler == "slurm":
        found, hint = detect_cluster(name)
    elif detect:
        found = detect_host(name or this_host(), with_layout=True)
    else:
        found = find_machine(name).machine
    values = msgspec.to_builtins(found)
    click.echo(yaml.safe_dump(values, sort_keys=False, width=88) + hint, nl=False)
    return 0


def _check(machine: Machine) -> int:
    """Print how a machine's file differs from what Slurm shows. Return 1 if it does."""
    if machine.scheduler != "slurm":
        raise UsageError(f"--check asks Slurm, and {machine.machine} is `scheduler: local`")
    found = differences(machine)
    for line in found:
        click.echo(line)
    click.echo(f"{machine.machine}: {count(len(found), 'difference')} from what Slurm shows")
    return 1 if found else 0
