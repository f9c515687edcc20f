"""Real and torn files of hwloc."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from seatrial.model import nodes
from seatrial.model.nodes import written
from tests.model.hwloc import xml_of

XML = xml_of("pack:2 numa:2 core:2 pu:2(indexes=2*8:1*2)")

# hwloc 1 has sockets, below NUMA domains in the tree; a set of CPUs may have several words.
VERSION_1 = """
<topology><object type="Machine" cpuset="0x00000003,0x00000003">
 <object type="NUMANode" os_index="0" cpuset="0x00000003">
  <object type="Socket" cpuset="0x00000003"><object type="Core" cpuset="0x00000001"/>
   <object type="Core" cpuset="0x00000002"/></object></object>
 <object type="NUMANode" os_index="1" cpuset="0x00000003,0x0">
  <object type="Socket" cpuset="0x00000003,0x0"><object type="Core" cpuset="0x00000003,"/>
 </object></object></object></topology>"""

# Fast memory beside the usual one is a domain with the same CPUs; a device's has none.
TWO_MEMORIES = """
<topology version="2.0"><object type="Machine" cpuset="0xf">
 <object type="NUMANode" os_index="0" cpuset="0xf"/>
 <object type="NUMANode" os_index="1" cpuset="0xf"/>
 <object type="NUMANode" os_index="2" cpuset="0x0"/>
 <object type="PU" cpuset="0x1"/><object type="PU" cpuset="0x2"/>
 <object type="PU" cpuset="0x4"/><object type="PU" cpuset="0x8"/></object></topology>"""


def test_what_hwloc_writes() -> None:
    assert written(nodes.parse_hwloc_xml(XML)) == [
        ["0-1+8-9", "2-3+10-11"],
        ["4-5+12-13", "6-7+14-15"],
    ]


def test_version_1_and_nodes_without_cores_or_with_two_memories() -> None:
    assert written(nodes.parse_hwloc_xml(VERSION_1)) == [["0-1"], ["32+33"]]
    assert written(nodes.parse_hwloc_xml(TWO_MEMORIES)) == [["0-3"]]


@pytest.mark.needs("lstopo-no-graphics")
def test_this_host(tmp_path: Path) -> None:
    file = tmp_path / "node.xml"
    program = shutil.which("lstopo-no-graphics") or ""
    subprocess.run([program, "--of", "xml", str(file)], check=True, timeout=30)
    layout = nodes.parse_hwloc_xml(file.read_text())
    assert {cpu for core in layout.cores for cpu in core.cpus} <= set(range(16_384))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (XML[:3000], "is not whole XML ("),
        ("", "is not whole XML ("),
        ("<html/>", "is XML of another kind: <html>, not <topology>; write it again: lstopo"),
        ("<topology/>", "describes no core and no PU"),
        ('<topology><object type="PU" cpuset="zz"/></topology>', "'zz' is no set of CPUs"),
        ('<!DOCTYPE t [<!ENTITY a "b">]><topology/>', "declares entities"),
    ],
)
def test_files_that_are_torn_or_others(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        nodes.parse_hwloc_xml(text)


def test_a_file_cut_anywhere_is_refused() -> None:
    whole = XML.rstrip()
    for end in range(0, len(whole) - 1, 97):
        with pytest.raises(ValueError, match=r"is not whole XML|no core"):
            nodes.parse_hwloc_xml(whole[:end])
