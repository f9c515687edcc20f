"""Quantities as people write them: ``90s``, ``1h30m``, ``00:10:00``, ``64MiB``; figures."""

import math
import re
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

SECOND_NS = 1_000_000_000
FAR_FUTURE_NS = 1 << 62  # later than any time
MAX_FIGURE = 1e150  # its square is finite; the smallest figure but 0 is 1 over it

Better = Literal["higher", "lower"]
Direction = Literal["higher", "lower", "none"]
NO_DIRECTION = "none"


def better_of(text: str) -> Better:
    """Return the direction of a metric that is judged, as the store or an event has it."""
    return "lower" if text == "lower" else "higher"


def direction_of(text: str) -> Direction:
    """Return the direction of any metric, as the store or an event has it."""
    return "none" if text == NO_DIRECTION else better_of(text)


def sign_of(better: str) -> int:
    """Return -1 where lower is better, else 1: times this, the best figure is the greatest."""
    return -1 if better == "lower" else 1


def direction_text(text: str) -> str:
    """Return the direction of a metric in words: ``lower is better``, or that it has none."""
    return "no direction" if text == NO_DIRECTION else f"{text} is better"


_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)", re.ASCII)
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_NOTHING = r"0+(ms|s|m|h|d)"
_CLOCK = r"(?:(?P<h>\d+):)?(?P<m>\d+):(?P<s>\d\d)"
_DAYS = r"(?P<d>\d+)-(?P<h>\d+)(?::(?P<m>\d\d))?(?::(?P<s>\d\d))?"
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMGTP]?)(iB|B|)", re.ASCII)
_PERCENT = r"(\d+(?:\.\d+)?)\s*%"
_LONGEST_TEXT = 64
_LONGEST_SECONDS = 10 * 365 * 86400


def seconds(text: str | int | float) -> float:
    """Return the seconds of a duration: a number of seconds, ``5m``, ``1h30m``, ``2d``, or as Slurm
    has it: ``minutes:seconds``, ``hours:minutes:seconds``, ``days-hours[:minutes[:seconds]]``.
    Raises ValueError with a remedy."""
    if isinstance(text, bool):
        raise ValueError(f"{text!r} is not a duration; write e.g. 90s, 5m or 1h30m")
    value = _seconds_of_text(text.strip()) if isinstance(text, str) else float(text)
    if not 0 < value <= _LONGEST_SECONDS:
        raise ValueError(f"{text!r} is not a duration between 1 ms and 10 years")
    return value


def span_of(text: str | int | float) -> float:
    """Return the seconds of a duration that may be 0 (or ``0h``)."""
    if isinstance(text, str) and re.fullmatch(_NOTHING, text.strip(), re.ASCII):
        return 0.0
    return 0.0 if text == 0 and not isinstance(text, bool) else seconds(text)


def ns(span: float) -> int:
    """Return seconds in nanoseconds."""
    return round(span * SECOND_NS)


def moment_of(text: str, now: float | None = None) -> int:
    """Return the ns since the epoch of a date, a time, or a while ago: ``2026-11-20``,
    ``2026-11-20T14:03``, ``2h``; ``now`` in seconds. Raises ValueError with a remedy."""
    try:
        return int(datetime.fromisoformat(text.strip()).timestamp() * SECOND_NS)
    except (ValueError, OverflowError):
        pass
    try:
        ago = seconds(text)
    except ValueError:
        today = datetime.now()
        raise ValueError(
            f"{text!r} is no time; write a while such as 2h or 3d, or a date such as "
            f"{today:%Y-%m-%d} or {today:%Y-%m-%dT%H:%M}"
        ) from None
    return int(((time.time() if now is None else now) - ago) * SECOND_NS)


_DAY = r"(?P<year>\d{4})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d))?)?"


def day_of(text: str) -> int:
    """Return the ns since the epoch at which a year, a month or a day begins: ``2013``,
    ``2013-03``, ``2013-03-14``. Raises ValueError with a remedy."""
    match = re.fullmatch(_DAY, text.strip()[:_LONGEST_TEXT], re.ASCII)
    try:
        year, month, day = (int(part or 1) for part in (match.groups() if match else "000"))
        if not 1900 <= year <= 2200:
            raise ValueError(year)
        return int(datetime(year, month, day).timestamp()) * SECOND_NS
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"{text[:_LONGEST_TEXT]!r} is no date; write e.g. 2013, 2013-03 or 2013-03-14"
        ) from None


def _seconds_of_text(text: str) -> float:
    short = text[:_LONGEST_TEXT]
    if clock := re.fullmatch(_CLOCK, short, re.ASCII) or re.fullmatch(_DAYS, short, re.ASCII):
        return sum(int(part or 0) * _UNIT_SECONDS[unit] for unit, part in clock.groupdict().items())
    parts = _DURATION_PART.findall(short)
    if not parts or _DURATION_PART.sub("", short).strip() or short != text:
        raise ValueError(f"{short!r} is not a duration; write e.g. 90s, 5m, 1h30m or 01:30:00")
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)


