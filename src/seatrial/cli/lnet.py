"""``seatrial lnet``: LNet of a machine from its routing plan."""

from pathlib import Path

import click

from seatrial.cli.actions import action


@click.group("lnet")
def command() -> None:
    """Write the configuration of LNet from a routing plan.

    `seatrial lint --routing PLAN` checks whether nodes have it.
    """


@command.command("generate")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the files; default: they are printed.",
)
@action
def generate() -> None:
    """Write files of modprobe.d for clients, routers and servers.

    PLAN is a routing.yaml. In each group, servers are an LNet network of their own, which its
    routers alone serve.
    """
