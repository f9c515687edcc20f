from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from seatrial.journal.events import RunJudged
from seatrial.judge.check_values import bounds_of, names_of, pattern_of, text_of
from seatrial.judge.checks import find_fault
from seatrial.model.expressions import ExpressionError
from seatrial.model.machine import Machine, NodeGroup, Toolchain
from seatrial.model.test import Requires
from tests.model.suite.helpers import Place
from tests.programs import Workplace

from .helpers import a_case, a_check, a_test

# The final origin energy depends on the edge, as LULESH's does.
ENERGY = "echo iterations $((edge * 5)); awk -v e=$edge 'BEGIN {print \"energy\", e^3 + 0.25}'"
SIZES: dict[str, Any] = {
    "parameters": {"edge": [2, 3, 10], "want": [8.25, 27.25, 1000.25]},
    "zip": [["edge", "want"]],
}


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    place = Workplace(tmp_path)
    place.local()
    return place


def test_a_right_answer_depends_on_parameters(place: Workplace) -> None:
    place.test(
        "lulesh",
        ENERGY,
        verify=[
            {"name": "energy", "value": r"^energy (\S+)", "equals": "want", "relative": 1e-8},
            {"value": r"^energy (\S+)", "equals": "edge * edge * edge", "tolerance": "edge / 8"},
            {"name": "work", "value": r"^iterations (\S+)", "at_least": 5, "at_most": "5 * edge"},
            {"contains": "energy ${want}\n"},
            {"absent": "iterations $want"},
            {"matches": r"^energy $want$"},
            {"name": "shape", "python": "answer.py:shape"},
        ],
        **SIZES,
    )
    (place.suite / "lulesh/answer.py").write_text(
        "def shape(run, names):\n"
        "    assert names['edge'] in (2, 3, 10) and names['tasks'] == names['nodes'] == 1\n"
        "    return (run / 'stdout').read_text().count('energy') == 1\n"
    )
    assert place.run("--name", "t").code == 0
    assert set(place.verdicts().values()) == {"pass"}
    assert len(place.verdicts()) == 3


def test_the_verdict_says_which_check_failed_its_value_bound_and_place(place: Workplace) -> None:
    about = {**SIZES, "parameters": {"edge": [2], "want": [8.5]}}
    checks: dict[str, dict[str, Any]] = {
        "energy": {"value": r"^energy (\S+)", "equals": "want", "tolerance": 0.125},
        "work": {"value": r"^iterations (\S+)", "at_most": "edge"},
        "shape": {"python": "answer.py:shape"},
        "trouble": {"python": "answer.py:trouble"},
        "claim": {"python": "answer.py:claim"},
    }
    for name, check in checks.items():
        folder = place.test(name, ENERGY, verify=[{"name": name, **check}], **about)
        (folder / "answer.py").write_text(
            "def shape(run, names): return f'{names[\"edge\"]} is no shape'\n"
            "def trouble(run, names): return names['nothing']\n"
            "def claim(run, names): assert names['want'] == 9, 'want 9'\n"
        )
    assert place.run("--name", "t").code == 1
    found = {event.test: (event.verdict, event.reason) for event in place.events("t", RunJudged)}
    assert found == {
        "energy": ("wrong answer", "energy: stdout:2: the value is 8.25, not 8.5 within 0.125"),
        "work": ("wrong answer", "work: stdout:1: the value is 10, at most 2 asked"),
        "shape": ("wrong answer", "shape: answer.py:shape: 2 is no shape"),
        "trouble": (
            "check error",
            "trouble: answer.py:trouble: KeyError: 'nothing' (answer.py:2)",
        ),
        "claim": ("wrong answer", "claim: answer.py:claim: want 9 (answer.py:3)"),
    }
    assert "energy: stdout:2: the value is 8.25" in place.seatrial("runs", "--format", "json").out


BROKEN: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"value": "(1)", "equals": "wnat"},
        ["verify[0].equals: 'wnat': wnat is not defined; did you mean 'want'?"],
    ),
    ({"value": "(1)", "equals": "word"}, ["verify[0].equals: 'word' gives 'blue', which is not"]),
    ({"value": "(1)", "equals": "1 +"}, ["verify[0].equals: '1 +' is not an expression"]),
    ({"value": "(1)", "at_least": "want / (edge - 2)"}, ["divides by zero, in the case broken{e"]),
    (
        {"value": "(1)", "at_least": "edge", "at_most": 1.5},
        ["verify[0].at_least: 2 is more than at_most, 1.5, in the case broken{"],
    ),
    ({"value": "(1)", "equals": 1, "tolerance": -1}, ["verify[0].tolerance: -1 is less than 0"]),
    ({"value": "(1)", "equals": 1, "relative": "-edge"}, ["relative: '-edge' is less than 0, in"]),
    ({"matches": "^energy $wnat"}, ["verify[0].matches: $wnat: wnat is not defined; did you"]),
    ({"python": "answer.py"}, ["verify[0].python: 'answer.py' does not name a function"]),
    ({"python": "no.py:no"}, ["verify[0].python: ", "no.py is missing"]),
]


