"""Stopping a trial on purpose, on this host and on Slurm: whatever the way, it can be resumed, and
then every case has exactly one finished run."""

from __future__ import annotations

import shutil
import signal
from collections import Counter
from collections.abc import Iterator

import pytest

from seatrial.journal.events import (
    BuildStarted,
    RunJudged,
    RunSubmitted,
    TrialCancelled,
    TrialPaused,
)
from tests.gates import wait_for
from tests.programs import Driving, Workplace, job_shells, until
from tests.slurm.cluster import SlurmCluster

CASES = 4
AT_ONCE = 2


class Jobs:
    """The trial that is stopped: four runs, two at a time, which wait for a gate to be opened."""

    def __init__(self, place: Workplace, cluster: SlurmCluster | None) -> None:
        self.place = place
        self.cluster = cluster
        self.gate = place.folder / "gate"
        script = f"{wait_for(self.gate)}; echo through"
        verify = [{"contains": "through"}]
        place.test("wait", script, parameters={"n": f"range(0, {CASES})"}, verify=verify)

    def start(self) -> Driving:
        driving = self.place.start_run("--name", "t")
        driving.until(lambda: len(self.place.ran()) == AT_ONCE, "two runs at work")
        return driving

    def alive(self) -> int:
        if self.cluster is None:
            return len(job_shells(self.place.trial()))
        states = "PENDING,RUNNING,COMPLETING"
        names = {event.submission for event in self.place.events("t", RunSubmitted)}
        asked = ("squeue", "-h", "--array", "-t", states, "-n", ",".join(names))
        return self.cluster.run(*asked).count("\n")

    def open(self) -> None:
        self.gate.touch()

    def complete(self) -> None:
        """Resume the trial; all is well in the end."""
        self.open()
        done = self.place.resume()
        assert done.code == 0, done.said
        assert f"{CASES} passed" in done.out
        self.place.audit()

    def tally(self) -> Counter[str]:
        return Counter(event.verdict for event in self.place.events("t", RunJudged))


@pytest.fixture(params=["local", pytest.param("slurm", marks=pytest.mark.slurm)])
def jobs(place: Workplace, request: pytest.FixtureRequest) -> Iterator[Jobs]:
    cluster: SlurmCluster | None = None
    if request.param == "slurm":
        cluster = request.getfixturevalue("cluster")
        place.slurm(cluster, jobs=AT_ONCE)
        place.constants = {"execute.batch.batch.SHORTEST_POLL": 0.2}
    yield Jobs(place, cluster)
    (place.folder / "gate").touch()


def test_ctrl_c_once_waits_for_what_runs_and_starts_nothing_more(jobs: Jobs) -> None:
    with jobs.start() as driving:
        driving.send(signal.SIGINT)
        driving.until(lambda: jobs.place.count(TrialPaused) == 1, "the pause")
        assert jobs.alive() == AT_ONCE
        jobs.open()
        done = driving.end()
    assert done.code == 3, done.said
    assert "again to cancel" in done.said
    assert "ended before all cases ran: interrupted by Ctrl-C\n" in done.said
    assert "seatrial resume t" in done.out
    assert len(jobs.place.ran()) == AT_ONCE
    assert jobs.tally() == {"pass": AT_ONCE}
    jobs.complete()
    assert jobs.tally() == {"pass": CASES}


def test_ctrl_c_twice_cancels_what_runs(jobs: Jobs) -> None:
    with jobs.start() as driving:
        driving.send(signal.SIGINT)
        driving.until(lambda: jobs.place.count(TrialPaused) == 1, "the pause")
        driving.send(signal.SIGINT)
        done = driving.end()
    assert done.code == 3, done.said
    assert jobs.place.count(TrialCancelled) == 1
    until(lambda: jobs.alive() == 0, "the jobs to be gone")
    assert jobs.tally() == {"cancelled": AT_ONCE}
    jobs.complete()
    assert jobs.tally() == {"cancelled": AT_ONCE, "pass": CASES}


def test_a_signal_to_end_leaves_the_jobs_at_work(jobs: Jobs) -> None:
    with jobs.start() as driving:
        driving.send(signal.SIGTERM if jobs.cluster is None else signal.SIGHUP)
        done = driving.end()
    assert done.code == 3, done.said
    assert "seatrial resume t" in done.err
    assert jobs.alive() == AT_ONCE
    jobs.complete()
    assert jobs.tally() == {"pass": CASES}  # those that ran were found again


def test_cancel_of_a_trial_that_is_driven(jobs: Jobs) -> None:
    with jobs.start() as driving:
        asked = jobs.place.seatrial("cancel", "t")
        assert asked.code == 0, asked.said
        done = driving.end()
    assert done.code == 3, done.said
    assert "seatrial cancel" in done.said
    until(lambda: jobs.alive() == 0, "the jobs to be gone")
    assert jobs.tally() == {"cancelled": AT_ONCE}
    jobs.complete()


def test_cancel_of_a_trial_that_nobody_drives(jobs: Jobs) -> None:
    with jobs.start() as driving:
        driving.kill()
    assert jobs.alive() == AT_ONCE
    asked = jobs.place.seatrial("cancel", "t")
    assert asked.code == 0, asked.said
    assert "seatrial resume t" in asked.out
    until(lambda: jobs.alive() == 0, "the jobs to be gone")
    assert jobs.tally() == {"cancelled": AT_ONCE}
    jobs.complete()


def test_a_trial_that_is_removed_submits_no_more(jobs: Jobs) -> None:
    with jobs.start() as driving:
        shutil.rmtree(jobs.place.trial().path)
        jobs.open()
        done = driving.end()
    assert done.code == 3, done.said
    assert "journal.jsonl: it was removed" in done.err
    assert "Traceback" not in done.said
    assert len(jobs.place.ran()) == AT_ONCE


def test_a_stale_request_to_cancel_cancels_no_resume(place: Workplace) -> None:
    place.test("a", "sleep 0.2")
    assert place.run("--name", "t", "--dry-run").code == 0
    place.trial().cancel_request.touch()
    assert place.resume().code == 0
    assert not place.trial().cancel_request.exists()
    place.audit()


def test_builds_are_ended_by_a_cancellation_and_made_again(place: Workplace) -> None:
    begun, gate = place.folder / "begun", place.folder / "gate"
    build = {"script": f"touch {begun}; {wait_for(gate)}"}
    place.test("slow", build=build)
    with place.start_run("--name", "t") as driving:
        driving.until(begun.exists, "the build")
        driving.send(signal.SIGINT)
        driving.until(lambda: place.count(TrialPaused) == 1, "the pause")
        driving.send(signal.SIGINT)
        assert driving.end().code == 3
    gate.touch()
    assert place.resume().code == 0
    assert place.verdicts() == {"slow": "pass"}
    place.audit()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_build_outlives_its_driver_and_is_not_made_twice(
    place: Workplace, number: signal.Signals
) -> None:
    begun, gate = place.folder / "begun", place.folder / "gate"
    build = {"script": f"echo x >> {begun}; {wait_for(gate)}; touch made"}
    place.test("slow", "test -e $BUILD/made", build=build)
    with place.start_run("--name", "t") as driving:
        driving.until(begun.exists, "the build")
        driving.send(number)
        driving.end()
    with place.start("resume", "t") as driving:
        driving.until(lambda: place.count(BuildStarted) == 2, "the build to be looked at")
        gate.touch()
        assert driving.end().code == 0
    if number == signal.SIGKILL:
        assert begun.read_text() == "x\n"
    place.audit()
