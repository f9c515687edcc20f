"""Matrices are judged where the component has the criterion, and of right answers alone."""

from __future__ import annotations

import yaml

from seatrial.journal.events import MetricRecorded
from tests.programs import Workplace

from .test_matrices import pairs_text
from .test_network_findings import NAMES, between_groups


def figures(place: Workplace, tag: str) -> dict[str, dict[str, object]]:
    """The figures of each test of a trial."""
    found: dict[str, dict[str, object]] = {}
    for event in place.events(tag, MetricRecorded):
        found.setdefault(event.test, {})[event.metric] = event.value
    return found


def test_only_right_runs_of_a_component_that_asks_have_findings(place: Workplace) -> None:
    for name, script in (("right", "true"), ("wrong", "false")):
        folder = place.test(name, f'cp "$SEATRIAL_TEST/pairs.matrix" .; {script}')
        (folder / "pairs.matrix").write_text(pairs_text(between_groups(0.5), NAMES))
    asks = [{"criterion": "network", "at_most": 100}]
    components = [{"component": "asks", "kind": "once", "criteria": asks}]
    components.append({"component": "plain", "kind": "once"})
    plan = {"plan": "p", "machine": str(place.machine), "suites": ["suite"]}
    (place.folder / "plan.yaml").write_text(yaml.safe_dump({**plan, "components": components}))
    place.seatrial("accept", "plan.yaml", "-q")
    recorded = figures(place, "p-asks")
    assert list(recorded) == ["right"]
    assert recorded["right"]["network_findings"] == 0
    assert figures(place, "p-plain") == {}
