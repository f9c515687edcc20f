"""A site's journals, made as the driver writes them, the same ones each time.

    folder = make_trial(Path("trials"), 0)       # 111,000 runs in ten days, forty at a time

Nine events a run, 999,002 of a trial. One test, ``MAIN``, has 99,900 of its runs.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from seatrial.execute.creation import create
from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.journal.encoding import encode
from seatrial.journal.events import (
    Event,
    JobEnded,
    JobQueued,
    MetricRecorded,
    RunCreated,
    RunJudged,
    RunSubmitted,
    ScriptEnded,
    ScriptStarted,
    SubmitEnded,
    TrialEnded,
    TrialStarted,
)
from seatrial.model.codes import CODES, PASS
from seatrial.model.machine import Machine, NodeGroup
from seatrial.model.test import Case, RunSpec, Test, TrialOptions
from seatrial.units import SECOND_NS

RUNS = 111_000  # of a trial
EVENTS_OF_RUN = 9
START = 1_795_262_400 * SECOND_NS
DAY = 86_400 * SECOND_NS
DAYS = 10
AT_A_TIME = 40
MAIN = "stream"  # the test that has most runs
TESTS = (MAIN, "hpl", "hpcg", "io_ior", "lammps", "gromacs", "osu", "minife", "mdtest", "fft")
FAILURES = (1, 2, 5, 9, 23)


def make_trial(trials: Path, number: int, runs: int = RUNS) -> TrialFolder:
    """A trial that is over, with its journal."""
    tests = {
        name: Test(
            app=f"{name}-app",
            tags=["node" if name == MAIN else "network", "nightly"],
            run=RunSpec(script=f"./{name}"),
            name=name,
            folder=f"/suites/{name}",
        )
        for name in TESTS
    }
    cases = [
        Case(
            id=f"{number:04x}{place:012x}",
            test=test,
            parameters={"size": size},
            toolchain=("gcc", "clang")[size % 2],
            nodes=2,
            tasks=8,
            tasks_per_node=4,
            threads=4,
            walltime=900.0,
        )
        for place, (test, size) in enumerate((test, size) for test in TESTS for size in range(4))
    ]
    created = START + number * DAYS * DAY
    record = Record(
        tag=f"stability-{number:03}",
        created=created,
        version="0.1.0",
        user="acceptance",
        host="login1",
        asked=TrialOptions(suites=["/suites"]),
        machine=Machine(
            machine=("frost", "ember")[number % 2], nodes=[NodeGroup("n[0001-2000]", 8)]
        ),
        references="references.yaml",
        tests=tests,
    )
    folder = create(trials, record, cases)
    with folder.journal.open("wb") as file:
        for event in _events(record, cases, folder, runs):
            file.write(encode(event) + b"\n")
    return folder


def _events(
    record: Record, cases: Sequence[Case], folder: TrialFolder, runs: int
) -> Iterator[Event]:
    chance = random.Random(record.tag)
    of: dict[str, Any] = {"trial": record.tag, "machine": record.machine.machine}
    apart = DAYS * DAY // runs
    yield TrialStarted(time=record.created, host="login1", **of)
    under_way: list[tuple[int, int, Event]] = []
    for place in range(runs):
        now = record.created + place * apart
        while under_way and under_way[0][0] <= now:
            yield heapq.heappop(under_way)[2]
        for order, event in enumerate(_run(chance, of, cases, folder, place, now, apart)):
            heapq.heappush(under_way, (event.time, place * EVENTS_OF_RUN + order, event))
    while under_way:
        yield heapq.heappop(under_way)[2]
    yield TrialEnded(time=record.created + DAYS * DAY, failed=1, **of)


def _run(
    chance: random.Random,
    of: dict[str, Any],
    cases: Sequence[Case],
    folder: TrialFolder,
    place: int,
    now: int,
    apart: int,
) -> Iterator[Event]:
    """The events of a run: it waits, it runs for about as long as forty are at a time."""
    case = cases[place % 4] if place % 10 else cases[4 + place // 10 % (len(cases) - 4)]
    run_id = f"{chance.getrandbits(60):012x}"[:12]
    node = chance.randrange(1, 2000)
    took = int(AT_A_TIME * apart * chance.lognormvariate(0, 0.1))
    code = CODES[chance.choice(FAILURES)] if chance.random() < 0.03 else PASS
    of = {**of, "app": f"{case.test}-app", "test": case.test, "case": case.id, "run_id": run_id}
    begun, ended = now + 5 * SECOND_NS, now + 5 * SECOND_NS + took
    path = str(folder.run(case.test, run_id))
    figure: dict[str, Any] = {"metric": "bandwidth", "unit": "GB/s", "better": "higher"}
    yield RunCreated(time=now, path=path, **of)
    yield RunSubmitted(time=now + 10**6, submission=run_id, **of)
    yield SubmitEnded(time=now + 10**8, refused=0, **of)
    yield JobQueued(time=now + 10**8, job_id=str(4_000_000 + place), **of)
    nodes = f"n[{node:04}-{node + 1:04}]"
    yield ScriptStarted(time=begun, nodes=nodes, environment="de6ae591c4cfad4b", **of)
    yield ScriptEnded(time=ended, exit_code=int(code is not PASS), **of)
    yield JobEnded(time=ended + 10**9, code=0, state="COMPLETED", **of)
    value = round(100 * chance.gauss(1, 0.02), 3)
    yield MetricRecorded(time=ended + 2 * 10**9, value=value, **figure, **of)
    reason = "" if code is PASS else f"exit code 1 on n{node:04}"
    judged = ended + 2 * 10**9
    yield RunJudged(time=judged, code=code.number, verdict=code.name, reason=reason, **of)
