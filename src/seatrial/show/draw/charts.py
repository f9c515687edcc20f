"""Draw series over one axis: lines, steps and dots, with marks, spans and levels.

chart([ChartSeries("accepted", points), ChartSeries("slow", others, "dots", colour="bad")],
      title="...", x=Axis("start (UTC)", kind="time"), y=Axis("elapsed", "s"))
"""

import math
from collections.abc import Sequence
from itertools import chain, groupby
from statistics import quantiles
from typing import Literal, NamedTuple

from markupsafe import Markup

from seatrial.show.draw import svg
from seatrial.show.draw.svg import (
    MAX_DOTS,
    WIDTH,
    Axis,
    Box,
    LegendEntry,
    Place,
    Scale,
    cut,
    figure,
    hover,
    ink,
    labels_width,
    left_out,
    legend,
    level,
    number,
    plain,
    rect,
    scale_of,
    shape,
    stroke,
    tag,
    thin_dots,
    thin_line,
    upright,
    width_of,
    words,
)
from seatrial.units import count

Point = tuple[float, float | None]
Style = Literal["line", "steps", "dots", "both"]

DENSE = 400  # a series of so many discs has small dots
MAX_SHAPED_DOTS = 2000  # so has a series of so many marks of another shape
_ROWS = 2  # rows of labels above the data


class ChartSeries(NamedTuple):
    """Points (x, y) in the order of x; y None makes a gap in a line.

    ``style``: "both" is a line with dots. ``colour``: a number from 1, or ``good``, ``bad``,
    ``warn``, ``muted``. ``form``: the number of its shape and dashes. 0 means its position.
    ``intervals``: (x, low, high) of points.
    """

    name: str
    points: Sequence[Point]
    style: Style = "line"
    colour: int | str = 0
    form: int = 0
    intervals: Sequence[tuple[float, float, float]] = ()


class Mark(NamedTuple):
    """An incident at x: a note, a change, an alert."""

    at: float
    text: str
    colour: int | str = "muted"


class ShadedSpan(NamedTuple):
    """A shaded span of x, such as an outage."""

    start: float
    end: float
    text: str = ""


class ReferenceLine(NamedTuple):
    """A line at y, such as a reference or a bound."""

    y: float
    text: str
    colour: int | str = "muted"


def chart(
    series: Sequence[ChartSeries],
    *,
    title: str,
    about: str = "",
    x: Axis = Axis(),  # noqa: B008
    y: Axis = Axis(),  # noqa: B008
    marks: Sequence[Mark] = (),
    spans: Sequence[ShadedSpan] = (),
    levels: Sequence[ReferenceLine] = (),
    width: int = svg.WIDTH,
    height: int = 250,
    margin: int = 0,
) -> Markup:
    """Draw series. ``height`` is that of the data, without legend and labels; ``margin`` is between
    the axes and the outermost data."""
    looks = [_look(one, i + 1) for i, one in enumerate(series)]
    points = [_shown(one, x, y) for one in series]
    values = [value for _, value in chain.from_iterable(points) if value is not None]
    heights = [*values, *(each.y for each in levels), *_ends(series)]
    named = [entry for entry in looks if entry.name]
    top_parts, top = legend(named if len(named) > 1 else [], width, 0)
    if y.words:
        top += svg.LINE
    rough = scale_of(y, heights, 0, height - 2 * margin, 36)
    left = _widest_label(rough) + 10
    right = width - 12.0
    across = scale_of(x, _places(points, marks, spans), left + margin, right - margin)
    above, rows = _marks(marks, across, top, width)
    box = Box(left, top + 6 + rows * svg.LINE, right, top + 6 + rows * svg.LINE + height)
    upwards = scale_of(y, heights, box.bottom - margin, box.top + margin, 36)
    parts = [*top_parts]
    if y.words:
        parts.append(svg.words(y.words, 0, top - 4, colour="muted"))
    parts += _spans(spans, across, box)
    parts += [
        *upright(upwards, box),
        *level(x, across, box),
        *above,
        *_lines_down(marks, across, box),
    ]
    drawn = [
        _series(one, look, shown, across, upwards)
        for one, look, shown in zip(series, looks, points, strict=True)
    ]
    parts += chain.from_iterable(lines for lines, _ in drawn)
    notes = list(chain.from_iterable(left_out for _, left_out in drawn))
    parts += _levels(levels, upwards, box)
    if not values:
        middle = ((box.left + box.right) / 2, (box.top + box.bottom) / 2)
        parts.append(svg.words("nothing to show", *middle, anchor="middle", colour="muted"))
    return figure(parts, box, x, notes, width, title, about, "chart")


