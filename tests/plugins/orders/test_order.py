"""`seatrial order`: files for MPI libraries and Slurm, which put ranks where the order says."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.model.test_grid_order import ORACLE
from tests.programs import Workplace
from tests.slurm.cluster import SlurmCluster


def test_hpe_s_grid_order_and_files_for_others(place: Workplace) -> None:
    done = place.seatrial("order", "grid", "-R", "-c", "32", "-g", "4,4,4")
    assert (done.code, done.out) == (0, ORACLE), done.said
    assert "for cray: MPICH_RANK_REORDER_METHOD=3 MPICH_RANK_REORDER_FILE=FILE" in done.said
    (place.folder / "mine").write_text("# by hand\n3,1-2\n0\n")
    done = place.seatrial("order", "file", "mine", "-N", "2")
    assert done.out == "3,1\n2,0\n", done.said
    words = ("order", "folded", "-n", "5", "-N", "2", "--nodes", "n[3-7]")
    assert place.seatrial(*words, "--for", "mpich").out.split() == ["n3", "n4", "n5", "n4", "n3"]
    assert place.seatrial(*words, "--for", "openmpi").out.splitlines() == [
        "rank 0=n3 slot=0",
        "rank 1=n4 slot=0",
        "rank 2=n5 slot=0",
        "rank 3=n4 slot=1",
        "rank 4=n3 slot=1",
    ]


NETWORK = """
machine: net
scheduler: slurm
nodes: [{names: "n[1-4]", cores: 4}]
topology: {kind: tree, levels: [{switch: 2}]}
"""


def test_the_best_order_for_a_pattern(place: Workplace) -> None:
    """Ranks 0 and 4, 1 and 5, ... talk to each other alone."""
    pairs = "".join(f"{rank} {(rank + 4) % 8} 1 100\n" for rank in range(8))
    text = f"seatrial pattern 1\nranks 8\npairs 8\ncalls 0\n{pairs}end\n"
    (place.folder / "far.pattern").write_text(text)
    (place.folder / "net.yaml").write_text(NETWORK)
    words = ("order", "best", "far.pattern", "-m", "net.yaml", "--nodes")
    done = place.seatrial(*words, "n[1-4]")
    assert done.code == 0, done.said
    rows = {frozenset(map(int, line.split(","))) for line in done.out.splitlines()}
    assert rows == {frozenset((rank, rank + 4)) for rank in range(4)}
    assert re.search(r"^smp +800 +3,200 +\d+$", done.err, re.MULTILINE), done.err
    done = place.seatrial(*words, "n[1-4]", "--for", "slurm")
    assert sorted(done.out.split()) == sorted([f"n{node}" for node in range(1, 5)] * 2)
    done = place.seatrial(*words, "n[1-3]", "-N", "2")
    assert (done.code, done.out) == (2, "")
    assert "8 ranks of 2 a node need 4 nodes; --nodes has 3" in done.said
    done = place.seatrial(*words, "n[1-3],x9")
    assert "x9: not among the nodes of net, n[1-4]; correct --nodes" in done.said
    done = place.seatrial(*words, "n[1-4],x9", "-N", "2")  # no rank would be on x9
    assert (done.code, done.out) == (2, "") and "x9: not among the nodes" in done.said
    done = place.seatrial("order", "best", "halo 4x4", *words[3:], "n[1-3]")
    assert (done.code, done.out) == (2, "")
    assert "n1 would get 6 ranks and has 4 CPUs" in done.said
    (place.folder / "far.pattern").write_text(text.replace("end\n", ""))
    done = place.seatrial(*words, "n[1-4]")
    assert (done.code, done.out) == (2, "")
    assert "far.pattern: was cut short or changed" in done.said


@pytest.mark.slurm
def test_nodes_that_get_no_jobs_are_told_beside_the_best_order(
    slurm_place: Workplace, cluster: SlurmCluster
) -> None:
    first, second = cluster.node_names[:2]
    nodes = ("--nodes", f"{first},{second}", "-m", str(slurm_place.machine))
    words = ("order", "best", "halo 2x2", *nodes)
    assert "gives no jobs" not in slurm_place.seatrial(*words).err
    cluster.run("scontrol", "update", f"NodeName={second}", "State=DRAIN", "Reason=test")
    try:
        done = slurm_place.seatrial(*words)
    finally:
        cluster.run("scontrol", "update", f"NodeName={second}", "State=RESUME")
    assert done.code == 0, done.said
    assert f"{second}: down or drained, so Slurm gives no jobs there now" in done.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("smp -n 4 -N 2 --for slurm", "--for slurm names the nodes; give --nodes, e.g. n[1-4]"),
        (
            "smp -n 5 -N 2 --nodes n[1-2]",
            "5 ranks of 2 a node need 3 nodes; --nodes has 2; give more",
        ),
        ("smp -n 0 -N 2", "0 ranks: give 1 to"),
        (
            "round-robin -n 254 -N 127 -m cray.yaml",
            "PMI_process_mapping of this order has 1,024 bytes, and cray-mpich 9.1 refuses more",
        ),
        ("file twice -N 2", "twice: rank 1 is in the order twice"),
        ("file none -N 2", "none: No such file"),
        ("grid -g 4,4 -c 2,2", "give -C or -R"),
        ("grid -R -g 4,x -c 2,2", "'4,x' are no lengths"),
        ("grid -R -g 4,4 -c 2,2 -T", "-T of HPE's grid_order is not known here"),
        ("grid -R -g 4,4 -c 2,2 1,2", "coordinates as an argument, of HPE's grid_order is not"),
        ("grid -R -g 4,4", "give -c, the lengths of a cell"),
        ("grid -R -g 4,4 -c 2,2 -o 1,3", "-o 1,3: give each dimension once, from 1 to 2"),
        ("best 'hallo 4x4' --nodes n1", "'hallo 4x4' are no words for a pattern; write e.g. halo"),
        ("best pattern.none --nodes n[1-4]", "pattern.none: No such file"),
        ("best 'halo 4x0' --nodes n[1-4]", "halo 4x0: 0 ranks: there can be 1 to"),
        ("grid -R -g 4,4 -c 2,2 -s -1", "-m, -n and -s are 0 or more"),
        ("grid -R -g 2,2 -c 2,2 -s 4 --for slurm --nodes n1", "has all ranks from 0; leave it out"),
        ("mfdn 4 DM -N 2", "4 diagonals: MFDn takes an odd number"),
    ],
)
def test_bad_input_is_told(place: Workplace, words: str, told: str) -> None:
    (place.folder / "twice").write_text("0,1,1\n")
    (place.folder / "cray.yaml").write_text(CRAY.replace("aprun", 'aprun, version: "9.1"'))
    done = place.seatrial("order", *shlex.split(words))
    assert (done.code, done.out) == (2, ""), done.said
    assert told in done.said


CRAY = """
machine: hopper
scheduler: slurm
nodes: [{names: "nid[00001-06384]", cores: 24}]
launcher: {kind: aprun}
"""

S3D, MFDN = "grid -R -g 16,16,12 -c 2,4,3 -N 24", "mfdn 63 BCM -N 24"


def test_orders_of_the_papers_size(place: Workplace) -> None:
    """S3D with 3,072 ranks and MFDn with 2,016 are written, unless the MPI of the machine refuses
    them; of another MPI, or an unknown one, a warning says that some do."""
    unknown = "cray-mpich 9.1 refuses more than 1,023; the version on this machine is not known"
    for words, ranks, size in ((S3D, 3072, "9,368"), (MFDN, 2016, "6,104")):
        done = place.seatrial("order", *shlex.split(words))
        assert done.code == 0, done.said
        order = [
            int(n) for n in re.findall(r"^[\d,]+$", done.out, re.MULTILINE) for n in n.split(",")
        ]
        assert sorted(order) == list(range(ranks))
        assert (
            f"warning: PMI_process_mapping of this order has {size} bytes. {unknown}"
            in " ".join(done.err.split())
        )
        for launcher, told in (
            ('aprun, version: "9.1.2"', "and cray-mpich 9.1 refuses more than 1,023; use larger"),
            ("aprun, mapping_limit: 6103", "`mapping_limit` in the machine's file is 6,103"),
            ('aprun, version: "5.2"', "of 5.2 no limit is known. Where such orders run"),
            ("srun, flavour: cray, mapping_limit: none", ""),
            ('aprun, version: "9.1", mapping_limit: none', ""),
        ):
            (place.folder / "m.yaml").write_text(CRAY.replace("aprun", launcher))
            again = place.seatrial("order", *shlex.split(words), "--machine", "m.yaml")
            is_refused = "9.1.2" in launcher or "6103" in launcher
            assert (again.code, again.out) == ((2, "") if is_refused else (0, done.out))
            assert told in " ".join(again.err.split()) and ("PMI" in again.err) == bool(told)


def test_the_best_order_that_the_mpi_takes(place: Workplace) -> None:
    pairs = "".join(f"{rank} {(rank + 4) % 8} 1 100\n" for rank in range(8))
    text = f"seatrial pattern 1\nranks 8\npairs 8\ncalls 0\n{pairs}end\n"
    (place.folder / "far.pattern").write_text(text)
    (place.folder / "m.yaml").write_text(CRAY.replace("aprun", "aprun, mapping_limit: 20"))
    nodes = ("--nodes", "nid[00001-00004]")
    done = place.seatrial("order", "best", "far.pattern", "-m", "m.yaml", *nodes)
    assert (done.code, done.out) == (0, "0,1\n2,3\n4,5\n6,7\n"), done.said
    told = " ".join(done.err.split())
    assert "passed over: PMI_process_mapping of this order has" in told
    assert "is 20; use larger cells, fewer ranks, or srun -m arbitrary. Written: smp" in told


SCRIPT = """#!/bin/bash
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export SLURM_HOSTFILE=$PWD/hosts
srun -n4 --distribution=arbitrary sh -c 'echo slurm $SLURM_PROCID $SLURMD_NODENAME'
unset SLURM_HOSTFILE
mpirun --rankfile ranks -n 4 sh -c 'echo openmpi $OMPI_COMM_WORLD_RANK $(hostname)'
"""


@pytest.mark.slurm(hosts=True)
def test_ranks_run_where_the_order_says(slurm_place: Workplace, cluster: SlurmCluster) -> None:
    """Of Slurm and of Open MPI, on two real nodes."""
    place, names = slurm_place, "n[001-002]"
    for target, file in (("slurm", "hosts"), ("openmpi", "ranks")):
        words = ("order", "folded", "-n", "4", "-N", "2", "--for", target, "--nodes", names)
        done = place.seatrial(*words)
        (place.folder / file).write_text(done.out)
    (place.folder / "job").write_text(SCRIPT)
    out = place.folder / "out"
    where = ("-w", names, f"--chdir={place.folder}", f"--output={out}")
    cluster.run(
        "sbatch", "--wait", "-N2", "-n4", "--ntasks-per-node=2", *where, str(place.folder / "job")
    )
    text = out.read_text()
    said = sorted(line for line in text.splitlines() if line.startswith(("openmpi ", "slurm ")))
    wanted = ["0 n001", "1 n002", "2 n002", "3 n001"]
    assert said == [f"{who} {at}" for who in ("openmpi", "slurm") for at in wanted], text
