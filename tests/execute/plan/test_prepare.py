"""A plan becomes trials: one for each component in each of its phases."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.errors import InvalidFiles, UsageError
from seatrial.execute.plan.component import chosen_tests, part_of
from seatrial.judge.references import Reference
from seatrial.model.moments import Moment
from seatrial.model.plan import Component, ComponentTest

from .helpers import HEAD, PlanPlace


def test_phase_by_phase_and_component_by_component(place: PlanPlace) -> None:
    place.write(
        "- {component: fun, tests: [small]}\n"
        "- {component: late, tests: [big/huge], phases: [two]}\n"
        "- {component: all, tests: [small, wide]}\n"
    )
    prepared = place.prepare()
    assert [part.tag for part in prepared.parts] == [
        "p-fun-one", "p-all-one", "p-fun-two", "p-late-two", "p-all-two"
    ]  # fmt: skip
    assert [part.phase for part in prepared.parts] == ["one", "one", "two", "two", "two"]
    assert [len(part.cases) for part in prepared.parts] == [1, 3, 1, 1, 3]
    assert prepared.path == place.plan
    assert prepared.parts[0].suites == [str(place.folder / "suite")]
    assert list(prepared.parts[1].tests) == ["small", "wide"]


def test_a_plan_without_phases_is_one(place: PlanPlace) -> None:
    head = "plan: p\nmachine: ./m.yaml\nsuites: [suite]\ncomponents:\n"
    place.write("- {component: c, tests: [small]}\n", head)
    (part,) = place.prepare().parts
    assert (part.tag, part.phase, part.machine) == ("p-c", "", place.prepare().site.machine)


def test_a_phase_has_its_own_nodes_alone(place: PlanPlace) -> None:
    place.machine(slurm={"nodelist": "n[2-7]"})
    place.test("each", {"scope": "each_node"})
    head = HEAD.replace("n[1-4]", "n[3-4,7]")
    place.write("- {component: c, tests: [each]}\n", head)
    one, two = place.prepare().parts
    assert [kind.names for kind in one.machine.nodes] == ["n[3-4]", "n7"]
    assert one.machine.slurm.nodelist == "n[3-4,7]"
    assert [case.node for case in one.cases] == ["n3", "n4", "n7"]
    assert (one.policy.nodes, two.policy.nodes) == (3, 8)
    only = HEAD.replace("n[1-4]", "n8")
    place.write("- {component: c, tests: [small], phases: [one]}\n", only)
    (part,) = place.prepare().parts
    assert [kind.names for kind in part.machine.nodes] == ["n8"]


def test_cases_that_a_phase_is_too_small_for_come_in_a_later_one(place: PlanPlace) -> None:
    place.write("- {component: c, tests: [big/swept]}\n")
    one, two = place.prepare().parts
    assert [case.nodes for case in one.cases] == [2, 4]
    assert one.skipped == [("big/swept{n=8}@gcc", "needs 8 nodes; there are 4")]
    assert [case.nodes for case in two.cases] == [2, 4, 8]


def test_of_all_tests_those_run_that_can(place: PlanPlace) -> None:
    place.write("- {component: c, phases: [one]}\n")
    (part,) = place.prepare().parts
    assert list(part.tests) == ["big/swept", "small", "wide"]
    assert ("big/huge@gcc", "needs 6 nodes; there are 4") in part.skipped


def test_the_filters_are_those_of_a_run(place: PlanPlace) -> None:
    place.test("built", {}, build={"script": "true"})
    place.write(
        "- {component: a, tests: [wide], settings: {size: [7, 8]}, select: size=8, repeat: 5}\n"
        "- {component: b, tests: [built]}\n"
        "- {component: d, tests: [built], toolchains: ['*']}\n"
    )
    first, second, third = place.prepare(phases=["two"]).parts
    assert [(case.parameters, case.repeat) for case in first.cases] == [({"size": 8}, 5)]
    assert [case.toolchain for case in second.cases] == ["gcc"]
    assert [case.toolchain for case in third.cases] == ["gcc", "clang"]
    assert all(case.build for case in third.cases)
    plain = place.prepare(phases=["two"], with_builds=False)
    assert not any(case.build for part in plain.parts for case in part.cases)


def test_what_is_asked_for_alone(place: PlanPlace) -> None:
    place.write("- {component: a, tests: [small]}\n- {component: b, tests: [small]}\n")
    tags = [part.tag for part in place.prepare(components=["b"], phases=["one"]).parts]
    assert tags == ["p-b-one"]
    with pytest.raises(UsageError, match="p has no component 'x'; it has a, b"):
        place.prepare(components=["x"])
    with pytest.raises(UsageError, match="p has no phase 'x'; it has one, two"):
        place.prepare(phases=["x"])


def test_a_component_may_rest_on_evidence_alone(place: PlanPlace) -> None:
    document = b"signed"
    (place.folder / "report.pdf").write_bytes(document)
    digest = hashlib.sha256(document).hexdigest().upper()
    evidence = f"{{document: report.pdf, sha256: {digest}, signed_by: A, signed_on: 2026-05-01}}"
    place.write(f"- {{component: vendor, evidence: [{evidence}]}}\n")
    assert place.prepare().parts == []
    place.write(f"- {{component: vendor, tests: [small], evidence: [{evidence}]}}\n")
    assert len(place.prepare().parts) == 2


def test_a_component_may_have_suites_of_its_own(place: PlanPlace) -> None:
    place.write("- {component: c, suites: [suite/big, suite/small], phases: [two]}\n")
    (part,) = place.prepare().parts
    assert list(part.tests) == ["huge", "swept", "small"]


def test_a_machine_by_name_is_looked_for_in_the_working_directory(
    place: PlanPlace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere/machines"
    elsewhere.mkdir(parents=True)
    (place.folder / "m.yaml").rename(elsewhere / "m.yaml")
    monkeypatch.chdir(elsewhere.parent)
    place.write("- {component: c, tests: [small]}\n", HEAD.replace("./m.yaml", "m"))
    assert place.prepare().site.references == Path("machines/m/references.yaml")


def test_the_references_of_the_machine_are_kept(place: PlanPlace) -> None:
    text = "references:\n  - {test: small, metric: rate, unit: 1/s, value: 3}\n"
    (place.folder / "m").mkdir()
    (place.folder / "m/references.yaml").write_text(text)
    place.write("- {component: c, tests: [small]}\n")
    reference = Reference(test="small", metric="rate", unit="1/s", value=3.0)
    assert place.prepare().expected == [reference]


def test_a_tests_own_name_goes_before_patterns_and_of_these_the_first() -> None:
    parts = {
        "a*": ComponentTest(max_runs=1),
        "*": ComponentTest(max_runs=2),
        "ab": ComponentTest(max_runs=3),
    }
    component = Component(component="c", tests=parts)
    found = {name: part_of(component, name) for name in ("ab", "ax", "x")}
    assert {name: part.max_runs for name, part in found.items() if part} == {
        "ab": 3,
        "ax": 1,
        "x": 2,
    }
    listed = Component(component="c", tests=["b*"])
    assert chosen_tests(listed, ["a", "b", "bc"]) == ["b", "bc"]
    assert part_of(listed, "b") == ComponentTest()
    assert part_of(listed, "a") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (0, (0, False)),
        ("0d", (0, False)),
        (90, (90, False)),
        ("2d", (172800, False)),
        ("1-12", (129600, False)),
        ("1970-01-01T00:01Z", (60, True)),
        ("1970-01-01 01:01:00+01:00", (60, True)),
    ],
)
def test_moments(text: str | int, expected: tuple[int, bool]) -> None:
    moment = Moment(text)
    assert (moment.seconds, moment.absolute) == expected


@pytest.mark.parametrize("make", [lambda: Moment("2026-05-01"), lambda: Moment(True)])
def test_what_is_no_moment(make: Callable[[], Moment]) -> None:
    with pytest.raises(ValueError, match="; write "):
        make()


CPU = {"names": "c[1-4]", "cores": 8}
GPU = {"names": "g[1-2]", "cores": 16, "gpus": 2, "partition": "gpu"}


def places(place: PlanPlace, run: dict[str, object], component: str, phase: str = "") -> object:
    """Partition, tasks and options of the cases of a component, or why there are none."""
    parameters = {"where": ["gpu"]} if "{" in str(run.get("partition")) else {}
    place.test("one", {"tasks_per_node": "node.cores", **run}, parameters=parameters)
    phases = f"phases:\n- {{phase: one, slurm: {phase}}}\n" if phase else ""
    place.write(
        f"- {{component: c, select: one, {component}}}\n",
        f"plan: p\nmachine: ./m.yaml\nsuites: [suite]\n{phases}components:\n",
    )
    try:
        (part,) = place.prepare().parts
    except InvalidFiles as error:
        return next(text for text in error.faults if "no case" in text)
    found = {(case.job.partition, case.tasks, case.job.options) for case in part.cases}
    return found.pop() if len(found) == 1 else found


@pytest.mark.parametrize(
    ("run", "said", "expected"),
    [
        ({}, "gpu", ("gpu", 16, ("-x",))),
        ({"nodes": 3}, "gpu", "needs 3 nodes in the partition gpu; there are 2"),
        ({"gpus_per_node": 1}, "batch",
         "needs 1 node with 1 GPU in the partition batch; there are 0"),
        ({"partition": "gpu", "nodes": 4}, "batch", ("batch", 32, ("-x",))),
        ({"partition": "{where}", "nodes": 4}, "batch", ("batch", 32, ("-x",))),
        ({"nodes": 6}, "debug", ("debug", 48, ("-x",))),
        ({"nodes": 6}, "''", ("", 48, ("-x",))),
    ],
)  # fmt: skip
def test_nodes_are_counted_in_the_partition_of_the_component(
    place: PlanPlace, run: dict[str, object], said: str, expected: object
) -> None:
    place.machine(nodes=[CPU, GPU], slurm={"partition": "batch"})
    outcome = places(place, run, f"slurm: {{partition: {said}, options: [-x]}}")
    assert expected == outcome or (isinstance(expected, str) and expected in str(outcome))


@pytest.mark.parametrize("own", [{"partition": "batch"}, {}])
@pytest.mark.parametrize("names_all", [False, True])
@pytest.mark.parametrize(
    ("run", "component", "said", "expected"),
    [
        ({}, "", "gpu", ("gpu", 16, ())),
        ({"nodes": 3}, "", "gpu", "needs 3 nodes in the partition gpu; there are 2"),
        ({"nodes": 6}, "", "debug", ("debug", 48, ())),
        ({"partition": "gpu"}, "", "debug", ("gpu", 16, ())),
        ({}, "slurm: {partition: debug}", "gpu", ("debug", 8, ())),
        ({"gpus_per_node": 1}, "", "gpu", ("gpu", 16, ())),
        ({"scope": "each_node"}, "", "gpu", ("gpu", 16, ())),
    ],
)
def test_nodes_are_counted_in_the_partition_of_the_phase(
    place: PlanPlace,
    run: dict[str, object],
    component: str,
    said: str,
    expected: object,
    names_all: bool,
    own: dict[str, str],
) -> None:
    cpu = {**CPU, "partition": "batch"} if names_all else CPU
    place.machine(nodes=[cpu, GPU], slurm=own)
    outcome = places(place, run, component, f"{{partition: {said}}}")
    assert expected == outcome or (isinstance(expected, str) and expected in str(outcome))
    if not isinstance(expected, str):
        (part,) = place.prepare().parts
        assert part.machine.slurm.partition == said


def test_a_phase_of_a_machine_that_names_no_partitions_changes_no_case(place: PlanPlace) -> None:
    place.machine(nodes=[CPU])
    assert places(place, {}, "", "{partition: gpu}") == (None, 8, ())
