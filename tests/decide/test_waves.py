from __future__ import annotations

from typing import Any

import pytest

from seatrial.decide.in_flight import ResourceRequest
from seatrial.decide.once import copies_at_full
from seatrial.journal.events import RunJudged, RunSubmitted, TestStopped
from seatrial.model.policy import Caps, Entry, Limits, Policy, PolicyTarget

from .world import Luck, World, a_run


def waves(*entries: Entry, sizes: tuple[int, ...] = (2, 5), **more: Any) -> World:
    luck = more.pop("luck", Luck())
    builds = more.pop("builds", ("", ""))
    policy = Policy(
        kind="isolated_then_full",
        entries=list(entries),
        entry_of=list(range(len(entries))),
        nodes=16,
        **more,
    )
    cases = [a_run(n, entry.name, sizes[n], build=builds[n]) for n, entry in enumerate(entries)]
    return World(cases, Limits(), policy, luck=luck)


def order(world: World) -> list[tuple[int, str]]:
    return [(launch.case, launch.stage) for _, launch in world.launches]


def test_each_runs_alone_and_then_as_often_as_it_fits() -> None:
    world = waves(Entry(name="a", alone=2, full=1), Entry(name="b", alone=1, full=2)).go()
    expected = [(0, "alone")] * 2 + [(0, "full")] * 8 + [(1, "alone")] + [(1, "full")] * 6
    assert order(world) == expected
    assert world.finish is not None
    assert world.finish.complete
    assert world.conductor.state.wanted == world.conductor.state.finished == 17
    flying: set[tuple[str, str]] = set()
    stage: dict[str, tuple[str, str]] = {}
    for event in world.events:
        if isinstance(event, RunSubmitted):
            assert event.stage == "full" or not flying, "it is to be alone"
            assert flying <= {(event.case, event.stage)}
            stage[event.run_id] = (event.case, event.stage)
        elif isinstance(event, RunJudged):
            stage.pop(event.run_id)
        flying = set(stage.values())


def test_caps_bound_the_copies() -> None:
    target = [PolicyTarget(name=f"fs/{n}", file_system="fs", safe=5) for n in range(2)]
    entry = Entry(name="a", alone=1, file_system="fs", opens=2)
    assert len(waves(entry, targets=target).go().launches) == 1 + 4
    assert len(waves(entry, targets=target, caps=Caps(machine=3)).go().launches) == 1 + 3
    assert len(waves(Entry(name="a", alone=1, most=2)).go().launches) == 1 + 2


TWO_NODES = ResourceRequest(entry=0, nodes=2, cores=0, width=2)
ON_FS = Entry(name="a", file_system="fs", opens=2, bytes=5)


def targets(*safe: float) -> list[PolicyTarget]:
    """Those of a file system that hold so many opens, and one of another."""
    own = [PolicyTarget(name=f"fs/{n}", file_system="fs", safe=s) for n, s in enumerate(safe)]
    return [*own, PolicyTarget(name="other/0", file_system="other", safe=2)]


@pytest.mark.parametrize(
    ("copies", "about"),
    [
        (8, {}),
        (6, {"shape": TWO_NODES._replace(unfit=1), "unfit": ["n[001-004]"]}),
        (3, {"shape": TWO_NODES._replace(cores=3), "limits": Limits(cores=10)}),
        (2, {"shape": TWO_NODES._replace(cores=3, gpus=2), "limits": Limits(cores=99, gpus=5)}),
        (3, {"entry": Entry(name="a", most=3)}),
        (3, {"caps": Caps(machine=3)}),
        (1, {"caps": Caps(machine=1)}),
        (3, {"limits": Limits(jobs=3)}),
        (3, {"entry": ON_FS, "caps": Caps(file_systems={"fs": 3})}),
        (8, {"entry": ON_FS, "caps": Caps(file_systems={"other": 3}, bytes={"other": 3})}),
        (2, {"entry": ON_FS, "caps": Caps(bytes={"fs": 14})}),
        (8, {"caps": Caps(file_systems={"fs": 3}, bytes={"fs": 14})}),
        (4, {"entry": ON_FS, "caps": Caps(per_target=2), "targets": targets(99, 99)}),
        (5, {"entry": ON_FS, "targets": targets(5, 7)}),
        (8, {"entry": ON_FS, "targets": targets(5, 0)}),
        (8, {"entry": Entry(name="a", file_system="fs"), "targets": targets(5, 7)}),
        (8, {"caps": Caps(per_target=1), "targets": targets(5, 7)}),
        (1, {"shape": TWO_NODES._replace(nodes=20)}),
        (1, {"nodes": 0}),
    ],
)
def test_copies_at_full_are_those_of_the_narrowest_limit(
    copies: int, about: dict[str, Any]
) -> None:
    entry, limits = about.pop("entry", Entry(name="a")), about.pop("limits", Limits())
    shape = about.pop("shape", TWO_NODES)
    policy = Policy(**{"entries": [entry], "entry_of": [0], "nodes": 16, **about})
    assert copies_at_full(policy, shape, limits) == copies


def test_a_run_is_made_good_within_its_wave() -> None:
    entry = Entry(name="a", alone=1, full=1, answers={"timeout": "again"}, attempts=9)
    world = waves(entry, Entry(name="b"), luck=Luck(timeout=0.4)).go()
    assert world.finish is not None
    assert world.finish.complete
    assert len(world.verdicts) == world.conductor.state.wanted
    cases = [case for case, _ in order(world)]
    assert cases == sorted(cases)
    assert cases.count(0) > 9
    stages = [stage for case, stage in order(world) if case == 0]
    assert set(stages) == {"alone", "full"}, "a retried run is of the same stage"


def test_a_failed_build_drops_its_case_and_the_trial_ends() -> None:
    both = Entry(name="a", alone=1, full=1), Entry(name="b", alone=1, full=1)
    world = waves(*both, builds=("bad", ""), luck=Luck(bad_builds=1.0)).go()
    assert world.finish is not None
    assert world.finish.complete
    assert [case for case, code in world.verdicts if code == 31] == [0] * 9
    assert order(world) == [(1, "alone")] + [(1, "full")] * 3


def test_the_waves_of_a_stopped_test_are_passed_and_the_end_says_so() -> None:
    world = waves(Entry(name="a", alone=9), Entry(name="b", alone=1, full=1))
    world.at(30, lambda: world.note(TestStopped, test="a", reason="it hurts"))
    world.go()
    assert world.finish is not None
    assert not world.finish.complete
    assert world.finish.reason == "a is stopped: it hurts"
    assert order(world)[-4:] == [(1, "alone")] + [(1, "full")] * 3
