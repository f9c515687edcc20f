"""Write SVG: elements, numbers, text, and estimates of its width.

    tag("path", d=path, stroke=ink(1), fill="none")
    picture([...], 640, 280, "Runs per day", "12 days")

Text that is not ``Markup`` is escaped.
"""

from collections.abc import Iterable
from typing import Final

from markupsafe import Markup, escape

from seatrial.verify.reading import plain_line

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
_BROAD: Final = frozenset("mwMW%@&")


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
    """Return an upper estimate of the width of a text; its font is unknown."""
    em = sum(
        0.38 if c in _NARROW else 0.95 if c in _BROAD else 0.72 if c.isupper() else 0.62
        for c in text
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
