"""Trials on PBS, by commands that stand in for it and answer as a real one did: what
``test_pbs.py`` shows on a real PBS, as far as it can be shown without one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from seatrial.journal.events import AlertRaised, JobEnded, JobQueued, JobStarted, RunJudged
from tests.execute.batch.waiting_jobs import QUICK, claimed, go, job_of, wait_script
from tests.pbs.stand_in import StandIn
from tests.programs import Workplace


@pytest.fixture
def pbs(place: Workplace) -> Iterator[StandIn]:
    stand_in = StandIn(place.folder / "pbs")
    place.constants = dict(QUICK)
    place.pbs(stand_in)
    yield stand_in
    stand_in.delete_all()


@pytest.mark.usefixtures("pbs")
def test_an_array_runs_and_its_ends_are_told(place: Workplace) -> None:
    place.test("good", "echo ok; cat $HOSTFILE", parameters={"v": [1, 2, 3]})
    place.test("bad", "exit 3", run={"nodes": 2, "tasks_per_node": 1})
    done = place.run("--name", "t")
    assert done.code == 1, done.said
    verdicts = [event.verdict for event in place.events("t", RunJudged)]
    assert sorted(verdicts) == ["failed", "pass", "pass", "pass"]
    assert "exit code 3" in place.why("bad")
    (bad,) = [event for event in place.events("t", JobEnded) if event.test == "bad"]
    assert bad.nodes == "n[001-002]"
    place.audit()


def test_ends_that_pbs_or_people_make(place: Workplace, pbs: StandIn) -> None:
    for name in ("deleted", "fine"):
        place.test(name, wait_script(place), logs=False)
    place.test("long", "exec sleep 100", logs=False, run={"walltime": "1s"})
    with place.start_run("--name", "t") as driving:
        driving.until(lambda: place.count(JobStarted) == 3, "3 runs start")
        driving.until(lambda: len(claimed(place)) == 3, "3 scripts start")
        pbs.run("qdel", job_of(place, "deleted"))
        driving.until(lambda: place.count(RunJudged) == 2, "two ends")
        go(place)
        driving.end()
    assert place.verdicts() == {"deleted": "cancelled", "fine": "pass", "long": "timeout"}
    assert "root@pbs" in place.why("deleted")


@pytest.mark.usefixtures("pbs")
def test_a_driver_that_is_killed_finds_its_jobs_again(place: Workplace) -> None:
    for i in range(3):
        place.test(f"t{i}", wait_script(place))
    with place.start_run("--name", "t") as driving:
        driving.until(lambda: len(place.ran()) == 3, "3 runs start")
        driving.kill()
    go(place)
    done = place.resume()
    assert done.code == 0, done.said
    place.audit()


@pytest.mark.parametrize("cases", [1, 3])
@pytest.mark.usefixtures("pbs")
def test_jobs_whose_ids_were_not_noted_are_found_by_another_path_of_the_trial(
    place: Workplace, cases: int
) -> None:
    """qsub submits and answers nothing; the driver is killed before it asks again."""
    folder = place.folder / "mute"
    folder.mkdir()
    told = folder / "told"
    real = shutil.which("qsub", path=place.env["PATH"])
    (folder / "qsub").write_text(
        f'#!/bin/bash\n[ -e {told} ] && exec {real} "$@"\n{real} "$@" > /dev/null && : > {told}\n'
    )
    (folder / "qsub").chmod(0o755)
    place.env["PATH"] = f"{folder}:{place.env['PATH']}"
    place.constants["execute.batch.submitter.SHORTEST_BACK_OFF"] = 100.0
    place.test("t", wait_script(place), parameters={"n": list(range(cases))})
    with place.start_run("--name", "t") as driving:
        driving.until(lambda: "no job id" in place.alerts(), "qsub to have answered nothing")
        driving.until(lambda: len(place.ran()) == cases, "the runs start")
        driving.kill()
    assert place.count(JobQueued) == 0
    (place.folder / "scratch").symlink_to("trials")
    with place.start("--trials", "scratch", "resume", "t") as driving:
        driving.until(lambda: place.count(JobQueued) == cases, "the jobs are found")
        go(place)
        done = driving.end()
    assert done.code == 0, done.said
    assert "unfollowed" not in [event.kind for event in place.events("t", AlertRaised)]
    place.audit()


@pytest.mark.usefixtures("pbs")
def test_cancelling_a_trial_deletes_its_jobs(place: Workplace) -> None:
    for i in range(2):
        place.test(f"t{i}", wait_script(place))
    with place.start_run("--name", "t") as driving:
        driving.until(lambda: len(place.ran()) == 2, "2 runs start")
        place.seatrial("cancel", "t")
        driving.end()
    assert set(place.verdicts().values()) == {"cancelled"}
