from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from seatrial.errors import UsageError
from seatrial.execute.detect import find_machine
from seatrial.model import machine_file
from tests.execute.plans import accept, short, write_plan
from tests.model.fakes import program
from tests.programs import Workplace
from tests.slurm.cluster import SlurmCluster


@pytest.fixture
def login_node(place: Workplace) -> Workplace:
    """A host on which a Slurm answers, and whose file nobody wrote."""
    folder = place.folder / "bin"
    program(folder, "scontrol", {"*config": "ClusterName             = frost"})
    place.env |= {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(place.folder)}
    return place


def test_a_login_node_runs_nothing_unasked(login_node: Workplace) -> None:
    login_node.test("t")
    done = login_node.seatrial("run", "suite", "--name", "t")
    assert done.code == 2
    assert "frost" in done.err and "-m local" in done.err
    assert login_node.ran() == []
    assert login_node.seatrial("run", "suite", "--name", "t", "-m", "local").code == 0
    assert login_node.ran()


def test_what_names_a_machine_is_asked_in_this_order(login_node: Workplace) -> None:
    login_node.test("t")
    for name in ("first", "second", "third"):
        nodes = [{"names": name, "cores": 1}]
        (login_node.folder / f"{name}.yaml").write_text(
            yaml.safe_dump({"machine": name, "nodes": nodes, "toolchains": {"plain": {}}})
        )
    config = login_node.folder / ".config/seatrial/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(f"machine: {login_node.folder}/third.yaml\n")

    def machine(*words: str) -> str:
        tag = f"t{len(words)}"
        done = login_node.seatrial("run", "suite", "--dry-run", "--name", tag, *words)
        assert done.code == 0, done.said
        return login_node.trial(tag).record().machine.machine

    assert machine() == "third"
    login_node.env["SEATRIAL_MACHINE"] = f"{login_node.folder}/second.yaml"
    assert machine("-q") == "second"
    assert machine("-m", f"{login_node.folder}/first.yaml") == "first"


def test_a_plan_without_a_machine_runs_nothing_there(login_node: Workplace) -> None:
    short(login_node, "s")
    path = write_plan(login_node)
    plan = yaml.safe_load(path.read_text())
    del plan["machine"]
    path.write_text(yaml.safe_dump(plan))
    done = accept(login_node)
    assert done.code == 2, done.said
    assert "machine: local" in done.err
    path.write_text(yaml.safe_dump({**plan, "machine": "local"}))
    assert accept(login_node).code == 0


@pytest.mark.slurm
def test_a_real_login_node(place: Workplace, cluster: SlurmCluster) -> None:
    place.env |= cluster.env
    place.test("t")
    done = place.seatrial("run", "suite")
    assert (done.code, place.ran()) == (2, [])
    assert f"cluster {cluster.options.name}" in done.err


def test_a_machine_of_the_site_is_found_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / ".config" / "seatrial"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(machine_file, "SITE_FOLDER", tmp_path / "etc")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/frost.yaml").write_text("machine: frost\nnodes: [{names: n1, cores: 4}]\n")
    assert find_machine("frost").machine.nodes[0].cores == 4
    (home / "machines").mkdir()
    (home / "machines/frost.yaml").write_text("machine: frost\nnodes: [{names: n1, cores: 8}]\n")
    assert find_machine("frost").machine.nodes[0].cores == 8
    with pytest.raises(UsageError, match=r"described are .*frost"):
        find_machine("thaw")
