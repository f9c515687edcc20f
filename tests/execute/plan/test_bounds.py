"""What the bounds of criteria are, each in its own unit."""

from __future__ import annotations

import pytest

from seatrial.model.plan import bound_of


@pytest.mark.parametrize(
    ("criterion", "written", "bound"),
    [
        ("pass_rate", "95%", 0.95),
        ("availability", 1, 1.0),
        ("variability", "150%", 1.5),
        ("mtbf", "2d", 172800.0),
        ("network", 0, 0.0),
        ("findings", 0, 0.0),
        ("jobs_in_flight", 20, 20.0),
        ("accepted_runs", 3.0, 3.0),
        ("slowdown", "-5%", -0.05),
        ("slowdown", -0.05, -0.05),
        ("slowdown", "5%", 0.05),
        ("slowdown", 0, 0.0),
        ("figure_of_merit", -3.5, -3.5),
        ("figure_of_merit", "95%", 0.95),
        ("mix", "5 points", 0.05),
        ("mix", "1 point", 0.01),
        ("mix", "5%", 0.05),
        ("mix", "100 points", 1.0),
        ("mix", 0.05, 0.05),
    ],
)
def test_bounds(criterion: str, written: str | float, bound: float) -> None:
    assert bound_of(criterion, written) == pytest.approx(bound)


@pytest.mark.parametrize(
    ("criterion", "written"),
    [
        ("pass_rate", "much"),
        ("pass_rate", 95),
        ("pass_rate", -0.1),
        ("utilisation", "101%"),
        ("network", "5%"),
        ("network", -1),
        ("mtbf", 0),
        ("mtbf", "often"),
        ("jobs_in_flight", "20"),
        ("jobs_in_flight", 2.5),
        ("accepted_runs", -1),
        ("slowdown", "--5%"),
        ("slowdown", "slow"),
        ("figure_of_merit", "310 furlongs"),
        ("figure_of_merit", "GB/s"),
        ("figure_of_merit", "-5 GB/s"),
        ("mix", "101 points"),
        ("mix", "five points"),
        ("mix", 5),
    ],
)
def test_what_is_no_bound(criterion: str, written: str | float) -> None:
    with pytest.raises(ValueError, match=r"; write |is not a duration"):
        bound_of(criterion, written)
