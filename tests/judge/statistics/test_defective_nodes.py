from __future__ import annotations

import math

import numpy as np
import pytest
from bench.quality import nodes as quality

from seatrial.judge.statistics.outliers import survey

PLANTED = {f"n{i:04d}" for i in range(6)}


def of(case: str, seed: int = 20) -> dict[str, quality.Tally]:
    return quality.defective(case, 20, seed)


def test_what_the_usual_rule_finds_is_found() -> None:
    found = of("6 of 200 at -8 %, noise 1 %")["ours"]
    assert found.all_found == 1
    assert found.false <= 1


def test_small_defects_in_little_noise_are_found() -> None:
    found = of("6 of 200 at -3 %, noise 0.3 %")
    assert found["ours"][:2] == (6, 0)
    assert found["usual"].found == 0


def test_noise_is_not_taken_for_defects() -> None:
    found = of("6 of 200 at -8 %, noise 4 %")
    ours, usual = found["ours"], found["usual"]
    assert ours.false <= 1
    assert usual.false > 20
    many = quality.defective("6 of 200 at -8 %, noise 4 %", 300, seed=20)
    assert many["ours"].f1 >= many["usual"].f1
    assert found["with suspects"].f1 > usual.f1 + 0.1
    assert 6 - ours.found + ours.false < 6 - usual.found + usual.false  # nodes judged wrongly
    assert found["with suspects"].found >= 2
    assert found["with suspects"].false < usual.false / 4


def test_a_fleet_without_a_bad_node_has_hardly_one_named() -> None:
    found = quality.defective("none of 200, noise 4 %", 60, seed=20)
    assert found["ours"].false <= 0.8
    assert found["ours"].none_false >= 0.5
    assert found["usual"].false > 20


def test_most_nodes_bad_do_not_make_bad_the_norm() -> None:
    found = of("110 of 200 at -8 %, noise 1 %")["ours"]
    assert found.all_found == 1
    assert found.false <= 1


def test_several_figures_of_a_node_are_surer() -> None:
    rng = np.random.default_rng(3)
    values = {f"n{i:04d}": (100 * (1 + 0.04 * rng.normal(0, 1, 25))).tolist() for i in range(200)}
    for node in PLANTED:
        values[node] = [0.92 * value for value in values[node]]
    found = set(survey(values, "higher").defective)
    assert found >= PLANTED
    assert len(found) <= 7


def test_lower_may_be_better() -> None:
    values = {f"n{i}": 10.0 + 0.01 * (i % 5) for i in range(50)} | {"slow": 11.0, "quick": 9.0}
    (name, defect), *others = survey(values, "lower").defective.items()
    assert (name, others) == ("slow", [])
    assert defect.effect == pytest.approx(-0.098, abs=0.002)
    assert defect.deviations is not None and defect.deviations < -5


def test_equal_nodes_have_no_noise_to_judge_by() -> None:
    values = dict.fromkeys(map(str, range(20)), 100.0) | {"bad": 97.0, "fine": 99.0}
    found = survey(values, "higher").defective
    assert list(found) == ["bad"]
    assert found["bad"].deviations is None


def test_nodes_without_figures_are_told() -> None:
    values: dict[str, float | list[float]] = {str(i): 100.0 + i % 3 for i in range(20)}
    values |= {"silent": math.nan, "empty": [], "dead": 0.0}
    found = survey(values, "higher")
    assert found.without == ["silent", "empty"]
    assert list(found.defective) == ["dead"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "0 nodes have a figure"),
        ({"a": 1.0, "b": 2.0}, "2 nodes have a figure"),
        (dict.fromkeys("abcdef", 0.0), "the healthy centre is 0"),
        (dict.fromkeys("abcdef", -1.0), "the healthy centre is -1"),
    ],
)
def test_what_cannot_be_judged_is_told(values: dict[str, float], said: str) -> None:
    found = survey(values, "higher")
    assert found.defective == {}
    assert said in found.reason


@pytest.mark.parametrize(
    ("centre", "noise", "digits"), [(2.0, 0.04, 1), (2.0, 0.03, 1), (1.98, 0.04, 1), (15, 0.4, 0)]
)
def test_rounded_figures_are_not_taken_for_defects(
    centre: float, noise: float, digits: int
) -> None:
    rng = np.random.default_rng(5)
    false = 0
    for _ in range(20):
        figures = np.round(rng.normal(centre, noise, 200), digits).tolist()
        found = survey(dict(zip(map(str, range(200)), figures, strict=True)), "higher")
        assert found.noise
        false += len(found.defective)
    assert false <= 20


@pytest.mark.parametrize(
    "values",
    [
        [100.0] * 4 + [90.0],
        [100.0] * 197 + [90.0] * 3,
        [100.0] * 195 + [97.0] * 4 + [0.0],
        [15.0] * 150 + [14.0] * 25 + [16.0] * 24 + [10.0],
    ],
)
def test_among_equal_nodes_the_bad_are_found(values: list[float]) -> None:
    named = dict(zip(map(str, range(len(values))), values, strict=True))
    found = survey(named, "higher").defective
    norm = values[0]
    assert {one.value for one in found.values()} == {v for v in values if v < 0.98 * norm} - {14.0}
