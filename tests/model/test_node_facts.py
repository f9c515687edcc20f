from __future__ import annotations

import time

import pytest
from ClusterShell.NodeSet import NodeSet, NodeSetException
from hypothesis import given
from hypothesis import strategies as st

from seatrial.model.machine import Machine, NodeGroup
from seatrial.model.node_set import fold, unfold, unfold_or_empty
from seatrial.model.nodes import unknown_features

NAMES = st.from_regex(r"(n|n0|rack1-n|login)(|[0-9]{1,4})(|-ib)", fullmatch=True)
PLACES = st.from_regex(r"r[0-3]n(0[0-2]|1|10)|c[0-2]-0c[01]s[0-3]n[01]", fullmatch=True)
ITEMS = st.from_regex(
    r"r([0-3]|\[[0-3]\]|\[0-2,3\])n(0[0-2]|\[0-2\]|\[00-02,10\]|[9]-[1-2]|\[1-3\]0)|n[1-4]",
    fullmatch=True,
)


@given(st.one_of(st.sets(NAMES, max_size=30), st.sets(PLACES, max_size=40)))
def test_names_are_folded_as_the_library_folds_them_one_by_one(names: set[str]) -> None:
    assert fold(names) == str(NodeSet.fromlist(sorted(names), resolver=None))
    assert not names or set(unfold(fold(names))) == names


@given(
    st.sampled_from(["n", "c5n", "r01-n", "n0"]),
    st.lists(st.from_regex(r"[0-9]{1,3}(-[0-9]{1,3})?", fullmatch=True), min_size=1, max_size=4),
)
def test_a_row_is_unfolded_as_the_library_unfolds_it(stem: str, spans: list[str]) -> None:
    text = f"{stem}[{','.join(spans)}]"
    try:
        names = tuple(NodeSet(text, resolver=None))
    except NodeSetException:
        assert unfold_or_empty(text) == ()
    else:
        assert unfold(text) == names


@given(st.lists(ITEMS, min_size=1, max_size=6))
def test_sets_are_unfolded_as_the_library_unfolds_them(items: list[str]) -> None:
    text = ",".join(items)
    assert unfold(text) == tuple(NodeSet(text, resolver=None))


@pytest.mark.parametrize(
    "text",
    [
        *("n[1-", "n[1-,2]", "n[1-2]]", "n[2-1]", "n[01-100]", ".n[1-2]", "n[]", "[1-2", "n[a,b]"),
        *("n[0-999999999],n[999999999-1]", "n[0-999999999999999999999]", "n[0-999999999/2]"),
        *("n[0-9_999_999_99]", "n[0 - 999999999]", "n[٠-٩٩٩٩٩٩٩٩٩]", "n[0-9,-1-999999999]"),
        *("n[[0-999999999]]", "n" + "[" * 20_000, f"n[1-{'9' * 5000}]", "n[1-2]%s"),
        *("n[1-2],*", "n1,@*", "n[1-2],@compute"),  # groups of the host that runs this
    ],
)
def test_what_is_no_node_set(text: str) -> None:
    start = time.process_time()
    with pytest.raises(ValueError, match=r"node set|more than 100000 nodes"):
        unfold(text)
    assert unfold_or_empty(text) == ()
    assert time.process_time() - start < 2  # about 0.1


@pytest.mark.parametrize(
    ("text", "without", "folded"),
    [
        ("n[0-99999]", (), "n[0-99999]"),
        ("n[00000-99999]", (), "n[00000-99999]"),
        ("r[0-99]n[000-999]", (), "r[0-99]n[000-999]"),
        ("r[0-99]n[000-999]", ("r7n012", "r9n999"), "r[0-6,8,10-99]n[000-999],r7n[000-011,013-"),
        ("n[0-99999]", tuple(f"n{i}" for i in range(0, 99_999, 4)), "n[1-3,5-7,9-11,13-15"),
    ],
)
def test_sets_of_100_000_names_take_no_second(
    text: str, without: tuple[str, ...], folded: str
) -> None:
    start = time.process_time()
    names = unfold(text)
    left = set(names).difference(without)
    again = fold(left)
    assert set(unfold(again)) == left
    assert time.process_time() - start < 3  # coverage and old hosts; about 0.3
    assert len(names) == 100_000
    assert again.startswith(folded)


def test_features_that_slurm_does_not_know() -> None:
    """Each with the first node that lacks it; nothing is said about nodes that Slurm lacks."""
    nodes = [
        NodeGroup(names="n[1-3]", cores=1, features=["a", "b"]),
        NodeGroup(names="g1", cores=1, features=["b", "c"]),
    ]
    there = {"n1": ["a", "b"], "n2": ["a"], "g1": ["b", "c", "d"]}
    assert unknown_features(Machine(machine="m", nodes=nodes), there) == {"b": "n2"}
    assert unknown_features(Machine(machine="m", nodes=nodes), {}) == {}
