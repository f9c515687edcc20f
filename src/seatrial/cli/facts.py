"""``seatrial facts``: what the nodes of a machine are, and which of them differ."""

import click

from seatrial.cli.actions import action
from seatrial.cli.facts_collect import collect, write_suite
from seatrial.cli.options import json_option, list_option, machine_filter, text_option


@click.group("facts")
def command() -> None:
    """Collect the facts of nodes, and show which nodes differ.

    Facts are kernel, firmware, mounts, limits, modules, packages, huge pages, PCIe, errors of
    memory, networks. `seatrial lint` judges them by rules.
    """


command.add_command(collect)
command.add_command(write_suite)


@command.command("diff")
@click.argument("source", default="")
@click.argument("other", default="")
@machine_filter
@click.option("--majority", is_flag=True, help="Compare nodes with each other, whatever OTHER is.")
@list_option("--facts", "patterns", "PATTERN", "Only these facts.")
@list_option("--waive", "PATTERN", "Facts that may differ, such as 'module.*'.")
@list_option("--within", "PATTERN=SHARE", "Numbers that may differ by a share: memory.*=2%.")
@json_option
@click.pass_obj
@action
def diff() -> None:
    """Show which nodes differ.

    SOURCE and OTHER are trials that collected facts, files of facts, or machines (their newest
    trial). Of SOURCE alone (default: the newest trial), nodes are compared with most of their role.
    With OTHER of the same machine: what changed since. With OTHER of another machine: where usual
    values differ. Exits 1 if something differs.

    \b
    seatrial facts diff                       nodes that differ from most
    seatrial facts diff before after          what changed between two trials
    seatrial facts diff testsystem frost      a test system against production
    """


@command.command("rates")
@click.argument("source", default="")
@click.argument("other", default="")
@machine_filter
@json_option
@click.pass_obj
@action
def rates() -> None:
    """Show which counters of errors rose between two collections.

    SOURCE and OTHER are trials that collected facts, or files of facts, the earlier one first;
    default: the newest trial and the one before. Counters are those of memory errors (EDAC),
    machine checks and InfiniBand.
    """


@command.command("history")
@click.argument("key", metavar="FACT")
@machine_filter
@text_option("--nodes", "SET", "Only these nodes.")
@json_option
@click.pass_obj
@action
def history() -> None:
    """Show when nodes got another value of a fact, such as node.kernel."""
