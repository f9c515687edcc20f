"""``seatrial facts collect``: a trial that asks every node of a machine for its facts."""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from seatrial.cli import run
from seatrial.cli.options import choice_option, list_option, machine_option, text_option
from seatrial.errors import UsageError
from seatrial.machine.detect import find_machine
from seatrial.machine.draining import states
from seatrial.machine.facts import node_names
from seatrial.machine.model import Machine, NodeGroup
from seatrial.machine.node_sets import fold, unfold
from seatrial.machine.rehearsal_model import MachineModel
from seatrial.rules import readers
from seatrial.rules.facts import of_nodes, text_of
from seatrial.runs import facts as collection
from seatrial.units import count

SUITE = Path(collection.__file__).parent


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
def collect(
    context: click.Context,
    machine: str | None,
    by: str,
    nodes: str,
    roles: tuple[str, ...],
    given: tuple[str, ...],
    packages: tuple[str, ...],
    patience: int,
    tag: str | None,
) -> int:
    """Ask every node for its facts. It is a trial; no root is needed.

    Nodes that are down are left out, and a node that does not answer is named.

    \b
    seatrial facts collect -m frost                  one job on all nodes
    seatrial facts collect -m frost --by ssh         routers, servers, login nodes
    seatrial facts collect -m frost --read 'r[1-14]=lnetctl.yaml'
    """
    found = find_machine(machine).machine
    chosen: str | None
    settings = [f"patience={patience}"]
    if packages:
        settings.append(f"packages={' '.join(packages)}")
    with tempfile.TemporaryDirectory(prefix="seatrial-facts-") as folder:
        place = Path(folder)
        if given:
            test, chosen = "hosts", _here(found, place)
            (place / "facts.txt").write_text(_read(given))
            settings.append(f"given={place / 'facts.txt'}")
        elif by == "ssh":
            test, chosen = "hosts", _here(found, place)
            hosts = _hosts(found, roles, nodes)
            (place / "hosts").write_text("".join(f"{host}\n" for host in hosts))
            settings.append(f"hosts={place / 'hosts'}")
        else:
            test = "nodes" if by == "job" else "each_node"
            chosen, size = _usable(found, machine, nodes, by == "array", place)
            settings += [f"size={size}"] if by == "job" else []
        code: int = context.invoke(
            run.command,
            suites=(str(SUITE / test),),
            machine=chosen,
            tag=tag,
            toolchains=("default",),
            settings=tuple(settings),
        )
    return code


@click.command("suite")
@click.argument("folder", type=click.Path(path_type=Path))
def write_suite(folder: Path) -> int:
    """Write the tests that collect facts to FOLDER, for plans and suites."""
    if folder.exists():
        raise UsageError(f"{folder}: is there already; name another folder")
    shutil.copytree(SUITE, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    click.echo(f"{folder}: nodes (one job), each_node (an array), hosts (by ssh)")
    return 0


def _usable(
    machine: Machine, name: str | None, nodes: str, each: bool, place: Path
) -> tuple[str | None, int]:
    """Return the machine with the nodes that can answer now, and how many these are."""
    known = node_names(machine)
    wanted = set(unfolded(nodes)) if nodes else set(known)
    if other := sorted(wanted - set(known)):
        raise UsageError(f"--nodes: {other[0]} is not a node of {machine.machine}")
    if machine.scheduler != "slurm":
        return name, len(known)
    if machine.slurm.nodelist:
        wanted &= set(unfold(machine.slurm.nodelist))
    if machine.slurm.exclude:
        wanted -= set(unfold(machine.slurm.exclude))
    away = [node for node, state in states().items() if state.away and node in wanted]
    left = [node for node in known if node in wanted and node not in away]
    if away:
        told = count(len(away), "node")
        click.echo(f"left out, as no job gets them now: {told}: {fold(away)}", err=True)
    if not left:
        raise UsageError(f"{machine.machine}: no node is up")
    about = machine
    if not each:  # where the partition has more nodes than the file, a job could go to others
        options = [*machine.slurm.options, f"--nodelist={fold(left)}"]
        about = replace(machine, slurm=replace(machine.slurm, options=options))
    elif len(left) < len(known):
        kept = set(left)
        kinds = [kind for old in machine.nodes if (kind := _without(old, kept)).names]
        slurm = replace(machine.slurm, nodelist="")
        about = replace(machine, nodes=kinds, slurm=slurm, groups={}, topology=None)
        about = replace(about, rehearsal=MachineModel(), gauges={})
    return _written(place / "machine.yaml", msgspec.to_builtins(about)), len(left)


def _without(kind: NodeGroup, kept: set[str]) -> NodeGroup:
    """Return a kind of nodes with those that are kept."""
    return replace(kind, names=fold([node for node in unfold(kind.names) if node in kept]))


def _here(machine: Machine, place: Path) -> str:
    """Return a file of a machine of that name whose only node is this host: hosts that run no jobs
    are asked from here."""
    about: dict[str, Any] = {"machine": machine.machine, "nodes": [{"names": "here", "cores": 1}]}
    about["roles"] = machine.roles  # by which rules judge
    return _written(place / "machine.yaml", {**about, "toolchains": {"none": {}}})


def _written(path: Path, about: dict[str, Any]) -> str:
    path.write_text(json.dumps(about))  # JSON is YAML
    return str(path)


def _hosts(machine: Machine, roles: tuple[str, ...], nodes: str) -> list[str]:
    """Return the hosts to be asked by ssh. Raises UsageError if there are none."""
    if nodes:
        return list(unfolded(nodes))
    if unknown := [role for role in roles if role not in machine.roles]:
        known = ", ".join(machine.roles) or "none"
        raise UsageError(f"--role {unknown[0]}: {machine.machine} has the roles: {known}")
    own = set(node_names(machine))
    found = {
        host: None
        for role, folded in machine.roles.items()
        if not roles or role in roles
        for host in unfold(folded)
        if roles or host not in own
    }
    if not found:
        raise UsageError(
            f"--by ssh: {machine.machine} has no hosts besides its nodes; write them under "
            "`roles` of its file, or name them with --nodes"
        )
    return list(found)


def unfolded(nodes: str) -> tuple[str, ...]:
    """Return the nodes of a set that was given by --nodes. Raises UsageError."""
    try:
        return unfold(nodes)
    except ValueError as error:
        raise UsageError(f"--nodes: {error}") from None


def _read(given: tuple[str, ...]) -> str:
    """Return the facts in files, as text."""
    found: dict[str, dict[str, str]] = {}
    for text in given:
        folded, equals, name = text.partition("=")
        if not equals:
            raise UsageError(f"--read {text}: write SET=FILE, such as 'r[1-14]=lnetctl.yaml'")
        own = readers.read(Path(name))
        for node in unfolded(folded):
            found.setdefault(node, {}).update(own)
    return text_of(of_nodes(found))
