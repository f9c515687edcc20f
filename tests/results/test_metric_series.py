"""The figures of a metric over time."""

from __future__ import annotations

from seatrial.results.store.series import MetricSeries, Point


def test_values_are_in_the_order_of_points() -> None:
    of = ("triad", "frost", "c", "c", "t", "gcc", "", "MB/s")
    points = [Point(1, 5.0, "a", "x"), Point(2, 4.0, "b", "x")]
    assert MetricSeries(*of, "higher", points, {}).values == [5.0, 4.0]
