"""The check placement on files, and through the command on a real Slurm that binds tasks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.journal.events import RunJudged
from seatrial.judge.checks import find_fault
from seatrial.model.codes import CHECK_ERROR, MISPLACED, PASS, Code
from seatrial.model.test import Check, PlacementCheck
from tests.programs import Workplace
from tests.slurm.cluster import SlurmCluster
from tests.slurm.options import ClusterOptions

NAMES: dict[str, Any] = {
    "node.cores": 2,
    "node.numa_domains": 1,
    "case.nodes": 1,
    "case.tasks": 2,
    "case.tasks_per_node": 2,
    "case.threads": 1,
}
LINE = "rank {} of 2 thread 0 of 1 node n001 cpu {} core {} numa 0 mask {}\n"
APART = LINE.format(0, 0, 0, "0") + LINE.format(1, 1, 1, "1")
SHARED = LINE.format(0, 1, 1, "0-1") + LINE.format(1, 1, 1, "0-1")
END = "hello finished\n"


def found(folder: Path, text: str, given: str = "", file: str = "stdout") -> tuple[Code, str]:
    (folder / "placement.txt").write_text(given)
    (folder / file).write_text(given + text if file == "placement.txt" else text)
    check = Check(placement=PlacementCheck(), in_file=file)
    finding = find_fault(check, folder, 0, NAMES)
    return (PASS, "") if finding is None else (finding.code, finding.text)


def test_the_verdicts_of_what_hello_says(tmp_path: Path) -> None:
    assert found(tmp_path, APART + END) == (PASS, "")
    shared = (MISPLACED, "ranks 0-1 on CPU 1; 2 cores asked")
    assert found(tmp_path, SHARED + END) == shared
    labelled = "".join(f"{line[5]}: {line}" for line in SHARED.splitlines(keepends=True))
    assert found(tmp_path, f"{labelled}0: {END}") == shared, "as srun --label prints them"
    assert found(tmp_path, SHARED + END, "given node n001 mask 0-1\n") == shared
    notice = (PASS, "could not be apart: 2 ranks, 1 CPU")
    assert found(tmp_path, SHARED + END, "given node n001 mask 1\n") == notice
    assert found(tmp_path, SHARED + END, "given node n001 mask 1\n", "placement.txt") == notice


@pytest.mark.parametrize(
    ("order", "hosts", "nodes", "fault"),
    [
        ("0,3\n1,2\n", "n1 n2", "n1 n2 n2 n1", ""),
        ("0,3\n1,2\n", "n1 n2", "n1 n1 n2 n2", "rank 1 on n1; the rank order has it on n2"),
        ("0,3\n1,2\n", "n1 n2", "n2 n1 n1 n2", "rank 0 on n2; the rank order has it on n1, and 3"),
        ("0,3\n1,2\n", "n1 n2", "x y y x", ""),  # hosts with names of their own
        ("0,3\n1,2\n", "n1 n2", "x y x y", "rank 2 on x; the rank order has it on y"),
        ("0,3\n1,2\n", "n1 n2", "x x x y", "more than asked"),
        ("0,3\n1\n", "n1 n2", "n1 n1 n2 n2", ""),  # its files are not what was written
        ("0,3\n1,2\n", "n1", "n1 n1 n2 n2", ""),
        ("", "n1 n2", "n1 n1 n2 n2", ""),
    ],
)
def test_ranks_are_where_the_order_has_them(
    tmp_path: Path, order: str, hosts: str, nodes: str, fault: str
) -> None:
    if order:
        (tmp_path / "job.order").write_text(order)
        lines = [f"{host} slots=2\n" for host in hosts.split()]
        (tmp_path / "job.hostfile").write_text("".join(lines))
    said = [
        f"Hello from rank {rank}, thread 0, on {node}. (core affinity = 0-3)\n"
        for rank, node in enumerate(nodes.split())
    ]
    (tmp_path / "stdout").write_text("".join(said))
    names = {**NAMES, "case.nodes": 2, "case.tasks": 4, "case.order": "folded"}
    check = Check(placement=PlacementCheck(nodes="any" if "more" in fault else "asked"))
    finding = find_fault(check, tmp_path, 0, names)
    if "more" in fault:
        fault = "the rank order asks for 2 nodes; x is two of them"
    assert (finding is None) == (not fault)
    if finding is not None:
        assert (finding.code, fault in finding.text) == (MISPLACED, True), finding.text
    unchecked = Check(placement=PlacementCheck(order="any", nodes="any"))
    assert find_fault(unchecked, tmp_path, 0, names) is None
    assert find_fault(check, tmp_path, 0, {**names, "case.order": ""}) is None


def on_cpus(*masks: str, node: str = "n1") -> str:
    lines = [
        f"Hello from rank {rank}, thread 0, on {node}. (core affinity = {mask})\n"
        for rank, mask in enumerate(masks)
    ]
    return "".join(lines)


ASKED = "given node n1 mask 0-7\nasked slot 0 mask 0-1\nasked slot 1 mask 4-5\n"


@pytest.mark.parametrize(
    ("text", "told", "expected"),
    [
        (on_cpus("0-1", "4-5"), ASKED, (PASS, "")),
        (on_cpus("0", "5"), ASKED, (PASS, "")),  # a thread may be bound closer
        (on_cpus("4-5", "0-1"), ASKED,
         (MISPLACED, "rank 0 on CPUs 4-5; 0-1 asked; and 1 rank more")),
        (on_cpus("0-1", "6"), ASKED, (MISPLACED, "rank 1 on CPU 6; 4-5 asked")),
        (on_cpus("0-1", "0-7"), ASKED, (MISPLACED, "rank 1 on CPUs 0-7; 4-5 asked")),
        (on_cpus("0-1", "2-3"), ASKED.replace("0-7", "0-3"),
         (PASS, "rank 1 could not be on CPUs 4-5: its job had 0-3")),
        (on_cpus("4-5", "2"), ASKED.replace("0-7", "4-5").replace("0-1", "4-5"),
         (MISPLACED, "rank 1 on CPU 2; 4-5 asked")),
        (on_cpus("2", "3"), ASKED.replace("asked", "as"), (PASS, "")),
        (on_cpus("2", "3"), ASKED.replace("4-5", "5-4"), (PASS, "")),  # damaged: not compared
        (on_cpus("2", "3"), ASKED.replace("slot 1", "slot 7"), (PASS, "")),
    ],
)  # fmt: skip
def test_ranks_are_on_the_cpus_that_the_launcher_asked_for(
    tmp_path: Path, text: str, told: str, expected: tuple[Code, str]
) -> None:
    (tmp_path / "placement.txt").write_text(told)
    (tmp_path / "stdout").write_text(text)
    names = {**NAMES, "node.cores": 8}
    finding = find_fault(Check(placement=PlacementCheck()), tmp_path, 0, names)
    assert ((PASS, "") if finding is None else (finding.code, finding.text)) == expected
    unchecked = Check(placement=PlacementCheck(cpus="any"))
    assert find_fault(unchecked, tmp_path, 0, names) is None


def test_ranks_have_the_cpus_of_their_slots_in_an_order(tmp_path: Path) -> None:
    (tmp_path / "placement.txt").write_text(ASKED)
    (tmp_path / "job.order").write_text("1,0\n")
    (tmp_path / "job.hostfile").write_text("n1 slots=2\n")
    names = {**NAMES, "node.cores": 8, "case.order": "reversed"}
    check = Check(placement=PlacementCheck())
    (tmp_path / "stdout").write_text(on_cpus("4-5", "0-1"))
    assert find_fault(check, tmp_path, 0, names) is None
    (tmp_path / "stdout").write_text(on_cpus("0-1", "4-5"))
    finding = find_fault(check, tmp_path, 0, names)
    assert finding is not None and finding.text == "rank 0 on CPUs 0-1; 4-5 asked; and 1 rank more"


def test_what_cannot_be_read_is_an_error_of_the_check(tmp_path: Path) -> None:
    code, text = found(tmp_path, SHARED)
    assert (code, "closing line 'hello finished' is missing" in text) == (CHECK_ERROR, True)
    assert found(tmp_path, "nothing") == (CHECK_ERROR, "stdout has no lines of hello or xthi")
    said = found(tmp_path, "mpirun: no slots\n", "given node n001 mask 1\n", "placement.txt")
    assert said == (
        CHECK_ERROR,
        "placement.txt has no lines of hello or xthi; the last is 'mpirun: no slots'",
    )
    assert found(tmp_path, APART + END, "given node n001 mask x\n") == (PASS, "")


# What xthi prints, by each task of a step.
XTHI = """\
mask=$(while read -r name list; do
  [ "$name" = Cpus_allowed_list: ] && echo "$list"; done < /proc/self/status)
