"""Sets of nodes as bits, and as text that ClusterShell reads."""

from __future__ import annotations

import pytest
from ClusterShell.NodeSet import NodeSet
from hypothesis import given
from hypothesis import strategies as st

from seatrial.model.node_set import unfold
from seatrial.plugins.rehearsal.node_names import NodeNames, choose, runs

MACHINES = [
    unfold("n[001-120]"),
    unfold("n[1-12],n[098-103]"),
    unfold("login,c[0-3]-n[08-11],gpu[9-11]"),
    ("a", "b", "b01", "b02", "1", "2", "x7y"),
    unfold("n[099,0100,0101]"),
]


@pytest.mark.parametrize("names", MACHINES, ids=lambda names: names[0])
@given(st.data())
def test_text_names_the_nodes_of_a_mask(names: tuple[str, ...], data: st.DataObject) -> None:
    known = NodeNames(names)
    mask = data.draw(st.integers(1, known.all))
    chosen = {name for place, name in enumerate(names) if mask >> place & 1}
    text = known.text(mask)
    assert set(NodeSet(text, resolver=None)) == chosen
    assert known.mask(text) == mask


def test_folding_is_that_of_slurm() -> None:
    known = NodeNames(unfold("n[001-100]"))
    assert known.text(known.all) == "n[001-100]"
    assert known.text(0b1) == "n001"
    assert known.text(0b1101110) == "n[002-004,006-007]"
    assert known.text(0) == ""
    assert NodeNames(("n9", "n10", "n11")).text(0b111) == "n[9-11]"


def test_nodes_that_are_not_of_the_machine_are_left_out() -> None:
    assert NodeNames(("n1", "n2")).mask("n[2-3]") == 0b10
    with pytest.raises(ValueError, match="not a node set"):
        NodeNames(("n1",)).mask("n[1-")


@given(st.integers(1, 1 << 90), st.data())
def test_so_many_bits_are_chosen_together_where_they_can_be(mask: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, mask.bit_count()))
    chosen = choose(mask, count)
    assert chosen & ~mask == 0
    assert chosen.bit_count() == count
    if any(after - first >= count for first, after in runs(mask)):
        assert len(list(runs(chosen))) == 1
