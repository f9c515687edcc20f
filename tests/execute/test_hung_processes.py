"""What the processes of a hung run wait in: the file, and what a verdict says of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from seatrial.execute import runs
from seatrial.execute.runs import MAX_WAITS_BYTES, nodes_in_order, waits_in, write_waits
from seatrial.model.parameters import HUNG_FILE
from tests.waiting import until

LABELLED = """\
1: n002: 12 pw.x in futex_wait_queue
0: n001: 11 pw.x in futex_wait_queue
1:
0: n001: 1 pw.x running
1: == n002 process 7: pw.x in futex_wait_queue
0: n001: 2 bash in do_wait
0:
srun: a line without a label
0: == n001 process 5: pw.x in futex_wait_queue
"""


def test_the_lines_of_nodes_are_put_in_order() -> None:
    assert nodes_in_order(LABELLED).splitlines() == [
        "n001: 11 pw.x in futex_wait_queue",
        "n001: 1 pw.x running",
        "n001: 2 bash in do_wait",
        "n002: 12 pw.x in futex_wait_queue",
        "",
        "== n001 process 5: pw.x in futex_wait_queue",
        "== n002 process 7: pw.x in futex_wait_queue",
    ]
    assert nodes_in_order("srun: error: no such job\n") == ""


def test_a_verdict_adds_up_the_nodes_and_leaves_out_the_shells(tmp_path: Path) -> None:
    write_waits(tmp_path, nodes_in_order(LABELLED))
    assert waits_in(tmp_path) == "23 pw.x in futex_wait_queue, 1 pw.x running"
    write_waits(tmp_path, "n001: 2 bash in do_wait\n\nn001: 9 x running\n")
    assert waits_in(tmp_path) == "2 bash in do_wait"


def test_the_file_is_bounded_and_no_link_is_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / HUNG_FILE).symlink_to(other)
    assert waits_in(tmp_path) == ""
    write_waits(tmp_path, "")
    assert (tmp_path / HUNG_FILE).is_symlink(), "nothing was printed"
    write_waits(tmp_path, "n001: 1 a running\n\n" + "x" * 2 * MAX_WAITS_BYTES)
    assert other.read_text() == "mine"
    assert (tmp_path / HUNG_FILE).stat().st_size == MAX_WAITS_BYTES
    assert waits_in(tmp_path) == "1 a running"


@pytest.mark.parametrize(
    "text", ["", "\0\0\n\n", "n: 99999999999 a running\n", "n: 1 a\x1b[2J running"]
)
def test_a_file_that_says_nothing_of_use(tmp_path: Path, text: str) -> None:
    (tmp_path / HUNG_FILE).write_text(text)
    assert waits_in(tmp_path) == ""


@pytest.mark.parametrize("name", ["job.sh", "slurm_script"])  # slurmd has a copy of that name
def test_processes_are_found_by_the_run_and_its_shells_by_their_directory(
    tmp_path: Path, name: str
) -> None:
    script = tmp_path / "hung.sh"
    script.write_text(runs.hung_script())
    (tmp_path / name).write_text(
        "SEATRIAL_RUN=r1 sleep 986.25 &\nSEATRIAL_RUN=r10 sleep 986.5 &\nwait"
    )
    job = subprocess.Popen(["bash", f"{tmp_path}/{name}"], cwd=tmp_path, start_new_session=True)

    def printed() -> str:
        words = ["bash", str(script), "r1", str(tmp_path)]
        return subprocess.run(words, capture_output=True, text=True, check=True, cwd="/").stdout

    try:
        until(lambda: "sleep 986.25" in printed(), "the processes")
        found = printed()
    finally:
        subprocess.run(["pkill", "-KILL", "-s", str(job.pid)], check=True)
        job.wait()
    assert "1 bash in do_wait" in found.partition("\n\n")[0]
    assert "986.5" not in found
