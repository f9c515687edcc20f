"""Write SVG: elements, numbers, text, and estimates of its width.

    tag("path", d=path, stroke=ink(1), fill="none")
    picture([...], 640, 280, "Runs per day", "12 days")

Text that is not ``Markup`` is escaped.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Final, Literal, NamedTuple, TypeGuard

from markupsafe import Markup, escape
from msgspec import Struct

from seatrial.escaping import plain_line
from seatrial.units import show_unit

WIDTH: Final = 640
TEXT: Final = 11.5  # the size of text, in units of the picture
LINE: Final = 16  # distance of two lines of text
SERIES: Final = 8  # colours; more series repeat them

_INKS: Final = {  # as in palette.css, for light paper
    "text": "#24292f",
    "muted": "#5c6670",
    "grid": "#e3e6e9",
    "axis": "#8a939c",
    "shade": "#eef1f4",
    "paper": "#ffffff",
    "good": "#0a7d5a",
    "warn": "#966000",
    "bad": "#c0392b",
}
_SERIES: Final = (
    "#0062af",
    "#b23200",
    "#008a5c",
    "#7f367d",
    "#c48200",
    "#1797e2",
    "#822133",
    "#7d7686",
)
_NARROW: Final = frozenset("ijltfrI.,:;|'!()[]/ ")
_BROAD: Final = frozenset("mwMW%@&=+<>~#^")


def ink(colour: int | str) -> str:
    """Return a CSS colour: of the number of a series, from 1, or of a word.

    The words are ``good``, ``bad``, ``warn``, ``muted``, ``text``, ``grid``, ``axis``, ``shade``
    and ``paper``. Raises KeyError for another word.
    """
    if isinstance(colour, int):
        number = (colour - 1) % SERIES
        return f"var(--series-{number + 1},{_SERIES[number]})"
    return f"var(--draw-{colour},{_INKS[colour]})"


def tag(name: str, *children: str, **attributes: str | float | None) -> Markup:
    """Return an element. ``stroke_width=1`` becomes ``stroke-width="1"``; None is omitted."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = Markup("").join(children)
    return Markup(f"<{name}{written}>{inside}</{name}>" if inside else f"<{name}{written}/>")


def rect(
    x: float, y: float, width: float, height: float, *children: str, **attributes: str | float
) -> Markup:
    """Return a rectangle with its upper left corner at x, y."""
    return tag("rect", *children, x=x, y=y, width=width, height=height, **attributes)


def stroke(
    path: str, colour: int | str, *children: str, **attributes: str | float | None
) -> Markup:
    """Return a line along a path, without a filling."""
    return tag("path", *children, d=path, stroke=ink(colour), fill="none", **attributes)


def _value(value: str | float) -> str:
    return str(escape(clean(value))) if isinstance(value, str) else number(value)


def number(value: float) -> str:
    """Return a coordinate, to a tenth."""
    shown = f"{value:.1f}"
    return shown.removesuffix(".0") if shown != "-0.0" else "0"


def clean(text: str) -> str:
    """Return text with control characters and lone surrogates escaped."""
    return text if text.isprintable() else plain_line(text)


def words(
    text: str,
    x: float,
    y: float,
    *,
    anchor: str | None = None,
    colour: int | str | None = None,
    full: str = "",
    halo: bool = False,
) -> Markup:
    """Return text with its base line at y.

    ``full``: the text before it was cut. ``halo``: with a light outline, to be legible on lines.
    """
    return tag(
        "text",
        hover(full if full != text else ""),
        escape(clean(text)),
        x=x,
        y=y,
        text_anchor=anchor,
        fill=None if colour is None else ink(colour),
        paint_order="stroke" if halo else None,
        stroke=ink("paper") if halo else None,
        stroke_width=3 if halo else None,
    )


def hover(text: str) -> Markup:
    """Return the text that is shown when the pointer is over an element; nothing for ""."""
    return tag("title", escape(clean(text))) if text else Markup("")