@pytest.mark.parametrize(("check", "said"), BROKEN)
def test_faults_are_told_when_the_suite_is_loaded(
    tmp_path: Path, check: dict[str, Any], said: list[str]
) -> None:
    suite = Place(tmp_path)
    keys = {"edge": [2], "want": [8.5], "word": ["blue"]}
    suite.test("broken", verify=[check], parameters=keys)
    suite.test("alone")
    fault = suite.fault()
    assert fault.startswith("suite/broken/test.yaml:")
    for text in said:
        assert text in fault


@pytest.mark.parametrize(
    "parameters", [{"paramaters": {"edge": [1]}}, {"parameters": {"edge": {"of": 1}}}]
)
def test_names_are_checked_where_parameters_are_faulty(
    tmp_path: Path, parameters: dict[str, Any]
) -> None:
    suite = Place(tmp_path)
    bounds = ["teh", "2 * edge", "1 +"]
    checks = [{"value": "(1)", "at_most": bound} for bound in bounds]
    suite.test("broken", run={"nodes": "edge"}, verify=checks, **parameters)
    faults = "\n".join(suite.faults())
    assert "verify[0].at_most: 'teh': teh is not defined" in faults
    assert "verify[2].at_most: '1 +' is not an expression" in faults
    assert "verify[1]" not in faults and "edge is not" not in faults


def test_two_checks_of_one_name_are_a_fault(tmp_path: Path) -> None:
    suite = Place(tmp_path)
    suite.test("twice", verify=[{"name": "a", "contains": "b"}, {"name": "a", "contains": "c"}])
    assert "verify[1].name: 'a' is the name of verify[0] too" in suite.fault()


MACHINE = Machine(
    machine="frost",
    nodes=[
        NodeGroup(names="c[1-4]", cores=64),
        NodeGroup(names="g[1-2]", cores=32, gpus=4, features=["gpu"]),
    ],
    toolchains={"gcc": Toolchain()},
)


def test_names_are_those_of_the_nodes_that_the_test_can_use() -> None:
    names = names_of(a_test(), a_case(threads=7), MACHINE)
    assert (names["node.cores"], names["threads"], names["tasks"]) == (64, 7, 1)
    assert names["toolchain.name"] == "gcc"
    gpu = a_test(requires=Requires(features=["gpu"]))
    assert names_of(gpu, a_case(), MACHINE)["node.gpus"] == 4
    pinned = replace(a_case(), node="g2")
    assert names_of(a_test(), pinned, MACHINE)["node.cores"] == 32


def test_bounds_of_a_case() -> None:
    check = a_check(value="(x)", equals="want", tolerance="0.5 * nodes", relative=0.01)
    bounds = bounds_of(check, {"want": -100, "nodes": 2})
    assert (bounds.equals, bounds.allowed) == (-100.0, 2.0)
    with pytest.raises(ExpressionError, match="not a number"):
        bounds_of(check, {"want": True, "nodes": 2})


@pytest.mark.parametrize(
    ("pattern", "gives"),
    [
        ("^energy $want$", r"^energy 1\.5$"),
        ("${want}0 (x)$", r"1\.50 (x)$"),
        (r"\$want [$want] a$", r"\$want [$want] a$"),
        (r"[]$want] [^]$want]$want", r"[]$want] [^]$want]1\.5"),
        ("(a$|b$) $", "(a$|b$) $"),
        ("$word", "a\\(b"),
    ],
)
def test_parameters_in_a_pattern_are_literal(pattern: str, gives: str) -> None:
    assert pattern_of(pattern, {"want": 1.5, "word": "a(b"}) == gives


def test_a_pattern_without_a_value_is_an_error_of_the_check(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("x\n")
    finding = find_fault(a_check(matches="$lost"), tmp_path, 0, {})
    assert finding is not None
    assert finding.code.name == "check error"


def test_only_names_are_replaced_in_a_text() -> None:
    names = {"want": 1.5, "on": True}
    assert text_of("$want ${want}x $wanted $HOME $on $", names) == "1.5 1.5x $wanted $HOME true $"


def test_the_line_is_right_behind_a_group_that_looks_ahead(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("a\na\nb 1\n\nb 9\n")
    check = a_check(value=r"(?s)^a$(?=.*?b (\d))", equals=2.0)
    finding = find_fault(check, tmp_path, 0)
    assert finding is not None
    assert finding.text.startswith("stdout:3: the value is 1")
    later = find_fault(a_check(value=r"b (\d)", equals=1.0), tmp_path, 0)
    assert later is not None
    assert later.text.startswith("stdout:5: the value is 9")
