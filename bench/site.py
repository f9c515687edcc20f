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

from seatrial.journal.codes import CODES, PASS, Name
from seatrial.journal.events import Event, encode
from seatrial.machine.model import Machine, NodeGroup
from seatrial.suite.model import Case, RunSpec, Test
from seatrial.trial.folder import Record, TrialFolder, TrialOptions, create
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
    yield Event(time=record.created, event=Name.TRIAL_START, nodes="login1", **of)
    under_way: list[tuple[int, int, Event]] = []
    for place in range(runs):
        now = record.created + place * apart
        while under_way and under_way[0][0] <= now:
            yield heapq.heappop(under_way)[2]
        for order, event in enumerate(_run(chance, of, cases, folder, place, now, apart)):
            heapq.heappush(under_way, (event.time, place * EVENTS_OF_RUN + order, event))
    while under_way:
        yield heapq.heappop(under_way)[2]
    yield Event(time=record.created + DAYS * DAY, event=Name.TRIAL_END, value=1, **of)


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
    figure: dict[str, Any] = {"alias": "bandwidth", "unit": "GB/s", "better": "higher"}
    yield Event(time=now, event=Name.LOGGING_START, path=path, **of)
    yield Event(time=now + 10**6, event=Name.SUBMIT_START, alias=run_id, **of)
    yield Event(time=now + 10**8, event=Name.SUBMIT_END, value=0, **of)
    yield Event(time=now + 10**8, event=Name.JOB_QUEUED, job_id=str(4_000_000 + place), **of)
    where: dict[str, Any] = {"nodes": f"n[{node:04}-{node + 1:04}]", "alias": "de6ae591c4cfad4b"}
    yield Event(time=begun, event=Name.BINARY_EXECUTE_START, **where, **of)
    yield Event(time=ended, event=Name.BINARY_EXECUTE_END, value=int(code is not PASS), **of)
    yield Event(time=ended + 10**9, event=Name.JOB_END, value=0, alias="COMPLETED", **of)
    value = round(100 * chance.gauss(1, 0.02), 3)
    yield Event(time=ended + 2 * 10**9, event=Name.METRIC, value=value, **figure, **of)
    why = "" if code is PASS else f"exit code 1 on n{node:04}"
    said: dict[str, Any] = {"value": code.number, "alias": code.name, "text": why}
    yield Event(time=ended + 2 * 10**9, event=Name.CHECK_END, **said, **of)
