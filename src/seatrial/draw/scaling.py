"""Draw how something grows with size, on logarithmic axes with ideal lines.

scaling([Curve("lj", [(1, 1.0, None, None), (2, 1.96, 1.9, 2.0)])], title="...",
        x=Axis("nodes"), y=Axis("speed-up"))
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from seatrial.draw.chart import ChartSeries, chart
from seatrial.draw.scales import Axis
from seatrial.draw.svg import WIDTH

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
    for number, curve in enumerate(curves, 1):
        points = sorted(curve.points)
        shown = [(size, value) for size, value, *_ in points if x.holds(size) and y.holds(value)]
        sizes.update(size for size, *_ in points if x.holds(size))
        if shown:
            (size, value), last = shown[0], shown[-1][0]
            line = [(size, value), (last, value * math.pow(last / size, ideal))]
            lines.append(ChartSeries("" if lines else "ideal", line, "line", "muted", 3))
        all_points = [(size, value) for size, value, *_ in points]
        intervals = [
            (size, low, high)
            for size, value, low, high in points
            if (size, value) in shown and low is not None and high is not None and low > 0
        ]
        series.append(ChartSeries(curve.name, all_points, "both", number, number, intervals))
    if len(sizes) <= _SIZES:
        x = x._replace(ticks=sorted(sizes))
    drawn = [*lines, *series]
    return chart(
        drawn, title=title, about=about, x=x, y=y, width=width, height=height, margin=_MARGIN
    )
