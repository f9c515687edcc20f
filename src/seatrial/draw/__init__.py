"""Figures as inline SVG, from plain data: for the report and for web pages.

    from seatrial.draw import Axis, Series, chart

    svg = chart(
        [ChartSeries("triad", [(t, 231.5), ...], style="steps")],     # (x, y); y None is a gap
        title="Memory bandwidth over time", about="241 runs of stream on n001",
        x=Axis("start (UTC)", kind="time"), y=Axis("triad", "GB/s"),
        marks=[Mark(t, "BIOS 2.1")], spans=[ShadedSpan(t0, t1, "maintenance")],
    )                                                            # markupsafe.Markup

- ``chart``: lines, steps, dots over an axis that is linear, logarithmic, time (seconds since the
  epoch) or a clock (seconds since a beginning); marks, shaded spans, levels such as references
- ``bars``: horizontal bars, of several parts each where there are several
- ``boxes``: a box plot of each group; the values themselves where they are few
- ``forest``: values with their intervals, beside a centre and bounds
- ``scaling``: log-log, with the ideal line

Each gives one ``<svg role="img">`` with ``<title>`` and ``<desc>``, as wide as its place, without
styles, scripts, identifiers or references to elsewhere, so that any content security policy allows
it. All text is escaped. Colours are variables with a fall-back for light paper: ``palette.css``
(``PALETTE``) has those for light, dark and print; any page may set its own. Series differ in shape
or dashes, too. What is drawn is bounded: more points than there are pixels are thinned out to the
least and the greatest of each pixel's column, and the figure says so; its data belong beside it, as
a table.
"""

from pathlib import Path
from typing import Final

from seatrial.draw.bars import Bar, bars
from seatrial.draw.boxes import BoxGroup, boxes
from seatrial.draw.chart import ChartSeries, Mark, ReferenceLine, ShadedSpan, chart
from seatrial.draw.forest import Interval, forest
from seatrial.draw.scales import Axis
from seatrial.draw.scaling import Curve, scaling

PALETTE: Final = Path(__file__).with_name("palette.css")

__all__ = [
    "PALETTE",
    "Axis",
    "Bar",
    "BoxGroup",
    "ChartSeries",
    "Curve",
    "Interval",
    "Mark",
    "ReferenceLine",
    "ShadedSpan",
    "bars",
    "boxes",
    "chart",
    "forest",
    "scaling",
]
