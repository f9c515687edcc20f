"""The criterion `network`: what a matrix shows decides, through `seatrial accept` and from
events."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml

from seatrial.journal.events import MetricRecorded
from tests.plugins.network.test_matrices import pairs_text
from tests.programs import Workplace

from .counted_findings import latest_of_three_cases, one_more_is_the_worst

NAMES = [f"n{i:03}:{i}" for i in range(24)]


def rates() -> np.ndarray:
    rng = np.random.default_rng(7)
    found = rng.normal(9000, 90, (24, 24))
    np.fill_diagonal(found, 0)
    return found


def accept(
    place: Workplace, matrix: str, at_most: int = 0, sizes: tuple[int, ...] = (1,)
) -> tuple[int, dict[str, object]]:
    """The first of some sizes leaves the matrix."""
    (place.folder / "matrix").write_text(matrix)
    script = f"[ $size != 1 ] || cp {place.folder}/matrix pairs.matrix"
    place.test("pairs", script, parameters={"size": list(sizes)})
    place.test("quiet", "echo nothing")
    criteria = [{"criterion": "network", "at_most": at_most}]
    components = [{"component": "ft", "tests": ["*"], "criteria": criteria}]
    plan = {"plan": "p", "machine": "machine.yaml", "suites": ["suite"], "components": components}
    (place.folder / "plan.yaml").write_text(yaml.safe_dump(plan))
    code = place.seatrial("accept", "plan.yaml", "-q").code
    shown = place.seatrial("accept", "status", "plan.yaml", "--format", "json")
    result: dict[str, object] = json.loads(shown.out)["trials"][0]["criteria"][0][0]
    return code, result


def test_a_sound_network_meets_it(place: Workplace) -> None:
    code, result = accept(place, pairs_text(rates(), NAMES))
    assert (code, result["state"], result["value"], result["n"]) == (0, "met", 0, 1)
    found = {event.metric: event.value for event in place.events("p-ft", MetricRecorded)}
    assert found["network_findings"] == 0 and len(found) == 7


def test_findings_are_counted_and_named(place: Workplace) -> None:
    bad = rates()
    bad[9, 14] *= 0.6
    bad[:, 5] *= 0.85
    bad[2, 3] = 0
    bad[20, :] = bad[:, 20] = 0
    code, result = accept(place, pairs_text(bad, NAMES))
    assert (code, result["state"], result["value"]) == (1, "not met", 4)
    assert result["why"] == (
        "1 silent node, 1 mute pair, 1 slow node, 1 slow link in the latest of 1 run"
    )
    assert "talk with nobody: n020" in place.seatrial("network", "p-ft").out
    shown = place.seatrial("accept", "status", "plan.yaml").out
    assert "4 findings" in shown and "at most 0 findings" in shown


@pytest.mark.parametrize("matrix", ["", "Recv\ta:0\t\n"])
def test_without_a_whole_matrix_it_is_undecided(place: Workplace, matrix: str) -> None:
    code, result = accept(place, matrix)
    assert (code, result["state"], result["value"]) == (3, "undecided", None)
    assert "left a matrix" in str(result["why"])


def test_a_case_that_left_no_matrix_is_undecided(place: Workplace) -> None:
    code, result = accept(place, pairs_text(rates(), NAMES), sizes=(1, 2))
    assert (code, result["state"]) == (3, "undecided")


# ---- from events --------------------------------------------------------------------------------


def test_the_latest_matrix_of_each_case_counts() -> None:
    found = {"network_findings": 3.0, "network_slow_links": 1.0, "network_slow_nodes": 2.0}
    none = dict.fromkeys([*found, "network_mute_pairs"], 0.0)
    story, _, first, second = latest_of_three_cases("network", none, found, others=none)
    assert [one.subject for one in (first, second)] == [case.name for case in story.cases[:2]]
    assert first.numbers == {"mute pairs": 0, "slow nodes": 0, "slow links": 0}
    assert second.reason.endswith("; 2 slow nodes, 1 slow link in the latest of 2 runs")


def test_of_networks_that_differ_by_one_finding_the_one_with_more_is_the_worst() -> None:
    one_more_is_the_worst("network", "network_findings")
