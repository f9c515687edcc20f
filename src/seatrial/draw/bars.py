"""Draw horizontal bars of one or several parts.

bars([Bar("cm4", [812, 3, 0])], parts=["passed", "failed", "timeout"], title="...",
     axis=Axis("runs"), colours=["good", "bad", "warn"])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from seatrial.draw.frame import Box, LegendEntry, figure, labels_width, left_out, legend, level
from seatrial.draw.scales import Axis, Scale, plain, scale_of
from seatrial.draw.svg import WIDTH, cut, hover, ink, rect, tag, width_of, words

MAX_BARS: int = 60  # a note says how many more there are
_ROW, _THICK = 20, 13


class Bar(NamedTuple):
    """A bar: its name, the value of each part, and its label, by default the sum."""

    name: str
    values: Sequence[float]
    label: str = ""


def bars(
    rows: Sequence[Bar],
    *,
    title: str,
    about: str = "",
    axis: Axis = Axis(),  # noqa: B008
    parts: Sequence[str] = (),
    colours: Sequence[int | str] = (),
    width: int = WIDTH,
) -> Markup:
    """Draw bars that begin at 0, with their parts end to end.

    Several parts must not be negative. ``colours``: of the parts, numbers from 1 or words
    (``good``, ``bad``, ...); by default the position.
    """
    shown = [row for row in rows[:MAX_BARS] if row.values and all(map(axis.holds, row.values))]
    inks = [*colours, *range(len(colours) + 1, 20)]
    entries = [LegendEntry(name, inks[i], "area", 1) for i, name in enumerate(parts)]
    drawn, top = legend(entries if len(parts) > 1 else [], width, 0)
    left = labels_width([row.name for row in shown], 0.4 * width)
    behind = [row.label or plain(sum(row.values)) for row in shown]
    right = width - max((width_of(text) for text in behind), default=0.0) - 10
    box = Box(left, top + 4, right, top + 4 + max(1, len(shown)) * _ROW)
    ends = [0.0, *(sum(v for v in r.values if v > 0) for r in shown)]
    ends += [sum(v for v in row.values if v < 0) for row in shown]
    across = scale_of(axis, ends, left, right)
    drawn += level(axis, across, box, grid=True)
    for i, row in enumerate(shown):
        drawn += _bar(row, behind[i], box.top + i * _ROW, across, parts, inks, left)
    zero = across.at(0)
    drawn.append(tag("path", d=f"M{zero:.1f} {box.top:.1f}V{box.bottom:.1f}", stroke=ink("axis")))
    notes = left_out("bars", len(rows), len(shown))
    return figure(drawn, box, axis, notes, width, title, about, "bars")


def _bar(
    row: Bar,
    label: str,
    top: float,
    across: Scale,
    parts: Sequence[str],
    inks: Sequence[int | str],
    left: float,
) -> list[Markup]:
    name = cut(row.name, left - 8)
    base = top + _ROW / 2 + 4
    found = [words(name, left - 8, base, anchor="end", full=row.name)]
    up = down = 0.0
    for i, value in enumerate(row.values):
        start = up if value >= 0 else down
        low, high = sorted((across.at(start), across.at(start + value)))
        up, down = (up + value, down) if value >= 0 else (up, down + value)
        if high - low < 0.05:
            continue
        about = f"{row.name}: {parts[i]}: {plain(value)}" if i < len(parts) else ""
        y, width = top + (_ROW - _THICK) / 2, max(high - low, 1.0)
        found.append(rect(low, y, width, _THICK, hover(about), fill=ink(inks[i])))
    found.append(words(label, across.at(max(up, 0.0)) + 5, base, colour="muted"))
    return found
