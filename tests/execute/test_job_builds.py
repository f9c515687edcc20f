"""What follows from the ends of the jobs of builds, with a backend that does as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.execute.backends import Job, JobEnd, NeverStarted, Queued, Refused, Submission, Update
from seatrial.execute.building import JobBuilds
from seatrial.execute.builds import BuildResult
from seatrial.execute.creation import create, suite_record
from seatrial.execute.driver import Driver
from seatrial.execute.prepare import prepare_trial
from seatrial.execute.trial_folder import TrialFolder
from seatrial.execute.trial_paths import BUILD_RESULT
from seatrial.journal.events import NodeExcluded
from seatrial.model.build import BuildKeys
from seatrial.model.codes import CANCELLED, NODE_FAILURE, PREEMPTED, TIMEOUT, Code
from seatrial.model.file_model import Duration
from seatrial.model.machine import Machine, NodeGroup, Toolchain
from seatrial.model.schedulers import BatchTime, Slurm
from seatrial.model.test import Build, Case, JobOptions, RunSpec, Test, TrialOptions
from tests.programs import Workplace

MACHINE = Machine(
    machine="m",
    nodes=[NodeGroup(names="n1", cores=4)],
    scheduler="slurm",
    slurm=Slurm(visible_after=BatchTime("0.5s")),
    toolchains={"gcc": Toolchain()},
)
TEST = Test(
    name="t",
    folder="/t",
    app="a",
    run=RunSpec(script="true"),
    build=Build(script="make", where="job", cores=3, timeout=Duration("7m")),
)
Step = Callable[["FakeBackend", Job], Update]


class FakeBackend:
    """Each submission, or question for one, takes the next step."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = list(steps)
        self.jobs: list[Job] = []
        self.found = 0
        self.directory = Path()
        self.builds: JobBuilds | None = None

    def arrange(self, jobs: Sequence[Job]) -> list[Submission]:
        return [Submission(f"seatrial-{job.run_id}", (job,)) for job in jobs]

    async def submit(self, submission: Submission) -> None:
        (job,) = submission.jobs
        assert (job.path / "job.sh").is_file()
        self.jobs.append(job)
        self._step(job)

    async def find(self, submissions: Sequence[Submission], known: dict[str, str]) -> None:
        self.found += 1
        for submission in submissions:
            self._step(submission.jobs[0])

    def _step(self, job: Job) -> None:
        assert self.builds is not None
        assert self.builds.receive(Queued(job.run_id, "1"))
        assert self.builds.receive(self.steps.pop(0)(self, job))


def good(backend: FakeBackend, job: Job) -> Update:
    (backend.directory / BUILD_RESULT).write_text("0\n")
    return JobEnd(job.run_id, None, "COMPLETED", 0)


def silent(backend: FakeBackend, job: Job) -> Update:
    return JobEnd(job.run_id, None, "FAILED", 7)


def refused(backend: FakeBackend, job: Job) -> Update:
    return Refused(job.run_id, "no such account")


def unknown(backend: FakeBackend, job: Job) -> Update:
    return NeverStarted(job.run_id)


def ends(code: Code) -> Step:
    return lambda backend, job: JobEnd(job.run_id, code.number, code.name, None)


def a_case(**keys: Any) -> Case:
    about = {"id": "c", "test": "t", "parameters": {}, "toolchain": "gcc", "walltime": 60.0}
    case = Case(**about, nodes=2, tasks=4, tasks_per_node=2, threads=1, **keys)  # type: ignore[arg-type]
    return Case(**{f: getattr(case, f) for f in case.__struct_fields__ if f != "build"},
                build=BuildKeys().key(TEST, case, MACHINE))  # fmt: skip


def build(folder: Path, *steps: Step, case: Case | None = None) -> tuple[BuildResult, FakeBackend]:
    case = case or a_case()
    trial = TrialFolder(folder)
    backend = FakeBackend(steps)
    backend.directory = trial.builds / case.build
    backend.builds = JobBuilds(trial, MACHINE, backend, "t 1", str)  # type: ignore[arg-type]
    return asyncio.run(backend.builds.build(backend.directory, TEST, case)), backend


def test_a_good_build_and_its_job(tmp_path: Path) -> None:
    options = JobOptions(partition="gpu", gpus_per_task=2, memory=1 << 30)
    result, backend = build(tmp_path, good, case=a_case(job=options))
    assert result.code == 0
    (job,) = backend.jobs
    assert (job.nodes, job.tasks, job.threads, job.walltime) == (1, 1, 3, 420.0)
    assert job.options == JobOptions(partition="gpu", gpus_per_node=1, memory=1 << 30)
    again, later = build(tmp_path, case=a_case(job=options))
    assert (again.code, later.jobs, later.found) == (0, [], 0)


