"""The bits of nodes are those of the names that a set of nodes unfolds to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from seatrial.model.node_set import unfold_or_empty
from seatrial.results import trial_history
from seatrial.results.trial_history import NodeBits

TWO_ROWS = [f"{stem}{number:03}" for stem in "mn" for number in range(1, 6)]


@pytest.mark.parametrize("most", [2, 20_000])
@pytest.mark.parametrize(
    ("names", "sets"),
    [
        (TWO_ROWS, ("n[001-003]", "m[001-003]", "n[001]", "n[001-002,005]", "m[001,001-004]")),
        (TWO_ROWS, ("n[001-003]", "n[003-001]", "n[004-001]", "n[001-009]", "n[001-003]")),
        (["n01", "n2"], ("n[01-2]", "n[01]", "n[2]", "n[01-02]")),
    ],
)
def test_a_set_is_looked_up_by_all_that_it_says(
    names: Sequence[str], sets: Sequence[str], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial_history, "MAX_KNOWN", most)
    bits = NodeBits(names)
    for written in (*sets, *sets):
        known = [name for name in unfold_or_empty(written) if name in names]
        assert list(bits.names_in(bits.of(written))) == sorted(known), written


def test_a_host_may_know_itself_by_another_name() -> None:
    bits = NodeBits(["here"])
    assert list(bits.names_in(bits.of("vm.example.org"))) == ["here"]


def test_so_many_sets_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_history, "MAX_KNOWN", 3)
    bits = NodeBits(TWO_ROWS)
    for first in range(1, 6):
        for last in range(first, 6):
            bits.of(f"n[00{first}-00{last}]")
            assert len(bits._known) <= 3
            assert sum(map(len, bits._spans.values())) <= 3
