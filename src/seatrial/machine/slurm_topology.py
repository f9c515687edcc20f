"""Slurm's description of a network: ``topology.conf`` or the output of ``scontrol show topology``.

switches = switches_of(text)
switches.leaves()        # {"leaf1": ("n001", "n002"), ...}
switches.levels()        # the same, then the switches above these, ...
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from seatrial.machine.facts import unfold

_FIELD = re.compile(r"(?:^|\s)([A-Za-z]+)=(\S*)")
_NONE = ("", "(null)")
MAX_LEVELS = 32

Units = dict[str, Sequence[str]]


class Switches(NamedTuple):
    """The nodes of each leaf switch (or block), and the switches below each other one."""

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
    name of one that is malformed."""
    nodes: dict[str, tuple[str, ...]] = {}
    below: dict[str, tuple[str, ...]] = {}
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        fields = {key.lower(): value for key, value in _FIELD.findall(line.partition("#")[0])}
        name = fields.get("switchname") or fields.get("blockname")
        kind = "nodes" if fields.get("switches", "") in _NONE else "switches"
        if not name or fields.get(kind, "") in _NONE:
            continue
        try:
            (nodes if kind == "nodes" else below)[name] = unfold(fields[kind])
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    if not nodes:
        raise ValueError("no switch (SwitchName=... Nodes=...) and no block has nodes")
    return Switches(nodes, below)
