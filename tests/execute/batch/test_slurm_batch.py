from __future__ import annotations

import math
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.execute.backends import Job, Submission
from seatrial.execute.batch.scheduler_client import PREFIX
from seatrial.execute.batch.slurm import cluster_option, sbatch_line, write_job_script
from seatrial.execute.batch.submitter import arrange
from seatrial.model.machine import Machine, NodeGroup
from seatrial.model.schedulers import Slurm
from seatrial.model.test import JobOptions
from tests.programs import LONG_S


def a_job(name: str = "r1", path: Path = Path("/t/r1"), **keys: object) -> Job:
    job = Job(name, path, 2, 8, 4, 3, 90.0, "", False)
    return job._replace(**keys)  # type: ignore[arg-type]


def a_machine(slurm: Slurm | None = None) -> Machine:
    nodes = [NodeGroup(names="n[1-9]", cores=4), NodeGroup(names="g1", cores=4)]
    return Machine(machine="m", nodes=nodes, slurm=slurm or Slurm())


jobs_strategy = st.lists(
    st.builds(
        lambda nodes, threads, walltime, node, exclusive: (
            nodes,
            threads,
            walltime,
            node,
            exclusive,
        ),
        st.integers(1, 3),
        st.integers(1, 2),
        st.sampled_from([60.0, 60.5, 3600.0]),
        st.sampled_from(["", "n1"]),
        st.booleans(),
    ),
    max_size=60,
)


def shape(job: Job) -> Job:
    return job._replace(run_id="", path=Path())


@given(shapes=jobs_strategy, largest=st.integers(1, 10))
def test_every_job_is_in_one_array_of_its_shape(
    shapes: list[tuple[int, int, float, str, bool]], largest: int
) -> None:
    jobs = [
        a_job(f"r{number}", Path(f"/t/r{number}"), nodes=nodes, threads=threads, walltime=walltime,
              node=node, exclusive=exclusive)
        for number, (nodes, threads, walltime, node, exclusive) in enumerate(shapes)
    ]  # fmt: skip
    submissions = arrange(jobs, largest)
    together = [job for submission in submissions for job in submission.jobs]
    assert sorted(together) == sorted(jobs)
    assert len({submission.name for submission in submissions}) == len(submissions)
    for submission in submissions:
        assert 1 <= len(submission.jobs) <= largest
        assert len({shape(job) for job in submission.jobs}) == 1
        assert submission.name == PREFIX + submission.jobs[0].run_id
    fewest = sum(
        math.ceil([shape(job) for job in jobs].count(each) / largest)
        for each in {shape(job) for job in jobs}
    )
    assert len(submissions) == fewest


def test_the_line_that_submits() -> None:
    jobs = tuple(a_job(f"r{number}") for number in range(3))
    line = sbatch_line(Path("/t/s"), Submission("seatrial-r0", jobs), a_machine())
    assert line == [
        *("sbatch", "--parsable", "--job-name=seatrial-r0", "--array=0-2", "--output=/t/s/%a.out"),
        *("--chdir=/t/s", "--no-requeue", "--nodes=2", "--ntasks=8", "--ntasks-per-node=4"),
        *("--cpus-per-task=3", "--time=2", "/t/s/job.sh"),
    ]


def test_what_a_machine_asks_of_slurm_is_on_the_line_and_its_options_come_last() -> None:
    slurm = Slurm(
        partition="p",
        account="a",
        qos="q",
        reservation="r",
        constraint="c&d",
        nodelist="n[1-4]",
        cluster="other",
        options=["--licenses=x", "--time=5"],
    )
    line = sbatch_line(Path("/t"), Submission("s", (a_job(exclusive=True),)), a_machine(slurm))
    asked = ["--partition=p", "--account=a", "--qos=q", "--reservation=r", "--constraint=c&d"]
    asked += ["--exclude=g1,n[5-9]", "--clusters=other", "--exclusive"]
    assert set(asked) <= set(line)
    assert line[-3:] == ["--licenses=x", "--time=5", "/t/job.sh"]
    assert cluster_option(slurm) == ["--clusters=other"]
    assert cluster_option(Slurm()) == []


