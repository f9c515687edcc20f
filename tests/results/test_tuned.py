"""What a tuning found: intervals that bound nothing, and the price of its advice."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec.structs import replace

from seatrial.decide.race import Race, SettingInterval
from seatrial.model.policy import RaceRules
from seatrial.results.tuned import (
    FigureRatio,
    RaceBlock,
    Tuned,
    TunedSetting,
    _shown,
    advice,
    cost_text,
    interval_text,
)

RACE = Race(RaceRules(levels=[[0], [1]], default=0))


def shown(low: float, high: float) -> str:
    found = _shown(RACE, SettingInterval(math.log(1.594), low, high, 3))
    assert found is not None
    return interval_text(found)


def test_an_interval_beyond_a_factor_of_1000_is_unknown() -> None:
    assert shown(-85.0, 85.0) == "unknown"
    assert shown(-math.inf, math.inf) == "unknown"
    assert shown(math.log(1.2), math.inf) == "1.200 to ?"
    assert shown(math.log(1.2), math.log(2.0)) == "1.200 to 2.000"


def test_advice_has_its_price() -> None:
    """A setting that is 14 % faster on twice the nodes takes 71 % more node-hours."""
    default = TunedSetting(
        number=0,
        values={"per_node": 4},
        state="in the race",
        is_default=True,
        n=4,
        nodes=2,
        node_hours=0.2,
    )
    best = TunedSetting(
        number=1,
        values={"per_node": 2},
        state="best",
        n=4,
        to_default=FigureRatio(0.857, 0.85, 0.87, 4),
        nodes=4,
        node_hours=0.3428,
    )
    found = Tuned(
        trial="t",
        tune="t",
        test="psoci",
        machine="m",
        search="race",
        metric="phase1",
        unit="s",
        better="lower",
        least=0.02,
        complete=True,
        settings=[default, best],
        blocks=[],
        figures=[],
        best=1,
        advised=1,
        runs=8,
        grid_runs=8,
        most_runs=8,
        node_hours=2.0,
        grid_node_hours=2.0,
        untried={},
        script=[],
    )
    use, price = advice(found)
    assert use.startswith("use per_node=2: 0.857 times the phase1 of the default")
    assert "by the rounds" not in use
    assert "by the rounds" in advice(replace(found, by_rounds=True))[0]
    assert price == (
        "a run of per_node=2 takes 4 nodes, one of the default 2; 0.3428 node-hours, the default "
        "0.2 (+71.4 %)"
    )
    untimed = replace(found, settings=[replace(default, node_hours=None), best])
    assert len(advice(untimed)) == 1, "a price needs the times of both"


def a_tuning(*settings: TunedSetting, **changes: Any) -> Tuned:
    """A race of these settings, the last of which is the best."""
    given: dict[str, Any] = {
        **dict.fromkeys(("trial", "tune", "test", "machine", "unit"), "t"),
        "search": "race",
        "metric": "time",
        "better": "lower",
        "least": 0.02,
        "complete": True,
        "settings": list(settings),
        "blocks": [],
        "figures": [],
        "best": len(settings) - 1,
        "advised": len(settings) - 1,
        **dict.fromkeys(("runs", "grid_runs", "most_runs", "node_hours", "grid_node_hours"), 0),
        "untried": {},
        "script": [],
    }
    return Tuned(**(given | changes))


def a_setting(number: int, **changes: Any) -> TunedSetting:
    given: dict[str, Any] = {"number": number, "values": {"way": number}, "state": "in the race"}
    return TunedSetting(**(given | changes))


DEFAULT = a_setting(0, is_default=True, n=5)
FASTER = a_setting(1, state="best", to_default=FigureRatio(0.8, 0.7, 0.9, 4))
FAILED = a_setting(2, state="failed", cause="exit code 7", runs=1)
BROKEN_DEFAULT = a_setting(0, is_default=True, state="failed", cause="exit code 7", runs=1)


@pytest.mark.parametrize(
    ("found", "first"),
    [
        (a_tuning(DEFAULT, FASTER), "use way=1: 0.800 times the time of the default"),
        (a_tuning(BROKEN_DEFAULT, FASTER), "use way=1: the default (way=0) failed: exit code 7"),
        (a_tuning(DEFAULT, FASTER, advised=0), "keep the default: no setting is shown to be bet"),
        (a_tuning(FASTER, DEFAULT), "keep the default: no setting is shown to be better than it"),
        (a_tuning(FASTER), "keep the default: no setting is shown to be better than it by more"),
        (a_tuning(DEFAULT, a_setting(1)), "use way=1; it has no round in common with the default"),
        (a_tuning(DEFAULT, best=None, advised=None), "no setting has a figure"),
        (a_tuning(DEFAULT, search="largest", best=None), "no size was tried yet"),
        (a_tuning(FAILED, search="largest", best=None), "no size works"),
        (a_tuning(replace(FAILED, runs=0), search="largest", best=None), "no size was tried yet"),
        (a_tuning(FASTER, search="largest"), "the largest size that works is way=1, the largest o"),
        (a_tuning(FAILED, FASTER, search="largest"), "the largest size that works is way=1; way=2"),
    ],
)
def test_the_advice_says_which_setting_to_use(found: Tuned, first: str) -> None:
    assert advice(found)[0].startswith(first)


def test_the_advice_says_what_is_not_sure() -> None:
    told = advice(a_tuning(DEFAULT, FASTER, advised=0))[0]
    assert "(n = 4); the nearest, way=1, has 0.800 times" in told
    assert advice(a_tuning(DEFAULT, a_setting(1), advised=0))[0].endswith(" (n = 5)")
    found = a_tuning(
        replace(DEFAULT, untold=True),
        FASTER,
        complete=False,
        blocks=[
            RaceBlock(rounds=2, settings=[0, 1], nodes=["n1"]),
            RaceBlock(rounds=2, settings=[0, 1], nodes=["n1", "n2"]),
        ],
    )
    _, untold, nodes, going_on = advice(found)
    assert untold == "cannot be told from the best: way=0"
    assert nodes.startswith("block 2 ran on different nodes (n1, n2)")
    assert going_on.startswith("the race is not over")


def test_what_a_tuning_cost_stands_beside_the_grid() -> None:
    found = a_tuning(FASTER, runs=3, grid_runs=12, node_hours=1.5, grid_node_hours=6.0)
    assert cost_text(found).startswith("3 runs, 25 % of the grid's 12; 1.5 node-hours, about 25%")
    assert "node-hours" not in cost_text(replace(found, grid_node_hours=0.0))
    assert cost_text(replace(found, grid_runs=0)).startswith("3 runs, ? of")
