"""``seatrial check nodes``: nodes with findings are drained with our note; others' notes stay."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.programs import Workplace
from tests.slurm.cluster import SlurmCluster

RULES = """\
rules:
  - {name: planted, about: a., source: s, do: d., holds: 'test.state == "good"'}
"""


def reason(cluster: SlurmCluster, node: str) -> str:
    return cluster.run("sinfo", "-h", "-N", "-n", node, "-o", "%T %E").splitlines()[0]


@pytest.fixture
def drained(cluster: SlurmCluster) -> Iterator[SlurmCluster]:
    """The cluster, with n002 drained by somebody else; all nodes are returned afterwards."""
    cluster.run("scontrol", "update", "nodename=n002", "state=drain", "reason=by hand")
    yield cluster
    for node in ("n001", "n002", "n003"):
        if "drain" in reason(cluster, node):
            cluster.run("scontrol", "update", f"nodename={node}", "state=resume")


@pytest.mark.slurm
def test_only_nodes_of_ours_are_drained_and_returned(
    slurm_place: Workplace, drained: SlurmCluster
) -> None:
    place = slurm_place
    machine = place.machine.read_text().replace(",".join(drained.node_names), "n[001-003]")
    place.machine.write_text(machine)
    (place.folder / "rules.yaml").write_text(RULES)
    states = {"n001": "bad", "n002": "good", "n003": "good"}
    folder = place.folder / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(
        '#!/bin/bash\nwhile [ "$1" != -- ]; do shift; done\n'
        f'printf "test.state\\t%s\\nend\\t1\\n" "$(cat {place.folder}/state.$2)"\n'
    )
    (folder / "ssh").chmod(0o755)
    place.env["PATH"] = f"{folder}:{os.environ['PATH']}"
    words = ["check", "nodes", "-m", str(place.machine), "--rules", "rules.yaml", "--by", "ssh"]
    words += ["--nodes", "n[001-003]", "--drain", "--resume"]

    def check() -> tuple[int, str]:
        for node, state in states.items():
            (place.folder / f"state.{node}").write_text(state)
        done = place.seatrial(*words)
        return done.code, done.said

    code, said = check()
    assert code == 1 and "drained n001: planted" in said, said
    assert reason(drained, "n001") == "drained seatrial: planted"
    assert reason(drained, "n002") == "drained by hand"
    assert reason(drained, "n003").startswith("idle")
    states |= {"n001": "good", "n002": "bad"}
    code, said = check()
    assert code == 1 and "returned n001" in said and "drained n002" not in said, said
    assert reason(drained, "n001").startswith("idle")
    assert reason(drained, "n002") == "drained by hand"
    states["n002"] = "good"
    code, said = check()
    assert code == 0, said
    assert reason(drained, "n002") == "drained by hand"


def test_a_machine_without_slurm_drains_nothing(place: Workplace) -> None:
    done = place.seatrial("check", "nodes", "-m", str(place.machine), "--drain")
    assert done.code == 2 and "here is `scheduler: local`" in done.err
