"""Settling the runs that have ended: what their jobs wrote is waited for, judged beside the trial
where that takes long, and never a pass for a script that did not run."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import time
from collections.abc import Collection, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from seatrial.decide.conductor import Launch
from seatrial.errors import TrialError
from seatrial.execute import driver as driver_module
from seatrial.execute import run_collector
from seatrial.execute.backends import Job, JobEnd, Queued, Started, Submission, Trouble, Update
from seatrial.execute.directory import JobEvents
from seatrial.execute.driver import Driver
from seatrial.execute.environment import ENVIRONMENT
from seatrial.execute.plan.prepare import prepare_plan
from seatrial.execute.plan_trials import begin
from seatrial.execute.requests import TWICE
from seatrial.execute.run_collector import Collected
from seatrial.execute.runs import RunUnderWay
from seatrial.journal.events import (
    JobEnded,
    MetricRecorded,
    RunJudged,
    ScriptEnded,
    ScriptStarted,
    TrialCancelled,
    TrialPaused,
)
from seatrial.model.codes import TIMEOUT
from tests.execute.plans import TAG, ends, short, write_plan
from tests.gates import wait_for
from tests.programs import LONG_S, Driving, Workplace, until
from tests.waiting import until_true


def test_a_long_judgement_holds_up_no_walltime(place: Workplace) -> None:
    place.constants = {"judge.isolated.SEARCH_SECONDS": 1}
    print_xs = "head -c 20000 /dev/zero | tr '\\0' x"
    place.test("endless", print_xs, verify=[{"matches": "(x+x+)+y"}])
    place.test("long", "sleep 1000", run={"walltime": "500ms"})
    done = place.run("--name", "t")
    assert place.verdicts() == {"endless": "check error", "long": "timeout"}, done.said
    ended = [event.test for event in place.events("t", RunJudged)]
    assert ended == ["long", "endless"]
    place.audit()


@pytest.mark.parametrize(
    ("setup", "reason"),
    [
        ('module() { [ "$2" != qe/6.8 ]; }', "module qe/6.8 did not load"),
        # nothing can be read from the usual places
        ("unset -f module; [() { false; }", "there is no command `module`"),
    ],
)
def test_a_module_that_does_not_load_is_the_reason(
    place: Workplace, setup: str, reason: str
) -> None:
    place.local(setup=setup)
    place.test("t", modules=["gcc/12", "qe/6.8"])
    assert place.run("--name", "t").code == 1
    assert place.verdicts() == {"t": "failed"}
    assert reason in place.why("t")


SEARCH = b"judge/search_process.py"


def command_of(process: int) -> bytes:
    """The command line of a process; empty once it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return b""


def searches_of(driving: Driving) -> list[int]:
    """The processes in which a driver searches outputs."""
    threads = Path(f"/proc/{driving.pid}/task").glob("*/children")
    children = [int(pid) for thread in threads for pid in thread.read_text().split()]
    return [pid for pid in children if SEARCH in command_of(pid)]


def test_a_pattern_that_explodes_is_tried_again_after_a_kill(place: Workplace) -> None:
    """Its text is short: the driver tries it itself for a moment, and then a process does."""
    place.test("evil", f"echo 'steps {'a' * 60}!'", verify=[{"matches": "^steps ([a-z]+)*$"}])
    with place.start_run("--name", "t") as driving:
        driving.until(lambda: bool(searches_of(driving)), "the search")
        (search,) = searches_of(driving)
        driving.send(signal.SIGTERM)
        driving.end()
    until(lambda: SEARCH not in command_of(search), "the search to end without its driver")
    place.constants = {"judge.isolated.SEARCH_SECONDS": 0.3}
    assert place.resume("t").code == 1
    assert place.verdicts() == {"evil": "check error"}


def test_a_run_that_ended_while_the_driver_was_stopped_is_no_timeout(place: Workplace) -> None:
    gate = place.folder / "gate"
    place.test("a", wait_for(gate), run={"walltime": "3s"}, repeat=2)
    with place.start_run("--name", "t", "--jobs", "2") as driving:
        driving.until(lambda: len(place.ran()) == 2, "two runs at work")
        started = time.monotonic()
        driving.send(signal.SIGSTOP)
        gate.touch()
        until(lambda: time.monotonic() > started + 3.5, "their walltime")
        driving.send(signal.SIGCONT)
        assert driving.end().code == 0
    assert place.verdicts() == {"a": "pass"}


