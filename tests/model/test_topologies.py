"""`topology` of machine files: its keys, files of sites, bad input, and what the command shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from seatrial.errors import InvalidFiles
from seatrial.model.machine import Machine
from seatrial.model.machine_file import load_machine
from seatrial.model.machine_topology import topology_of
from tests.programs import Workplace
from tests.slurm.cluster import ClusterOptions, SlurmCluster

TREE = """\
SwitchName=leaf1 Nodes=n001
SwitchName=leaf2 Nodes=n002
SwitchName=leaf3 Nodes=n[003-004]
SwitchName=left Switches=leaf[1-2]
SwitchName=right Switches=leaf3
SwitchName=top Switches=left,right
"""
LEVELS = [
    {"switch": {"leaf1": "n001", "leaf2": "n002", "leaf3": "n[003-004]"}},
    {"switch2": {"left": "n[001-002]", "right": "n[003-004]"}},
]
NODES = [{"names": "n[001-004]", "cores": 4}]


def write(folder: Path, topology: Any, **more: Any) -> Path:
    path = folder / "m.yaml"
    about = {"machine": "m", "scheduler": "slurm", "nodes": NODES, "topology": topology, **more}
    path.write_text(yaml.safe_dump(about))
    return path


def loaded(folder: Path, topology: Any, **more: Any) -> Machine:
    return load_machine(write(folder, topology, **more)).machine


def told_levels(machine: Machine) -> Any:
    assert machine.topology is not None
    return msgspec.to_builtins(machine.topology)["levels"]


def test_levels_of_slurm_become_node_sets_of_the_description(tmp_path: Path) -> None:
    (tmp_path / "topology.conf").write_text(TREE)
    machine = loaded(tmp_path, {"kind": "tree", "file": "topology.conf"})
    assert told_levels(machine) == LEVELS, "the top switch is the system"
    topology = topology_of(machine)
    assert topology is not None
    assert [topology.hops(0, node) for node in range(4)] == [0, 4, 6, 6]
    assert topology_of(loaded(tmp_path, msgspec.to_builtins(machine.topology))) == topology
    named = {"kind": "dragonfly", "file": "topology.conf", "levels": ["router", "group"]}
    topology = topology_of(loaded(tmp_path, named))
    assert topology is not None
    assert topology.level(0, 1) == "group" and topology.hops(0, 2) == 4


def test_a_leaf_that_hangs_higher_and_blocks(tmp_path: Path) -> None:
    text = TREE.replace("left,right", "left,leaf3").replace("SwitchName=right", "#")
    (tmp_path / "t").write_text(text)
    machine = loaded(tmp_path, {"kind": "tree", "file": "t"})
    assert told_levels(machine)[1] == {"switch2": {"leaf3": "n[003-004]", "left": "n[001-002]"}}
    (tmp_path / "t").write_text(
        "BlockName=b1 Nodes=n[001-002]\nBlockName=b2 Nodes=n[003-009]\nBlockSizes=2\n"
    )
    machine = loaded(tmp_path, {"kind": "tree", "file": "t"})
    assert told_levels(machine) == [{"block": {"b1": "n[001-002]", "b2": "n[003-004]"}}]


def test_topologies_of_slurm_25(tmp_path: Path) -> None:
    text = (Path(__file__).with_name("data") / "topology.yaml").read_text()
    (tmp_path / "topology.yaml").write_text(text.replace("[4, 8]", "[2, 4]"))
    nodes = [{"names": "n[001-008]", "cores": 4}]
    tree = {"kind": "tree", "file": "topology.yaml"}
    assert told_levels(loaded(tmp_path, tree, nodes=nodes)) == [
        {"switch": {"s1": "n[001-004]", "s2": "n[005-008]"}}
    ]
    blocks = {**tree, "by": "topo_block"}
    assert told_levels(loaded(tmp_path, blocks, nodes=nodes)) == [
        {"block": {"b1": "n[001-004]", "b2": "n[005-008]"}}
    ]
    with pytest.raises(InvalidFiles, match="by: names a topology of a"):
        loaded(tmp_path, {"kind": "tree", "levels": [{"switch": 4}], "by": "topo_block"})


@pytest.mark.parametrize(
    "larger",
    [
        "BlockSizes=2,4,8\n",
        "AggregatedBlock=b[1-2] BlockIndex=4 Nodes=n[1-4] BlockSize=4\n"
        "AggregatedBlock=b[3-4] BlockIndex=5 Nodes=n[5-8] BlockSize=4\n"
        "AggregatedBlock=b[1-4] BlockIndex=6 Nodes=n[1-8] BlockSize=8\n",
    ],
    ids=["topology.conf", "scontrol"],
)
def test_larger_blocks_are_levels(tmp_path: Path, larger: str) -> None:
    """Slurm joins consecutive blocks; one that holds all is no level."""
    blocks = [
        f"BlockName=b{i} BlockIndex={i - 1} Nodes=n[{2 * i - 1}-{2 * i}]" for i in range(1, 5)
    ]
    (tmp_path / "t").write_text("\n".join([*blocks, larger]))
    nodes = [{"names": "n[1-8]", "cores": 4}]
    machine = loaded(tmp_path, {"kind": "tree", "file": "t"}, nodes=nodes)
    assert told_levels(machine)[1:] == [{"block2": {"b1-b2": "n[1-4]", "b3-b4": "n[5-8]"}}]
    topology = topology_of(machine)
    assert topology is not None and [topology.hops(0, n) for n in (1, 2, 7)] == [2, 4, 6]


def test_places_of_a_json(tmp_path: Path) -> None:
    places = {f"n00{i}": {"slot": f"s{i // 2}", "row": 7, "x": i % 2, "y": 1} for i in range(1, 5)}
    (tmp_path / "places.json").write_text(json.dumps(places))
    tree = {"kind": "tree", "file": "places.json", "levels": ["slot", "row"]}
    assert told_levels(loaded(tmp_path, tree)) == [
        {"slot": {"s0": "n001", "s1": "n[002-003]", "s2": "n004"}},
        {"row": {"7": "n[001-004]"}},
    ]
    torus = {"kind": "torus", "file": "places.json", "axes": {"x": 2, "y": 2}}
    machine = loaded(tmp_path, torus)
    assert told_levels(machine) == [{"router": {"1,1": "n[001,003]", "0,1": "n[002,004]"}}]
    topology = topology_of(machine)
    assert topology is not None
    assert topology.coordinates == ((1, 1), (0, 1), (1, 1), (0, 1))


def test_groups_alone_are_a_tree_of_one_level(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    groups = {"a": "n[001-002]", "b": "n003"}
    about = {"machine": "m", "scheduler": "slurm", "nodes": NODES}
    path.write_text(yaml.safe_dump({**about, "groups": groups}))
    topology = topology_of(load_machine(path).machine)
    assert topology is not None
    assert (topology.nodes, topology.hops(0, 1), topology.hops(0, 2)) == (
        ("n001", "n002", "n003"), 2, 4
    )  # fmt: skip
    path.write_text(yaml.safe_dump(about))
    assert topology_of(load_machine(path).machine) is None


SETS = {"switch": {"a": "n[001-002]", "b": "n[003-004]"}}


@pytest.mark.parametrize(
    ("topology", "told"),
    [
        ({"kind": "tree"}, "topology: has no levels; write e.g. levels:"),
        ({"kind": "ring", "levels": [{"s": 2}]}, "topology.kind"),
        ({"kind": "dragonfly", "levels": [{"router": 2}]}, "levels: a dragonfly has at least two"),
        ({"kind": "torus"}, "topology: a torus has axes"),
        ({"kind": "torus", "axes": {"x": 3}}, "axes.x: n004 is at x = 3, beyond 0 to 2"),
        ({"kind": "torus", "axes": {"x": 0}}, "axes.x: 0 is less than 1"),
        ({"kind": "tree", "axes": {"x": 4}, "levels": [{"s": 2}]}, "a tree has no axes"),
        ({"kind": "tree", "levels": ["switch"]}, r"levels\[0\]: switch: write the nodes of each"),
        ({"kind": "tree", "levels": [{"s": 2, "t": 4}]}, "must have one key"),
        ({"kind": "tree", "levels": [{"s": 0}]}, "0 is less than 1"),
        ({"kind": "tree", "levels": [{"s": 2}, {"t": 3}]}, "s 1 is in two t units: n003 is in 0"),
        ({"kind": "tree", "levels": [{"s": {"a": "n[001-002]"}}]}, r"no s has n\[003-004\]"),
        ({"kind": "tree", "levels": [{"s": {"a": "n[001-009]"}}]}, "n005 is not a node of this"),
        ({"kind": "tree", "levels": [{"s": {"a": "n[001-"}}]}, r"levels\[0\].s.a: "),
        (
            {"kind": "tree", "levels": [{"s": {"a": "n[001-004]", "b": "n002"}}]},
            r"levels\[0\].s.b: n002 is in a, too; give each node one s",
        ),
        ({"kind": "tree", "names": "x{n}", "levels": [{"s": 2}]}, "names: n001 does not fit x{n}"),
        ({"kind": "tree", "names": "n", "levels": [{"s": 2}]}, "names: 'n' has no field"),
        ({"kind": "tree", "names": "n{a}{a}", "levels": [{"s": 2}]}, "has {a} twice"),
        ({"kind": "tree", "names": "n{a}{", "levels": [{"s": 2}]}, "is no part of a field"),
        (
            {"kind": "tree", "names": "n{a}", "order": ["b"], "levels": [{"s": 2}]},
            "order: must have each field of names once: a",
        ),
        ({"kind": "tree", "order": ["b"], "levels": [{"s": 2}]}, "order: is about names"),
        ({"kind": "tree", "levels": [SETS], "links": {"top": 1}}, "links.top: 'top' is none of"),
        ({"kind": "tree", "levels": [SETS], "links": {"system": "4 x"}}, "'4 x' is no bandwidth"),
        ({"kind": "tree", "file": "no.conf"}, "topology: no.conf: No such file"),
        ({"kind": "tree", "file": "few.conf"}, "few.conf: no switch has n004"),
        ({"kind": "tree", "file": "two.conf"}, "two.conf: b is below s and below t; remove one"),
        ({"kind": "tree", "file": "lost.conf"}, "lost.conf: s: Switches=b, which is not described"),
        ({"kind": "tree", "file": "ring.conf"}, "ring.conf: .* is below .*: a circle of switches"),
        ({"kind": "tree", "file": "deep.conf"}, "s32 is below 32 switches; 32 are the most"),
        ({"kind": "tree", "file": "p.json"}, "p.json: name the keys of its places in `levels`"),
        ({"kind": "tree", "file": "p.json", "levels": ["s"]}, "p.json: n001: its place has no s"),
        ({"kind": "tree", "file": "p.json", "levels": ["a"]}, "p.json: has no place of n002"),
        ({"kind": "tree", "file": "few.conf", "names": "n{a}"}, "give file or names"),
        ({"kind": "tree", "file": "again.conf"}, "again.conf: a is described twice; give each"),
        ({"kind": "tree", "file": "again.json", "levels": ["a"]}, "json: has n001 twice; give it"),
        ({"kind": "tree", "file": "sizes.conf"}, "BlockSizes=two are no numbers; write e.g."),
        ({"kind": "tree", "levels": [{"s": 1}, {"s": 2}]}, "s is the name of two levels; choose"),
        ({"kind": "tree", "levels": [{"system": 2}]}, "system is a word for every network; choose"),
        ({"kind": "tree", "levels": [{"node": 2}]}, "node is a word for every network; choose"),
        (
            {"kind": "tree", "file": "few.conf", "levels": ["a", "b"]},
            r"1 level \(a .* none\), .* 2",
        ),
    ],
)
def test_bad_input_is_told_with_its_place(tmp_path: Path, topology: Any, told: str) -> None:
    (tmp_path / "few.conf").write_text("SwitchName=a Nodes=n[001-003]\n")
    both = "SwitchName=a Nodes=n[001-002]\nSwitchName=b Nodes=n[003-004]\n"
    (tmp_path / "two.conf").write_text(
        both + "SwitchName=s Switches=a,b\nSwitchName=t Switches=b\n"
    )
    (tmp_path / "lost.conf").write_text("SwitchName=a Nodes=n001\nSwitchName=s Switches=a,b\n")
    ring = "SwitchName=s Switches=t\nSwitchName=t Switches=s\n"
    (tmp_path / "ring.conf").write_text(both + ring)
    deep = "".join(f"SwitchName=s{i} Switches=s{i + 1}\n" for i in range(2000))
    (tmp_path / "deep.conf").write_text(f"{deep}SwitchName=s2000 Nodes=n[001-004]\n")
    (tmp_path / "p.json").write_text('{"n001": {"a": 1}}')
    (tmp_path / "again.json").write_text('{"n001": {"a": 1}, "n002": {"a": 1}, "n001": {"a": 2}}')
    (tmp_path / "again.conf").write_text(both.replace("SwitchName=b", "SwitchName=a"))
    (tmp_path / "sizes.conf").write_text("BlockName=a Nodes=n[001-004]\nBlockSizes=two\n")
    with pytest.raises(InvalidFiles, match=told):
        load_machine(write(tmp_path, topology))


def test_two_nodes_of_one_place_are_told(tmp_path: Path) -> None:
    told = {"kind": "tree", "names": "n{a}", "levels": [{"s": 2}]}
    with pytest.raises(InvalidFiles, match="n1 and n001 are at the same place"):
        loaded(tmp_path, told, nodes=[{"names": "n[001-004],n1", "cores": 4}])


# ---- the command --------------------------------------------------------------------------

PAGE = """\
m: dragonfly, 4 nodes

