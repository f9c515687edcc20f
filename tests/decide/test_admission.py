"""Caps and the rest are in test_policies.py; here are the single parts of admission."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from seatrial.decide.admission import (
    STALE_NS,
    Admission,
    Gates,
    Targets,
    ThrottleState,
    TokenBucket,
)
from seatrial.decide.in_flight import InFlightCounts, ResourceRequest
from seatrial.journal.events import GaugeRead, RunSubmitted, TestAdmitted, TestStopped
from seatrial.journal.trial import Trial
from seatrial.model.policy import (
    Caps,
    Entry,
    Limits,
    Placement,
    Policy,
    PolicyTarget,
    RateLimit,
    Window,
)
from seatrial.model.policy import ThrottleRule as About

from .world import World, a_run

NS = 10**9


def gates_of(policy: Policy) -> Admission:
    admission = Admission(policy, Trial(lambda event: None))
    admission.go(100 * NS, 100 * NS)
    return admission


ENTRIES = [Entry(name="heavy", io="heavy"), Entry(name="light", io="light"), Entry(name="other")]


def test_gates_hold_until_the_clock_changes_them() -> None:
    blackouts = [Window(start=10, end=20, entries=[1]), Window(start=15, end=30)]
    admission = gates_of(Policy(entries=ENTRIES, blackouts=blackouts))
    seen: list[Gates] = []
    for second in range(100, 135):
        now = second * NS
        gates = admission.gates(now)
        anew = gates_of(admission.policy).gates(now)
        assert (gates.held, gates.next_hold) == (anew.held, anew.next_hold)
        if not seen or seen[-1] is not gates:
            seen.append(gates)
    said = [
        (g.start // NS, sorted(g.held), *((t and t // NS) for t in (g.next_hold, g.next_start)))
        for g in seen
    ]
    assert said == [
        (100, [], 110, 120),
        (110, [1], 115, 120),
        (115, [0, 1, 2], None, 120),
        (120, [0, 1, 2], None, 130),
        (130, [], None, None),
    ]
    assert admission.gates(112 * NS).held == {1}, "asked of an earlier time"


def test_a_blackout_of_some_nodes_holds_no_entry_but_changes_what_may_start() -> None:
    admission = gates_of(Policy(entries=ENTRIES, blackouts=[Window(start=10, end=20, nodes="n1")]))
    for second, next_hold, next_start in ((100, 110, 120), (110, None, 120), (120, None, None)):
        gates = admission.gates(second * NS)
        assert gates.held == set()
        assert gates.next_hold == (next_hold and next_hold * NS)
        assert gates.next_start == (next_start and next_start * NS)


def test_what_is_stopped_or_throttled_is_held() -> None:
    throttles = [About(gauge="load", high=10, low=5, on_failure="closed", stale_after=60)]
    admission = gates_of(Policy(entries=ENTRIES, throttles=throttles))
    assert admission.gates(101 * NS).held == {0, 2}, "no reading yet"
    admission.gauge(reading(102, 1.0))
    read = admission.gates(102 * NS)
    assert (read.held, read.next_hold, read.next_start) == (frozenset(), 162 * NS, 162 * NS)
    admission.apply(TestStopped(test=ENTRIES[1].name, reason="wrong answers"))
    assert admission.gates(102 * NS).held == {1}
    assert admission.gates(161 * NS).failing == []
    stale = admission.gates(162 * NS)
    assert (stale.held, stale.failing) == (frozenset({0, 1, 2}), admission.throttles)
    admission.apply(TestAdmitted(test=ENTRIES[1].name))
    admission.gauge(reading(163, 11.0))
    assert admission.gates(163 * NS).held == {0, 2}
    admission.gauge(reading(164, 4.0))
    assert admission.gates(164 * NS).held == set()


def test_a_bucket_starts_full_and_fills_evenly() -> None:
    bucket = TokenBucket(RateLimit(starts=3, per=10))
    now = 100 * NS
    assert (bucket.whole(now), bucket.next(now)) == (3, now)
    for _ in range(3):
        bucket.take(now)
    third = bucket.next(now)
    assert third == now + -(-10 * NS // 3)
    assert (bucket.whole(third - 1), bucket.whole(third)) == (0, 1)
    assert bucket.next(now, 1) == now + -(-20 * NS // 3)
    assert bucket.whole(now + 1000 * NS) == 3


@pytest.mark.parametrize(("entry", "left"), [(0, 2), (1, 3), (2, 2)])
def test_light_runs_take_nothing_from_the_bucket(entry: int, left: int) -> None:
    admission = gates_of(Policy(entries=ENTRIES, stagger=RateLimit(starts=3, per=1000)))
    admission.launch(entry, RunSubmitted(time=100 * NS))
    assert admission.bucket is not None
    assert admission.bucket.whole(100 * NS) == left


@pytest.mark.parametrize(
    "gate",
    [
        {"caps": Caps(machine=1)},
        {"stagger": RateLimit(starts=1, per=1)},
        {"throttles": [About(gauge="load", high=10, low=5)]},
        {"targets": [PolicyTarget(name="fs/0", file_system="fs", safe=5)]},
        {"blackouts": [Window(start=10, end=20)]},
    ],
    ids=str,
)
def test_each_kind_of_gate_may_hold_a_launch(gate: dict[str, Any]) -> None:
    assert gates_of(Policy(entries=ENTRIES)).lets_all
    assert not gates_of(Policy(entries=ENTRIES, **gate)).lets_all


def reading(time: int, value: float | None) -> GaugeRead:
    return GaugeRead(time=time * NS, gauge="load", value=value)


def test_a_throttle_has_hysteresis() -> None:
    throttle = ThrottleState(About(gauge="load", high=10, low=5))
    found = []
    for time, value in enumerate([7, 10, 11, 9, 5, 4.9, 7], 1):
        throttle.apply(reading(time, value))
        found.append(throttle.closed(time * NS, 1))
    assert found == [False, False, True, True, True, False, False]


@pytest.mark.parametrize("bad", [None, float("nan"), float("inf"), -(10**400)])
def test_a_gauge_that_fails_is_told_and_falls_back_when_its_reading_is_old(
    bad: float | None,
) -> None:
    for falls_back in ("open", "closed"):
        about = About(gauge="load", high=10, low=5, on_failure=falls_back, stale_after=60)
        throttle = ThrottleState(about)
        assert throttle.closed(NS, NS) is (falls_back == "closed")
        throttle.apply(reading(1, 3 if falls_back == "closed" else 12))
        throttle.apply(reading(2, bad))
        assert "what it said last holds" in throttle.trouble(2 * NS, NS)
        assert throttle.closed(60 * NS, NS) is (falls_back == "open")
        assert throttle.stale_at(NS) == 61 * NS
        assert throttle.closed(61 * NS, NS) is (falls_back == "closed")
        assert falls_back in throttle.trouble(61 * NS, NS)
        assert not throttle.failing(61 * NS, 30 * NS)  # nobody read it in a pause until then


def placed(placement: Placement, runs: int, opens: float = 1, caps: Caps | None = None) -> str:
    """The targets that so many runs get."""
    entries = [Entry(name="t", file_system="fs", opens=opens)]
    weights = {"a": 2.0, "b": 1.0, "c": 1.0}
    each = [PolicyTarget(name=n, file_system="fs", weight=w, safe=8) for n, w in weights.items()]
    targets, counts, found = Targets(each, placement, caps or Caps()), InFlightCounts(entries), ""
    for _ in range(runs):
        target = targets.choose(entries[0], counts)
        if target is None:
            return found
        found += target
        targets.place(target)
        counts.launch(ResourceRequest(0, 1, 0, 1), target)
    return found


def test_targets_take_turns_or_are_taken_by_weight_or_by_load() -> None:
    assert placed("round_robin", 6) == "abcabc"
    assert Counter(placed("weighted", 8)) == {"a": 4, "b": 2, "c": 2}
    assert placed("least_loaded", 3) == "abc"
    assert Counter(placed("least_loaded", 8)) == {"a": 4, "b": 2, "c": 2}
    assert Counter(placed("least_loaded", 8, opens=0)) == {"a": 4, "b": 2, "c": 2}


def test_a_target_is_never_loaded_beyond_what_is_safe() -> None:
    assert Counter(placed("weighted", 99)) == {"a": 8, "b": 8, "c": 8}
    assert Counter(placed("weighted", 99, caps=Caps(per_target=3))) == {"a": 3, "b": 3, "c": 3}
    assert len(placed("round_robin", 99, opens=0.8)) == 30  # ten times 0.8 is 8, also in floats


def test_the_load_of_targets_as_gauges_read_it_drives_placement() -> None:
    entries = [Entry(name="t", file_system="fs", opens=10)]
    each = [PolicyTarget(name=n, file_system="fs", gauge=f"g{n}") for n in "ab"]
    targets, counts = Targets(each, "least_loaded", Caps()), InFlightCounts(entries)

    def next_runs(runs: int) -> str:
        found = ""
        for _ in range(runs):
            target = targets.choose(entries[0], counts)
            assert target is not None
            targets.place(target, 10)
            counts.launch(ResourceRequest(0, 1, 0, 1), target)
            found += target
        return found

    assert next_runs(2) == "ab"
    targets.read(GaugeRead(time=1, gauge="ga", value=95.0))
    assert next_runs(2) == "ab", "one reading alone says nothing"
    targets.read(GaugeRead(time=2, gauge="gb", value=60.0))
    assert next_runs(6) == "bbbbba", "those that were placed since count"
    targets.read(GaugeRead(time=3, gauge="gb", reason="it gave no number"))
    assert next_runs(2) == "aa", "by the runs in flight: 30 and 70"
    targets.read(GaugeRead(time=3, gauge="gb", value=0.0))
    assert next_runs(1) == "b"
    targets.read(GaugeRead(time=3 + STALE_NS, gauge="gb", value=0.0))
    assert next_runs(1) == "a", "the reading of a is old"
    targets.read(GaugeRead(time=4 + STALE_NS, gauge="ga", value=1.0))
    assert next_runs(1) == "b"
    targets.forget()
    assert next_runs(1) == "a"


def test_a_target_that_was_full_has_no_turns_to_make_up_for() -> None:
    targets = Targets(
        [PolicyTarget(name=n, file_system="fs") for n in "ab"], "round_robin", Caps(per_target=5)
    )
    entries = [Entry(name="t", file_system="fs")]
    counts = InFlightCounts(entries)
    counts.on_target["a"] = 5
    for _ in range(4):
        target = targets.choose(entries[0], counts)
        assert target == "b"
        targets.place(target)
    counts.on_target["a"] = 0
    found = ""
    for _ in range(8):
        target = targets.choose(entries[0], counts)
        assert target is not None
        targets.place(target)
        found += target
    assert abs(found.count("a") - found.count("b")) <= 2


def test_the_reasons_of_a_hold_are_said_where_there_are_any() -> None:
    windows = [Window(start=0, end=20, reason="cooling", nodes="n1"), Window(start=0, end=30)]
    admission = gates_of(Policy(entries=ENTRIES, blackouts=windows))
    admission.apply(TestStopped(test=ENTRIES[1].name))
    first, second, third = admission.why_held(101 * NS).split("; ")
    assert ("n1" in first, "cooling" in first) == (True, True)
    assert not set("()") & set(second)
    assert "light" in third


def test_the_first_run_on_a_capped_file_system_may_start() -> None:
    entries = [Entry(name="t0", file_system="scratch")]
    policy = Policy(entries=entries, entry_of=[0], caps=Caps(file_systems={"scratch": 1}))
    world = World([a_run(0, "t0", repeat=3)], Limits(), policy).go()
    assert len(world.launches) == 3
