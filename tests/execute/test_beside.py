"""Components that run beside each other, each on nodes of its own: on the emulated Slurm and in
rehearsals; plans that are refused."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.journal.events import JobStarted, RunJudged, TrialPaused, TrialResumed, TrialStarted
from seatrial.model.node_set import unfold
from seatrial.results.status import Status
from tests.programs import Workplace
from tests.slurm.cluster import ClusterOptions, SlurmCluster

TAGS = ("p-small", "p-large", "p-after")


def component(name: str, nodes: str, **more: Any) -> dict[str, Any]:
    return {"component": name, "nodes": nodes, "tests": ["a"], **more}


def write(place: Workplace, *components: dict[str, Any], **keys: Any) -> None:
    plan = {"plan": "p", "machine": "machine.yaml", "suites": ["suite"], **keys}
    (place.folder / "plan.yaml").write_text(yaml.safe_dump({**plan, "components": [*components]}))


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workplace, SlurmCluster]]:
    folder: Path = tmp_path_factory.mktemp("beside")
    with SlurmCluster(folder / "cluster", ClusterOptions(nodes=4)) as cluster:
        place = Workplace(folder)
        place.slurm(cluster)
        place.constants = {"execute.requests.LOOK_SECONDS": 0.05}
        place.test("a", "sleep 1", run={"walltime": "1m", "exclusive": True}, repeat=3)
        yield place, cluster


@pytest.mark.slurm
def test_two_components_at_once_and_the_third_after_them(
    slurm: tuple[Workplace, SlurmCluster],
) -> None:
    place, cluster = slurm
    names = cluster.node_names
    criteria = [{"criterion": "utilisation", "at_least": "1%"}]
    write(
        place,
        component("small", names[0], criteria=criteria),
        component("after", ",".join(names), repeat=1),
        component("large", ",".join(names[1:]), alongside="small", criteria=criteria),
    )
    done = place.seatrial("accept", "plan.yaml", timeout=240)
    assert done.code == 0, done.said
    started = {tag: place.events(tag, TrialStarted)[0].time for tag in TAGS}
    ended = {tag: place.events(tag, RunJudged)[-1].time for tag in TAGS}
    assert started["p-large"] < ended["p-small"] and started["p-small"] < ended["p-large"]
    assert started["p-after"] >= max(ended["p-small"], ended["p-large"])
    used = {tag: {node for event in place.events(tag, JobStarted) for node in unfold(event.nodes)}
            for tag in TAGS}  # fmt: skip
    assert used["p-small"] == {names[0]}
    assert used["p-large"] and names[0] not in used["p-large"]
    for tag in TAGS:
        place.audit(tag)
    status = place.seatrial("accept", "status", "plan.yaml")
    assert "small and large, beside each other: accepted" in status.out and "4 nodes" in status.out
    shown = place.seatrial("accept", "status", "plan.yaml", "--format", "json")
    found = {one["component"]: one for one in json.loads(shown.out)["trials"]}
    assert (found["small"]["nodes"], found["large"]["nodes"]) == (1, 3)
    assert found["large"]["alongside"] == ["small"]
    assert place.seatrial("report", "plan.yaml", "-o", "report.md").code == 0
    report = (place.folder / "report.md").read_text()
    assert "Components beside each other" in report
    assert "p-small is complete" in place.seatrial("accept", "plan.yaml").out


@pytest.mark.slurm
def test_ctrl_c_and_pause_are_for_all_of_them(slurm: tuple[Workplace, SlurmCluster]) -> None:
    place, cluster = slurm
    names = cluster.node_names
    sustained = {"kind": "sustained", "duration": "10m"}
    write(
        place,
        component("one", names[0], **sustained),
        component("two", names[1], alongside=["one"], **sustained),
        plan="q",
    )
    tags = ("q-one", "q-two")
    for turn in (1, 2):
        with place.start("accept", "plan.yaml") as driving:
            for tag in tags:
                before = place.count(RunJudged, tag=tag)
                driving.until(place.more(before, RunJudged, tag=tag), f"a verdict of {tag}")
            if turn == 1:
                driving.send(signal.SIGINT)
            else:
                assert place.seatrial("accept", "pause", "plan.yaml").code == 0
            assert driving.end(120).code == 3
        assert [place.count(TrialPaused, tag=tag) for tag in tags] == [turn, turn]
    assert [place.count(TrialResumed, tag=tag) for tag in tags] == [1, 1]
    assert "q-one: " in driving.said and "q-two: " in driving.said


def machine(place: Workplace) -> None:
    nodes = [{"names": "n[1-8]", "cores": 4}]
    about = {"machine": "m", "scheduler": "slurm", "nodes": nodes, "toolchains": {"plain": {}}}
    place.machine.write_text(yaml.safe_dump(about))
    place.test("a", "sleep 1", run={"walltime": "10m"})


def test_they_are_rehearsed_together(place: Workplace) -> None:
    machine(place)
    sustained = {"kind": "sustained", "duration": "2h"}
    write(
        place,
        component("small", "n[1-2]", **sustained),
        component("large", "n[3-8]", alongside="small", **{**sustained, "duration": "1h"}),
        component("after", "", repeat=1),
        rehearsal={"tests": {"a": {"elapsed": "5m"}}},
    )
    done = place.seatrial("rehearse", "plan.yaml")
    assert done.code == 0, done.said
    tags = [f"p-{name}-rehearsed" for name in ("small", "large", "after")]
    small, large, after = (place.events(tag, TrialStarted)[0].time for tag in tags)
    assert small == large
    assert after - small >= 2 * 3600 * 10**9
    assert "small and large, beside each other" in done.out
    nodes = {n for event in place.events(tags[1], JobStarted) for n in unfold(event.nodes)}
    assert len(nodes) == 6


def test_by_one_clock_the_nodes_of_a_component_that_ended_count() -> None:
    from seatrial.results.status import beside

    def one(name: str, nodes: int, clock: float, share: float, *others: str) -> Status:
        return Status(
            tag=name, plan="p", component=name, phase="", kind="once", rehearsed=False,
            state="ended", verdict="met", verdict_words="met", now=0, clock=clock, duration=0,
            nodes=nodes, down="", utilisation=share, over_time=[], sub_phases=[], parts=[],
            alerts=[], excluded=[], criteria=[], alongside=[*others],
            node_hours=nodes * clock / 3600,
        )  # fmt: skip

    found = [one("a", 10, 3600, 1.0), one("x", 1, 60, 1.0), one("b", 30, 7200, 0.5, "a")]
    (use,) = beside(found)
    assert (use.components, use.nodes, use.clock) == (["a", "b"], 40, 7200)
    assert use.node_hours == 80
    assert use.utilisation == pytest.approx((10 + 30) / 80)


REFUSED: dict[str, tuple[list[dict[str, Any]], str]] = {
    "overlap": (
        [component("a", "n[1-4]"), component("b", "n[4-8]", alongside="a")],
        "components[1].nodes: n4 is of a",
    ),
    "third": (
        [component("a", "n1"), component("b", "n2", alongside="a"),
         component("c", "n[1,3]", alongside="b")],
        "components[2].nodes: n1 is of a",
    ),
    "none": ([component("a", "n1"), component("b", "", alongside="a")], "components[1].nodes: "),
    "unknown": ([component("a", "n1", alongside="b")], "no component 'b'"),
    "itself": ([component("a", "n1", alongside="a")], "beside itself"),
    "no node": ([component("a", "n9")], "n9 is not a node of m"),
    "malformed": ([component("a", "n[1-")], "components[0].nodes"),
    "too large": ([component("b", "n1", tests=["wide"])], "wide"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_plans_that_are_refused(place: Workplace, name: str) -> None:
    machine(place)
    place.test("wide", run={"nodes": 2})
    components, told = REFUSED[name]
    write(place, *components)
    done = place.seatrial("accept", "plan.yaml", "--dry-run")
    assert done.code == 2 and told in done.err, done.said


def test_phases_in_which_no_node_of_a_component_is_there(place: Workplace) -> None:
    machine(place)
    phases = [{"phase": "one", "nodes": "n[1-4]"}, {"phase": "two"}]
    write(place, component("a", "n[5-8]"), phases=phases)
    done = place.seatrial("accept", "plan.yaml", "--dry-run")
    assert done.code == 2 and "none of these is a node of phase one" in done.err
    write(
        place,
        component("a", "n[5-8]", phases=["two"]),
        component("b", "n[5-8]", phases=["one"], alongside="a"),
        phases=phases,
    )
    assert "is in none of its phases" in place.seatrial("accept", "plan.yaml", "--dry-run").err
