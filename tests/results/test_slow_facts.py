"""A fact that goes with slow runs is named; by chance hardly ever."""

from __future__ import annotations

import random

import pytest

from seatrial.model.codes import FAILED, PASS
from seatrial.plugins.facts.changed import slow_facts
from seatrial.plugins.facts.node_facts import FactTable, of_nodes
from seatrial.results.store.tables import RunOutcome


def outcome(number: int, nodes: str, elapsed: float, code: int = PASS.number) -> RunOutcome:
    return RunOutcome(
        number, f"r{number}", "t", "m", "stream", "stream", "{}", "gcc", "", 300.0, code, "",
        False, number, elapsed, nodes,
    )  # fmt: skip


def nodes_with(chance: random.Random, slow: set[str], nodes: int = 40) -> FactTable:
    """Nodes of which the slow ones have firmware 1.2, and which differ in other facts by chance."""
    found: dict[str, dict[str, str]] = {}
    for i in range(nodes):
        name = f"n{i:02}"
        firmware = "1.2" if name in slow else "1.3"
        odd = {f"x.fact{k}": str(chance.randrange(2)) for k in range(10)}
        found[name] = {"node.firmware": firmware, "node.bios": f"B{firmware}", **odd}
    return of_nodes(found)


def runs(chance: random.Random, slow: set[str], ratio: float, nodes: int = 40) -> list[RunOutcome]:
    found: list[RunOutcome] = []
    for i in range(nodes):
        for _ in range(3):
            factor = ratio if f"n{i:02}" in slow else 1.0
            time = 100 * factor * chance.lognormvariate(0, 0.01)
            found.append(outcome(len(found), f"n{i:02}", time))
    return found


def test_the_fact_of_slow_nodes_is_named_with_how_much_and_how_many() -> None:
    chance = random.Random(3)
    slow = {f"n{i:02}" for i in range(8)}
    found = slow_facts(runs(chance, slow, 1.07), nodes_with(chance, slow))
    (one,) = found.facts
    assert one.keys == ["node.firmware", "node.bios"] and one.value == "1.2"
    assert (one.nodes, one.count, one.of) == ("n[00-07]", 8, 40)
    assert one.ratio == pytest.approx(1.07, abs=0.01) and one.p < 1e-6
    assert found.questions == 11


def test_runs_that_failed_and_nodes_without_facts_say_nothing() -> None:
    chance = random.Random(4)
    slow = {f"n{i:02}" for i in range(8)}
    table = nodes_with(chance, slow)
    bad = [outcome(i, f"n{i:02}", 999.0, FAILED.number) for i in range(8) for _ in range(9)]
    strangers = [outcome(i, "k1", 999.0) for i in range(9)]
    assert slow_facts([*runs(chance, set(), 1.0), *bad, *strangers], table).facts == []
    assert slow_facts([], table).facts == []


def test_runs_on_several_nodes_count_where_all_or_none_have_the_value() -> None:
    chance = random.Random(5)
    slow = {f"n{i:02}" for i in range(8)}
    found: list[RunOutcome] = []
    for i in range(0, 40, 2):
        time = 100 * (1.1 if f"n{i:02}" in slow else 1) * chance.lognormvariate(0, 0.01)
        found.append(outcome(i, f"n[{i:02}-{i + 1:02}]", time))
    found.append(outcome(99, "n[07-08]", 500.0))  # of both kinds
    (one,) = slow_facts(found, nodes_with(chance, slow)).facts
    assert one.keys[0] == "node.firmware" and one.ratio == pytest.approx(1.1, abs=0.02)


def test_chance_alone_names_a_fact_in_few_of_a_hundred_trials() -> None:
    accused = 0
    for seed in range(60):
        chance = random.Random(seed)
        slow = {f"n{i:02}" for i in chance.sample(range(24), 6)}
        accused += bool(
            slow_facts(runs(chance, set(), 1.0, 24), nodes_with(chance, slow, 24)).facts
        )
    assert accused <= 6  # 3 are expected at 5 %
