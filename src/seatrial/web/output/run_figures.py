"""The small figures and links of a run's page: filters of its template."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from msgspec import Struct

from seatrial.draw.svg import rect, tag
from seatrial.show.formatting import shares
from seatrial.units import show_figure

if TYPE_CHECKING:
    from seatrial.studies.one_run import Expected, RunPhase

SPARK_WIDTH = 144.0
SPARK_HEIGHT = 30.0
MARGIN = 3.0


class EarlierValue(Struct, frozen=True):
    """A value of an earlier run of the case; ``created`` in ns."""

    created: int
    trial: str
    run_id: str
    value: float


class RunMetric(Struct, frozen=True, kw_only=True):
    """A metric of the run with its expected value, and the values of earlier runs, oldest first."""

    name: str
    value: float
    unit: str
    better: str
    expected: "Expected | None"
    past: list[EarlierValue]


def phases_bar(phases: "Sequence[RunPhase]", now: int) -> Markup:
    """Return a bar of the phases of a run, in the order of time."""
    parts = [(phase.seconds(now), f"phase-{phase.name}", f"s {phase.name}") for phase in phases]
    return shares(*parts)


def sparkline(metric: RunMetric) -> Markup:
    """Draw the values of earlier runs, the run's own as a disc, and the band of the reference."""
    values = [past.value for past in metric.past] + [metric.value]
    wanted = metric.expected
    bounds = [b for b in (wanted.low, wanted.high) if b is not None] if wanted else []
    least, most = min([*values, *bounds]), max([*values, *bounds])
    if least == most:
        least, most = least - 1, most + 1

    def across(i: int) -> float:
        return MARGIN + (SPARK_WIDTH - 2 * MARGIN) * (i + 1) / len(values)

    def up(value: float) -> float:
        share = (value / 2 - least / 2) / (most / 2 - least / 2)  # halves: no overflow
        return SPARK_HEIGHT - MARGIN - (SPARK_HEIGHT - 2 * MARGIN) * share

    parts = []
    if wanted and bounds:
        top = 0.0 if wanted.high is None else up(wanted.high)
        bottom = SPARK_HEIGHT if wanted.low is None else up(wanted.low)
        parts.append(rect(0, top, SPARK_WIDTH, max(0.0, bottom - top), class_="band"))
        parts += [tag("path", class_="bound", d=f"M0 {up(b):.1f}H{SPARK_WIDTH:g}") for b in bounds]
    if len(values) > 1:
        way = "L".join(f"{across(i):.1f} {up(value):.1f}" for i, value in enumerate(values))
        parts.append(tag("path", class_="past", d=f"M{way}"))
    own = "own missed" if wanted and wanted.meets is False else "own"
    parts.append(tag("circle", class_=own, cx=across(len(values) - 1), cy=up(metric.value), r=2.8))
    size = f"0 0 {SPARK_WIDTH:g} {SPARK_HEIGHT:g}"
    return tag("svg", *parts, class_="spark", viewBox=size, role="img", aria_label=_said(metric))


def _said(metric: RunMetric) -> str:
    """Describe the sparkline in words."""
    if not metric.past:
        return f"{show_figure(metric.value, metric.unit)}, the first of its case"
    values = sorted(past.value for past in metric.past)
    least, middle, most = values[0], values[len(values) // 2], values[-1]
    return (
        f"{show_figure(metric.value, metric.unit)}; {len(values)} earlier:"
        f" {show_figure(least, '')} to {show_figure(most, '')}, median {show_figure(middle, '')}"
    )


FILTERS = {"sparkline": sparkline}
GLOBALS: dict[str, Any] = {"phases_bar": phases_bar}
