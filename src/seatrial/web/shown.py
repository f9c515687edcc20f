"""How values look on a page: the filters of the templates.

{{ run.elapsed | seconds }}   {{ run.created | moment }}   {{ figure.value | number }}

Times are shown as this machine's clocks show them, inside ``<time>`` with UTC beside.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup, escape

from seatrial.journal import codes
from seatrial.units import SECOND_NS, show_bytes, show_number, show_seconds

NOTHING = "–"

WIDE, NARROW = 1000, 400  # figures that are drawn twice: for screens with room, and without

FIVE_DIGITS, TWELVE_DIGITS = 1e4, 1e12

# How a verdict is coloured; every other verdict is a failure.
_TONES = {
    codes.PENDING.number: "waiting",
    codes.IN_PROGRESS.number: "running",
    codes.PASS.number: "pass",
    codes.PERFORMANCE.number: "slow",
    codes.RECALLED.number: "again",
}


def moment(time_ns: int | None, form: str = "%Y-%m-%d %H:%M:%S") -> Markup | str:
    """A time, as ``<time>``."""
    if time_ns is None or time_ns <= 0:
        return NOTHING
    try:
        at = datetime.fromtimestamp(time_ns // SECOND_NS, UTC)
    except (OverflowError, ValueError, OSError):
        return NOTHING
    local = at.astimezone()
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        f"{at:%Y-%m-%dT%H:%M:%SZ}", f"{at:%Y-%m-%d %H:%M:%S}", local.strftime(form)
    )


def zone() -> str:
    """The zone of this machine's clocks at this time of the year: ``UTC+02:00 (CEST)``."""
    now = datetime.now().astimezone()
    ahead = now.isoformat()[-6:] if now.utcoffset() else ""
    name = now.tzname() or ""
    return f"UTC{ahead}" + (f" ({name})" if name.isalpha() and name != "UTC" else "")


def clock(time_ns: int | None) -> Markup | str:
    """A time without its year: for tables in which all times are near."""
    return moment(time_ns, "%m-%d %H:%M:%S")


def ago(time_ns: int | None) -> str:
    """How long ago, from now."""
    if not time_ns:
        return NOTHING
    since = time.time() - time_ns / SECOND_NS
    return f"{show_seconds(max(since, 0.001))} ago" if since >= 1 else "now"


def seconds(value: float | None) -> str:
    """A duration in at most two units."""
    return NOTHING if value is None else "0 s" if value == 0 else show_seconds(value)


def number(value: float | None) -> str:
    """A figure; one of five digits and more is whole, its thousands apart."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if FIVE_DIGITS <= abs(value) < TWELVE_DIGITS else show_number(value)


def figure(value: float | None, unit: str) -> str:
    """A figure with its unit; a bare number has none."""
    if value is None:
        return NOTHING
    return number(value) + (f"\N{NO-BREAK SPACE}{unit}" if unit not in ("", "1") else "")


def percent(value: float | None, digits: int = 1) -> str:
    """A share as per cent."""
    if value is None:
        return NOTHING
    shown = round(100 * value, digits) + 0.0  # never -0
    return f"{shown:.{digits}f}\N{NO-BREAK SPACE}%"


def whole(value: int | None) -> str:
    """A whole number with its thousands apart."""
    return NOTHING if value is None else f"{value:,}"


def counted(number: int, noun: str) -> str:
    """A number of things, its thousands apart: ``1 run``, ``2,000 runs``."""
    return f"{number:,} {noun}" + "s" * (number != 1)


def told(text: str) -> Markup:
    """A message of Seatrial's; what stands between backticks is to be typed."""
    return Markup(re.sub("`([^`\n]+)`", r"<code>\1</code>", str(escape(text))))


def tone(code: int) -> str:
    """The class by which a verdict is coloured."""
    return _TONES.get(code, "failed")


def verdict(code: int, again: bool = False) -> Markup:
    """A verdict as a badge, with its meaning."""
    found = codes.code_of(code)
    return Markup('<span class="verdict {}" title="{}">{}</span>').format(
        "again" if again else tone(code), f"{found.number}: {found.meaning}", found.name
    )


def shares(*parts: tuple[float, str, str]) -> Markup:
    """A bar of parts (size, class, name), drawn as SVG; it fills its place."""
    whole = sum(size for size, _, _ in parts) or 1
    at = 0.0
    drawn = []
    for size, kind, _name in parts:
        width = 100 * size / whole
        if width > 0:
            drawn.append(
                Markup('<rect class="{}" x="{:.3f}" width="{:.3f}" height="8"></rect>').format(
                    kind, at, width
                )
            )
        at += width
    told = ", ".join(f"{size:g} {name}" for size, _, name in parts if size)
    return Markup(
        '<svg class="shares" viewBox="0 0 100 8" preserveAspectRatio="none" role="img"'
        ' aria-label="{0}"><title>{0}</title>{1}</svg>'
    ).format(told or "nothing", Markup("").join(drawn))


def run_link(run: Any, length: int = 8) -> Markup:
    """A run's id, cut short, as a link to its page."""
    address = f"/runs/{quote(run.trial, safe='')}/{quote(run.run_id, safe='')}"
    return Markup('<a class="id" href="{}">{}</a>').format(address, run.run_id[:length])


def trial_link(tag: str) -> Markup:
    """A trial's tag as a link to its page."""
    return Markup('<a href="/trials/{}">{}</a>').format(quote(tag, safe=""), tag)


def machine_link(name: str) -> Markup:
    """A machine's name as a link to its page."""
    return Markup('<a href="/machines/{}">{}</a>').format(quote(name, safe=""), name)


def rehearsal_mark(rehearsed: bool) -> Markup:
    """The mark of what was not measured; nothing for what was."""
    text = "rehearsed" if rehearsed else ""
    title = "in virtual time on a simulated machine: nothing of it was measured"
    return Markup('<span class="rehearsed" title="{}">{}</span>').format(title, text) * rehearsed


def state(word: str) -> Markup:
    """A state or what a criterion comes to, as a badge."""
    return Markup('<span class="state {}">{}</span>').format(word.replace(" ", "-"), word)


def runs_of(trial: str, test: str = "", **filters: str) -> str:
    """The address of the list of a trial's runs: of one test by its name, of a ``verdict``..."""
    query = {"trial": trial, **filters}
    if test:
        query["match"] = f"^{re.escape(test)}$"
    return "/runs?" + urlencode(query)


FILTERS = {
    "ago": ago,
    "bytes": show_bytes,
    "clock": clock,
    "count": counted,
    "figure": figure,
    "machine_link": machine_link,
    "moment": moment,
    "number": number,
    "percent": percent,
    "rehearsal_mark": rehearsal_mark,
    "run_link": run_link,
    "seconds": seconds,
    "state": state,
    "told": told,
    "tone": tone,
    "trial_link": trial_link,
    "verdict": verdict,
    "whole": whole,
}
GLOBALS = {"shares": shares, "escape": escape, "runs_of": runs_of, "zone": zone}
