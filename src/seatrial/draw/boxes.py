"""Draw a horizontal box plot of each group (Tukey 1977), with every value if they are few.

    boxes([BoxGroup("cm4", elapsed_times)], title="...", axis=Axis("elapsed", "s"))

The box reaches from the first to the third quartile and shows the median. The whiskers reach to the
farthest values within 1.5 times its length; values beyond them are drawn as marks.
"""

from collections.abc import Sequence
from itertools import chain
from statistics import quantiles
from typing import NamedTuple

from markupsafe import Markup

from seatrial.draw.frame import Box, figure, labels_width, left_out, level
from seatrial.draw.scales import Axis, Scale, scale_of
from seatrial.draw.svg import WIDTH, cut, hover, ink, number, rect, shape, stroke, tag, words
from seatrial.draw.thin import thin_dots

MAX_BOXES: int = 60
FEW: int = 40  # up to so many values are all drawn
MAX_BEYOND_WHISKERS: int = 300  # marks of a group beyond its whiskers
_ROW, _THICK = 24, 12


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
    box = Box(left, 4, WIDTH - 14.0, 4.0 + max(1, len(shown)) * _ROW)
    across = scale_of(axis, chain.from_iterable(v for _, v in shown), left + 6, WIDTH - 18)
    parts = level(axis, across, box, grid=True)
    for i, (group, values) in enumerate(shown):
        middle = box.top + (i + 0.5) * _ROW
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
    half = _THICK / 2
    whiskers = f"M{number(first)} {number(y)}H{number(q1)}M{number(q3)} {number(y)}H{number(last)}"
    whiskers += "".join(f"M{number(x)} {number(y - 4)}v8" for x in (first, last))
    about = f"{group.name}: median {middle:.4g}, quartiles {low:.4g} and {high:.4g}"
    found = [
        stroke(whiskers, 1),
        rect(
            *(q1, y - half, max(q3 - q1, 0.5), _THICK),
            hover(about),
            fill=colour,
            fill_opacity=0.25,
            stroke=colour,
        ),
        stroke(f"M{number(q2)} {number(y - half)}v{_THICK}", 1, stroke_width=2),
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
