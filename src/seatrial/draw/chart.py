"""Draw series over one axis: lines, steps and dots, with marks, spans and levels.

chart([ChartSeries("accepted", points), ChartSeries("slow", others, "dots", colour="bad")],
      title="...", x=Axis("start (UTC)", kind="time"), y=Axis("elapsed", "s"))
"""

from collections.abc import Sequence
from itertools import chain, groupby
from typing import Literal, NamedTuple

from markupsafe import Markup

from seatrial.draw import svg
from seatrial.draw.frame import Box, LegendEntry, figure, legend, level, upright
from seatrial.draw.scales import Axis, Scale, scale_of
from seatrial.draw.thin import MAX_DOTS, Place, thin_dots, thin_line
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
    flat = list(chain.from_iterable(points))
    heights = [value for _, value in flat if value is not None] + [each.y for each in levels]
    heights += [end for one in series for _, low, high in one.intervals for end in (low, high)]
    named = [entry for entry in looks if entry.name]
    top_parts, top = legend(named if len(named) > 1 else [], width, 0)
    if y.words:
        top += svg.LINE
    rough = scale_of(y, heights, 0, height - 2 * margin, 36)
    left = max((svg.width_of(tick.label) for tick in rough.ticks), default=0.0) + 10
    right = width - 12.0
    widths = [at for at, _ in flat] + [mark.at for mark in marks]
    widths += [end for span in spans for end in (span.start, span.end)]
    across = scale_of(x, widths, left + margin, right - margin)
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
    said: list[str] = []
    for one, look, shown in zip(series, looks, points, strict=True):
        drawn, left_out = _series(one, look, shown, across, upwards)
        parts += drawn
        said += left_out
    parts += _levels(levels, upwards, box)
    if not any(value is not None for _, value in flat):
        middle = ((box.left + box.right) / 2, (box.top + box.bottom) / 2)
        parts.append(svg.words("nothing to show", *middle, anchor="middle", colour="muted"))
    return figure(parts, box, x, said, width, title, about, "chart")


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