def width_of(text: str) -> float:
    """Return an upper estimate of the width of a text; its font is unknown, and DejaVu Sans is the
    widest of those that are usual."""
    em = sum(
        0.4 if c in _NARROW else 1 if c in _BROAD else 0.79 if c.isupper() else 0.64 for c in text
    )
    return TEXT * em


def cut(text: str, width: float) -> str:
    """Return a text shortened in its middle to a width: names differ at their ends."""
    text = clean(text[:400])
    if width_of(text) <= width:
        return text
    for kept in range(len(text) - 1, 2, -1):
        head = (kept + 1) // 2
        short = f"{text[:head]}…{text[len(text) - (kept - head) :]}"
        if width_of(short) <= width:
            return short
    return text[:1]


def picture(
    parts: Iterable[str], width: float, height: float, title: str, about: str, kind: str
) -> Markup:
    """Return the whole figure, as wide as its container; its text scales with it."""
    named = [tag("title", escape(clean(title)))]
    if about:
        named.append(tag("desc", escape(clean(about))))
    return tag(
        "svg",
        *named,
        *parts,
        class_=f"draw draw-{kind}",
        role="img",
        viewBox=f"0 0 {number(width)} {number(height)}",
        font_family="var(--draw-font,system-ui,-apple-system,'Segoe UI',sans-serif)",
        font_size=TEXT,
        fill=ink("text"),
    )


_SIZE = r'viewBox="0 0 (\S+) (\S+)"'
_VARIABLE = r"var\(--[\w-]+,([^()]*)\)"  # many programs that show SVG know none
HEADING: Final = 24  # height of the line above a figure of a file


def file_of(figures: Sequence[tuple[str, Markup]]) -> str:
    """Return figures, one below the other, each with its heading, as the text of an SVG file that
    needs no style sheet. Text stays text."""
    parts: list[Markup] = []
    top = widest = 0.0
    for heading, figure in figures:
        match = re.search(_SIZE, figure)
        assert match is not None  # picture() wrote it
        width, height = float(match[1]), float(match[2])
        parts.append(tag("text", escape(clean(heading)), x=8, y=top + 17, font_weight=600))
        place = f'<svg x="0" y="{top + HEADING:g}" width="{width:g}" height="{height:g}"'
        parts.append(Markup(place + str(figure).removeprefix("<svg")))
        top += HEADING + height
        widest = max(widest, width)
    whole = tag(
        "svg",
        rect(0, 0, widest, top, fill=ink("paper")),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {widest:g} {top:g}",
        width=widest,
        height=top,
        font_family="var(--draw-font,sans-serif)",
        font_size=TEXT,
        fill=ink("text"),
    )
    return f"{re.sub(_VARIABLE, _plain_value, whole)}\n"


def _plain_value(match: re.Match[str]) -> str:
    return match[1]


# ---- shapes -------------------------------------------------------------------------------

# Closed paths around (0, 0) that differ without colour.
_SHAPES: Final = (
    "m-2.6 0a2.6 2.6 0 1 0 5.2 0a2.6 2.6 0 1 0-5.2 0",  # disc
    "m-2.7 2.3l2.7-5 2.7 5z",  # triangle
    "m-2.3-2.3h4.6v4.6h-4.6z",  # square
    "m0-3.3l3.3 3.3-3.3 3.3-3.3-3.3z",  # diamond
    "m-2.7-2.3l2.7 5 2.7-5z",  # triangle, downwards
    "m-3-1h2v-2h2v2h2v2h-2v2h-2v-2h-2z",  # plus
    "m-3 0l1.5-2.6h3l1.5 2.6-1.5 2.6h-3z",  # hexagon
    "m-2.9-1.5l1.4-1.4 1.5 1.5 1.5-1.5 1.4 1.4-1.5 1.5 1.5 1.5-1.4 1.4-1.5-1.5-1.5 1.5-1.4-1.4 "
    "1.5-1.5z",  # cross
)
_DASHES: Final = (None, "7 3", "2 2.5", "9 3 2 3", "4 2", "12 4", "1 3", "6 2 1 2 1 2")
DOT: Final = "h0"  # drawn as a round cap; short, for many points


def shape(number_: int) -> str:
    """Return the path of a mark, to follow ``M`` and its centre; there are eight."""
    return _SHAPES[(number_ - 1) % len(_SHAPES)]


