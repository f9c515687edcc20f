"""An impossible plan is refused before anything starts: every fault at its line, all at once."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from seatrial.errors import UsageError
from seatrial.execute.plan.prepare import prepare_plan

from .broken import BROKEN, SUSTAINED
from .helpers import HEAD, PlanPlace


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_impossible_is_told_at_its_line(place: PlanPlace, name: str) -> None:
    written, expected = BROKEN[name]
    digest = hashlib.sha256((place.folder / "m.yaml").read_bytes()).hexdigest()
    (place.folder / "suite/big/swept/large").write_bytes(bytes(1500))
    place.write(written.replace("DIGEST", digest))
    told = [f"plan.yaml:{text}".replace("DIGEST", digest) for text in expected]
    assert sorted(place.faults()) == sorted(told)


@pytest.mark.parametrize("name", BROKEN)
def test_each_line_that_is_named_is_about_its_key(name: str) -> None:
    written, expected = BROKEN[name]
    lines = (HEAD + written).splitlines()
    for text in expected:
        number, key, _ = text.split(": ", 2)
        last = re.split(r"[.\[]", key.partition(" ")[0])[-1]
        line = lines[int(number) - 1]
        absent = last.endswith("]") or last in ("component", "duration") or "needs it" in text
        assert absent or re.search(rf"\b{last}\b", line), text


def test_all_faults_at_once(place: PlanPlace) -> None:
    """In the plan, its machine, its suites and the machine's references."""
    place.machine(file_systems={"scratch": {"path": "scratch"}})
    place.test("small", {"nodes": "cores"})
    place.write("- {component: c, tests: [gone, small], phases: [three]}\n")
    assert [text.partition(": ")[0] for text in place.faults()] == [
        "m.yaml:15",
        "plan.yaml:8",
        "plan.yaml:8",
        "suite/small/test.yaml:4",
    ]


def test_faults_of_the_references_are_told_with_the_others(place: PlanPlace) -> None:
    (place.folder / "m").mkdir()
    (place.folder / "m/references.yaml").write_text("references: 1\n")
    place.write("- {component: c, tests: [gone]}\n")
    first, second = place.faults()
    assert first.startswith("plan.yaml:8: ")
    assert second == "m/references.yaml:1: references: 1 is not a list; write [1]"


def test_tags_of_two_components_must_differ(place: PlanPlace) -> None:
    head = HEAD.replace("phase: two", "phase: b-two").replace("phase: one", "phase: two")
    place.write("- {component: c, tests: [small]}\n- {component: c-b, tests: [small]}\n", head)
    text = "plan.yaml:9: components[1].component: has the run tag of c, p-c-b-two; rename one"
    assert place.faults() == [text]


def test_what_a_broken_test_brings_about_is_not_told(place: PlanPlace) -> None:
    place.test("small", {"nodes": "cores"})
    place.write("- {component: c, tests: {small: {most: 2}}}\n")
    (text,) = place.faults()
    assert text.startswith("suite/small/test.yaml:4: run.nodes: 'cores': ")


def test_what_a_key_that_cannot_be_read_brings_about_is_not_told(place: PlanPlace) -> None:
    written = SUSTAINED + "  duration: [1d]\n  tests: {small: {most: few}}\n"
    place.write(written)
    assert place.faults() == [
        "plan.yaml:11: components[0].duration: a list is not a whole number or a number or text "
        "or empty",
        "plan.yaml:12: components[0].tests.small.most: 'few' is not a whole number or empty",
    ]


@pytest.mark.parametrize(
    ("machine", "fault"),
    [
        (
            "nowhere",
            "plan.yaml:2: machine: no machine 'nowhere': there is no machines/nowhere.yaml",
        ),
        ("./no.yaml", "plan.yaml:2: machine: no.yaml: no such file; name a machine's description"),
    ],
)
def test_a_machine_that_is_not_there(place: PlanPlace, machine: str, fault: str) -> None:
    place.write("- {component: c, tests: [small]}\n", HEAD.replace("./m.yaml", machine))
    (text,) = place.faults()
    assert text.startswith(fault)


def test_what_does_not_fit_a_phase_is_told_beside_another_fault_of_it(place: PlanPlace) -> None:
    head = HEAD.replace('"n[1-4]"', '"n[1-4]", abuot: x')
    place.write("- {component: c, tests: [big/huge], phases: [one]}\n", head)
    assert place.faults() == [
        "plan.yaml:5: phases[0].abuot: is not a key here; did you mean 'about'?",
        "plan.yaml:8: components[0].tests[0]: big/huge needs 6 nodes; there are 4 in phase one",
    ]


def test_phases_whose_nodes_are_none(place: PlanPlace) -> None:
    head = HEAD.replace("n[1-4]", "n[1-9]").replace("phase: two", "phase: two, nodes: 'n['")
    head = head.replace("- phase: two, nodes: 'n['", "- {phase: two, nodes: 'n['}")
    place.write("- {component: c, tests: [small]}\n", head)
    first, second = place.faults()
    assert first == "plan.yaml:5: phases[0].nodes: n9 is not a node of m"
    assert second.startswith("plan.yaml:6: phases[1].nodes: 'n[' is not a node set: ")


def test_components_without_any_suite(place: PlanPlace) -> None:
    place.write("- {component: c, tests: [small]}\n", HEAD.replace("suites: [suite]", ""))
    text = "plan.yaml:8: components[0].component: has no suites; give suites to it, or to the plan"
    assert place.faults() == [text]


def test_who_says_so_may_load_a_target_beyond_what_is_safe(place: PlanPlace) -> None:
    place.write(
        SUSTAINED + "  duration: 1d\n  file_system: scratch\n  caps: {safe_load: false}\n"
        "  tests: {small: {copies: 3, opens: 170}}\n"
    )
    assert place.prepare().parts


@pytest.mark.parametrize(
    "keys",
    [
        "  file_system: scratch\n  tests: {small: {copies: 2, opens: 100}}\n",
        "  tests: {small: {copies: 6, file_system: scratch}}\n",
        "  tests: {wide: {share: 50%}, small: {share: 50%}}\n",
        "  tests: {small: {}}\n  criteria: [{criterion: mtbf, at_least: 1d, at_most: 24h}]\n",
    ],
)
def test_what_reaches_a_limit_is_within_it(place: PlanPlace, keys: str) -> None:
    place.write(f"{SUSTAINED}  duration: 1d\n{keys}")
    assert place.prepare().parts


def test_a_plan_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"plan\.yaml: no such file; name a plan"):
        prepare_plan(tmp_path / "plan.yaml")
    with pytest.raises(
        UsageError, match=r"is a folder; name the plan's file, such as .*/plan\.yaml"
    ):
        prepare_plan(tmp_path)


@pytest.mark.parametrize(
    ("metrics", "fault"),
    [
        (
            {"from": "stream"},
            "no test here has the metric 'speed'; there are add, copy, elapsed, scale, triad",
        ),
        ({"python": "figures.py:read"}, ""),
    ],
)
def test_metrics_of_parsers_are_known_and_those_of_functions_not(
    place: PlanPlace, metrics: dict[str, str], fault: str
) -> None:
    folder = place.test("measured", {}, metrics=metrics)
    (folder / "figures.py").write_text("def read(path): ...\n")
    criterion = "{criterion: figure_of_merit, metric: speed}"
    place.write(f"- {{component: c, tests: [measured], criteria: [{criterion}]}}\n")
    if fault:
        assert place.faults() == [f"plan.yaml:8: components[0].criteria[0].metric: {fault}"]
    else:
        assert place.prepare().parts
