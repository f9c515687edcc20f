"""Draw figures as inline SVG from plain data, for the report and for web pages.

    from seatrial.draw import Axis, Series, chart

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

from pathlib import Path
from typing import Final

from seatrial.draw.bars import Bar, bars
from seatrial.draw.boxes import BoxGroup, boxes
from seatrial.draw.chart import ChartSeries, Mark, Point, ReferenceLine, ShadedSpan, chart
from seatrial.draw.forest import Interval, forest
from seatrial.draw.heat_map import AmountScale, colour, heat_map
from seatrial.draw.node_cores import CpuDomain, CpuUse, NodeCores, node_cores
from seatrial.draw.scales import Axis
from seatrial.draw.scaling import Curve, scaling

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
