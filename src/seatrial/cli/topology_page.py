"""The network of a machine, as ``seatrial machine --topology`` shows it."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.errors import UsageError, suggest
from seatrial.layout.topology import SYSTEM, Topology, bisection_text
from seatrial.machine.facts import fold
from seatrial.machine.model import Machine
from seatrial.machine.topologies import topology_of
from seatrial.units import count

_WIDTH = 80


def shown(machine: Machine, pair: tuple[str, str] | None, as_json: bool) -> str:
    """Return the network of a machine as text or JSON. Raises UsageError if the file tells none, or
    a node of the pair is not there."""
    topology = topology_of(machine)
    if topology is None:
        raise UsageError(
            f"the file of {machine.machine} tells nothing of its network; "
            "write `topology` or `groups` (docs/machines.md)"
        )
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
        units = zip(level.units, topology.members(level), strict=True)
        levels.append(
            {
                "level": level.name,
                "hops": None if topology.kind == "torus" else topology.hops_at(height),
                "units": {unit: fold(nodes) for unit, nodes in units},
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
            sizes = sorted(map(len, topology.members(topology.levels[height])))
            units = len(sizes)
        each = str(sizes[0]) if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
        hops = "" if topology.kind == "torus" else str(topology.hops_at(height))
        share = f"{pairs[height] / max(1, sum(pairs)):.1%}"
        lines.append(f"{level[:12]:<12}{units:>8}{each:>16}{hops:>6}{pairs[height]:>14,}{share:>8}")
    mean = f"Mean hops: {topology.mean_hops(range(len(topology.nodes))):.3g}"
    return [*lines, "", f"{mean}; bisection: {bisection_text(topology.bisection())}"]


def _pair(topology: Topology, a: int, b: int) -> dict[str, Any]:
    return {
        "nodes": {topology.nodes[each]: dict(topology.place(each)) for each in (a, b)},
        "level": topology.level(a, b),
        "hops": topology.hops(a, b),
        "path": [[*link] for link in topology.path(a, b)],
    }


def _pair_lines(topology: Topology, a: int, b: int) -> list[str]:
    lines = []
    for node in (a, b):
        place = ", ".join(f"{level} {unit}" for level, unit in topology.place(node))
        lines.append(f"{topology.nodes[node]}: {place}")
    hops = topology.hops(a, b)
    lines.append(f"smallest common level: {topology.level(a, b)}; {count(hops, 'hop')}")
    path = topology.path(a, b)
    stops = [*(link.start for link in path), *(link.end for link in path[-1:])]
    line = ""
    for stop in stops:
        part = f" -> {stop}" if line else f"  {stop}"
        if len(line) + len(part) > _WIDTH:
            lines.append(line)
            part = f"    -> {stop}"
            line = ""
        line += part
    return [*lines, line] if line else lines
