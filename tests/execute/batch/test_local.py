from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from seatrial.execute import local
from seatrial.execute.backends import (
    Disturbed,
    Job,
    JobEnd,
    NeverStarted,
    Queued,
    Refused,
    Submission,
    Update,
)
from seatrial.execute.local import LocalBackend
from seatrial.model.codes import CANCELLED, LOST, TIMEOUT
from seatrial.model.test import JobOptions
from tests.execute.helpers import updates_of
from tests.waiting import LONG_S, until_true

CLAIM = ": > events.jsonl\n"


@pytest.fixture(autouse=True, params=["handles on processes", "none, as before Linux 5.3"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything works on both kinds of kernel."""

    def not_there(pid: int) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    if request.param.startswith("none"):
        monkeypatch.setattr(os, "pidfd_open", not_there)


END = """echo '{"time":1,"event":"binary_execute_end","value":%d}' >> events.jsonl\n"""


def a_job(folder: Path, script: str, walltime: float = 30.0, name: str = "r1") -> Job:
    path = folder / "runs" / name
    path.mkdir(parents=True, exist_ok=True)
    (path / "job.sh").write_text(f'cd "{path}"\n{script}\n')
    return Job(name, path, 1, 1, 1, 1, walltime, "", False)


def submission(job: Job) -> Submission:
    return Submission(job.run_id, (job,))


def with_backend(work: Callable[[LocalBackend], Awaitable[object]]) -> None:
    async def course() -> None:
        backend = LocalBackend(4)
        await backend.open()
        try:
            await asyncio.wait_for(work(backend), LONG_S)
        finally:
            await backend.close()

    asyncio.run(course())


async def ended(backend: LocalBackend, count: int = 1) -> dict[str, JobEnd]:
    """The ends of that many runs; other facts are passed over."""
    ends: dict[str, JobEnd] = {}
    while len(ends) < count:
        for update in await updates_of(backend):
            if isinstance(update, JobEnd):
                assert update.run_id not in ends, "it ended twice"
                ends[update.run_id] = update
    return ends


async def appears(path: Path) -> str:
    """The text of a file, once there is any."""
    await until_true(lambda: path.exists() and path.read_text(), f"{path.name} with a text")
    return path.read_text()


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


async def dies(pid: int) -> None:
    await until_true(lambda: not alive(pid), f"the end of process {pid}")


def run_one(folder: Path, script: str, walltime: float = 30.0) -> JobEnd:
    ends: list[JobEnd] = []

    async def work(backend: LocalBackend) -> None:
        job = a_job(folder, script, walltime)
        await backend.submit(submission(job))
        ends.extend((await ended(backend)).values())

    with_backend(work)
    return ends[0]


# ---- how jobs end --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "exit_code"),
    [
        ("exit 0", 0),
        ("exit 3", 3),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
        ("kill -SEGV $$", 139),
    ],
)
def test_a_job_that_ends_tells_how(tmp_path: Path, script: str, exit_code: int) -> None:
    assert run_one(tmp_path, script) == JobEnd("r1", None, "exited", exit_code)


def test_output_goes_to_its_files_and_input_is_empty(tmp_path: Path) -> None:
    run_one(
        tmp_path, "cat; echo out; echo err >&2; ps -o sid= -p $$ | tr -d ' ' > sid; echo $$ > pid"
    )
    path = tmp_path / "runs" / "r1"
    assert (path / "stdout").read_text() == "out\n"
    assert (path / "stderr").read_text() == "err\n"
    assert (path / "sid").read_text() == (path / "pid").read_text()


def test_what_a_job_leaves_in_the_background_is_ended(tmp_path: Path) -> None:
    assert run_one(tmp_path, "sleep 300 & echo $! > pid").exit_code == 0
    asyncio.run(asyncio.wait_for(dies(int((tmp_path / "runs/r1/pid").read_text())), LONG_S))


@pytest.mark.parametrize("quick", [1.0, 0.0])
def test_what_it_leaves_in_a_group_of_its_own_is_ended_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: float
) -> None:
    monkeypatch.setattr(local, "QUICK_SECONDS", quick)
    assert run_one(tmp_path, "set -m; sleep 300 & echo $! > pid").exit_code == 0
    asyncio.run(asyncio.wait_for(dies(int((tmp_path / "runs/r1/pid").read_text())), LONG_S))


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("sleep 0.6", TIMEOUT.number),
        (CLAIM + """echo "{'time':$(date +%s%N),'event':'binary_execute_end','value':0}" """
         """| tr "'" '"' >> events.jsonl""", None),
    ],
)  # fmt: skip
def test_a_busy_loop_does_not_hide_that_the_walltime_was_over(
    tmp_path: Path, script: str, code: int | None
) -> None:
    """Nor does one that sees an end late make it a timeout."""
    ends: list[JobEnd] = []

    async def work(backend: LocalBackend) -> None:
        await backend.submit(submission(a_job(tmp_path, script, 0.5)))
        time.sleep(0.8)
        ends.extend((await ended(backend)).values())

    with_backend(work)
    assert ends[0].code == code


def test_a_job_ends_at_its_walltime(tmp_path: Path) -> None:
    began = time.monotonic()
    end = run_one(tmp_path, "sleep 300", 0.2)
    assert end == JobEnd("r1", TIMEOUT.number, "timeout", 143)
    assert time.monotonic() - began >= 0.2


def test_a_job_that_does_not_end_when_asked_is_made_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "GRACE_SECONDS", 1.0)
    script = "trap 'echo asked > asked' TERM; while :; do sleep 0.05; done"
    assert run_one(tmp_path, script, 0.8) == JobEnd("r1", TIMEOUT.number, "timeout", 137)
    assert (tmp_path / "runs/r1/asked").read_text() == "asked\n"


def test_a_launcher_may_tidy_up_though_the_shell_ends_at_once(tmp_path: Path) -> None:
    """As with mpirun: bash dies of SIGTERM, its child needs a moment, in a group of its own."""
    child = "trap 'sleep 0.3; echo tidied > tidied; exit' TERM; echo > ready; "
    child += "while :; do sleep 0.05; done"
    (tmp_path / "child.sh").write_text(child)
    script = f"set -m\nbash {tmp_path}/child.sh & \nset +m\nwait"

    async def work(backend: LocalBackend) -> None:
        job = a_job(tmp_path, script)
        await backend.submit(submission(job))
        await appears(job.path / "ready")
        await backend.cancel(["r1"])
        assert await ended(backend) == {"r1": JobEnd("r1", CANCELLED.number, "cancelled", 143)}
        assert (job.path / "tidied").exists()

    with_backend(work)


def test_processes_in_groups_of_their_own_are_ended_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "GRACE_SECONDS", 0.2)
    script = "set -m\n(trap '' TERM; echo $BASHPID > pid; while :; do sleep 0.05; done) &\nwait"

    async def work(backend: LocalBackend) -> None:
        job = a_job(tmp_path, script)
        await backend.submit(submission(job))
        pid = int(await appears(job.path / "pid"))
        await backend.cancel(["r1", "unknown"])
        await backend.cancel(["r1"])
        assert (await ended(backend))["r1"].code == CANCELLED.number
        await dies(pid)

    with_backend(work)


def test_a_job_that_was_cancelled_first_and_timed_out_later_was_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "GRACE_SECONDS", 1.3)

    async def work(backend: LocalBackend) -> None:
        job = a_job(tmp_path, "trap '' TERM; echo > ready; while :; do sleep 0.05; done", 1.0)
        await backend.submit(submission(job))
        await appears(job.path / "ready")
        await backend.cancel(["r1"])
        assert (await ended(backend))["r1"] == JobEnd("r1", CANCELLED.number, "cancelled", 137)

    with_backend(work)


def test_only_what_has_not_started_is_taken_back(tmp_path: Path) -> None:
    async def work(backend: LocalBackend) -> None:
        job = a_job(tmp_path, "until [ -e go ]; do sleep 0.05; done", name="r1")
        await backend.submit(submission(job))
        await backend.cancel(["r1", "r2"], pending_only=True)
        later = a_job(tmp_path, "echo > ran", name="r2")
        await backend.submit(submission(later))
        assert (await ended(backend))["r2"] == JobEnd("r2", CANCELLED.number, "never started", None)
        assert not (later.path / "ran").exists()
        (job.path / "go").touch()
        assert (await ended(backend))["r1"] == JobEnd("r1", None, "exited", 0)

    with_backend(work)


def test_a_job_that_cannot_be_started_is_refused_by_its_path(tmp_path: Path) -> None:
    async def work(backend: LocalBackend) -> None:
        job = a_job(tmp_path, "true")
        lost = job._replace(run_id="r2", path=tmp_path / "nowhere")
        await backend.submit(Submission("r2", (lost, job)))
        updates = await updates_of(backend)
        why = f"{tmp_path}/nowhere: bash cannot be started there: No such file or directory"
        assert updates[0] == Refused("r2", why)
        assert isinstance(updates[1], Queued)
        if not any(isinstance(update, JobEnd) for update in updates):
            assert (await ended(backend))["r1"].exit_code == 0

    with_backend(work)


def test_each_job_is_shown_gpus_that_no_other_has(tmp_path: Path) -> None:
    """Also the jobs of a new driver, beside those that the last one left."""
    gate = tmp_path / "gate"
    script = f'{CLAIM}echo "$CUDA_VISIBLE_DEVICES $ROCR_VISIBLE_DEVICES"\n'
    script += f"until [ -e {gate} ]; do sleep 0.05; done\n" + END % 0
    asked = {"one": 1, "two": 2, "none": 0, "left": 1, "more": 1}
    jobs = {
        name: a_job(tmp_path, script, name=name)._replace(options=JobOptions(gpus_per_task=gpus))
        for name, gpus in asked.items()
    }

    def seen(*names: str) -> list[set[str]]:
        return [set((jobs[name].path / "stdout").read_text().split()) for name in names]

    async def course() -> None:
        given = {**os.environ, "CUDA_VISIBLE_DEVICES": "4,5,7,9"}
        first = LocalBackend(4, given, gpus=4)
        await first.open()
        for name in ("one", "two", "none"):
            await first.submit(submission(jobs[name]))
        await until_true(lambda: all(map(len, seen("one", "two", "none"))), "the jobs")
        await first.close()
        second = LocalBackend(4, given, gpus=4)
        await second.open()
        await second.find([submission(jobs[name]) for name in ("one", "two", "none")], {})
        await second.submit(submission(jobs["left"]))
        await second.submit(submission(jobs["more"]))
        await until_true(lambda: all(map(len, seen("left"))), "a job")
        refused = [u for u in await updates_of(second) if isinstance(u, Refused)]
        assert [each.run_id for each in refused] == ["more"]
        assert "needs 1 GPU, 0 are free" in refused[0].reason
        gate.touch()
        ends = 0
        while ends < 4:
            ends += sum(isinstance(update, JobEnd) for update in await updates_of(second))
        assert second._gpus.free == ["4", "5", "7", "9"]
        await second.close()

    asyncio.run(asyncio.wait_for(course(), LONG_S))
    assert seen("one", "two", "left") == [{"4"}, {"5,7"}, {"9"}]
    assert seen("none") == [{"4,5,7,9"}]


def test_a_backend_that_never_opened_can_be_closed() -> None:
    asyncio.run(LocalBackend(1).close())


# ---- after a restart -----------------------------------------------------------------------

DRIVER = """
import asyncio, sys
from pathlib import Path
from seatrial.execute.local import LocalBackend
from seatrial.execute.backends import Job, Submission

async def main():
    backend = LocalBackend(4)
    await backend.open()
    for name in sys.argv[2:]:
        job = Job(name, Path(sys.argv[1], name), 1, 1, 1, 1, 60.0, "", False)
        await backend.submit(Submission(name, (job,)))
    print("submitted", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def killed_driver(folder: Path, *names: str) -> None:
    """A driver that submits these jobs and is then killed, as with kill -9."""
    line = [sys.executable, "-c", DRIVER, str(folder / "runs"), *names]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "submitted\n"
        driver.kill()


async def found(backend: LocalBackend, *jobs: Job) -> dict[str, Update]:
    """The first fact about each job."""
    await backend.find([submission(job) for job in jobs], {})
    updates: dict[str, Update] = {}
    while len(updates) < len(jobs):
        for update in await updates_of(backend):
            updates.setdefault(update.run_id, update)
    return updates


def test_a_new_driver_finds_what_became_of_every_job(tmp_path: Path) -> None:
    wait = "while [ ! -e go ]; do sleep 0.05; done\n"
    alive_job = a_job(tmp_path, CLAIM + wait + END % 3 + "exit 3", name="alive")
    doomed = a_job(tmp_path, CLAIM + wait + "kill -9 $$", name="doomed")
    done = a_job(tmp_path, CLAIM + END % 7 + "echo > ready; exit 7", name="done")
    vanished = a_job(tmp_path, CLAIM + "echo > ready; kill -9 $$", name="vanished")
    never = a_job(tmp_path, "true", name="never")
    killed_driver(tmp_path, "alive", "doomed", "done", "vanished")

    async def work(backend: LocalBackend) -> None:
        for job in (done, vanished):
            await appears(job.path / "ready")
        scripts = {str(job.path / "job.sh") for job in (done, vanished)}
        await until_true(
            lambda: not scripts & {job.script for job in local.job_processes()}, "their end"
        )
        updates = await found(backend, alive_job, doomed, done, vanished, never)
        assert isinstance(updates["alive"], Queued)
        assert isinstance(updates["doomed"], Queued)
        assert alive(int(updates["alive"].job_id))
        assert updates["done"] == JobEnd("done", None, "exited", 7)
        assert updates["vanished"] == JobEnd("vanished", LOST.number, "vanished", None)
        assert updates["never"] == NeverStarted("never")
        for job in (alive_job, doomed):
            (job.path / "go").write_text("")
        ends = await ended(backend, 2)
        assert ends["alive"] == JobEnd("alive", None, "exited", 3)
        assert ends["doomed"] == JobEnd("doomed", LOST.number, "vanished", None)

    with_backend(work)


def test_a_job_is_found_again_by_whatever_path_its_folder_is_seen(tmp_path: Path) -> None:
    wait = "while [ ! -e go ]; do sleep 0.05; done\n"
    there = tmp_path / "there"
    names = ("moved", "linked")
    script = CLAIM + "echo > ready\n" + wait + END % 3 + "exit 3"
    jobs = [a_job(there, script, name=name) for name in names]
    killed_driver(there, *names)
    (tmp_path / "link").symlink_to("there")

    async def work(backend: LocalBackend) -> None:
        for job in jobs:
            await appears(job.path / "ready")
        here = jobs[0].path.rename(tmp_path / "here")
        moved = jobs[0]._replace(path=here)
        linked = jobs[1]._replace(path=tmp_path / "link" / jobs[1].path.relative_to(there))
        updates = await found(backend, moved, linked)
        assert all(isinstance(update, Queued) for update in updates.values())
        assert backend.followed() == set(names)
        for job in (moved, linked):
            (job.path / "go").write_text("")
        ends = await ended(backend, 2)
        assert {end.exit_code for end in ends.values()} == {3}
        assert backend.followed() == set()

    with_backend(work)


def test_a_new_driver_can_cancel_what_it_found(tmp_path: Path) -> None:
    job = a_job(tmp_path, CLAIM + "sleep 300", name="r1")
    killed_driver(tmp_path, "r1")

    async def work(backend: LocalBackend) -> None:
        updates = await found(backend, job)
        assert isinstance(updates["r1"], Queued)
        await backend.cancel(["r1"])
        assert (await ended(backend))["r1"] == JobEnd("r1", CANCELLED.number, "cancelled", None)
        await dies(int(updates["r1"].job_id))

    with_backend(work)


@pytest.mark.parametrize("shift", [-10_000, 10_000])
def test_the_walltime_of_a_found_job_is_what_is_left_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shift: float
) -> None:
    job = a_job(tmp_path, CLAIM + "echo > ready; sleep 300", name="r1")
    killed_driver(tmp_path, "r1")
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + int(shift * 1e9))

    async def work(backend: LocalBackend) -> None:
        await appears(job.path / "ready")
        (pid,) = [p.pid for p in local.job_processes() if str(job.path) in p.script]
        loop = asyncio.get_running_loop()
        began = loop.time()
        while (age := local.age_of(pid)) < 0.4:
            await asyncio.sleep(0.01)
            began = loop.time()
        await backend.find([submission(job._replace(walltime=age + 100))], {})
        process = backend._running["r1"]
        assert began + 99.5 < process.walltime.when() < loop.time() + 100.2
        await backend.cancel(["r1"])
        await ended(backend)

    with_backend(work)


def test_a_backend_that_leaves_lets_its_jobs_run(tmp_path: Path) -> None:
    job = a_job(tmp_path, "echo $$ > pid; exec sleep 300")
    pids: list[int] = []

    async def leave(backend: LocalBackend) -> None:
        await backend.submit(submission(job))
        pids.append(int(await appears(job.path / "pid")))

    with_backend(leave)
    assert alive(pids[0])
    os.kill(pids[0], signal.SIGKILL)
    os.waitpid(pids[0], 0)


def test_the_same_process_may_take_up_its_jobs_again(tmp_path: Path) -> None:
    job = a_job(tmp_path, CLAIM + "while [ ! -e go ]; do sleep 0.05; done; exit 4")

    async def leave(backend: LocalBackend) -> None:
        await backend.submit(submission(job))

    async def take_up(backend: LocalBackend) -> None:
        assert isinstance((await found(backend, job))["r1"], Queued)
        (job.path / "go").write_text("")
        assert (await ended(backend))["r1"] == JobEnd("r1", None, "exited", 4)

    with_backend(leave)
    with_backend(take_up)


# ---- cost ----------------------------------------------------------------------------------


def test_many_processes(tmp_path: Path) -> None:
    """Every one ends once; the time it takes is printed (`SEATRIAL_PROCESSES=1000 pytest -s`)."""
    count, width = int(os.environ.get("SEATRIAL_PROCESSES", "200")), 4
    jobs = [a_job(tmp_path, "exit 0", name=f"r{number}") for number in range(count)]

    async def work(backend: LocalBackend) -> None:
        waiting = iter(jobs)
        ends: set[str] = set()
        for job in (next(waiting) for _ in range(width)):
            await backend.submit(submission(job))
        while len(ends) < count:
            for update in await updates_of(backend):
                if isinstance(update, JobEnd):
                    assert update.exit_code == 0
                    assert update.run_id not in ends
                    ends.add(update.run_id)
                    if (following := next(waiting, None)) is not None:
                        await backend.submit(submission(following))

    began, cpu = time.monotonic(), time.process_time()
    with_backend(work)
    took, cpu = time.monotonic() - began, time.process_time() - cpu
    print(f"\n{count} processes, {width} at a time: {took:.2f} s, {cpu / count * 1e6:.0f} us each")


# ---- processes that leave the session ----------------------------------------------------------


@pytest.mark.parametrize("way", ["walltime", "cancelled", "ended", "ended at once"])
def test_a_process_that_left_the_session_is_ended_with_its_job(tmp_path: Path, way: str) -> None:
    run_id = f"r{os.getpid()}"  # other tests on this host end processes of r1
    leave = f"export SEATRIAL_RUN={run_id}\nsetsid bash -c 'echo $$ > left; exec sleep 300' &\n"
    seen = "until [ -s left ]; do sleep 0.05; done\n"
    stay = {"ended": "sleep 1.2", "ended at once": ""}.get(way, "sleep 300")
    walltime = 1.0 if way == "walltime" else 60.0
    script = CLAIM + leave + seen + "echo > ready\n" + stay
    job = a_job(tmp_path, script, walltime=walltime, name=run_id)

    async def work(backend: LocalBackend) -> None:
        await backend.submit(submission(job))
        await appears(job.path / "ready")
        pid = int((job.path / "left").read_text())
        assert os.getsid(pid) == pid
        if way == "cancelled":
            await backend.cancel([run_id])
        await ended(backend)
        await until_true(lambda: not alive(pid), "its end")

    with_backend(work)


def test_the_processes_of_other_runs_are_left_alone(tmp_path: Path) -> None:
    """Of a run whose id begins alike, and of none."""
    environment = {**os.environ, "SEATRIAL_RUN": "r12"}
    with subprocess.Popen(["sleep", "300"], env=environment, start_new_session=True) as other:
        job = a_job(tmp_path, CLAIM + "sleep 300", walltime=0.5)

        async def work(backend: LocalBackend) -> None:
            await backend.submit(submission(job))
            await ended(backend)

        with_backend(work)
        assert other.poll() is None
        other.kill()


# ---- runs of other trials ----------------------------------------------------------------------


def test_an_exclusive_run_tells_of_another_trial_s_run_beside_it(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    script = CLAIM + f"echo > ready\nuntil [ -e {gate} ]; do sleep 0.05; done\n" + END % 0
    one, two = (a_job(tmp_path / name, CLAIM + script, name=name) for name in ("one", "two"))
    two = two._replace(exclusive=True)

    async def work(backend: LocalBackend) -> None:
        other = LocalBackend(4)
        await other.open()
        await other.submit(submission(one))
        await appears(one.path / "ready")
        await backend.submit(submission(two))
        await appears(two.path / "ready")
        gate.touch()
        await ended(other)
        await other.close()
        disturbed: list[Disturbed] = []
        while True:
            updates = await updates_of(backend)
            disturbed += [each for each in updates if isinstance(each, Disturbed)]
            if any(isinstance(each, JobEnd) for each in updates):
                break
        here = [each for each in disturbed if str(tmp_path) in each.other]
        assert here == [Disturbed("two", os.path.realpath(one.path))], "once, and not of itself"

    with_backend(work)
