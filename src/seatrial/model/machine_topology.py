"""The network of a machine, as its file says it: ``topology: {kind: dragonfly, ...}``.

    topology = topology_of(machine)       # None where the file tells neither network nor groups

Levels come from the nodes in their order, from their names, from node sets, or from a file, which
is read when the machine is loaded and becomes node sets in the description that trials keep.
Groups alone are a tree of one level.
"""

import json
import math
import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.files import read_regular
from seatrial.model import machine as model
from seatrial.model import topology
from seatrial.model.documents import Location
from seatrial.model.node_set import fold, unfold
from seatrial.model.nodes import groups_of, hosts_by_role, node_names
from seatrial.model.places import MAX_FILE_BYTES, named, places_in, switches_of
from seatrial.model.topology import name_pattern, positions
from seatrial.units import count

LevelOfSets = dict[str, dict[str, str]]  # the node set of each unit, by the name of the level
ROUTER = "router"  # the first level of a torus, where the file does not name it


class TopologyFault(ValueError):
    """What is wrong with a topology; ``key`` leads to it from ``topology``."""

    def __init__(self, message: str, *key: str | int) -> None:
        super().__init__(message)
        self.key = key


def topology_of(machine: "model.Machine") -> topology.Topology | None:
    """Return the network of a machine that was loaded; None if nothing is told of it. Raises
    TopologyFault, which a machine that was loaded does not."""
    if machine.topology is not None:
        return made(machine.topology, node_names(machine), _hosts(machine))
    if not machine.groups:
        return None
    hosts = _hosts(machine)
    nodes = [node for node in groups_of(machine) if node not in hosts]
    tree = model.NetworkModel(kind="tree", levels=[{"group": {**machine.groups}}])
    return made(tree, nodes, hosts)


def _hosts(machine: "model.Machine") -> list[str]:
    """Return the hosts of a machine that have a role and run no jobs."""
    of_jobs = set(node_names(machine))
    members = (host for hosts in hosts_by_role(machine).values() for host in hosts)
    return list(dict.fromkeys(host for host in members if host not in of_jobs))


def largest_units(machine: "model.Machine") -> dict[str, str]:
    """Return the unit of the largest level of a machine's topology that each node is in, service
    nodes, too (``group 3``); of a machine without topology its group."""
    network = topology_of(machine) if machine.topology is not None else None
    if network is None or not network.levels:
        return groups_of(machine)
    level = network.levels[-1]
    units = (f"{level.name} {level.units[unit]}" for unit in level.unit_of)
    return dict(zip(network.names, units, strict=True))


def known_topology(machine: "model.Machine") -> topology.Topology:
    """Return the network of a machine. Raises UsageError where its file tells nothing of it."""
    network = topology_of(machine)
    if network is None:
        raise UsageError(
            f"the file of {machine.machine} tells nothing of its network; "
            "write `topology` or `groups` (docs/how-to/machines.md)"
        )
    return network


def check_topology(machine: "model.Machine", at: Location) -> None:
    """Add the fault of a machine's topology, which is at ``at``. That of a file is found when it is
    read."""
    assert machine.topology is not None
    try:
        if machine.topology.file:
            _sources(machine.topology)
        else:
            made(machine.topology, node_names(machine), _hosts(machine))
    except TopologyFault as fault:
        at.fault(str(fault), *fault.key)


def with_topology(machine: "model.Machine", folder: Path) -> "model.Machine":
    """Return a machine whose topology has what its file tells; the path starts at ``folder``.
    Raises OSError and ValueError."""
    network = machine.topology
    if network is None or not network.file:
        return machine
    text = read_regular(folder / network.file, MAX_FILE_BYTES).decode(errors="replace")
    names = [level for level in network.levels if isinstance(level, str)] or [*network.axes]
    nodes = node_names(machine)
    hosts = _hosts(machine)
    if text.lstrip().startswith("{"):
        placed = places_in(text)
        known = [*nodes, *filter(placed.__contains__, hosts)]
        levels = levels_of_places(text, names, known)
    else:
        levels = levels_of_switches(text, names, [*nodes, *hosts], network.by)
    if network.kind == "torus":
        levels = [_by_coordinates(levels)]
    network = replace(network, file="", by="", levels=[*levels])
    made(network, nodes, hosts)
    return replace(machine, topology=network)


