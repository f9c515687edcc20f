"""Where nodes are, read from what a site has already: groups of nodes near each other.

    groups_in("topology.conf", "")      # {"leaf1": "n[001-018]", ...}
    groups_by_xname(names, "chassis")   # {"x1000c0": "x1000c0s[0-7]b[0-1]n0", ...}

A file is Slurm's ``topology.conf`` or the output of ``scontrol show topology`` (the leaf switches
or blocks are the groups), or JSON with the place of each node: a name, or an object such as
``{"cabinet": "c0", "row": 2}``, as the OLCF Test Harness has it.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seatrial.files import read_regular
from seatrial.lazy import json, regex
from seatrial.machine.facts import node_names
from seatrial.machine.node_sets import fold, unfold
from seatrial.machine.slurm_topology import switches_of

if TYPE_CHECKING:
    from seatrial.machine.model import Machine, XnameLevel

MAX_FILE_BYTES = 64 << 20
_XNAME = regex(r"x(\d+)c(\d+)s(\d+)b(\d+)n(\d+)")
_LEVELS: "dict[XnameLevel, int]" = {"cabinet": 1, "chassis": 2, "blade": 3}
_USUAL = ("group", "switch", "cabinet", "rack", "row")  # of the keys of a place
_OUTSIDE = regex(r"[^A-Za-z0-9._-]+")  # what the name of a group has not


def groups_in(file: Path, by: str = "") -> dict[str, str]:
    """Return the groups that a file tells, as folded node sets by name. ``by``: the key of each
    node's place, if it has several. Raises OSError, and ValueError with the reason."""
    text = read_regular(file, MAX_FILE_BYTES).decode(errors="replace")
    if text.lstrip().startswith("{"):
        return groups_of_places(text, by)
    if by:
        raise ValueError(f"by: {by!r} is for a JSON of places; this is a topology of Slurm")
    return groups_of_topology(text)


def groups_of_topology(text: str) -> dict[str, str]:
    """Return the leaf switches or the blocks of ``topology.conf``, or of the output of
    ``scontrol show topology``, with their nodes. Raises ValueError if there are none."""
    return {named(name): fold(nodes) for name, nodes in switches_of(text).leaves().items()}


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
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"has {key} twice; give it one place")
        found[key] = value
    return found


def _group(node: str, place: Any, by: str) -> str:
    if isinstance(place, dict):
        keys = {str(key).lower(): value for key, value in place.items()}
        chosen = by.lower() or next((key for key in _USUAL if key in keys), "")
        if not chosen and len(keys) == 1:
            chosen = next(iter(keys))
        if not chosen or chosen not in keys:
            raise ValueError(
                f"{node}: its place has {', '.join(keys) or 'nothing'}; name one with `by`"
            )
        place = f"{chosen}{keys[chosen]}" if isinstance(keys[chosen], int) else keys[chosen]
    elif by:
        raise ValueError(f"by: {by!r}: the place of {node} has no keys")
    if place is None or place == "":
        return ""
    if not isinstance(place, str | int):
        raise ValueError(f"{node}: its place {place!r} is no name")
    return named(str(place))


def named(text: str) -> str:
    """Return a text with a dash for whatever the name of a group must not have."""
    return _OUTSIDE.sub("-", text)


def groups_by_xname(names: Iterable[str], level: "XnameLevel") -> dict[str, str]:
    """Return nodes by cabinet, chassis or blade, as their xnames (``x1000c0s0b0n0``) tell; nodes
    with other names are in no group."""
    members: dict[str, list[str]] = {}
    for name in names:
        if found := _XNAME.fullmatch(name.partition(".")[0]):
            numbers = zip("xcs", found.groups()[: _LEVELS[level]], strict=False)
            place = "".join(f"{letter}{number}" for letter, number in numbers)
            members.setdefault(place, []).append(name)
    return {place: fold(nodes) for place, nodes in members.items()}


def of_machine(machine: "Machine", groups: Mapping[str, str]) -> dict[str, str]:
    """Return groups with the nodes of a machine alone. Raises ValueError if none is there, or a
    node is in two groups."""
    there, seen = set(node_names(machine)), dict[str, str]()
    kept: dict[str, str] = {}
    for name, folded in groups.items():
        nodes = [node for node in unfold(folded) if node in there]
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
