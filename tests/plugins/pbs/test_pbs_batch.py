from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from msgspec.structs import replace

from seatrial.execute.backends import Job, Submission
from seatrial.model.machine import Machine, NodeGroup
from seatrial.model.test import JobOptions
from seatrial.plugins.pbs import Pbs
from seatrial.plugins.pbs.client import PbsClient, ServerSettings, _qsub_keeps_localhost

FOLDER = Path("/trials/t/submissions/seatrial-x")


def client(machine: Machine) -> PbsClient:
    return PbsClient(machine, lambda _: None)


def line(job: Job, number: int = 1, **pbs: Any) -> str:
    kinds = [NodeGroup(names="n[1-8]", cores=4)]
    machine = replace(Machine(machine="m", nodes=kinds, scheduler="pbs"), pbs=Pbs(**pbs))
    jobs = tuple(job._replace(run_id=f"r{i}") for i in range(number))
    return " ".join(client(machine).line(FOLDER, Submission("seatrial-x", jobs)))


JOB = Job("r", Path("/r"), 2, 8, 4, 3, 90.5, "", False)


def test_an_array() -> None:
    assert line(JOB, 5, queue="prod", account="acc", project="p") == (
        "qsub -f -N seatrial-x -S /bin/bash -m n -j oe -J 0-4"
        f" -o localhost:{FOLDER}/^array_index^.out -l select=2:ncpus=12:mpiprocs=4:ompthreads=3"
        f" -l place=scatter -l walltime=91 -q prod -A acc -P p {FOLDER}/job.sh"
    )


def test_output_is_written_directly_where_the_server_can(tmp_path: Path) -> None:
    pbs = client(Machine(machine="m", nodes=[], scheduler="pbs"))
    pbs.settings = ServerSettings(writes_directly=True)
    pbs.write(tmp_path, Submission("seatrial-x", (JOB,)))
    assert " -j oe -k doe -r n -o " in (tmp_path / "submit.sh").read_text()


def test_where_localhost_has_another_name_pbs_says_where_output_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in the hosts file `127.0.0.1 localhost.localdomain localhost`."""
    answer = [(2, 1, 6, "localhost.localdomain", ("127.0.0.1", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answer)
    _qsub_keeps_localhost.cache_clear()
    try:
        assert f" -o {FOLDER}/0.out -l" in line(JOB)
    finally:
        _qsub_keeps_localhost.cache_clear()


def test_a_single_run_is_no_array_and_is_not_run_again() -> None:
    assert f"-j oe -r n -o localhost:{FOLDER}/0.out -l" in line(JOB)


@pytest.mark.parametrize(
    ("job", "pbs", "words"),
    [
        (JOB._replace(exclusive=True), {}, "place=scatter:excl "),
        (JOB._replace(exclusive=True), {"place": "pack:exclhost"}, "place=pack:exclhost "),
        (JOB._replace(node="n3"), {}, ":ompthreads=3:host=n3 "),
        (JOB._replace(features=("bigmem", "model=rome")), {}, ":bigmem=True:model=rome "),
        (JOB, {"select": "system=polaris"}, ":ompthreads=3:system=polaris "),
        (
            JOB._replace(options=JobOptions(memory=2**30, gpus_per_task=1)),
            {},
            ":ngpus=4:mem=1024mb ",
        ),
        (JOB._replace(options=JobOptions(partition="gpu")), {"queue": "prod"}, " -q gpu "),
        (JOB._replace(options=JobOptions(reservation="R12")), {"queue": "prod"}, " -q R12 "),
        (JOB, {"options": ["-l", "filesystems=home"]}, " -l filesystems=home /trials"),
    ],
)
def test_what_is_asked_for(job: Job, pbs: dict[str, Any], words: str) -> None:
    assert words in line(job, **pbs)


@pytest.mark.parametrize("before", ["", "unset BASH_ARGV0"], ids=["bash 5", "bash 4"])
def test_the_shell_of_a_task_runs_the_script_of_its_run(tmp_path: Path, before: str) -> None:
    kinds = [NodeGroup(names="n1", cores=4)]
    runs = [JOB._replace(path=tmp_path / name) for name in ("a", "b c")]
    for run in runs:
        run.path.mkdir()
        (run.path / "job.sh").write_text('echo "$0 $$ $PWD"; cat; false; exit')
    pbs = client(Machine(machine="m", nodes=kinds))
    pbs.write(tmp_path, Submission("seatrial-x", tuple(runs)))
    assert (tmp_path / "submit.sh").read_text().startswith("qsub -f -N seatrial-x ")
    (tmp_path / "before").write_text(before)
    env = {**os.environ, "PBS_ARRAY_INDEX": "1", "BASH_ENV": str(tmp_path / "before")}
    with subprocess.Popen(["bash", str(tmp_path / "job.sh")], env=env, stdin=PIPE) as task:
        assert task.wait() == 1
    assert (tmp_path / "b c/stdout").read_text() == f"./job.sh {task.pid} {tmp_path}/b c\n"
    assert not (tmp_path / "a/stdout").exists()


def test_qsub_never_waits_for_the_job() -> None:
    assert "block" not in line(JOB, 3)
