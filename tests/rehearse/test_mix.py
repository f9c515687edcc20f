"""The mix that a plan promises is what runs, on the simulated cluster: shares of node-hours."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.journal.events import JobEnded, JobStarted, RunSubmitted
from seatrial.machine.facts import unfold

from .stage import SECOND, Played, Stage


def achieved(played: Played, nodes: int, hours: float) -> dict[str, float]:
    """The share of the machine's node-hours that each test held, by the events alone."""
    end = played.rehearsed.start + round(hours * 3600 * SECOND)
    had: Counter[str] = Counter()
    began: dict[str, int] = {}
    for event in played.events:
        if isinstance(event, JobStarted):
            began[event.run_id] = event.time
        elif isinstance(event, JobEnded) and event.run_id in began:
            held = min(event.time, end) - began[event.run_id]
            had[event.test] += len(unfold(event.nodes)) * max(0, held)
    return {test: each / (end - played.rehearsed.start) / nodes for test, each in had.items()}


def mixed(
    folder: Path,
    nodes: int,
    hours: float,
    tests: dict[str, tuple[int, str, dict[str, Any]]],
    seed: int = 1,
) -> Played:
    """A mix rehearsed: each test has a width, a mean elapsed time, and its part of the mix."""
    stage = Stage(folder, nodes=nodes)
    stage.machine["rehearsal"] = {"poll": "1s", "start_delay": "1s"}
    for name, (width, mean, _) in tests.items():
        stage.test(name, nodes=width, walltime="10m")
        stage.behave(name, elapsed={"mean": mean, "sd": "3s"})
    parts = {name: part for name, (_, _, part) in tests.items()}
    stage.component("c", kind="sustained", duration=f"{round(hours * 3600)}s", tests=parts)
    return stage.play(seed=seed)


@pytest.mark.parametrize("seed", [1, 2])
def test_copies_are_on_nodes_and_fill_gets_what_is_left(tmp_path: Path, seed: int) -> None:
    """6 nodes: half of them, two copies, and fill; 200 runs. Before, 83, 16 and 0 %."""
    tests: dict[str, tuple[int, str, dict[str, Any]]] = {
        "climate": (2, "50s", {"share": "50%"}),
        "waves": (1, "40s", {"copies": 2}),
        "filler": (1, "30s", {"fill": True}),
    }
    played = mixed(tmp_path, 6, 0.55, tests, seed)
    assert 200 <= len(played.runs()) <= 240
    planned = {"climate": 1 / 2, "waves": 1 / 3, "filler": 1 / 6}
    assert achieved(played, 6, 0.55) == pytest.approx(planned, abs=0.05)
    assert played.rehearsed.utilisation > 0.9


@pytest.mark.parametrize("share", [0.5, 0.25, 0.1, 1 / 3])
def test_what_no_test_claims_stays_idle(tmp_path: Path, share: float) -> None:
    """A share is one of the machine, also where nobody else has one; 2 of 6 nodes are a run."""
    played = mixed(tmp_path, 6, 3, {"work": (2, "1m", {"share": share})})
    assert achieved(played, 6, 3) == pytest.approx({"work": share}, abs=0.02)


def test_the_reserve_is_drawn_from_every_test(tmp_path: Path) -> None:
    third: dict[str, tuple[int, str, dict[str, Any]]] = {
        "share": (1, "50s", {"share": 1 / 3}),
        "copies": (1, "50s", {"copies": 3}),
        "fill": (1, "50s", {"fill": True}),
    }
    played = mixed(tmp_path, 9, 1, third)
    submitted: dict[str, int] = {}
    waited: Counter[str] = Counter()
    for event in played.events:
        if isinstance(event, RunSubmitted):
            submitted[event.run_id] = event.time
        elif isinstance(event, JobStarted):
            waited[event.test] += event.time - submitted[event.run_id] > 3 * SECOND
    assert min(waited[test] for test in third) > 0.25 * waited.total()


@st.composite
def mixes(draw: Any) -> tuple[int, dict[str, tuple[int, str, dict[str, Any]]], dict[str, float]]:
    """Nodes, tests, and the share of each. Runs are at most a quarter of the machine; larger ones
    may not fit beside each other, whatever is decided. The last test is of one node and fills."""
    nodes = draw(st.sampled_from([6, 8, 12, 24]))
    tests: dict[str, tuple[int, str, dict[str, Any]]] = {}
    planned: dict[str, float] = {}
    left = 1.0
    for number in range(draw(st.integers(1, 3))):
        width, mean = draw(st.integers(1, nodes // 4)), draw(st.integers(20, 120))
        share, copies = draw(st.integers(10, 50)) / 100, draw(st.integers(0, 3))
        part: dict[str, Any] = {"share": share}
        if copies:
            part, share = {"copies": copies}, copies * width / nodes
        if share < left - 0.05:
            name, left = f"t{number}", left - share
            tests[name], planned[name] = (width, f"{mean}s", part), share
    if draw(st.booleans()):
        tests["fill"] = (1, f"{draw(st.integers(20, 60))}s", {"fill": True})
        planned["fill"] = left
    return nodes, tests, planned


@settings(max_examples=25, deadline=None)
@given(mixes(), st.integers(1, 100))
def test_of_any_mix_the_shares_are_those_of_the_plan(
    mix: tuple[int, dict[str, tuple[int, str, dict[str, Any]]], dict[str, float]], seed: int
) -> None:
    """Within 5 points over 200 runs or more."""
    nodes, tests, planned = mix
    if not tests:
        return
    rate = sum(
        planned[name] * nodes / width / int(mean.removesuffix("s"))
        for name, (width, mean, _) in tests.items()
    )
    hours = max(250 / rate, 700) / 3600
    with TemporaryDirectory() as folder:
        played = mixed(Path(folder), nodes, hours, tests, seed)
    assert achieved(played, nodes, hours) == pytest.approx(planned, abs=0.05)
