"""Draw the grid, axes, legend and notes of a figure."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup

from seatrial.draw import svg
from seatrial.draw.scales import Axis, Scale, Tick

_SAMPLE = 22  # width of the sample in a legend's entry


class Box(NamedTuple):
    """The rectangle of the data, in units of the picture."""

    left: float
    top: float
    right: float
    bottom: float


class LegendEntry(NamedTuple):
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
        name = svg.cut(entry.name, width - _SAMPLE)
        needs = _SAMPLE + svg.width_of(name) + 14
        if x and x + needs > width + 14:
            x, y = 0.0, y + svg.LINE
        parts += sample(entry, x, y + 8)
        parts.append(svg.words(name, x + _SAMPLE, y + 12, full=entry.name))
        x += needs
    return parts, y - top + svg.LINE + 2 if entries else 0.0


def sample(entry: LegendEntry, x: float, y: float) -> list[Markup]:
    """Return a small sample of how a series looks."""
    colour = svg.ink(entry.colour)
    if entry.look == "area":
        return [svg.rect(x + 2, y - 5, 13, 10, fill=colour)]
    found = []
    if entry.look in ("line", "both"):
        path, dash = f"M{x:g} {y:g}h17", svg.dashes(entry.form)
        found.append(svg.stroke(path, entry.colour, stroke_width=2, stroke_dasharray=dash))
    if entry.look == "dense":
        path = f"M{x + 4:g} {y + 1:g}{svg.DOT}m4-3{svg.DOT}m4 2{svg.DOT}"
        found.append(svg.stroke(path, entry.colour, stroke_width=3, stroke_linecap="round"))
    if entry.look in ("dots", "both"):
        found.append(svg.tag("path", d=f"M{x + 8.5:g} {y:g}{svg.shape(entry.form)}", fill=colour))
    return found


def upright(scale: Scale, box: Box) -> list[Markup]:
    """Return a vertical axis: lines of the grid, and labels at the left."""
    lines = "".join(f"M{box.left:.1f} {tick.at:.1f}H{box.right:.1f}" for tick in scale.ticks)
    labels = [
        svg.words(tick.label, box.left - 6, tick.at + 4, anchor="end")
        for tick in apart(scale.ticks, lambda _: svg.LINE - 2.0)
    ]
    return [
        svg.stroke(lines, "grid"),
        svg.tag("g", *labels, fill=svg.ink("muted")),
    ]


def level(axis: Axis, scale: Scale, box: Box, grid: bool = False) -> list[Markup]:
    """Return a horizontal axis: its line, ticks, labels that do not overlap, and its title."""
    shown = apart(scale.ticks, lambda tick: svg.width_of(tick.label) + 8)
    top = box.top if grid else box.bottom
    marks = "".join(f"M{t.at:.1f} {top:.1f}V{box.bottom + 4:.1f}" for t in shown)
    parts = [
        svg.stroke(marks, "grid" if grid else "axis"),
        svg.stroke(f"M{box.left:.1f} {box.bottom:.1f}H{box.right:.1f}", "axis"),
    ]
    labels = []
    for tick in shown:
        half = svg.width_of(tick.label) / 2
        x = min(max(tick.at, half), box.right + 10 - half)
        labels.append(svg.words(tick.label, x, box.bottom + 16, anchor="middle"))
    parts.append(svg.tag("g", *labels, fill=svg.ink("muted")))
    if axis.words:
        middle = (box.left + box.right) / 2
        title = svg.cut(axis.words, box.right)
        parts.append(
            svg.words(
                title, middle, box.bottom + 32, anchor="middle", colour="muted", full=axis.words
            )
        )
    return parts


def apart(ticks: Sequence[Tick], needs: Callable[[Tick], float]) -> list[Tick]:
    """Return the ticks whose labels do not overlap that of an earlier one."""
    kept: list[Tick] = []
    for tick in ticks:
        if not kept or abs(tick.at - kept[-1].at) >= (needs(tick) + needs(kept[-1])) / 2:
            kept.append(tick)
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
    below = [
        svg.words(line, 0, bottom + 8 + svg.LINE * i, colour="muted")
        for i, line in enumerate(lines)
    ]
    height = bottom + svg.LINE * len(lines) + 2
    return svg.picture([*parts, *below], width, height, title, about, kind)


def left_out(noun: str, number: int, drawn: int) -> list[str]:
    """Return the note that not all of a number of things are drawn, if so."""
    return [f"{number:,} {noun}, {drawn:,} drawn"] if drawn < number else []


def _lines(text: str, width: float) -> Iterator[str]:
    line = ""
    for word in text.split():
        longer = f"{line} {word}".lstrip()
        if line and svg.width_of(longer) > width:
            yield line
            line = word
        else:
            line = longer
    yield svg.cut(line, width)


def labels_width(names: Sequence[str], limit: float) -> float:
    """Return the width that the names at the left need, ``limit`` at most."""
    return min(limit, max((svg.width_of(name) for name in names), default=0.0) + 10)
