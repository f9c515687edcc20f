"""The Slurm backend on commands that say what a file says: what it asks, and what it concludes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from seatrial.backends import slurm
from seatrial.backends.protocol import Ended, Fact, Job, Queued, Started, Submission
from seatrial.backends.slurm import SlurmBackend
from seatrial.journal.codes import CANCELLED, LOST, SPECIAL_EXIT
from seatrial.machine.model import Machine, Nodes, Slurm
from tests.programs import LONG_S

COMMAND = """\
#!/bin/bash
echo "$@" >> {folder}/$(basename $0).told
env > {folder}/env.$$ && mv {folder}/env.$$ {folder}/$(basename $0).env
[ "$1 $2" = "show config" ] && {{ echo MaxArraySize=1001; exit; }}
. {folder}/$(basename $0).says
"""
JOB = "JobId=7 ArrayJobId=7 ArrayTaskId=0 JobName={} JobState={} ExitCode=0:0 NodeList=n1"
NO_JOB = "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1"


class Commands:
    """Slurm's commands; each is given the bash that answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("sbatch", "squeue", "scancel", "scontrol"):
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
    monkeypatch.setattr(slurm, "SHORTEST_POLL", 0.05)
    monkeypatch.setattr(slurm, "POLL_SHARE", 1.0)
    return Commands(folder)


def a_submission(folder: Path, name: str = "r1") -> Submission:
    path = folder / "runs" / name
    path.mkdir(parents=True)
    return Submission(f"seatrial-{name}", (Job(name, path, 1, 1, 1, 1, 60.0, "", False),))


def with_backend(folder: Path, work: Callable[[SlurmBackend], Awaitable[object]]) -> None:
    options = Slurm(poll="100ms", lost_after="100ms")
    machine = Machine(machine="m", nodes=[Nodes(names="n1", cores=1)], slurm=options)

    async def course() -> None:
        backend = SlurmBackend(machine, folder / "submissions")
        await backend.open()
        try:
            await asyncio.wait_for(work(backend), LONG_S)
        finally:
            await backend.close()

    asyncio.run(course())


async def first(backend: SlurmBackend, kind: type[Fact]) -> Fact:
    while True:
        for fact in await backend.facts():
            if isinstance(fact, kind):
                return fact


async def becomes(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


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

    async def work(backend: SlurmBackend) -> None:
        await backend.submit(a_submission(tmp_path))
        await first(backend, Ended)

    with_backend(tmp_path, work)
    for name in ("sbatch", "squeue", "scontrol"):
        assert not commands.environment(name) & set(misleading)
        assert commands.environment(name) >= set(kept)


def test_the_user_may_have_no_name(tmp_path: Path, commands: Commands) -> None:
    """As in a container: the number is asked for."""
    commands.say("sbatch", "echo 7")

    async def work(backend: SlurmBackend) -> None:
        await backend.submit(a_submission(tmp_path))
        await becomes(lambda: bool(commands.told("squeue")))

    with_backend(tmp_path, work)
    assert f"--user={os.geteuid()}" in commands.told("squeue")[0].split()


def test_a_job_is_lost_only_if_the_controller_says_so(tmp_path: Path, commands: Commands) -> None:
    commands.say("sbatch", "echo 7")
    commands.say("scontrol", f"echo {JOB.format('seatrial-r1', 'RUNNING')}")

    def asked() -> int:
        return sum("show job 7_0" in line for line in commands.told("scontrol"))

    async def work(backend: SlurmBackend) -> None:
        await backend.submit(a_submission(tmp_path))
        assert await first(backend, Queued) == Queued("r1", "7_0")
        await becomes(lambda: asked() >= 2)
        assert not any(isinstance(fact, Ended) for fact in backend._news.waiting)
        commands.say("scontrol", NO_JOB)
        assert await first(backend, Ended) == Ended("r1", LOST.number, "gone", None)

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

    async def work(backend: SlurmBackend) -> None:
        await backend.submit(a_submission(tmp_path))
        assert await first(backend, Ended) == Ended("r1", *end)  # type: ignore[arg-type]

    with_backend(tmp_path, work)


@pytest.mark.parametrize("gone", ["exit 0", "echo '7|0|seatrial-r1|CANCELLED|0|n1|'"])
def test_a_job_that_slurm_keeps_is_cancelled_before_its_end_is_told(
    tmp_path: Path, commands: Commands, gone: str
) -> None:
    commands.say("sbatch", "echo 7")
    commands.say("squeue", "echo '7|0|seatrial-r1|SPECIAL_EXIT|0|n1|'")

    async def work(backend: SlurmBackend) -> None:
        await backend.submit(a_submission(tmp_path))
        await becomes(lambda: commands.told("scancel")[:2] == ["7_0", "7_0"])  # until it is gone
        assert not any(isinstance(fact, Ended) for fact in backend._news.waiting)
        commands.say("squeue", gone)
        end = await first(backend, Ended)
        assert isinstance(end, Ended)
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

    async def work(backend: SlurmBackend) -> None:
        await backend.submit(a_submission(tmp_path))
        await first(backend, Queued)
        await backend.cancel(["r1"], pending_only=True)
        await becomes(lambda: commands.told("scancel")[:2] == ["--state=PENDING 7_0"] * 2)
        commands.say("squeue", then)
        if code is None:
            assert await first(backend, Started) == Started("r1", "n1")
            asked = len(commands.told("scancel"))
            commands.say("squeue", "echo '7|0|seatrial-r1|COMPLETED|0|n1|'")
        end = await first(backend, Ended)
        assert isinstance(end, Ended)
        assert end.code == code
        assert bool(end.nodes) == (code is None)
        if code is None:
            assert len(commands.told("scancel")) == asked

    with_backend(tmp_path, work)


def test_a_submission_that_must_wait_holds_up_no_other(tmp_path: Path, commands: Commands) -> None:
    commands.say("sbatch", 'case "$*" in *seatrial-r1*) echo slot limit >&2; exit 1; esac; echo 8')

    async def work(backend: SlurmBackend) -> None:
        await backend.submit(a_submission(tmp_path, "r1"))
        await becomes(lambda: bool(commands.told("sbatch")))
        await backend.submit(a_submission(tmp_path, "r2"))
        assert await first(backend, Queued) == Queued("r2", "8_0")

    with_backend(tmp_path, work)


def test_news_brings_a_poll_forward_and_never_puts_it_off(
    tmp_path: Path, commands: Commands
) -> None:
    commands.say("sbatch", "echo 7")
    commands.say("squeue", "echo '7|0|seatrial-r1|RUNNING|0|n1|'")

    async def work(backend: SlurmBackend) -> None:
        await backend.submit(a_submission(tmp_path))
        await first(backend, Queued)
        asked = len(commands.told("squeue"))
        while len(commands.told("squeue")) < asked + 3:
            await backend.cancel([])
            await asyncio.sleep(0.01)

    with_backend(tmp_path, work)
