"""Hung runs are found and looked at; a file system may hang, too."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from seatrial.decide.conductor import Launch
from seatrial.decide.in_flight import ResourceRequest, RunInFlight
from seatrial.execute import run_collector
from seatrial.execute import runs as hang_detection
from seatrial.execute.backends import JobEnd
from seatrial.execute.background import Tasks
from seatrial.execute.directory import JobEvents, job_events
from seatrial.execute.driver import Driver
from seatrial.execute.run_collector import Collected
from seatrial.execute.runs import HangDetector, OutputState, PlacementTarget
from seatrial.journal.events import JobStarted, OutputQuiet, RunJudged
from seatrial.journal.trial import RunState
from seatrial.model.codes import LOST
from seatrial.model.node_set import unfold
from tests.programs import LONG_S, Workplace, job_shells
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
        case=0,
        request=ResourceRequest(entry=0, nodes=1, cores=1, width=1),
        state=RunState.RUNNING,
        job_started=1,
    )
    policy = SimpleNamespace(entries=[SimpleNamespace(quiet_after=0.05)])
    state = SimpleNamespace(policy=policy, in_flight={"a": flight, "b": flight})
    conductor: Any = SimpleNamespace(state=state)
    jobs = {run: SimpleNamespace(file_system=run, path=Path(run)) for run in ("a", "b")}
    attempts: Any = {run: SimpleNamespace(job=job) for run, job in jobs.items()}

    async def work() -> tuple[str, str]:
        tasks = Tasks(asyncio.Queue())
        HangDetector(conductor, attempts, tasks).start(lambda: 10**9)
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

    async def collect() -> Collected:
        ended = JobEnd(run.name, None, "exited", 3)
        launched = driver._staging.begin(Launch(0, run.name), case)
        placed = replace(launched, place=PlacementTarget("scratch", "", 0, run))
        collected = driver._collector.collect(placed, lambda _: ended)
        assert isinstance(collected, Coroutine)
        task = asyncio.ensure_future(collected)
        await asyncio.sleep(0.02)
        freed.set()  # the loop goes on meanwhile
        return await task

    _, verdict = asyncio.run(collect())
    assert verdict.code == LOST


def test_plain_runs_are_watched(place: Workplace) -> None:
    """One that writes slowly is not hung; one that only has to be told of goes on."""
    said = "echo 'Cassini Event Queue overflow detected.'"
    place.test("hangs", f"{said}; sleep 985.5 & sleep 985.5 & wait", run={"quiet_for": "1s"})
    place.test("slow", "for i in 1 2 3 4; do echo $i; sleep 0.5; done", run={"quiet_for": "1s"})
    place.test("told", "sleep 1.5", run={"quiet_for": "1s", "quiet_answer": "tell"})
    place.local(cores=3)
    assert place.run("--name", "t").code == 1
    assert place.verdicts() == {"hangs": "hung", "slow": "pass", "told": "pass"}
    assert place.why("hangs") == "no output for 1 s; 2 sleep in hrtimer_nanosleep"
    causes = {event.test: event.cause for event in place.events("t", RunJudged)}
    assert causes == {"hangs": "event queue of the CXI provider overflowed", "slow": "", "told": ""}
    (hung,) = [event for event in place.events("t", OutputQuiet) if event.test == "hangs"]
    assert 1 <= hung.seconds < 10  # looked at each 0.1 s, on a host that may be busy
    assert "and is ended" in place.alerts()
    assert "as it seems; it goes on" in place.alerts()
    processes = (place.run_folder("hangs") / "hung.txt").read_text()
    assert processes.count("command: sleep 985.5") == 2
    assert "State:\tS (sleeping)" in processes
    assert not (place.run_folder("told") / "hung.txt").exists()
    assert not job_shells(place.trial())


@pytest.mark.slurm
def test_a_run_that_hangs_on_nodes_is_looked_at_there(slurm_place: Workplace) -> None:
    place = slurm_place
    place.test("hangs", "sleep 985.75", run={"quiet_for": "2s", "nodes": 2})
    assert place.run("--name", "t").code == 1
    assert place.verdicts() == {"hangs": "hung"}
    assert place.why("hangs") == "no output for 2 s; 1 sleep in hrtimer_nanosleep"
    (start,) = place.events("t", JobStarted)
    processes = (place.run_folder("hangs") / "hung.txt").read_text()
    assert processes.startswith(unfold(start.nodes)[0])
    assert "command: sleep 985.75" in processes
