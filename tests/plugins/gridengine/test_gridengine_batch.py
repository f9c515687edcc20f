from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from seatrial.execute.backends import Job, Submission
from seatrial.execute.batch.scheduler_client import SubmissionRefused
from seatrial.model.machine import Machine, NodeGroup
from seatrial.model.test import JobOptions
from seatrial.plugins.gridengine import GridEngine
from seatrial.plugins.gridengine.client import GridEngineClient

FOLDER = Path("/trials/t/submissions/seatrial-x")
PARALLEL = {"mpi": "$fill_up", "smp": "$pe_slots", "mpi-12": 12}
JOB = Job("r", Path("/r"), 2, 8, 4, 3, 90.5, "", False)


def machine(**settings: Any) -> Machine:
    kinds = [NodeGroup(names="n[1-8]", cores=12)]
    said = GridEngine(**{"parallel": PARALLEL, **settings})
    return replace(Machine(machine="m", nodes=kinds, scheduler="gridengine"), gridengine=said)


def line(job: Job, number: int = 1, **settings: Any) -> str:
    jobs = tuple(job._replace(run_id=f"r{i}") for i in range(number))
    client = GridEngineClient(machine(**settings), lambda _: None)
    return " ".join(client.line(FOLDER, Submission("seatrial-x", jobs)))


def test_an_array() -> None:
    assert line(JOB, 5, queue="all.q", account="acc", project="p") == (
        "qsub -terse -N seatrial-x -S /bin/bash -t 1-5 -r n -m n -j y"
        f" -o {FOLDER}/$TASK_ID.out -l h_rt=91 -pe mpi-12 24 -q all.q -A acc -P p {FOLDER}/job.sh"
    )


def test_a_run_of_one_slot_needs_no_parallel_environment() -> None:
    small = JOB._replace(nodes=1, tasks=1, tasks_per_node=1, threads=1)
    assert "-pe" not in line(small, parallel={}) and " -t 1-1 " in line(small)


@pytest.mark.parametrize(
    ("nodes", "tasks", "words"), [(1, 2, "-pe smp 6"), (1, 4, "-pe mpi-12 12"), (3, 4, "mpi-12 36")]
)
def test_which_parallel_environment(nodes: int, tasks: int, words: str) -> None:
    assert words in line(JOB._replace(nodes=nodes, tasks_per_node=tasks))


@pytest.mark.parametrize(
    ("nodes", "there", "rule"),
    [(2, "$pe_slots", "allocation_rule 6;"), (1, 4, "allocation_rule 6, or \\$pe_slots;")],
)
def test_no_parallel_environment_is_fit(nodes: int, there: str | int, rule: str) -> None:
    with pytest.raises(SubmissionRefused, match=f"6 slots on each of {nodes} nodes: .* {rule}"):
        line(JOB._replace(nodes=nodes, tasks_per_node=2), parallel={"mpi": "$fill_up", "pe": there})


@pytest.mark.parametrize(
    ("job", "settings", "words"),
    [
        (JOB._replace(exclusive=True), {"exclusive": "excl"}, " -l h_rt=91,excl=true "),
        (JOB._replace(exclusive=True), {}, " -l h_rt=91 "),
        (JOB._replace(node="n3"), {}, ",hostname=n3 "),
        (JOB._replace(avoid="n[1-2]"), {}, ",hostname=!(n1|n2) "),
        (JOB._replace(features=("bigmem", "arch=lx")), {}, ",bigmem=true,arch=lx "),
        (JOB, {"resources": "arch=lx-amd64"}, " -l h_rt=91,arch=lx-amd64 "),
        (JOB._replace(options=JobOptions(memory=12 * 2**30)), {}, ",h_vmem=1024M "),
        (JOB._replace(options=JobOptions(memory=2**20)), {"memory": "mem_free"}, ",mem_free=1M "),
        (JOB._replace(options=JobOptions(gpus_per_task=1)), {"gpus": "ngpus"}, ",ngpus=4 "),
        (JOB._replace(options=JobOptions(partition="long")), {"queue": "all.q"}, " -q long "),
        (JOB._replace(options=JobOptions(reservation="12")), {}, " -ar 12 "),
        (JOB, {"options": ["-R", "y"]}, " -R y /trials"),
    ],
)
def test_what_is_asked_for(job: Job, settings: dict[str, Any], words: str) -> None:
    assert words in line(job, **settings)


def test_a_task_has_its_directory_from_the_list(tmp_path: Path) -> None:
    client = GridEngineClient(machine(), lambda _: None)
    client.write(tmp_path, Submission("seatrial-x", (JOB, JOB)))
    script = (tmp_path / "job.sh").read_text()
    assert 'mapfile -t -s "$((SGE_TASK_ID - 1))" -n 1 ' in script
    assert "'/$TASK_ID.out'" in (tmp_path / "submit.sh").read_text().replace(str(tmp_path), "'")


def test_qsub_never_waits_for_the_job() -> None:
    assert "sync" not in line(JOB, 3) and "-now" not in line(JOB, 3)
