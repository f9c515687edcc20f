"""The map of a machine's nodes: a coloured square for each, at its place.

    shading = by_state(states, ...)  # a level for each node, and what each level means
    picture(block, shading.levels, shading.shades, marks)    # SVG: a path for each colour

A path holds all squares of a colour, so that ten thousand nodes are a few kilobytes. The legend
gives the numbers of each colour; the worst nodes carry a mark. Warm colours are worse, cool ones
better.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
from markupsafe import Markup
from msgspec import Struct

from seatrial.lazy import Floats
from seatrial.show.web.nodes import NodeBlock
from seatrial.units import Better, show_figure

CELL = 10
SIDE = 9
STEPS = 7
_SIZES = ((128, 3.0), (512, 2.4), (2500, 1.8), (math.inf, 1.3))
NONE = -1  # the level of a node without a value

# The shapes of marks, from the corner of their square.
_DIAMOND = "m4.5 1.5 3 3-3 3-3-3z"
MARKS = {
    "suspect": _DIAMOND,
    "defective": _DIAMOND,
    "most": _DIAMOND,
    "down": "m2 2 5 5m0-5-5 5",
    "excluded": "m2 7 5-5",
}


class Shade(Struct, frozen=True):
    """A colour: the class of its squares, its meaning, and the number of nodes that have it."""

    name: str
    means: str
    count: int = 0


class Shading(Struct, frozen=True):
    """The level of each node: a place in ``shades``, or NONE."""

    levels: list[int]
    shades: list[Shade]


def by_state(words: Sequence[str]) -> Shading:
    """Return colours for the states of nodes."""
    known = ("up", "running", "unused", "excluded", "down")
    means = ("up", "running a run", "up, no run chosen", "excluded", "down")
    levels = [known.index(word) for word in words]
    return _counted(levels, [f"is-{word}" for word in known], means)


def by_count(counts: Sequence[int], prefix: str) -> Shading:
    """Return colours for counts: one for 0, then equal steps to the greatest."""
    greatest = max(counts, default=0)
    width = max(1, math.ceil(greatest / (STEPS - 1)))
    steps = math.ceil(greatest / width)
    levels = [math.ceil(count / width) for count in counts]
    means = ["none"]
    for step in range(steps):
        low, high = step * width + 1, min((step + 1) * width, greatest)
        means.append(str(low) if low == high else f"{low:,} to {high:,}")
    first = STEPS - steps  # few steps are told apart better when they are far apart
    names = [f"{prefix}-0", *(f"{prefix}-{min(STEPS, s + 1 + first // 2)}" for s in range(steps))]
    return _counted(levels, names, means)


def by_value(values: Floats, better: Better, unit: str) -> Shading:
    """Return colours for values, from the worst to the best in equal steps between the 1st and the
    99th percentile."""
    known = values[np.isfinite(values)]
    low, high = (float(end) for end in np.percentile(known, (1, 99)))
    if high <= low:
        low, high = float(known.min()), float(known.max())
    if high <= low:
        levels = np.where(np.isfinite(values), 0, NONE)
        return _counted(levels.tolist(), [f"toward-{STEPS // 2}"], [show_figure(low, unit)])
    edges = np.linspace(low, high, STEPS + 1)
    levels = np.where(np.isfinite(values), np.searchsorted(edges[1:-1], values), NONE)
    if better == "lower":
        levels = np.where(levels >= 0, STEPS - 1 - levels, NONE)
        edges = edges[::-1]
    sign = ("below", "above") if better == "higher" else ("above", "below")
    shown = [show_figure(edge, unit) for edge in edges.tolist()]
    means = [f"{a} to {b}" for a, b in pairwise(shown[1:-1])]
    means = [f"{sign[0]} {shown[1]}", *means, f"{sign[1]} {shown[-2]}"]
    return _counted(levels.tolist(), [f"toward-{step}" for step in range(STEPS)], means)


def by_deviation(z: Floats, bound: float | None) -> Shading:
    """Return colours for deviations; those beyond ``bound`` are defective."""
    limit = max(2.1, bound or 4.0)
    edges = np.array([-limit, -2, -1, 1, 2, limit])
    levels = np.where(np.isfinite(z), np.searchsorted(edges, z), NONE)
    worse, better = f"{limit:.1f} or more worse", f"{limit:.1f} or more better"
    means = [worse, f"2 to {limit:.1f} worse", "1 to 2 worse", "within 1"]
    means += ["1 to 2 better", f"2 to {limit:.1f} better", better]
    return _counted(levels.tolist(), [f"toward-{step}" for step in range(STEPS)], means)


def _counted(levels: list[int], names: Sequence[str], means: Sequence[str]) -> Shading:
    counts = Counter(levels)
    shades = [
        Shade(name, meaning, counts[level])
        for level, (name, meaning) in enumerate(zip(names, means, strict=True))
    ]
    if counts[NONE]:
        shades.append(Shade("is-unknown", "nothing known", counts[NONE]))
    return Shading(levels, shades)


def picture(
    block: NodeBlock,
    number: int,
    shading: Shading,
    marks: Mapping[str, Sequence[int]],
    names: Sequence[str],
) -> Markup:
    """Return a block as SVG; ``marks`` are the places of each kind of mark. Fewer nodes are drawn
    larger; the rows of a plain grid are labelled with their first node."""
    at = {
        place: f"M{i % block.columns * CELL} {i // block.columns * CELL}"
        for i, place in enumerate(block.places)
    }
    parts = [*_squares(at, shading), *_marks(at, marks)]
    firsts = [] if block.titles else [names[place] for place in block.places[:: block.columns]]
    left = 0
    if len(firsts) > 1:
        left = round(3.8 * max(map(len, firsts))) + 3
        parts += [
            Markup('<text x="-3" y="{}" text-anchor="end">{}</text>').format(row * CELL + 7, name)
            for row, name in enumerate(firsts)
        ]
    rows = -(-len(block.places) // block.columns)
    width, height = left + block.columns * CELL - 1, rows * CELL - 1
    scale = next(size for max_nodes, size in _SIZES if len(names) <= max_nodes)
    return Markup(
        '<svg class="nodes" data-block="{number}" viewBox="{left} -0.5 {across} {down}"'
        ' width="{width}" height="{height}" aria-hidden="true">{parts}</svg>'
    ).format(
        number=number,
        left=-left - 0.5,
        across=width + 1,
        down=height + 1,
        width=round(width * scale),
        height=round(height * scale),
        parts=Markup("").join(parts),
    )


def _squares(at: Mapping[int, str], shading: Shading) -> Iterator[Markup]:
    """Yield a path with all squares of a colour, for each colour."""
    squares: dict[int, list[str]] = {}
    for place, start in at.items():
        squares.setdefault(shading.levels[place], []).append(f"{start}h{SIDE}v{SIDE}h-{SIDE}z")
    for level, paths in sorted(squares.items()):
        name = shading.shades[level].name if level >= 0 else "is-unknown"
        yield Markup('<path class="{}" d="{}"/>').format(name, "".join(paths))


def _marks(at: Mapping[int, str], marks: Mapping[str, Sequence[int]]) -> Iterator[Markup]:
    for kind, shape in MARKS.items():
        path = "".join(at[place] + shape for place in marks.get(kind, ()) if place in at)
        if path:
            yield Markup('<path class="mark {}" d="{}"/>').format(kind, path)
