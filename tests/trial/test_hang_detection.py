"""Looking at the output of runs where a file system may hang."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seatrial.backends.protocol import Ended
from seatrial.conduct.in_flight import RunInFlight
from seatrial.journal.codes import LOST
from seatrial.journal.events import OutputQuiet
from seatrial.journal.lifecycle import RunState
from seatrial.runs.directory import JobEvents, job_events
from seatrial.trial import hang_detection, run_collector
from seatrial.trial.driver import Driver
from seatrial.trial.hang_detection import HangDetector, OutputState
from seatrial.trial.run_collector import CollectedRun, EndedRun
from seatrial.trial.tasks import Tasks
from tests.programs import LONG_S, Workplace
from tests.waiting import until_true


def test_a_target_that_hangs_keeps_no_other_from_being_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    freed = threading.Event()
    looks: list[str] = []

    def look(paths: dict[str, Path]) -> dict[str, OutputState]:
        looks.extend(paths)
        if "b" in paths:
            freed.wait(LONG_S)
        return {run_id: OutputState((1,), 0.0) for run_id in paths}

    monkeypatch.setattr(hang_detection, "_look", look)
    monkeypatch.setattr(hang_detection, "SHORTEST_SECONDS", 0.01)
    flight = RunInFlight(
        case=0, entry=0, size=1, node_count=1, width=1, state=RunState.RUNNING, job_started=1
    )
    policy = SimpleNamespace(entries=[SimpleNamespace(quiet_after=0.05)])
    state = SimpleNamespace(policy=policy, in_flight={"a": flight, "b": flight})
    conductor: Any = SimpleNamespace(state=state)

    async def work() -> tuple[str, str]:
        tasks = Tasks()
        HangDetector(conductor, Path, str, tasks).start(lambda: 10**9)
        first = await asyncio.wait_for(tasks.inbox.get(), LONG_S)
        await until_true(lambda: looks.count("a") >= 4, "four looks")
        assert looks.count("b") == 1, "it is not looked at twice at a time"
        freed.set()
        second = await asyncio.wait_for(tasks.inbox.get(), LONG_S)
        await tasks.end()
        assert isinstance(first, OutputQuiet)
        assert isinstance(second, OutputQuiet)
        return first.run_id, second.run_id

    assert asyncio.run(work()) == ("a", "b")


def test_a_placed_run_is_settled_beside_the_loop(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.test("small")
    assert place.run("--name", "t", "--dry-run").code == 0
    driver = Driver(place.trial())
    (case,) = driver.conductor.state.cases
    (run,) = place.trial().path.glob("runs/small/*")
    freed = threading.Event()

    def hangs(path: Path) -> JobEvents:
        assert freed.wait(LONG_S)
        return job_events(path)

    monkeypatch.setattr(run_collector, "job_events", hangs)

    async def collect() -> CollectedRun:
        ended = Ended(run.name, None, "exited", 3)
        collected = driver._collector.collect(EndedRun(case, run, "scratch", lambda _: ended))
        assert not isinstance(collected, CollectedRun)
        task = asyncio.ensure_future(collected)
        await asyncio.sleep(0.02)
        freed.set()  # the loop goes on meanwhile
        return await task

    outcome = asyncio.run(collect())
    assert outcome.code == LOST
