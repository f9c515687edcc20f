"""What a tuning found: intervals that bound nothing, and the price of its advice."""

from __future__ import annotations

import math

from seatrial.conduct.race import Race, SettingInterval
from seatrial.conduct.race_rules import RaceRules
from seatrial.studies.advice import advice, interval_text
from seatrial.studies.tuned import FigureRatio, Tuned, TunedSetting, _shown

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
    assert price == (
        "a run of per_node=2 takes 4 nodes, one of the default 2; 0.3428 node-hours, the default "
        "0.2 (+71.4 %)"
    )