# ---- from the keys of the file ------------------------------------------------------------


def made(
    network: "model.NetworkModel", nodes: Sequence[str], hosts: Sequence[str] = ()
) -> topology.Topology:
    """Return a network of these nodes, which run jobs, of those with a role in it, and of further
    ``hosts`` whose place is told. Raises TopologyFault."""
    _sources(network)
    members = (node for folded in network.roles.values() for node in unfold(folded))
    of_jobs = set(nodes)
    others = [node for node in dict.fromkeys([*members, *hosts]) if node not in of_jobs]
    service = _with_place(network, nodes, others)
    placed = [*nodes, *service]
    rows = _numbers(network, placed) if network.names else []
    places = positions(_ordered(network, rows)) if rows else range(len(placed))
    levels = [_level(network.levels[i], i, placed, places) for i in range(len(network.levels))]
    coordinates: list[topology.Coordinates] = []
    if network.kind == "torus":
        coordinates = _coordinates(network, placed, rows, places)
        levels = [_routers(levels[0].name if levels else ROUTER, coordinates), *levels[1:]]
    if fault := topology.fault_of_nesting(levels, placed):
        raise TopologyFault(fault, "levels")
    return topology.Topology(
        kind=network.kind,
        nodes=tuple(nodes),
        levels=tuple(levels),
        axes=tuple(network.axes),
        shape=tuple(network.axes.values()),
        coordinates=tuple(coordinates),
        ports=network.ports,
        bandwidths=_bandwidths(network, [level.name for level in levels]),
        roles=_roles(network.roles, placed),
        service=tuple(service),
    )


def _with_place(
    network: "model.NetworkModel", nodes: Sequence[str], hosts: Sequence[str]
) -> list[str]:
    """Return the hosts whose place is told as that of nodes is: by their names, and by the node
    sets of levels."""
    found = list(hosts)
    sized = network.kind == "torus" and not network.levels
    for level in network.levels:
        ((_, units),) = level.items() if isinstance(level, dict) else (("", 0),)
        if isinstance(units, dict):
            members = {node for folded in units.values() for node in unfold(folded)}
            found = [host for host in found if host in members]
        else:
            sized = True
    if network.names and found:
        return _that_fit(network, nodes, found)
    return [] if sized else found


def _that_fit(
    network: "model.NetworkModel", nodes: Sequence[str], hosts: Sequence[str]
) -> list[str]:
    """Return the hosts whose names fit those of nodes, and change the place of none: each field but
    that of the largest unit is one that a node has, or less."""
    rows = _ordered(network, _numbers(network, nodes))
    taken = {*map(tuple, rows)}
    largest: list[float] = [max(column) for column in zip(*rows, strict=True)]
    if network.kind != "torus":
        largest[0] = math.inf
    pattern, found = name_pattern(network.names), []
    for host in hosts:
        if (numbers := pattern.numbers(host)) is not None:
            (row,) = map(tuple, _ordered(network, [numbers]))
            if row not in taken and all(map(operator.le, row, largest)):
                taken.add(row)
                found.append(host)
    return found


