"""``seatrial machine``: show a machine file, or detect this machine."""

from typing import Any

import click
import msgspec

from seatrial.errors import UsageError, suggest
from seatrial.execute.detect import differences, find_machine, written
from seatrial.hooks import load
from seatrial.lazy import yaml
from seatrial.model.file_model import plain
from seatrial.model.machine import Machine
from seatrial.model.machine_topology import known_topology
from seatrial.model.node_set import fold
from seatrial.model.schedulers import scheduler_of
from seatrial.model.topology import SYSTEM, Topology, bisection_text
from seatrial.units import count

_WIDTH = 80


def machine(
    name: str | None,
    detect: bool,
    scheduler: str,
    check: bool,
    topology: bool,
    pair: tuple[str, str] | None,
    form: str,
) -> int:
    """Do ``seatrial machine``; return the exit code."""
    if topology:
        if check or detect:
            raise UsageError("--topology shows the file's network; leave --check, --detect out")
        click.echo(topology_page(find_machine(name).machine, pair, form == "json"))
        return 0
    if pair or form == "json":
        raise UsageError("--pair and --format are about a network; give --topology, too")
    if check and detect:
        raise UsageError("--detect describes anew, --check looks at a file; give one of them")
    if check:
        return _check(find_machine(name).machine)
    if detect:
        machine, hint = load(scheduler_of(scheduler).detect or _HOST)(name)
        click.echo(_page(written(machine)) + hint, nl=False)
    else:
        click.echo(_page(plain(find_machine(name).machine)), nl=False)
    return 0


_HOST = "seatrial.execute.detect:detect_host"


def _page(about: dict[str, Any]) -> str:
    """Return a machine as YAML; what is short or a table stands in one line, as in the docs."""
    root = yaml.compose(yaml.safe_dump(about, sort_keys=False))
    _put_in_lines(root)
    return str(yaml.serialize(root, width=_WIDTH))


def _put_in_lines(node: Any) -> None:
    pairs = node.value if node.id == "mapping" else []
    for key, value in pairs:
        if key.value in _IN_LINES and value.id != "scalar":
            value.flow_style = True
        _put_in_lines(value)
    for item in node.value if node.id == "sequence" else []:
        _put_in_lines(item)


_IN_LINES = ("layout", "launcher", "environment", "features", "modules", "options")


def _check(machine: Machine) -> int:
    """Print how a machine's file differs from what Slurm shows. Return 1 if it does."""
    if machine.scheduler != "slurm":
        raise UsageError(
            f"--check asks Slurm, and {machine.machine} is `scheduler: {machine.scheduler}`"
        )
    found = differences(machine)
    for line in found:
        click.echo(line)
    click.echo(f"{machine.machine}: {count(len(found), 'difference')} from what Slurm shows")
    return 1 if found else 0


def topology_page(machine: Machine, pair: tuple[str, str] | None, as_json: bool) -> str:
    """Return the network of a machine as text or JSON. Raises UsageError if the file tells none, or
    a node of the pair is not there."""
    topology = known_topology(machine)
    nodes = tuple(_number(topology, name) for name in pair) if pair else ()
    if as_json:
        told = {"machine": machine.machine, **network(topology)}
        if nodes:
            told["pair"] = _pair(topology, *nodes)
        return msgspec.json.format(msgspec.json.encode(told), indent=2).decode()
    lines = _lines(machine.machine, topology)
    if nodes:
        lines += ["", *_pair_lines(topology, *nodes)]
    return "\n".join(lines)


def _number(topology: Topology, name: str) -> int:
    if name not in topology.number_of:
        near = suggest(name, list(topology.number_of))
        raise UsageError(f"{name} is not a node of this network{f'; {near}' if near else ''}")
    return topology.number_of[name]


