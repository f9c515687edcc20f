"""Findings on nodes: what the lines of one job say, and what rules find in facts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from seatrial.journal.events import MetricRecorded
from seatrial.judge.log_rules import Rule, RuleFile, is_named, metric_of, node_of, own_rules
from seatrial.model.figures import MetricValue
from seatrial.plugins.facts import collector
from seatrial.plugins.facts.collector import findings_in
from tests.judge.helpers import a_test
from tests.programs import Workplace

NONE = RuleFile(rules=[], values={}, waivers=[])


def found(folder: Path, rules: RuleFile = NONE, **roles: str) -> dict[str, float]:
    figures = findings_in(folder, roles, rules)
    assert all((one.unit, one.better) == ("1", "lower") for one in figures)
    return {one.name: one.value for one in figures}


def of_lines(folder: Path, *lines: str) -> dict[str, float]:
    (folder / "nodecheck.txt").write_text("".join(f"{line}\n" for line in lines))
    return found(folder)


def test_each_check_that_failed_on_a_node_is_a_finding(tmp_path: Path) -> None:
    lines = ["n1 ok", "n2 FAILED memory 251 GiB", "n2\tFail clock", "n-3.a FAILED memory", "n4 bad"]
    assert of_lines(tmp_path, *lines) == {
        "findings": 4,
        "findings_of_check": 1,
        "findings_of_clock": 1,
        "findings_of_memory": 2,
        "failed_node{node=n-3.a}": 1,
        "failed_node{node=n2}": 2,
        "failed_node{node=n4}": 1,
    }


@pytest.mark.parametrize("state", ["ok", "Pass", "SUCCESS", "good", "passed"])
def test_a_good_node_is_no_finding(tmp_path: Path, state: str) -> None:
    assert of_lines(tmp_path, f"n1 {state} memory") == {"findings": 0}


@pytest.mark.parametrize("state", ["hw-fail", "PERF", "perf-fail", "incorrect", "BAD"])
def test_states_of_other_harnesses_are_known(tmp_path: Path, state: str) -> None:
    assert of_lines(tmp_path, f"n1 {state}")["findings"] == 1


@pytest.mark.parametrize("line", ["", "n1", "n1 unknown memory", "-n1 ok", f"{'n' * 101} ok"])
def test_other_lines_tell_of_no_node(tmp_path: Path, line: str) -> None:
    assert of_lines(tmp_path, line) == {}


def test_what_is_not_known_of_a_node_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "nodecheck.txt").write_text("# all\n\nn1.cluster ok\nn2 dead gpu\nwhat?\nn3 o")
    figures = findings_in(tmp_path, {}, NONE, "n[1-4]")
    assert {one.name: one.value for one in figures} == {
        "findings": 6,
        "findings_of_no-answer": 3,
        "findings_of_not-understood": 3,
        "failed_node{node=n2}": 2,
        "failed_node{node=n3}": 1,
        "failed_node{node=n4}": 1,
    }
    (tmp_path / "nodecheck.txt").write_text("login ok\n")
    assert [one.value for one in findings_in(tmp_path, {}, NONE, "here")] == [0], "another name"
    assert findings_in(tmp_path, {}, NONE, "a,b")[0].value == 2


def test_facts_that_are_not_whole_are_findings(tmp_path: Path) -> None:
    facts = "silent\tn3\nnode\tn1\nx.y\t1\nend\t2\nnode\tn2\nx.z\t1\nend\t1\n"
    (tmp_path / "facts.txt").write_text(facts)
    own = Rule(name="ours", about="a.", source="s", do="d.", holds="x.y < 2")
    assert found(tmp_path, replace(NONE, rules=[own])) == {
        "findings": 3,
        "findings_of_no-answer": 1,
        "findings_of_not-judged_ours": 1,
        "findings_of_not-understood": 1,
        "failed_node{node=n3}": 1,
    }


def test_what_cannot_be_read_gives_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found(tmp_path) == {}
    monkeypatch.setattr(collector, "_LIMIT", 6)
    assert of_lines(tmp_path, "n1 ok") == {"findings": 0}
    assert of_lines(tmp_path, "n1 good") == {}, "it is too large"
    (tmp_path / "nodecheck.txt").unlink()
    os.mkfifo(tmp_path / "nodecheck.txt")
    assert found(tmp_path) == {}


def test_only_so_many_nodes_have_a_figure_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "MAX_NODES", 2)
    names = of_lines(tmp_path, "n3 bad x", "n1 bad x", "n2 bad x")
    assert names == {
        "findings": 3,
        "findings_of_x": 3,
        **dict.fromkeys(map(metric_of, ("n1", "n2")), 1),
    }


def test_facts_are_judged_by_rules_for_nodes_with_a_role(tmp_path: Path) -> None:
    nodes = [f"node\tn{number}\nx.y\t{number}\nend\t1\n" for number in (1, 2, 3)]
    (tmp_path / "facts.txt").write_text("".join(nodes))
    (tmp_path / "nodecheck.txt").write_text("n9 bad\n")
    own = Rule(name="ours", about="a.", source="s", do="d.", holds="x.y < 2", roles=["io"])
    rules = replace(NONE, rules=[own])
    assert found(tmp_path, rules, n1="io", n2="io", n3="other") == {
        "findings": 1,
        "findings_of_ours": 1,
        "failed_node{node=n2}": 1,
    }
    (tmp_path / "facts.txt").write_bytes(b"\0")
    assert found(tmp_path, rules) == {}


def test_a_metric_names_its_node() -> None:
    assert node_of(metric_of("n1")) == "n1"
    assert node_of("findings") == ""
    assert MetricValue(metric_of("n1"), 1.0, "1", "lower").name == "failed_node{node=n1}"


def test_which_runs_tell_of_nodes() -> None:
    assert is_named(["stdout", "facts.txt"]) and is_named({"nodecheck.txt"})
    assert not is_named(["stdout"])


def test_a_sites_own_rules_are_for_tests_that_collect_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "own.yaml").write_text("values: {least: 3}\n")
    test = a_test()
    assert own_rules([test]) == []
    (rules,) = own_rules([test, replace(test, app="facts")])
    assert rules.values == {"least": 3}


def test_a_finding_about_the_machine_counts_once_and_fails_no_node(tmp_path: Path) -> None:
    counted = Rule(name="counted", about="a.", source="s", do="d.", holds="role.oss == 21")
    (tmp_path / "facts.txt").write_text("".join(f"node\tn{i}\nx.y\t1\nend\t1\n" for i in range(9)))
    rules = RuleFile(rules=[counted])
    assert found(tmp_path, rules) == {"findings": 1, "findings_of_counted": 1}


def test_only_runs_whose_answer_is_right_have_findings(place: Workplace) -> None:
    """What a run that failed says of nodes counts where a script of its test judges it."""
    told = 'printf "n1 ok\\nn2 FAILED dimm\\n" > nodecheck.txt'
    check = {"contains": "n1 ok", "in": "nodecheck.txt"}
    place.test("right", told, verify=[check])
    place.test("failed", f"{told}; false", verify=[check])
    place.test("plain", told)
    folder = place.test("scripted", told, verify=[check, {"script": "check.sh"}])
    (folder / "check.sh").write_text("exit 1\n")
    place.run("--name", "t")
    findings = {
        event.test: event.value
        for event in place.events("t", MetricRecorded)
        if event.metric == "findings"
    }
    assert findings == {"right": 1, "scripted": 1}