@pytest.mark.parametrize(
    ("steps", "code", "why", "jobs"),
    [
        ([refused], 1, "no such account", 1),
        ([ends(TIMEOUT)], TIMEOUT.number, "not done after 7 m 0 s", 1),
        ([ends(CANCELLED)], 1, "cancelled by a person", 1),
        ([silent], 1, "it left no result: FAILED, exit code 7", 1),
        ([ends(NODE_FAILURE), ends(PREEMPTED), good], 0, "", 3),
        ([ends(NODE_FAILURE)] * 3, 1, "its jobs ended 3 times: node failure", 3),
    ],
)
def test_ends_of_its_job(tmp_path: Path, steps: list[Step], code: int, why: str, jobs: int) -> None:
    result, backend = build(tmp_path, *steps)
    assert (result.code, len(backend.jobs)) == (code, jobs)
    assert why in result.text
    assert len({job.run_id for job in backend.jobs}) == jobs


@pytest.mark.parametrize(
    ("steps", "submitted"),
    [([good], 0), ([unknown, good], 1), ([ends(CANCELLED), good], 1), ([ends(TIMEOUT), good], 0)],
)
def test_what_an_earlier_driver_submitted(
    tmp_path: Path, steps: list[Step], submitted: int
) -> None:
    """It is found; one that was cancelled with its trial is built anew; one that never came to the
    scheduler is submitted."""
    with pytest.raises(IndexError):  # that driver comes to no end
        build(tmp_path)
    result, backend = build(tmp_path, *steps)
    assert (backend.found, len(backend.jobs)) == (1, submitted)
    assert result.code == (
        0 if steps[-1:] == [good] and len(backend.steps) == 0 else TIMEOUT.number
    )


def test_a_job_of_a_build_avoids_the_nodes_that_are_excluded_when_it_is_submitted(
    tmp_path: Path,
) -> None:
    trial = TrialFolder(tmp_path)
    excluded = ["n1", "n[1-2]"]
    backend = FakeBackend([ends(NODE_FAILURE), good])
    backend.directory = trial.builds / a_case().build
    backend.builds = JobBuilds(trial, MACHINE, backend, "t", lambda: excluded.pop(0))  # type: ignore[arg-type]
    assert asyncio.run(backend.builds.build(backend.directory, TEST, a_case())).code == 0
    assert [job.avoid for job in backend.jobs] == ["n1", "n[1-2]"]


def test_excluded_nodes_are_those_of_the_trial(place: Workplace) -> None:
    place.test("t", "true", build={"where": "job", "script": "true"})
    machine = {**yaml.safe_load(place.machine.read_text()), "scheduler": "slurm"}
    place.machine.write_text(yaml.safe_dump(machine))
    prepared = prepare_trial(TrialOptions(suites=[str(place.suite)]), str(place.machine))
    driver = Driver(create(place.trials, suite_record(prepared, "t"), prepared.cases))
    in_jobs = driver._building._in_jobs
    assert in_jobs is not None
    for nodes, avoided in (("n2", "n2"), ("n3", "n[2-3]")):
        driver.conductor.state.apply(NodeExcluded(time=1, nodes=nodes))
        (job,) = in_jobs._submission(driver.record.tests["t"], prepared.cases[0], 0).jobs
        assert job.avoid == avoided


class SlowBackend(FakeBackend):
    """Knows the jobs that it was handed, and tells the end of these alone when they are
    cancelled."""

    def __init__(self, moment: str) -> None:
        super().__init__([])
        self.moment = moment
        self.reached = asyncio.Event()
        self.known: list[str] = []
        self.inbox: asyncio.Queue[Update] = asyncio.Queue()

    async def submit(self, submission: Submission) -> None:
        (job,) = submission.jobs
        if self.moment == "submit":
            self.reached.set()
            await asyncio.sleep(600)
        self.known.append(job.run_id)
        self.reached.set()

    async def find(self, submissions: Sequence[Submission], known: dict[str, str]) -> None:
        self.found += len(submissions)
        for each in submissions:
            self.inbox.put_nowait(NeverStarted(each.jobs[0].run_id))

    async def cancel(self, run_ids: Sequence[str]) -> None:
        for each in self.known:
            self.inbox.put_nowait(JobEnd(each, CANCELLED.number, "", None))


@pytest.mark.parametrize(("moment", "found"), [("submit", 1), ("wait", 0), ("told", 1)])
def test_cancelling_waits_for_no_job_that_the_backend_does_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, found: int
) -> None:
    """The backend is asked for a job that it was not handed, and for one whose end it has told."""
    monkeypatch.setattr("seatrial.execute.building.CANCEL_SECONDS", 120.0)

    async def cancelled() -> SlowBackend:
        backend = SlowBackend(moment)
        in_jobs = JobBuilds(TrialFolder(tmp_path), MACHINE, backend, "t", str)  # type: ignore[arg-type]
        backend.builds = in_jobs
        work = asyncio.create_task(
            in_jobs.build(tmp_path / "builds" / a_case().build, TEST, a_case())
        )
        await backend.reached.wait()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        if moment == "told":
            assert in_jobs.receive(JobEnd(backend.known.pop(), NODE_FAILURE.number, "", None))
        async with asyncio.timeout(10):
            await in_jobs.cancel()
        return backend

    assert asyncio.run(cancelled()).found == found


def test_updates_about_runs_are_not_of_builds(tmp_path: Path) -> None:
    backend = FakeBackend([])
    in_jobs = JobBuilds(TrialFolder(tmp_path), MACHINE, backend, "t", str)  # type: ignore[arg-type]
    assert not in_jobs.receive(JobEnd("r1", None, "COMPLETED", 0))
