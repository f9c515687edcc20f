"""The layout of nodes in a machine's file: its facts, its faults, and what a trial keeps of it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from seatrial.errors import InvalidFiles
from seatrial.model.file_model import plain
from seatrial.model.machine import Machine, NodeGroup
from seatrial.model.machine_file import load_machine
from seatrial.model.nodes import facts_of, layout_of, written
from tests.model.hwloc import xml_of

HOPPER = "pack:2 numa:2 core:6 pu:1"
TEXTS = [["0-5", "6-11"], ["12-17", "18-23"]]


def load(folder: Path, layout: str, more: str = "", cores: int = 24) -> Machine:
    """The machine of a file with one kind of nodes."""
    file = folder / "m.yaml"
    lines = [
        "machine: m",
        "nodes:",
        "  - names: n1",
        f"    cores: {cores}",
        f"    layout: {layout}",
    ]
    file.write_text("\n".join([*lines, *([f"    {more}"] if more else []), ""]))
    return load_machine(file).machine


@pytest.mark.parametrize("layout", [HOPPER, "{file: node.xml}", f"{{sockets: {TEXTS}}}"])
def test_three_ways_to_say_the_same(tmp_path: Path, layout: str) -> None:
    (tmp_path / "node.xml").write_text(xml_of(HOPPER))
    machine = load(tmp_path, layout)
    (kind,) = machine.nodes
    assert (kind.cores, kind.sockets, kind.numa_domains, kind.threads_per_core) == (24, 2, 4, 1)
    assert written(layout_of(kind)) == TEXTS
    facts = facts_of(machine, machine.nodes).names
    assert (facts["node.cores_per_numa"], facts["node.cores_per_socket"]) == (6, 12)
    assert facts["node.numa_domains"] == 4


def test_a_trial_keeps_the_layout_and_not_the_name_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "node.xml").write_text(xml_of(HOPPER))
    machine = load(tmp_path, "{file: node.xml}")
    (tmp_path / "node.xml").unlink()
    kept = msgspec.json.decode(msgspec.json.encode(machine), type=Machine)
    assert layout_of(kept.nodes[0]) == layout_of(machine.nodes[0])


@pytest.mark.parametrize(
    ("notation", "sockets"),
    [
        ("numa:1 pack:8 core:1 pu:1", 8),  # a virtual machine
        ("numa:1 pack:2 core:4 pu:2", 2),  # interleaved memory
    ],
)
def test_a_numa_domain_may_span_sockets(tmp_path: Path, notation: str, sockets: int) -> None:
    (tmp_path / "node.xml").write_text(xml_of(notation))
    machine = load(tmp_path, "{file: node.xml}", cores=8)
    (kind,) = machine.nodes
    assert (kind.cores, kind.sockets, kind.numa_domains) == (8, sockets, 1)
    # what is shown can be read back, and numbers alone say the same
    (tmp_path / "shown").mkdir()
    (tmp_path / "shown" / "m.yaml").write_bytes(msgspec.json.encode(plain(machine)))
    again = load_machine(tmp_path / "shown" / "m.yaml").machine
    assert layout_of(again.nodes[0]) == layout_of(kind)
    numbers = layout_of(NodeGroup(names="n", cores=8, sockets=sockets, numa_domains=1))
    assert numbers.parts == layout_of(kind).parts


def test_without_a_layout_it_is_made_of_numbers() -> None:
    layout = layout_of(NodeGroup(names="n1", cores=24, sockets=2, numa_domains=4))
    assert written(layout) == TEXTS
    assert not layout.numbered


@pytest.mark.parametrize(
    ("layout", "more", "told"),
    [
        ("pack:2 core:6 pu:1", "", ":4: nodes[0].cores: is 24, but `layout` has 12; correct one"),
        (HOPPER, "sockets: 4", ":6: nodes[0].sockets: is 4, but `layout` has 2; correct"),
        (HOPPER, "numa_domains: 2", ":6: nodes[0].numa_domains: is 2, but `layout` has 4"),
        (HOPPER, "threads_per_core: 2", ":6: nodes[0].threads_per_core: is 2, but `layout` has 1"),
        ("pack:2 nmua:2 core:6 pu:1", "", ":5: nodes[0].layout: 'nmua' is not an object of hwloc"),
        ("{file: torn.xml}", "", ":5: nodes[0].layout.file: FOLDER/torn.xml: is not whole XML ("),
        ("{file: none.xml}", "", ":5: nodes[0].layout.file: FOLDER/none.xml: No such file"),
        (
            "{sockets: [['0']], domains: ['1']}",
            "",
            ":5: nodes[0].layout.domains: CPU 0 and its core",
        ),
        ("{sockets: [['0+1']], domains: ['0', '1']}", "", "its core must be in one NUMA domain"),
        ("{sockets: [['0-3']], domains: ['0-1', '1-3']}", "", "CPU 1 is in two NUMA domains"),
        (
            "{sockets: [['0-3']], domains: ['0-3,9-12']}",
            "",
            "CPU 9 of a NUMA domain is in no socke",
        ),
        ("{sockets: [['0']], domains: ['x']}", "", ":5: nodes[0].layout.domains: 'x' is no list"),
        ("{file: a.xml, sockets: [['0']]}", "", ":5: nodes[0].layout: give file or sockets, one"),
        ("{}", "", ":5: nodes[0].layout: give file or sockets, one of them"),
        ("{sockets: [['x']]}", "", ":5: nodes[0].layout.sockets: 'x' is no list of CPUs; write"),
        ("[pack]", "", ":5: nodes[0].layout: a list is not"),
    ],
)
def test_faults_have_their_line(tmp_path: Path, layout: str, more: str, told: str) -> None:
    (tmp_path / "torn.xml").write_text(xml_of(HOPPER)[:2000])
    with pytest.raises(InvalidFiles) as raised:
        load(tmp_path, layout, more)
    (fault,) = raised.value.faults
    assert told in fault.replace(str(tmp_path), "FOLDER")