def test_a_job_that_is_pinned_goes_to_its_node() -> None:
    machine = a_machine(Slurm(nodelist="n[1-4]"))
    line = sbatch_line(Path("/t"), Submission("s", (a_job(node="n7"),)), machine)
    assert [word for word in line if "nodelist" in word] == ["--nodelist=n7"]
    assert not any("exclude" in word for word in line)


def test_jobs_are_kept_on_nodes_that_are_more_than_one_job_needs() -> None:
    """To sbatch, --nodelist is "all of these": it refuses a job of fewer nodes."""
    machine = a_machine(Slurm(nodelist="n[2-3]"))
    line = sbatch_line(Path("/t"), Submission("s", (a_job(nodes=1),)), machine)
    assert "--exclude=g1,n[1,4-9]" in line
    assert not any("nodelist" in word for word in line)


@pytest.mark.parametrize(
    ("constraint", "features", "asked"),
    [
        ("a|b", ("c",), "(a|b)&c"),
        ("(a|b)", ("c",), "(a|b)&c"),  # Slurm 22.05 refuses ((a|b))&c
        ("[a|b]", ("c",), "[a|b]&c"),
        ("(a|b)&c", ("d",), "(a|b)&c&d"),
        ("a", ("b|c", "d"), "a&(b|c)&d"),
        ("a|b", (), "a|b"),
        ("", ("a", "b"), "a&b"),
    ],
)
def test_a_constraint_and_features_are_asked_for_together(
    constraint: str, features: tuple[str, ...], asked: str
) -> None:
    machine = a_machine(Slurm(constraint=constraint))
    line = sbatch_line(Path("/t"), Submission("s", (a_job(features=features),)), machine)
    assert f"--constraint={asked}" in line


def test_what_a_test_asks_for_is_on_the_line_and_wins_over_the_machine() -> None:
    asked = JobOptions(
        gpus_per_node=4, memory=(3 << 29) + 1, partition="gpu", qos="", options=("--own",)
    )
    slurm = Slurm(partition="batch", qos="low", account="a", options=["--site"])
    line = sbatch_line(Path("/t"), Submission("s", (a_job(options=asked),)), a_machine(slurm))
    assert line[-8:] == [
        *("--time=2", "--partition=gpu", "--account=a", "--gpus-per-node=4", "--mem=1537M"),
        *("--site", "--own", "/t/job.sh"),
    ]
    per_task = a_job(options=JobOptions(gpus_per_task=1))
    assert "--gpus-per-task=1" in sbatch_line(Path("/t"), Submission("s", (per_task,)), a_machine())


def test_jobs_that_ask_for_other_things_are_in_arrays_of_their_own() -> None:
    asked = [JobOptions(), JobOptions(partition="x"), JobOptions(), JobOptions(options=("-x",))]
    jobs = [a_job(f"r{n}", options=options) for n, options in enumerate(asked)]
    assert [len(each.jobs) for each in arrange(jobs, 10)] == [2, 1, 1]


@pytest.mark.parametrize(
    ("unknown", "slurm", "words"),
    [
        ((), Slurm(), ["--constraint=a&b"]),
        (("b",), Slurm(), ["--exclude=g1,n[1-9]", "--constraint=a"]),
        (("a", "b", "z"), Slurm(), ["--exclude=g1,n[1-9]"]),
        (("a",), Slurm(), ["--exclude=n[1-9]", "--constraint=b"]),
        (("a",), Slurm(nodelist="g1"), ["--exclude=f[1-2],n[1-9]", "--constraint=b"]),
    ],
)
def test_features_that_slurm_does_not_know_exclude_the_nodes_without(
    unknown: tuple[str, ...], slurm: Slurm, words: list[str]
) -> None:
    nodes = [
        NodeGroup(names="n[1-9]", cores=4),
        NodeGroup(names="g1", cores=4, features=["a"]),
        NodeGroup(names="f[1-2]", cores=4, features=["a", "b"]),
    ]
    machine = Machine(machine="m", nodes=nodes, slurm=slurm)
    job = a_job(features=("a", "b"))
    line = sbatch_line(Path("/t"), Submission("s", (job,)), machine, unknown)
    assert [w for w in line if w.startswith(("--exclude", "--constraint"))] == words


