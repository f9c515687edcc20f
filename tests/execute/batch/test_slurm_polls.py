"""The Slurm backend on commands that say what a file says: what it asks, and what it concludes."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from seatrial.execute import directory
from seatrial.execute.backends import (
    Job,
    JobEnd,
    NeverStarted,
    Queued,
    Started,
    Submission,
    Trouble,
    Update,
)
from seatrial.execute.batch import batch, scheduler_client, submitter
from seatrial.execute.batch import submitter as job_readings
from seatrial.execute.batch.batch import BatchBackend
from seatrial.execute.batch.slurm import SlurmClient
from seatrial.execute.directory import JobEvents
from seatrial.model.codes import CANCELLED, LOST, SPECIAL_EXIT
from seatrial.model.machine import Machine, NodeGroup
from seatrial.model.schedulers import BatchTime, Slurm
from tests.execute.helpers import updates_of, waiting_of
from tests.waiting import LONG_S, until_true

COMMAND = """\
#!/bin/bash
echo "$@" >> {folder}/$(basename $0).told
env > {folder}/env.$$ && mv {folder}/env.$$ {folder}/$(basename $0).env
[ "$1 $2" = "show config" ] && {{ cat {folder}/config; exit; }}
. {folder}/$(basename $0).says
"""
JOB = "JobId=7 ArrayJobId=7 ArrayTaskId=0 JobName={} JobState={} ExitCode=0:0 NodeList=n1"
NO_JOB = "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1"


class Commands:
    """Slurm's commands; each is given the bash that answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "config").write_text("MaxArraySize=1001\n")
        for name in ("sbatch", "squeue", "scancel", "scontrol", "sacct", "sinfo"):
            (folder / name).write_text(COMMAND.format(folder=folder))
            (folder / name).chmod(0o755)
            self.say(name, "exit 0")

    def say(self, name: str, script: str) -> None:
        (self.folder / "next").write_text(script + "\n")
        (self.folder / "next").rename(self.folder / f"{name}.says")

    def told(self, name: str) -> list[str]:
        try:
            return (self.folder / f"{name}.told").read_text().splitlines()
        except FileNotFoundError:
            return []

    def environment(self, name: str) -> set[str]:
        lines = (self.folder / f"{name}.env").read_text().splitlines()
        return {line.partition("=")[0] for line in lines}


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(batch, "SHORTEST_POLL", 0.05)
    monkeypatch.setattr(batch, "POLL_SHARE", 1.0)
    return Commands(folder)


def a_submission(folder: Path, *names: str) -> Submission:
    jobs = []
    for name in names or ("r1",):
        path = folder / "runs" / name
        path.mkdir(parents=True)
        jobs.append(Job(name, path, 1, 1, 1, 1, 60.0, "", False))
    return Submission(f"seatrial-{jobs[0].run_id}", tuple(jobs))


def with_backend(
    folder: Path, work: Callable[[BatchBackend], Awaitable[object]], lost_after: str = "100ms"
) -> None:
    options = Slurm(poll=BatchTime("100ms"), lost_after=BatchTime(lost_after))
    machine = Machine(machine="m", nodes=[NodeGroup(names="n1", cores=1)], slurm=options)

    async def course() -> None:
        backend = BatchBackend(machine, SlurmClient, folder / "submissions")
        await backend.open()
        try:
            await asyncio.wait_for(work(backend), LONG_S)
        finally:
            await backend.close()

    asyncio.run(course())


async def first(backend: BatchBackend, kind: type[Update]) -> Update:
    while True:
        for update in await updates_of(backend):
            if isinstance(update, kind):
                return update


async def first_end(backend: BatchBackend) -> JobEnd:
    """Return the first end that is told, without the file of Slurm's own words."""
    end = await first(backend, JobEnd)
    assert isinstance(end, JobEnd) and end.output is not None
    return replace(end, output=None)


