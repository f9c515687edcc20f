"""``seatrial compat check``: a node that lacks something is named, with what it lacks."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from seatrial.journal.codes import FAILED, PASS
from seatrial.journal.events import CompatStarted, RunCreated, RunJudged
from tests.programs import Workplace
from tests.slurm.cluster import SlurmCluster
from tests.slurm.named_hosts import inside
from tests.waiting import LONG_S


@contextmanager
def hidden(cluster: SlurmCluster, node: str, path: str) -> Iterator[None]:
    """A file that only one node does not have: an empty one lies over it there."""
    enter = inside(cluster.conf, node)
    subprocess.run([*enter, "mount", "--bind", "/dev/null", path], check=True, timeout=LONG_S)
    try:
        yield
    finally:
        subprocess.run([*enter, "umount", path], check=True, timeout=LONG_S)


@pytest.mark.slurm(hosts=True)
def test_a_node_without_getent_is_named(slurm_place: Workplace, cluster: SlurmCluster) -> None:
    place = slurm_place
    getent = shutil.which("getent")
    assert getent
    place.machine.write_text(
        place.machine.read_text().replace(",".join(cluster.node_names), "n[001-002]")
    )
    with hidden(cluster, "n002", getent):
        done = place.seatrial("compat", "check", "-m", str(place.machine), "--name", "t")
    assert done.code == 1, done.said
    nodes = {case.id: case.node for case in place.trial("t").cases()}
    ways = {case.id: case.parameters["way"] for case in place.trial("t").cases()}
    of = {
        made.run_id: (nodes[made.case], ways[made.case]) for made in place.events("t", RunCreated)
    }
    judged = {of[each.run_id]: each for each in place.events("t", RunJudged)}
    assert judged.keys() == {(n, w) for n in ("n001", "n002") for w in ("none", "compat")}
    for way in ("none", "compat"):
        good, bad = judged["n001", way], judged["n002", way]
        assert good.code == PASS.number, good.reason
        assert bad.code == FAILED.number
        assert "n002: getent: getent passwd" in bad.reason, bad.reason
        assert "names: getent hosts n002 finds no address" in bad.reason
        folder = place.trial("t").run("check", bad.run_id)
        assert "ok sockets 127.0.0.1, n002, local" in (folder / "stdout").read_text()


@pytest.mark.needs("sshd")
@pytest.mark.slurm(hosts=True)
def test_the_other_mode_is_checked_too(slurm_place: Workplace, cluster: SlurmCluster) -> None:
    place = slurm_place
    machine = place.machine.read_text().replace(",".join(cluster.node_names), "n001")
    place.machine.write_text(machine)
    words = ("-m", str(place.machine), "--mode", "sshd", "--name", "t")
    done = place.seatrial("compat", "check", *words)
    assert done.code == 0, done.said
    (started,) = place.events("t", CompatStarted)
    assert started.mode == "sshd"
    assert place.machine.read_text() == machine


def test_a_mode_of_a_machine_without_a_file_is_refused(place: Workplace) -> None:
    place.env["HOME"] = str(place.folder)
    done = place.seatrial("compat", "check", "--mode", "sshd")
    assert done.code == 2 and "--mode: no file describes this machine" in done.err


def test_a_folder_that_is_not_there_is_told(place: Workplace) -> None:
    place.local(cores=2)
    words = ("-m", str(place.machine), "--scratch", "/nowhere", "--name", "t")
    done = place.seatrial("compat", "check", *words)
    assert done.code == 1, done.said
    reasons = [judged.reason for judged in place.events("t", RunJudged)]
    assert len(reasons) == 2 and all("tmp: /nowhere is not there" in each for each in reasons)
