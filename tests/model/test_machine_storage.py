"""File systems, gauges and what a rehearsal assumes: what is wrong in a machine's file, by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.errors import InvalidFiles
from seatrial.model.machine import FileSystem, MetadataTarget
from seatrial.model.machine_file import load_machine
from seatrial.model.nodes import groups_of
from seatrial.plugins.rehearsal.keys import model_of

HEAD = "machine: m\nscheduler: slurm\nnodes: [{names: 'n[1-4]', cores: 4}]\n"  # three lines

BROKEN: dict[str, tuple[str, list[str]]] = {
    "groups": (
        "groups: {a b: n1, east: 'n[1-2]', west: 'n[2-3]', none: '', far: 'n[4-5]', odd: 'n['}\n",
        [
            "4: groups.a b: a name must be letters, digits, ._-",
            "4: groups.east: n1 is in the group a b, too; give each node one",
            "4: groups.west: n2 is in the group east, too; give each node one",
            "4: groups.none: has no nodes; write e.g. n[001-128]",
            "4: groups.far: n5 is not a node of this machine",
            "4: groups.odd: 'n[' is not a node set: missing bracket: \"n[\"; write e.g. n[001-128]",
        ],
    ),
    "file systems": (
        "file_systems:\n"
        "  scratch fs: {path: scratch, timeout: 0, space: much}\n"
        "  work:\n"
        "    path: /work\n"
        "    targets: [mdt0, {name: mdt0}, a b]\n"
        "    rehearsal:\n"
        "      production:\n"
        "        - {from: early, load: 1}\n"
        "        - {from: 0, load: 1, target: mdt9}\n"
        "  home: {path: home}\n",
        [
            "5: file_systems.scratch fs: a name must be letters, digits, ._-",
            "5: file_systems.scratch fs.path: 'scratch' must be an absolute path",
            "5: file_systems.scratch fs.timeout: 0 is not a duration between 1 ms and 10 years",
            "5: file_systems.scratch fs.space: 'much' is not a size; write e.g. 64MiB, 2GB or 4096",
            "8: file_systems.work.targets[1]: mdt0 is given twice",
            "8: file_systems.work.targets[2]: 'a b': a name must be letters, digits, ._-",
            "11: file_systems.work.rehearsal.production[0].from: 'early' is not a duration; "
            "write e.g. 90s, 5m, 1h30m or 01:30:00",
            "12: file_systems.work.rehearsal.production[1].target: no target 'mdt9'; "
            "there are a b, mdt0",
            "13: file_systems.home.path: 'home' must be an absolute path",
        ],
    ),
    "gauges": (
        "file_systems: {work: {path: /work, targets: [mdt0]}}\n"
        "gauges:\n"
        "  load: {command: ' ', every: x, timeout: -1}\n"
        "  my load: {command: echo 1, rehearsal: work/mdt1}\n"
        "  good: {command: echo 1, rehearsal: work/mdt0}\n",
        [
            "6: gauges.load.command: is empty; write bash that prints one number",
            "6: gauges.load.every: 'x' is not a duration; write e.g. 90s, 5m, 1h30m or 01:30:00",
            "6: gauges.load.timeout: -1 is not a duration between 1 ms and 10 years",
            "7: gauges.my load: a name must be letters, digits, ._-",
            "7: gauges.my load.rehearsal: no file system or target 'work/mdt1'; "
            "there are work, work/mdt0",
        ],
    ),
    "rehearsals": (
        "rehearsal:\n"
        "  node_failures: rare\n"
        "  repair: 0\n"
        "  slow_nodes: 120%\n"
        "  partitions: {big one: 'n[1-4]', small: 'n[4-5]', none: ''}\n"
        "  background: {swf: no.swf, load: 2, nodes: [0, 4, 5], elapsed: x}\n",
        [
            "5: rehearsal.node_failures: 'rare' is not a duration; "
            "write e.g. 90s, 5m, 1h30m or 01:30:00",
            "6: rehearsal.repair: 0 is not a duration between 1 ms and 10 years",
            "7: rehearsal.slow_nodes: 120% is more than 100%",
            "8: rehearsal.partitions.big one: a name must be letters, digits, ._-",
            "8: rehearsal.partitions.small: n5 is not a node of this machine",
            "8: rehearsal.partitions.none: has no nodes; write e.g. n[001-128]",
            "9: rehearsal.background: "
            "give swf, a file of jobs, or load, the share of made ones; not both",
            "9: rehearsal.background.load: 2 is more than 100%",
            "9: rehearsal.background.elapsed: 'x' is not a duration; "
            "write e.g. 90s, 5m, 1h30m or 01:30:00",
            "9: rehearsal.background.nodes[0]: 0 is not between 1 and the machine's 4 nodes",
            "9: rehearsal.background.nodes[2]: 5 is not between 1 and the machine's 4 nodes",
            "9: rehearsal.background.swf: no.swf is no file",
        ],
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_told_at_its_line(tmp_path: Path, name: str) -> None:
    written, expected = BROKEN[name]
    path = tmp_path / "m.yaml"
    path.write_text(HEAD + written)
    with pytest.raises(InvalidFiles) as raised:
        load_machine(path)
    # faults of one line come in any order
    assert sorted(text.replace(f"{tmp_path}/", "") for text in raised.value.faults) == sorted(
        f"m.yaml:{text}" for text in expected
    )


def test_a_workload_is_found_beside_the_machines_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "machines").mkdir()
    (tmp_path / "machines/jobs.swf").write_text("; no job\n")
    (tmp_path / "machines/m.yaml").write_text(
        HEAD + "rehearsal: {background: {swf: jobs.swf}, node_failures: 0}\n"
    )
    monkeypatch.chdir(tmp_path)
    background = model_of(load_machine(Path("machines/m.yaml")).machine).background
    assert background is not None
    assert background.swf == str(tmp_path / "machines/jobs.swf")


def test_the_group_of_each_node(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(HEAD + "groups: {east: 'n[1-2]', west: n4}\n")
    machine = load_machine(path).machine
    assert groups_of(machine) == {"n1": "east", "n2": "east", "n4": "west"}


def test_targets_have_weights() -> None:
    system = FileSystem(path="/work", targets=["mdt0", MetadataTarget(name="mdt1", weight=2)])
    assert [(t.name, t.weight) for t in system.metadata_targets] == [("mdt0", 1), ("mdt1", 2)]
