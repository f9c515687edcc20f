"""Digests of facts: alike for nodes that are alike, whatever is read of them now."""

from __future__ import annotations

from pathlib import Path

from seatrial.plugins.facts.node_facts import NodeDigests, digests, keep, of_nodes

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
    digest = NodeDigests(tmp_path, "frost").digest
    assert digest("n1") == ""
    found = digests(of_nodes(NODES))
    keep(tmp_path, "frost", found)
    assert digest("n1") == digest("n[1-2]") == found["n1"]
    assert len({digest("n[1-2]"), digest("n[1-3]"), digest("n3"), digest("n[1-4]")}) == 4
    assert digest("n[3,1]") == digest("n[2-3]")
    assert digest("n[1,9]") == digest("") == digest("n[") == ""


def test_nodes_that_were_not_asked_again_keep_theirs(tmp_path: Path) -> None:
    digest = NodeDigests(tmp_path, "frost").digest
    keep(tmp_path, "frost", {"n1": "a" * 16, "n2": "b" * 16})
    assert digest("n2") == "b" * 16
    keep(tmp_path, "frost", {"n1": "c" * 16})
    assert (digest("n1"), digest("n2")) == ("c" * 16, "b" * 16)
    (tmp_path / ".facts/frost").write_bytes(b"n1\tcut")
    assert digest("n1") == ""
