"""Tests by share that have too few runs in flight: when that is told, and when it is normal."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from seatrial.decide.conductor import Conductor
from seatrial.journal.events import (
    BuildEnded,
    BuildStarted,
    Event,
    GaugeRead,
    JobEnded,
    JobQueued,
    JobStarted,
    RunJudged,
    RunSubmitted,
    TrialStarted,
)
from seatrial.model.codes import PASS
from seatrial.model.policy import Entry, Limits, Policy, ThrottleRule, WatchLimits

from .world import a_run

NS = 10**9
SHORT = "short"


class Half:
    """Two tests of one node with half of 16 nodes each: eight runs of each are expected."""

    def __init__(self, *, build: str = "", watch: WatchLimits | None = None, **more: Any) -> None:
        entries = [Entry(name=name, weight=0.5, **more.pop(name, {})) for name in "ab"]
        policy = Policy(
            kind="sustained",
            entries=entries,
            entry_of=[0, 1],
            duration=1e6,
            nodes=16,
            watch=watch or WatchLimits(short_for=600, silent_for=1800),
            **more,
        )
        cases = [a_run(0, "a", build=build), a_run(1, "b")]
        cases = [replace(case, walltime=7200.0) for case in cases]
        self.conductor = Conductor("tag", cases, Limits(), policy)
        self.runs = 0
        self.note(1, TrialStarted)

    def note(self, time: float, kind: type[Event], /, run_id: str = "", **more: Any) -> None:
        if run_id:
            case = "case0" if run_id[0] == "a" else "case1"
            more |= {"run_id": run_id, "case": case}
        self.conductor.apply(kind(time=round(time * NS), **more))

    def go(self, time: float, test: str, runs: int, *, starts: bool = True) -> list[str]:
        """Launch runs of a test."""
        ids = []
        for _ in range(runs):
            self.runs += 1
            ids.append(f"{test}{self.runs}")
            self.note(time, RunSubmitted, ids[-1])
            self.note(time, JobQueued, ids[-1])
            if starts:
                self.note(time, JobStarted, ids[-1], nodes=f"n{self.runs}")
        return ids

    def end(self, time: float, *ids: str) -> None:
        for run_id in ids:
            self.note(time, JobEnded, run_id, nodes="n1", code=0)
            self.note(time, RunJudged, run_id, code=PASS.number)

    def alerts(self, time: float) -> dict[str, str]:
        found = self.conductor.decide(round(time * NS)).alerts
        return {each.subject: each.text for each in found if each.kind == SHORT}

    def kinds(self, time: float) -> set[str]:
        return {each.kind for each in self.conductor.decide(round(time * NS)).alerts}


def test_where_half_of_the_runs_are_missing_and_nodes_are_idle_that_is_told_in_time() -> None:
    half = Half()
    half.go(10, "b", 8)
    half.go(10, "a", 3)
    assert half.alerts(609) == {}
    text = "a: 3 in flight instead of 8 for more than 10 m 0 s"
    assert half.alerts(610) == {"a": text}
    half.go(620, "a", 1)
    assert half.alerts(9999) == {}, "half of them are there"


def test_where_others_are_launched_in_its_place_that_is_told_on_a_full_machine() -> None:
    half = Half()
    half.go(10, "a", 1)
    half.go(10, "b", 15)
    assert half.alerts(610) == {"a": "a: 1 in flight instead of 8 for more than 10 m 0 s"}


def test_that_no_nodes_are_free_for_it_is_normal_until_another_is_launched() -> None:
    half = Half(build="k")
    ids = half.go(10, "b", 16)
    half.note(100, BuildEnded, key="k", code=0)
    assert half.alerts(5000) == {}
    half.end(5000, ids[0])
    half.go(5000, "b", 1)
    assert half.alerts(5599) == {}
    assert set(half.alerts(5600)) == {"a"}


def test_a_run_that_waits_at_the_scheduler_is_no_shortage() -> None:
    half = Half()
    half.go(10, "b", 15)
    half.go(10, "a", 1, starts=False)
    assert half.alerts(9999) == {}


def test_it_is_not_short_while_its_first_build_goes_on() -> None:
    half = Half(build="k")
    half.note(2, BuildStarted, key="k")
    half.go(10, "b", 8)
    assert half.alerts(5000) == {}
    half.note(5000, BuildEnded, key="k", code=0)
    assert half.alerts(5599) == {}
    assert set(half.alerts(5600)) == {"a"}


def test_it_is_not_short_while_a_throttle_holds_it_back() -> None:
    rule = ThrottleRule(gauge="load", high=10, low=5, stale_after=1e6)
    half = Half(throttles=[rule], b={"io": "light"})
    half.note(2, GaugeRead, gauge="load", value=50.0)
    half.go(10, "b", 8)
    assert half.alerts(5000) == {}
    half.note(5000, GaugeRead, gauge="load", value=1.0)
    assert half.alerts(5599) == {}
    assert set(half.alerts(5600)) == {"a"}


def test_nothing_happens_is_told_by_how_long_runs_take() -> None:
    half = Half()
    ids = half.go(10, "b", 8) + half.go(10, "a", 8)
    assert half.kinds(10 + 7200 + 1799) == set(), "they may take 7,200 s"
    assert half.kinds(10 + 7200 + 1800) == {"silent"}
    half.end(3000, ids[0])
    half.go(3000, "b", 1)
    assert half.kinds(3000 + 2990 + 1799) == set(), "such a run took 2,990 s"
    assert half.kinds(3000 + 2990 + 1800) == {"silent"}


def test_nothing_happens_is_not_told_while_a_build_goes_on() -> None:
    half = Half(build="k")
    half.note(2, BuildStarted, key="k")
    half.go(10, "b", 1)
    assert "silent" not in half.kinds(99999)


def test_on_a_full_machine_runs_may_wait_as_long_as_others_run() -> None:
    watch = WatchLimits(wait_factor=5, wait_least=600)
    half = Half(watch=watch)
    half.go(10, "b", 16)
    half.go(10, "a", 1, starts=False)
    assert half.kinds(7209) == set()
    assert half.kinds(7210) == {"wait"}
    idle = Half(watch=watch)
    idle.go(10, "b", 8)
    idle.go(10, "a", 1, starts=False)
    assert idle.kinds(609) == set()
    assert idle.kinds(610) == {"wait"}
