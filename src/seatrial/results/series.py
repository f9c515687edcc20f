"""The figures of one metric over time, as History judges them."""

from typing import NamedTuple

from msgspec import Struct

from seatrial.units import Direction


class Point(NamedTuple):
    """One figure: when (ns) its run started, and which run that was."""

    time: int
    value: float
    run_id: str
    trial: str


class MetricSeries(Struct, frozen=True):
    """The figures of one metric of one case on one machine in one stage, by time. ``excluded``
    counts runs and figures that were left out, by the reason. ``parts``: the figures that each
    point is the median of, where it is one."""

    metric: str
    machine: str
    case: str
    case_name: str
    test: str
    toolchain: str
    stage: str
    unit: str
    better: Direction
    points: list[Point]
    excluded: dict[str, int]
    parts: list[list[float]] = []

    @property
    def values(self) -> list[float]:
        return [point.value for point in self.points]
