"""Groups of nodes, read from Slurm's topology, a JSON of places, or xnames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.errors import InvalidFiles
from seatrial.model.machine_file import load_machine
from seatrial.model.places import groups_by_xname, groups_of_places, groups_of_topology

SHOWN = (Path(__file__).with_name("data") / "scontrol-show-topology.txt").read_text()
CONF = """# topology.conf
SwitchName=leaf1 \\
 Nodes=n[001-002],n003
switchname=leaf2 nodes=n[004-008]  # small letters are allowed
SwitchName=spine Switches=leaf[1-2] LinkSpeed=100
"""
BLOCKS = "BlockName=b1 Nodes=n[001-004]\nBlockName=b2 Nodes=n[005-008]\nBlockSizes=4\n"
LEAVES = {"leaf1": "n[001-003]", "leaf2": "n[004-008]"}


def test_the_leaves_of_a_topology_are_groups() -> None:
    assert groups_of_topology(SHOWN) == LEAVES
    assert groups_of_topology(CONF) == LEAVES
    assert groups_of_topology(BLOCKS) == {"b1": "n[001-004]", "b2": "n[005-008]"}
    shown = "BlockName=b1 BlockIndex=0 Nodes=n[001-004] BlockSize=4\n"
    assert groups_of_topology(shown) == {"b1": "n[001-004]"}


def test_the_topologies_of_slurm_25() -> None:
    text = (Path(__file__).with_name("data") / "topology.yaml").read_text()
    switches = {"s1": "n[001-004]", "s2": "n[005-008]"}
    assert groups_of_topology(text) == switches, "the default of the cluster"
    assert groups_of_topology(text, "topo_block") == {"b1": "n[001-004]", "b2": "n[005-008]"}
    assert groups_of_topology(text.replace("true\n  tree", "false\n  tree")) == switches
    later = text.replace("cluster_default: false\n  block", "cluster_default: true\n  block")
    assert "b1" in groups_of_topology(later.replace("true\n  tree", "false\n  tree"))
    ring = "# a comment\n- topology: t\n  ring: {rings: [{ring: r0, nodes: 'a[1-2],b'}]}\n"
    assert groups_of_topology(ring) == {"r0": "a[1-2],b"}
    line = f"# {'#' * 200}\n#\n\n"
    assert groups_of_topology(line + CONF) == LEAVES
    assert groups_of_topology(line + text) == switches


@pytest.mark.parametrize(
    ("text", "topology", "told"),
    [
        ("- {topology: t, flat: true}", "", "the topology t is flat, and has no switches"),
        ("- {topology: t, torus3d: {toruses: []}}", "", "the topology t is torus3d, and has no"),
        ("- {topology: t}\n- {topology: u}", "v", "by: there is no topology 'v'; there are t, u"),
        ("- {topology: t, tree: {switches: [{switch: s, children: t}]}}", "", "no switch"),
        ("- {topology: t, tree: {switches: {switch: s}}}", "", "no switch"),
        ("- {topology: t, tree: {switches: [{switch: s, nodes: 'n[1-'}]}}", "", "s: "),
        ("- {topology: t, tree: {switches: [{nodes: n1}]}}", "", "'n1'.* has no name; write sw"),
        ("- {topology: t, block: {blocks: [n1, {block: b, nodes: n2}]}}", "", "'n1' has no name"),
        ("- topology: t\n  tree: [", "", "^line 2: is not valid YAML: a value or a closing"),
        ("- 1", "", "is no list of topologies"),
        ("SwitchName=s Nodes=n1", "t", "this is another file"),
        ("SwitchName=a/b Nodes=n1\nSwitchName=a-b Nodes=n2", "", "a/b and a-b are both a-b, as"),
    ],
)
def test_topologies_that_are_refused(text: str, topology: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        groups_of_topology(text, topology)


@pytest.mark.parametrize("text", ["", "SwitchName=s Switches=t\n", "SwitchName=s Nodes=(null)"])
def test_a_topology_without_nodes_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no switch"):
        groups_of_topology(text)


def test_a_malformed_node_set_names_its_switch() -> None:
    with pytest.raises(ValueError, match="leaf9: "):
        groups_of_topology("SwitchName=leaf9 Nodes=n[1-")


def test_places_of_a_json() -> None:
    places = {f"n{i}": {"cabinet": f"c {i // 2}", "row": i % 2} for i in range(4)}
    assert groups_of_places(json.dumps(places)) == {"c-0": "n[0-1]", "c-1": "n[2-3]"}
    assert groups_of_places(json.dumps(places), "row") == {"row0": "n[0,2]", "row1": "n[1,3]"}
    assert groups_of_places('{"n1": "a", "n2": "b", "n3": "a", "n4": null}') == {
        "a": "n[1,3]", "b": "n2"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "by", "told"),
    [
        ("[]", "", "no object"),
        ("[1]", "", "no object"),
        ("{}", "", "no object"),
        ("{", "", "no JSON"),
        ('{"n1": {"x": 1, "y": 2}}', "", "n1: its place has x, y"),
        ('{"n1": {"cabinet": 1}}', "slot", "n1"),
        ('{"n1": "a"}', "slot", "n1"),
        ('{"n1": {"cabinet": [1]}}', "", "n1"),
    ],
)
def test_places_that_are_refused(text: str, by: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        groups_of_places(text, by)


def test_xnames_tell_cabinets_chassis_and_blades() -> None:
    names = ["x1000c0s0b0n0", "x1000c0s1b0n0", "x1000c1s0b0n1", "x1001c0s0b1n0", "login1"]
    assert list(groups_by_xname(names, "cabinet")) == ["x1000", "x1001"]
    assert list(groups_by_xname(names, "chassis")) == ["x1000c0", "x1000c1", "x1001c0"]
    blades = groups_by_xname([*names, "x1000c0s0b1n1.site"], "blade")
    assert "x1000c0s0" in blades and "b1" in blades["x1000c0s0"]


HEAD: dict[str, Any] = {
    "machine": "m",
    "scheduler": "slurm",
    "nodes": [{"names": "n[001-008]", "cores": 4}],
}


def write(folder: Path, places: Any, **more: Any) -> Path:
    path = folder / "m.yaml"
    path.write_text(yaml.safe_dump({**HEAD, "places": places, **more}))
    return path


def test_a_machine_file_reads_its_groups(tmp_path: Path) -> None:
    (tmp_path / "topology.conf").write_text(SHOWN.replace("[004-008]", "[004-099]"))
    machine = load_machine(write(tmp_path, {"file": "topology.conf"})).machine
    assert machine.groups == LEAVES, "of its own nodes"
    (tmp_path / "places.json").write_text(json.dumps({"n001": {"cabinet": "c1", "slot": "s1"}}))
    machine = load_machine(write(tmp_path, {"file": "places.json", "by": "slot"})).machine
    assert machine.groups == {"s1": "n001"}
    nodes = [{"names": "x1000c0s[0-1]b0n0", "cores": 4}]
    machine = load_machine(write(tmp_path, {"xnames": "blade"}, nodes=nodes)).machine
    assert machine.groups == {"x1000c0s0": "x1000c0s0b0n0", "x1000c0s1": "x1000c0s1b0n0"}


@pytest.mark.parametrize(
    ("places", "more", "told"),
    [
        ({"file": "none.conf"}, {}, "none.conf: No such file"),
        ({"file": "other.conf"}, {}, "has none of the nodes"),
        ({"file": "twice.conf"}, {}, "n001 is in a and in b"),
        ({"file": "other.conf", "by": "slot"}, {}, "topology"),
        ({"xnames": "chassis"}, {}, "xname"),
        ({"xnames": "row"}, {}, "places.xnames"),
        ({"file": "a", "xnames": "chassis"}, {}, "one of them"),
        ({"by": "slot"}, {}, "one of them"),
        ({"file": "other.conf"}, {"groups": {"a": "n001"}}, "remove groups or places"),
    ],
)
def test_places_of_a_machine_that_are_refused(
    tmp_path: Path, places: Any, more: Any, told: str
) -> None:
    (tmp_path / "other.conf").write_text("SwitchName=a Nodes=k[1-2]\n")
    (tmp_path / "twice.conf").write_text("SwitchName=a Nodes=n001\nSwitchName=b Nodes=n[001-002]\n")
    with pytest.raises(InvalidFiles, match=told):
        load_machine(write(tmp_path, places, **more))
