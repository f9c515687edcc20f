"""A sustained mix on a machine where nothing goes wrong: full, fair, and nobody starves."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from seatrial.journal.events import (
    JobEnded,
    JobStarted,
    RunCreated,
    RunSubmitted,
    TestAdmitted,
    TestStopped,
    TrialStarted,
)
from seatrial.model.policy import Entry, Limits, Policy

from .world import NS, START, World, a_run


def mixed(
    sizes: list[int], nodes: int, hours: float, limits: Limits | None = None, **entries: list[Any]
) -> World:
    """A mix of a test for each size, each with its values; runs take half a minute on the mean."""
    each = [
        Entry(name=f"t{n}", **{key: values[n] for key, values in entries.items()})
        for n in range(len(sizes))
    ]
    policy = Policy(
        kind="sustained",
        entries=each,
        entry_of=list(range(len(sizes))),
        duration=hours * 3600,
        nodes=nodes,
        reserve=3,
    )
    cases = [a_run(n, f"t{n}", size) for n, size in enumerate(sizes)]
    return World(cases, limits or Limits(), policy)


def node_seconds(world: World) -> Counter[int]:
    """What each entry had of the machine."""
    had: Counter[int] = Counter()
    began: dict[str, int] = {}
    for event in world.events:
        if isinstance(event, JobStarted):
            began[event.run_id] = event.time
        elif isinstance(event, JobEnded):
            number = world.conductor.state.index[event.case]
            had[number] += world.cases[number].nodes * (event.time - began[event.run_id])
    return had


def most_in_flight(world: World, since: int = START) -> int:
    """The highest number of runs in flight after a time."""
    flying = most = 0
    for event in world.events:
        flying += isinstance(event, RunSubmitted) - isinstance(event, JobEnded)
        most = max(most, flying) if event.time > since else most
    return most


@pytest.mark.parametrize(("nodes", "hours", "least"), [(32, 1, 0.45), (128, 0.25, 0.45)])
@settings(max_examples=2, deadline=None, phases=[Phase.generate])
@given(tests=st.lists(st.tuples(st.integers(1, 8), st.integers(1, 5)), min_size=2, max_size=5))
def test_weights_are_the_shares_of_node_hours(
    nodes: int, hours: float, least: float, tests: list[tuple[int, int]]
) -> None:
    """Small runs get more than their share, as nothing else fits into the gaps between large ones;
    where few runs fit at a time one more or less of a small share is much. So what holds of every
    mix is what a test has at least of its share: in 650 mixes of these two kinds it was 0.59 or
    more, in one of 150 below 0.65."""
    sizes, weights = [size for size, _ in tests], [float(weight) for _, weight in tests]
    world = mixed(sizes, nodes, hours, weight=weights).go()
    had = node_seconds(world)
    for number, weight in enumerate(weights):
        assert had[number] / had.total() > least * weight / sum(weights)
    assert had.total() > 0.85 * nodes * hours * 3600 * NS


def test_shares_are_exact_where_many_runs_of_a_size_fit() -> None:
    had = node_seconds(mixed([2, 2, 2, 2], 128, 0.5, weight=[5, 3, 1, 1]).go())
    shares = [had[number] / had.total() for number in range(4)]
    assert shares == pytest.approx([0.5, 0.3, 0.1, 0.1], abs=0.02)


def test_copies_are_kept_in_flight_and_the_rest_fills_up() -> None:
    world = mixed([8, 2, 1], 32, 0.5, copies=[2, 0, 0], most=[2, 0, 0], weight=[0.5, 0.5, 0]).go()
    flying, least = 0, 2
    for event in world.events:
        if isinstance(event, RunSubmitted | JobEnded) and event.case == "case0":
            flying += 1 if isinstance(event, RunSubmitted) else -1
        if START + 60 * NS < event.time < START + 1700 * NS and isinstance(event, RunCreated):
            least = min(least, flying + (event.case == "case0"))
    assert least == 2
    assert node_seconds(world).total() > 0.8 * 32 * 1800 * NS


def test_copies_that_leave_nodes_idle_are_never_more_than_asked() -> None:
    world = mixed([2], 6, 1, copies=[2], weight=[2 / 3]).go()
    assert most_in_flight(world) == 2


def test_where_another_test_is_stopped_no_more_than_its_copies_run() -> None:
    """Two tests whose copies fill the machine; the idle nodes of the other are no reason."""
    world = mixed([1, 4], 8, 0.3, copies=[4, 1])
    stopped = START + 10 * NS
    world.at(10, lambda: world.note(TestStopped, test="t1", reason="broken"))
    world.go()
    later = Counter(launch.case for when, launch in world.launches if when > stopped + 120 * NS)
    assert later[0] > 50 and not later[1]
    assert most_in_flight(world, stopped + 120 * NS) == 4


def test_runs_of_one_decision_are_within_the_pace() -> None:
    """Three of eight nodes hold one run of two nodes; the second follows in time."""
    world = mixed([2], 8, 0.05, weight=[3 / 8]).go()
    assert [when for when, _ in world.launches].count(START) == 1
    assert most_in_flight(world) == 2


def test_the_queue_has_as_many_runs_as_the_reserve() -> None:
    world = mixed([1], 8, 0.1, weight=[1]).go()
    assert most_in_flight(world) == 8 + 3


def test_a_wide_test_is_not_crowded_out_by_narrow_ones() -> None:
    """Narrow runs always fit into gaps; they must not use these for much more than their share."""
    world = mixed([7, 1], 24, 2, copies=[3, 0], weight=[21 / 24, 0]).go()
    had = node_seconds(world)
    assert had[0] / had.total() > 0.8


def test_time_that_was_lost_is_made_up_for_by_one_run() -> None:
    """Of a test that was stopped for half of the time no burst of runs follows."""
    world = mixed([1], 8, 1, weight=[1 / 4])
    world.at(10, lambda: world.note(TestStopped, test="t0", reason="broken"))
    world.at(1800, lambda: world.note(TestAdmitted, test="t0"))
    world.go()
    assert most_in_flight(world) == 3  # two are its share


def test_a_test_without_a_claim_gets_what_the_others_leave() -> None:
    had = node_seconds(mixed([3, 1], 8, 0.5, weight=[1, 0]).go())
    assert had[0] == pytest.approx(6 * 1800 * NS, rel=0.1)
    assert 0.5 * 2 * 1800 * NS < had[1] < 1.2 * 2 * 1800 * NS


def test_the_queue_is_not_flooded() -> None:
    world = mixed([4, 3], 16, 0.5, weight=[1, 1]).go()
    queued, most = 0, 0
    for event in world.events:
        queued += isinstance(event, RunSubmitted) - isinstance(event, JobStarted)
        if isinstance(event, JobStarted):
            most = max(most, queued)
    assert most <= 3 + 16 // 3  # the reserve, and what covers an idle machine


def test_who_fell_behind_catches_up_and_the_others_go_on_meanwhile() -> None:
    world = mixed([1, 1, 1], 16, 1, weight=[1, 1, 1])
    world.at(10, lambda: world.note(TestStopped, test="t0", reason="broken"))
    world.at(1200, lambda: world.note(TestAdmitted, test="t0"))
    world.go()
    starts = Counter((launch.case, (when - START) // (600 * NS)) for when, launch in world.launches)
    assert starts[0, 1] == 0
    assert starts[0, 2] > 1.5 * starts[1, 2], "it catches up"
    assert min(starts[1, 2], starts[2, 2]) > 20, "the others do not starve"
    had = node_seconds(world)
    assert had[0] == pytest.approx(had[1], rel=0.1)


@pytest.mark.parametrize(
    ("weights", "copies"),
    [([1.0, 1.0], [0, 0]), ([1.0, 0.0], [0, 0]), ([0.0, 0.0], [1, 1])],
)
def test_on_a_shared_node_a_run_that_needs_all_of_it_does_not_starve(
    weights: list[float], copies: list[int]
) -> None:
    policy = Policy(
        kind="sustained",
        entries=[
            Entry(name=f"t{n}", weight=w, copies=c)
            for n, (w, c) in enumerate(zip(weights, copies, strict=True))
        ],
        entry_of=[0, 1],
        duration=3600,
        nodes=0,
    )
    cases = [a_run(0, "t0", cores=8), a_run(1, "t1", cores=1)]
    world = World(cases, Limits(cores=8, jobs=50), policy).go()
    starts = Counter(launch.case for _, launch in world.launches)
    assert starts[0] > 10
    assert starts[1] > 10 or not (weights[1] or copies[1])  # what has no claim may get nothing


@pytest.mark.parametrize(("fill", "copies"), [(True, 2), (True, 3), (False, 2)])
def test_on_a_shared_node_no_test_has_more_runs_than_copies(fill: bool, copies: int) -> None:
    """Nothing waits there, so no run of it is to be ready when one of its copies ends."""
    entries = [Entry(name="t0", copies=copies), Entry(name="t1", weight=0 if fill else 0.75)]
    policy = Policy(
        kind="sustained", entries=entries, entry_of=[0, 1], duration=1800, nodes=0, reserve=3
    )
    cases = [a_run(0, "t0", cores=1), a_run(1, "t1", cores=3)]
    world = World(cases, Limits(cores=8, jobs=50), policy).go()
    flying = most = 0
    for event in world.events:
        if isinstance(event, RunSubmitted | JobEnded) and event.case == "case0":
            flying += 1 if isinstance(event, RunSubmitted) else -1
            most = max(most, flying)
    assert most == copies
    starts = Counter(launch.case for _, launch in world.launches)
    assert min(starts.values()) > 10


def test_on_a_shared_node_no_test_waits_for_as_long_as_its_walltime() -> None:
    """Until its first run has ended, nobody knows that it takes a fraction of it."""
    policy = Policy(
        kind="sustained",
        entries=[Entry(name=f"t{n}", weight=1) for n in range(4)],
        entry_of=[0, 1, 2, 3],
        duration=1800,
        nodes=0,
    )
    runs = (a_run(n, f"t{n}", cores=2 if n < 2 else 1) for n in range(4))
    cases = [replace(run, walltime=6000.0) for run in runs]
    world = World(cases, Limits(cores=2, jobs=50), policy).go()
    first = {launch.case: when for when, launch in reversed(world.launches)}
    assert max(first.values()) - START < 300 * NS
    starts = Counter(launch.case for _, launch in world.launches)
    assert min(starts.values()) > 5


def test_it_waits_at_the_scheduler_where_the_number_of_nodes_is_unknown() -> None:
    world = mixed([1, 1], 0, 0.1, Limits(jobs=4), weight=[1, 1]).go()
    assert len(world.launches) > 20


def test_a_test_whose_build_fails_is_rejected_once() -> None:
    world = mixed([1, 1], 4, 0.2, weight=[1, 1])
    cases = [a_run(0, "t0", build="bad", repeat=3), a_run(1, "t1")]
    world = World(cases, world.limits, world.policy)
    world.luck.bad_builds = 1.0
    world.go()
    assert [case for case, code in world.verdicts if code == 31] == [0]
    assert {launch.case for _, launch in world.launches} == {1}


def launched(sizes: list[int], **entries: list[Any]) -> list[int]:
    """The cases of the runs that start first, in their order."""
    world = mixed(sizes, 32, 0.01, None, **entries).go()
    return [launch.case for when, launch in world.launches if when == START]


def test_of_tests_that_lack_as_many_copies_the_larger_claim_is_first() -> None:
    assert launched([1, 1], copies=[1, 1], most=[1, 1], weight=[1, 2]) == [1, 0]
    assert launched([1, 1], copies=[1, 1], most=[1, 1], weight=[2, 1]) == [0, 1]
    assert launched([1, 4], copies=[2, 2], most=[2, 2]) == [1, 0, 1, 0], "by their widths"
    assert launched([1, 1, 1], copies=[2, 4, 1], most=[2, 4, 1]) == [1, 0, 2, 1, 1, 0, 1]


def test_the_cases_of_a_test_take_turns_within_a_decision() -> None:
    entry = Entry(name="t", copies=5, most=5)
    policy = Policy(kind="sustained", entries=[entry], entry_of=[0, 0, 0], duration=30, nodes=8)
    world = World([a_run(n, "t") for n in range(3)], Limits(), policy).go()
    assert [launch.case for when, launch in world.launches if when == START] == [0, 1, 2, 0, 1]


@pytest.mark.parametrize("reserve", [1, 3])
def test_where_few_nodes_fit_the_next_run_is_ready_when_one_has_started(reserve: int) -> None:
    """Each start leaves as many nodes idle as before; the world finds what it could have decided
    before. On the two nodes that fit is one run, and one waits."""
    policy = Policy(
        kind="sustained",
        entries=[Entry(name="t0", weight=1)],
        entry_of=[0],
        duration=600,
        nodes=16,
        reserve=reserve,
        unfit=["n[003-016]"],
        unfit_of=[1],
    )
    world = World([a_run(0, "t0", 2)], Limits(), policy).go()
    assert most_in_flight(world) == 2
    assert node_seconds(world)[0] > 0.9 * 2 * 600 * NS


@pytest.mark.parametrize(("first", "asks"), [(0, False), (1, True)])
def test_it_is_asked_after_a_start_that_changes_what_is_idle(first: int, asks: bool) -> None:
    """Of eight nodes the queued runs leave two idle, as six go to the wide one. They do once it has
    started; where the narrow one, of three, starts before it, five are idle until one ends."""
    world = mixed([6, 3, 2], 8, 1.0, weight=[1, 1, 1])
    conductor = world.conductor
    conductor.apply(TrialStarted(time=START))
    for case in world.cases[:2]:
        conductor.apply(RunSubmitted(time=START, run_id=case.id, case=case.id))
    conductor.state.changed = False
    case = world.cases[first]
    conductor.apply(JobStarted(time=START, run_id=case.id, case=case.id, nodes="n[001-006]"))
    assert conductor.state.changed is asks


def test_of_tests_that_had_as_little_the_widest_is_first() -> None:
    assert launched([1, 3, 2], weight=[1, 1, 1])[0] == 1
