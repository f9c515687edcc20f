"""Draw a square table of amounts as colours: a cell for each sender (row) and receiver (column).

heat_map([[0, 80], [80, 0]], title="Bytes from rank to rank", show=show_bytes)
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from markupsafe import Markup
from msgspec import Struct

from seatrial.show.draw.svg import LINE, WIDTH, cut, hover, ink, picture, rect, stroke, words

LEVELS: Final = 7  # of amounts above 0
_COLOURS: Final = (  # as in palette.css, for light paper
    "#e9eef0",
    "#cfe0ea",
    "#abcbdd",
    "#7fb0cd",
    "#5493b8",
    "#33759e",
    "#1d577f",
    "#123c5e",
)
_LEFT: Final = 52  # room for the numbers of rows
_LARGEST: Final = 460  # side of the table
_TICKS: Final = 8


def heat_map(
    cells: Sequence[Sequence[float]],
    *,
    title: str,
    show: Callable[[float], str],
    about: str = "",
    per: int = 1,
    borders: Sequence[int] = (),
    width: float = WIDTH,
) -> Markup:
    """Draw amounts of 0 or more. ``per``: a row stands for so many ranks. ``borders``: before these
    cells a line is drawn, such as between nodes."""
    count = len(cells)
    side = min(width - _LEFT, _LARGEST)
    size = side / count
    scale = AmountScale([value for row in cells for value in row])
    top = 2.0 * LINE
    parts = [
        words("to rank", _LEFT, LINE - 4, colour="muted"),
        words("from", 0, LINE - 4, colour="muted"),
        rect(_LEFT, top, side, side, fill=colour(0)),
    ]
    for i, row in enumerate(cells):
        for j, value in enumerate(row):
            if value > 0:
                pair = f"{_ranks(i, per)} to {_ranks(j, per)}: {show(value)}"
                x, y = _LEFT + j * size, top + i * size
                fill = colour(scale.level(value))
                parts.append(
                    rect(x, y, size, size, hover(pair), fill=fill, shape_rendering="crispEdges")
                )
    for at in borders:
        place = at * size
        path = f"M{_LEFT} {top + place:.1f}h{side:.1f}M{_LEFT + place:.1f} {top:.1f}v{side:.1f}"
        parts.append(stroke(path, "axis", stroke_width=0.8))
    for at in range(0, count, max(1, -(-count // _TICKS))):
        middle = (at + 0.5) * size
        parts.append(words(str(at * per), _LEFT + middle, top - 4, anchor="middle", colour="muted"))
        parts.append(
            words(str(at * per), _LEFT - 6, top + middle + 4, anchor="end", colour="muted")
        )
    parts.append(rect(_LEFT, top, side, side, fill="none", stroke=ink("axis")))
    return picture(parts, width, top + side + 2, title, about, "heat")


class AmountScale:
    """Levels of amounts: 0 for none, then 1 to LEVELS from the least to the largest, in equal
    factors."""

    def __init__(self, values: Sequence[float]) -> None:
        some = [value for value in values if value > 0]
        self.low, self.high = min(some, default=1.0), max(some, default=1.0)
        self._factor = math.log(self.high / self.low)

    def level(self, value: float) -> int:
        if value <= 0:
            return 0
        if self._factor <= 0:
            return LEVELS
        share = math.log(value / self.low) / self._factor
        return 1 + min(LEVELS - 1, int(share * LEVELS))

    def starts(self) -> list[tuple[int, float]]:
        """Return each level that an amount may have, and its least amount."""
        if self._factor <= 0:
            return [(LEVELS, self.low)]
        step = self._factor / LEVELS
        return [(1 + i, self.low * math.exp(i * step)) for i in range(LEVELS)]


def colour(level: int) -> str:
    """Return the CSS colour of a level."""
    return f"var(--heat-{level},{_COLOURS[level]})"


def _ranks(at: int, per: int) -> str:
    return f"rank {at}" if per == 1 else f"ranks {at * per} to {at * per + per - 1}"


# ---- node cores ----------------------------------------------------------------------------------
#
# Draw nodes with their CPUs, and the ranks on each.
#
# node_cores([NodeCores("n001", [CpuUse(0, 0, "0", 1), CpuUse(1, 0, "", 0)])], title="...")


MAX_NODES: int = 4
MAX_CPUS: int = 512  # of a domain
_WIDTH, _HEIGHT, _GAP = 40, 34, 3  # of a CPU, at least; between two


class CpuUse(Struct, frozen=True):
    """A CPU of a node: its number, its NUMA domain (None: not known), the ranks that were on it, or
    may have been where their program does not tell, and the number of their threads."""

    cpu: int
    numa: int | None
    ranks: str
    threads: int


class NodeCores(Struct, frozen=True):
    """A node and those of its CPUs that are drawn."""

    node: str
    cpus: list[CpuUse]

    def domains(self) -> Iterator[tuple[str, list[CpuUse]]]:
        """Yield the CPUs with a title, apart by NUMA domain if that of each is known."""
        domains = {cpu.numa for cpu in self.cpus}
        if None in domains or len(domains) < 2:
            yield self.node, self.cpus
            return
        for numa in sorted(number for number in domains if number is not None):
            yield f"{self.node} NUMA domain {numa}", [c for c in self.cpus if c.numa == numa]


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
        for name, cpus in node.domains():
            y += LINE
            parts.append(words(cut(name, width), 0, y - 4, colour="muted", full=name))
            shown = cpus[:MAX_CPUS]
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
    about = f"CPU {use.cpu}: " + (f"rank {use.ranks}, {threads}" if use.threads else "nothing")
    height = _HEIGHT - _GAP
    parts = [
        rect(x, y, width, height, hover(about), fill=ink(colour), stroke=ink("axis"), rx=2),
        words(str(use.cpu), x + 3, y + 10, colour="paper" if use.threads else "muted"),
    ]
    if use.ranks:
        text = cut(use.ranks, width - 4)
        middle = x + width / 2
        parts.append(words(text, middle, y + 26, anchor="middle", colour="paper", full=use.ranks))
    return parts


# ---- surface -------------------------------------------------------------------------------------
#
# Draw shares of the best over two axes. Cells without a figure stay empty.
#
# sides = Sides("nodes", ["1", "2"], "tasks", ["1", "2"])
# surface_map([[0.5, None], [0.8, 1.0]], sides, title="...")


_CELL_WIDTH: Final = 88  # at most: "100 cheapest" fits
_CELL_HEIGHT: Final = 26
_ROW_NAMES: Final = 84
_DARK: Final = 5  # a level from which on text is light


class Sides(Struct, frozen=True):
    """The axes of a surface: the name and values of that of the rows, then of the columns."""

    down: str
    rows: Sequence[str]
    across: str
    columns: Sequence[str]


def surface_map(
    cells: Sequence[Sequence[float | None]],
    sides: Sides,
    *,
    title: str,
    marks: Mapping[tuple[int, int], str] | None = None,
    about: str = "",
    width: float = WIDTH,
) -> Markup:
    """Draw shares (1: the best) as colours and per cent. ``marks``: what is said of a cell (row,
    column) beside its share."""
    size = min(_CELL_WIDTH, (width - _ROW_NAMES) / max(1, len(sides.columns)))
    top = 2.0 * LINE + 4
    parts = [
        words(cut(f"{sides.across} across, {sides.down} down", width), 0, LINE - 4, colour="muted")
    ]
    for column, name in enumerate(sides.columns):
        x = _ROW_NAMES + (column + 0.5) * size
        parts.append(words(cut(name, size), x, top - 5, anchor="middle", colour="muted", full=name))
    for row, name in enumerate(sides.rows):
        y = top + row * _CELL_HEIGHT
        parts.append(
            words(cut(name, _ROW_NAMES - 8), _ROW_NAMES - 6, y + 17, anchor="end", full=name)
        )
        for column, share in enumerate(cells[row]):
            at = f"{sides.down}={name}, {sides.across}={sides.columns[column]}"
            said = (marks or {}).get((row, column), "")
            parts += _surface_cell(share, _ROW_NAMES + column * size, y, size, at, said)
    height = top + len(sides.rows) * _CELL_HEIGHT + 2
    return picture(parts, width, height, title, about, "heat")


def _surface_cell(
    share: float | None, x: float, y: float, size: float, at: str, said: str
) -> list[Markup]:
    if share is None:
        empty = hover(f"{at}: no point ran")
        place = x, y, size - 2, _CELL_HEIGHT - 2
        return [rect(*place, empty, fill="none", stroke=ink("axis"), stroke_dasharray="2 3")]
    level = max(0, min(LEVELS, round(share * LEVELS)))
    text = f"{100 * share:.0f}" + (f" {said}" if said else "")
    told = hover(f"{at}: {100 * share:.1f} % of the best" + (f", {said}" if said else ""))
    outline = ink("text" if said else "paper")
    return [
        rect(x, y, size - 2, _CELL_HEIGHT - 2, told, fill=colour(level), stroke=outline),
        words(
            cut(text, size - 4),
            x + size / 2 - 1,
            y + 16,
            anchor="middle",
            colour="paper" if level >= _DARK else "text",
            full=text,
        ),
    ]
