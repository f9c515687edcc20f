"""Layouts by numbers and by texts, and how they are written."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.model.nodes import (
    Core,
    checked,
    from_sockets,
    mask,
    plain,
    spans,
    written,
    written_domains,
)


def test_a_layout_of_numbers_deals_cores_out_evenly() -> None:
    layout = plain(24, 2, 4, 2)
    assert list(layout.domains.values()) == [[*range(d, d + 6)] for d in (0, 6, 12, 18)]
    assert list(map(len, layout.sockets.values())) == [12, 12]
    assert layout.cores[3].cpus == (3, 27)
    assert not layout.numbered
    assert list(map(len, plain(7, 1, 3).domains.values())) == [3, 2, 2]
    assert len(plain(2, 4, 8).domains) == 2


@pytest.mark.parametrize(
    "texts",
    [
        [["0-5", "6-11"], ["12-17", "18-23"]],
        [["0-3+8-11"], ["4-7+12-15"]],
        [["0+1,2+3"], ["4+5,6+7"]],
        [["0,2,4", "6"], ["1,3,5"]],
        [["0-3+16-19,4-7"]],  # four cores of two threads, four of one
    ],
)
def test_texts_of_domains_are_read_and_written(texts: list[list[str]]) -> None:
    layout = from_sockets(texts)
    assert from_sockets(written(layout)) == layout
    assert len(layout.sockets) == len(texts)
    assert len(layout.domains) == sum(map(len, texts))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=20))
def test_domains_and_sockets_may_cut_each_other(places: list[tuple[int, int]]) -> None:
    cores = [Core(*place, (2 * i, 2 * i + 1)) for i, place in enumerate(places)]
    layout = checked(cores)
    assert from_sockets(written(layout), written_domains(layout)) == layout
    assert len(layout.domains) == len({domain for _, domain in places})
    assert len(layout.sockets) == len({socket for socket, _ in places})


def test_cores_are_in_the_order_of_their_cpus() -> None:
    assert written(from_sockets([["6-11", "0-5"]])) == [["0-5", "6-11"]]


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ([["0-5", "5-9"]], "CPU 5 is in it twice"),
        ([["0-5+6-9"]], "'0-5+6-9' joins spans of unequal length; write e.g. 0-5+24-29"),
        ([["5-0"]], "'5-0' is no span of CPUs; write the smaller number first, e.g. 0-5"),
        ([["a"]], "'a' is no list of CPUs; write e.g. 0-5"),
        ([["0-99999"]], "'0-99999' is no span of CPUs"),
        ([[]], "a socket has no NUMA domain; list its CPUs, e.g. 0-5"),
    ],
)
def test_texts_that_are_no_layout(texts: list[list[str]], told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        from_sockets(texts)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 300), unique=True, max_size=20))
def test_a_list_and_a_mask_hold_the_same_numbers(numbers: list[int]) -> None:
    text, bits = spans(sorted(numbers)), int(mask(numbers), 16)
    ends = [part.split("-") for part in text.split(",") if part]
    assert [n for s in ends for n in range(int(s[0]), int(s[-1]) + 1)] == sorted(numbers)
    assert [n for n in range(301) if bits >> n & 1] == sorted(numbers)
