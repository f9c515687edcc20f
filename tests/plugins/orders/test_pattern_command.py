"""`seatrial pattern`: what a program says that it sent is recorded, shown, and orders its ranks."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.execute.detect import detect
from seatrial.plugins.orders.patterns import read_pattern
from tests.mpich import MPIEXEC, NEEDS_MPICH
from tests.programs import Done, Workplace
from tests.slurm.cluster import SlurmCluster

HALO = Path(__file__).parent / "data" / "halo"


def a_suite(place: Workplace) -> None:
    shutil.copytree(HALO, place.suite / "halo")


def record(place: Workplace, tag: str, *words: str) -> Done:
    line = ("pattern", "record", str(place.suite), "-m", str(place.machine), "--name", tag)
    return place.seatrial(*line, *words, timeout=300)


def sent_by(text: str) -> list[list[int]]:
    """Return what the program says that it sent: from, to, messages, bytes."""
    found = re.findall(r"^sent (\d+) (\d+) (\d+) (\d+)$", text, re.M)
    return sorted([int(word) for word in row] for row in found)


def recorded(folder: Path) -> list[list[int]]:
    pattern = read_pattern(folder / "pattern.txt")
    columns = (pattern.senders, pattern.receivers, pattern.messages, pattern.volumes)
    return [list(row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def off_node(place: Workplace, run: str) -> Any:
    done = place.seatrial("pattern", "show", run, "--format", "json")
    assert done.code == 0, done.said
    return json.loads(done.out)["off_node"][1]


@NEEDS_MPICH
def test_a_halo_exchange_is_recorded_here(place: Workplace) -> None:
    """Four ranks on this host. Half of the messages go through a communicator that numbers the
    ranks backwards."""
    a_suite(place)
    launcher = {"kind": "mpiexec", "flavour": "mpich", "command": MPIEXEC}
    mpicc = str(Path(MPIEXEC).with_name("mpicc"))
    place.local(cores=4, toolchains={"mpich": {"mpicc": mpicc, "launcher": launcher}})
    done = record(place, "t")
    assert done.code == 0, done.said
    assert re.search(r"halo\S* +4 +80 +180\.0 KiB +0\.0 %", done.out), done.said
    folder = place.run_folder("halo")
    told = sent_by((folder / "stdout").read_text())
    assert len(told) == 8
    assert recorded(folder) == told
    shown = place.seatrial("pattern", "show", folder.name, "--top", "1")
    assert "sent      80 messages, 180.0 KiB, 8 pairs of ranks" in shown.out
    assert re.search(r"^ +0 +2 +10 +40,960 +22\.2 %$", shown.out, re.M), shown.out
    assert re.search(r"^MPI_Allreduce +8 B +40 +320$", shown.out, re.M), shown.out
    of_file = place.seatrial("pattern", "show", str(folder / "pattern.txt"), "--format", "json")
    assert json.loads(of_file.out)["sent"] == [80, 184320]
    (folder / "pattern.txt").write_text("seatrial pattern 1\nranks 8\n")
    torn = place.seatrial("pattern", "show", folder.name)
    assert (torn.code, torn.out) == (2, "")
    assert f"{folder}/pattern.txt: line 3: '' is not `pairs NUMBER`" in torn.said


@pytest.mark.slurm(hosts=True)
def test_a_recorded_run_orders_its_ranks(slurm_place: Workplace, cluster: SlurmCluster) -> None:
    """On two real nodes: what the best order promises for a recorded pattern is what the program
    sends off its node when it runs in that order."""
    place = slurm_place
    a_suite(place)
    chain = next(iter(detect("here").toolchains.values()))
    assert chain.launcher is not None, "make test brings an MPI where the machine has none"
    launcher = {"kind": "mpirun", "flavour": "openmpi", "command": chain.launcher.command}
    toolchain = {"mpicc": chain.mpicc, "launcher": launcher, "environment": chain.environment}
    place.slurm(cluster, {"poll": "0.5s"}, toolchains={"mpi": toolchain})
    hosts = ("--set", "hosts=2")
    done = record(place, "before", *hosts)
    assert done.code == 0, done.said
    folder = place.run_folder("halo", "before")
    assert recorded(folder) == sent_by((folder / "stdout").read_text())
    assert off_node(place, folder.name) == 163_840  # ranks 0 and 2, 1 and 3 are on two nodes
    best = place.seatrial(
        "order", "best", folder.name, "-m", str(place.machine), "--nodes", "n[001-002]"
    )
    assert re.search(r"^\S.* +20,480 +\d", best.err, re.M), best.said
    (place.suite / "halo" / "best.order").write_text(best.out)
    done = record(place, "after", *hosts, "--set", "order=file best.order")
    assert done.code == 0, done.said
    assert off_node(place, place.run_folder("halo", "after").name) == 20_480


def test_an_order_is_an_axis_of_a_tuning(place: Workplace) -> None:
    a_suite(place)
    (place.suite / "halo" / "best.order").write_text("0,2,1,3\n")
    launcher = {"kind": "mpiexec", "flavour": "mpich"}
    place.local(cores=4, toolchains={"none": {"mpicc": "mpicc", "launcher": launcher}})
    orders = ["default", "file best.order", "folded", "grid 2x2 by 2x1"]
    about = {
        "tune": "orders",
        "suite": "suite",
        "test": "halo",
        "metric": "sent",
        "axes": {"order": orders},
        "cost": "100%",
    }
    (place.folder / "tune.yaml").write_text(yaml.safe_dump(about))
    words = ("tune", "tune.yaml", "-m", str(place.machine), "--rehearse", "--seeds", "1")
    done = place.seatrial(*words)
    assert done.code == 0, done.said
    assert "4 settings" in done.said
    (place.suite / "halo" / "best.order").write_text("0,2,1\n")
    done = place.seatrial(*words)
    assert done.code == 2
    assert "best.order" in done.said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("show", "none"), "no run begins with 'none'"),
        (("show", "none.txt"), "none.txt: No such file or directory"),
        (("show", "odd.txt"), "odd.txt: is no pattern file: the first line is not"),
        (("record", "suite"), "preloads no library from a path with blanks or colons"),
    ],
)
def test_bad_input_is_told(place: Workplace, words: tuple[str, ...], told: str) -> None:
    (place.folder / "odd.txt").write_text("seatrial trial 1\n")
    place.test("t")
    trials = ("--trials", "my trials") if words[0] == "record" else ()
    done = place.seatrial(*trials, "pattern", *words)
    assert (done.code, done.out) == (2, ""), done.said
    assert told in done.said
