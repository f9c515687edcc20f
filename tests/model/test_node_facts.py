from __future__ import annotations

from ClusterShell.NodeSet import NodeSet, NodeSetException
from hypothesis import given
from hypothesis import strategies as st

from seatrial.model.machine import Machine, NodeGroup
from seatrial.model.node_set import fold, unfold, unfold_or_empty
from seatrial.model.nodes import unknown_features

NAMES = st.from_regex(r"(n|n0|rack1-n|login)(|[0-9]{1,4})(|-ib)", fullmatch=True)


@given(st.sets(NAMES, max_size=30))
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


def test_features_that_slurm_does_not_know() -> None:
    """Each with the first node that lacks it; nothing is said about nodes that Slurm lacks."""
    nodes = [
        NodeGroup(names="n[1-3]", cores=1, features=["a", "b"]),
        NodeGroup(names="g1", cores=1, features=["b", "c"]),
    ]
    there = {"n1": ["a", "b"], "n2": ["a"], "g1": ["b", "c", "d"]}
    assert unknown_features(Machine(machine="m", nodes=nodes), there) == {"b": "n2"}
    assert unknown_features(Machine(machine="m", nodes=nodes), {}) == {}
