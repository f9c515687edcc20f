"""The mix that a plan promises is what runs, on the simulated cluster: shares of node-hours."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from seatrial.journal.events import JobStarted, RunSubmitted
from seatrial.results.node_hours import NodeShares

from .stage import SECOND, Played, Stage

POLL_S = 15  # of a Slurm machine, where its file says nothing
Tests = dict[str, tuple[int, str, dict[str, Any]]]  # width, mean elapsed time, part of the mix


def shares(played: Played) -> NodeShares:
    """The planned and the achieved shares, as people see them."""
    found = played.rehearsed.node_shares
    assert found is not None
    return found


def achieved(played: Played) -> dict[str, float]:
    return {each.test: each.achieved for each in shares(played).tests}


def mixed(
    folder: Path,
    nodes: int,
    hours: float,
    tests: Tests,
    seed: int = 1,
    reserve: int | None = None,
    **rehearsal: Any,
) -> Played:
    """A mix rehearsed, with the delays that are usual where none are given."""
    stage = Stage(folder, nodes=nodes)
    stage.machine["rehearsal"] = rehearsal
    for name, (width, mean, _) in tests.items():
        stage.test(name, nodes=width, walltime="10m")
        stage.behave(name, elapsed={"mean": mean, "sd": "3s"})
    parts = {name: part for name, (_, _, part) in tests.items()}
    duration = f"{round(hours * 3600)}s"
    asked = [{"criterion": "mix", "at_most": "5 points"}]
    keys: dict[str, Any] = {"duration": duration, "tests": parts, "criteria": asked}
    if reserve is not None:
        keys["reserve"] = reserve
    stage.component("c", kind="sustained", **keys)
    return stage.play(seed=seed)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("rehearsal", [{}, {"poll": "1s", "start_delay": "1s"}])
def test_copies_are_on_nodes_and_fill_gets_what_is_left(
    tmp_path: Path, seed: int, rehearsal: dict[str, Any]
) -> None:
    """6 nodes: half of them, two copies, and fill. Before, 83, 16 and 0 %. By the scripts alone,
    with the usual poll, a tenth of the node-hours is nobody's, and the criterion is not met."""
    tests: Tests = {
        "climate": (2, "50s", {"share": "50%"}),
        "waves": (1, "40s", {"copies": 2}),
        "filler": (1, "30s", {"fill": True}),
    }
    played = mixed(tmp_path, 6, 2 / 3, tests, seed, **rehearsal)
    assert 200 <= len(played.runs()) <= 300
    planned = {"climate": 1 / 2, "waves": 1 / 3, "filler": 1 / 6}
    assert {each.test: each.planned for each in shares(played).tests} == pytest.approx(planned)
    assert achieved(played) == pytest.approx(planned, abs=0.03)
    assert shares(played).unused < 0.03
    verdict, _ = played.rehearsed.criteria
    assert verdict.result.state == "met", verdict
    assert played.rehearsed.utilisation > 0.85


@pytest.mark.parametrize("share", [0.5, 0.25, 0.1, 1 / 3])
def test_what_no_test_claims_stays_idle(tmp_path: Path, share: float) -> None:
    """A share is one of the machine, also where nobody else has one; 2 of 6 nodes are a run."""
    played = mixed(tmp_path, 6, 3, {"work": (2, "1m", {"share": share})})
    assert achieved(played) == pytest.approx({"work": share}, abs=0.02)
    assert shares(played).unclaimed == pytest.approx(1 - share)


def test_the_reserve_is_drawn_from_every_test(tmp_path: Path) -> None:
    third: Tests = {
        "share": (1, "50s", {"share": 1 / 3}),
        "copies": (1, "50s", {"copies": 3}),
        "fill": (1, "50s", {"fill": True}),
    }
    played = mixed(tmp_path, 9, 1, third, poll="1s", start_delay="1s")
    submitted: dict[str, int] = {}
    waited: Counter[str] = Counter()
    for event in played.events:
        if isinstance(event, RunSubmitted):
            submitted[event.run_id] = event.time
        elif isinstance(event, JobStarted):
            waited[event.test] += event.time - submitted[event.run_id] > 3 * SECOND
    assert min(waited[test] for test in third) > 0.25 * waited.total()