def test_what_a_user_set_for_slurms_commands_misleads_none(
    tmp_path: Path, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    misleading = ["SQUEUE_PARTITION", "SCONTROL_ALL", "SLURM_CLUSTERS", "SBATCH_CLUSTERS"]
    misleading += ["SBATCH_WAIT", "SBATCH_ERROR", "SACCT_FORMAT", "SLURM_TIME_FORMAT"]
    kept = ["SBATCH_ACCOUNT", "SLURM_CONF", "MY_SQUEUE_FORMAT"]
    for name in misleading + kept:
        monkeypatch.setenv(name, "x")
    commands.say("sbatch", "echo 7")
    commands.say("squeue", "echo '7|0|seatrial-r1|COMPLETED|0|n1|'")

    async def work(backend: BatchBackend) -> None:
        await backend.submit(a_submission(tmp_path))
        await first(backend, JobEnd)

    with_backend(tmp_path, work)
    for name in ("sbatch", "squeue", "scontrol"):
        assert not commands.environment(name) & set(misleading)
        assert commands.environment(name) >= set(kept)


def test_the_user_may_have_no_name(tmp_path: Path, commands: Commands) -> None:
    """As in a container: the number is asked for."""
    commands.say("sbatch", "echo 7")

    async def work(backend: BatchBackend) -> None:
        await backend.submit(a_submission(tmp_path))
        await until_true(lambda: bool(commands.told("squeue")), "a poll")

    with_backend(tmp_path, work)
    assert f"--user={os.geteuid()}" in commands.told("squeue")[0].split()


def test_a_job_is_lost_only_if_the_controller_says_so(tmp_path: Path, commands: Commands) -> None:
    commands.say("sbatch", "echo 7")
    commands.say("scontrol", f"echo {JOB.format('seatrial-r1', 'RUNNING')}")

    def asked() -> int:
        return sum("show job 7_0" in line for line in commands.told("scontrol"))

    async def work(backend: BatchBackend) -> None:
        await backend.submit(a_submission(tmp_path))
        assert await first(backend, Queued) == Queued("r1", "7_0")
        await until_true(lambda: asked() >= 2, "two polls")
        assert not any(isinstance(update, JobEnd) for update in waiting_of(backend))
        commands.say("scontrol", NO_JOB)
        assert await first_end(backend) == JobEnd("r1", LOST.number, "gone", None)

    with_backend(tmp_path, work)


@pytest.mark.parametrize(
    ("says", "end"),
    [
        (f"echo {JOB.format('seatrial-r1', 'COMPLETED')}", (None, "COMPLETED", 0, "n1")),
        (f"echo {JOB.format('other', 'RUNNING')}", (LOST.number, "gone", None)),
        ("echo Job 7_0 not found; exit 1", (LOST.number, "gone", None)),
    ],
)
def test_what_the_controller_says_of_a_job_that_squeue_does_not_show(
    tmp_path: Path, commands: Commands, says: str, end: tuple[object, ...]
) -> None:
    commands.say("sbatch", "echo 7")
    commands.say("scontrol", says)

    async def work(backend: BatchBackend) -> None:
        await backend.submit(a_submission(tmp_path))
        assert await first_end(backend) == JobEnd("r1", *end)  # type: ignore[arg-type]

    with_backend(tmp_path, work)


@pytest.mark.parametrize("gone", ["exit 0", "echo '7|0|seatrial-r1|CANCELLED|0|n1|'"])
def test_a_job_that_slurm_keeps_is_cancelled_before_its_end_is_told(
    tmp_path: Path, commands: Commands, gone: str
) -> None:
    commands.say("sbatch", "echo 7")
    commands.say("squeue", "echo '7|0|seatrial-r1|SPECIAL_EXIT|0|n1|'")

    async def work(backend: BatchBackend) -> None:
        await backend.submit(a_submission(tmp_path))
        await until_true(lambda: commands.told("scancel")[:2] == ["7_0", "7_0"], "its end")
        assert not any(isinstance(update, JobEnd) for update in waiting_of(backend))
        commands.say("squeue", gone)
        end = await first(backend, JobEnd)
        assert isinstance(end, JobEnd)
        assert end.code == SPECIAL_EXIT.number

    with_backend(tmp_path, work)


@pytest.mark.parametrize(
    ("then", "code"),
    [
        ("exit 0", CANCELLED.number),  # the controller has forgotten it
        ("echo '7|0|seatrial-r1|CANCELLED|0||'", CANCELLED.number),
        ("echo '7|0|seatrial-r1|RUNNING|0|n1|'", None),
    ],
)
def test_what_waits_is_taken_back_and_what_runs_is_left_alone(
    tmp_path: Path, commands: Commands, then: str, code: int | None
) -> None:
    commands.say("sbatch", "echo 7")
    commands.say("squeue", "echo '7|0|seatrial-r1|PENDING|0||'")

    async def work(backend: BatchBackend) -> None:
        await backend.submit(a_submission(tmp_path))
        await first(backend, Queued)
        await backend.cancel(["r1"], pending_only=True)
        await until_true(
            lambda: commands.told("scancel")[:2] == ["--state=PENDING 7_0"] * 2, "two calls"
        )
        commands.say("squeue", then)
        if code is None:
            assert await first(backend, Started) == Started("r1", "n1")
            asked = len(commands.told("scancel"))
            commands.say("squeue", "echo '7|0|seatrial-r1|COMPLETED|0|n1|'")
        end = await first(backend, JobEnd)
        assert isinstance(end, JobEnd)
        assert end.code == code
        assert bool(end.nodes) == (code is None)
        if code is None:
            assert len(commands.told("scancel")) == asked

    with_backend(tmp_path, work)


@pytest.mark.parametrize("pending_only", [True, False])
def test_a_job_that_slurm_forgot_holds_up_no_poll(
    tmp_path: Path, commands: Commands, pending_only: bool
) -> None:
    """A driver is killed after it recalled a run, and the next one recalls it again."""
    commands.say("sbatch", "echo 7")
    commands.say("squeue", "echo '7|0|seatrial-r1|PENDING|0||'")
    unknown = "Kill job error on job id 7_0: Invalid job id specified"
    commands.say("scancel", f"echo 'scancel: error: {unknown}' >&2; exit 1")
    commands.say("scontrol", "echo '7_0: Job has already finished' >&2; exit 1")

    async def work(backend: BatchBackend) -> None:
        await backend.submit(a_submission(tmp_path))
        await first(backend, Queued)
        commands.say("squeue", "exit 0")
        await backend.cancel(["r1"], pending_only=pending_only)
        end = await first(backend, JobEnd)
        assert isinstance(end, JobEnd)
        assert end.code == CANCELLED.number

    with_backend(tmp_path, work)


def test_of_a_bundle_that_is_first_seen_as_it_completes_all_nodes_are_told(
    tmp_path: Path, commands: Commands
) -> None:
    """A driver that resumes comes late: Slurm then names only the nodes that have not finished."""
    commands.say("sbatch", "echo 7")
    commands.say("squeue", "echo '7|0|seatrial-r1|COMPLETING|0|n001|'")
    plain = a_submission(tmp_path)
    jobs = tuple(job._replace(bundle="b") for job in plain.jobs)
    submission = plain._replace(jobs=jobs)

    async def work(backend: BatchBackend) -> None:
        backend.write(submission)
        progress = tmp_path / "submissions" / submission.name / "progress"
        progress.write_text("start r1 1.5\nend r1 0 -\n")
        await backend.find([submission], {"r1": "7_0"})
        await until_true(lambda: len(commands.told("squeue")) >= 2, "two polls")
        assert not any(isinstance(update, Started) for update in waiting_of(backend))
        commands.say("squeue", "echo '7|0|seatrial-r1|COMPLETED|0|n[001-002]|'")
        assert await first(backend, Started) == Started("r1", "n[001-002]")

    with_backend(tmp_path, work)


def test_a_submission_that_must_wait_holds_up_no_other(tmp_path: Path, commands: Commands) -> None:
    commands.say("sbatch", 'case "$*" in *seatrial-r1*) echo slot limit >&2; exit 1; esac; echo 8')

    async def work(backend: BatchBackend) -> None:
        await backend.submit(a_submission(tmp_path, "r1"))
        await until_true(lambda: bool(commands.told("sbatch")), "a submission")
        await backend.submit(a_submission(tmp_path, "r2"))
        assert await first(backend, Queued) == Queued("r2", "8_0")

    with_backend(tmp_path, work)


def test_news_brings_a_poll_forward_and_never_puts_it_off(
    tmp_path: Path, commands: Commands
) -> None:
    commands.say("sbatch", "echo 7")
    commands.say("squeue", "echo '7|0|seatrial-r1|RUNNING|0|n1|'")

    async def work(backend: BatchBackend) -> None:
        await backend.submit(a_submission(tmp_path))
        await first(backend, Queued)
        asked = len(commands.told("squeue"))
        while len(commands.told("squeue")) < asked + 3:
            await backend.cancel([])
            await asyncio.sleep(0.01)

    with_backend(tmp_path, work)


# ---- tasks without a number ----------------------------------------------------------------------

NAMELESS = "echo '7|N/A|seatrial-r1|CANCELLED|0||'"


@pytest.mark.parametrize("resumed", [False, True])
def test_the_only_task_of_an_array_is_the_one_that_slurm_gives_no_number(
    tmp_path: Path, commands: Commands, resumed: bool
) -> None:
    """As a real Slurm shows one that waited and was cancelled by its task id."""
    commands.say("sbatch", "echo 7")
    commands.say("squeue", NAMELESS)
    commands.say("scontrol", NO_JOB)
    submission = a_submission(tmp_path)

    async def work(backend: BatchBackend) -> None:
        if resumed:
            backend.write(submission)
            await backend.find([submission], {"r1": "7_0"})
        else:
            await backend.submit(submission)
        assert await first_end(backend) == JobEnd("r1", CANCELLED.number, "CANCELLED", 0)

    with_backend(tmp_path, work, lost_after="1h")


@pytest.mark.parametrize(
    ("accounting", "word"),
    [("echo '7_0|seatrial-r1|CANCELLED by 0|0:0|n1'", "CANCELLED by root"),
     ("echo '7_0|seatrial-r1|RUNNING|0:0|n1'", "CANCELLED"), ("exit 1", "CANCELLED")],
)  # fmt: skip
def test_who_cancelled_a_job_is_told_by_the_accounting(
    tmp_path: Path, commands: Commands, accounting: str, word: str
) -> None:
    config = "MaxArraySize=1001\nAccountingStorageType=accounting_storage/slurmdbd\n"
    (commands.folder / "config").write_text(config)
    commands.say("sbatch", "echo 7")
    commands.say("squeue", "echo '7|0|seatrial-r1|CANCELLED|15|n1|'")
    commands.say("sacct", accounting)

    async def work(backend: BatchBackend) -> None:
        await backend.submit(a_submission(tmp_path))
        assert await first_end(backend) == JobEnd("r1", CANCELLED.number, word, 143, "n1")

    with_backend(tmp_path, work, lost_after="1h")


def test_the_accounting_gives_no_number_either(tmp_path: Path, commands: Commands) -> None:
    config = "MaxArraySize=1001\nAccountingStorageType=accounting_storage/slurmdbd\n"
    (commands.folder / "config").write_text(config)
    commands.say("sbatch", "echo 7")
    commands.say("sacct", "echo '7|seatrial-r1|CANCELLED by 0|0:0|None assigned'")

    async def work(backend: BatchBackend) -> None:
        await backend.submit(a_submission(tmp_path))
        assert await first_end(backend) == JobEnd("r1", CANCELLED.number, "CANCELLED by root", 0)

    with_backend(tmp_path, work, lost_after="1h")


@pytest.mark.parametrize("left", [("r1", "r2"), ("r1",)])
def test_of_a_larger_array_the_task_without_a_number_may_be_any(
    tmp_path: Path, commands: Commands, left: tuple[str, ...]
) -> None:
    """Even where only one of its runs is not judged yet."""
    commands.say("squeue", NAMELESS)
    commands.say("scontrol", NO_JOB)
    whole = a_submission(tmp_path, "r1", "r2")

    async def work(backend: BatchBackend) -> None:
        backend.write(whole)
        jobs = tuple(job for job in whole.jobs if job.run_id in left)
        known = {run_id: f"7_{index}" for index, run_id in enumerate(left)}
        await backend.find([whole._replace(jobs=jobs)], known)
        assert await first_end(backend) == JobEnd("r1", LOST.number, "gone", None)

    with_backend(tmp_path, work)


# ---- what is told of troubles --------------------------------------------------------------------


def troubles(backend: BatchBackend) -> list[str]:
    return [update.text for update in waiting_of(backend) if isinstance(update, Trouble)]


def test_nonsense_is_told_once_though_it_is_never_the_same(
    tmp_path: Path, commands: Commands
) -> None:
    commands.say("sbatch", "echo 7")
    commands.say("squeue", "echo $RANDOM-$RANDOM-$RANDOM")

    async def work(backend: BatchBackend) -> None:
        await backend.submit(a_submission(tmp_path))
        await until_true(lambda: len(commands.told("squeue")) >= 5, "five polls")
        (told,) = troubles(backend)
        assert told.startswith("Slurm: squeue answered '")

    with_backend(tmp_path, work)


def test_an_sbatch_that_comes_and_goes_is_one_trouble(tmp_path: Path, commands: Commands) -> None:
    """Though squeue answers all the while, and every second submission is taken."""
    tries = commands.folder / "tries"
    flaps = f"echo >> {tries}; n=$(wc -l < {tries}); [ $((n % 2)) = 0 ] && echo $n && exit"
    commands.say("sbatch", f"{flaps}; echo 'Unable to contact slurm controller' >&2; exit 1")

    async def work(backend: BatchBackend) -> None:
        for number in range(3):
            await backend.submit(a_submission(tmp_path, f"r{number}"))
            await until_true(lambda number=number: len(backend._tasks) == number + 1, "its task")  # type: ignore[misc]
        assert len(commands.told("sbatch")) == 6
        (told,) = troubles(backend)
        assert "Unable to contact" in told

    with_backend(tmp_path, work, lost_after="1h")


def test_a_recovery_is_told_when_it_lasts(
    tmp_path: Path, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler_client, "CALM_SECONDS", 0.1)
    commands.say("sbatch", "echo 7")
    commands.say("squeue", "exit 1")
    commands.say("sinfo", "exit 1")

    async def work(backend: BatchBackend) -> None:
        backend.watch_nodes([])
        await backend.submit(a_submission(tmp_path))
        await until_true(lambda: len(troubles(backend)) == 2, "2 troubles")
        commands.say("squeue", "exit 0")
        await until_true(lambda: len(troubles(backend)) == 3, "3 troubles")
        commands.say("sinfo", "echo 'n1|idle|none'")
        await until_true(lambda: len(troubles(backend)) == 4, "4 troubles")
        assert troubles(backend)[2:] == [
            "Slurm: squeue answers again; sinfo not yet",
            "Slurm: sinfo answers again",
        ]

    with_backend(tmp_path, work, lost_after="1h")


def test_what_is_asked_ends_with_its_driver(tmp_path: Path, commands: Commands) -> None:
    asked = commands.folder / "asked"
    commands.say("sbatch", "echo 7")
    commands.say("squeue", f"echo $$ > {asked}.new; mv {asked}.new {asked}; exec sleep 600")

    async def work(backend: BatchBackend) -> None:
        await backend.submit(a_submission(tmp_path))
        await until_true(asked.exists, "a poll")

    with_backend(tmp_path, work)
    with pytest.raises(ProcessLookupError):
        os.kill(int(asked.read_text()), 0)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (
            "echo '<html>502</html>'",
            "sbatch ended with 0 and answered '<html>502</html>\\n', no job",
        ),
        ("echo oops >&2", "sbatch ended with 0 and answered '', no job id: oops;"),
        ("echo oops; exit 3", "sbatch ended with 3 and answered 'oops\\n', no job id;"),
    ],
)
def test_what_sbatch_answered_is_told(
    tmp_path: Path, commands: Commands, script: str, told: str
) -> None:
    commands.say("sbatch", script)

    async def work(backend: BatchBackend) -> None:
        await backend.submit(a_submission(tmp_path))
        await until_true(lambda: bool(troubles(backend)), "a trouble")
        assert told in troubles(backend)[0]

    with_backend(tmp_path, work)


