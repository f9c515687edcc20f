"""Runs that share an allocation, in virtual time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from seatrial.journal.events import JobEnded, JobStarted, RunJudged, RunSubmitted
from tests.plugins.rehearsal.stage import Played, Stage, since


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    stage.component("c", kind="once")
    return stage


def shares(stage: Stage, behaviour: dict[str, Any], **run: Any) -> None:
    about = {"script": "true", "nodes": 2, "walltime": "2m", **run}
    stage.test("work", parameters={"v": ["a", "b", "c"]}, repeat=4, run=about)
    stage.behave("work", **behaviour)


def each_has_one_end(played: Played, runs: int) -> None:
    final = [event for event in played.of(RunJudged) if not event.will_rerun]
    assert len(final) == runs
    assert len({event.run_id for event in played.of(RunJudged)}) == len(played.of(RunJudged))


def test_runs_take_turns_on_the_same_nodes(stage: Stage) -> None:
    shares(stage, {"elapsed": "1m"}, within="allocation")
    played = stage.play()
    each_has_one_end(played, 12)
    assert len({event.submission for event in played.of(RunSubmitted)}) == 1
    assert len({event.nodes for event in played.of(JobStarted)}) == 1
    assert [since(event) for event in played.of(JobStarted)] == [60.0 * n for n in range(12)]
    cases = [event.case for event in played.of(JobStarted)]
    assert all(len(set(cases[start : start + 3])) == 3 for start in range(0, 12, 3))


def test_a_run_that_hangs_is_ended_at_its_own_walltime(stage: Stage) -> None:
    shares(stage, {"elapsed": "1m", "hangs": 1.0}, within="allocation")
    played = stage.play()
    each_has_one_end(played, 12)
    ends = [since(event) for event in played.of(JobEnded) if event.nodes]
    assert ends[:3] == [120.0, 240.0, 360.0]
    assert set(played.verdicts()) <= {"timeout", "recalled"}  # as nodes are excluded


def test_pieces_run_beside_each_other(stage: Stage) -> None:
    shares(stage, {"elapsed": "1m"}, nodes=1, pieces=8, at_once="node.cores")
    played = stage.play()
    each_has_one_end(played, 96)
    starts = Counter(since(event) for event in played.of(JobStarted))
    assert starts == {60.0 * n: 8 for n in range(12)}


def test_a_dead_node_takes_one_run_with_it(stage: Stage) -> None:
    shares(stage, {"elapsed": "1m"}, within="allocation")
    stage.machine["rehearsal"] |= {"node_failures": "20m", "repair": "10m"}
    played = stage.play()
    each_has_one_end(played, 12)
    verdicts = played.verdicts()
    assert verdicts["pass"] == 12
    assert verdicts["node failure"] >= 1
    assert len({event.submission for event in played.of(RunSubmitted)}) >= 3