def test_a_test_that_got_too_much_at_first_gives_it_back(tmp_path: Path) -> None:
    """Nobody knows at first that runs of ``long`` take five times as long as others. Before, turns
    that keep a test from starving gave it more than its share to the end."""
    tests: Tests = {
        "long": (1, "222s", {"share": 0.1}),
        "filler": (1, "40s", {"fill": True}),
    }
    played = mixed(tmp_path, 12, 4440 / 3600, tests, reserve=12)
    assert achieved(played) == pytest.approx({"long": 0.1, "filler": 0.9}, abs=0.01)


@st.composite
def mixes(draw: Any) -> tuple[int, Tests, dict[str, float]]:
    """Nodes, tests, and the share of each. Runs are at most a quarter of the machine, as nodes are
    idle before a wider one starts; the copies of each test and a run of each other one fit beside
    each other: of others no order of runs gives each its share. What shares and copies leave goes
    to tests with a weight, or to those that fill. Runs take some polls."""
    nodes = draw(st.sampled_from([6, 8, 12, 24]))
    tests: Tests = {}
    planned: dict[str, float] = {}
    left = 1.0
    for number in range(draw(st.integers(1, 3))):
        width, mean = draw(st.integers(1, nodes // 4)), draw(st.integers(60, 300))
        share, copies = draw(st.integers(10, 50)) / 100, draw(st.integers(0, 3))
        part: dict[str, Any] = {"share": share}
        if copies:
            part, share = {"copies": copies}, copies * width / nodes
        if share < left - 0.05:
            name, left = f"t{number}", left - share
            tests[name], planned[name] = (width, f"{mean}s", part), share
    rest = draw(st.sampled_from(["", "weight", "fill"])) if tests else "weight"
    parts = [draw(st.integers(1, 3)) for _ in range(draw(st.integers(1, 3)))] if rest else []
    for number, weight in enumerate(parts):
        name, mean = f"{rest}{number}", draw(st.integers(40, 120))
        width = 1 if rest == "fill" else draw(st.integers(1, min(2, nodes // 4)))
        tests[name] = (width, f"{mean}s", {"fill": True} if rest == "fill" else {"weight": weight})
        planned[name] = left / len(parts) if rest == "fill" else left * weight / sum(parts)
    assume(sum(width * part.get("copies", 1) for width, _, part in tests.values()) <= nodes)
    return nodes, tests, planned


@settings(max_examples=8, deadline=None)
@given(mixes(), st.integers(1, 100))
def test_of_any_mix_the_shares_are_those_of_the_plan(
    mix: tuple[int, Tests, dict[str, float]], seed: int
) -> None:
    """Within 5 points over 250 runs or more, with a reserve that lasts from poll to poll."""
    nodes, tests, planned = mix
    rate = sum(
        planned[name] * nodes / width / int(mean.removesuffix("s"))
        for name, (width, mean, _) in tests.items()
    )
    longest = max(int(mean.removesuffix("s")) for _, mean, _ in tests.values())
    hours = max(300 / rate, 20 * longest) / 3600
    reserve = max(3 * len(tests), math.ceil(2 * POLL_S * rate))
    with TemporaryDirectory() as folder:
        played = mixed(Path(folder), nodes, hours, tests, seed, reserve=reserve)
    found = shares(played)
    assert {each.test: each.planned for each in found.tests} == pytest.approx(planned)
    assert achieved(played) == pytest.approx(planned, abs=0.05)
    verdict, _ = played.rehearsed.criteria
    assert verdict.result.state == "met", verdict