def network(topology: Topology) -> dict[str, Any]:
    """Return a network as values for JSON: levels with the nodes of each unit, and bisection."""
    cut = topology.bisection()
    levels = []
    for height, level in enumerate(topology.levels):
        members = zip(level.units, topology.members(level), strict=True)
        levels.append(
            {
                "level": level.name,
                "hops": None if topology.kind == "torus" else topology.hops_at(height),
                "units": {unit: fold(nodes) for unit, nodes in members if nodes},
            }
        )
    return {
        "kind": topology.kind,
        "nodes": len(topology.nodes),
        "axes": dict(zip(topology.axes, topology.shape, strict=True)),
        "levels": levels,
        "pairs": dict(zip(_names(topology), topology.pairs(), strict=True)),
        "mean_hops": topology.mean_hops(range(len(topology.nodes))),
        "bisection": cut._asdict() if cut else None,
        "roles": {
            role: fold([topology.names[each] for each in members])
            for role, members in topology.roles.items()
        },
    }


def _names(topology: Topology) -> list[str]:
    return [*(level.name for level in topology.levels), SYSTEM]


def _lines(name: str, topology: Topology) -> list[str]:
    shape = " x ".join(map(str, topology.shape))
    kind = f"{topology.kind} of {shape}" if shape else topology.kind
    lines = [f"{name}: {kind}, {count(len(topology.nodes), 'node')}", ""]
    hops = "" if topology.kind == "torus" else "hops"
    lines.append(
        f"{'level':<12}{'units':>8}{'nodes of each':>16}{hops:>6}{'pairs':>14}{'share':>8}"
    )
    pairs = topology.pairs()
    for height, level in enumerate(_names(topology)):
        units, sizes = 1, [len(topology.nodes)]
        if height < len(topology.levels):
            sizes = sorted(filter(None, map(len, topology.members(topology.levels[height]))))
            units = len(sizes)
        each = str(sizes[0]) if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
        hops = "" if topology.kind == "torus" else str(topology.hops_at(height))
        share = f"{pairs[height] / max(1, sum(pairs)):.1%}"
        lines.append(f"{level[:12]:<12}{units:>8}{each:>16}{hops:>6}{pairs[height]:>14,}{share:>8}")
    mean = f"Mean hops: {topology.mean_hops(range(len(topology.nodes))):.3g}"
    lines += ["", f"{mean}; bisection: {bisection_text(topology.bisection())}"]
    return lines + [_role_line(topology, role) for role in topology.roles]


def _role_line(topology: Topology, role: str) -> str:
    """Return how many nodes have a role, and how many of them a unit of the largest level has."""
    level, members = topology.levels[-1], topology.roles[role]
    numbers = [0] * len(level.units)
    for node in members:
        numbers[level.unit_of[node]] += 1
    each = f"{min(numbers)} to {max(numbers)}" if min(numbers) < max(numbers) else f"{numbers[0]}"
    return f"Role {role}: {count(len(members), 'node')}, {each} in each {level.name}"


def _pair(topology: Topology, a: int, b: int) -> dict[str, Any]:
    return {
        "nodes": {topology.names[each]: dict(topology.place(each)) for each in (a, b)},
        "level": topology.level(a, b),
        "hops": topology.hops(a, b),
        "path": [[*link] for link in topology.path(a, b)],
    }


def _pair_lines(topology: Topology, a: int, b: int) -> list[str]:
    lines = []
    for node in (a, b):
        place = ", ".join(f"{level} {unit}" for level, unit in topology.place(node))
        lines.append(f"{topology.names[node]}: {place}")
    hops = topology.hops(a, b)
    lines.append(f"smallest common level: {topology.level(a, b)}; {count(hops, 'hop')}")
    path = topology.path(a, b)
    stops = [*(start for start, _ in path), *(end for _, end in path[-1:])]
    line = ""
    for stop in stops:
        part = f" -> {stop}" if line else f"  {stop}"
        if len(line) + len(part) > _WIDTH:
            lines.append(line)
            part = f"    -> {stop}"
            line = ""
        line += part
    return [*lines, line] if line else lines
