"""Draw nodes with their CPUs, and the ranks on each.

node_cores([NodeCores("n001", [CpuDomain("NUMA domain 0", [CpuUse(0, "0", 1), CpuUse(1, "", 0)])])],
           title="...")
"""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from seatrial.draw.svg import LINE, WIDTH, cut, hover, ink, picture, rect, words

MAX_NODES: int = 4
MAX_CPUS: int = 512  # of a domain
_WIDTH, _HEIGHT, _GAP = 40, 34, 3  # of a CPU, at least; between two


class CpuUse(NamedTuple):
    """A CPU: its number, the ranks on it as text, and how many threads were there."""

    cpu: int
    ranks: str
    threads: int


class CpuDomain(NamedTuple):
    """CPUs that are drawn together, with their name, such as that of a NUMA domain."""

    name: str
    cpus: Sequence[CpuUse]


class NodeCores(NamedTuple):
    """A node with its domains."""

    name: str
    domains: Sequence[CpuDomain]


def node_cores(
    nodes: Sequence[NodeCores], *, title: str, about: str = "", width: float = WIDTH
) -> Markup:
    """Draw each node as rows of CPUs. A CPU with one thread has the colour of a series, one with
    several that of what is bad, and one with none is empty."""
    parts: list[Markup] = []
    across = max(4, int(width // _WIDTH))
    size = (width - 2 * _GAP) / across
    y = 0.0
    for node in nodes[:MAX_NODES]:
        for domain in node.domains:
            y += LINE
            name = f"{node.name} {domain.name}".strip()
            parts.append(words(cut(name, width), 0, y - 4, colour="muted", full=name))
            shown = domain.cpus[:MAX_CPUS]
            rows = -(-len(shown) // across)
            room = min(across, len(shown)) * size + 2 * _GAP
            parts.append(rect(0, y, room, rows * _HEIGHT + _GAP, fill=ink("shade"), rx=3))
            for i, use in enumerate(shown):
                x = _GAP + i % across * size
                parts += _cpu(use, x, y + _GAP + i // across * _HEIGHT, size - _GAP)
            y += rows * _HEIGHT + 2 * _GAP
    left_out = len(nodes) - MAX_NODES
    if left_out > 0:
        y += LINE
        parts.append(words(f"and {left_out} more nodes", 0, y - 4, colour="muted"))
    return picture(parts, width, y + 2, title, about, "cores")


def _cpu(use: CpuUse, x: float, y: float, width: float) -> list[Markup]:
    colour = "paper" if not use.threads else "bad" if use.threads > 1 else 1
    threads = f"{use.threads} thread{'' if use.threads == 1 else 's'}"
    told = f"CPU {use.cpu}: " + (f"rank {use.ranks}, {threads}" if use.threads else "nothing")
    height = _HEIGHT - _GAP
    found = [
        rect(x, y, width, height, hover(told), fill=ink(colour), stroke=ink("axis"), rx=2),
        words(str(use.cpu), x + 3, y + 10, colour="paper" if use.threads else "muted"),
    ]
    if use.ranks:
        text = cut(use.ranks, width - 4)
        middle = x + width / 2
        found.append(words(text, middle, y + 26, anchor="middle", colour="paper", full=use.ranks))
    return found
