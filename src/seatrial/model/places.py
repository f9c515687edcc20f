"""Slurm's description of a network: ``topology.conf``, ``topology.yaml`` or the output of
``scontrol show topology``.

switches = switches_of(text)
switches.nodes           # {"leaf1": ("n001", "n002"), ...}
switches.levels()        # the same, then the switches above these, ...
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from seatrial.files import read_regular
from seatrial.model.documents import Faults, parse
from seatrial.model.machine import Machine, XnameLevel
from seatrial.model.node_set import fold, unfold
from seatrial.model.nodes import node_names

_FIELD = re.compile(r"(?:^|\s)([A-Za-z]+)=(\S*)")
_NONE = ("", "(null)")
_YAML = r"(?:\s|#.*\n|---)*(?:-\s|\[)"  # a list
# Of each kind of topology in a topology.yaml: the list of its units, and the key of their names.
_LISTS = {"tree": ("switches", "switch"), "block": ("blocks", "block"), "ring": ("rings", "ring")}
MAX_LEVELS = 32

Units = dict[str, Sequence[str]]


class Switches(Struct, frozen=True):
    """The nodes of each leaf switch or block, and what is below each larger one. ``kind``: switch,
    block or ring."""

    nodes: dict[str, tuple[str, ...]]
    below: dict[str, tuple[str, ...]]
    kind: str

    def levels(self) -> list[Units]:
        """Return the units of each level with their nodes, the smallest first. A leaf that hangs
        higher than others is a unit of its own on the levels between. A single switch above all
        others is left out. Raises ValueError where a switch is below two, or is not described."""
        self._check()
        heights = {name: self._height(name, ()) for name in self.below}
        levels: list[Units] = [{**self.nodes}]
        for height in range(1, max(heights.values(), default=0) + 1):
            names = [name for name, its in heights.items() if its == height]
            levels.append(self._joined(names, levels[-1]))
        return levels[:-1] if len(levels) > 1 and len(levels[-1]) == 1 else levels

    def _joined(self, names: Iterable[str], below: Units) -> Units:
        """Return the units of these names, and those of the level below that are in none."""
        joined: Units = {name: self._nodes(name) for name in names}
        seen = {node for nodes in joined.values() for node in nodes}
        return {**{n: nodes for n, nodes in below.items() if not seen.issuperset(nodes)}, **joined}

    def _check(self) -> None:
        above: dict[str, str] = {}
        for name, children in self.below.items():
            for child in children:
                if child not in self.nodes and child not in self.below:
                    raise ValueError(f"{name}: Switches={child}, which is not described")
                if (other := above.setdefault(child, name)) != name:
                    raise ValueError(f"{child} is below {other} and below {name}; remove one")

    def _height(self, name: str, path: tuple[str, ...]) -> int:
        if name in path:
            raise ValueError(f"{' is below '.join((*path, name))}: a circle of switches")
        if len(path) >= MAX_LEVELS:
            raise ValueError(f"{name} is below {len(path)} switches; {MAX_LEVELS} are the most")
        children = self.below.get(name, ())
        return 1 + max((self._height(child, (*path, name)) for child in children), default=-1)

    def _nodes(self, name: str) -> tuple[str, ...]:
        if name in self.nodes:
            return self.nodes[name]
        return tuple(node for child in self.below[name] for node in self._nodes(child))


def switches_of(text: str, topology: str = "") -> Switches:
    """Return the switches or blocks of a text. ``topology`` names one of a topology.yaml; default:
    that of the cluster. Raises ValueError if none has nodes, or with the name of one that is
    malformed or described twice."""
    if re.match(_YAML, text):
        return _of_yaml(_topology_in(text, topology))
    if topology:
        raise ValueError(
            f"by: {topology!r} names a key of a JSON of places, or a topology of topology.yaml; "
            "this is another file"
        )
    return _of_conf(text)


def _of_conf(text: str) -> Switches:
    """Return what topology.conf, or ``scontrol show topology``, says."""
    units: list[Unit] = []
    joined: list[tuple[str, ...]] = []  # blocks that are one larger block
    sizes, kind = "", "switch"
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        fields = {key.lower(): value for key, value in _FIELD.findall(line.partition("#")[0])}
        sizes = fields.get("blocksizes", sizes)
        if blocks := fields.get("aggregatedblock"):
            joined.append(_unfolded(blocks, blocks))
            continue
        kind = "block" if "blockname" in fields else kind
        if name := fields.get("switchname") or fields.get("blockname"):
            units.append(Unit(name, fields.get("switches", ""), fields.get("nodes", "")))
    return _joined(units, kind, joined, sizes)


class Unit(NamedTuple):
    """A switch, block or ring: its name, and the folded names of what is directly below it."""

    name: str
    children: str
    nodes: str


def _joined(
    units: Iterable[Unit], kind: str, joined: Sequence[tuple[str, ...]], sizes: str
) -> Switches:
    """Return units as switches. ``joined`` are blocks that are one larger block, as ``sizes`` say
    it, too."""
    nodes: dict[str, tuple[str, ...]] = {}
    below: dict[str, tuple[str, ...]] = {}
    written: dict[str, str] = {}  # as groups are named
    for unit in units:
        if (other := written.setdefault(named(unit.name), unit.name)) != unit.name:
            text = f"are both {named(unit.name)}, as groups are named; rename one"
            raise ValueError(f"{other} and {unit.name} {text}")
        folded, members = unit.nodes, nodes
        if unit.children not in _NONE:
            folded, members = unit.children, below
        if folded in _NONE:
            continue
        if unit.name in nodes or unit.name in below:
            text = "is described twice; give each switch or block its own name"
            raise ValueError(f"{unit.name} {text}")
        members[unit.name] = _unfolded(unit.name, folded)
    if not nodes:
        raise ValueError(
            "no switch (SwitchName=... Nodes=...) and no block has nodes; give topology.conf, "
            "topology.yaml, or the output of `scontrol show topology`"
        )
    larger = _larger_blocks([*nodes], joined or _by_sizes(nodes, sizes))
    return Switches(nodes, {**below, **larger}, kind)


# ---- topology.yaml ------------------------------------------------------------------------


def _topology_in(text: str, name: str) -> dict[str, Any]:
    """Return the topology of that name; without one that of the cluster, which is the first with
    ``cluster_default``, else the first. Raises ValueError."""
    listed = _topologies_in(text)
    if name:
        named = [each for each in listed if str(each.get("topology")) == name]
        known = ", ".join(str(each.get("topology")) for each in listed)
        if not named:
            raise ValueError(f"by: there is no topology {name!r}; there are {known}")
        return named[0]
    default = [each for each in listed if each.get("cluster_default") is True]
    return next(iter(default or listed), {})


def _topologies_in(text: str) -> list[dict[str, Any]]:
    """Return the topologies of a topology.yaml. Raises ValueError."""
    faults = Faults()
    document = parse(text.encode(), Path("line"), faults)
    faulty = next(iter(faults.texts), "").replace("line:", "line ", 1)
    listed = document.values() if document is not None and not faulty else None
    if isinstance(listed, list) and all(isinstance(each, dict) for each in listed):
        return listed
    raise ValueError(faulty or "is no list of topologies, as topology.yaml of Slurm is")


def _of_yaml(about: Mapping[str, Any]) -> Switches:
    """Return the units of a topology of topology.yaml. Raises ValueError for one of a kind that has
    none."""
    name = about.get("topology")
    kind = next((kind for kind in _LISTS if isinstance(about.get(kind), dict)), "")
    if not kind:
        others = ", ".join(key for key in about if key not in ("topology", "cluster_default"))
        raise ValueError(
            f"the topology {name} is {others or 'empty'}, and has no switches; those that have "
            "some are tree, block and ring; name another with `by`"
        )
    listed, key = _LISTS[kind]
    rows = about[kind].get(listed)
    units = [_unit_of(row, key) for row in (rows if isinstance(rows, list) else [])]
    return _joined(units, key, [], _folded(about[kind].get("block_sizes")))


def _unit_of(row: Any, key: str) -> Unit:
    """Return the unit of a row; ``key`` is that of its name. Raises ValueError."""
    if not isinstance(row, dict) or row.get(key) in (None, ""):
        raise ValueError(f"{str(row)[:60]!r} has no name; write {key}: NAME beside its nodes")
    return Unit(str(row[key]), _folded(row.get("children")), _folded(row.get("nodes")))


def _folded(value: Any) -> str:
    """Return a node set, or numbers, that may be written as a list."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _unfolded(name: str, folded: str) -> tuple[str, ...]:
    try:
        return unfold(folded)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _by_sizes(blocks: Iterable[str], sizes: str) -> list[tuple[str, ...]]:
    """Return the larger blocks that ``BlockSizes=30,120`` makes of consecutive ones (topology.conf
    of Slurm 23.11): here of four blocks each, as the first size is that of a block."""
    words, names = sizes.split(",") if sizes else [], list(blocks)
    if not all(word.isascii() and word.isdigit() and int(word) for word in words):
        raise ValueError(f"BlockSizes={sizes} are no numbers; write e.g. BlockSizes=30,120")
    steps = [int(word) // int(words[0]) for word in words]
    return [tuple(names[i : i + k]) for k in steps if k > 1 for i in range(0, len(names), k)]


def _larger_blocks(
    blocks: Sequence[str], joined: Iterable[tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return what is directly below each larger block: blocks, or larger ones that it holds."""
    top = {block: block for block in blocks}
    larger: dict[str, tuple[str, ...]] = {}
    for members in sorted(joined, key=len):
        below = tuple(dict.fromkeys(top.get(block, block) for block in members))
        if len(below) > 1:
            name = f"{members[0]}-{members[-1]}"
            larger[name] = below
            top.update(dict.fromkeys(members, name))
    return larger


# ---- places --------------------------------------------------------------------------------------
#
# Where nodes are, read from what a site has already: groups of nodes near each other.
#
#     groups_in("topology.conf", "")      # {"leaf1": "n[001-018]", ...}
#     groups_by_xname(names, "chassis")   # {"x1000c0": "x1000c0s[0-7]b[0-1]n0", ...}
#
# A file is Slurm's ``topology.conf`` or ``topology.yaml``, or the output of ``scontrol show
# topology`` (the leaf switches or blocks are the groups), or JSON with the place of each node: a
# name, or an object such as ``{"cabinet": "c0", "row": 2}``, as the OLCF Test Harness has it.


MAX_FILE_BYTES = 64 << 20
_XNAME = r"x(\d+)c(\d+)s(\d+)b(\d+)n(\d+)"
_LEVELS: "dict[XnameLevel, int]" = {"cabinet": 1, "chassis": 2, "blade": 3}
_USUAL = ("group", "switch", "cabinet", "rack", "row")  # of the keys of a place
_OUTSIDE = r"[^A-Za-z0-9._-]+"  # what the name of a group has not


def groups_in(file: Path, by: str = "") -> dict[str, str]:
    """Return the groups that a file tells, as folded node sets by name. ``by``: the key of each
    node's place, or the topology of a topology.yaml, if there are several. Raises OSError, and
    ValueError with the reason."""
    text = read_regular(file, MAX_FILE_BYTES).decode(errors="replace")
    if text.lstrip().startswith("{"):
        return groups_of_places(text, by)
    return groups_of_topology(text, by)


def groups_of_topology(text: str, topology: str = "") -> dict[str, str]:
    """Return the leaf switches or the blocks of ``topology.conf``, ``topology.yaml`` or the output
    of ``scontrol show topology``, with their nodes. Raises ValueError if there are none."""
    nodes = switches_of(text, topology).nodes
    return {named(name): fold(members) for name, members in nodes.items()}


def groups_of_places(text: str, by: str = "") -> dict[str, str]:
    """Return the groups of a JSON object that has the place of each node. Raises ValueError."""
    members: dict[str, list[str]] = {}
    for node, place in places_in(text).items():
        if group := _group(node, place, by):
            members.setdefault(group, []).append(node)
    return {group: fold(nodes) for group, nodes in members.items()}


def places_in(text: str) -> dict[str, Any]:
    """Return the place of each node of a JSON object. Raises ValueError, also for a node that it
    has twice."""
    try:
        places = json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise ValueError(f"is no JSON: {error}") from None
    if not isinstance(places, dict) or not places:
        raise ValueError("is no object of nodes and their places")
    return places


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"has {key} twice; give it one place")
        values[key] = value
    return values


def _group(node: str, place: Any, by: str) -> str:
    """Return the group of a node, by its place; "" where it has none."""
    if isinstance(place, dict):
        place = _value_of(node, {str(key).lower(): value for key, value in place.items()}, by)
    elif by:
        raise ValueError(f"by: {by!r}: the place of {node} has no keys")
    if place is None or place == "":
        return ""
    if not isinstance(place, str | int):
        raise ValueError(f"{node}: its place {place!r} is no name")
    return named(str(place))


def _value_of(node: str, place: Mapping[str, Any], by: str) -> Any:
    """Return the value of the key by which a place is grouped: that of ``by``, else of the first
    usual one, else of the only one. A number stands behind its key: ``row2``."""
    usual = next((key for key in _USUAL if key in place), "")
    only = next(iter(place)) if len(place) == 1 else ""
    key = by.lower() or usual or only
    if not key or key not in place:
        text = f"{node}: its place has {', '.join(place) or 'nothing'}; name one with `by`"
        raise ValueError(text)
    return f"{key}{place[key]}" if isinstance(place[key], int) else place[key]


def named(text: str) -> str:
    """Return a text with a dash for whatever the name of a group must not have."""
    return re.sub(_OUTSIDE, "-", text)


def groups_by_xname(names: Iterable[str], level: "XnameLevel") -> dict[str, str]:
    """Return nodes by cabinet, chassis or blade, as their xnames (``x1000c0s0b0n0``) tell; nodes
    with other names are in no group."""
    members: dict[str, list[str]] = {}
    for name in names:
        if match := re.fullmatch(_XNAME, name.partition(".")[0]):
            numbers = zip("xcs", match.groups()[: _LEVELS[level]], strict=False)
            place = "".join(f"{letter}{number}" for letter, number in numbers)
            members.setdefault(place, []).append(name)
    return {place: fold(nodes) for place, nodes in members.items()}


def of_machine(machine: "Machine", groups: Mapping[str, str]) -> dict[str, str]:
    """Return groups with the nodes of a machine alone. Raises ValueError if none is there, or a
    node is in two groups."""
    machine_nodes, seen = set(node_names(machine)), dict[str, str]()
    kept: dict[str, str] = {}
    for name, folded in groups.items():
        nodes = [node for node in unfold(folded) if node in machine_nodes]
        for node in nodes:
            if (other := seen.setdefault(node, name)) != name:
                raise ValueError(f"{node} is in {other} and in {name}")
        if nodes:
            kept[name] = fold(nodes)
    if not kept:
        raise ValueError(f"has none of the nodes of {machine.machine}")
    return kept


def placed(machine: "Machine", folder: Path) -> dict[str, str]:
    """Return the groups that the ``places`` of a machine tell; paths start at ``folder``. Raises
    OSError and ValueError."""
    places = machine.places
    if places.xnames is not None:
        groups = groups_by_xname(node_names(machine), places.xnames)
        if not groups:
            raise ValueError("no node has an xname such as x1000c0s0b0n0")
        return groups
    return of_machine(machine, groups_in(folder / places.file, places.by))