def dashes(number_: int) -> str | None:
    """Return the dashes of a line, None for a solid one; there are eight."""
    return _DASHES[(number_ - 1) % len(_DASHES)]


# ---- scales --------------------------------------------------------------------------------------
#
# Map values to places along an axis, with ticks at round values.
#
#     scale = scale_of(Axis("elapsed", "s"), values, 40, 620)
#     scale.at(17.3), scale.ticks            # a place, and (place, label) of each tick


Kind = Literal["linear", "log", "time", "clock"]
_LATEST = 32_503_680_000.0  # the year 3000; later times are not shown


class Axis(NamedTuple):
    """The title, unit and kind of an axis.

    ``kind`` "time": seconds since the epoch; "clock": seconds since a beginning. ``low`` and
    ``high``: values that it reaches in any case. ``ticks``: values to label instead of round ones;
    ``labels``: their labels, if not the numbers.
    """

    title: str = ""
    unit: str = ""
    kind: Kind = "linear"
    low: float | None = None
    high: float | None = None
    ticks: Sequence[float] = ()
    labels: Sequence[str] = ()

    @property
    def words(self) -> str:
        unit = show_unit(self.unit, " ({})")
        return f"{self.title}{unit}"

    def holds(self, value: float | None) -> TypeGuard[float]:
        """Return whether the axis can show a value."""
        if value is None or not math.isfinite(value):
            return False
        if self.kind == "log":
            return value > 0
        return 0 <= value < _LATEST if self.kind == "time" else abs(value) < 1e300


Tick = tuple[float, str]  # a place along an axis, and its label


class Scale(NamedTuple):
    """A map from values to places between ``start`` and ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    ticks: Sequence[Tick] = ()

    def at(self, value: float) -> float:
        """Return the place of a value; one beyond the axis is at its end."""
        low, high = self.low, self.high
        if self.log:
            value, low, high = (math.log10(max(v, 1e-300)) for v in (value, low, high))
        if high <= low:
            return (self.start + self.end) / 2
        share = (value / 2 - low / 2) / (high / 2 - low / 2)
        return self.start + (self.end - self.start) * min(1.0, max(0.0, share))


def scale_of(
    axis: Axis, values: Iterable[float], start: float, end: float, room: float = 70
) -> Scale:
    """Return a scale for these values; ``room``: the least distance of ticks."""
    wanted = (*values, *axis.ticks, axis.low, axis.high)
    shown = [value for value in wanted if axis.holds(value)]
    low, high = (min(shown), max(shown)) if shown else (1.0, 1.0)
    max_ticks = max(2, int(abs(end - start) / room))
    make = {"log": _log, "time": _time, "clock": _clock}.get(axis.kind, _linear)
    low, high, ticks = make(axis, low, high, max_ticks)
    if axis.ticks:
        ticks = list(zip(axis.ticks, axis.labels or map(plain, axis.ticks), strict=True))
    scale = Scale(low, high, start, end, axis.kind == "log")
    placed = [(scale.at(value), label) for value, label in ticks if low <= value <= high]
    return scale._replace(ticks=placed)


_Made = tuple[float, float, list[tuple[float, str]]]


def _linear(axis: Axis, low: float, high: float, max_ticks: int) -> _Made:
    """Return ends and ticks at 1, 2 or 5 times a power of ten; ends that were given are kept."""
    if high <= low:
        pad = abs(low) * 0.05 or 1.0
        low, high = low - pad, high + pad
    step = nice_step((high - low) / max_ticks)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [(n * step, labelled(n * step, step)) for n in range(first, last + 1)]
    keep_low = axis.low is not None and low == axis.low
    keep_high = axis.high is not None and high == axis.high
    return low if keep_low else first * step, high if keep_high else last * step, ticks


def nice_step(minimum: float) -> float:
    """Return the least of 1, 2, 5 times a power of ten that is not below a positive number."""
    power = 10.0 ** math.floor(math.log10(max(minimum, 1e-300)))
    return next(power * m for m in (1, 2, 5, 10) if power * m >= minimum * (1 - 1e-9))


def labelled(value: float, step: float) -> str:
    """Return a tick's label, with as many digits as the step of the ticks has."""
    if abs(value) < step / 1e6:
        return "0"
    if max(abs(value), step) >= 1e9 or step < 1e-6:
        return f"{value:.6g}"
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value:,.{digits}f}"