def bytes_of(text: str | int) -> int:
    """Return the bytes of a size: a number, ``64MiB`` (2^20), ``64MB`` (10^6) or ``64M`` (2^20, as
    in Slurm). Raises ValueError with a remedy."""
    if isinstance(text, int) and not isinstance(text, bool):
        if text < 0:
            raise ValueError(f"{text} is not a size; it must not be negative")
        return text
    match = _SIZE.fullmatch(str(text).strip())
    if not match or isinstance(text, bool) or len(str(text)) > _LONGEST_TEXT:
        raise ValueError(
            f"{str(text)[:_LONGEST_TEXT]!r} is not a size; write e.g. 64MiB, 2GB or 4096"
        )
    number, prefix, ending = match.groups()
    power = " kMGTP".index(prefix.replace("K", "k")) if prefix else 0
    return int(float(number) * (1000 if ending == "B" and prefix else 1024) ** power)


def number_or_size(text: str) -> float:
    """Return a number as it is, and the bytes of a size with its unit: ``8``, ``4KiB``; NaN for any
    other text."""
    try:
        value = float(text)
    except ValueError:
        has_unit = text.strip()[-1:].isalpha()
        return float(bytes_of(text)) if has_unit and _SIZE.fullmatch(text.strip()) else math.nan
    return value if math.isfinite(value) else math.nan


def share_of(text: str | float) -> float:
    """Return a share: a number (``0.05``) or per cent (``5%``). Raises ValueError."""
    if isinstance(text, str):
        match = re.fullmatch(_PERCENT, text.strip()[:_LONGEST_TEXT], re.ASCII)
        if not match:
            raise ValueError(f"{text[:_LONGEST_TEXT]!r} is not a share; write e.g. 0.05 or 5%")
        return float(match[1]) / 100
    if isinstance(text, bool) or not 0 <= text < math.inf:
        raise ValueError(f"{text!r} is not a share; write e.g. 0.05 or 5%")
    return float(text)


def show_seconds(value: float) -> str:
    """Return a duration for people, in two units at most: ``1.3 s``, ``3 d 4 h``."""
    if value < 0.9995:
        return f"{1000 * value:.3g} ms"
    if value < 60:
        return f"{value:.3g} s" if value < 9.995 else f"{value:.1f} s"
    whole = round(value)
    for size, unit, lower, lower_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "m")):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // lower} {lower_unit}"
    return f"{whole // 60} m {whole % 60} s"


def show_bytes(value: float) -> str:
    """Return a size for people: ``512 B``, ``1.5 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def show_size(value: float) -> str:
    """Return a size without rounding it: ``1000 B``, ``4 KiB``, ``1536 KiB``."""
    for unit, size in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value and value % size == 0:
            return f"{value / size:.15g} {unit}"
    return f"{value:.15g} B"


def count(number: int, noun: str) -> str:
    """Return a number of things: ``1 run``, ``2 runs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(names: Sequence[str], maximum: int) -> str:
    """Return names for a message: the first ``maximum``, and how many more there are."""
    more = f" and {len(names) - maximum} more" if len(names) > maximum else ""
    return ", ".join(names[:maximum]) + more


def show_number(value: float | None) -> str:
    """Return a figure with four significant digits: ``5694``, ``0.4213``; "" for none."""
    if value is None:
        return ""
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e7:
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:.3e}"


def show_share(value: float) -> str:
    """Return a share in per cent, with four digits; less than all is never shown as 100."""
    digits = 4 if value == 1 or f"{100 * value:.4g}" != "100" else 8
    return f"{100 * value:.{digits}g} %"


def show_interval(low: float | None, high: float | None) -> str:
    """Return an interval for a cell: ``3.755..3.84``; "" where an end is None."""
    return "" if low is None or high is None else f"{show_number(low)}..{show_number(high)}"


def in_per_cent(share: float | None) -> str:
    """Return a share for a cell: ``97.5 %``; "" for None."""
    return "" if share is None else f"{100 * share:.1f} %"


def interval_in_per_cent(low: float | None, high: float | None) -> str:
    """Return an interval of shares for a cell: ``96.1..98.9 %``; "" where an end is None."""
    return "" if low is None or high is None else f"{100 * low:.1f}..{100 * high:.1f} %"


