"""Correlations of figures with covariates, by dealing the figures anew."""

from __future__ import annotations

import pytest

from seatrial.judge.statistics.trends import CorrelationSample, correlations

FOUR = [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("figures", [FOUR, FOUR[::-1]])
def test_two_of_the_24_orders_of_four_figures_are_as_clear_as_a_perfect_one(
    figures: list[float],
) -> None:
    ((told,),) = correlations([CorrelationSample([0] * 4, [FOUR], figures)])
    assert told is not None
    assert told.p == pytest.approx(2 / 24, abs=0.02)
    assert (told.deviate > 0) == (figures == FOUR)


def test_several_covariates_are_corrected_for_and_one_that_is_constant_tells_nothing() -> None:
    other = [1.0, 3.0, 2.0, 4.0]
    ((alone,),) = correlations([CorrelationSample([0] * 4, [FOUR], FOUR)])
    ((first, _, constant),) = correlations(
        [CorrelationSample([0] * 4, [FOUR, other, [5.0] * 4], FOUR)]
    )
    assert alone is not None and first is not None and constant is None
    assert first.p > alone.p


def test_what_differs_between_strata_is_no_evidence() -> None:
    """Two cases, of which one is slower and has the larger covariate: within each nothing rises."""
    strata = [0] * 4 + [1] * 4
    covariate = [1.0, 2.0, 2.0, 1.0, 11.0, 12.0, 12.0, 11.0]
    figures = [1.0, 2.0, 1.0, 2.0, 101.0, 102.0, 101.0, 102.0]
    ((told,),) = correlations([CorrelationSample(strata, [covariate], figures)])
    assert told is not None and told.deviate == pytest.approx(0) and told.p > 0.5
