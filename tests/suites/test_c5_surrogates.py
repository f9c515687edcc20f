"""C5's plan with surrogates in place of its applications, on this host: both phases, for real."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.execute.plan.prepare import prepare_plan
from seatrial.plugins.rehearsal.report import rehearse_plan
from tests.programs import Workplace

ROOT = Path(__file__).parents[2]
APPLICATIONS = ["cm4", "esm4-small", "esm4-large", "spear", "shield", "ufs"]


def shortened(folder: Path) -> Path:
    """The plan as shipped, with shorter runs, and stability in phase two alone, for 8 seconds, with
    two starts a second: each run takes as much time of a core as there is."""
    plan: dict[str, Any] = yaml.safe_load((ROOT / "plans" / "c5-small.yaml").read_text())
    plan["suites"] = [str(ROOT / "suites" / "c5-surrogates")]
    plan["components"] = [c for c in plan["components"] if c["component"] != "stability-short"]
    for component in plan["components"]:
        if component.get("evidence"):
            component["evidence"][0]["document"] = str(
                ROOT / "plans" / component["evidence"][0]["document"]
            )
        if component["component"] == "functionality":
            component["suites"] = [str(ROOT / "suites" / "probes")]
            component["settings"]["entries"] = 10
        if component.get("kind") == "isolated_then_full":
            component["tests"] = {"cm4": {"alone": 2, "full": 2}}
        if component.get("kind") == "sustained":
            component["duration"] = "8s"
            component["settings"]["start"] = 7
            component["stagger"] = {"starts": 2, "per": "1s"}
            for test in component["tests"].values():
                test["io"] = "heavy"  # a stagger does not hold back light ones
        if component["component"] != "functionality" and "settings" in component:
            component["settings"]["faster"] = 80_000
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump(plan))
    return path


def test_the_whole_plan_runs_on_this_host(tmp_path: Path) -> None:
    plan = str(shortened(tmp_path))
    place = Workplace(tmp_path)
    done = place.seatrial("accept", plan, "-q", timeout=600)
    assert done.code == 0, done.said
    told = place.seatrial("accept", "status", plan, "--format", "json")
    trials = json.loads(told.out)["trials"]
    ran = {(each["component"], each["phase"]) for each in trials if each.get("parts")}
    assert {("functionality", "one"), ("performance", "two"), ("stability", "two")} <= ran
    for each in trials:
        if each["component"].startswith("stability"):
            accepted = {part["test"]: part["accepted"] for part in each["parts"]}
            assert all(accepted[test] >= 1 for test in APPLICATIONS), accepted


def test_the_shipped_plan_has_both_phases_and_all_components(tmp_path: Path) -> None:
    plan = prepare_plan(ROOT / "plans" / "c5.yaml", with_builds=False)
    assert [(part.component.component, part.phase, part.policy.nodes) for part in plan.parts] == [
        ("functionality", "one", 1792),
        ("performance", "one", 1792),
        ("stability-short", "one", 1792),
        ("functionality", "two", 1920),
        ("performance", "two", 1920),
        ("stability", "two", 1920),
    ]
    short, long = plan.parts[2].policy.duration, plan.parts[5].policy.duration
    assert short < long == 10 * 86400
    report = rehearse_plan(
        ROOT / "plans" / "c5.yaml", trials=tmp_path, store=tmp_path / "store.sqlite", days=1
    )
    assert not report.exit_code
    first, second = report.first[2], report.first[5]
    assert min(first.utilisation, second.utilisation) > 0.8


@pytest.mark.parametrize("test", [*APPLICATIONS, "minisweep", "genasis", "lsms"])
def test_a_surrogate_has_the_nodes_and_the_walltime_of_its_application(test: str) -> None:
    own = yaml.safe_load((ROOT / "suites" / "c5" / test / "test.yaml").read_text())
    stand_in = yaml.safe_load((ROOT / "suites/c5-surrogates" / test / "test.yaml").read_text())
    nodes = own["run"]["nodes"]
    assert stand_in["run"]["nodes"] == f"min(machine.nodes, ceil({nodes} / shrink))"
