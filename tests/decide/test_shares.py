"""The share of the machine that each test of a mix is to get."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.decide.in_flight import planned_shares
from seatrial.model.policy import Entry, Policy


def policy(*entries: tuple[int, float]) -> Policy:
    """A policy of entries with copies and weights."""
    named = [Entry(name=f"t{n}", copies=c, weight=w) for n, (c, w) in enumerate(entries)]
    return Policy(kind="sustained", entries=named)


def test_shares_and_copies_are_parts_of_the_machine_and_fills_divide_the_rest() -> None:
    found = planned_shares(policy((0, 0.5), (2, 0), (0, 0), (0, 0)), [2, 1, 1, 3], 8)
    assert found.shares == pytest.approx([0.5, 0.25, 0.125, 0.125])
    assert (found.left, found.fills) == (0, [2, 3])


def test_what_nobody_claims_is_left() -> None:
    found = planned_shares(policy((0, 0.5), (1, 0)), [2, 2], 8)
    assert found.shares == [0.5, 0.25]
    assert found.left == 0.25


def test_a_fill_has_no_share_where_all_is_claimed() -> None:
    found = planned_shares(policy((0, 1.0), (0, 0)), [2, 2], 8)
    assert (found.shares, found.left, found.fills) == ([1, 0], 0, [1])


def test_claims_of_more_than_the_machine_are_scaled_to_it() -> None:
    """Policies of 0.1 were not refused."""
    found = planned_shares(policy((0, 1.0), (4, 0)), [2, 2], 8)
    assert found.shares == [0.5, 0.5]
    assert found.left == 0


def test_of_a_machine_of_unknown_size_the_claims_are_all() -> None:
    found = planned_shares(policy((0, 0.2), (0, 0.3)), [2, 2], 0)
    assert found.shares == [0.4, 0.6]
    assert found.left == 0


@given(
    st.lists(st.tuples(st.integers(0, 4), st.floats(0, 3)), max_size=6),
    st.integers(0, 5),
    st.integers(1, 64),
)
def test_they_are_never_more_than_all(
    entries: list[tuple[int, float]], width: int, whole: int
) -> None:
    found = planned_shares(policy(*entries), [width] * len(entries), whole)
    assert sum(found.shares) + found.left == pytest.approx(1 if entries else found.left)
    assert all(share >= 0 for share in found.shares)
