"""The commands of facts of nodes: ``facts``, ``lint``, ``check``, ``lnet``."""

from pathlib import Path

import click

from seatrial.cli.commands import act
from seatrial.cli.options import (
    SHARE,
    choice_option,
    json_option,
    list_option,
    machine_filter,
    machine_option,
    path_option,
    text_option,
    value_option,
)

_rules_option = list_option(
    "--rules",
    "files",
    "FILE",
    "Rules besides those that ship; default: rules/*.yaml.",
    type=click.Path(path_type=Path),
)
_routing_option = path_option(
    "--routing", "plan", "FILE", "A routing plan that clients, routers and servers must follow."
)


@click.group("facts")
def facts() -> None:
    """Collect the facts of nodes, and show which nodes differ.

    Facts are kernel, firmware, mounts, limits, modules, packages, huge pages, PCIe, errors of
    memory, networks. `seatrial lint` judges them by rules.
    """


@facts.command("collect")
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
@act("seatrial.plugins.facts.acts:collect")
def facts_collect() -> None:
    """Ask every node for its facts. It is a trial; no root is needed.

    Nodes that are down are left out, and a node that does not answer is named.

    \b
    seatrial facts collect -m frost                  one job on all nodes
    seatrial facts collect -m frost --by ssh         routers, servers, login nodes
    seatrial facts collect -m frost --read 'r[1-14]=lnetctl.yaml'
    """


@facts.command("suite")
@click.argument("folder", type=click.Path(path_type=Path))
@act("seatrial.plugins.facts.acts:write_suite")
def facts_suite() -> None:
    """Write the tests that collect facts to FOLDER, for plans and suites."""


@facts.command("diff")
@click.argument("source", default="")
@click.argument("other", default="")
@machine_filter
@click.option("--majority", is_flag=True, help="Compare nodes with each other, whatever OTHER is.")
@list_option("--facts", "patterns", "PATTERN", "Only these facts.")
@list_option("--waive", "PATTERN", "Facts that may differ, such as 'module.*'.")
@list_option("--within", "PATTERN=SHARE", "Numbers that may differ by a share: memory.*=2%.")
@json_option
@click.pass_obj
@act("seatrial.plugins.facts.acts:diff")
def facts_diff() -> None:
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


@facts.command("rates")
@click.argument("source", default="")
@click.argument("other", default="")
@machine_filter
@json_option
@click.pass_obj
@act("seatrial.plugins.facts.acts:rates")
def facts_rates() -> None:
    """Show which counters of errors rose between two collections.

    SOURCE and OTHER are trials that collected facts, or files of facts, the earlier one first;
    default: the newest trial and the one before. Counters are those of memory errors (EDAC),
    machine checks and InfiniBand.
    """


@facts.command("history")
@click.argument("key", metavar="FACT")
@machine_filter
@text_option("--nodes", "SET", "Only these nodes.")
@json_option
@click.pass_obj
@act("seatrial.plugins.facts.acts:history")
def facts_history() -> None:
    """Show when nodes got another value of a fact, such as node.kernel."""


@click.command("lint")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@machine_filter
@_rules_option
@_routing_option
@click.option("--list", "listed", is_flag=True, help="List the rules, with who says so.")
@json_option
@click.pass_obj
@act("seatrial.plugins.facts.rule_acts:lint")
def lint() -> None:
    """Judge the facts of nodes by rules: findings name nodes, sources and remedies.

    SOURCE is a trial that collected facts, a file of facts, or a machine; default: the newest
    trial. Several are judged together: clients and servers. Exits 1 if something was found.
    """


@click.group("check")
def check() -> None:
    """Check the nodes of a machine by rules over their facts."""


@check.command("nodes")
@machine_option
@_rules_option
@choice_option(
    "--by", of=["job", "array", "ssh"], help="How nodes are asked, as for `facts collect`."
)
@text_option("--nodes", "SET", "Only these nodes.")
@click.option(
    "--drain",
    is_flag=True,
    help="Drain nodes that rules with `drain: true` accuse, and silent ones.",
)
@value_option(
    "--most",
    "SHARE",
    "Nodes that --drain may drain without a question; default: 5% of the machine, at least one.",
    type=SHARE,
    default=0.05,
)
@click.option(
    "-y",
    "--yes",
    is_flag=True,
    help="Do not ask before more are drained; without it and without a terminal nothing is "
    "drained.",
)
@click.option(
    "--resume", is_flag=True, help="Ask the nodes that our note drained; return good ones."
)
@click.option("--name", "tag", help="Tag of the trial; default: date, time and `facts`.")
@click.pass_context
@act("seatrial.plugins.facts.rule_acts:check_nodes")
def check_nodes() -> None:
    """Ask the nodes for their facts and judge them by rules. Exits 1 if something was found.

    With --drain, nodes get no more jobs that rules marked `drain: true` accuse, or that did not
    answer; the note begins with `seatrial:`. Beyond 5 % of the machine (at least one node) it asks;
    where nobody can be asked nothing is drained. Nodes that others drained stay as they are, and
    are never returned. --resume asks drained nodes by ssh. Each act is noted: `seatrial note`.
    """


@click.group("lnet")
def lnet() -> None:
    """Write the configuration of LNet from a routing plan.

    `seatrial lint --routing PLAN` checks whether nodes have it.
    """


@lnet.command("generate")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the files; default: they are printed.",
)
@act("seatrial.plugins.facts.routing:generate")
def lnet_generate() -> None:
    """Write files of modprobe.d for clients, routers and servers.

    PLAN is a routing.yaml. In each group, servers are an LNet network of their own, which its
    routers alone serve.
    """
