"""What a tuning found, where the rounds bound nothing."""

from __future__ import annotations

import math

from seatrial.conduct.race import Race, SettingInterval
from seatrial.conduct.race_rules import RaceRules
from seatrial.studies.advice import interval_text
from seatrial.studies.tuned import _shown

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
