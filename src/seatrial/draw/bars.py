"""Draw horizontal bars of one or several parts.

bars([Bar("cm4", [812, 3, 0])], parts=["passed", "failed", "timeout"], title="...",
     axis=Axis("runs"), colours=["good", "bad", "warn"])
"""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from seatrial.draw.frame import Box, LegendEntry, figure, labels_width, left_out, legend, level
from seatrial.draw.scales import Axis, Scale, plain, scale_of
from seatrial.draw.svg import WIDTH, cut, hover, ink, rect, stroke, width_of, words

MAX_BARS: int = 60  # a note says how many more there are
_ROW, _THICK = 20, 13


class Bar(NamedTuple):
    """A bar: its name, the value of each part, and its label."""

    name: str
    values: Sequence[float]
    label: str


def bars(
    rows: Sequence[Bar],
    *,
    title: str,
    parts: Sequence[str],
    colours: Sequence[int | str],
    about: str = "",
    axis: Axis = Axis(),  # noqa: B008
) -> Markup:
    """Draw bars that begin at 0, with their parts, which are not negative, end to end.

    ``colours``: of the parts, numbers from 1 or words (``good``, ``bad``, ...).
    """
    shown = [row for row in rows[:MAX_BARS] if row.values and all(map(axis.holds, row.values))]
    looks = [
        LegendEntry(name, colour, "area", 1) for name, colour in zip(parts, colours, strict=False)
    ]
    drawn, top = legend(looks if len(parts) > 1 else [], WIDTH, 0)
    left = labels_width([row.name for row in shown], 0.4 * WIDTH)
    right = WIDTH - max((width_of(row.label) for row in shown), default=0.0) - 10
    box = Box(left, top + 4, right, top + 4 + max(1, len(shown)) * _ROW)
    across = scale_of(axis, [0.0, *(sum(row.values) for row in shown)], left, right)
    drawn += level(axis, across, box, grid=True)
    for i, row in enumerate(shown):
        drawn += _bar(row, looks, box.top + i * _ROW, across, left)
    zero = across.at(0)
    drawn.append(stroke(f"M{zero:.1f} {box.top:.1f}V{box.bottom:.1f}", "axis"))
    notes = left_out("bars", len(rows), len(shown))
    return figure(drawn, box, axis, notes, WIDTH, title, about, "bars")


def _bar(
    row: Bar, looks: Sequence[LegendEntry], top: float, across: Scale, left: float
) -> list[Markup]:
    base = top + _ROW / 2 + 4
    found = [words(cut(row.name, left - 8), left - 8, base, anchor="end", full=row.name)]
    sum_before = 0.0
    for value, look in zip(row.values, looks, strict=True):
        start, end = across.at(sum_before), across.at(sum_before + value)
        sum_before += value
        if end - start >= 0.05:
            about = hover(f"{row.name}: {look.name}: {plain(value)}")
            y, width = top + (_ROW - _THICK) / 2, max(end - start, 1.0)
            found.append(rect(start, y, width, _THICK, about, fill=ink(look.colour)))
    found.append(words(row.label, across.at(sum_before) + 5, base, colour="muted"))
    return found
