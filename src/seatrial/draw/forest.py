"""Draw values with their intervals, one a row: ratios of a comparison, changes in per cent.

forest([Interval("cm4", -1.2, -2.0, -0.4, label="-1.2 %", colour="bad")], title="...",
       axis=Axis("change", "%"), centre=0, bounds=[-5], ends=("worse", "better"))
"""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from seatrial.draw import svg
from seatrial.draw.frame import Box, figure, labels_width, left_out, level
from seatrial.draw.scales import Axis, Scale, scale_of

MAX_ROWS: int = 80
_ROW = 20
_THICK = 12
_TALL = 40  # of a row below its name


class Interval(NamedTuple):
    """A value and its interval, which may have no ends. ``form``: the shape of the mark."""

    name: str
    value: float
    low: float | None
    high: float | None
    label: str
    colour: int | str
    form: int


def forest(
    rows: Sequence[Interval],
    *,
    title: str,
    about: str = "",
    axis: Axis = Axis(),  # noqa: B008
    centre: float = 0.0,
    bounds: Sequence[float] = (),
    ends: tuple[str, str] = ("", ""),
    width: int = svg.WIDTH,
    stacked: bool = False,
    bars: bool = False,
) -> Markup:
    """Draw rows of values with intervals; with ``bars`` a bar from the centre to each value.

    ``centre``: the value of no difference, a line. ``bounds``: dashed lines. ``ends``: the meaning
    of the left and the right side. ``stacked``: each row below its name and label, for narrow
    pages.
    """
    shown = [row for row in rows[:MAX_ROWS] if axis.holds(row.value)]
    left = 0.0 if stacked else labels_width([row.name for row in shown], 0.36 * width)
    right = width - (
        0.0 if stacked else labels_width([row.label for row in shown], 0.3 * width) + 4
    )
    top = 4.0 + (svg.LINE if any(ends) else 0)
    tall = _TALL if stacked else _ROW
    box = Box(left, top, right, top + max(1, len(shown)) * tall)
    values = [row.value for row in shown]
    values += [end for row in shown for end in (row.low, row.high) if axis.holds(end) and end]
    values += [*bounds, centre]
    across = scale_of(axis, values, left + 4, right - 4)
    parts = level(axis, across, box, grid=True)
    if any(ends):
        parts.append(svg.words(ends[0], left, top - 6, colour="muted"))
        parts.append(svg.words(ends[1], right, top - 6, anchor="end", colour="muted"))
    parts.append(_line(across.at(centre), box, "axis", None))
    parts += [_line(across.at(bound), box, "bad", "5 3") for bound in bounds]
    for i, row in enumerate(shown):
        below = box.top + (i + 1) * tall
        parts += (_above if stacked else _beside)(row, below, box, width)
        if bars:
            parts.append(_bar(row, below - _ROW / 2, across.at(centre), across.at(row.value)))
        parts += _row(row, below - _ROW / 2, across)
    notes = left_out("rows", len(rows), len(shown))
    return figure(parts, box, axis, notes, width, title, about, "forest")


def _beside(row: Interval, below: float, box: Box, width: int) -> list[Markup]:
    """Return the name at the left of a row and the label at its right."""
    y, left, right = below - _ROW / 2 + 4, box.left - 8, box.right + 8
    return [
        svg.words(svg.cut(row.name, left), left, y, anchor="end", full=row.name),
        svg.words(svg.cut(row.label, width - right), right, y, colour="muted", full=row.label),
    ]


def _above(row: Interval, below: float, box: Box, width: int) -> list[Markup]:
    """Return the name and the label on a line above the row."""
    y, room = below - _ROW, width - svg.width_of(row.label) - 8
    top, tall = below - _TALL, _TALL - 17.0
    return [
        svg.rect(0.0, top, float(width), tall, fill=svg.ink("paper")),
        svg.words(svg.cut(row.name, room), box.left, y, full=row.name),
        svg.words(row.label, box.right, y, anchor="end", colour="muted"),
    ]


def _line(x: float, box: Box, colour: str, dash: str | None) -> Markup:
    path = f"M{svg.number(x)} {svg.number(box.top)}V{svg.number(box.bottom)}"
    return svg.stroke(path, colour, stroke_width=1.2, stroke_dasharray=dash)


def _bar(row: Interval, y: float, start: float, end: float) -> Markup:
    left, width = min(start, end), max(abs(end - start), 0.5)
    top = y - _THICK / 2
    return svg.rect(left, top, width, _THICK, fill=svg.ink(row.colour), opacity="0.35")


def _row(row: Interval, y: float, across: Scale) -> list[Markup]:
    found = []
    if row.low is not None and row.high is not None:
        low, high = across.at(row.low), across.at(row.high)
        path = f"M{svg.number(low)} {svg.number(y)}H{svg.number(high)}"
        path += "".join(f"M{svg.number(x)} {svg.number(y - 4)}v8" for x in (low, high))
        found.append(svg.stroke(path, row.colour, stroke_width=1.6))
    place = f"M{svg.number(across.at(row.value))} {svg.number(y)}{svg.shape(row.form)}"
    found.append(
        svg.tag("path", svg.hover(f"{row.name}: {row.label}"), d=place, fill=svg.ink(row.colour))
    )
    return found
