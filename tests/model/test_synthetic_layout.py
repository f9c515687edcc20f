"""hwloc's notation beside hwloc, and what is told of notations that are none."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.model import nodes
from tests.model.hwloc import xml_of

NOTATIONS = [
    "pack:2 numa:2 core:6 pu:1",
    "pack:2 [numa] core:4 pu:2(indexes=2*8:1*2)",
    "pack:2 [numa] core:4 pu:2(indexes=2*8)",
    "Package:2 L3Cache:2(size=1000) [NUMANode(memory=8000)] Core:3 PU:2",
    "numa:2 pack:1 l2:2 core:1 pu:4",
    "socket:2 core:2 pu:2(indexes=0,4,1,5,2,6,3,7)",
    "pack:2 numa:2 core:6 pu:1(indexes=2*12)",
    "pack:2 numa:2 core:6 pu:1(indexes=6*4:1*6)",
    "pack:2 pu:3",
    "group:2 die:2 numa:1 core:2 pu:1",
    "[numa] pack:2 core:4 pu:1",
    "pack:2 [numa(memory=8000)] [numa(memory=900)] core:4 pu:2",
    "[numa] pack:2 [numa] die:2 [numa] core:2 pu:2",
    "pack:2 l3u:2 [numa] core:2 pu:1",
]


@pytest.mark.parametrize("notation", NOTATIONS)
def test_hwloc_reads_the_same_layout(notation: str) -> None:
    assert nodes.parse_synthetic(notation) == nodes.parse_hwloc_xml(xml_of(notation))


@settings(max_examples=25, deadline=None)
@given(
    counts=st.tuples(*[st.integers(1, 4)] * 4),
    order=st.permutations(["pack", "numa"]),
    loop=st.sampled_from(["", "(indexes={step}*{rest}:1*{step})"]),
)
def test_hwloc_reads_the_same_of_any_shape(
    counts: tuple[int, ...], order: list[str], loop: str
) -> None:
    step, total = counts[3], counts[0] * counts[1] * counts[2] * counts[3]
    notation = f"{order[0]}:{counts[0]} {order[1]}:{counts[1]} core:{counts[2]} pu:{counts[3]}"
    notation += loop.format(step=step, rest=total // step)
    assert nodes.parse_synthetic(notation) == nodes.parse_hwloc_xml(xml_of(notation))


@pytest.mark.parametrize(
    ("notation", "told"),
    [
        ("pack:2 nmua:2 core:6 pu:1", "'nmua' is not an object of hwloc's notation; there are"),
        ("pack:2 core:6", "has no pu, the hardware threads of a core; write e.g. pack:2"),
        ("pu:1 core:2", "pu must be the last word"),
        ("pack:2 core:0 pu:1", "core has no number above 0"),
        ("pack:2 core pu:1", "core has no number above 0"),
        ("2 2 6 1", "'2' has no kind of object"),
        ("pack:2 core:6 pu:1 !", "'!' is not hwloc's notation"),
        ("pack:2 [core] pu:1", "only [numa] may be in brackets"),
        ("pack:2 [numa core:1 pu:1", "is not hwloc's notation"),
        ("core:2 core:6 pu:1", "has two words for core"),
        ("core:999999 pu:999999", "more than 16384 CPUs"),
        ("core:2 pu:2(indexes=0,1,2)", "indexes=0,1,2 are 3 numbers; there are 4 CPUs"),
        ("core:2 pu:2(indexes=0,1,2,2)", "CPU 2 is in it twice"),
        ("core:2 pu:2(indexes=numa:core)", "write the numbers of the CPUs in order"),
        ("core:2 pu:2(indexes=0*2:1*2)", "a loop of indexes has a 0"),
        ("core:2 pu:2(indexes=3*3)", "is in it twice"),
        ("", "has no pu"),
    ],
)
def test_notations_that_are_none(notation: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        nodes.parse_synthetic(notation)


@settings(max_examples=50, deadline=None)
@given(st.text("packnumore:2468 []()=,*\tﬁ", max_size=40))
def test_any_text_is_read_or_refused_with_a_reason(text: str) -> None:
    try:
        assert nodes.parse_synthetic(text).cores
    except ValueError as error:
        assert str(error)
