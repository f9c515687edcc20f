"""Draw a square table of amounts as colours: a cell for each sender (row) and receiver (column).

heat_map([[0, 80], [80, 0]], title="Bytes from rank to rank", show=show_bytes)
"""

import math
from collections.abc import Callable, Sequence
from typing import Final

from markupsafe import Markup

from seatrial.draw.svg import LINE, WIDTH, hover, ink, picture, rect, stroke, words

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
                told = f"{_ranks(i, per)} to {_ranks(j, per)}: {show(value)}"
                x, y = _LEFT + j * size, top + i * size
                fill = colour(scale.level(value))
                parts.append(
                    rect(x, y, size, size, hover(told), fill=fill, shape_rendering="crispEdges")
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
