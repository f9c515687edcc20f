"""Rehearsals: C5's ten days, 100,000 jobs on 2,000 nodes, and the cost of a job up to 1,000,000.

All go through the whole conductor and write their journals, by the command that people use; the
time is that of the whole command. AccaSim, beside it, simulates a batch queue and nothing else.
"""

from __future__ import annotations

import json
from pathlib import Path

from bench.measuring import ROOT, SEATRIAL, Row, Timing, scratch, timed

ACCASIM_JOBS_A_SECOND = 155  # measured by bench/batch_simulation.py, at 2,000 nodes
PLANS = ("c5-stability-as-reported", "c5-stability")
REPEATS = 3  # of which the quickest counts, as others may be at work beside it
SIZES = (10_000, 100_000, 1_000_000)

MACHINE = """\
machine: bench
scheduler: slurm
nodes: [{names: "n[0001-2000]", cores: 64}]
toolchains: {gcc: {}}
"""
# 2,000 nodes in jobs of 4, 16 and 64, of 30 minutes: about 11,500 jobs a day.
PLAN = """\
plan: bench
machine: ./machine.yaml
suites: [suite]
components:
  - component: mix
    kind: sustained
    duration: 1d
    reserve: 10
    tests: {small: {weight: 1}, middle: {weight: 1}, large: {weight: 1}}
    criteria: [{criterion: utilisation, at_least: 90%}]
rehearsal:
  tests:
    "*": {elapsed: {mean: 30m, sd: 3m}, fails: 1%}
"""
TESTS = {"small": 4, "middle": 16, "large": 64}


def measure() -> list[Row]:
    with scratch() as folder:
        return [*_c5(folder), *_scale(folder)]


def _c5(folder: Path) -> list[Row]:
    rows = []
    for name in PLANS:
        plan = ROOT / "plans" / f"{name}.yaml"
        rehearse(folder, plan, "--days", "0.1")  # so that there is bytecode
        timing, jobs = min(rehearse(folder, plan) for _ in range(REPEATS))
        rows.append(
            Row(
                f"ten days of {name} rehearsed in under 2 s",
                f"{timing.wall:.2f} s, {jobs} jobs, the quickest of {REPEATS}",
                f"CPU {timing.cpu:.2f} s",
                f"{timing.wall / 2:.2f}",
            )
        )
    return rows


def _scale(folder: Path) -> list[Row]:
    plan = write_plan(folder)
    day = rehearse(folder, plan)[1]
    costs: list[tuple[int, Timing]] = []
    for size in SIZES:
        timing, jobs = rehearse(folder, plan, "--days", f"{size / day:.4f}")
        costs.append((jobs, timing))
    jobs, timing = costs[1]
    rate = jobs / timing.wall
    said = ", ".join(f"{n}: {1e6 * t.wall / n:.0f} us" for n, t in costs)
    first, last = (t.wall / n for n, t in (costs[0], costs[-1]))
    return [
        Row(
            "100,000 jobs on 2,000 nodes, rehearsed with the journal, in under 10 s",
            f"{timing.wall:.1f} s, {jobs} jobs, {rate:.0f} jobs/s",
            f"AccaSim {ACCASIM_JOBS_A_SECOND} jobs/s",
            f"{rate / ACCASIM_JOBS_A_SECOND:.0f} times",
        ),
        Row(
            "rehearsal: cost of a job, flat to 1,000,000",
            said,
            f"memory {costs[-1][1].memory:.0f} MiB",
            f"{last / first:.2f}",
        ),
    ]


def write_plan(folder: Path) -> Path:
    """The machine, the suite and the plan of the large ones."""
    (folder / "machine.yaml").write_text(MACHINE)
    for name, nodes in TESTS.items():
        test = folder / "suite" / name / "test.yaml"
        test.parent.mkdir(parents=True)
        test.write_text(f"app: {name}\nrun: {{script: 'true', nodes: {nodes}, walltime: 1h}}\n")
    plan = folder / "plan.yaml"
    plan.write_text(PLAN)
    return plan


def rehearse(folder: Path, plan: Path, *words: str) -> tuple[Timing, int]:
    """Rehearse once, where the machines are that ship; the number of jobs. A criterion that is
    missed is no failure here."""
    trials = ["--trials", str(folder / "trials")]
    line = [*SEATRIAL, *trials, "rehearse", str(plan), "--json", *words]
    timing = timed(line, ROOT, check=False)
    (trial,) = json.loads(timing.output)["trials"]
    return timing, sum(test["accepted"] + test["others"] for test in trial["tests"])
