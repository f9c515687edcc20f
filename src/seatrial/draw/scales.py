"""Map values to places along an axis, with ticks at round values.

scale = scale_of(Axis("elapsed", "s"), values, 40, 620)
scale.at(17.3), scale.ticks            # a place, and (place, label) of each tick
"""

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from seatrial.units import show_unit

Kind = Literal["linear", "log", "time", "clock"]
_LATEST = 32_503_680_000.0  # the year 3000; later times are not shown


class Axis(NamedTuple):
    """The title, unit and kind of an axis.

    ``kind`` "time": seconds since the epoch; "clock": seconds since a beginning. ``low`` and
    ``high``: values that it reaches in any case. ``ticks``: values to label instead of round ones.
    """

    title: str = ""
    unit: str = ""
    kind: Kind = "linear"
    low: float | None = None
    high: float | None = None
    ticks: Sequence[float] = ()

    @property
    def words(self) -> str:
        unit = show_unit(self.unit, " ({})")
        return f"{self.title}{unit}"

    def holds(self, value: float | None) -> bool:
        """Return whether the axis can show a value."""
        if value is None or not math.isfinite(value):
            return False
        if self.kind == "log":
            return value > 0
        return 0 <= value < _LATEST if self.kind == "time" else abs(value) < 1e300


class Tick(NamedTuple):
    """A place along an axis, and its label."""

    at: float
    label: str


class Scale(NamedTuple):
    """A map from values to places between ``start`` and ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool
    ticks: list[Tick]

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
    shown = [value for value in (*values, *axis.ticks) if axis.holds(value)]
    shown += [v for v in (axis.low, axis.high) if v is not None and axis.holds(v)]
    low, high = (min(shown), max(shown)) if shown else (1.0, 1.0)
    most = max(2, int(abs(end - start) / room))
    make = {"log": _log, "time": _time, "clock": _clock}.get(axis.kind, _linear)
    low, high, ticks = make(axis, low, high, most)
    if axis.ticks:
        ticks = [(value, plain(value)) for value in axis.ticks]
    scale = Scale(low, high, start, end, axis.kind == "log", [])
    placed = [Tick(scale.at(value), label) for value, label in ticks if low <= value <= high]
    return scale._replace(ticks=placed)


_Made = tuple[float, float, list[tuple[float, str]]]


def _linear(axis: Axis, low: float, high: float, most: int) -> _Made:
    """Return ends and ticks at 1, 2 or 5 times a power of ten; ends that were given are kept."""
    if high <= low:
        pad = abs(low) * 0.05 or 1.0
        low, high = low - pad, high + pad
    step = nice_step((high - low) / most)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [(n * step, labelled(n * step, step)) for n in range(first, last + 1)]
    keep_low = axis.low is not None and low == axis.low
    keep_high = axis.high is not None and high == axis.high
    return low if keep_low else first * step, high if keep_high else last * step, ticks


def nice_step(least: float) -> float:
    """Return the least of 1, 2, 5 times a power of ten that is not below a positive number."""
    power = 10.0 ** math.floor(math.log10(max(least, 1e-300)))
    return next(power * m for m in (1, 2, 5, 10) if power * m >= least * (1 - 1e-9))


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


def _log(axis: Axis, low: float, high: float, most: int) -> _Made:
    """Return ticks at powers of ten, and at 2 and 5 times these if there is room."""
    low, high = (min(max(value, _MIN), _MAX) for value in (low, high))
    if high <= low:
        low, high = low / 2, high * 2
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    decades = last - first
    parts = (1, 2, 5) if 3 * decades <= most + 2 else (1,)
    every = max(1, -(-decades // most))
    values = [m * 10.0**n for n in range(first, last + 1, every) for m in parts]
    inside = [value for value in values if low * 0.999 <= value <= high * 1.001]
    if len(inside) < 2:
        step = nice_step((high - low) / most)
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


def _clock(axis: Axis, low: float, high: float, most: int) -> _Made:
    """Ticks of time since a beginning: in the unit that the step has."""
    if high <= low:
        high = low + max(1.0, abs(low) * 1e-6)
    step = _step_of((high - low) / most)
    unit = next((size for size in (_DAY, _HOUR, _MINUTE) if step >= size), 1.0)
    name = {_DAY: "d", _HOUR: "h", _MINUTE: "min", 1.0: "s"}[unit]
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    ticks = [
        (n * step, f"{n * step / unit:,.10g} {name}" if n else "0") for n in range(first, last + 1)
    ]
    return low, high, ticks


def _step_of(least: float) -> float:
    if least > _STEPS[-1]:
        return nice_step(least / _DAY) * _DAY
    if least < 1:
        return nice_step(least)
    return next(step for step in _STEPS if step >= least)


def _time(axis: Axis, low: float, high: float, most: int) -> _Made:
    """Return ticks of the calendar in UTC; the first one of a day shows the date."""
    if high <= low:
        low, high = max(0.0, low - 30), high + 30
    least = (high - low) / most
    if least > 20 * _DAY:
        steps = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600)
        months = next((n for n in steps if n * 28 * _DAY >= least), 1200)
        return low, high, _months(low, high, months)
    step = next((s for s in _DATES if s >= least), _DATES[-1])
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
