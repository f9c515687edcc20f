"""What a component says becomes the plain numbers that the conductor decides by."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.execute.plan.policy import ANSWERS, weights_of, width_of_machine, widths_of
from seatrial.model import policy as resolved
from seatrial.model.file_model import Share
from seatrial.model.machine import Machine, NodeGroup
from seatrial.model.plan import Component, ComponentTest
from seatrial.model.policy import Policy
from tests.results.store.trials import a_case

from .helpers import PlanPlace

SUSTAINED = "- component: c\n  kind: sustained\n  phases: [two]\n  duration: 2d\n"


def test_a_component_of_which_nothing_is_said(place: PlanPlace) -> None:
    part = place.part("- {component: c, phases: [two]}\n")
    policy = part.policy
    assert [entry.name for entry in policy.entries] == ["big/huge", "big/swept", "small", "wide"]
    assert [policy.entries[i].name for i in policy.entry_of] == [case.test for case in part.cases]
    assert (policy.kind, policy.nodes, policy.duration, policy.reserve) == ("once", 8, 0, 0)
    for entry in policy.entries:
        plain = resolved.Entry(name=entry.name, answers=ANSWERS, stop_after=3, alone=3)
        assert entry == plain
    assert policy.caps == resolved.Caps()
    assert policy.exclusion == resolved.Exclusion(after=3)
    assert policy.watch == resolved.WatchLimits(short_for=600, silent_for=1800, wait_factor=5)
    assert not (policy.targets or policy.stagger or policy.throttles or policy.blackouts)


def test_shares_copies_and_weights_are_parts_of_the_machine(place: PlanPlace) -> None:
    mixed = "  tests:\n    small: {share: 25%}\n    wide: {copies: 1}\n"
    found = place.entries(SUSTAINED + mixed + "    big/huge: {weight: 3}\n    '*': {}\n")
    assert {name: entry.weight for name, entry in found.items()} == {
        "small": 0.25,
        "wide": 0.5,
        "big/huge": pytest.approx(0.25 * 3 / 4),
        "big/swept": pytest.approx(0.25 / 4),
    }
    assert {name: (entry.copies, entry.most) for name, entry in found.items()} == {
        "small": (0, 0),
        "wide": (1, 0),
        "big/huge": (0, 0),
        "big/swept": (0, 0),
    }


@pytest.mark.parametrize(
    ("part", "most"),
    [
        ("copies: 2", 0),
        ("copies: 2, most: 5", 5),
        ("copies: 2, share: 50%", 0),
        ("copies: 2, weight: 1", 0),
        ("most: 3", 3),
        ("", 0),
    ],
)
def test_copies_are_no_cap_on_what_waits(place: PlanPlace, part: str, most: int) -> None:
    assert place.entries(SUSTAINED + f"  tests: {{small: {{{part}}}}}\n")["small"].most == most


def test_what_fills_in_has_no_claim(place: PlanPlace) -> None:
    found = place.entries(SUSTAINED + "  tests: {small: {fill: true, io: light}, wide: {}}\n")
    assert (found["small"].weight, found["small"].io, found["wide"].weight) == (0, "light", 1)


@given(
    st.lists(
        st.one_of(
            st.builds(ComponentTest, weight=st.integers(0, 10).map(float)),
            st.builds(ComponentTest, copies=st.integers(0, 3)),
            st.builds(
                ComponentTest,
                share=st.sampled_from([Share("5%"), Share(0.1), Share(0)]),
            ),
            st.just(ComponentTest(fill=True)),
        ),
        max_size=6,
    )
)
def test_claims_are_shares_and_leave_nothing_over(parts: list[ComponentTest]) -> None:
    named = {str(i): part for i, part in enumerate(parts)}
    component = Component(component="c", kind="sustained")
    weights = weights_of(component, named, dict.fromkeys(named, 2), 100)
    assert all(0 <= weight <= 1 for weight in weights.values())
    assert sum(weights.values()) <= 1 + 1e-9
    for name, part in named.items():
        assert (weights[name] == 0) == (part.fill)
    if any(not (p.fill or p.copies or p.share.fraction) for p in parts):
        assert sum(weights.values()) == pytest.approx(1)


def test_answers_are_the_usual_ones_but_for_what_is_said(place: PlanPlace) -> None:
    written = "  retry: {answers: {timeout: never, failed: again}, attempts: 2, stop_after: 0}\n"
    hung = "{hung: never, misplaced: elsewhere, boot failure: again}"
    tests = f"  tests: {{small: {{retry: {{answers: {hung}}}}}, wide: {{}}}}\n"
    small = {"hung": "never", "misplaced": "elsewhere", "boot failure": "again"}
    found = place.entries("- component: c\n" + written + tests)
    assert found["wide"].answers == {**ANSWERS, "timeout": "never", "failed": "again"}
    assert (found["wide"].attempts, found["wide"].stop_after) == (2, 0)
    assert found["small"].answers == {**ANSWERS, **small}
    assert (found["small"].attempts, found["small"].stop_after) == (3, 3)
    mix = place.entries(SUSTAINED + written + tests)
    usual = dict.fromkeys(("node failure", "boot failure", "hung"), "elsewhere")
    assert mix["wide"].answers == {**usual, "timeout": "never", "failed": "again"}
    assert mix["small"].answers == {**usual, **small}


def test_quiet_runs(place: PlanPlace) -> None:
    tests = "  tests: {small: {quiet_for: 20m, quiet_answer: tell}, wide: {}}\n"
    found = place.entries("- component: c\n" + tests)
    assert (found["small"].quiet_after, found["small"].end_quiet) == (1200, False)
    assert (found["wide"].quiet_after, found["wide"].end_quiet) == (0, True)


def test_a_test_says_when_its_runs_are_hung_unless_the_plan_does(place: PlanPlace) -> None:
    place.test("small", run={"quiet_for": "5m", "quiet_answer": "tell"})
    place.test("wide", run={"quiet_for": "5m", "quiet_answer": "tell"})
    tests = "  tests: {small: {}, wide: {quiet_for: 0, quiet_answer: end}}\n"
    found = place.entries("- component: c\n" + tests)
    assert (found["small"].quiet_after, found["small"].end_quiet) == (300, False)
    assert (found["wide"].quiet_after, found["wide"].end_quiet) == (0, True)


def test_waves(place: PlanPlace) -> None:
    tests = "  kind: isolated_then_full\n  tests: {small: {alone: 5, full: 2, most: 3}}\n"
    policy = place.part("- component: c\n" + tests).policy
    (entry,) = policy.entries
    assert (policy.kind, entry.alone, entry.full, entry.most) == ("isolated_then_full", 5, 2, 3)
    assert entry.weight == 0


def test_file_systems_and_their_targets(place: PlanPlace) -> None:
    written = (
        "  file_system: scratch\n  placement: least_loaded\n  caps: {machine: 9, per_target: 4}\n"
        "  tests:\n    small: {file_system: home}\n    wide: {opens: 30}\n"
    )
    policy = place.part("- component: c\n" + written).policy
    assert [entry.file_system for entry in policy.entries] == ["home", "scratch"]
    assert [entry.opens for entry in policy.entries] == [0, 30]
    assert policy.targets == [
        resolved.PolicyTarget(name="scratch/mdt0", file_system="scratch", weight=1, safe=100),
        resolved.PolicyTarget(name="scratch/mdt1", file_system="scratch", weight=2, safe=100),
    ]
    assert policy.placement == "least_loaded"
    caps = resolved.Caps(
        machine=9, per_target=4, file_systems={"scratch": 6}, bytes={"scratch": 1000}
    )
    assert policy.caps == caps
    heedless = place.part("- component: c\n" + written.replace("machine: 9", "safe_load: false"))
    assert [target.safe for target in heedless.policy.targets] == [0, 0]
    one = place.part("- {component: c, tests: [small], file_system: scratch, targets: [mdt1]}\n")
    assert [target.name for target in one.policy.targets] == ["scratch/mdt1"]


def test_the_space_of_decks_that_each_run_copies(place: PlanPlace) -> None:
    folder = place.folder / "suite/small/deck"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep/a").write_bytes(bytes(300))
    (folder / "b").write_bytes(bytes(30))
    for how, size in (("per_run", 330), ("shared", 0)):
        found = place.entries(
            f"- component: c\n  tests: {{small: {{deck: {{source: deck, how: {how}}}}}}}\n"
        )
        assert found["small"].bytes == size


def test_copies_of_decks_on_targets_leave_less_space_for_those_of_runs(place: PlanPlace) -> None:
    for name in ("small", "wide"):
        (place.folder / f"suite/{name}/deck").write_bytes(bytes(300))
    decks = {"small": "per_target", "wide": "per_run"}
    tests = "".join(
        f"    {name}: {{deck: {{source: deck, how: {how}}}}}\n" for name, how in decks.items()
    )
    part = place.part(f"- component: c\n  file_system: scratch\n  tests:\n{tests}")
    assert part.policy.caps.bytes == {"scratch": 1000 - 2 * 300}


def test_a_target_declared_loads_and_gauges_that_are_read(place: PlanPlace) -> None:
    written = (
        "- component: c\n  throttles: [{gauge: load, target: -4}]\n  gauges: [load]\n"
        "  tests: {small: {loads: {load: 3}, opens: 9}, wide: {opens: 5}}\n"
        "  criteria: [{criterion: gauge, gauge: load, at_most: 8}]\n"
    )
    policy = place.part(written).policy
    rule = resolved.ThrottleRule(gauge="load", target=-4, settle=60)
    assert (policy.throttles, policy.sampled, policy.gauges) == ([rule], ["load"], ["load"])
    assert [entry.load_on("load") for entry in policy.entries] == [3, 5]
    assert [entry.load_on("other") for entry in policy.entries] == [9, 5]


def test_stagger_throttles_exclusion_and_watch(place: PlanPlace) -> None:
    written = (
        "  stagger: {starts: 3, per: 2m}\n"
        "  throttles: [{gauge: load, high: 8, low: 2.5, on_failure: open, stale_after: 1m}]\n"
        "  exclude: {after: 2, within: 12h, most: 10%, causes: [hung, misplaced, boot failure]}\n"
        "  watch: {short_for: 0, silent_for: 1h, wait_factor: 0, again: 2h}\n"
    )
    policy = place.part(SUSTAINED + written + "  tests: [small]\n").policy
    assert policy.stagger == resolved.RateLimit(starts=3, per=120)
    assert policy.throttles == [
        resolved.ThrottleRule(gauge="load", high=8, low=2.5, on_failure="open", stale_after=60)
    ]
    causes = ("hung", "misplaced", "boot failure")
    exclusion = resolved.Exclusion(after=2, within=43200, most=0.1, causes=causes)
    assert policy.exclusion == exclusion
    assert "boot failure" in place.part(SUSTAINED).policy.exclusion.causes
    watch = resolved.WatchLimits(short_for=0, silent_for=3600, wait_factor=0, again=7200)
    assert policy.watch == watch
    assert (policy.duration, policy.reserve) == (172800, 1)


def test_a_reserve_of_its_own(place: PlanPlace) -> None:
    assert place.part(SUSTAINED + "  reserve: 0\n  tests: [small]\n").policy.reserve == 0
    assert place.part(SUSTAINED).policy.reserve == 4


def test_windows_are_about_the_tests_and_nodes_that_there_are(place: PlanPlace) -> None:
    blackouts = (
        "  blackouts:\n"
        "    - {from: 0h, to: 30m, tests: ['big/*'], why: quiet}\n"
        "    - {from: 2026-05-01T08:00+02:00, to: 2026-05-01T06:30Z, nodes: 'n[4-6]'}\n"
    )
    outages = (
        "outages:\n  - {from: 1d, to: 30h, nodes: n8}\n"
        "  - {from: 1h, to: 2h, tests: [small]}\n  - {from: 1h, to: 2h}\n"
    )
    place.write("- component: c\n  tests: ['big/swept', wide]\n" + blackouts + outages)
    one, two = (part.policy for part in place.prepare().parts)
    quiet = resolved.Window(start=0, end=1800, reason="quiet", entries=[0])
    dated = resolved.Window(start=1777615200, end=1777617000, nodes="n4", absolute=True)
    whole = resolved.Window(start=3600, end=7200)
    assert one.blackouts == [quiet, dated]
    assert one.outages == [whole]
    assert two.blackouts[1].nodes == "n[4-6]"
    assert two.outages == [resolved.Window(start=86400, end=108000, nodes="n8"), whole]


def test_a_policy_is_kept_as_json(place: PlanPlace) -> None:
    policy = place.part(SUSTAINED + "  file_system: scratch\n").policy
    assert msgspec.json.decode(msgspec.json.encode(policy), type=Policy) == policy


def test_on_a_host_without_a_scheduler_copies_take_cores() -> None:
    host = Machine(machine="m", nodes=[NodeGroup(names="here", cores=4)])
    cases = [
        a_case(0, test="a", nodes=1, tasks=1, tasks_per_node=1, threads=2),
        a_case(1, test="b", nodes=1, tasks=1, tasks_per_node=1, threads=1),
    ]
    widths = widths_of(cases, host)
    assert (widths, width_of_machine(host)) == ({"a": 2, "b": 1}, 4)
    component = Component(component="c", kind="sustained")
    parts = {"a": ComponentTest(copies=1), "b": ComponentTest(copies=2)}
    assert weights_of(component, parts, widths, 4) == {"a": 0.5, "b": 0.5}
    slurm = Machine(machine="m", scheduler="slurm", nodes=[NodeGroup(names="n[1-8]", cores=4)])
    assert (widths_of(cases, slurm), width_of_machine(slurm)) == ({"a": 1, "b": 1}, 8)
