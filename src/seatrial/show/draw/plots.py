"""Draw figures as inline SVG from plain data, for the report and for web pages.

    from seatrial.show.draw.plots import ChartSeries, Mark, ShadedSpan, chart
    from seatrial.show.draw.svg import Axis

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
- ``scaling``: curves on logarithmic axes, with the ideal line

``maps`` has two more: ``heat_map``, a square table of amounts as colours, and ``node_cores``, the
CPUs of nodes with the ranks on each.

Each returns one ``<svg role="img">`` with ``<title>`` and ``<desc>``, as wide as its container. It
has no styles, scripts, identifiers or references to elsewhere, so any content security policy
allows it. All text is escaped. Colours are CSS variables, with defaults for a light page;
``palette.css`` (``PALETTE``) defines them for light, dark and print, and a page may set its own.
Series also differ in shape or dashes. The number of points is bounded: with more points than
pixels, the least and the greatest of each pixel's column are drawn, and the figure says so. Show
the data as a table beside it.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path
from statistics import quantiles
from typing import Final, Literal, NamedTuple

from markupsafe import Markup
from msgspec import Struct

from seatrial.show.draw import svg
from seatrial.units import count

PALETTE: Final = Path(__file__).with_name("palette.css")

Point = tuple[float, float | None]
Style = Literal["line", "steps", "dots", "both"]

DENSE = 400  # a series of so many discs has small dots
MAX_SHAPED_DOTS = 2000  # so has a series of so many marks of another shape
_ROWS = 2  # rows of labels above the data


class ChartSeries(Struct, frozen=True):
    """Points (x, y) in the order of x; y None makes a gap in a line.

    ``style``: "both" is a line with dots. ``colour``: a number from 1, or ``good``, ``bad``,
    ``warn``, ``muted``. ``form``: the number of its shape and dashes. 0 means its position.
    ``intervals``: (x, low, high) of points. ``band``: likewise, a shaded area between them.
    """

    name: str
    points: Sequence[Point]
    style: Style = "line"
    colour: int | str = 0
    form: int = 0
    intervals: Sequence[tuple[float, float, float]] = ()
    band: Sequence[tuple[float, float, float]] = ()


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


class ReferenceLine(Struct, frozen=True):
    """A line at y, such as a reference or a bound."""

    y: float
    text: str
    colour: int | str = "muted"


def chart(
    series: Sequence[ChartSeries],
    *,
    title: str,
    about: str = "",
    x: svg.Axis = svg.Axis(),  # noqa: B008
    y: svg.Axis = svg.Axis(),  # noqa: B008
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
    top_parts, top = svg.legend(named if len(named) > 1 else [], width, 0)
    if y.words:
        top += svg.LINE
    rough = svg.scale_of(y, heights, 0, height - 2 * margin, 36)
    left = _widest_label(rough) + 10
    right = width - 12.0
    across = svg.scale_of(x, _places(points, marks, spans), left + margin, right - margin)
    above, rows = _marks(marks, across, top, width)
    box = svg.Box(left, top + 6 + rows * svg.LINE, right, top + 6 + rows * svg.LINE + height)
    upwards = svg.scale_of(y, heights, box.bottom - margin, box.top + margin, 36)
    parts = [*top_parts]
    if y.words:
        parts.append(svg.words(y.words, 0, top - 4, colour="muted"))
    parts += _spans(spans, across, box)
    parts += [
        *svg.upright(upwards, box),
        *svg.level(x, across, box),
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
    return svg.figure(parts, box, x, notes, width, title, about, "chart")


def _widest_label(scale: svg.Scale) -> float:
    return max((svg.width_of(label) for _, label in scale.ticks), default=0.0)


def _ends(series: Sequence[ChartSeries]) -> list[float]:
    """Return the ends of all intervals and bands."""
    both = [end for one in series for end in (*one.intervals, *one.band)]
    return [end for _, low, high in both for end in (low, high)]


def _places(
    points: Sequence[Sequence[Point]], marks: Sequence[Mark], spans: Sequence[ShadedSpan]
) -> list[float]:
    """Return all x of what is drawn."""
    ends = [end for span in spans for end in (span.start, span.end)]
    return [*(at for at, _ in chain.from_iterable(points)), *(mark.at for mark in marks), *ends]


def _look(one: ChartSeries, position: int) -> svg.LegendEntry:
    look: str = "line" if one.style == "steps" else one.style
    form = one.form or position
    if look == "dots" and len(one.points) >= (DENSE if form == 1 else MAX_SHAPED_DOTS):
        look = "dense"
    return svg.LegendEntry(one.name, one.colour or position, look, form)


def _shown(one: ChartSeries, x: svg.Axis, y: svg.Axis) -> list[Point]:
    """Return the points that the axes can show; a y that they cannot show becomes a gap."""
    return [(at, value if y.holds(value) else None) for at, value in one.points if x.holds(at)]


# ---- series -------------------------------------------------------------------------------


def _series(
    one: ChartSeries,
    look: svg.LegendEntry,
    points: Sequence[Point],
    across: svg.Scale,
    upwards: svg.Scale,
) -> tuple[list[Markup], list[str]]:
    """Return a drawn series, and the notes about it."""
    pieces = _pieces(points, across, upwards)
    places = list(chain.from_iterable(pieces))
    parts: list[Markup] = []
    drawn = len(places)
    if len(one.band) > 1:
        parts.append(_band(one.band, look, across, upwards))
    if one.style != "dots":
        kept = [svg.thin_line(piece) for piece in pieces]
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
        dots = svg.thin_dots(places)
        drawn = min(drawn, len(dots)) if one.style == "both" else len(dots)
        parts.append(_dots(dots, look))
    return parts, list(_series_notes(one, len(places), drawn))


def _band(
    band: Sequence[tuple[float, float, float]],
    look: svg.LegendEntry,
    across: svg.Scale,
    upwards: svg.Scale,
) -> Markup:
    lower = [(across.at(x), upwards.at(low)) for x, low, _ in band]
    upper = [(across.at(x), upwards.at(high)) for x, _, high in reversed(band)]
    path = "M" + " ".join(f"{x:.1f} {y:.1f}" for x, y in (*lower, *upper)) + "z"
    return svg.tag("path", d=path, fill=svg.ink(look.colour), fill_opacity="0.2")


def _series_notes(one: ChartSeries, shown: int, drawn: int) -> Iterator[str]:
    """Yield how many points of a series are not drawn, and why."""
    if drawn < shown > (svg.MAX_DOTS if one.style == "dots" else 0):
        name = f" of {one.name}" if one.name else ""
        yield f"{drawn:,} of {shown:,} points{name} drawn; the others lie on or close to these"
    lost = len(one.points) - shown - sum(value is None for _, value in one.points)
    if lost > 0:
        yield f"{count(lost, 'point')} cannot be shown on these axes"


def _pieces(
    points: Sequence[Point], across: svg.Scale, upwards: svg.Scale
) -> list[list[svg.Place]]:
    return [
        [(across.at(at), upwards.at(value)) for at, value in piece if value is not None]
        for is_known, piece in groupby(points, lambda point: point[1] is not None)
        if is_known
    ]


def _path(places: Sequence[svg.Place], steps: bool) -> str:
    first, rest = places[0], places[1:]
    begin = f"M{first[0]:.1f} {first[1]:.1f}"
    if not rest:
        return f"{begin}h1"
    if steps:
        return begin + "".join(f"H{x:.1f}V{y:.1f}" for x, y in rest)
    return begin + "L" + " ".join(f"{x:.1f} {y:.1f}" for x, y in rest)


def _dots(dots: Sequence[svg.Place], look: svg.LegendEntry) -> Markup:
    if look.look == "dense":
        path = "".join(f"M{x:.1f} {y:.1f}{svg.DOT}" for x, y in dots)
        return svg.stroke(
            path, look.colour, stroke_width=2.2, stroke_linecap="round", stroke_opacity=0.75
        )
    mark = svg.shape(look.form)
    path = "".join(f"M{x:.1f} {y:.1f}{mark}" for x, y in dots)
    return svg.tag("path", d=path, fill=svg.ink(look.colour), fill_opacity=0.9)


# ---- around them --------------------------------------------------------------------------


def _spans(spans: Sequence[ShadedSpan], across: svg.Scale, box: svg.Box) -> list[Markup]:
    parts = []
    for span in spans:
        start, end = across.at(span.start), across.at(span.end)
        width, height = max(1.0, end - start), box.bottom - box.top
        parts.append(
            svg.rect(start, box.top, width, height, svg.hover(span.text), fill=svg.ink("shade"))
        )
        if span.text and svg.width_of(span.text) + 6 <= end - start:
            parts.append(svg.words(span.text, start + 4, box.top + 12, colour="muted"))
    return parts


def _levels(levels: Sequence[ReferenceLine], upwards: svg.Scale, box: svg.Box) -> list[Markup]:
    """Return lines at heights, each with its label above it if there is room, else below."""
    parts = []
    taken: list[float] = []
    for each in sorted(levels, key=lambda one: upwards.at(one.y)):
        y = upwards.at(each.y)
        path = f"M{box.left:.1f} {y:.1f}H{box.right:.1f}"
        parts.append(svg.stroke(path, each.colour, stroke_dasharray="5 3"))
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
            parts.append(label)
    return parts


def _marks(
    marks: Sequence[Mark], across: svg.Scale, top: float, width: float
) -> tuple[list[Markup], int]:
    """Return the labels of marks above the data, and the number of rows that they need.

    A mark whose label finds no room is shown by its line alone.
    """
    ends = [0.0] * _ROWS
    labels: list[tuple[int, Markup]] = []
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
        labels.append((row, label))
    rows = max((row + 1 for row, _ in labels), default=0)
    return [label for _, label in labels], rows


def _lines_down(marks: Sequence[Mark], across: svg.Scale, box: svg.Box) -> list[Markup]:
    lines = []
    for mark in marks:
        path = f"M{across.at(mark.at):.1f} {box.top - 3:.1f}V{box.bottom:.1f}"
        about = svg.hover(mark.text)
        lines.append(svg.stroke(path, mark.colour, about, stroke_width=1.2, stroke_dasharray="3 2"))
    return lines


# ---- bars ----------------------------------------------------------------------------------------
#
# Draw horizontal bars of one or several parts.
#
# bars([Bar("cm4", [812, 3, 0])], parts=["passed", "failed", "timeout"], title="...",
#      axis=svg.Axis("runs"), colours=["good", "bad", "warn"])


MAX_BARS: int = 60  # a note says how many more there are
_ROW, _THICK = 20, 13


class Bar(Struct, frozen=True):
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
    axis: svg.Axis = svg.Axis(),  # noqa: B008
    width: int = svg.WIDTH,
) -> Markup:
    """Draw bars that begin at 0, with their parts, which are not negative, end to end.

    ``colours``: of the parts, numbers from 1 or words (``good``, ``bad``, ...).
    """
    shown = [row for row in rows[:MAX_BARS] if row.values and all(map(axis.holds, row.values))]
    looks = [
        svg.LegendEntry(name, colour, "area", 1)
        for name, colour in zip(parts, colours, strict=False)
    ]
    drawn, top = svg.legend(looks if len(parts) > 1 else [], width, 0)
    left = svg.labels_width([row.name for row in shown], 0.4 * width)
    right = width - max((svg.width_of(row.label) for row in shown), default=0.0) - 10
    box = svg.Box(left, top + 4, right, top + 4 + max(1, len(shown)) * _ROW)
    across = svg.scale_of(axis, [0.0, *(sum(row.values) for row in shown)], left, right)
    drawn += svg.level(axis, across, box, grid=True)
    for i, row in enumerate(shown):
        drawn += _bar(row, looks, box.top + i * _ROW, across, left)
    zero = across.at(0)
    drawn.append(svg.stroke(f"M{zero:.1f} {box.top:.1f}V{box.bottom:.1f}", "axis"))
    notes = svg.left_out("bars", len(rows), len(shown))
    return svg.figure(drawn, box, axis, notes, width, title, about, "bars")


def _bar(
    row: Bar, looks: Sequence[svg.LegendEntry], top: float, across: svg.Scale, left: float
) -> list[Markup]:
    base = top + _ROW / 2 + 4
    parts = [svg.words(svg.cut(row.name, left - 8), left - 8, base, anchor="end", full=row.name)]
    sum_before = 0.0
    for value, look in zip(row.values, looks, strict=True):
        start, end = across.at(sum_before), across.at(sum_before + value)
        sum_before += value
        if end - start >= 0.05:
            about = svg.hover(f"{row.name}: {look.name}: {svg.plain(value)}")
            y, width = top + (_ROW - _THICK) / 2, max(end - start, 1.0)
            parts.append(svg.rect(start, y, width, _THICK, about, fill=svg.ink(look.colour)))
    parts.append(svg.words(row.label, across.at(sum_before) + 5, base, colour="muted"))
    return parts


# ---- boxes ---------------------------------------------------------------------------------------
#
# Draw a horizontal box plot of each group (Tukey 1977), with every value if they are few.
#
#     boxes([BoxGroup("cm4", elapsed_times)], title="...", axis=svg.Axis("elapsed", "s"))
#
# The box reaches from the first to the third quartile and shows the median. The whiskers reach to
# the farthest values within 1.5 times its length; values beyond them are drawn as marks.


MAX_BOXES: int = 60
FEW: int = 40  # up to so many values are all drawn
MAX_BEYOND_WHISKERS: int = 300  # marks of a group beyond its whiskers
_BOX_ROW, _BOX_THICK = 24, 12


class BoxGroup(Struct, frozen=True):
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
    axis: svg.Axis = svg.Axis(),  # noqa: B008
    width: int = svg.WIDTH,
) -> Markup:
    """Draw a box plot of each group."""
    shown = [(group, sorted(filter(axis.holds, group.values))) for group in groups[:MAX_BOXES]]
    names = [f"{group.name}  n {group.of or len(values):,}" for group, values in shown]
    left = svg.labels_width(names, 0.42 * width)
    box = svg.Box(left, 4, width - 14.0, 4.0 + max(1, len(shown)) * _BOX_ROW)
    across = svg.scale_of(axis, chain.from_iterable(v for _, v in shown), left + 6, width - 18)
    parts = svg.level(axis, across, box, grid=True)
    for i, (group, values) in enumerate(shown):
        middle = box.top + (i + 0.5) * _BOX_ROW
        name = svg.cut(names[i], left - 8)
        parts.append(svg.words(name, left - 8, middle + 4, anchor="end", full=names[i]))
        if values:
            parts += _group(group, values, middle, across)
    notes = svg.left_out("groups", len(groups), len(shown))
    return svg.figure(parts, box, axis, notes, width, title, about, "boxes")


def _group(group: BoxGroup, values: Sequence[float], y: float, across: svg.Scale) -> list[Markup]:
    alike = list(values) * 2 if len(values) == 1 else values  # quantiles need two
    low, middle, high = quantiles(alike, method="inclusive")
    reach = 1.5 * (high - low)
    inside = [value for value in values if low - reach <= value <= high + reach]
    first, q1, q2, q3, last = (across.at(v) for v in (inside[0], low, middle, high, inside[-1]))
    colour = svg.ink(1)
    half = _BOX_THICK / 2
    height = svg.number(y)
    ends = ((first, q1), (q3, last))
    whiskers = "".join(f"M{svg.number(a)} {height}H{svg.number(b)}" for a, b in ends)
    whiskers += "".join(f"M{svg.number(x)} {svg.number(y - 4)}v8" for x in (first, last))
    about = f"{group.name}: median {middle:.4g}, quartiles {low:.4g} and {high:.4g}"
    parts = [
        svg.stroke(whiskers, 1),
        svg.rect(
            *(q1, y - half, max(q3 - q1, 0.5), _BOX_THICK),
            svg.hover(about),
            fill=colour,
            fill_opacity=0.25,
            stroke=colour,
        ),
        svg.stroke(f"M{svg.number(q2)} {svg.number(y - half)}v{_BOX_THICK}", 1, stroke_width=2),
    ]
    few = len(values) <= FEW
    marked = (
        values if few else [value for value in values if value < inside[0] or value > inside[-1]]
    )
    mark = svg.shape(1 if few else 4)
    dots = svg.thin_dots([(across.at(value), y) for value in marked], MAX_BEYOND_WHISKERS)
    if dots:
        path = "".join(f"M{svg.number(x)} {svg.number(y)}{mark}" for x, _ in dots)
        parts.append(svg.tag("path", d=path, fill=colour, fill_opacity=0.65))
    return parts


# ---- forest --------------------------------------------------------------------------------------
#
# Draw values with their intervals, one a row: ratios of a comparison, changes in per cent.
#
# forest([Interval("cm4", -1.2, -2.0, -0.4, label="-1.2 %", colour="bad")], title="...",
#        axis=svg.Axis("change", "%"), centre=0, bounds=[-5], ends=("worse", "better"))


MAX_ROWS: int = 80
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
    axis: svg.Axis = svg.Axis(),  # noqa: B008
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
    left = 0.0 if stacked else svg.labels_width([row.name for row in shown], 0.36 * width)
    labels = 6.0 if stacked else svg.labels_width([row.label for row in shown], 0.3 * width)
    right = width - labels - 4  # 10 at least: half a label of a tick stands beyond it
    top = 4.0 + (svg.LINE if any(ends) else 0)
    tall = _TALL if stacked else _ROW
    box = svg.Box(left, top, right, top + max(1, len(shown)) * tall)
    values = [*_ends_of(shown, axis), *bounds, centre]
    across = svg.scale_of(axis, values, left + 4, right - 4)
    parts = svg.level(axis, across, box, grid=True)
    if any(ends):
        parts.append(svg.words(ends[0], left, top - 6, colour="muted"))
        end = width if stacked else right
        parts.append(svg.words(ends[1], end, top - 6, anchor="end", colour="muted"))
    parts.append(_upright_line(across.at(centre), box, "axis", None))
    parts += [_upright_line(across.at(bound), box, "bad", "5 3") for bound in bounds]
    for i, row in enumerate(shown):
        below = box.top + (i + 1) * tall
        parts += (_above if stacked else _beside)(row, below, box, width)
        if bars:
            parts.append(_bar_from(row, below - _ROW / 2, across.at(centre), across.at(row.value)))
        parts += _interval(row, below - _ROW / 2, across)
    notes = svg.left_out("rows", len(rows), len(shown))
    return svg.figure(parts, box, axis, notes, width, title, about, "forest")


def _ends_of(rows: Sequence[Interval], axis: svg.Axis) -> list[float]:
    """Return the values of rows, and the ends of their intervals that can be shown."""
    ends = [end for row in rows for end in (row.low, row.high) if axis.holds(end) and end]
    return [*(row.value for row in rows), *ends]


def _beside(row: Interval, below: float, box: svg.Box, width: int) -> list[Markup]:
    """Return the name at the left of a row and the label at its right."""
    y, left, right = below - _ROW / 2 + 4, box.left - 8, box.right + 8
    return [
        svg.words(svg.cut(row.name, left), left, y, anchor="end", full=row.name),
        svg.words(svg.cut(row.label, width - right), right, y, colour="muted", full=row.label),
    ]


def _above(row: Interval, below: float, box: svg.Box, width: int) -> list[Markup]:
    """Return the name and the label on a line above the row."""
    y, room = below - _ROW, width - svg.width_of(row.label) - 8
    top, tall = below - _TALL, _TALL - 17.0
    return [
        svg.rect(0.0, top, float(width), tall, fill=svg.ink("paper")),
        svg.words(svg.cut(row.name, room), box.left, y, full=row.name),
        svg.words(row.label, width, y, anchor="end", colour="muted"),
    ]


def _upright_line(x: float, box: svg.Box, colour: str, dash: str | None) -> Markup:
    path = f"M{svg.number(x)} {svg.number(box.top)}V{svg.number(box.bottom)}"
    return svg.stroke(path, colour, stroke_width=1.2, stroke_dasharray=dash)


def _bar_from(row: Interval, y: float, start: float, end: float) -> Markup:
    left, width = min(start, end), max(abs(end - start), 0.5)
    top = y - _THICK / 2
    return svg.rect(left, top, width, _THICK, fill=svg.ink(row.colour), opacity="0.35")


def _interval(row: Interval, y: float, across: svg.Scale) -> list[Markup]:
    parts = []
    if row.low is not None and row.high is not None:
        low, high = across.at(row.low), across.at(row.high)
        path = f"M{svg.number(low)} {svg.number(y)}H{svg.number(high)}"
        path += "".join(f"M{svg.number(x)} {svg.number(y - 4)}v8" for x in (low, high))
        parts.append(svg.stroke(path, row.colour, stroke_width=1.6))
    place = f"M{svg.number(across.at(row.value))} {svg.number(y)}{svg.shape(row.form)}"
    parts.append(
        svg.tag("path", svg.hover(f"{row.name}: {row.label}"), d=place, fill=svg.ink(row.colour))
    )
    return parts


# ---- scaling -------------------------------------------------------------------------------------
#
# Draw how something grows with size, on logarithmic axes with ideal lines.
#
# scaling([Curve("lj", [(1, 1.0, None, None), (2, 1.96, 1.9, 2.0)])], title="...",
#         x=svg.Axis("nodes"), y=svg.Axis("speed-up"))


_DODGE = 0.012  # of the width: distance of the intervals of two curves
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
    x: svg.Axis = svg.Axis("nodes"),  # noqa: B008
    y: svg.Axis = svg.Axis("speed-up"),  # noqa: B008
    ideal: float = 1.0,
    width: int = svg.WIDTH,
    height: int = 270,
) -> Markup:
    """Draw curves on logarithmic axes. Intervals of several curves stand side by side, to the left
    of their size.

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
        beside = math.exp(-_DODGE * (place - 1) * _log_span(curves, x))
        intervals = [
            (size * beside, low, high)
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


def _log_span(curves: Sequence[Curve], x: svg.Axis) -> float:
    """Return the logarithm of the largest over the smallest x."""
    sizes = [size for curve in curves for size, *_ in curve.points if x.holds(size)]
    return math.log(max(sizes) / min(sizes)) if sizes else 0.0


def _scaling_places(
    points: Sequence[tuple[float, float, float | None, float | None]],
) -> list[tuple[float, float]]:
    return [(size, value) for size, value, *_ in points]


def _ideal_line(points: Sequence[tuple[float, float]], slope: float) -> list[tuple[float, float]]:
    """Return the ends of a line through the first point, up to the size of the last."""
    (size, value), last = points[0], points[-1][0]
    return [(size, value), (last, value * math.pow(last / size, slope))]
