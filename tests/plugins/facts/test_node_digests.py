"""Digests of facts: alike for nodes that are alike, whatever is read of them now."""

from __future__ import annotations

from pathlib import Path

from seatrial.plugins.facts.digests import NodeDigests, digests, keep
from seatrial.plugins.facts.node_facts import of_nodes

NODES = {
    "n1": {"a.x": "1", "a.y": "2", "now.load": "1"},
    "n2": {"a.y": "2", "a.x": "1", "now.load": "7", "skipped.z": "for root"},
    "n3": {"a.x": "1", "a.y": "3"},
    "n4": {"a.x": "1"},
}


def test_equal_facts_have_one_digest() -> None:
    found = digests(of_nodes(NODES))
    assert found["n1"] == found["n2"]
    assert len(set(found.values())) == 3
    alone = digests(of_nodes({"k1": NODES["n2"]}))
    assert alone["k1"] == found["n1"], "by the facts, not by the other nodes"


def test_the_digest_of_a_node_set(tmp_path: Path) -> None:
    of = NodeDigests(tmp_path, "frost").of
    assert of("n1") == ""
    found = digests(of_nodes(NODES))
    keep(tmp_path, "frost", found)
    assert of("n1") == of("n[1-2]") == found["n1"]
    assert len({of("n[1-2]"), of("n[1-3]"), of("n3"), of("n[1-4]")}) == 4
    assert of("n[3,1]") == of("n[2-3]")
    assert of("n[1,9]") == of("") == of("n[") == ""


def test_nodes_that_were_not_asked_again_keep_theirs(tmp_path: Path) -> None:
    of = NodeDigests(tmp_path, "frost").of
    keep(tmp_path, "frost", {"n1": "a" * 16, "n2": "b" * 16})
    assert of("n2") == "b" * 16
    keep(tmp_path, "frost", {"n1": "c" * 16})
    assert (of("n1"), of("n2")) == ("c" * 16, "b" * 16)
    (tmp_path / ".facts/frost").write_bytes(b"n1\tcut")
    assert of("n1") == ""