@pytest.mark.parametrize(
    ("walltime", "minutes"), [(0.001, 1), (1.0, 1), (60.0, 1), (60.1, 2), (3600.0, 60)]
)
def test_the_time_is_in_whole_minutes_and_never_too_short(walltime: float, minutes: int) -> None:
    line = sbatch_line(Path("/t"), Submission("s", (a_job(walltime=walltime),)), a_machine())
    assert f"--time={minutes}" in line


def test_a_percent_sign_in_a_path_is_no_pattern_of_slurms() -> None:
    """As tried with a real one: it must be doubled in the pattern, and only there."""
    line = sbatch_line(Path("/t/100%j"), Submission("s", (a_job(),)), a_machine())
    assert "--output=/t/100%%j/%a.out" in line
    assert "--chdir=/t/100%j" in line


# ---- the batch script, run as Slurm runs it -------------------------------------------------


def written(folder: Path, *names: str) -> Path:
    """A submission's folder, with its runs, each of which tells its name."""
    jobs = tuple(a_job(f"r{n}", folder / "runs" / name) for n, name in enumerate(names))
    for job in jobs:
        job.path.mkdir(parents=True)
        (job.path / "job.sh").write_text("echo ran $PWD; echo oops >&2; cat; exit 3\n")
    made = folder / "submissions" / "it's one"
    write_job_script(made, Submission("seatrial-r0", jobs), a_machine(Slurm(account="a b")))
    return made


def run_task(made: Path, index: int) -> int:
    line = ["bash", str(made / "job.sh")]
    environment = {"PATH": os.environ["PATH"], "SLURM_ARRAY_TASK_ID": str(index)}
    return subprocess.run(
        line, cwd=made, env=environment, timeout=LONG_S, capture_output=True, check=False
    ).returncode


def test_each_task_runs_the_job_of_its_index(tmp_path: Path) -> None:
    names = ["a", "b c", "d'e\"f$g`h`*", "größe"]
    made = written(tmp_path, *names)
    for index, name in enumerate(names):
        assert run_task(made, index) == 3
        path = tmp_path / "runs" / name
        assert (path / "stdout").read_text() == f"ran {path}\n"
        assert (path / "stderr").read_text() == "oops\n"


def test_no_part_of_a_path_is_a_command(tmp_path: Path) -> None:
    folder = tmp_path / "a\ntouch pwned;#"
    made = written(folder, "a")
    run_task(made, 0)
    assert sorted(path.name for path in made.iterdir()) == ["job.sh", "runs", "submit.sh"]


def test_a_task_that_starts_a_second_time_spoils_no_output(tmp_path: Path) -> None:
    made = written(tmp_path, "a")
    run_task(made, 0)
    (tmp_path / "runs" / "a" / "job.sh").write_text("exit 93\n")
    assert run_task(made, 0) == 93
    assert (tmp_path / "runs" / "a" / "stdout").read_text().startswith("ran ")


def test_an_index_that_is_not_in_the_list_runs_nothing(tmp_path: Path) -> None:
    made = written(tmp_path, "a")
    assert run_task(made, 1) == 1  # and not itself, which is a job.sh, too
    (made / "runs").unlink()
    assert run_task(made, 0) == 1
    assert not (tmp_path / "runs" / "a" / "stdout").exists()


def test_the_line_that_submits_is_kept_to_be_read_and_used(tmp_path: Path) -> None:
    made = written(tmp_path, "a")
    line = shlex.split((made / "submit.sh").read_text())
    assert line[0] == "sbatch"
    assert "--account=a b" in line
    assert line[-1] == str(made / "job.sh")


def test_a_path_that_is_no_utf8_is_found_again(tmp_path: Path) -> None:
    made = written(tmp_path, os.fsdecode(b"\xff\xfe"))
    assert run_task(made, 0) == 3
    assert (tmp_path / "runs" / os.fsdecode(b"\xff\xfe") / "stdout").exists()
