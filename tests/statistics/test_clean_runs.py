"""How many clean runs show that failures are cured."""

from __future__ import annotations

import pytest
import scipy

from seatrial.statistics.proportion import clean_runs_needed, least_rate


@pytest.mark.parametrize(("failed", "runs"), [(1, 1), (1, 20), (3, 60), (20, 20), (7, 1000)])
def test_the_least_rate_is_that_of_clopper_and_pearson(failed: int, runs: int) -> None:
    expected = scipy.stats.beta.ppf(0.05, failed, runs - failed + 1)
    assert least_rate(failed, runs) == pytest.approx(expected, rel=1e-6)


def test_runs_that_are_needed() -> None:
    assert clean_runs_needed(1, 1) == 59  # a rate of 5 % or more
    assert clean_runs_needed(20, 20) == 2
    rate = scipy.stats.beta.ppf(0.05, 3, 58)
    needed = clean_runs_needed(3, 60)
    assert (1 - rate) ** needed <= 0.05 < (1 - rate) ** (needed - 1)


@pytest.mark.parametrize(("failed", "runs"), [(0, 5), (6, 5)])
def test_what_needs_no_cure(failed: int, runs: int) -> None:
    with pytest.raises(ValueError, match="nothing to cure"):
        clean_runs_needed(failed, runs)
