"""Looking at the output of runs where a file system may hang."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seatrial.backends.protocol import Ended
from seatrial.journal.codes import Name
from seatrial.runs.directory import JobEvents, job_events
from seatrial.trial import hang_detection, run_collector
from seatrial.trial.driver import Driver
from seatrial.trial.hang_detection import HangDetector, OutputState
from seatrial.trial.tasks import DriverNote, Tasks
from tests.programs import LONG_S, Workplace


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
    flight = SimpleNamespace(entry=0, launched=0, started=1, holds_room=True)
    policy = SimpleNamespace(entries=[SimpleNamespace(quiet_after=0.05)])
    conductor: Any = SimpleNamespace(policy=policy, in_flight={"a": flight, "b": flight})

    async def work() -> tuple[str, str]:
        tasks = Tasks()
        HangDetector(conductor, Path, str, tasks).start(lambda: 10**9)
        first = await asyncio.wait_for(tasks.inbox.get(), LONG_S)
        async with asyncio.timeout(LONG_S):
            while looks.count("a") < 4:
                await asyncio.sleep(0.01)
        assert looks.count("b") == 1, "it is not looked at twice at a time"
        freed.set()
        second = await asyncio.wait_for(tasks.inbox.get(), LONG_S)
        await tasks.end()
        assert isinstance(first, DriverNote)
        assert isinstance(second, DriverNote)
        assert first.event == second.event == Name.OUTPUT_QUIET
        return first.more["run_id"], second.more["run_id"]

    assert asyncio.run(work()) == ("a", "b")


def test_a_placed_run_is_settled_beside_the_loop(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.test("small")
    assert place.run("--name", "t", "--dry-run").code == 0
    driver = Driver(place.trial())
    (case,) = driver.conductor.cases
    (run,) = place.trial().path.glob("runs/small/*")
    freed = threading.Event()

    def hangs(path: Path) -> JobEvents:
        assert freed.wait(LONG_S)
        return job_events(path)

    monkeypatch.setattr(run_collector, "job_events", hangs)

    async def free(collected: Callable[[], Awaitable[Any]]) -> Any:
        task = asyncio.ensure_future(collected())
        await asyncio.sleep(0.02)
        freed.set()  # the loop goes on meanwhile
        return await task

    ended = Ended(run.name, None, "exited", 3)
    collector = driver._collector
    found = asyncio.run(free(lambda: collector.collect_away(case, run, ended, "scratch")))
    assert found.code.name == "failed"
    assert "exit code 3" in found.why