def test_a_driver_that_dies_as_it_judges_keeps_the_environment(place: Workplace) -> None:
    place.test("slow", "head -c 20000 /dev/zero", verify=[{"absent": "x"}])
    assert place.run("--name", "t").code == 0
    journal = place.trial().journal
    lines = journal.read_text().splitlines(keepends=True)
    (start,) = (number for number, line in enumerate(lines) if "binary_execute_start" in line)
    (run,) = place.trial().path.glob("runs/slow/*")
    alias = place.events("t", ScriptStarted)[0].environment
    assert alias
    assert not (run / ENVIRONMENT).exists()
    driver = Driver(place.trial())
    (run / ENVIRONMENT).write_text('declare -x FLAGS="-O2"\n')
    journal.write_text("".join(lines[:start]))
    ended = driver._staging.begin(Launch(0, run.name), driver.conductor.state.cases[0])
    for _ in range(2):  # the outcome was not written the first time
        (first, *_), _ = asyncio.run(_collected(driver, ended))
        assert isinstance(first, ScriptStarted)
        assert first.environment
    driver._collector.drop_captured()
    assert not (run / ENVIRONMENT).exists()


async def _collected(driver: Driver, ended: RunUnderWay) -> Collected:
    collected = driver._collector.collect(ended, _exited)
    return await collected if isinstance(collected, Coroutine) else collected


def _exited(_: JobEvents) -> JobEnd:
    return JobEnd("", None, "exited", 0)


def test_only_what_is_surely_quick_is_judged_at_once(place: Workplace) -> None:
    check = {"contains": "x"}
    place.test("nothing")
    place.test("small", verify=[check])
    place.test("page", "big", verify=[check])
    place.test("big_but_not_read", "big")
    place.test("hash", verify=[{"identical": "x", "sha256": "0" * 64}])
    place.test("file", verify=[{**check, "in": "x"}])
    metric = {"find": r"(\S+)", "unit": "1", "better": "higher", "in": "x"}
    place.test("metric", metrics={"rate": metric})
    folder = place.test("function", metrics={"python": "figures.py:read"})
    (folder / "figures.py").write_text("def read(path): ...\n")
    assert place.run("--name", "t", "--dry-run").code == 0
    driver = Driver(place.trial())
    quick = set()
    for number, case in enumerate(driver.conductor.state.cases):
        (run,) = place.trial().path.glob(f"runs/{case.test}/*")
        (run / "stdout").write_bytes(
            b"x" * (10_000 if "big" in (run / "job.sh").read_text() else 9)
        )
        if case.test == "page":
            (run / "stdout").write_bytes(b"x" * 10_000)
        ended = driver._staging.begin(Launch(number, run.name), case)
        collected = driver._collector.collect(ended, _exited)
        if isinstance(collected, Coroutine):
            collected.close()
        else:
            quick.add(case.test)
    assert quick == {"nothing", "small", "big_but_not_read"}


def test_a_script_that_never_ran_does_not_pass(place: Workplace) -> None:
    place.local(setup="exit 0")
    place.test("skipped")
    assert place.run("--name", "t").code == 1
    assert place.verdicts() == {"skipped": "failed"}
    assert "the job script ended before the test's own did" in place.why("skipped")


# ---- leaving -----------------------------------------------------------------------------------


def _judged_long(place: Workplace) -> Driving:
    """A trial that judges for long, the first time."""
    begun = place.folder / "begun"
    code = f"""
import time, pathlib
def read(folder):
    begun = pathlib.Path({str(begun)!r})
    if not begun.exists():
        begun.touch()
        time.sleep(600)
    return {{"rate": 1.0}}
"""
    folder = place.test("a", metrics={"python": "figures.py:read"})
    (folder / "figures.py").write_text(code)
    driving = place.start_run("--name", "t")
    driving.until(begun.exists, "the judgement")
    return driving


