"""Student's t, beside the exact one."""

from __future__ import annotations

import pytest

from seatrial.statistics.student import normal_deviate, student_quantile

EXACT = {(0.95, 3): 2.353, (0.975, 3): 3.182, (0.95, 11): 1.796, (0.995, 11): 3.106}


@pytest.mark.parametrize(("share", "freedom"), EXACT)
def test_quantiles_are_near_those_of_tables(share: float, freedom: int) -> None:
    assert student_quantile(share, freedom) == pytest.approx(EXACT[share, freedom], rel=0.02)
    assert student_quantile(1 - share, freedom) == -student_quantile(share, freedom)


def test_the_deviate_of_a_quantile_is_that_of_its_share() -> None:
    assert normal_deviate(student_quantile(0.975, 7), 7) == pytest.approx(1.95996, abs=1e-4)
