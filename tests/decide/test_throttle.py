"""Throttles with a target: starts follow the load."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import to_builtins
from msgspec.structs import replace

from seatrial.decide.admission import LoadLimit, ThrottleState
from seatrial.journal.events import GaugeRead, PolicyChanged
from seatrial.model.policy import Entry, Limits, Policy, ThrottleRule

from .world import NS, START, World, a_run

TARGET = 10.0


class LoadedWorld(World):
    """A machine whose gauge reads what runs hold open, and what others do (``others``: from a
    second on, so much)."""

    others: tuple[tuple[float, float], ...] = ((0, 0.0),)
    most = 0.0  # the highest load that was there at a start
    asked = 0.0  # the highest load of own runs

    def load(self) -> tuple[float, float]:
        own = sum(
            self.policy.entries[run.entry].opens
            for run in self.runs.values()
            if run.started is not None
        )
        now = (self.now - START) / NS
        return own, next(load for since, load in reversed(self.others) if since <= now)

    def _read_gauge(self, throttle: Any) -> None:
        value = sum(self.load())
        self.note(GaugeRead, gauge=throttle.gauge, value=value)
        self.read[throttle.gauge] = self.now
        self.values[throttle.gauge] = value
        self.closed[throttle.gauge] = value > throttle.target
        if value > throttle.target:
            self.closed_at.setdefault(throttle.gauge, self.now)
        else:
            self.closed_at.pop(throttle.gauge, None)
        self.at(20, self._read_gauge, throttle)

    def _check_start(self, run: Any) -> None:
        super()._check_start(run)
        own, others = self.load()
        own += self.policy.entries[run.entry].opens
        if self.read and self.now - max(self.read.values()) < 20 * NS and run.launched < self.now:
            self.asked = max(self.asked, own)
        self.most = max(self.most, own + others)


def world_of(
    opens: list[float],
    kind: Any = "once",
    repeat: int = 6,
    others: Any = ((0, 0.0),),
    nodes: int = 16,
    **more: Any,
) -> LoadedWorld:
    entries = [
        Entry(name=f"t{n}", opens=each, weight=1 / len(opens) if kind == "sustained" else 0)
        for n, each in enumerate(opens)
    ]
    policy = Policy(
        kind=kind,
        entries=entries,
        entry_of=list(range(len(opens))),
        nodes=nodes,
        duration=3000 if kind == "sustained" else 0,
        reserve=2 if kind == "sustained" else 0,
        throttles=[ThrottleRule(gauge="load", target=TARGET)],
    )
    cases = [a_run(n, f"t{n}", repeat=repeat) for n in range(len(opens))]
    world = LoadedWorld(cases, Limits(jobs=64), policy, **more)
    world.others = tuple(others)
    return world


@settings(
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    max_examples=15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    st.lists(st.sampled_from([0.1, 1.0, 2.5, 6.0, 10.0]), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(1, 900), st.sampled_from([0.0, 3.0, 9.5, 40.0])), max_size=4),
    st.integers(0, 1000),
)
def test_own_load_stays_below_the_target_and_all_runs_start_when_others_leave(
    opens: list[float], changes: list[tuple[int, float]], seed: int
) -> None:
    """Runs hold open what they declare, so what they add never exceeds what was left at the last
    reading; and as others leave at last, all runs are made."""
    others = [(0, 0.0), *sorted(changes), (1000, 0.0)]
    world = world_of(opens, others=others, seed=seed)
    world.go()
    assert len(world.verdicts) == 6 * len(opens)
    levels = [load for _, load in others]
    assert world.most <= TARGET + max(levels) + 1e-9
    if max(levels) == 0:
        assert world.most <= TARGET + 1e-9


def test_a_heavy_test_is_not_starved_by_light_ones_of_a_mix() -> None:
    world = world_of([9.0, 1.0, 1.0], "sustained")
    world.go()
    runs = Counter(launch.case for _, launch in world.launches)
    assert world.most <= TARGET
    assert runs[0] >= 10, runs
    assert world.asked > 5, "the target is used"


def test_what_was_recalled_and_what_ended_leaves_its_room() -> None:
    """Runs wait for two nodes when others come; they are recalled, and made when others leave."""
    world = world_of([1.0], repeat=20, nodes=2, others=[(0, 0.0), (70, 40.0), (200, 0.0)])
    world.go()
    assert world.recalls > 3
    assert len(world.verdicts) == 20
    (limit,) = world.conductor.state.admission.load_limits
    assert limit.since == 0


def test_a_target_that_a_change_brings_counts_what_is_in_flight() -> None:
    world = world_of([1.0], repeat=20, nodes=2)
    rule = world.policy.throttles[0]
    world.first_policy = world.policy = replace(world.policy, throttles=[])
    world.conductor = world._new()
    state = world.conductor.state

    def change() -> None:
        world.policy = replace(world.policy, throttles=[rule])
        world.note(PolicyChanged, parts={"throttles": [to_builtins(rule)]})
        (limit,) = state.admission.load_limits
        assert limit.since == len(state.in_flight) > 2, "no reading shows any of them"
        world._read_gauge(rule)
        (limit,) = state.admission.load_limits
        assert limit.since == len(state.queued) > 0
        raise Looked

    world.at(30, change)
    with pytest.raises(Looked):
        world.go()


class Looked(Exception):
    """The test has seen what it wanted."""


def test_a_run_counts_until_a_reading_can_have_its_load() -> None:
    rule = ThrottleRule(gauge="load", target=TARGET, settle=30)
    state = ThrottleState(rule)
    limit = LoadLimit(state, [Entry(name="t", opens=4), Entry(name="l", opens=2, io="light")])

    def read(second: float, value: float, took: float = 0.0) -> float:
        state.apply(GaugeRead(time=round(second * NS), gauge="load", value=value, seconds=took))
        limit.read()
        return limit.room(round(second * NS), NS)

    assert read(1, 1.0) == 9
    limit.launch("a", 0)
    limit.launch("b", 1)
    assert limit.room(NS, NS) == 3, "both wait"
    assert (limit.fits(0, 3), limit.fits(1, -7)) == (False, True)
    limit.started("a", 10 * NS)
    assert read(20, 1.0) == 3, "a has not settled"
    assert read(45, 5.0, took=6) == -1, "the reading began before it had"
    assert limit.excess(45 * NS, NS) == set(), "nothing that waits can be held back"
    assert read(46, 5.0) == 3, "the reading has a; b waits still"
    limit.launch("c", 0)
    assert limit.excess(46 * NS, NS) == {"c"}
    assert limit.room(46 * NS, 47 * NS) == float("inf"), "what was read before a pause says nothing"
    limit.ended("b")
    limit.ended("nobody's")
    assert (limit.since, limit.excess(46 * NS, NS)) == (4, set())


@pytest.mark.parametrize("on_failure", ["open", "closed"])
def test_a_reading_that_is_old_or_from_before_a_pause_does_not_count(on_failure: Any) -> None:
    rule = ThrottleRule(gauge="load", target=TARGET, on_failure=on_failure, stale_after=60)
    state = ThrottleState(rule)
    is_closed = on_failure == "closed"
    assert state.closed(NS, NS) is is_closed
    state.apply(GaugeRead(time=NS, gauge="load", value=TARGET + 1 - 2 * is_closed))
    assert state.closed(2 * NS, NS) is not is_closed
    assert state.closed(61 * NS, NS) is is_closed
    assert state.closed(5 * NS, 4 * NS) is is_closed
    assert on_failure in state.trouble(61 * NS, NS)


@pytest.mark.parametrize(
    "limits", [{}, {"high": 3}, {"low": 1}, {"high": 3, "low": 1, "target": 2}]
)
def test_a_rule_has_one_form(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="high and low, or a target"):
        ThrottleRule(gauge="load", **limits)
