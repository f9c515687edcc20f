"""Throttles with a target in virtual time, and gauges that a rehearsal samples."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from seatrial.journal.events import GaugeRead, RunSubmitted

from .stage import Played, Stage

TARGET = 100


def rehearsed(folder: Path, throttle: dict[str, Any], gauge: dict[str, Any], **more: Any) -> Played:
    """Two tests whose runs hold 10 and 25 files open, beside 30 of others."""
    stage = Stage(folder, nodes=32)
    system = {"metadata": 1000, "production": [{"from": 0, "load": 30}]}
    stage.machine["file_systems"] = {"fs": {"path": "/fs", "targets": ["m0"], "rehearsal": system}}
    stage.machine["gauges"] = {"files": {"command": "true", "every": "20s", **gauge}}
    for name, opens in (("small", 10), ("large", 25)):
        stage.test(name)
        stage.behave(name, elapsed={"mean": "3m", "sd": "20s"})
        more.setdefault("tests", {})[name] = {"opens": opens}
    stage.component(
        "c",
        kind="sustained",
        duration="2h",
        file_system="fs",
        throttles=[{"gauge": "files", **throttle}],
        **more,
    )
    return stage.play()


def test_a_target_is_kept_and_used_where_a_switch_overshoots(tmp_path: Path) -> None:
    gauge = {"rehearsal": "fs"}
    limits = [{"criterion": "gauge", "gauge": "files", "at_most": TARGET}]
    follows = rehearsed(tmp_path / "a", {"target": TARGET, "settle": "30s"}, gauge, criteria=limits)
    read = [event.value or 0 for event in follows.of(GaugeRead)]
    assert 90 <= max(read) <= TARGET
    switch = {"high": TARGET, "low": 60}
    overshoots = rehearsed(tmp_path / "b", switch, gauge, criteria=limits)
    assert max(event.value or 0 for event in overshoots.of(GaugeRead)) > 2 * TARGET
    states = [
        next(each.result.state for each in played.rehearsed.criteria if "gauge" in each.label)
        for played in (follows, overshoots)
    ]
    assert states == ["met", "not met"]
    runs = [sum(event.test == name for event in follows.of(RunSubmitted)) for name in TESTS]
    assert min(runs) > 10, "neither starves"


TESTS = ("small", "large")


@pytest.mark.parametrize("form", [{"target": 60, "settle": 0}, {"high": 60, "low": 40}])
def test_a_gauge_that_reads_nothing_is_told(tmp_path: Path, form: dict[str, Any]) -> None:
    """With a target it reads what the trial's own runs declare."""
    played = rehearsed(tmp_path, form, {})
    read = [event.value or 0 for event in played.of(GaugeRead)]
    remark = " ".join(played.rehearsed.remarks)
    if "target" in form:
        assert "taken to read what the trial's own runs declare: files" in remark
        assert 50 <= max(read) <= 60
    else:
        assert "taken as open: throttles by files" in remark
        assert set(read) == {40}


def test_a_gauge_that_is_sampled_is_read_each_time(tmp_path: Path) -> None:
    played = rehearsed(tmp_path, {"high": 1000, "low": 900}, {"rehearsal": "fs"}, gauges=["files"])
    read = [event.time for event in played.of(GaugeRead)]
    assert {b - a for a, b in pairwise(read)} == {20 * 10**9}