level          units   nodes of each  hops         pairs   share
router             3          1 to 2     1             1   16.7%
group              2               2     2             1   16.7%
system             1               4     4             4   66.7%

Mean hops: 3.17; bisection: 6 links (system), 28.2 GB/s in each direction

n001: group left, router leaf1
n004: group right, router leaf3
smallest common level: system; 4 hops
  n001 -> router leaf1 -> gateway of group left -> gateway of group right
    -> router leaf3
"""


def test_the_command_shows_levels_bisection_and_a_path(place: Workplace) -> None:
    (place.folder / "topology.conf").write_text(TREE)
    links = {"system": "4.7GB/s"}
    told = {"kind": "dragonfly", "levels": ["router", "group"], "ports": 6, "links": links}
    path = str(write(place.folder, {**told, "file": "topology.conf"}))
    done = place.seatrial("machine", path, "--topology", "--pair", "n001", "n004")
    assert (done.code, done.out) == (0, PAGE), done.said
    shown = json.loads(place.seatrial("machine", path, "--topology", "--format", "json").out)
    assert shown["levels"][1]["units"] == {"left": "n[001-002]", "right": "n[003-004]"}
    assert shown["pairs"] == {"router": 1, "group": 1, "system": 4}
    done = place.seatrial("machine", path, "--topology", "--pair", "n001", "n9")
    assert done.code == 2 and "n9 is not a node of this network" in done.said


@pytest.mark.slurm
def test_detect_and_check_agree_with_slurm(tmp_path: Path, place: Workplace) -> None:
    with SlurmCluster(tmp_path / "cluster", ClusterOptions(nodes=4, topology=TREE)) as cluster:
        place.env |= cluster.env
        done = place.seatrial("machine", "--detect", "--scheduler", "slurm")
        detected = yaml.safe_load(done.out)
        assert detected["topology"] == {"kind": "tree", "levels": LEVELS}, done.said
        assert detected["groups"] == LEVELS[0]["switch"]
        shown = cluster.run("scontrol", "show", "topology")
        (place.folder / "shown").write_text(shown)
        path = write(place.folder, {"kind": "tree", "file": "shown"})
        assert told_levels(load_machine(path).machine) == LEVELS
        checked = place.seatrial("machine", str(path), "--check")
        assert "topology" not in checked.out, checked.said
        path = write(place.folder, {"kind": "tree", "levels": [{"switch": 2}]})
        checked = place.seatrial("machine", str(path), "--check")
        assert checked.code == 1
        assert "topology.levels: in Slurm the switch leaf1 has n001, which is no" in checked.out