def _widest_label(scale: Scale) -> float:
    return max((svg.width_of(tick.label) for tick in scale.ticks), default=0.0)


def _ends(series: Sequence[ChartSeries]) -> list[float]:
    """Return the ends of all intervals."""
    return [end for one in series for _, low, high in one.intervals for end in (low, high)]


def _places(
    points: Sequence[Sequence[Point]], marks: Sequence[Mark], spans: Sequence[ShadedSpan]
) -> list[float]:
    """Return all x of what is drawn."""
    ends = [end for span in spans for end in (span.start, span.end)]
    return [*(at for at, _ in chain.from_iterable(points)), *(mark.at for mark in marks), *ends]


def _look(one: ChartSeries, position: int) -> LegendEntry:
    look: str = "line" if one.style == "steps" else one.style
    form = one.form or position
    if look == "dots" and len(one.points) >= (DENSE if form == 1 else MAX_SHAPED_DOTS):
        look = "dense"
    return LegendEntry(one.name, one.colour or position, look, form)


def _shown(one: ChartSeries, x: Axis, y: Axis) -> list[Point]:
    """Return the points that the axes can show; a y that they cannot show becomes a gap."""
    return [(at, value if y.holds(value) else None) for at, value in one.points if x.holds(at)]


# ---- series -------------------------------------------------------------------------------


def _series(
    one: ChartSeries, look: LegendEntry, points: Sequence[Point], across: Scale, upwards: Scale
) -> tuple[list[Markup], list[str]]:
    """Return a drawn series, and the notes about it."""
    pieces = _pieces(points, across, upwards)
    places = list(chain.from_iterable(pieces))
    parts: list[Markup] = []
    drawn = len(places)
    if one.style != "dots":
        kept = [thin_line(piece) for piece in pieces]
        drawn = sum(map(len, kept))
        path = "".join(_path(piece, one.style == "steps") for piece in kept)
        dash = svg.dashes(look.form)
        looks = {"stroke_linejoin": "round", "stroke_dasharray": dash}
        parts.append(svg.stroke(path, look.colour, stroke_width=1.6, **looks))
    if one.intervals:
        path = "".join(
            f"M{across.at(x):.1f} {upwards.at(low):.1f}V{upwards.at(high):.1f}"
            for x, low, high in one.intervals
        )
        parts.append(svg.stroke(path, look.colour))
    if one.style in ("dots", "both"):
        dots = thin_dots(places)
        drawn = min(drawn, len(dots)) if one.style == "both" else len(dots)
        parts.append(_dots(dots, look))
    said = []
    if drawn < len(places) > (MAX_DOTS if one.style == "dots" else 0):
        of = f" of {one.name}" if one.name else ""
        said.append(
            f"{drawn:,} of {len(places):,} points{of} drawn; the others lie on or close to these"
        )
    if lost := len(one.points) - len(places):
        gaps = sum(value is None for _, value in one.points)
        if lost > gaps:
            said.append(f"{count(lost - gaps, 'point')} cannot be shown on these axes")
    return parts, said


def _pieces(points: Sequence[Point], across: Scale, upwards: Scale) -> list[list[Place]]:
    return [
        [(across.at(at), upwards.at(value)) for at, value in own if value is not None]
        for there, own in groupby(points, lambda point: point[1] is not None)
        if there
    ]


def _path(places: Sequence[Place], steps: bool) -> str:
    first, rest = places[0], places[1:]
    begin = f"M{first[0]:.1f} {first[1]:.1f}"
    if not rest:
        return f"{begin}h1"
    if steps:
        return begin + "".join(f"H{x:.1f}V{y:.1f}" for x, y in rest)
    return begin + "L" + " ".join(f"{x:.1f} {y:.1f}" for x, y in rest)


def _dots(dots: Sequence[Place], look: LegendEntry) -> Markup:
    if look.look == "dense":
        path = "".join(f"M{x:.1f} {y:.1f}{svg.DOT}" for x, y in dots)
        return svg.stroke(
            path, look.colour, stroke_width=2.2, stroke_linecap="round", stroke_opacity=0.75
        )
    mark = svg.shape(look.form)
    path = "".join(f"M{x:.1f} {y:.1f}{mark}" for x, y in dots)
    return svg.tag("path", d=path, fill=svg.ink(look.colour), fill_opacity=0.9)


# ---- around them --------------------------------------------------------------------------


def _spans(spans: Sequence[ShadedSpan], across: Scale, box: Box) -> list[Markup]:
    found = []
    for span in spans:
        start, end = across.at(span.start), across.at(span.end)
        width, height = max(1.0, end - start), box.bottom - box.top
        found.append(
            svg.rect(start, box.top, width, height, svg.hover(span.text), fill=svg.ink("shade"))
        )
        if span.text and svg.width_of(span.text) + 6 <= end - start:
            found.append(svg.words(span.text, start + 4, box.top + 12, colour="muted"))
    return found


