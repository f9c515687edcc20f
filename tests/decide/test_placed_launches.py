"""`run.place`: the conductor chooses the nodes of a run; Slurm gives exactly them, in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.journal.events import AlertRaised, JobEnded, JobStarted, NodeDown, RunSubmitted
from seatrial.model.node_set import unfold
from tests.plugins.rehearsal.stage import Stage, since
from tests.programs import Workplace
from tests.slurm.cluster import ClusterOptions, SlurmCluster

LEVELS = [{"switch": 2}, {"chassis": 4}]
"""Eight nodes: two a switch, four a chassis."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    with SlurmCluster(tmp_path_factory.mktemp("placed"), ClusterOptions(nodes=8)) as cluster:
        yield cluster


def a_place(place: Workplace, cluster: SlurmCluster, script: str = "echo ok", **keys: Any) -> None:
    topology = {"kind": "tree", "levels": LEVELS, "roles": {"io": "n005"}}
    place.slurm(cluster, {"poll": "0.5s"}, launcher={"kind": "srun"}, topology=topology)
    place.test("t", script, **keys)


def chosen(place: Workplace) -> dict[str, list[str]]:
    """The nodes of each case, in order."""
    words = {case.id: str(case.parameters["where"]) for case in place.trial().cases()}
    return {words[e.case]: e.nodes.split(",") for e in place.events("t", RunSubmitted)}


WISHES = ["switch", "chassises", "within chassis, across switch, order Y", "random"]


