"""Format values for pages: the filters of the templates.

{{ run.elapsed | seconds }}   {{ run.created | moment }}   {{ figure.value | number }}

Times are shown in the zone of this machine, inside ``<time>`` with UTC in its title.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup, escape

from seatrial import units
from seatrial.model import codes
from seatrial.show.draw.svg import tag

NOTHING = "–"

WIDE, NARROW = 1000, 400  # widths of a figure for large and small screens

_BREAKS = r"(?<=[\w}])[{@](?=\w)|(?<=,)(?=[A-Za-z])"

FIVE_DIGITS, TWELVE_DIGITS = 1e4, 1e12

# The class of a verdict, which sets its colour; every other verdict is a failure.
_TONES = {
    codes.PENDING.number: "waiting",
    codes.IN_PROGRESS.number: "running",
    codes.PASS.number: "pass",
    codes.PERFORMANCE.number: "slow",
    codes.RECALLED.number: "again",
    codes.KNOWN.number: "again",
}


def breakable(name: str) -> Markup:
    """Return the name of a case, in which a line may break before its parameters and toolchain,
    and between parameters, rather than within a number."""
    return Markup(re.sub(_BREAKS, r"<wbr>\g<0>", str(escape(name))))


def moment(time_ns: int | None, form: str = "%Y-%m-%d %H:%M:%S") -> Markup | str:
    """Return a time as ``<time>``."""
    if time_ns is None or time_ns <= 0:
        return NOTHING
    try:
        at = datetime.fromtimestamp(time_ns // units.SECOND_NS, UTC)
    except (OverflowError, ValueError, OSError):
        return NOTHING
    local = at.astimezone()
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        f"{at:%Y-%m-%dT%H:%M:%SZ}", f"{at:%Y-%m-%d %H:%M:%S}", local.strftime(form)
    )


def zone() -> str:
    """Return the present time zone of this machine: ``UTC+02:00 (CEST)``."""
    now = datetime.now().astimezone()
    ahead = now.isoformat()[-6:] if now.utcoffset() else ""
    name = now.tzname() or ""
    return f"UTC{ahead}" + (f" ({name})" if name.isalpha() and name != "UTC" else "")


def clock(time_ns: int | None) -> Markup | str:
    """Return a time without its year, for tables of recent times."""
    return moment(time_ns, "%m-%d %H:%M:%S")


def seconds(value: float | None) -> str:
    """Return a duration in at most two units."""
    return NOTHING if value is None else "0 s" if value == 0 else units.show_seconds(value)


def number(value: float | None) -> str:
    """Return a number; from five digits on it is whole, with commas between thousands."""
    if value is None:
        return NOTHING
    if FIVE_DIGITS <= abs(value) < TWELVE_DIGITS:
        return f"{value:,.0f}"
    return units.show_number(value)


def figure(value: float | None, unit: str) -> str:
    """Return a value with its unit, if it has one."""
    if value is None:
        return NOTHING
    return number(value) + units.show_unit(unit, "\N{NO-BREAK SPACE}{}")


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share in per cent."""
    if value is None:
        return NOTHING
    shown = round(100 * value, digits) + 0.0  # never -0
    return f"{shown:.{digits}f}\N{NO-BREAK SPACE}%"


def whole(value: int | None) -> str:
    """Return a whole number with commas between thousands."""
    return NOTHING if value is None else f"{value:,}"


def counted(number: int, noun: str) -> str:
    """Return a number of things: ``1 run``, ``2,000 runs``."""
    return f"{number:,} {noun}" + "s" * (number != 1)


def message(text: str) -> Markup:
    """Return a message of Seatrial as HTML; text between backticks becomes ``<code>``."""
    return Markup(re.sub("`([^`\n]+)`", r"<code>\1</code>", str(escape(text))))


def verdict(code: int, again: bool = False) -> Markup:
    """Return a verdict as a badge, with its meaning as a title."""
    meaning = codes.code_of(code)
    tone = "again" if again else _TONES.get(code, "failed")
    return Markup('<span class="verdict {}" title="{}">{}</span>').format(
        tone, f"{meaning.number}: {meaning.meaning}", meaning.name
    )


def shares(*parts: tuple[float, str, str]) -> Markup:
    """Return a bar of parts (size, class, name) as SVG, as wide as its place."""
    whole = sum(size for size, _, _ in parts) or 1
    about = ", ".join(f"{size:g} {name}" for size, _, name in parts if size) or "nothing"
    at = 0.0
    drawn = [tag("title", escape(about))]
    for size, kind, _ in parts:
        width = 100 * size / whole
        if width > 0:
            drawn.append(tag("rect", class_=kind, x=f"{at:.3f}", width=f"{width:.3f}", height=8))
        at += width
    named = {"role": "img", "aria_label": about, "preserveAspectRatio": "none"}
    return tag("svg", *drawn, class_="shares", viewBox="0 0 100 8", **named)


def run_link(run: Any) -> Markup:
    """Return a shortened run id as a link to the run's page."""
    return Markup('<a class="id" href="{}">{}</a>').format(run_address(run), run.run_id[:8])


def run_address(run: Any) -> str:
    """Return the address of a run's page."""
    return f"/runs/{quote(run.trial, safe='')}/{quote(run.run_id, safe='')}"


def node_link(name: str, machine: str) -> Markup:
    """Return a node's name as a link to its page."""
    address = f"/machines/{quote(machine, safe='')}/nodes/{quote(name, safe='')}"
    return Markup('<a href="{}">{}</a>').format(address, name)


def trial_link(tag: str) -> Markup:
    """Return a trial's tag as a link to its page."""
    return Markup('<a href="{}">{}</a>').format(trial_address(tag), tag)


def trial_address(tag: str) -> str:
    """Return the address of a trial's page."""
    return f"/trials/{quote(tag, safe='')}"


def machine_link(name: str) -> Markup:
    """Return a machine's name as a link to its page."""
    return Markup('<a href="{}">{}</a>').format(machine_address(name), name)


def machine_address(name: str) -> str:
    """Return the address of a machine's page."""
    return f"/machines/{quote(name, safe='')}"


def rehearsal_mark(rehearsed: bool) -> Markup:
    """Return the mark of rehearsed values, "" for measured ones."""
    text = "rehearsed" if rehearsed else ""
    title = "in virtual time on a simulated machine: nothing of it was measured"
    return Markup('<span class="rehearsed" title="{}">{}</span>').format(title, text) * rehearsed


def state(word: str, words: str = "") -> Markup:
    """Return a state, of a trial or a criterion, as a badge with ``words``; default: its own."""
    kind = word.replace(" ", "-")
    return Markup('<span class="state {}">{}</span>').format(kind, words or word)


def runs_of(trial: str, test: str = "", **filters: str) -> str:
    """Return the address of the list of a trial's runs, of one test and further filters."""
    query = {"trial": trial, **filters}
    if test:
        query["match"] = f"^{re.escape(test)}$"
    return "/runs?" + urlencode(query)


_FILTERS: list[Callable[..., Any]] = [breakable, clock, figure, machine_link, message]
_FILTERS += [moment, number]
_FILTERS += [node_link, percent, rehearsal_mark, run_address, run_link, seconds, state, trial_link]
_FILTERS += [verdict, whole]
FILTERS: dict[str, Callable[..., Any]] = {
    "bytes": units.show_bytes,
    "count": counted,
    "signed": units.show_signed,
    "better_by": units.better_by,
}
FILTERS |= {each.__name__: each for each in _FILTERS}
GLOBALS = {"shares": shares, "runs_of": runs_of, "zone": zone}
