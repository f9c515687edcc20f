"""Draw how something grows with size, on logarithmic axes with ideal lines.

scaling([Curve("lj", [(1, 1.0, None, None), (2, 1.96, 1.9, 2.0)])], title="...",
        x=Axis("nodes"), y=Axis("speed-up"))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from seatrial.draw.frame import Box, LegendEntry, legend, level, notes, upright
from seatrial.draw.scales import Axis, Scale, scale_of
from seatrial.draw.svg import LINE, WIDTH, dashes, ink, number, picture, shape, tag, width_of, words

_SIZES = 10  # up to so many sizes are all labelled on the axis


class Curve(NamedTuple):
    """Points (size, value, low, high); low and high are the ends of an interval, or None."""

    name: str
    points: Sequence[tuple[float, float, float | None, float | None]]
    colour: int | str = 0


def scaling(
    curves: Sequence[Curve],
    *,
    title: str,
    about: str = "",
    x: Axis = Axis("nodes"),  # noqa: B008
    y: Axis = Axis("speed-up"),  # noqa: B008
    ideal: float | None = 1.0,
    width: int = WIDTH,
    height: int = 270,
) -> Markup:
    """Draw curves on logarithmic axes.

    ``ideal``: the slope of the line through the first point of a curve: 1 for a speed-up, -1 for a
    time, 0 for weak scaling; None for no line.
    """
    x, y = x._replace(kind="log"), y._replace(kind="log")
    kept = [
        (curve, [p for p in sorted(curve.points) if x.holds(p[0]) and y.holds(p[1])])
        for curve in curves
    ]
    entries = [
        LegendEntry(curve.name, curve.colour or i + 1, "both", i + 1)
        for i, (curve, _) in enumerate(kept)
    ]
    lines = [] if ideal is None else [_ideal(points, ideal) for _, points in kept if points]
    sizes = sorted({point[0] for _, points in kept for point in points})
    x = x._replace(ticks=sizes) if len(sizes) <= _SIZES else x
    heights = [end for _, points in kept for p in points for end in p[1:] if y.holds(end) and end]
    heights += [value for line in lines for _, value in line]
    named = [*entries, *([LegendEntry("ideal", "muted", "line", 3)] if lines else [])]
    parts, top = legend(named, width, 0)
    top += LINE if y.words else 0
    rough = scale_of(y, heights, 0, height - 12, 36)
    left = max((width_of(tick.label) for tick in rough.ticks), default=0.0) + 10
    box = Box(left, top + 6, width - 14.0, top + 6 + height)
    across = scale_of(x, sizes, left + 10, box.right - 10, 50)
    upwards = scale_of(y, heights, box.bottom - 6, box.top + 6, 36)
    if y.words:
        parts.append(words(y.words, 0, top - 4, colour="muted"))
    parts += [*upright(y, upwards, box), *level(x, across, box)]
    parts += [_line(line, across, upwards, "muted", dashes(3)) for line in lines]
    for entry, (_, points) in zip(entries, kept, strict=True):
        if points:
            parts += _curve(entry, points, across, upwards)
    bottom = box.bottom + (38 if x.words else 22)
    lost = sum(len(c.points) for c in curves) - sum(len(points) for _, points in kept)
    said = [f"{lost} points cannot be shown on logarithmic axes"] if lost else []
    told, more = notes(said, bottom + 8, width)
    return picture([*parts, *told], width, bottom + more + 2, title, about, "scaling")


_Points = Sequence[tuple[float, float, float | None, float | None]]


def _ideal(points: _Points, slope: float) -> list[tuple[float, float]]:
    """Return the ends of the ideal line, from the first point of a curve to its last size."""
    (size, value, *_), last = points[0], points[-1][0]
    end = value * math.pow(last / size, slope)
    return [(size, value), (last, end)]


def _line(
    line: Sequence[tuple[float, float]],
    across: Scale,
    upwards: Scale,
    colour: int | str,
    dash: str | None,
) -> Markup:
    path = "M" + "L".join(f"{number(across.at(x))} {number(upwards.at(y))}" for x, y in line)
    return tag(
        "path", d=path, stroke=ink(colour), stroke_width=1.6, fill="none", stroke_dasharray=dash
    )


def _curve(entry: LegendEntry, points: _Points, across: Scale, upwards: Scale) -> list[Markup]:
    line = [(size, value) for size, value, *_ in points]
    bars = ""
    for size, _, low, high in points:
        if low is not None and high is not None and low > 0:
            x = number(across.at(size))
            bars += f"M{x} {number(upwards.at(low))}V{number(upwards.at(high))}"
    mark = shape(entry.form)
    dots = "".join(f"M{number(across.at(x))} {number(upwards.at(y))}{mark}" for x, y in line)
    found = [_line(line, across, upwards, entry.colour, dashes(entry.form))]
    if bars:
        found.append(tag("path", d=bars, stroke=ink(entry.colour), fill="none"))
    return [*found, tag("path", d=dots, fill=ink(entry.colour))]
