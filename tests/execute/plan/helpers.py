"""A plan with a machine and a suite as files in a folder, and what Seatrial makes of it.

place = PlanPlace(tmp_path)
place.component("- {component: c, tests: [small]}")
place.prepare().parts
place.faults()                     # what is wrong, line by line; the first component is in line 8
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.errors import InvalidFiles
from seatrial.execute.plan.prepare import PreparedComponent, PreparedPlan, prepare_plan
from seatrial.model.policy import Entry

HEAD = """\
plan: p
machine: ./m.yaml
suites: [suite]
phases:
  - {phase: one, nodes: "n[1-4]"}
  - phase: two
components:
"""
MACHINE: dict[str, Any] = {
    "machine": "m",
    "scheduler": "slurm",
    "nodes": [
        {"names": "n[1-6]", "cores": 8},
        {"names": "n[7-8]", "cores": 16, "features": ["big"]},
    ],
    "toolchains": {"gcc": {}, "clang": {}},
    "file_systems": {
        "scratch": {
            "path": "/scratch",
            "targets": ["mdt0", {"name": "mdt1", "weight": 2}],
            "safe_load": 100,
            "runs": 6,
            "space": 1000,
        },
        "home": {"path": "/home"},
    },
    "gauges": {"load": {"command": "cat /proc/loadavg"}},
}
RATE = {"rate": {"find": "rate (.*)", "unit": "1/s", "better": "higher"}}
TESTS: dict[str, dict[str, Any]] = {
    "small": {"run": {"nodes": 1, "walltime": "10m"}, "metrics": RATE},
    "wide": {"run": {"nodes": 4, "walltime": "1h"}, "parameters": {"size": [1, 2]}},
    "big/huge": {"run": {"nodes": 6}},
    "big/swept": {"parameters": {"n": [2, 4, 8]}, "run": {"nodes": "n"}},
}


class PlanPlace:
    """A folder with ``plan.yaml``, ``m.yaml`` and ``suite/``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plan = folder / "plan.yaml"
        self.machine(**MACHINE)
        for name, keys in TESTS.items():
            self.test(name, **keys)

    def machine(self, **keys: Any) -> None:
        (self.folder / "m.yaml").write_text(yaml.safe_dump({**MACHINE, **keys}, sort_keys=False))

    def test(self, name: str, run: dict[str, Any], **keys: Any) -> Path:
        path = self.folder / "suite" / name / "test.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = {"app": "a", "run": {"script": "true", **run}, **keys}
        path.write_text(yaml.safe_dump(whole, sort_keys=False))
        return path.parent

    def write(self, components: str, head: str = HEAD) -> None:
        self.plan.write_text(head + components)

    def prepare(self, **asked: Any) -> PreparedPlan:
        return prepare_plan(self.plan, **asked)

    def part(self, components: str, head: str = HEAD) -> PreparedComponent:
        """The first part that comes of components, in the last phase."""
        self.write(components, head)
        parts = self.prepare().parts
        return next(part for part in parts if part.phase == parts[-1].phase)

    def entries(self, components: str) -> dict[str, Entry]:
        return {entry.name: entry for entry in self.part(components).policy.entries}

    def faults(self) -> list[str]:
        """The faults, their paths relative to the folder."""
        with pytest.raises(InvalidFiles) as raised:
            self.prepare()
        return [text.replace(f"{self.folder}/", "") for text in raised.value.faults]