def test_a_run_that_this_host_cannot_judge_has_no_cause(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its output says: nobody knows whether it failed."""
    folder = place.test(
        "a", "echo 'MPI_ABORT was invoked on rank 0'", verify=[{"script": "check.sh"}]
    )
    (folder / "check.sh").write_text("exit 1\n")
    assert place.run("--name", "judged").code == 1
    assert place.run("--name", "t", "--dry-run").code == 0

    def fail(*_: object) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr("seatrial.judge.script_check.run_script", fail)
    with pytest.raises(TrialError, match="see to this host, then resume"):
        asyncio.run(Driver(place.trial()).drive())
    causes = {tag: place.events(tag, RunJudged)[0].cause for tag in ("judged", "t")}
    assert causes == {"judged": "the program called MPI_Abort", "t": ""}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_does_not_wait_for_a_judgement(
    place: Workplace, number: signal.Signals
) -> None:
    with _judged_long(place) as driving:
        driving.send(number)
        done = driving.end()
    assert done.code == 3, done.said
    assert not place.count(RunJudged)
    assert "seatrial resume t" in done.err
    assert place.resume().code == 0
    place.audit()


def test_ctrl_c_three_times_leaves_at_once(place: Workplace) -> None:
    with _judged_long(place) as driving:
        driving.send(signal.SIGINT)
        until(lambda: place.count(TrialPaused) == 1, "the pause")
        driving.send(signal.SIGINT)
        until(lambda: place.count(TrialCancelled) == 1, "the cancellation")
        assert place.events("t", TrialCancelled)[0].reason == TWICE
        driving.send(signal.SIGINT)
        done = driving.end()
    assert done.code == 3, done.said
    assert not place.count(RunJudged)
    assert "three times" in done.err
    assert place.resume().code == 0
    place.audit()


def test_a_driver_that_waits_for_a_frozen_scheduler_can_be_stopped(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seatrial.execute.requests import Stop

    place.test("a")
    assert place.run("--name", "t", "--dry-run").code == 0
    driver = Driver(place.trial())

    async def frozen(*_: object) -> None:
        await asyncio.sleep(1000)

    monkeypatch.setattr(driver.backend, "submit", frozen)

    async def drive() -> None:
        asyncio.get_running_loop().call_later(0.1, driver.stop)
        await asyncio.wait_for(driver.drive(), LONG_S)

    with pytest.raises(Stop):
        asyncio.run(drive())
    assert place.resume().code == 0
    place.audit()


# ---- runs of another host ----------------------------------------------------------------------

FILES = ("stdout", "events.jsonl")


class RemoteBackend:
    """Runs each job to its end at once, and hides what it wrote. ``appears``: it is shown when the
    driver has recorded the job's end, as by a file system that is slow; else stdout stays cut if
    ``cut``, and nothing is shown if not. ``code`` is the scheduler's verdict."""

    room = 0
    gpus = 0
    jobs = 2

    def __init__(
        self, place: Workplace, appears: bool, cut: bool = False, code: int | None = None
    ) -> None:
        self._place = place
        self._code = code
        self._cut = cut
        self._appears = appears
        self.inbox: asyncio.Queue[Update] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None: ...

    def free_directory(self, path: Path) -> None: ...

    def recovered(self) -> list[Trouble]:
        return []

    def arrange(self, jobs: Sequence[Job]) -> list[Submission]:
        return [Submission(job.run_id, (job,)) for job in jobs]

    def write(self, submission: Submission) -> None: ...

    async def submit(self, submission: Submission) -> None:
        for job in submission.jobs:
            task = asyncio.create_task(self._run(job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, job: Job) -> None:
        self.inbox.put_nowait(Queued(job.run_id, "1"))
        self.inbox.put_nowait(Started(job.run_id, "n1"))
        output = (job.path / "stdout").open("wb")
        with output:
            script = await asyncio.create_subprocess_exec(
                "bash", str(job.path / "job.sh"), stdout=output
            )
            code = await script.wait()
        if self._cut:
            os.truncate(job.path / "stdout", 3)
        for name in () if self._cut else FILES:
            (job.path / name).rename(job.path / f".{name}")
        self.inbox.put_nowait(JobEnd(job.run_id, self._code, "COMPLETED", code, "n1"))
        if self._appears:
            await until_true(lambda: self._is_recorded(job.run_id), "the job's end in the journal")
            for name in FILES:
                (job.path / f".{name}").rename(job.path / name)

    def _is_recorded(self, run_id: str) -> bool:
        return any(event.run_id == run_id for event in self._place.events(TAG, JobEnded))

    async def find(self, submissions: Sequence[Submission], known: dict[str, str]) -> None: ...

    async def cancel(self, run_ids: Collection[str], pending_only: bool = False) -> None: ...

    def watch_nodes(self, down: Collection[str]) -> None: ...

    async def close(self) -> None: ...


def drive(
    place: Workplace,
    monkeypatch: pytest.MonkeyPatch,
    appears: bool,
    file_system: str,
    cut: bool = False,
    script: str = "echo rate 5",
    code: int | None = None,
) -> None:
    """A trial of a second on that backend."""
    scratch: dict[str, Any] = {"path": str(place.folder / "scratch")}
    patience = LONG_S if appears else 0.05
    slurm = {"visible_after": patience}
    place.local(file_systems={"scratch": scratch}, scheduler="slurm", slurm=slurm)
    short(place, "good", f"sleep 0.3; {script}", metrics={"rate": _metric(r"rate (\S+)")})
    short(place, "bad", "sleep 0.3; exit 3")
    write_plan(place, "1s", **({"file_system": file_system} if file_system else {}))
    prepared = prepare_plan(place.folder / "plan.yaml")
    trial = begin(place.trials, prepared, prepared.parts[0])
    monkeypatch.setattr(
        driver_module, "choose_backend", lambda *_: RemoteBackend(place, appears, cut, code)
    )
    monkeypatch.setattr(run_collector, "LOOK_AGAIN_SECONDS", 0.01)
    asyncio.run(asyncio.wait_for(Driver(trial).drive(), LONG_S))


def _metric(pattern: str) -> dict[str, str]:
    return {"find": pattern, "unit": "1", "better": "higher"}


def verdicts(place: Workplace) -> set[tuple[str, str]]:
    return {(event.test, event.verdict) for event in ends(place)}


@pytest.mark.parametrize("file_system", ["", "scratch"])
def test_what_a_job_wrote_is_waited_for(
    place: Workplace, monkeypatch: pytest.MonkeyPatch, file_system: str
) -> None:
    drive(place, monkeypatch, True, file_system)
    assert verdicts(place) == {("good", "pass"), ("bad", "failed")}
    assert {e.value for e in place.events(TAG, MetricRecorded)} == {5.0}
    assert {e.exit_code for e in place.events(TAG, ScriptEnded)} == {0, 3}


@pytest.mark.parametrize(("appears", "verdict"), [(True, "timeout"), (False, "lost")])
def test_a_job_that_never_started_was_not_too_slow(
    place: Workplace, monkeypatch: pytest.MonkeyPatch, appears: bool, verdict: str
) -> None:
    drive(place, monkeypatch, appears, "", code=TIMEOUT.number)
    assert verdicts(place) == {("good", verdict), ("bad", verdict)}


@pytest.mark.parametrize("file_system", ["", "scratch"])
def test_what_never_appears_is_waited_for_a_while(
    place: Workplace, monkeypatch: pytest.MonkeyPatch, file_system: str
) -> None:
    drive(place, monkeypatch, False, file_system)
    assert verdicts(place) == {("good", "lost"), ("bad", "lost")}
    assert not place.count(ScriptEnded, tag=TAG)


@pytest.mark.parametrize("file_system", ["", "scratch"])
def test_an_output_that_is_shorter_than_it_was_is_not_judged(
    place: Workplace, monkeypatch: pytest.MonkeyPatch, file_system: str
) -> None:
    """As on the file system of a host that crashed; what the test itself empties is judged."""
    drive(place, monkeypatch, False, file_system, cut=True)
    assert verdicts(place) == {("good", "lost"), ("bad", "failed")}
    sizes = {event.test: event.sizes for event in place.events(TAG, ScriptEnded)}
    assert sizes == {"good": {"stdout": 10}, "bad": {"stdout": 0}}


def test_what_a_test_writes_over_is_judged_as_it_is(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive(
        place,
        monkeypatch,
        True,
        "",
        script="echo a long line; echo rate 5 > /dev/stdout; exec > /dev/null",
    )
    assert ("good", "pass") in verdicts(place)
