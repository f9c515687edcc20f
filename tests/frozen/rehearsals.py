"""Digests of the journals that rehearsals of the shipped plans make. They depend on the plan, the
seed and the deciding code alone: not on the host, the time or the folder.

    .venv/bin/python -m tests.frozen.rehearsals      # print them
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

import yaml
from msgspec.structs import replace

from seatrial.execute.plan.prepare import PreparedPlan, prepare_plan
from seatrial.plugins.rehearsal.plan_rehearsal import rehearse, run_models_of

ROOT = Path(__file__).parents[2]
PLANS = (
    "acceptance",
    "c5",
    "c5-small",
    "c5-stability",
    "c5-stability-as-reported",
    "probes",
)
SEEDS = (1, 2)
# Sources are part of the key of a build, and keys are in the journals. Of each build of the probes,
# the key that it had while every probe had a copy of what now is common/probe.h.
BUILDS = Path(__file__).with_name("probe-builds.json")
START = 1_790_000_000_000_000_000
# The machine of a plan that names none: such plans run on the host that they are typed on.
HOST = {
    "machine": "host",
    "nodes": [{"names": "host", "cores": 2, "memory": "16GiB"}],
    "toolchains": {"gcc": {"cc": "gcc", "mpicc": "mpicc", "openmp": "-fopenmp"}},
    "rehearsal": {"submit_delay": 0, "start_delay": 0, "poll": 0},
}


def copied(folder: Path) -> Path:
    """Copy the shipped plans, machines and suites, and give a machine to each plan without one.
    Return the folder of the plans."""
    for name in ("plans", "machines", "suites"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "machines/host.yaml").write_text(yaml.safe_dump(HOST))
    for plan in (folder / "plans").glob("*.yaml"):
        text = plan.read_text()
        if "\nmachine:" not in text:
            plan.write_text(text.replace("\n", "\nmachine: ../machines/host.yaml\n", 1))
    return folder / "plans"


def prepared(plans: Path, name: str) -> PreparedPlan:
    builds = json.loads(BUILDS.read_text())
    plan = prepare_plan(plans / f"{name}.yaml")
    parts = [
        part._replace(
            cases=[replace(case, build=builds.get(case.build, case.build)) for case in part.cases]
        )
        for part in plan.parts
    ]
    return plan._replace(parts=parts)


def digests(plan: PreparedPlan, seed: int, trials: Path) -> dict[str, str]:
    """Rehearse a plan into a folder. Return the digest of each trial's journal."""
    tests = [test for part in plan.parts for test in part.tests.values()]
    models = run_models_of(plan.plan, tests, lambda trial, test: ())
    return {
        one.tag: sha256((trials / one.tag / "journal.jsonl").read_bytes()).hexdigest()
        for one in rehearse(plan, models, seed, START, trials)
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        plans = copied(Path(folder))
        found = {
            f"{name} seed {seed}": digests(
                prepared(plans, name), seed, Path(folder, name, str(seed))
            )
            for name in PLANS
            for seed in SEEDS
        }
    json.dump(found, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
