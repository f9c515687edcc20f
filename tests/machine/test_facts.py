from __future__ import annotations

from ClusterShell.NodeSet import NodeSet
from hypothesis import given
from hypothesis import strategies as st

from seatrial.machine.facts import fold, unfold

NAMES = st.from_regex(r"(n|n0|rack1-n|login)(|[0-9]{1,4})(|-ib)", fullmatch=True)


@given(st.sets(NAMES, max_size=30))
def test_names_are_folded_as_the_library_folds_them_one_by_one(names: set[str]) -> None:
    assert fold(names) == str(NodeSet.fromlist(sorted(names), resolver=None))
    assert not names or set(unfold(fold(names))) == names
