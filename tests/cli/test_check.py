"""``seatrial check nodes``: nodes with findings are drained with our note; others' notes stay."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from seatrial.errors import UsageError
from seatrial.execute import detect
from seatrial.execute.detect import DrainState
from seatrial.plugins.facts import rule_acts
from seatrial.results import notes as note_file
from tests.programs import Workplace
from tests.slurm.cluster import SlurmCluster

RULES = """\
rules:
  - {name: planted, about: a., source: s, do: d., holds: 'test.state != "bad"', drain: true}
  - {name: advice, about: a., source: s, do: d., holds: 'test.state == "good"'}
  - {name: counted, about: a., source: s, do: d., holds: role.oss == 0}
"""
NODES = ("n001", "n002", "n003")


def reason(cluster: SlurmCluster, node: str) -> str:
    """Return the state of a node and its reason; without the * of one that a busy host kept from
    answering Slurm's ping."""
    line = cluster.run("sinfo", "-h", "-N", "-n", node, "-o", "%T %E").splitlines()[0]
    return line.replace("*", "", 1)


class Checked:
    """A place whose nodes answer by a stand-in of ssh, as ``states`` say."""

    def __init__(self, place: Workplace, cluster: SlurmCluster) -> None:
        self.place = place
        self.states = dict.fromkeys(NODES, "good")
        machine = place.machine.read_text().replace(",".join(cluster.node_names), "n[001-003]")
        place.machine.write_text(machine)
        (place.folder / "rules.yaml").write_text(RULES)
        folder = place.folder / "bin"
        folder.mkdir()
        (folder / "ssh").write_text(
            '#!/bin/bash\nwhile [ "$1" != -- ]; do shift; done\n'
            f'printf "test.state\\t%s\\nend\\t1\\n" "$(cat {place.folder}/state.$2)"\n'
        )
        (folder / "ssh").chmod(0o755)
        place.env["PATH"] = f"{folder}:{os.environ['PATH']}"

    def check(self, *words: str, nodes: str = "n[001-003]") -> tuple[int, str]:
        for node, state in self.states.items():
            (self.place.folder / f"state.{node}").write_text(state)
        line = ["check", "nodes", "-m", str(self.place.machine), "--rules", "rules.yaml"]
        chosen = ["--by", "ssh", "--nodes", nodes] if nodes else []
        done = self.place.seatrial(*line, *chosen, *words)
        return done.code, done.said


@pytest.fixture
def checked(slurm_place: Workplace, cluster: SlurmCluster) -> Iterator[Checked]:
    """All nodes are returned afterwards."""
    yield Checked(slurm_place, cluster)
    for node in NODES:
        if "drain" in reason(cluster, node):
            cluster.run("scontrol", "update", f"nodename={node}", "state=resume")


@pytest.mark.slurm
def test_only_nodes_of_ours_are_drained_and_returned(
    checked: Checked, cluster: SlurmCluster
) -> None:
    cluster.run("scontrol", "update", "nodename=n002", "state=drain", "reason=by hand")
    states = checked.states
    states |= {"n001": "bad", "n003": "odd"}
    code, said = checked.check("--drain", "--resume")
    assert code == 1 and "drained n001: planted" in said and "advice: n003" in said, said
    assert reason(cluster, "n001") == "drained seatrial: planted"
    assert reason(cluster, "n002") == "drained by hand"
    assert reason(cluster, "n003").startswith("idle")
    notes = checked.place.seatrial("note", "--list").out
    assert "n001 drained: planted (facts of" in notes and "--resume)" in notes, notes
    states |= {"n001": "good", "n002": "bad", "n003": "good"}
    code, said = checked.check("--drain", "--resume")
    assert code == 1 and "returned n001" in said and "drained n002" not in said, said
    assert reason(cluster, "n001").startswith("idle")
    assert reason(cluster, "n002") == "drained by hand"
    assert "n001 returned: no finding" in checked.place.seatrial("note", "--list").out
    states["n002"] = "good"
    code, said = checked.check("--drain", "--resume")
    assert code == 0, said
    assert reason(cluster, "n002") == "drained by hand"


@pytest.mark.slurm
def test_a_rule_that_accuses_all_drains_nothing(checked: Checked, cluster: SlurmCluster) -> None:
    checked.states = dict.fromkeys(NODES, "bad")
    code, said = checked.check("--drain")
    assert code == 2 and "would drain n[001-003]: planted" in said, said
    assert "3 nodes of 3; without a question it drains at most 1; nothing was drained" in said
    assert all(reason(cluster, node).startswith("idle") for node in NODES)
    assert "No notes" in checked.place.seatrial("note", "--list").out
    code, said = checked.check("--drain", nodes="n001")
    assert code == 1 and "drained n001: planted" in said, said
    code, said = checked.check("--drain", nodes="n002")  # step by step is no way around it
    assert code == 2 and "a note of ours drained 1 already" in said, said
    code, said = checked.check("--drain", "--most", "70%", nodes="n002")
    assert code == 1 and "drained n002: planted" in said, said
    code, said = checked.check("--drain", "--yes")
    assert code == 1 and "drained n003: planted" in said, said
    # No node is up now: the drained ones are asked all the same.
    checked.states |= {"n001": "good", "n003": "odd"}
    code, said = checked.check("--resume", nodes="")
    assert code == 1 and "returned n[001,003]" in said, said
    assert "stays drained: n002: planted" in said, said
    assert reason(cluster, "n001").startswith("idle")
    assert reason(cluster, "n002") == "drained seatrial: planted"


@pytest.mark.parametrize("agreed", [True, False])
def test_on_a_terminal_people_are_asked(agreed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    told = {node: DrainState(away=False, drained=False) for node in NODES}
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))

    def confirm(text: str) -> bool:
        asked.append(text)
        return agreed

    monkeypatch.setattr(click, "confirm", confirm)
    drained: list[list[str]] = []
    monkeypatch.setattr(detect, "states", lambda: told)
    monkeypatch.setattr(detect, "drain", lambda nodes, reason: drained.append([*nodes]))
    monkeypatch.setattr(note_file, "write", lambda *about: SimpleNamespace(id="1"))
    acts = rule_acts.NodeActs(Path("notes"), "m", "t")
    reasons = {node: ["r"] for node in NODES}
    with nullcontext() if agreed else pytest.raises(UsageError, match="nothing was drained"):
        acts.drain(reasons, NODES, 0.05, yes=False)
    assert asked == ["Drain them?"] and drained == ([[*NODES]] if agreed else [])


def test_a_machine_without_slurm_drains_nothing(place: Workplace) -> None:
    done = place.seatrial("check", "nodes", "-m", str(place.machine), "--drain")
    assert done.code == 2 and "here is `scheduler: local`" in done.err
