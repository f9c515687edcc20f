"""Only rules that are marked drain a node, and a drained one returns only if that is shown."""

from __future__ import annotations

import pytest

from seatrial.judge.log_rules import RuleFile
from seatrial.plugins.facts.node_facts import of_nodes
from seatrial.plugins.facts.rule_acts import SILENT, against_return, to_drain
from seatrial.plugins.facts.rules import judge, shipped_rules
from tests.plugins.facts.test_judge_rules import Nodes, rule

HURT = rule(name="hurt", holds="x.bad == 0", drain=True)
SMALL = rule(name="small", holds="x.size >= 5")
ALIKE = rule(name="alike", alike=["x.kernel"], drain=True)
UNIQUE = rule(name="unique", unique=["x.serial_*"])
COUNTED = rule(name="counted", holds="role.oss == 21", drain=True)
TORN = rule(name="torn", about="left out: rules/own.yaml:3: do: is missing")
RULES = RuleFile(rules=[HURT, SMALL, ALIKE, UNIQUE, COUNTED, TORN])
GOOD = {"x.bad": "0", "x.size": "9", "x.kernel": "5", "x.serial_1": "a"}


def test_only_marked_rules_and_silence_drain() -> None:
    nodes = {f"n{i}": {**GOOD, "x.size": "1"} for i in range(1, 9)}
    nodes["n3"] = {**nodes["n3"], "x.bad": "2", "x.kernel": "4"}
    judged = judge(of_nodes(nodes), RULES, {})
    assert {"small", "counted"} <= {each.rule for each in judged.findings}
    assert to_drain(judged, RULES, ["n9"]) == {"n9": [SILENT], "n3": ["hurt", "alike"]}


def test_of_the_rules_that_ship_few_drain() -> None:
    marked = [each.name for file in shipped_rules() for each in file.rules if each.drain]
    assert marked == ["no-uncorrected-errors"]


@pytest.mark.parametrize(
    ("about", "note", "others", "reason"),
    [
        (GOOD, ["hurt"], 2, ""),
        (GOOD, [SILENT], 0, ""),
        (GOOD, ["hurt", "alike"], 2, ""),
        ({**GOOD, "x.size": "1"}, ["hurt"], 2, ""),  # `small` is advice
        ({**GOOD, "x.size": "1"}, ["small"], 2, "small"),  # its note says that it mattered
        ({**GOOD, "x.bad": "1"}, [SILENT], 2, "hurt"),
        (None, ["hurt"], 2, SILENT),
        ({"x.size": "9", "x.kernel": "5"}, ["hurt"], 2, "hurt could not be judged"),
        (GOOD, ["alike"], 0, "alike compares nodes, and too few others told their facts"),
        (GOOD, ["unique"], 0, "unique compares nodes, and too few others told their facts"),
        (GOOD, ["torn"], 2, "torn could not be judged"),
        (GOOD, ["other"], 2, "'other' of its note is no rule here; give its file with --rules"),
    ],
)
def test_a_node_returns_only_if_its_rules_are_fulfilled(
    about: dict[str, str] | None, note: list[str], others: int, reason: str
) -> None:
    nodes: Nodes = {f"n{i}": GOOD for i in range(others)} | (
        {} if about is None else {"bad": about}
    )
    table = of_nodes(nodes | {"other": {"x.z": "1", "x.kernel": "5"}})  # of which less is known
    judged = judge(table, RULES, {})
    why = against_return("bad", note, judged, RULES, table, {}, ["bad"])
    assert why == ([reason] if reason else [])
