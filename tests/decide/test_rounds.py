"""Rounds are balanced: no case stands before another more often than the other way round."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from seatrial.decide.once import Rounds


@given(st.integers(1, 12), st.text(max_size=5), st.integers(0, 3))
def test_in_a_cycle_each_case_follows_each_other_and_has_each_place_equally_often(
    cases: int, seed: str, cycle: int
) -> None:
    length = cases * (1 + cases % 2)
    rounds = Rounds(cases, seed)
    orders = [rounds.order(cycle * length + number) for number in range(length)]
    assert all(sorted(order) == list(range(cases)) for order in orders)
    followed = Counter(pair for order in orders for pair in pairwise(order))
    assert set(followed.values()) <= {1 + cases % 2}
    assert len(followed) == cases * (cases - 1)
    places = Counter((place, case) for order in orders for place, case in enumerate(order))
    assert set(places.values()) == {1 + cases % 2}


@given(st.integers(2, 12), st.text(max_size=5), st.integers(1, 12))
def test_in_a_few_rounds_no_case_follows_another_much_more_often(
    cases: int, seed: str, number: int
) -> None:
    rounds = Rounds(cases, seed)
    orders = [rounds.order(each) for each in range(min(number, cases))]
    followed = Counter(pair for order in orders for pair in pairwise(order))
    assert max(followed.values()) <= 1 + cases % 2


@given(st.integers(1, 40), st.text(max_size=5))
def test_the_first_round_has_the_order_of_the_cases_and_a_seed_gives_one_order(
    cases: int, seed: str
) -> None:
    assert Rounds(cases, seed).order(0) == tuple(range(cases))
    assert [Rounds(cases, seed).order(n) for n in (5, 1)] == [
        Rounds(cases, seed).order(n) for n in (5, 1)
    ]


def test_seeds_give_different_orders() -> None:
    assert len({tuple(Rounds(4, str(seed)).order(1)) for seed in range(20)}) > 1


def test_a_place_far_ahead_is_told_at_once() -> None:
    assert 0 <= Rounds(3, "x").place(10**12, 2) < 3
