"""The bounds of criteria and their quantities."""

from seatrial.plan.criterion_kinds import kind_of
from seatrial.units import seconds, share_of
from seatrial.verify.figures import ELAPSED


def is_relative(written: int | float | str | None) -> bool:
    """Return whether a bound of ``figure_of_merit`` is a share of the reference: ``95%``."""
    return isinstance(written, str) and written.strip().endswith("%")


def bound_of(criterion: str, written: int | float | str, metric: str = "") -> float:
    """Return a bound of a criterion: seconds for ``mtbf``, a number for counts, else a share (which
    may be negative for ``slowdown``; for ``mix`` of percentage points). For ``figure_of_merit`` a
    number is in the metric's own unit, and per cent are a share of its reference; of the metric
    ``elapsed`` it may be a duration. Raises ValueError with a remedy."""
    quantity = kind_of(criterion).bound
    if quantity == "metric":
        if metric == ELAPSED and not is_relative(written):
            return seconds(written)
        return share_of(written) if isinstance(written, str) else float(written)
    if quantity == "seconds":
        return seconds(written)
    if quantity == "count":
        return _whole(written)
    if quantity == "change":
        return _signed_share(written)
    if quantity == "points":
        return _points(written)
    share = share_of(written)
    if quantity == "part" and share > 1:
        raise ValueError(f"{written!r} is more than 100 %; write e.g. 0.95 or 95%")
    return share


def _whole(written: int | float | str) -> float:
    if isinstance(written, str) or written < 0 or written != int(written):
        raise ValueError(f"{written!r} is not a whole number; write e.g. 20")
    return float(written)


def _points(written: int | float | str) -> float:
    """Return percentage points as a share."""
    if isinstance(written, str):
        text = written.strip().removesuffix("points").removesuffix("point").rstrip()
        try:
            share = share_of(text if text.endswith("%") else f"{text}%")
        except ValueError:
            raise ValueError(f"{written!r} is no percentage points; write e.g. 5 points") from None
    else:
        share = share_of(written)
    if share > 1:
        raise ValueError(f"{written!r} is more than 100 points; write e.g. 5 points")
    return share


def _signed_share(written: int | float | str) -> float:
    if isinstance(written, str):
        text = written.strip()
        return -share_of(text[1:]) if text.startswith("-") else share_of(text)
    return -share_of(-written) if written < 0 else share_of(written)
