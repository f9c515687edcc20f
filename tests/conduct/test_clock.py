from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seatrial.conduct.clock import TrialClock

NS = 10**9


def test_it_stands_while_the_trial_is_paused() -> None:
    clock = TrialClock()
    clock.go(100 * NS)
    clock.stop(110 * NS)
    clock.stop(120 * NS)
    assert clock.elapsed(500 * NS) == 10
    assert clock.over_at(10) == 0  # it is over, whatever the time
    assert clock.over_at(20) is None
    clock.go(200 * NS)
    clock.go(205 * NS)  # a driver that died, and another one
    assert clock.elapsed(207 * NS) == 17
    assert (clock.start, clock.over_at(20)) == (100 * NS, 210 * NS)


@given(st.floats(0.001, 1e8), st.integers(1, 10**18), st.integers(0, 10**15))
def test_it_is_reached_exactly_when_it_says(seconds: float, start: int, ran: int) -> None:
    clock = TrialClock()
    clock.go(start)
    clock.stop(start + ran)
    clock.go(start + 2 * ran)
    when = clock.over_at(seconds)
    assert when is not None
    if when > start + 2 * ran:
        assert clock.elapsed(when) == round(seconds * NS) / NS
        assert clock.elapsed(when - 1) == (round(seconds * NS) - 1) / NS


def test_before_its_start_and_in_no_time_it_has_run_nothing() -> None:
    clock = TrialClock()
    assert (clock.start, clock.elapsed(5 * NS), clock.over_at(1)) == (0, 0, None)
    clock.go(100 * NS)
    clock.stop(100 * NS)
    assert clock.elapsed(100 * NS) == 0
    clock.go(200 * NS)
    clock.stop(190 * NS)  # the clock of the host stepped back
    assert clock.elapsed(200 * NS) == 0
