"""``seatrial facts collect``: a trial that asks every node of a machine for its facts."""

from pathlib import Path

import click

from seatrial.cli.actions import action
from seatrial.cli.options import choice_option, list_option, machine_option, text_option


@click.command("collect")
@machine_option
@choice_option(
    "--by",
    of=["job", "array", "ssh"],
    help="One job on all nodes; a job for each node; or ssh from here to the hosts of roles.",
)
@text_option("--nodes", "SET", "Only these nodes, or with ssh hosts.")
@click.option("--role", "roles", multiple=True, help="With --by ssh: only hosts of this role.")
@list_option(
    "--read",
    "given",
    "SET=FILE",
    "Facts of nodes from a file that others collected: modprobe.d, `lnetctl export`, "
    "`lctl get_param`, `sysctl -a`, or facts.",
)
@click.option("--package", "packages", multiple=True, help="Tell the version of this package.")
@click.option(
    "--patience",
    type=click.IntRange(1, 3600),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="Time that nodes have to answer.",
)
@click.option("--name", "tag", help="Tag of the trial; default: date, time and `facts`.")
@click.pass_context
@action
def collect() -> None:
    """Ask every node for its facts. It is a trial; no root is needed.

    Nodes that are down are left out, and a node that does not answer is named.

    \b
    seatrial facts collect -m frost                  one job on all nodes
    seatrial facts collect -m frost --by ssh         routers, servers, login nodes
    seatrial facts collect -m frost --read 'r[1-14]=lnetctl.yaml'
    """


@click.command("suite")
@click.argument("folder", type=click.Path(path_type=Path))
@action
def write_suite() -> None:
    """Write the tests that collect facts to FOLDER, for plans and suites."""