def _levels(levels: Sequence[ReferenceLine], upwards: Scale, box: Box) -> list[Markup]:
    """Return lines at heights, each with its label above it if there is room, else below."""
    found = []
    taken: list[float] = []
    for each in sorted(levels, key=lambda one: upwards.at(one.y)):
        y = upwards.at(each.y)
        path = f"M{box.left:.1f} {y:.1f}H{box.right:.1f}"
        found.append(svg.stroke(path, each.colour, stroke_dasharray="5 3"))
        above, below = y - 4, y + 13
        rooms = [above, below] if above - svg.LINE >= box.top - 8 else [below]
        base = next(
            (b for b in rooms if all(abs(b - other) >= svg.LINE - 2 for other in taken)), None
        )
        if base is not None:
            taken.append(base)
            text = svg.cut(each.text, box.right - box.left)
            place = (box.right - 2, base)
            label = svg.words(
                text, *place, anchor="end", colour=each.colour, full=each.text, halo=True
            )
            found.append(label)
    return found


def _marks(
    marks: Sequence[Mark], across: Scale, top: float, width: float
) -> tuple[list[Markup], int]:
    """Return the labels of marks above the data, and the number of rows that they need.

    A mark whose label finds no room is shown by its line alone.
    """
    ends = [0.0] * _ROWS
    found: list[tuple[int, Markup]] = []
    for mark in sorted(marks, key=lambda one: one.at):
        text = svg.cut(mark.text, 150)
        needs = svg.width_of(text)
        x = across.at(mark.at)
        start = max(0.0, min(x - needs / 2, width - needs))
        row = next((i for i, end in enumerate(ends) if start >= end), None)
        if row is None or not text:
            continue
        ends[row] = start + needs + 8
        base = top + 12 + row * svg.LINE
        label = svg.words(text, start, base, colour=mark.colour, full=mark.text)
        found.append((row, label))
    rows = max((row + 1 for row, _ in found), default=0)
    return [label for _, label in found], rows


def _lines_down(marks: Sequence[Mark], across: Scale, box: Box) -> list[Markup]:
    found = []
    for mark in marks:
        path = f"M{across.at(mark.at):.1f} {box.top - 3:.1f}V{box.bottom:.1f}"
        about = svg.hover(mark.text)
        found.append(svg.stroke(path, mark.colour, about, stroke_width=1.2, stroke_dasharray="3 2"))
    return found


# ---- bars ----------------------------------------------------------------------------------------
#
# Draw horizontal bars of one or several parts.
#
# bars([Bar("cm4", [812, 3, 0])], parts=["passed", "failed", "timeout"], title="...",
#      axis=Axis("runs"), colours=["good", "bad", "warn"])


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


# ---- boxes ---------------------------------------------------------------------------------------
#
# Draw a horizontal box plot of each group (Tukey 1977), with every value if they are few.
#
#     boxes([BoxGroup("cm4", elapsed_times)], title="...", axis=Axis("elapsed", "s"))
#
# The box reaches from the first to the third quartile and shows the median. The whiskers reach to
# the farthest values within 1.5 times its length; values beyond them are drawn as marks.


MAX_BOXES: int = 60
FEW: int = 40  # up to so many values are all drawn
MAX_BEYOND_WHISKERS: int = 300  # marks of a group beyond its whiskers
_BOX_ROW, _BOX_THICK = 24, 12


class BoxGroup(NamedTuple):
    """A group's name and its values. ``of``: how many these stand for, if they are quantiles of
    more."""

    name: str
    values: Sequence[float]
    of: int = 0


def boxes(
    groups: Sequence[BoxGroup],
    *,
    title: str,
    about: str = "",
    axis: Axis = Axis(),  # noqa: B008
) -> Markup:
    """Draw a box plot of each group."""
    shown = [(group, sorted(filter(axis.holds, group.values))) for group in groups[:MAX_BOXES]]
    names = [f"{group.name}  n {group.of or len(values):,}" for group, values in shown]
    left = labels_width(names, 0.42 * WIDTH)
    box = Box(left, 4, WIDTH - 14.0, 4.0 + max(1, len(shown)) * _BOX_ROW)
    across = scale_of(axis, chain.from_iterable(v for _, v in shown), left + 6, WIDTH - 18)
    parts = level(axis, across, box, grid=True)
    for i, (group, values) in enumerate(shown):
        middle = box.top + (i + 0.5) * _BOX_ROW
        name = cut(names[i], left - 8)
        parts.append(words(name, left - 8, middle + 4, anchor="end", full=names[i]))
        if values:
            parts += _group(group, values, middle, across)
    notes = left_out("groups", len(groups), len(shown))
    return figure(parts, box, axis, notes, WIDTH, title, about, "boxes")