@pytest.mark.slurm
def test_slurm_gets_exactly_the_nodes_that_were_chosen(
    place: Workplace, cluster: SlurmCluster
) -> None:
    """Two tasks each tell the node that they were on, which is that of their rank."""
    tell = "$LAUNCH bash -c 'echo on $SLURM_PROCID $SLURMD_NODENAME'"
    parameters = {"where": WISHES}
    a_place(place, cluster, tell, parameters=parameters, run={"nodes": 2, "place": "where"})
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    where = chosen(place)
    assert set(where) == set(WISHES)
    number = {w: [int(name[1:]) - 1 for name in names] for w, names in where.items()}
    assert all(len({*nodes}) == 2 for nodes in number.values())
    _, _, both, _ = WISHES
    for wish, size in (("switch", 2), (both, 4)):
        assert len({node // size for node in number[wish]}) == 1, where
    for wish, size in (("chassises", 4), (both, 2)):
        assert len({node // size for node in number[wish]}) == 2, where
    for event in place.events("t", JobEnded):
        case = next(c for c in place.trial().cases() if c.id == event.case)
        wanted = where[str(case.parameters["where"])]
        assert sorted(unfold(event.nodes)) == sorted(wanted)
        out = (place.trial().run("t", event.run_id) / "stdout").read_text()
        on = sorted(line for line in out.splitlines() if line.startswith("on "))
        assert on == [f"on {rank} {node}" for rank, node in enumerate(wanted)]


@pytest.mark.slurm
def test_a_node_that_is_down_is_waited_for_and_told(
    place: Workplace, cluster: SlurmCluster
) -> None:
    """Each chassis lacks a node, so no run of four can be in one until one is back."""
    for name in ("n002", "n007"):
        cluster.run("scontrol", "update", f"nodename={name}", "state=drain", "reason=test")
    a_place(place, cluster, parameters={"where": ["chassis"]}, run={"nodes": 4, "place": "where"})
    try:
        with place.start_run("--name", "t") as driving:
            driving.until(lambda: "chassis has 4" in place.alerts(), "people to be told")
            assert "the most are 3, of chassis" in place.alerts()
            assert place.count(RunSubmitted) == 0 or place.count(NodeDown)
            cluster.run("scontrol", "update", "nodename=n002", "state=resume")
            done = driving.end()
    finally:
        for name in ("n002", "n007"):
            if "drain" in cluster.node_state(name):
                cluster.run("scontrol", "update", f"nodename={name}", "state=resume")
    assert done.code == 0, done.said
    assert chosen(place) == {"chassis": ["n001", "n002", "n003", "n004"]}
    assert [e.kind for e in place.events("t", AlertRaised)] == ["place"]


@pytest.mark.slurm
def test_a_killed_driver_finds_placed_runs_and_bundles(
    place: Workplace, cluster: SlurmCluster
) -> None:
    gate = place.folder / "gate"
    wait = f"while ! [ -e {gate} ]; do sleep 0.05; done; $LAUNCH bash -c 'echo on $SLURM_PROCID'"
    run = {"nodes": 2, "place": "across chassis, near io, order random", "within": "allocation"}
    a_place(place, cluster, wait, parameters={"where": [1, 2]}, run=run)
    with place.start_run("--name", "t") as driving:
        driving.until(lambda: len(place.ran()) > 0, "the first run")
        driving.kill()
    gate.touch()
    done = place.resume()
    assert done.code == 0, done.said
    place.audit()
    first, second = place.events("t", RunSubmitted)
    assert first.nodes == second.nodes, "a bundle has its nodes once"
    assert f"{first.submission} on {first.nodes}" in place.seatrial("show", first.run_id).out
    assert first.bundle == second.bundle != ""
    assert "n005" in first.nodes.split(",")
    for event in place.events("t", JobEnded):
        assert sorted(unfold(event.nodes)) == sorted(first.nodes.split(","))


# ---- what cannot be -----------------------------------------------------------------------


def listed(place: Workplace, where: Any, size: int = 2, **machine: Any) -> tuple[int, str]:
    kind = {"names": "n[1-8]", "cores": 4}
    topology = {"kind": "tree", "levels": LEVELS, "roles": {"io": "n[5]"}}
    about = {"machine": "m", "scheduler": "slurm", "nodes": [kind], "topology": topology, **machine}
    kept = {key: value for key, value in about.items() if value is not None}
    place.machine.write_text(yaml.safe_dump({**kept, "toolchains": {"plain": {}}}))
    place.test("t", logs=False, run={"nodes": size, "place": where})
    place.test("other", logs=False)
    done = place.seatrial("list", "suite", "-m", str(place.machine))
    return done.code, done.said


@pytest.mark.parametrize(
    ("where", "nodes", "told"),
    [
        ("chassis", 5, "no chassis has 5 nodes: the most are 4, of chassis"),
        ({"across": "chassis"}, 1, "nothing to be across: 2 chassis units, 1 node"),
        ({"within": "switch", "order": "X"}, 3, "within switch, order X: no switch has 3 nodes"),
        ("order X", 9, "9 nodes needed, 8 there"),
        ("cage", 2, "within cage: 'cage' is no level of the network; there are switch, chassis"),
        ("across cages", 2, "'cages' is no level of the network"),
        ("order W", 2, "order W: 'W' is no axis; there are X, Y, random"),
        ("near lnet", 2, "near lnet: 'lnet' is no role in `topology.roles`; there are io"),
        ({"within": "switch", "across": "chassis"}, 2, "chassis is not smaller than switch"),
    ],
)
def test_what_can_never_be_is_told_before_the_trial(
    place: Workplace, where: Any, nodes: int, told: str
) -> None:
    code, said = listed(place, where, nodes)
    assert (code, told in said) == (0, True), said


@pytest.mark.parametrize("where", ["order random", "order x", "order X"])
def test_an_order_that_the_network_has_can_be_asked(place: Workplace, where: str) -> None:
    code, said = listed(place, where)
    assert (code, "left out" in said) == (0, False), said


@pytest.mark.parametrize(
    ("machine", "told"),
    [
        ({"topology": None}, "run.place needs the network of the machine: `topology` in its file"),
        (
            {"scheduler": "local", "nodes": [{"names": "n1", "cores": 4}], "topology": None},
            "run.place chooses nodes of a cluster; this host is one node",
        ),
    ],
)
def test_a_machine_without_a_network_leaves_it_out(
    place: Workplace, machine: dict[str, Any], told: str
) -> None:
    code, said = listed(place, "chassis", **machine)
    assert (code, told in said) == (0, True), said


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("under chassis", "'under chassis' is no place; write e.g. within chassis"),
        ("within switch, within chassis", "says within twice"),
        ({"level": "switch"}, "is not a key"),
        ("{cage}", "cage is not defined"),
    ],
)
def test_words_that_are_no_place_are_told_with_their_line(
    place: Workplace, where: Any, told: str
) -> None:
    code, said = listed(place, where)
    assert (code, told in said, "t/test.yaml:" in said) == (2, True, True), said


def test_a_role_of_a_node_that_is_not_there_is_a_fault(place: Workplace) -> None:
    topology = {"kind": "tree", "levels": LEVELS, "roles": {"io": "n9"}}
    code, said = listed(place, "near io", topology=topology)
    assert (code, "topology.roles.io: n9 is not a node of this machine" in said) == (2, True), said


# ---- in virtual time ----------------------------------------------------------------------


def a_stage(folder: Path, *wishes: str, **keys: Any) -> Stage:
    stage = Stage(folder)
    stage.machine["topology"] = {"kind": "tree", "levels": LEVELS}
    for number, wish in enumerate(wishes):
        stage.test(f"t{number}", nodes=2, repeat=4)
        path = folder / "suite" / f"t{number}" / "test.yaml"
        about = yaml.safe_load(path.read_text())
        about["run"]["place"] = wish
        path.write_text(yaml.safe_dump(about))
        stage.behave(f"t{number}", elapsed="1m")
    stage.component("c", **{"kind": "once", **keys})
    return stage


def test_a_rehearsal_places_runs_as_a_trial_does(tmp_path: Path) -> None:
    """No two runs have a node at once, each has the nodes that were chosen, in its units."""
    played = a_stage(tmp_path, "switch", "chassises").play()
    assert set(played.verdicts()) == {"pass"}
    chosen = {e.run_id: (e.test, e.nodes.split(",")) for e in played.of(RunSubmitted)}
    assert len(chosen) == 8
    held: dict[str, str] = {}
    for event in played.events:
        if isinstance(event, RunSubmitted):
            assert not held.keys() & set(event.nodes.split(",")), "nodes are given once"
            held |= dict.fromkeys(event.nodes.split(","), event.run_id)
        elif isinstance(event, JobEnded):
            held = {node: run for node, run in held.items() if run != event.run_id}
        elif isinstance(event, JobStarted):
            test, wanted = chosen[event.run_id]
            assert sorted(unfold(event.nodes)) == sorted(wanted)
            units = {(int(node[1:]) - 1) // (2 if test == "t0" else 4) for node in wanted}
            assert len(units) == (1 if test == "t0" else 2)


def test_runs_are_placed_near_a_node_that_runs_no_jobs(tmp_path: Path) -> None:
    """n9 is a router; it has a switch with n8, and gets no run itself."""
    stage = a_stage(tmp_path, "near io")
    levels = [{"switch": 2}, {"chassis": 4}]
    topology = {"kind": "tree", "names": "n{n}", "levels": levels, "roles": {"io": "n9"}}
    stage.machine["topology"] = topology
    chosen = [event.nodes.split(",") for event in stage.play().of(RunSubmitted)]
    assert len(chosen) == 4 and "n9" not in {node for nodes in chosen for node in nodes}
    assert "n8" in chosen[0]


def test_a_rehearsal_waits_for_nodes_that_are_out(tmp_path: Path) -> None:
    """Nodes of one chassis fail for good, so nothing is across any more; people are told."""
    stage = a_stage(tmp_path, "chassises")
    stage.plan["outages"] = [{"from": 0, "to": "1h", "nodes": "n[5-8]"}]
    played = stage.play()
    ends = [since(event) for event in played.of(JobStarted)]
    assert min(ends) >= 3600


def test_replay_gives_the_same_choice(tmp_path: Path) -> None:
    one, other = (a_stage(tmp_path / name, "chassis").play() for name in "ab")
    nodes = [[e.nodes for e in played.of(RunSubmitted)] for played in (one, other)]
    assert nodes[0] == nodes[1]