def _roles(written: Mapping[str, str], nodes: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the numbers of the nodes with each role."""
    number_of, roles = {node: number for number, node in enumerate(nodes)}, {}
    for role, folded in written.items():
        members = unfold(folded)
        if other := [node for node in members if node not in number_of]:
            text = "is not a node of this machine, and nothing tells its place: "
            text += (
                "`names` does, with numbers that nodes have, too, or the node sets of each level"
            )
            raise TopologyFault(f"{other[0]} {text}", "roles", role)
        roles[role] = tuple(number_of[node] for node in members)
    return roles


def _sources(network: "model.NetworkModel") -> None:
    """Check which keys stand beside each other. Raises TopologyFault."""
    _check_axes(network)
    if network.by and not network.file:
        raise TopologyFault("names a topology of a topology.yaml; give file", "by")
    if network.file and network.names:
        raise TopologyFault("give file or names, one of them", "names")
    if network.order and not network.names:
        raise TopologyFault("is about names; give names", "order")
    if not network.file:
        _check_number_of_levels(network)
    names = set[str]()
    for i, level in enumerate(network.levels):
        name = _level_name(level, i, bool(network.file))
        if name in names:
            raise TopologyFault(f"{name} is the name of two levels; choose another", "levels", i)
        names.add(name)


def _check_number_of_levels(network: "model.NetworkModel") -> None:
    if network.kind != "torus" and not network.levels:
        raise TopologyFault("has no levels; write e.g. levels: [{router: 4}, {group: 64}]")
    if network.kind == "dragonfly" and len(network.levels) < 2:
        raise TopologyFault("a dragonfly has at least two: those of routers and groups", "levels")


def _check_axes(network: "model.NetworkModel") -> None:
    if network.kind == "torus" and not network.axes:
        raise TopologyFault("a torus has axes; write e.g. axes: {x: 17, y: 8, z: 24}")
    if network.kind != "torus" and network.axes:
        raise TopologyFault(f"a {network.kind} has no axes; remove them", "axes")
    for axis, length in network.axes.items():
        if length < 1:
            raise TopologyFault(f"{length} is less than 1", "axes", axis)


def _level_name(level: "model.LevelModel", i: int, of_file: bool) -> str:
    """Return the name of a level, which is all that is written of one that a file tells."""
    if isinstance(level, str) != of_file:
        text = "of a file is told by its name alone"
        if not of_file:
            text = f"{level}: write the nodes of each, e.g. {{{level}: 4}}, or its node sets"
        raise TopologyFault(text, "levels", i)
    if not isinstance(level, str) and len(level) != 1:
        raise TopologyFault("must have one key, the name of the level", "levels", i)
    name = level if isinstance(level, str) else next(iter(level))
    if name in (topology.NODE, topology.SYSTEM):
        raise TopologyFault(f"{name} is a word for every network; choose another", "levels", i)
    return name


def _numbers(network: "model.NetworkModel", nodes: Sequence[str]) -> list[tuple[int, ...]]:
    """Return the numbers of the fields in the name of each node."""
    try:
        pattern = name_pattern(network.names)
    except ValueError as error:
        raise TopologyFault(str(error), "names") from None
    rows = [pattern.numbers(node) for node in nodes]
    if lost := [node for node, row in zip(nodes, rows, strict=True) if row is None]:
        more = f", nor do {len(lost) - 1} more of" if len(lost) > 1 else "; 1 of"
        text = f"{lost[0]} does not fit {network.names}{more} {count(len(nodes), 'node')}"
        raise TopologyFault(text, "names")
    node_at: dict[tuple[int, ...], str] = {}
    for node, row in zip(nodes, rows, strict=True):
        if row is not None and (first := node_at.setdefault(row, node)) != node:
            raise TopologyFault(f"{first} and {node} are at the same place", "names")
    return list(node_at)


def _ordered(network: "model.NetworkModel", rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return rows of numbers, that of the largest unit first."""
    fields = name_pattern(network.names).fields
    if network.order and sorted(network.order) != sorted(fields):
        text = f"must have each field of names once: {', '.join(fields)}"
        raise TopologyFault(text, "order")
    columns = [fields.index(field) for field in network.order or fields]
    return [[row[column] for column in columns] for row in rows]


def _level(
    level: "model.LevelModel", i: int, nodes: Sequence[str], places: Sequence[int]
) -> topology.NetworkLevel:
    assert not isinstance(level, str)
    ((name, units),) = level.items()
    if isinstance(units, int):
        if units < 1:
            raise TopologyFault(f"{units} is less than 1", "levels", i, name)
        return topology.level_by_size(name, units, places)
    return _level_of_sets(name, units, nodes, i)


def _level_of_sets(
    name: str, units: Mapping[str, str], nodes: Sequence[str], i: int
) -> topology.NetworkLevel:
    unit_of: dict[str, int] = {}
    for number, (unit, folded) in enumerate(units.items()):
        for node in unfold(folded):
            if unit_of.setdefault(node, number) != number:
                text = f"{node} is in {[*units][unit_of[node]]}, too; give each node one {name}"
                raise TopologyFault(text, "levels", i, name, unit)
    if other := sorted(unit_of.keys() - set(nodes)):
        raise TopologyFault(f"{other[0]} is not a node of this machine", "levels", i, name)
    if lost := [node for node in nodes if node not in unit_of]:
        text = f"no {name} has {fold(lost)}; write where they are"
        raise TopologyFault(text, "levels", i, name)
    return topology.NetworkLevel(name, tuple(units), tuple(unit_of[node] for node in nodes))


def _bandwidths(network: "model.NetworkModel", levels: Sequence[str]) -> dict[str, float]:
    known, bandwidths = [*network.axes, *levels, topology.SYSTEM], {}
    for name, written in network.links.items():
        if name not in known:
            raise TopologyFault(f"{name!r} is none of {', '.join(known)}", "links", name)
        bandwidths[name] = written.bytes_per_second
    return bandwidths


# ---- a torus ------------------------------------------------------------------------------


def _coordinates(
    network: "model.NetworkModel",
    nodes: Sequence[str],
    rows: Sequence[Sequence[int]],
    places: Sequence[int],
) -> list[topology.Coordinates]:
    """Return the coordinates of each node: of its name, of the unit that it is in, or by its place,
    where the last axis goes up first."""
    level = network.levels[0] if network.levels else {ROUTER: 1}
    assert not isinstance(level, str)
    ((name, units),) = level.items()
    fields = name_pattern(network.names).fields if network.names else ()
    if set(network.axes) <= set(fields):
        columns = [fields.index(axis) for axis in network.axes]
        coordinates = [tuple(row[column] for column in columns) for row in rows]
        if network.levels:
            _check_routers(name, units, coordinates, len(fields) > len(network.axes))
    elif isinstance(units, int):
        coordinates = [
            _unravelled(place // units, tuple(network.axes.values())) for place in places
        ]
    else:
        written = _level_of_sets(name, units, nodes, 0)
        of_units = [_written_coordinates(unit, len(network.axes), name) for unit in units]
        coordinates = [of_units[unit] for unit in written.unit_of]
    _check_lengths(network.axes, nodes, coordinates)
    return coordinates


def _check_lengths(
    axes: Mapping[str, int], nodes: Sequence[str], coordinates: Sequence[topology.Coordinates]
) -> None:
    """Check that each node is inside the lengths of the axes. Raises TopologyFault."""
    for node, numbers in zip(nodes, coordinates, strict=True):
        for (axis, length), number in zip(axes.items(), numbers, strict=True):
            if number >= length:
                text = (
                    f"{node} is at {axis} = {number}, beyond 0 to {length - 1}; correct this "
                    "length, or the nodes of a router in the first of `levels`"
                )
                raise TopologyFault(text, "axes", axis)


def _check_routers(
    name: str,
    units: "int | Mapping[str, str]",
    coordinates: Sequence[topology.Coordinates],
    several: bool,
) -> None:
    """Check that the first level of a torus is its routers, where names have the coordinates:
    ``several`` nodes share those where names have further fields. Raises TopologyFault."""
    largest = max(Counter(coordinates).values(), default=1)
    if isinstance(units, int) and (units < largest or (units > largest and not several)):
        at = f"{count(largest, 'node')} at each place of the axes"
        raise TopologyFault(
            f"{units} nodes; names put {at}. The first level of a torus is its routers: write "
            f"{{router: {largest}}} before {name}, or leave it out",
            "levels",
            0,
            name,
        )


def _unravelled(number: int, shape: topology.Coordinates) -> topology.Coordinates:
    numbers = []
    for length in reversed(shape[1:]):
        number, rest = divmod(number, length)
        numbers.append(rest)
    return (number, *reversed(numbers))


def _written_coordinates(text: str, axes: int, level: str) -> topology.Coordinates:
    parts = text.split(",")
    if len(parts) != axes or not all(part.isascii() and part.isdigit() for part in parts):
        example = ",".join("0" * axes)
        raise TopologyFault(
            f"{text!r} are no coordinates; write e.g. {example}", "levels", 0, level
        )
    return tuple(map(int, parts))


def _routers(name: str, coordinates: Sequence[topology.Coordinates]) -> topology.NetworkLevel:
    units = {router: number for number, router in enumerate(sorted(set(coordinates)))}
    texts = tuple(",".join(map(str, router)) for router in units)
    return topology.NetworkLevel(name, texts, tuple(units[router] for router in coordinates))


def _by_coordinates(levels: Sequence[LevelOfSets]) -> LevelOfSets:
    """Return the routers of a torus by their coordinates, of a level for each axis."""
    at: dict[str, list[str]] = {}
    for level in levels:
        for unit, folded in next(iter(level.values())).items():
            for node in unfold(folded):
                at.setdefault(node, []).append(unit)
    routers: dict[str, list[str]] = {}
    for node, numbers in at.items():
        routers.setdefault(",".join(numbers), []).append(node)
    return {ROUTER: {router: fold(nodes) for router, nodes in routers.items()}}


# ---- from files ---------------------------------------------------------------------------


def levels_of_switches(
    text: str, names: Sequence[str], machine_nodes: Iterable[str], topology: str = ""
) -> list[LevelOfSets]:
    """Return the levels of Slurm's topology, with the nodes of a machine. Without names they are
    switch (or block), switch2, ... ``topology`` names one of a topology.yaml. Raises
    ValueError."""
    switches = switches_of(text, topology)
    units = switches.levels()
    if not names:
        usual = switches.kind
        names = [usual, *(f"{usual}{number}" for number in range(2, len(units) + 1))]
    elif len(names) != len(units):
        raise ValueError(
            f"has {count(len(units), 'level')} (a single switch above all others is none), and "
            f"`levels` names {len(names)}"
        )
    known, levels = set(machine_nodes), list[LevelOfSets]()
    for name, level in zip(names, units, strict=False):
        kept = {unit: [node for node in nodes if node in known] for unit, nodes in level.items()}
        levels.append({name: {named(unit): fold(nodes) for unit, nodes in kept.items() if nodes}})
    return levels


def levels_of_places(
    text: str, names: Sequence[str], machine_nodes: Iterable[str]
) -> list[LevelOfSets]:
    """Return the levels of a JSON object that has the place of each node: an object with a key for
    each level (or axis), or a text where there is one. Units are named by their number or text.
    Raises ValueError."""
    places = places_in(text)
    if not names:
        raise ValueError("name the keys of its places in `levels`, the smallest unit first")
    nodes_of_units: dict[str, dict[str, list[str]]] = {name: {} for name in names}
    for node in machine_nodes:
        if node not in places:
            raise ValueError(
                f"has no place of {node}; write it, e.g. {{{json.dumps(names[0])}: 0}}"
            )
        place = places[node] if isinstance(places[node], dict) else {names[0]: places[node]}
        for name in names:
            nodes_of_units[name].setdefault(_unit_in(place, name, node), []).append(node)
    return [
        {name: {u: fold(members) for u, members in units.items()}}
        for name, units in nodes_of_units.items()
    ]


def _unit_in(place: Mapping[str, object], name: str, node: str) -> str:
    unit = place.get(name)
    if not isinstance(unit, str | int) or unit == "":
        raise ValueError(f"{node}: its place has no {name}; it has {', '.join(place)}")
    return named(str(unit))
