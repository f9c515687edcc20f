"""Draw figures as inline SVG from plain data, for the report and for web pages.

    from seatrial.show.draw.plots import Axis, Series, chart

    svg = chart(
        [ChartSeries("triad", [(t, 231.5), ...], style="steps")],     # (x, y); y None is a gap
        title="Memory bandwidth over time", about="241 runs of stream on n001",
        x=Axis("start (UTC)", kind="time"), y=Axis("triad", "GB/s"),
        marks=[Mark(t, "BIOS 2.1")], spans=[ShadedSpan(t0, t1, "maintenance")],
    )                                                            # markupsafe.Markup

- ``chart``: lines, steps or dots. An axis is linear, logarithmic, a time (seconds since the epoch)
  or a clock (seconds since a beginning). Marks, shaded spans, and levels such as references
- ``bars``: horizontal bars, each of one or several parts
- ``boxes``: a box plot of each group; the values themselves if they are few
- ``forest``: values with their intervals, with a centre line and bounds
- ``heat_map``: a square table of amounts as colours
- ``node_cores``: the CPUs of nodes, and the ranks on each
- ``scaling``: curves on logarithmic axes, with the ideal line

Each returns one ``<svg role="img">`` with ``<title>`` and ``<desc>``, as wide as its container. It
has no styles, scripts, identifiers or references to elsewhere, so any content security policy
allows it. All text is escaped. Colours are CSS variables, with defaults for a light page;
``palette.css`` (``PALETTE``) defines them for light, dark and print, and a page may set its own.
Series also differ in shape or dashes. The number of points is bounded: with more points than
pixels, the least and the greatest of each pixel's column are drawn, and the figure says so. Show
the data as a table beside it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from markupsafe import Markup

from seatrial.show.draw import svg
from seatrial.show.draw.charts import (
    Bar,
    BoxGroup,
    ChartSeries,
    Curve,
    Mark,
    Point,
    ReferenceLine,
    ShadedSpan,
    bars,
    boxes,
    chart,
    scaling,
)
from seatrial.show.draw.maps import (
    AmountScale,
    CpuDomain,
    CpuUse,
    NodeCores,
    colour,
    heat_map,
    node_cores,
)
from seatrial.show.draw.svg import Axis, Box, Scale, figure, labels_width, left_out, level, scale_of

PALETTE: Final = Path(__file__).with_name("palette.css")

__all__ = [
    "PALETTE",
    "AmountScale",
    "Axis",
    "Bar",
    "BoxGroup",
    "ChartSeries",
    "CpuDomain",
    "CpuUse",
    "Curve",
    "Interval",
    "Mark",
    "NodeCores",
    "Point",
    "ReferenceLine",
    "ShadedSpan",
    "bars",
    "boxes",
    "chart",
    "colour",
    "forest",
    "heat_map",
    "node_cores",
    "scaling",
]


# ---- forest --------------------------------------------------------------------------------------
#
# Draw values with their intervals, one a row: ratios of a comparison, changes in per cent.
#
# forest([Interval("cm4", -1.2, -2.0, -0.4, label="-1.2 %", colour="bad")], title="...",
#        axis=Axis("change", "%"), centre=0, bounds=[-5], ends=("worse", "better"))


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
    values = [*_values(shown, axis), *bounds, centre]
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


def _values(rows: Sequence[Interval], axis: Axis) -> list[float]:
    """Return the values of rows, and the ends of their intervals that can be shown."""
    ends = [end for row in rows for end in (row.low, row.high) if axis.holds(end) and end]
    return [*(row.value for row in rows), *ends]


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
