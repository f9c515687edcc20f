"""`seatrial compare` of two trials of 10,000 runs each: the whole command, its store up to date.
There are 2,000 cases of 5 runs, 500 of 20, or 100 of 100, each run with two metrics
and its elapsed time; one case in twenty is 5 % slower on the second side."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from bench.measuring import SEATRIAL, Row, median_of, scratch, timed
from seatrial.execute.creation import create
from seatrial.execute.trial_folder import Record
from seatrial.journal.events import (
    Event,
    MetricRecorded,
    RunCreated,
    RunJudged,
    RunSubmitted,
    ScriptEnded,
    ScriptStarted,
    TrialEnded,
    TrialStarted,
)
from seatrial.journal.journal import Journal
from seatrial.model.codes import PASS
from seatrial.model.machine import Machine, NodeGroup
from seatrial.model.test import Case, RunSpec, Test, TrialOptions

SHAPES = ((2_000, 5), (500, 20), (100, 100))
SLOWER = 0.05
SPREAD = 0.01
SECOND = 1_000_000_000


def measure() -> list[Row]:
    return [_measured(cases, repeats) for cases, repeats in SHAPES]


def _measured(cases: int, repeats: int) -> Row:
    with scratch() as folder:
        for tag, slower in (("before", 0.0), ("after", SLOWER)):
            write_trial(folder / "trials", tag, cases, repeats, slower)
        timed([*SEATRIAL, "trials"], folder)
        command = [*SEATRIAL, "compare", "before", "after", "--format", "json"]
        timing = median_of(5, lambda: timed(command, folder, check=False))
    rows = json.loads(timing.output)["comparisons"][0]["rows"]
    worse = sum(row["verdict"] == "worse" for row in rows)
    wrong = sum(row["verdict"] == "worse" and "slow=no" in row["case"] for row in rows)
    return Row(
        f"two trials of {cases * repeats} runs ({cases} cases of {repeats}) compared in under 1 s",
        f"{timing.wall:.2f} s, {timing.cpu:.2f} s CPU, {len(rows)} rows",
        f"{worse} rows worse, {wrong} of them falsely",
        f"{timing.wall:.2f}",
    )


def write_trial(trials: Path, tag: str, cases: int, repeats: int, slower: float) -> None:
    """A trial as the driver leaves it, with made-up figures; every twentieth case is slower."""
    rng = random.Random(tag)
    asked = [_case(number, repeats) for number in range(cases)]
    record = Record(
        tag=tag,
        created=SECOND,
        version="0.1.0",
        user="bench",
        host="bench",
        asked=TrialOptions(suites=["suite"]),
        machine=Machine(machine="bench", nodes=[NodeGroup(names="n[001-064]", cores=64)]),
        references="references.yaml",
        tests={"made": Test(app="made", run=RunSpec(script="true"), name="made", folder="/made")},
    )
    folder = create(trials, record, asked)
    now = SECOND
    with Journal.take(folder.journal) as journal:
        journal.append(TrialStarted(time=now, trial=tag))
        for case in asked:
            factor = 1 + slower * (case.parameters["slow"] == "yes")
            for repeat in range(repeats):
                now += SECOND
                for event in _run(case, f"{case.id}{repeat:04d}{tag}", now, factor, rng):
                    journal.append(event)
        journal.append(TrialEnded(time=now, trial=tag, failed=0))


def _case(number: int, repeats: int) -> Case:
    return Case(
        id=f"c{number:07d}",
        test="made",
        parameters={"number": number, "slow": "no" if number % 20 else "yes"},
        toolchain="gcc",
        nodes=1,
        tasks=1,
        tasks_per_node=1,
        threads=1,
        walltime=600.0,
        repeat=repeats,
    )


def _run(case: Case, run_id: str, now: int, factor: float, rng: random.Random) -> list[Event]:
    of: dict[str, Any] = {"app": "made", "test": "made", "case": case.id, "run_id": run_id}
    time = 100 * factor * (1 + rng.gauss(0, SPREAD))
    ended = now + round(time * SECOND)
    return [
        RunCreated(time=now, **of),
        RunSubmitted(time=now, submission="s", **of),
        ScriptStarted(time=now, nodes="n001", **of),
        ScriptEnded(time=ended, exit_code=0, **of),
        *(
            MetricRecorded(
                time=ended,
                metric=name,
                value=1000 / factor * (1 + rng.gauss(0, SPREAD)),
                unit="MB/s",
                better="higher",
                **of,
            )
            for name in ("read", "write")
        ),
        RunJudged(time=ended, code=PASS.number, verdict=PASS.name, **of),
    ]
