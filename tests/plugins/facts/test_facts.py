"""Facts are read whatever a node answered; nobody is accused for what another wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.errors import UsageError
from seatrial.plugins.facts import node_facts


def answer(node: str, *lines: str, end: bool = True) -> str:
    whole = [f"node\t{node}", *lines, *([f"end\t{len(lines)}"] if end else [])]
    return "".join(f"{line}\n" for line in whole)


def test_facts_are_columns_of_nodes() -> None:
    table = node_facts.parsed(answer("a", "x.y\t1", "x.z\tq") + answer("b", "x.y\t1") + answer("c"))
    assert table.nodes == ["a", "b", "c"] and not table.troubles
    assert table.facts_of("a") == {"x.y": "1", "x.z": "q"} and table.facts_of("nobody") == {}
    assert table.folded("x.y") == {"1": ["a", "b"], None: ["c"]}
    assert table.column("no.fact") == [None, None, None]
    assert table.with_keys(["x.z"]).facts_of("a") == {"x.z": "q"}
    assert node_facts.parsed(node_facts.text_of(table)).facts_of("a") == table.facts_of("a")


def test_odd_answers_are_told_and_concern_one_node_each() -> None:
    table = node_facts.parsed(
        answer("a", "x.y\t1")
        + answer("twice", "x.y\t1")
        + answer("twice", "x.y\t2")
        + answer("torn", "x.y\t1", end=False)
        + answer("odd", "x.y\t1", "what is this")
        + answer("../../etc", "x.y\t9")
        + answer("many", *(f"x.k{i}\t1" for i in range(node_facts.MAX_LINES + 5)))
        + answer("huge", "x.y\t" + "1" * (node_facts.MAX_OF_NODE + 5))
        + answer("red", "x.y\t\x1b[31m1")
        + "silent\tgone\nagain\ta\n"
    )
    assert table.nodes == ["a", "twice", "torn", "odd", "many", "huge", "red"]
    assert table.facts_of("twice") == {"x.y": "1"}
    assert table.facts_of("red") == {"x.y": "?[31m1"}
    assert len(table.facts_of("huge")["x.y"]) < node_facts.LONGEST
    assert table.silent == ["gone"]
    told = " / ".join(table.troubles)
    for words in (
        "twice answered twice",
        "torn: the end of its answer is missing",
        "odd: lines that are no facts",
        "'../../etc' is not the name of a node",
        "many told more than",
        "huge told more than",
        "a answered twice",
    ):
        assert words in told, words
    assert len(table.troubles) == 7


def test_what_lies_behind_the_limit_of_an_answer_is_left_out() -> None:
    long = "1" * 500
    lines = [f"x.k{i}\t{long}" for i in range(node_facts.MAX_OF_NODE // 500 + 10)]
    table = node_facts.parsed(answer("a", *lines) + answer("b", "x.y\t1"))
    assert len(lines) < node_facts.MAX_LINES and len(table.facts_of("a")) < len(lines) - 9
    assert table.facts_of("b") == {"x.y": "1"} and len(table.troubles) == 1


def test_behind_the_limit_of_keys_facts_of_known_keys_are_still_read() -> None:
    """Whoever makes up keys without end hides nothing of what other nodes answer."""
    each = node_facts.MAX_LINES - 2
    flood = [
        answer(f"n{number}", *(f"x.k{number}_{i}\t1" for i in range(each)))
        for number in range(node_facts.MAX_KEYS // each + 1)
    ]
    table = node_facts.parsed("".join(flood) + answer("late", "x.k0_7\t2", "y.new\t1"))
    assert len(table.keys) == node_facts.MAX_KEYS
    assert table.facts_of("late") == {"x.k0_7": "2"}
    assert "late: lines that are no facts are left out" in table.troubles


def test_what_an_answer_says_of_other_nodes_is_told_once_and_only_of_names() -> None:
    lines = (
        "silent\tgone\nsilent\t../gone\nsilent\tgone\nagain\ta\nagain\t../a\nagain\ta\nagain\tb\n"
    )
    table = node_facts.parsed(answer("a", "x.y\t1") + lines)
    assert table.silent == ["gone"]
    again = [trouble for trouble in table.troubles if "answered twice" in trouble]
    assert [trouble.split()[0] for trouble in again] == ["a", "b"]


def test_a_file_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(answer(f"n{i}", f"x.y\té{i}") for i in range(50)) + "silent\tz\n"
    (tmp_path / "f").write_text(text)
    whole = node_facts.read([tmp_path / "f"])
    monkeypatch.setattr(node_facts, "CHUNK", 7)
    pieces = node_facts.read([tmp_path / "f"])
    assert pieces.nodes == whole.nodes and not pieces.troubles and pieces.silent == ["z"]
    assert [pieces.facts_of(node) for node in pieces.nodes] == [
        whole.facts_of(node) for node in whole.nodes
    ]


@settings(max_examples=60)
@given(st.text(alphabet="node\tend\n.x1\x1b\r é", max_size=200))
def test_no_text_is_too_odd(text: str) -> None:
    table = node_facts.parsed("node\tn1\n" + text)
    assert "n1" in table.nodes or table.troubles
    assert all("\n" not in value and "\x1b" not in value for _, value in table.lines)


def test_what_is_no_file_of_facts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("hello\n")
    with pytest.raises(UsageError, match="first line must be node"):
        node_facts.read([tmp_path / "f"])
    with pytest.raises(UsageError, match="cannot be read"):
        node_facts.read([tmp_path / "g"])
