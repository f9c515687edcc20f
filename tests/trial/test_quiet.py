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
from seatrial.trial import quiet, settle
from seatrial.trial.driver import Driver
from seatrial.trial.quiet import Output, QuietWatch
from seatrial.trial.tasks import Note, Tasks
from tests.programs import LONG_S, Workplace
from tests.waiting import until_true


def test_a_target_that_hangs_keeps_no_other_from_being_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    freed = threading.Event()
    looks: list[str] = []

    def look(paths: dict[str, Path]) -> dict[str, Output]:
        looks.extend(paths)
        if "b" in paths:
            freed.wait(LONG_S)
        return {run_id: Output((1,), 0.0) for run_id in paths}

    monkeypatch.setattr(quiet, "_look", look)
    monkeypatch.setattr(quiet, "SHORTEST_SECONDS", 0.01)
    flight = SimpleNamespace(entry=0, launched=0, started=1, holds_room=True)
    policy = SimpleNamespace(entries=[SimpleNamespace(quiet_after=0.05)])
    conductor: Any = SimpleNamespace(policy=policy, in_flight={"a": flight, "b": flight})

    async def work() -> tuple[str, str]:
        tasks = Tasks()
        QuietWatch(conductor, Path, str, tasks).start(lambda: 10**9)
        first = await asyncio.wait_for(tasks.inbox.get(), LONG_S)
        await until_true(lambda: looks.count("a") >= 4, "four looks")
        assert looks.count("b") == 1, "it is not looked at twice at a time"
        freed.set()
        second = await asyncio.wait_for(tasks.inbox.get(), LONG_S)
        await tasks.end()
        assert isinstance(first, Note)
        assert isinstance(second, Note)
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

    monkeypatch.setattr(settle, "job_events", hangs)

    async def free(settled: Callable[[], Awaitable[Any]]) -> Any:
        task = asyncio.ensure_future(settled())
        await asyncio.sleep(0.02)
        freed.set()  # the loop goes on meanwhile
        return await task

    ended = Ended(run.name, None, "exited", 3)
    judge = driver._judge
    found = asyncio.run(free(lambda: judge.settle_away(case, run, ended, "scratch")))
    assert found.code.name == "failed"
    assert "exit code 3" in found.why
