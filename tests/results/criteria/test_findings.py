"""The criterion `findings`: what was found on nodes decides, through `seatrial accept` and from
events."""

from __future__ import annotations

import json

import yaml

from seatrial.journal.events import MetricRecorded, TrialEnded
from seatrial.model.policy import Entry, Policy
from tests.programs import Workplace
from tests.results.stories import Story, cases_of

from .counted_findings import latest_of_three_cases, one_more_is_the_worst


def accept(place: Workplace, at_most: int = 0) -> tuple[int, dict[str, object]]:
    criteria = [{"criterion": "findings", "at_most": at_most}]
    components = [{"component": "ft", "tests": ["*"], "criteria": criteria}]
    plan = {"plan": "p", "machine": "machine.yaml", "suites": ["suite"], "components": components}
    (place.folder / "plan.yaml").write_text(yaml.safe_dump(plan))
    code = place.seatrial("accept", "plan.yaml", "-q").code
    shown = place.seatrial("accept", "status", "plan.yaml", "--format", "json")
    result: dict[str, object] = json.loads(shown.out)["trials"][0]["criteria"][0][0]
    return code, result


def nodecheck(place: Workplace, *lines: str) -> None:
    (place.folder / "check").write_text("".join(f"{line}\n" for line in lines))
    script = f"cp {place.folder}/check nodecheck.txt"
    place.test("nodes", script, verify=[{"exit_code": 0}, {"file": "nodecheck.txt"}])
    place.test("quiet", "echo nothing")


def test_nodes_without_findings_meet_it(place: Workplace) -> None:
    nodecheck(place, "n1 ok", "n2 ok", "# a comment")
    code, result = accept(place)
    assert (code, result["state"], result["value"], result["n"]) == (0, "met", 0, 1)


def test_each_finding_on_each_node_counts(place: Workplace) -> None:
    nodecheck(place, "n1 ok", "n2 FAILED memory 251 GiB of 256", "n3 FAILED memory", "n2\tFAILED")
    code, result = accept(place, at_most=2)
    assert (code, result["state"], result["value"]) == (1, "not met", 3)
    assert result["why"] == "memory on 2 nodes, check on 1 node in the latest of 1 run"
    found = {event.metric: event.value for event in place.events("p-ft", MetricRecorded)}
    assert found == {
        "findings": 3,
        "findings_of_check": 1,
        "findings_of_memory": 2,
        "failed_node{node=n2}": 2,
        "failed_node{node=n3}": 1,
    }


def test_without_a_line_about_a_node_it_is_undecided(place: Workplace) -> None:
    nodecheck(place, "nothing is known")
    code, result = accept(place)
    assert (code, result["state"]) == (3, "undecided")


def test_facts_are_judged_by_the_rules_that_ship_and_by_those_of_the_site(
    place: Workplace,
) -> None:
    done = place.seatrial("facts", "suite", "suite")
    assert done.code == 0, done.said
    assert place.seatrial("facts", "suite", "suite").code == 2
    node = place.suite / "node.sh"
    last = "printf -v out '%s"
    assert last in node.read_text()
    narrow = f"fact pci.narrow 0000:3b:00.0\n{last}"
    node.write_text(node.read_text().replace(last, narrow))
    text = (place.suite / "nodes" / "test.yaml").read_text()
    for other in ("hosts", "each_node"):
        (place.suite / other / "test.yaml").unlink()
    assert "facts.txt" in text
    code, result = accept(place)
    assert code == 1 and result["state"] == "not met", result
    assert "pcie-width on 1 node" in str(result["why"])
    (place.folder / "rules").mkdir()
    own = place.folder / "rules" / "own.yaml"
    own.write_text("waivers: [{rules: ['*'], reason: }]\n")
    done = place.run("--name", "t1")
    left_out = "t1: own.yaml: left out: rules/own.yaml:1: reason: "
    assert done.code == 0 and left_out in done.err, done.said
    site = "{name: ours, about: a., source: s, do: d., holds: 'pci.narrow == \"none\"'}"
    own.write_text(f"rules: [{site}]\nwaivers: [{{rules: ['[!o]*'], reason: r}}]\n")
    assert place.run("--name", "t2").code == 0
    found = {event.metric: event.value for event in place.events("t2", MetricRecorded)}
    assert found["findings"] == found["findings_of_ours"] == 1


# ---- from events --------------------------------------------------------------------------------


def test_the_latest_right_run_of_each_case_counts() -> None:
    memory, clock = "findings_of_memory", "findings_of_clock"
    found = {"findings": 3.0, clock: 1.0, memory: 2.0}
    others = {"findings": 5.0, memory: 5.0}
    _, whole, _, second = latest_of_three_cases("findings", {"findings": 0}, found, others)
    assert (whole.numbers["worst"], second.numbers) == (second.subject, {"memory": 2, "clock": 1})
    assert second.reason.endswith("; memory on 2 nodes, clock on 1 node in the latest of 2 runs")


def test_of_cases_that_differ_by_one_finding_the_one_with_more_is_the_worst() -> None:
    one_more_is_the_worst("findings", "findings")


def test_a_stage_without_runs_is_not_asked_for_findings() -> None:
    cases = cases_of(1)
    policy = Policy(kind="isolated_then_full", entries=[Entry(name="a")], entry_of=[0])
    story = Story(cases, policy)
    story.run(0, 0, 1, stage="full", figures={"findings": 0})
    story.tell(5, TrialEnded, failed=0)
    (found,) = story.judged("findings", at_most=0, tests=["a"])
    assert (found.state, found.subject) == ("met", f"{cases[0].name} [full]")
