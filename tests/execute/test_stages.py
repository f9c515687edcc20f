"""Runs alone and runs at full machine, as people meet them: never in one figure.

A performance test on this host: three runs alone print a speed of 100, those at full machine one of
80.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.journal.events import RunJudged, RunSubmitted
from tests.execute.plans import accept, control
from tests.programs import Workplace

TAG = "p-speed"
ALONE, FULL = 3, 2  # runs alone, and waves at full machine


def performance_test(place: Workplace, criteria: list[dict[str, Any]], **keys: Any) -> None:
    """A test whose first runs, those alone, are faster, and a plan ``p`` with the component
    ``speed``."""
    place.local(cores=2)
    place.test(
        "a",
        f'[ "$(wc -l < {place.log})" -le {ALONE} ] && v=100 || v=80\necho "speed $v"',
        run={"walltime": "5s"},
        metrics={"speed": {"find": "speed (.*)", "unit": "GB/s", "better": "higher"}},
        **keys,
    )
    component = {
        "component": "speed",
        "kind": "isolated_then_full",
        "tests": {"a": {"alone": ALONE, "full": FULL}},
        "criteria": criteria,
    }
    plan = {"plan": "p", "machine": "machine.yaml", "suites": ["suite"], "components": [component]}
    (place.folder / "plan.yaml").write_text(yaml.safe_dump(plan))


def stages_of(place: Workplace) -> dict[str, str]:
    """The stage of each run, by the journal."""
    return {event.run_id: event.stage for event in place.events(TAG, RunSubmitted)}


def judged(place: Workplace) -> list[dict[str, Any]]:
    """The first result of each criterion that the plan names."""
    shown = control(place, "status", "--format", "json")
    (one,) = json.loads(shown.out)["trials"]
    firsts = [results[0] for results in one["criteria"]]
    return [first for first in firsts if first["criterion"] != "every_test"]


def references_file(place: Workplace) -> Path:
    return place.folder / "here" / "references.yaml"


def reference(place: Workplace, **keys: Any) -> Path:
    path = references_file(place)
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump({"references": [{"test": "a", **keys}]}))
    return path


def test_a_figure_of_merit_is_of_runs_alone_unless_the_plan_says_otherwise(
    place: Workplace,
) -> None:
    about = {"criterion": "figure_of_merit", "metric": "speed", "at_least": 95}
    performance_test(place, [about, {**about, "stage": "full"}])
    done = accept(place)
    assert done.code == 1, done.said
    full = len(place.events(TAG, RunJudged)) - ALONE
    assert full >= FULL
    alone_result, full_result = judged(place)
    assert (alone_result["state"], alone_result["value"], alone_result["n"]) == ("met", 100, ALONE)
    assert (full_result["state"], full_result["value"], full_result["n"]) == ("not met", 80, full)


def test_a_series_is_of_one_stage(place: Workplace) -> None:
    performance_test(place, [])
    accept(place)
    stages = stages_of(place)
    shown = place.seatrial("history", "speed", "--format", "json")
    found = {one["stage"]: one for one in json.loads(shown.out)}
    assert set(found) == {"alone", "full"}
    for stage, one in found.items():
        assert {point["run"] for point in one["points"]} == {
            run for run, of in stages.items() if of == stage
        }
    rows = list(
        csv.DictReader(place.seatrial("history", "speed", "--format", "csv").out.splitlines())
    )
    assert {(row["stage"], float(row["value"])) for row in rows} == {("alone", 100), ("full", 80)}
    asked = place.seatrial("history", "speed", "--stage", "full", "--format", "json")
    assert [one["stage"] for one in json.loads(asked.out)] == ["full"]
    table = place.seatrial("history", "speed").out
    assert "a@plain [alone]" in table
    assert "a@plain [full]" in table


def test_a_table_of_variability_is_of_one_stage(place: Workplace) -> None:
    performance_test(place, [])
    accept(place)
    full = len(stages_of(place)) - ALONE
    found = json.loads(place.seatrial("variability", TAG, "--json").out)["table"]
    rows = {(row["case"], row["metric"]): row for row in found}
    for stage, value, n in (("alone", 100, ALONE), ("full", 80, full)):
        row = rows[f"a@plain [{stage}]", "speed"]
        assert (row["mean"], row["n"], row["deviation"]) == (value, n, 0)


@pytest.mark.parametrize(("stage", "value"), [("alone", 100), ("full", 80)])
def test_references_are_learned_from_one_stage(place: Workplace, stage: str, value: float) -> None:
    performance_test(place, [])
    accept(place)
    path = references_file(place)
    words = () if stage == "alone" else ("--stage", "full")
    done = place.seatrial("reference", "accept", TAG, *words)
    assert done.code == 0, done.said
    (one,) = yaml.safe_load(path.read_text())["references"]
    runs = sum(of == stage for of in stages_of(place).values())
    assert (one["value"], one["learned"]["runs"]) == (value, runs)
    assert one.get("stage", "alone") == stage


def test_a_reference_judges_runs_of_its_stage_alone(place: Workplace) -> None:
    performance_test(place, [])
    reference(place, metric="speed", unit="GB/s", value=100)
    accept(place)
    stages = stages_of(place)
    verdicts = {stages[e.run_id]: e.verdict for e in place.events(TAG, RunJudged)}
    assert verdicts == {"alone": "pass", "full": "pass"}


def test_a_reference_at_full_machine_judges_runs_at_full_machine(place: Workplace) -> None:
    performance_test(place, [])
    reference(place, metric="speed", unit="GB/s", value=110, stage="full")
    accept(place)
    stages = stages_of(place)
    verdicts = {stages[e.run_id]: e.verdict for e in place.events(TAG, RunJudged)}
    assert verdicts == {"alone": "pass", "full": "performance"}


def test_a_test_that_is_never_right_at_full_machine_is_not_met(place: Workplace) -> None:
    performance_test(place, [{"criterion": "figure_of_merit", "metric": "speed", "at_least": 95}])
    test = place.suite / "a" / "test.yaml"
    text = test.read_text()
    found = yaml.safe_load(text)
    found["run"]["script"] += "\n[ $v = 100 ]"
    test.write_text(yaml.safe_dump(found))
    done = accept(place)
    assert done.code == 1, done.said
    (one,) = json.loads(control(place, "status", "--format", "json").out)["trials"]
    assert [each[0]["state"] for each in one["criteria"]] == ["met", "not met"]
    assert "never gave a right answer at full machine: 4 failed" in one["criteria"][1][0]["why"]
