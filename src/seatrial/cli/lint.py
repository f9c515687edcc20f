"""``seatrial lint``: judge the facts of nodes by rules."""

from pathlib import Path

import click

from seatrial.cli.actions import action
from seatrial.cli.options import json_option, list_option, machine_filter, path_option

rules_option = list_option(
    "--rules",
    "files",
    "FILE",
    "Rules besides those that ship; default: rules/*.yaml.",
    type=click.Path(path_type=Path),
)
routing_option = path_option(
    "--routing", "plan", "FILE", "A routing plan that clients, routers and servers must follow."
)


@click.command("lint")
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@machine_filter
@rules_option
@routing_option
@click.option("--list", "listed", is_flag=True, help="List the rules, with who says so.")
@json_option
@click.pass_obj
@action
def command() -> None:
    """Judge the facts of nodes by rules: findings name nodes, sources and remedies.

    SOURCE is a trial that collected facts, a file of facts, or a machine; default: the newest
    trial. Several are judged together: clients and servers. Exits 1 if something was found.
    """