def hanging(
    monkeypatch: pytest.MonkeyPatch, name: str, asked: list[Path] | None = None
) -> threading.Event:
    """Reading in directories with this name waits until the returned event is set; ``asked`` are
    those that were asked for."""
    answers = threading.Event()
    read = directory.job_events

    def slow(path: Path) -> JobEvents:
        if path.name == name:
            if asked is not None:
                asked.append(path)
            answers.wait(LONG_S)
        return read(path)

    monkeypatch.setattr(job_readings, "job_events", slow)
    monkeypatch.setattr(submitter, "job_events", slow)
    return answers


def test_a_file_system_that_hangs_holds_up_no_other_job(
    tmp_path: Path, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm knows none of three jobs any more: their events decide, as soon as they can be read."""
    monkeypatch.setattr(job_readings, "ANSWER_SECONDS", 0.2)
    asked: list[Path] = []
    answers = hanging(monkeypatch, "stuck", asked)
    commands.say("sbatch", "echo 7")
    whole = a_submission(tmp_path, "own", "stuck", "well")
    jobs = [
        job._replace(file_system=fs) for job, fs in zip(whole.jobs, ("", "a", "b"), strict=True)
    ]
    for job in jobs:
        (job.path / "events.jsonl").write_text(
            f'{{"time":{time.time_ns()},"event":"binary_execute_end","value":0}}\n'
        )

    async def work(backend: BatchBackend) -> None:
        await backend.submit(whole._replace(jobs=tuple(jobs)))
        ends: list[str] = []
        while len(ends) < 2:
            ends += [each.run_id for each in await updates_of(backend) if isinstance(each, JobEnd)]
        assert sorted(ends) == ["own", "well"]
        polls = len(commands.told("squeue"))
        await until_true(lambda: len(commands.told("squeue")) > polls + 3, "more polls")
        assert len(asked) == 1, "one thread hangs, not one a poll"
        answers.set()
        assert await first_end(backend) == JobEnd("stuck", None, "gone", 0)

    try:
        with_backend(tmp_path, work)
    finally:
        answers.set()


def test_a_file_system_that_hangs_holds_up_no_finding(
    tmp_path: Path, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = hanging(monkeypatch, "stuck")

    async def work(backend: BatchBackend) -> None:
        stuck, well = a_submission(tmp_path, "stuck"), a_submission(tmp_path, "well")
        await backend.find([stuck, well], {})
        assert await first(backend, NeverStarted) == NeverStarted("well")
        answers.set()
        assert await first(backend, NeverStarted) == NeverStarted("stuck")

    try:
        with_backend(tmp_path, work)
    finally:
        answers.set()
