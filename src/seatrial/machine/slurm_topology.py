"""Slurm's description of a network: ``topology.conf`` or the output of ``scontrol show topology``.

switches = switches_of(text)
switches.leaves()        # {"leaf1": ("n001", "n002"), ...}
switches.levels()        # the same, then the switches above these, ...
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from seatrial.lazy import regex
from seatrial.machine.node_sets import unfold

_FIELD = regex(r"(?:^|\s)([A-Za-z]+)=(\S*)")
_NONE = ("", "(null)")
MAX_LEVELS = 32

Units = dict[str, Sequence[str]]


class Switches(NamedTuple):
    """The nodes of each leaf switch or block, and what is below each larger one."""

    nodes: dict[str, tuple[str, ...]]
    below: dict[str, tuple[str, ...]]

    def leaves(self) -> Units:
        """Return the nodes of each leaf switch or block."""
        return {**self.nodes}

    def levels(self) -> list[Units]:
        """Return the units of each level with their nodes, the smallest first. A leaf that hangs
        higher than others is a unit of its own on the levels between. A single switch above all
        others is left out. Raises ValueError where a switch is below two, or is not described."""
        above: dict[str, str] = {}
        for name, children in self.below.items():
            for child in children:
                if child not in self.nodes and child not in self.below:
                    raise ValueError(f"{name}: Switches={child}, which is not described")
                if (other := above.setdefault(child, name)) != name:
                    raise ValueError(f"{child} is below {other} and below {name}; remove one")
        heights = {name: self._height(name, ()) for name in self.below}
        found: list[Units] = [self.leaves()]
        for height in range(1, max(heights.values(), default=0) + 1):
            own = [name for name, its in heights.items() if its == height]
            joined: Units = {name: self._nodes(name) for name in own}
            seen = {node for nodes in joined.values() for node in nodes}
            kept = {name: nodes for name, nodes in found[-1].items() if not seen.issuperset(nodes)}
            found.append({**kept, **joined})
        return found[:-1] if len(found) > 1 and len(found[-1]) == 1 else found

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


def switches_of(text: str) -> Switches:
    """Return the switches or blocks of a text. Raises ValueError if none has nodes, or with the
    name of one that is malformed or described twice."""
    nodes: dict[str, tuple[str, ...]] = {}
    below: dict[str, tuple[str, ...]] = {}
    joined: list[tuple[str, ...]] = []  # blocks that are one larger block
    sizes = ""
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        fields = {key.lower(): value for key, value in _FIELD.findall(line.partition("#")[0])}
        sizes = fields.get("blocksizes", sizes)
        if blocks := fields.get("aggregatedblock"):
            joined.append(_unfolded(blocks, blocks))
            continue
        name = fields.get("switchname") or fields.get("blockname")
        kind = "nodes" if fields.get("switches", "") in _NONE else "switches"
        if not name or fields.get(kind, "") in _NONE:
            continue
        if name in nodes or name in below:
            raise ValueError(f"{name} is described twice; give each switch or block its own name")
        (nodes if kind == "nodes" else below)[name] = _unfolded(name, fields[kind])
    if not nodes:
        raise ValueError("no switch (SwitchName=... Nodes=...) and no block has nodes")
    return Switches(nodes, {**below, **_larger_blocks([*nodes], joined or _by_sizes(nodes, sizes))})


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
    found: dict[str, tuple[str, ...]] = {}
    for own in sorted(joined, key=len):
        below = tuple(dict.fromkeys(top.get(block, block) for block in own))
        if len(below) > 1:
            name = f"{own[0]}-{own[-1]}"
            found[name] = below
            top.update(dict.fromkeys(own, name))
    return found
