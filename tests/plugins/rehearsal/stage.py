"""A small machine, a suite and a plan as files, and rehearsals of them.

stage = Stage(tmp_path)                         # 8 nodes, no delays: times can be reckoned
stage.test("work", nodes=2)
stage.behave("work", elapsed="1m")
stage.component("c", kind="sustained", duration="10m", tests={"work": {"copies": 4}})
played = stage.play(seed=1)
played.runs("work"), played.of(AlertRaised), played.rehearsed.utilisation
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import yaml

from seatrial.execute.plan.prepare import PreparedPlan, prepare_plan
from seatrial.journal import journal
from seatrial.journal.events import Event, RunEvent, RunJudged
from seatrial.plugins.rehearsal.plan_rehearsal import Rehearsed, RunModels, rehearse, run_models_of

START = 1_790_000_000_000_000_000
SECOND = 1_000_000_000
AT_ONCE = {"submit_delay": 0, "start_delay": 0, "poll": 0}

E = TypeVar("E", bound=Event)


class Played(NamedTuple):
    """A rehearsed trial, its events, the folder it is in."""

    rehearsed: Rehearsed
    events: list[Event]
    folder: Path

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def runs(self, test: str = "") -> dict[str, list[RunEvent]]:
        """The events of each run, in order."""
        runs: dict[str, list[RunEvent]] = {}
        for event in self.of(RunEvent):
            if test in ("", event.test):
                runs.setdefault(event.run_id, []).append(event)
        return runs

    def verdicts(self, test: str = "") -> Counter[str]:
        return Counter(e.verdict for e in self.of(RunJudged) if test in ("", e.test))


def since(event: Event) -> float:
    """Seconds from the trial's start."""
    return (event.time - START) / SECOND


class Stage:
    """A folder with ``plan.yaml``, ``machine.yaml`` and ``suite/``."""

    def __init__(self, folder: Path, nodes: int = 8) -> None:
        self.folder = folder
        self.plan_file = folder / "plan.yaml"
        self.trials = folder / "trials"
        self.machine: dict[str, Any] = {
            "machine": "toy",
            "scheduler": "slurm",
            "nodes": [{"names": f"n[1-{nodes}]", "cores": 8}],
            "toolchains": {"gcc": {}},
            "rehearsal": dict(AT_ONCE),
        }
        self.plan: dict[str, Any] = {
            "plan": "p",
            "machine": "./machine.yaml",
            "suites": ["suite"],
            "components": [],
            "rehearsal": {"tests": {}},
        }

    def test(self, name: str, nodes: int = 1, walltime: str = "10m", **keys: Any) -> None:
        path = self.folder / "suite" / name / "test.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        run = {"script": "true", "nodes": nodes, "walltime": walltime}
        path.write_text(yaml.safe_dump({"app": "a", "run": run, **keys}))

    def behave(self, test: str, **behaviour: Any) -> None:
        self.plan["rehearsal"]["tests"][test] = behaviour

    def component(self, name: str, **keys: Any) -> None:
        self.plan["components"].append({"component": name, **keys})

    def write(self) -> Path:
        (self.folder / "machine.yaml").write_text(yaml.safe_dump(self.machine, sort_keys=False))
        self.plan_file.write_text(yaml.safe_dump(self.plan, sort_keys=False))
        return self.plan_file

    def prepare(self) -> PreparedPlan:
        return prepare_plan(self.write())

    def run_models(self, plan: PreparedPlan) -> RunModels:
        tests = [test for part in plan.parts for test in part.tests.values()]
        return run_models_of(plan.plan, tests, lambda trial, test: ())

    def play_all(self, seed: int = 1, name: str = "") -> list[Played]:
        """Rehearse the plan, each trial into the folder of trials."""
        plan = self.prepare()
        done = rehearse(plan, self.run_models(plan), seed, START, self.trials, name)
        return [self.read(one) for one in done]

    def play(self, seed: int = 1, name: str = "") -> Played:
        (one,) = self.play_all(seed, name)
        return one

    def read(self, one: Rehearsed) -> Played:
        folder = self.trials / one.tag
        return Played(one, list(journal.read(folder / "journal.jsonl")), folder)
