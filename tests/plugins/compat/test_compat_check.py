"""``seatrial compat check``: a node that lacks something is named, with what it lacks."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from seatrial.journal.events import CompatStarted, RunCreated, RunJudged
from seatrial.model.codes import FAILED, PASS
from tests.programs import COMPILERS, Workplace
from tests.slurm.cluster import SlurmCluster
from tests.slurm.named_hosts import inside
from tests.waiting import LONG_S


@pytest.fixture
def slurm_place(place: Workplace, cluster: SlurmCluster) -> Workplace:
    """A place to work in whose machine is two nodes of the shared cluster; a check is compiled."""
    place.slurm(cluster, toolchains=COMPILERS)
    machine = place.machine.read_text().replace(",".join(cluster.node_names), "n[001-002]")
    place.machine.write_text(machine)
    return place


@contextmanager
def hidden(cluster: SlurmCluster, node: str, path: str) -> Iterator[None]:
    """A file that only one node does not have: an empty one lies over it there."""
    enter = inside(cluster.conf, node)
    subprocess.run([*enter, "mount", "--bind", "/dev/null", path], check=True, timeout=LONG_S)
    try:
        yield
    finally:
        subprocess.run([*enter, "umount", path], check=True, timeout=LONG_S)


def judged_of(place: Workplace) -> dict[tuple[str | None, Any], RunJudged]:
    """The judgements of a check by node and way."""
    of_case = {case.id: (case.node, case.parameters["way"]) for case in place.trial("t").cases()}
    of_run = {made.run_id: of_case[made.case] for made in place.events("t", RunCreated)}
    return {of_run[each.run_id]: each for each in place.events("t", RunJudged)}


@pytest.mark.slurm(hosts=True)
def test_a_node_without_getent_is_named(slurm_place: Workplace, cluster: SlurmCluster) -> None:
    place = slurm_place
    getent = shutil.which("getent")
    assert getent
    with hidden(cluster, "n002", getent):
        done = place.seatrial("compat", "check", "-m", str(place.machine), "--name", "t")
    assert done.code == 1, done.said
    judged = judged_of(place)
    assert judged.keys() == {(n, w) for n in ("n001", "n002") for w in ("none", "compat")}
    for way in ("none", "compat"):
        good, bad = judged["n001", way], judged["n002", way]
        assert good.code == PASS.number, good.reason
        assert bad.code == FAILED.number
        assert "n002: getent: getent passwd" in bad.reason, bad.reason
        assert "names: getent hosts n002 finds no address" in bad.reason
        folder = place.trial("t").run("check", bad.run_id)
        assert "ok sockets 127.0.0.1, n002, local" in (folder / "stdout").read_text()


@pytest.mark.needs("sshd", "xauth")
@pytest.mark.slurm(hosts=True)
def test_the_other_mode_is_checked_too(slurm_place: Workplace, cluster: SlurmCluster) -> None:
    place = slurm_place
    xauth = shutil.which("xauth")
    assert xauth
    machine = place.machine.read_text()
    words = ("-m", str(place.machine), "--mode", "sshd", "--x11", "--name", "t")
    with hidden(cluster, "n002", xauth):
        done = place.seatrial("compat", "check", *words)
    assert done.code == 1, done.said
    assert [each.mode for each in place.events("t", CompatStarted)] == ["sshd", "sshd"]
    judged = judged_of(place)
    for way in ("none", "compat"):
        assert judged["n001", way].code == PASS.number, judged["n001", way].reason
        assert "n002: xauth: there is no xauth: no window" in judged["n002", way].reason
    assert place.machine.read_text() == machine


def test_a_mode_of_a_machine_without_a_file_is_refused(place: Workplace) -> None:
    place.env["HOME"] = str(place.folder)
    done = place.seatrial("compat", "check", "--mode", "sshd")
    assert done.code == 2 and "--mode: no file describes this machine" in done.err


def test_a_folder_that_is_not_there_is_told(place: Workplace) -> None:
    place.local(cores=2, toolchains=COMPILERS)
    words = ("-m", str(place.machine), "--scratch", "/nowhere", "--name", "t")
    done = place.seatrial("compat", "check", *words)
    assert done.code == 1, done.said
    reasons = [judged.reason for judged in place.events("t", RunJudged)]
    assert len(reasons) == 2 and all("tmp: /nowhere is not there" in each for each in reasons)