def plain(value: float) -> str:
    """Return a number as a label that stands alone."""
    magnitude = abs(value)
    if magnitude and not 1e-4 <= magnitude < 1e9:
        return f"{value:.3g}"
    return f"{value:,.0f}" if value == round(value) else f"{value:,.4g}"


_MIN, _MAX = 1e-300, 1e300  # a tick beyond an end does not overflow


def _log(axis: Axis, low: float, high: float, max_ticks: int) -> _Made:
    """Return ticks at powers of ten, and at 2 and 5 times these if there is room."""
    low, high = (min(max(value, _MIN), _MAX) for value in (low, high))
    if high <= low:
        low, high = low / 2, high * 2
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    decades = last - first
    parts = (1, 2, 5) if 3 * decades <= max_ticks + 2 else (1,)
    every = max(1, -(-decades // max_ticks))
    values = [m * 10.0**n for n in range(first, last + 1, every) for m in parts]
    inside = [value for value in values if low * 0.999 <= value <= high * 1.001]
    if len(inside) < 2:
        step = nice_step((high - low) / max_ticks)
        inside = [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return low, high, [(value, plain(value)) for value in inside if value > 0]


_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0
_STEPS_IN = {
    1.0: (1, 2, 5, 10, 15, 30),
    _MINUTE: (1, 2, 5, 10, 15, 30),
    _HOUR: (1, 2, 3, 6, 12),
    _DAY: (1, 2, 5, 10, 20, 50, 100),
}
_STEPS = [number * unit for unit, numbers in _STEPS_IN.items() for number in numbers]

_DATES = (*(s for s in _STEPS if s <= 2 * _DAY), 7 * _DAY, 14 * _DAY, 28 * _DAY)


def _clock(axis: Axis, low: float, high: float, max_ticks: int) -> _Made:
    """Ticks of time since a beginning: in the unit that the step has."""
    if high <= low:
        high = low + max(1.0, abs(low) * 1e-6)
    step = _step_of((high - low) / max_ticks)
    unit = next((size for size in (_DAY, _HOUR, _MINUTE) if step >= size), 1.0)
    name = {_DAY: "d", _HOUR: "h", _MINUTE: "min", 1.0: "s"}[unit]
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    ticks = [
        (n * step, f"{n * step / unit:,.10g} {name}" if n else "0") for n in range(first, last + 1)
    ]
    return low, high, ticks


def _step_of(minimum: float) -> float:
    if minimum > _STEPS[-1]:
        return nice_step(minimum / _DAY) * _DAY
    if minimum < 1:
        return nice_step(minimum)
    return next(step for step in _STEPS if step >= minimum)


def _time(axis: Axis, low: float, high: float, max_ticks: int) -> _Made:
    """Return ticks of the calendar in UTC; the first one of a day shows the date."""
    if high <= low:
        low, high = max(0.0, low - 30), high + 30
    min_step = (high - low) / max_ticks
    if min_step > 20 * _DAY:
        steps = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600)
        months = next((n for n in steps if n * 28 * _DAY >= min_step), 1200)
        return low, high, _months(low, high, months)
    step = next((s for s in _DATES if s >= min_step), _DATES[-1])
    day = low // _DAY * _DAY
    first, last = math.ceil((low - day) / step - 1e-9), math.floor((high - day) / step + 1e-9)
    ticks: list[tuple[float, str]] = []
    for moment in (day + n * step for n in range(first, last + 1)):
        at = datetime.fromtimestamp(moment, UTC)
        date, clock = f"{at.day} {at:%b}", f"{at:%H:%M:%S}" if step < _MINUTE else f"{at:%H:%M}"
        if step < _DAY and moment % _DAY:
            date = clock if ticks else f"{date} {at:%H:%M}"
        ticks.append((moment, date))
    return low, high, ticks


def _months(low: float, high: float, step: int) -> list[tuple[float, str]]:
    first = datetime.fromtimestamp(low, UTC)
    ticks: list[tuple[float, str]] = []
    for number in range((first.year * 12 + first.month - 1) // step * step, 9999 * 12, step):
        at = datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)
        if at.timestamp() > high:
            break
        if at.timestamp() >= low:
            ticks.append((at.timestamp(), f"{at:%Y}" if step >= 12 else f"{at:%b %Y}"))
    return ticks


# ---- frame ---------------------------------------------------------------------------------------
#
# Draw the grid, axes, legend and notes of a figure.


_SAMPLE = 22  # width of the sample in a legend's entry


class Box(Struct, frozen=True):
    """The rectangle of the data, in units of the picture."""

    left: float
    top: float
    right: float
    bottom: float


class LegendEntry(Struct, frozen=True):
    """An entry of a legend: the name and the look of a series.

    ``look``: "line", "dots", "both", "dense" or "area". ``form``: the number of its shape or
    dashes.
    """

    name: str
    colour: int | str
    look: str
    form: int


def legend(entries: Sequence[LegendEntry], width: float, top: float) -> tuple[list[Markup], float]:
    """Return a legend in rows from the left, and its height."""
    parts: list[Markup] = []
    x, y = 0.0, top
    for entry in entries:
        name = cut(entry.name, width - _SAMPLE)
        needs = _SAMPLE + width_of(name) + 14
        if x and x + needs > width + 14:
            x, y = 0.0, y + LINE
        parts += sample(entry, x, y + 8)
        parts.append(words(name, x + _SAMPLE, y + 12, full=entry.name))
        x += needs
    return parts, y - top + LINE + 2 if entries else 0.0


def sample(entry: LegendEntry, x: float, y: float) -> list[Markup]:
    """Return a small sample of how a series looks."""
    colour = ink(entry.colour)
    if entry.look == "area":
        return [rect(x + 2, y - 5, 13, 10, fill=colour)]
    parts = []
    if entry.look in ("line", "both"):
        path, dash = f"M{x:g} {y:g}h17", dashes(entry.form)
        parts.append(stroke(path, entry.colour, stroke_width=2, stroke_dasharray=dash))
    if entry.look == "dense":
        path = f"M{x + 4:g} {y + 1:g}{DOT}m4-3{DOT}m4 2{DOT}"
        parts.append(stroke(path, entry.colour, stroke_width=3, stroke_linecap="round"))
    if entry.look in ("dots", "both"):
        parts.append(tag("path", d=f"M{x + 8.5:g} {y:g}{shape(entry.form)}", fill=colour))
    return parts


def upright(scale: Scale, box: Box) -> list[Markup]:
    """Return a vertical axis: lines of the grid, and labels at the left."""
    lines = "".join(f"M{box.left:.1f} {y:.1f}H{box.right:.1f}" for y, _ in scale.ticks)
    labels = [
        words(label, box.left - 6, y + 4, anchor="end")
        for y, label in apart(scale.ticks, lambda _: LINE - 2.0)
    ]
    return [
        stroke(lines, "grid"),
        tag("g", *labels, fill=ink("muted")),
    ]


def level(axis: Axis, scale: Scale, box: Box, grid: bool = False) -> list[Markup]:
    """Return a horizontal axis: its line, ticks, labels that do not overlap, and its title."""

    def held(at: float, label: str) -> float:
        """Return where the middle of a label is, that the whole of it is in the figure."""
        half = width_of(label) / 2
        return min(max(at, half), box.right + 10 - half)

    places = [(held(at, label), label) for at, label in scale.ticks]
    kept = apart(places, lambda label: width_of(label) + 8)
    shown = [tick for tick, place in zip(scale.ticks, places, strict=True) if place in kept]
    top = box.top if grid else box.bottom
    marks = "".join(f"M{at:.1f} {top:.1f}V{box.bottom + 4:.1f}" for at, _ in shown)
    parts = [
        stroke(marks, "grid" if grid else "axis"),
        stroke(f"M{box.left:.1f} {box.bottom:.1f}H{box.right:.1f}", "axis"),
    ]
    labels = [words(label, x, box.bottom + 16, anchor="middle") for x, label in kept]
    parts.append(tag("g", *labels, fill=ink("muted")))
    if axis.words:
        middle = (box.left + box.right) / 2
        title = cut(axis.words, box.right)
        parts.append(
            words(title, middle, box.bottom + 32, anchor="middle", colour="muted", full=axis.words)
        )
    return parts


def apart(ticks: Sequence[Tick], needs: Callable[[str], float]) -> list[Tick]:
    """Return the ticks whose labels do not overlap that of an earlier one."""
    kept: list[Tick] = []
    for at, label in ticks:
        if not kept or abs(at - kept[-1][0]) >= (needs(label) + needs(kept[-1][1])) / 2:
            kept.append((at, label))
    return kept


def figure(
    parts: Sequence[Markup],
    box: Box,
    axis: Axis,
    notes: Sequence[str],
    width: int,
    title: str,
    about: str,
    kind: str,
) -> Markup:
    """Return the whole figure: its parts, and the notes below its horizontal axis."""
    bottom = box.bottom + (38 if axis.words else 22)
    lines = [line for text in notes for line in _lines(text, width)]
    below = [words(line, 0, bottom + 8 + LINE * i, colour="muted") for i, line in enumerate(lines)]
    height = bottom + LINE * len(lines) + 2
    return picture([*parts, *below], width, height, title, about, kind)


def left_out(noun: str, number: int, drawn: int) -> list[str]:
    """Return the note that not all of a number of things are drawn, if so."""
    return [f"{number:,} {noun}, {drawn:,} drawn"] if drawn < number else []


def _lines(text: str, width: float) -> Iterator[str]:
    line = ""
    for word in text.split():
        longer = f"{line} {word}".lstrip()
        if line and width_of(longer) > width:
            yield line
            line = word
        else:
            line = longer
    yield cut(line, width)


def labels_width(names: Sequence[str], limit: float) -> float:
    """Return the width that the names at the left need, ``limit`` at most."""
    return min(limit, max((width_of(name) for name in names), default=0.0) + 10)


# ---- thin ----------------------------------------------------------------------------------------
#
# Reduce the number of points of a series without changing its look.


Place = tuple[float, float]  # in pixels
MAX_DOTS = 4000


def thin_line(places: Sequence[Place]) -> list[Place]:
    """Return the first, last, least and greatest place of each pixel's column, in their order."""
    columns = (list(own) for _, own in groupby(places, lambda place: int(place[0])))
    return [place for column in columns for place in _ends(column)]


def _ends(column: Sequence[Place]) -> list[Place]:
    if len(column) <= 4:
        return list(column)
    heights = [y for _, y in column]
    chosen = {0, heights.index(min(heights)), heights.index(max(heights)), len(column) - 1}
    return [column[i] for i in sorted(chosen)]


def thin_dots(places: Sequence[Place], limit: int = MAX_DOTS) -> list[Place]:
    """Return one place in each cell of a grid of half a pixel.

    With more than ``limit`` places the grid becomes coarser. The least and greatest place of each
    pixel's column are kept.
    """
    size = 0.5
    kept = _on_grid(places, size)
    while len(kept) > limit and size < 16:
        size *= 1.5
        kept = _on_grid(places, size)
    if size > 0.5:
        kept |= _on_grid(_extremes(places), 0.5)
    return sorted(kept.values())


def _on_grid(places: Sequence[Place], size: float) -> dict[tuple[int, int, float], Place]:
    cells: dict[tuple[int, int, float], Place] = {}
    for x, y in places:
        cells.setdefault((int(x / size), int(y / size), size), (x, y))
    return cells


def _extremes(places: Sequence[Place]) -> list[Place]:
    """Return the least and the greatest place of each pixel's column."""
    columns: dict[int, list[Place]] = {}
    for place in places:
        columns.setdefault(int(place[0]), []).append(place)
    height = itemgetter(1)
    return [pick(column, key=height) for column in columns.values() for pick in (min, max)]