def show_signed(value: float, digits: int = 1) -> str:
    """Return a difference with its sign: ``+1.5``; one that is rounded away has no minus:
    ``+0.0``."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def show_change(percent: float) -> str:
    """Return a change in per cent with its sign: ``+1.5 %``."""
    return f"{show_signed(percent)} %"


def better_by(percent: float, direction: str) -> float:
    """Return by how much a figure is better, given its change in per cent: positive is better,
    whichever direction is. A metric without a direction has its change as it is."""
    return 0.0 - percent if direction == "lower" else percent


def times_as_good(figure: float, other: float, better: str) -> float:
    """Return how many times as good a figure is as another one, both above 0; above 1 is better."""
    return other / figure if better == "lower" else figure / other


def show_unit(unit: str, form: str = " {}") -> str:
    """Return a unit as it follows a figure or a name, by ``form``; "" for a pure number (1)."""
    return "" if unit in ("", "1") else form.format(unit)


def show_figure(value: float, unit: str) -> str:
    """Return a figure with its unit: ``5694 MB/s``."""
    return show_number(value) + show_unit(unit)


# ---- units of one dimension ----------------------------------------------------------------------
#
# 47,120 MiB/s are 49.41 GB/s. A unit that is not here is its own dimension: it is never converted,
# such as KB, which is 1,000 bytes in some programs and 1,024 in others.
#
# converted(47120, "MiB/s", "GB/s") # 49.4089; None where they are of two dimensions

_DECIMAL = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGTPE", 1)}
_BYTES = {f"{prefix}B": size for prefix, size in (_DECIMAL | _BINARY).items()}
_OPERATION_RATES = ("op/s", "ops/s", "IOPS")
_FLOP_RATES = ("flop/s", "Flop/s", "FLOP/s", "flops", "Flops", "FLOPS")

SECONDS_OF = {"ns": 1e-9, "us": 1e-6, "usec": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
"""The units of metrics that are times, each in seconds."""

BYTES_PER_SECOND_OF = {f"{unit}/s": size for unit, size in _BYTES.items()}
"""The units of metrics that are rates of bytes, each in bytes per second."""

_DIMENSIONS: dict[str, dict[str, float]] = {
    "time": SECONDS_OF,
    "bytes": _BYTES,
    "bytes per second": BYTES_PER_SECOND_OF,
    "floating-point operations per second": {
        prefix + rate: size for prefix, size in _DECIMAL.items() for rate in _FLOP_RATES
    },
    "share": {"1": 1.0, "%": 0.01},
    "operations per second": {"1/s": 1.0}
    | {prefix + rate: size for prefix, size in _DECIMAL.items() for rate in _OPERATION_RATES},
}
_DIMENSION_OF = {unit: name for name, sizes in _DIMENSIONS.items() for unit in sizes}


def converted(value: float, unit: str, into: str) -> float | None:
    """Return a figure in another unit of the same dimension; None if there is no conversion."""
    if unit == into:
        return value
    sizes = _DIMENSIONS.get(_DIMENSION_OF.get(unit, ""), {})
    return value * (sizes[unit] / sizes[into]) if into in sizes else None


_WITH_UNIT = r"(\d+(?:\.\d+)?)\s*([A-Za-z][A-Za-z/]*)"


def figure_of(text: str) -> tuple[float, str]:
    """Return the number and the unit of a figure that can be converted: ``50 GB/s``. Raises
    ValueError with a remedy."""
    match = re.fullmatch(_WITH_UNIT, text.strip()[:_LONGEST_TEXT], re.ASCII)
    if not match or match[2] not in _DIMENSION_OF:
        raise ValueError(f"{text[:_LONGEST_TEXT]!r} is no figure; write e.g. 95%, 12000 or 50 GB/s")
    return float(match[1]), match[2]


def show_converted(value: float, unit: str, into: str) -> str:
    """Return a figure with its unit, and in another one: ``47120 MiB/s = 49.41 GB/s``."""
    other = converted(value, unit, into)
    same = "" if other is None or unit == into else f" = {show_figure(other, into)}"
    return show_figure(value, unit) + same


def unfit(value: float) -> str:
    """Return why a figure cannot be judged; "" if it can."""
    if not math.isfinite(value):
        return "not a finite number"
    if abs(value) > MAX_FIGURE:
        return f"beyond {MAX_FIGURE:g}, as no measurement is"
    if 0 < abs(value) < 1 / MAX_FIGURE:
        return f"below {1 / MAX_FIGURE:g}, as no measurement is"
    return ""


def unfit_of(values: Sequence[float]) -> str:
    """Return how many of these figures cannot be judged, and why; "" if all can."""
    if values and min(values) >= 1 / MAX_FIGURE and sum(values) <= MAX_FIGURE:  # NaN is neither
        return ""
    reasons = Counter(filter(None, map(unfit, values)))
    return ", ".join(
        f"{number} of {len(values)} figures: {reason}" for reason, number in reasons.items()
    )