echo "Hello from rank $SLURM_PROCID, thread 0, on $(uname -n). (core affinity = $mask)"
"""


@pytest.fixture(scope="module")
def binding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    options = ClusterOptions(nodes=2, cores=2, hosts=True, bind=True)
    with SlurmCluster(tmp_path_factory.mktemp("binding"), options) as cluster:
        yield cluster


@pytest.mark.slurm(hosts=True)
def test_masks_of_a_real_slurm(place: Workplace, binding: SlurmCluster) -> None:
    """As $LAUNCH asks, and with the masks exchanged by the script."""
    kind = {"names": "n[001-002]", "cores": 2, "layout": "pack:1 numa:2 core:1 pu:1"}
    place.slurm(binding, {"poll": "0.5s"}, nodes=[kind], launcher={"kind": "srun"})
    (place.folder / "xthi").write_text(XTHI)
    xthi = f"bash {place.folder}/xthi"
    run = {"tasks": 2, "spread": "numa"}
    place.test("asked", f"$LAUNCH {xthi}", run=run, verify=[{"placement": {}}])
    exchanged = f"srun -n2 --cpu-bind=map_cpu:1,0 {xthi}"
    place.test("exchanged", exchanged, run=run, verify=[{"placement": {}}])
    place.run("--name", "t")
    assert place.verdicts() == {"asked": "pass", "exchanged": "misplaced"}, place.why("asked")
    assert place.why("exchanged") == "rank 0 on CPU 1; 0 asked; and 1 rank more"


@pytest.mark.slurm(hosts=True)
def test_ranks_of_a_real_slurm(place: Workplace, binding: SlurmCluster) -> None:
    """Bound by Slurm, bound to one CPU by hand, left to Linux, on too few nodes, on one CPU."""
    place.slurm(binding, {"poll": "0.5s"}, launcher={"kind": "srun"})
    (place.folder / "xthi").write_text(XTHI)
    xthi = f"bash {place.folder}/xthi"

    def test(name: str, line: str, **run: Any) -> None:
        place.test(name, line, run={"tasks": 2, **run}, verify=[{"placement": {}}])

    test("bound", f"srun -n2 --cpu-bind=cores {xthi}")
    test("free", f"srun -n2 --cpu-bind=none {xthi}")
    test("pinned", f"srun -n2 --cpu-bind=none taskset -c 0 {xthi}")
    test("apart", f"$LAUNCH {xthi}", nodes=2, tasks=2)
    test("together", f"srun -N1 -n2 --overcommit {xthi}", nodes=2, tasks=2)
    test("few", f"srun -n2 --overcommit {xthi}", tasks=1)
    done = place.run("--name", "t")
    assert done.code == 1, done.said
    assert place.verdicts() == {
        "bound": "pass",
        "free": "pass",
        "pinned": "misplaced",
        "apart": "pass",
        "together": "misplaced",
        "few": "misplaced",
    }
    said = {e.reason for e in place.events("t", RunJudged) if e.reason}
    assert "ranks 0-1 on CPU 0; 2 cores asked" in said
    assert "asked 1 rank, 2 ran" in said
    assert any(text.startswith("asked 2 nodes, 1 had ranks: n00") for text in said)
    told = (place.run_folder("bound") / "placement.txt").read_text()
    assert told in ("given node n001 mask 0-1\n", "given node n002 mask 0-1\n")
