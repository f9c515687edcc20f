"""Whatever a person writes in a plan, the answer is a plan or faults with their places."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.errors import InvalidFiles
from seatrial.execute.plan.prepare import prepare_plan

from .helpers import PlanPlace

WHOLE: dict[str, Any] = {
    "plan": "p",
    "machine": "./m.yaml",
    "suites": ["suite"],
    "phases": [{"phase": "one", "nodes": "n[1-4]"}, {"phase": "two"}],
    "outages": [{"from": "1h", "to": "2h", "nodes": "n1"}],
    "alerts": {"command": "true", "at_most": 2, "per": "1h", "timeout": "5s"},
    "rehearsal": {
        "assumed": ["much"],
        "tests": {"small": {"elapsed": {"mean": 3, "sd": 1}, "figures": {"rate": {"mean": 1}}}},
    },
    "components": [
        {
            "component": "c",
            "kind": "sustained",
            "phases": ["two"],
            "duration": "1d",
            "reserve": 3,
            "file_system": "scratch",
            "targets": ["mdt0"],
            "tests": {
                "small": {"copies": 1, "opens": 5, "deck": {"source": "test.yaml", "name": "in"}},
                "wide": {"share": "20%", "retry": {"answers": {"hung": "again"}}, "quiet_for": 60},
                "big/*": {"weight": 2, "most": 3},
            },
            "settings": {"size": [3, 4]},
            "caps": {"machine": 9, "per_target": 5},
            "stagger": {"starts": 2, "per": "1m"},
            "throttles": [{"gauge": "load", "high": 5, "low": 3}],
            "blackouts": [{"from": 0, "to": "2026-05-01T08:00Z", "tests": ["small"]}],
            "exclude": {"most": "5%", "causes": ["hung"]},
            "watch": {"short_for": 0, "again": "1h"},
            "criteria": [{"criterion": "pass_rate", "at_least": "9%", "tests": ["wide"]}],
            "evidence": [
                {"document": "m.yaml", "sha256": "0", "signed_by": "A", "signed_on": "2026-05-01"}
            ],
            "waivers": [{"reason": "r", "by": "A", "on": "2026-05-01", "criteria": ["pass_rate"]}],
        },
        {"component": "d", "tests": ["small", "wide"], "select": "small or wide", "repeat": 2},
    ],
}
ODD: list[Any] = [
    None, "", "x", -1, 0, 1, 1e300, "0%", "999%", True, [], {}, ["x"], {"x": 1}, "n[", "*", "a\0b",
    "2026-05-01T08:00Z", "small", "x" * 300,
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of everything inside a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in inner:
        yield (*path, key)
        if isinstance(each, dict | list):
            yield from places(each, (*path, key))


PLACES = list(places(WHOLE))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return PlanPlace(tmp_path_factory.mktemp("plans")).folder


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(PLACES), st.sampled_from(ODD))
def test_it_is_a_plan_or_has_faults(folder: Path, path: tuple[Any, ...], odd: Any) -> None:
    document = copy.deepcopy(WHOLE)
    holder = document
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = odd
    (folder / "plan.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    with pytest.raises(InvalidFiles) as raised:  # the evidence has never the checksum "0"
        prepare_plan(folder / "plan.yaml")
    for text in raised.value.faults:
        assert re.match(r"\S+\.yaml:\d+: ", text), text
