"""Every policy in every composition, on a machine where everything goes wrong."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from seatrial.model.policy import (
    Caps,
    Entry,
    Exclusion,
    Limits,
    Policy,
    PolicyTarget,
    RateLimit,
    ThrottleRule,
    WatchLimits,
    Window,
)
from seatrial.model.test import Case

from .world import Luck, World, a_run

ANSWERS = st.sampled_from(["again", "elsewhere", "never"])
NODES = 8


@st.composite
def entries_of(draw: Any, kind: str, count: int) -> list[Entry]:
    def one(number: int) -> Entry:
        sustained = kind == "sustained"
        return Entry(
            name=f"t{number}",
            copies=draw(st.integers(0, 3)) if sustained else 0,
            weight=draw(st.sampled_from([0.0, 1.0, 2.0])) if sustained else 0.0,
            most=draw(st.sampled_from([0, 1, 3])),
            io=draw(st.sampled_from(["heavy", "normal", "light"])),
            file_system=draw(st.sampled_from(["", "fs", "other"])),
            opens=draw(st.integers(0, 3)),
            bytes=draw(st.sampled_from([0, 5])),
            answers={c: draw(ANSWERS) for c in ("node failure", "timeout", "hung", "lost")},
            attempts=draw(st.integers(1, 3)),
            stop_after=draw(st.integers(0, 3)),
            end_quiet=draw(st.booleans()),
            alone=draw(st.integers(1, 2)),
            full=draw(st.integers(0, 2)),
        )

    return [one(number) for number in range(count)]


@st.composite
def windows(draw: Any, count: int) -> list[Window]:
    def one() -> Window:
        start = draw(st.integers(0, 1500))
        about = draw(st.lists(st.integers(0, count - 1), max_size=1))
        nodes = draw(st.sampled_from(["", "", "n[001-003]"]))
        end = start + draw(st.integers(1, 400))
        return Window(start=start, end=end, entries=about, nodes=nodes)

    return [one() for _ in range(draw(st.integers(0, 2)))]


@st.composite
def policies(draw: Any, kind: str) -> Policy:
    count = draw(st.integers(1, 4))
    most = st.sampled_from([0, 2, 5])
    limit = draw(st.sampled_from([{"high": 7, "low": 3}, {"target": 6}]))
    throttle = ThrottleRule(
        gauge="load",
        **limit,
        on_failure=draw(st.sampled_from(["open", "closed"])),
        stale_after=draw(st.sampled_from([15, 50])),
    )
    return Policy(
        kind=kind,  # type: ignore[arg-type]
        entries=draw(entries_of(kind, count)),
        entry_of=[n % count for n in range(2 * count)],
        duration=2000 if kind == "sustained" else 0,
        nodes=NODES,
        reserve=draw(st.integers(0, 4)),
        caps=Caps(
            machine=draw(most),
            per_target=draw(most),
            file_systems={"fs": 4} if draw(st.booleans()) else {},
            bytes={"fs": 12} if draw(st.booleans()) else {},
        ),
        targets=[
            PolicyTarget(
                name=f"fs/m{n}",
                file_system="fs",
                weight=1 + n,
                safe=draw(st.sampled_from([0, 3, 7])),
            )
            for n in range(draw(st.integers(0, 3)))
        ],
        placement=draw(st.sampled_from(["round_robin", "weighted", "least_loaded"])),
        stagger=RateLimit(starts=draw(st.integers(1, 4)), per=13.7)
        if draw(st.booleans())
        else None,
        throttles=[throttle] if draw(st.booleans()) else [],
        blackouts=draw(windows(count)),
        outages=[Window(start=300, end=600)] if draw(st.booleans()) else [],
        exclusion=Exclusion(after=draw(st.integers(0, 2)), within=900, most=0.25),
        watch=WatchLimits(
            short_for=draw(st.sampled_from([0, 60])),
            silent_for=draw(st.sampled_from([0, 100])),
            wait_factor=draw(st.sampled_from([0, 2])),
            wait_least=30,
            again=draw(st.sampled_from([50, 300])),
        ),
    )


@st.composite
def worlds(draw: Any) -> dict[str, Any]:
    kind = draw(st.sampled_from(["once", "isolated_then_full", "sustained", "sustained"]))
    policy = draw(policies(kind))
    cases: list[Case] = [
        a_run(
            number,
            policy.entries[entry].name,
            draw(st.sampled_from([1, 2, 5])),
            repeat=draw(st.integers(1, 2)),
            build=draw(st.sampled_from(["", "", "b1", "b2"])),
        )
        for number, entry in enumerate(policy.entry_of)
    ]
    chance = st.sampled_from([0.0, 0.1, 0.4])
    luck = Luck(
        wrong=draw(chance),
        timeout=draw(chance),
        lost=draw(chance),
        hangs=draw(chance),
        bad_builds=draw(chance),
        node_falls=draw(chance),
        people=draw(chance),
        changes=draw(chance),
        crashes=draw(chance),
        gauge_fails=draw(chance),
        until=1500,
    )
    jobs = draw(st.sampled_from([0, 3, 6]))
    seed = draw(st.integers(0, 1 << 30))
    limits = Limits(jobs=jobs, refill=draw(st.integers(1, 3)))
    return {"cases": cases, "limits": limits, "policy": policy, "seed": seed, "luck": luck}


@settings(
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # each example is long: none is shrunk
    max_examples=15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(worlds())
def test_every_policy_holds_whatever_happens_and_time_moves_in_any_steps(
    about: dict[str, Any],
) -> None:
    """What must hold of each decision is checked by the world while it goes on."""
    world = World(**about).go()
    assert world.finish is not None
    policy = world.policy
    if policy.kind == "sustained":
        assert world.finish.complete
        # Where no build is good, nothing could ever run: it ends before its time.
        assert world.clock() >= policy.duration * 10**9 or world.conductor.unbuildable
    elif world.finish.complete:
        state = world.conductor.state
        assert len(world.verdicts) == state.wanted == state.finished
    else:
        assert world.finish.reason
        assert world.stopped or world.excluded
    slow = World(**about, everywhen=True).go()
    assert slow.events == world.events
    for length, now, decision in Random(world.seed).choices(world.decided, k=6):
        replayed = world.replayed(length)
        assert replayed.decide(now) == decision
