"""`kill -9` at any moment: after the last resume every case has exactly one finished run, and no
job script ran twice. The seed is printed; SEATRIAL_SEED repeats it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections import defaultdict

import pytest

from seatrial.journal.events import RunJudged, RunSubmitted
from tests.gates import pause, wait_for
from tests.programs import Driving, Workplace, job_shells
from tests.slurm.cluster import ClusterOptions, SlurmCluster
from tests.waiting import LONG_S

CASES = 50
SLURM_CASES = 24  # as each is a job of Slurm's
KILLS = 10
KILLS_OF_A_TRIAL = 5
# A step daemon whose message of a job's end was lost on a busy host sends it again 15 s later
# (RETRY_DELAY of Slurm's slurmstepd), after a timeout of 10 s; that may happen more than once.
SLURM_S = 4 * LONG_S


def begin(place: Workplace, tag: str) -> Driving:
    """Start the trial, or take it up where it exists."""
    if place.trial(tag).path.exists():
        return place.start("resume", tag)
    return place.start_run("--name", tag)


def kill_at_random(
    place: Workplace, tag: str, chance: random.Random, most: int, longest: float
) -> int:
    """Start, kill, resume, kill ... until the trial is complete or killed so often; how often."""
    for kills in range(most):
        with begin(place, tag) as driving:
            try:
                driving.process.wait(chance.uniform(0.0, longest))
            except subprocess.TimeoutExpired:
                driving.kill()
            else:
                assert driving.end().code == 0, driving.said
                return kills
    return most


def finish(place: Workplace, tag: str, cases: int, timeout: float = LONG_S) -> None:
    with begin(place, tag) as driving:
        done = driving.end(timeout)
    assert done.code == 0, done.said
    place.audit(tag)
    assert set(place.verdicts(tag).values()) == {"pass"}
    assert len(place.verdicts(tag)) == cases


def test_killed_ten_times_on_this_host(place: Workplace, chance: random.Random) -> None:
    script = f"{pause(place.folder, 0.08)}; echo ok"
    place.test("short", script, parameters={"n": f"range(0, {CASES})"},
               build={"script": "sleep 0.1"}, verify=[{"contains": "ok"}])  # fmt: skip
    kills = trials = 0
    while kills < KILLS:
        tag = f"t{trials}"
        kills += kill_at_random(place, tag, chance, min(KILLS_OF_A_TRIAL, KILLS - kills), 0.9)
        finish(place, tag, CASES)
        assert "lost" not in {event.verdict for event in place.events(tag, RunJudged)}
        trials += 1
    assert trials >= KILLS // KILLS_OF_A_TRIAL


@pytest.mark.slurm
def test_killed_ten_times_on_slurm(
    place: Workplace, cluster: SlurmCluster, chance: random.Random
) -> None:
    place.slurm(cluster, jobs=SLURM_CASES // 2)
    place.constants = {
        "execute.batch.batch.SHORTEST_POLL": 0.2,
        "execute.batch.batch.POLL_SHARE": 4,
    }
    place.test("short", "sleep 0.5; echo ok", parameters={"n": f"range(0, {SLURM_CASES})"},
               verify=[{"contains": "ok"}])  # fmt: skip
    kills = trials = 0
    while kills < KILLS:
        tag = f"t{trials}"
        kills += kill_at_random(place, tag, chance, min(KILLS_OF_A_TRIAL, KILLS - kills), 1.6)
        try:
            finish(place, tag, SLURM_CASES, SLURM_S)
        except AssertionError as error:
            error.add_note(cluster.run("squeue", "--array", "--states=all"))
            raise
        assert_nothing_was_submitted_twice(place, cluster, tag)
        trials += 1


def assert_nothing_was_submitted_twice(place: Workplace, cluster: SlurmCluster, tag: str) -> None:
    """By Slurm's own list: one array of every name, and as many tasks as the trial had runs."""
    shown = cluster.run("squeue", "-h", "--array", "-t", "all", "--Format=ArrayJobID:|,Name:|")
    arrays: dict[str, list[str]] = defaultdict(list)
    for line in shown.splitlines():
        array, name = line.split("|")[:2]
        arrays[name.strip()].append(array.strip())
    names = {event.submission for event in place.events(tag, RunSubmitted)}
    ours = {name: ids for name, ids in arrays.items() if name in names}
    assert not [name for name, ids in ours.items() if len(set(ids)) > 1]
    runs = {event.run_id for event in place.events(tag, RunJudged)}
    assert sum(map(len, ours.values())) == len(runs)


def test_a_machine_that_dies_with_its_jobs_loses_runs_by_name_and_runs_them_again(
    place: Workplace, chance: random.Random
) -> None:
    cases = 40
    quick = place.folder / "quick"  # until it is there, so many runs are not over too soon
    place.test("short", f"[ -e {quick} ] || sleep 0.4; echo ok",
               parameters={"n": f"range(0, {cases})"}, verify=[{"contains": "ok"}])  # fmt: skip
    died = 0
    for _ in range(4):
        with begin(place, "t") as driving, contextlib.suppress(subprocess.TimeoutExpired):
            driving.until(place.ran_more(len(place.ran()) + 2), "runs")
            time.sleep(chance.uniform(0.0, 0.1))
            driving.kill()
        for pid in job_shells(place.trial()):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
                died += 1
    quick.touch()
    done = place.resume()
    assert done.code == 0, done.said
    assert f"{cases} passed" in done.out
    place.audit()
    lost = [event for event in place.events("t", RunJudged) if event.verdict == "lost"]
    assert 1 <= len(lost) <= died
    assert all(event.reason for event in lost)
    again = {event.case for event in place.events("t", RunJudged) if event.verdict == "pass"}
    assert {event.case for event in lost} <= again


@pytest.mark.slurm
def test_a_cluster_that_dies_with_its_jobs(place: Workplace, chance: random.Random) -> None:
    """The power fails: the driver, the controller (which forgets its last seconds), the nodes and
    what ran there. Runs end as node failures or are lost; those that were lost run again."""
    cases = 24
    with SlurmCluster(place.folder / "cluster", ClusterOptions(nodes=2)) as cluster:
        place.slurm(cluster, {"lost_after": "2s", "visible_after": "1s"}, jobs=16)
        place.constants = {"execute.batch.batch.SHORTEST_POLL": 0.2}
        # Runs after the first few stay, so that some die whatever the moment.
        power = place.folder / "power"
        nth = f"$(grep -n $SEATRIAL_RUN {place.log} | cut -d: -f1)"
        stays = f"[ {nth} -le 8 ] || {wait_for(power)}"
        place.test("short", f"sleep 0.2; {stays}; echo ok",
                   parameters={"n": f"range(0, {cases})"}, verify=[{"contains": "ok"}])  # fmt: skip
        with begin(place, "t") as driving:
            driving.until(lambda: len(place.ran()) >= 12, "runs")
            time.sleep(chance.uniform(0.0, 0.5))
            driving.kill()
        cluster.kill_controller(abruptly=True)
        for node in cluster.node_names:
            cluster.kill_node(node)
        power.touch()
        cluster.start_controller()
        for node in cluster.node_names:
            cluster.start_node(node)
        done = place.resume()
    ends = place.events("t", RunJudged)
    tally = {name: [e for e in ends if e.verdict == name] for name in {e.verdict for e in ends}}
    assert set(tally) <= {"pass", "lost", "node failure"}, done.said
    assert len(tally["pass"]) + len(tally.get("node failure", [])) == cases
    assert set(tally) != {"pass"}, "some runs had died"
    assert done.code == (1 if "node failure" in tally else 0)
    place.audit()