def _group(group: BoxGroup, values: Sequence[float], y: float, across: Scale) -> list[Markup]:
    alike = list(values) * 2 if len(values) == 1 else values  # quantiles need two
    low, middle, high = quantiles(alike, method="inclusive")
    reach = 1.5 * (high - low)
    inside = [value for value in values if low - reach <= value <= high + reach]
    first, q1, q2, q3, last = (across.at(v) for v in (inside[0], low, middle, high, inside[-1]))
    colour = ink(1)
    half = _BOX_THICK / 2
    whiskers = f"M{number(first)} {number(y)}H{number(q1)}M{number(q3)} {number(y)}H{number(last)}"
    whiskers += "".join(f"M{number(x)} {number(y - 4)}v8" for x in (first, last))
    about = f"{group.name}: median {middle:.4g}, quartiles {low:.4g} and {high:.4g}"
    found = [
        stroke(whiskers, 1),
        rect(
            *(q1, y - half, max(q3 - q1, 0.5), _BOX_THICK),
            hover(about),
            fill=colour,
            fill_opacity=0.25,
            stroke=colour,
        ),
        stroke(f"M{number(q2)} {number(y - half)}v{_BOX_THICK}", 1, stroke_width=2),
    ]
    few = len(values) <= FEW
    marked = (
        values if few else [value for value in values if value < inside[0] or value > inside[-1]]
    )
    mark = shape(1 if few else 4)
    dots = thin_dots([(across.at(value), y) for value in marked], MAX_BEYOND_WHISKERS)
    if dots:
        path = "".join(f"M{number(x)} {number(y)}{mark}" for x, _ in dots)
        found.append(tag("path", d=path, fill=colour, fill_opacity=0.65))
    return found


# ---- scaling -------------------------------------------------------------------------------------
#
# Draw how something grows with size, on logarithmic axes with ideal lines.
#
# scaling([Curve("lj", [(1, 1.0, None, None), (2, 1.96, 1.9, 2.0)])], title="...",
#         x=Axis("nodes"), y=Axis("speed-up"))


_SIZES = 10  # up to so many sizes are all labelled on the axis
_MARGIN = 8


class Curve(NamedTuple):
    """Points (size, value, low, high); low and high are the ends of an interval, or None."""

    name: str
    points: Sequence[tuple[float, float, float | None, float | None]]


def scaling(
    curves: Sequence[Curve],
    *,
    title: str,
    about: str = "",
    x: Axis = Axis("nodes"),  # noqa: B008
    y: Axis = Axis("speed-up"),  # noqa: B008
    ideal: float = 1.0,
    width: int = WIDTH,
    height: int = 270,
) -> Markup:
    """Draw curves on logarithmic axes.

    ``ideal``: the slope of the line through the first point of a curve: 1 for a speed-up, -1 for a
    time, 0 for weak scaling.
    """
    x, y = x._replace(kind="log"), y._replace(kind="log")
    series: list[ChartSeries] = []
    lines: list[ChartSeries] = []
    sizes: set[float] = set()
    for place, curve in enumerate(curves, 1):
        points = sorted(curve.points)
        shown = [
            point for point in _scaling_places(points) if x.holds(point[0]) and y.holds(point[1])
        ]
        sizes.update(size for size, *_ in points if x.holds(size))
        if shown:
            line = _ideal_line(shown, ideal)
            lines.append(ChartSeries("" if lines else "ideal", line, "line", "muted", 3))
        intervals = [
            (size, low, high)
            for size, value, low, high in points
            if (size, value) in shown and low is not None and high is not None and low > 0
        ]
        series.append(
            ChartSeries(curve.name, _scaling_places(points), "both", place, place, intervals)
        )
    if len(sizes) <= _SIZES:
        x = x._replace(ticks=sorted(sizes))
    drawn = [*lines, *series]
    return chart(
        drawn, title=title, about=about, x=x, y=y, width=width, height=height, margin=_MARGIN
    )


def _scaling_places(
    points: Sequence[tuple[float, float, float | None, float | None]],
) -> list[tuple[float, float]]:
    return [(size, value) for size, value, *_ in points]


def _ideal_line(points: Sequence[tuple[float, float]], slope: float) -> list[tuple[float, float]]:
    """Return the ends of a line through the first point, up to the size of the last."""
    (size, value), last = points[0], points[-1][0]
    return [(size, value), (last, value * math.pow(last / size, slope))]
