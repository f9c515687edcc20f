"""What deciding costs: figures are printed (`pytest -s`), and must not grow with the trial."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections import deque
from typing import Any

import pytest

from seatrial.decide.conductor import Conductor
from seatrial.journal.events import (
    BuildEnded,
    BuildStarted,
    JobEnded,
    JobQueued,
    JobStarted,
    MetricRecorded,
    RunCreated,
    RunEvent,
    RunJudged,
    RunSubmitted,
    ScriptEnded,
    ScriptStarted,
    SubmitEnded,
    TrialStarted,
)
from seatrial.model.codes import PASS
from seatrial.model.policy import Entry, Limits, Policy, WatchLimits

from .model import a_case
from .world import a_run

FEW, MANY = 250, 2_500


def cost(count: int, limits: Limits, *, sizes: int, builds: int, jumbled: bool) -> float:
    """Seconds of processor time a case, simulated through the conductor. ``jumbled``: runs are
    announced in another order than they were chosen in, as for arrays by shape."""
    cases = [
        a_case(n, 1 + n % sizes, build=f"b{n % builds}" if builds else "") for n in range(count)
    ]
    began = time.process_time()
    conductor = Conductor("tag", cases, limits)
    running: deque[tuple[str, str]] = deque()
    while True:
        decision = conductor.decide()
        if decision.finish is not None:
            assert decision.finish.complete
            assert conductor.state.finished == count
            return (time.process_time() - began) / count
        for key in decision.builds:
            conductor.apply(BuildStarted(time=1, key=key))
            conductor.apply(BuildEnded(time=1, key=key, code=0))
        assert not decision.by_build
        launches = list(decision.launches)
        if jumbled:
            launches.sort(key=lambda launch: launch.case % 7)
        for launch in launches:
            case = cases[launch.case].id
            begin = RunSubmitted(time=1, case=case, run_id=launch.run_id)
            conductor.apply(begin)
            running.append((case, launch.run_id))
        for _ in range(min(len(running), 1 + len(running) // 8)):
            case, run_id = running.popleft()
            conductor.apply(JobEnded(time=1, case=case, run_id=run_id, code=PASS.number))
            end = RunJudged(time=1, case=case, run_id=run_id, code=PASS.number)
            conductor.apply(end)


def memory(count: int, limits: Limits) -> float:
    cases = [a_case(n, 1 + n % 4) for n in range(count)]
    gc.collect()
    tracemalloc.start()
    conductor = Conductor("tag", cases, limits)
    size = tracemalloc.get_traced_memory()[0] / len(conductor.state.cases)
    tracemalloc.stop()
    return size


NODE = Limits(cores=16)
QUEUE = Limits(jobs=1000, refill=250)


@pytest.mark.parametrize(
    ("what", "count", "limits", "sizes", "half_built", "jumbled"),
    [
        ("a node, one size", MANY, NODE, 1, False, False),
        ("a large node, 64 sizes", MANY, Limits(cores=64), 64, False, False),
        ("a queue, by shape", MANY, QUEUE, 4, False, True),
        ("a build for every second case", MANY, NODE, 1, True, False),
    ],
)
def test_cost_of_a_case_is_flat(
    what: str, count: int, limits: Limits, sizes: int, half_built: bool, jumbled: bool
) -> None:
    few, many = (
        cost(n, limits, sizes=sizes, builds=n // 2 if half_built else 0, jumbled=jumbled)
        for n in (FEW, count)
    )
    print(f"\n{what}: {few * 1e6:.1f} us a case of {FEW}, {many * 1e6:.1f} us of {count}")
    assert many < 3 * few  # what grows with the trial grows tenfold or more


def test_memory_of_a_case_is_small() -> None:
    size = memory(MANY, NODE)
    print(f"\n{size:.0f} bytes a case, {size * MANY / 2**20:.0f} MiB for {MANY}")
    assert size < 1000


WIDTHS = (48, 18, 26, 22, 96, 24)


def cost_of_mix(count: int) -> float:
    """Seconds of processor time a job of a sustained mix, with 10 events each."""
    cases = [a_run(n, f"t{n}", width) for n, width in enumerate(WIDTHS)]
    entries = [Entry(name=case.test, weight=1.0) for case in cases]
    policy = Policy(
        kind="sustained",
        entries=entries,
        entry_of=list(range(len(cases))),
        duration=1e8,
        nodes=1920,
        reserve=len(cases),
        watch=WatchLimits(short_for=600, silent_for=1800, wait_factor=5),
    )
    conductor, now, ended, free = Conductor("tag", cases, Limits(), policy), 10**9, 0, 1920
    queue: deque[tuple[int, str]] = deque()
    running: deque[tuple[int, str]] = deque()

    def note(kind: type[RunEvent], case: int, run_id: str) -> None:
        more = NOUGHT.get(kind, {})
        conductor.apply(kind(time=now, case=cases[case].id, run_id=run_id, **more))

    began = time.process_time()
    conductor.apply(TrialStarted(time=now))
    while ended < count:
        while conductor.state.changed:
            conductor.state.changed = False
            for launch in conductor.decide(now).launches:
                queue.append((launch.case, launch.run_id))
                for kind in ANNOUNCED:
                    note(kind, *queue[-1])
        if queue and WIDTHS[queue[0][0]] <= free:
            running.append(queue.popleft())
            free -= WIDTHS[running[-1][0]]
            note(JobStarted, *running[-1])
            note(ScriptStarted, *running[-1])
        else:
            now += 10**10
            for kind in OVER:
                note(kind, *running[0])
            free += WIDTHS[running.popleft()[0]]
            ended += 1
    return (time.process_time() - began) / count


ANNOUNCED: tuple[type[RunEvent], ...] = (RunCreated, RunSubmitted, SubmitEnded, JobQueued)
OVER: tuple[type[RunEvent], ...] = (ScriptEnded, JobEnded, MetricRecorded, RunJudged)
NOUGHT: dict[type[RunEvent], dict[str, Any]] = {
    SubmitEnded: {"refused": 0},
    ScriptEnded: {"exit_code": 0},
    JobEnded: {"code": 0},
    RunJudged: {"code": 0},
}


def test_cost_of_a_job_of_a_mix_is_flat_and_small() -> None:
    few, many = cost_of_mix(250), cost_of_mix(3_000)
    print(f"\na mix: {few * 1e6:.1f} us a job of 250, {many * 1e6:.1f} us of 3000")
    assert many < 3 * few
    assert many < 1000e-6
