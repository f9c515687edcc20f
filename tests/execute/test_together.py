"""Runs that share an allocation, on this host and on Slurm, through the command."""

from __future__ import annotations

import os
import signal
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from seatrial.journal.events import JobQueued, JobStarted, RunJudged, RunSubmitted
from tests.gates import wait_for
from tests.programs import Driving, Workplace
from tests.slurm.cluster import SlurmCluster
from tests.waiting import until

VARIANTS = {"v": ["a", "b", "c"]}


def waits_unless(quick: Path) -> str:
    """Return a script that ends at once where the file ``quick`` is, and otherwise says, by the
    file ``waiting`` beside it, that it saw none, and takes a minute."""
    return f"[ -e {quick} ] || {{ touch {quick.with_name('waiting')}; sleep 60; }}"


def order(place: Workplace) -> list[str]:
    """The variants in the order in which their runs started."""
    names = {case.id: str(case.parameters["v"]) for case in place.trial().cases()}
    case_of = {event.run_id: event.case for event in place.events("t", RunSubmitted)}
    return [names[case_of[run]] for run in place.ran()]


def bundle_process(place: Workplace) -> int | None:
    """The process of the first bundle of the trial, on this host."""
    mark = os.fsencode(place.trial().submissions)
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark in entry.read_bytes():
                return int(entry.parent.name)
        except OSError:
            continue
    return None


def one_job(place: Workplace) -> None:
    assert len({event.bundle for event in place.events("t", RunSubmitted)} - {""}) == 1
    assert len({event.job_id for event in place.events("t", JobQueued)}) == 1


def test_variants_take_turns_in_one_job(place: Workplace) -> None:
    place.test("tuned", "echo $v", parameters=VARIANTS, repeat=4, verify=[{"matches": "[abc]"}])
    done = place.run("--name", "t", "--together")
    assert done.code == 0, done.said
    assert "together: 1 allocation: 12 runs of 3 cases on 1 node (up to 24 m 0 s)" in done.err
    place.audit()
    one_job(place)
    ran = order(place)
    assert all(sorted(ran[start : start + 3]) == ["a", "b", "c"] for start in range(0, 12, 3))
    assert max(Counter(pairwise(ran)).values()) <= 3
    positions = [event.position for event in place.events("t", RunSubmitted)]
    assert positions == list(range(1, 13))


def test_each_allocation_has_its_rounds_and_other_sizes_have_their_own(place: Workplace) -> None:
    place.test("tuned", parameters={"v": ["a", "b"]}, repeat=2, run={"exclusive": True})
    place.test("other", parameters={"v": ["c"]})
    done = place.run("--name", "t", "--together", "--allocations", "2")
    assert done.code == 0, done.said
    assert "4 allocations: 2 runs of 1 case on 1 node (up to 2 m 0 s each), 8 runs" in done.err
    assert "cases with other scheduler options (exclusive) cannot share one" in done.err
    place.audit()
    of_bundle = Counter(event.bundle for event in place.events("t", RunSubmitted))
    assert sorted(of_bundle.values()) == [1, 1, 4, 4]


def test_a_case_that_leaves_no_core_free_shares_with_one_that_does(place: Workplace) -> None:
    place.local(cores=2)
    run = {"spare_cores": "free"}
    place.test("noise", parameters={"free": [0, 1]}, repeat=1, run=run)
    done = place.run("--name", "t", "--together", "--allocations", "3", "--dry-run")
    assert done.code == 0, done.said
    assert "3 allocations: 6 runs of 2 cases on 1 node" in done.said
    assert "cannot share one" not in done.said


def test_allocations_need_runs_that_share_them(place: Workplace) -> None:
    place.test("tuned")
    done = place.run("--allocations", "2")
    assert done.code == 2
    assert "--allocations: no runs share an allocation; add --together" in done.err


def test_repeats_of_a_plain_run_take_turns(place: Workplace) -> None:
    place.local(cores=1)
    place.test("tuned", parameters=VARIANTS, repeat=4)
    assert place.run("--name", "t").code == 0
    place.audit()
    ran = order(place)
    assert all(sorted(ran[start : start + 3]) == ["a", "b", "c"] for start in range(0, 12, 3))


def test_a_run_that_hangs_is_ended_at_its_own_walltime_and_the_others_go_on(
    place: Workplace,
) -> None:
    script = "trap '' TERM; [ $v != b ] || sleep 300 & [ $v != b ] || wait; [ $v != c ] || exit 3"
    place.test("tuned", script, parameters=VARIANTS, run={"walltime": "1s"})
    assert place.run("--name", "t", "--together").code == 1
    place.audit()
    one_job(place)
    found = {name[-2]: verdict for name, verdict in place.verdicts().items()}
    assert found == {"a": "pass", "b": "timeout", "c": "failed"}


def test_runs_are_judged_as_they_end_and_one_can_be_cancelled(place: Workplace) -> None:
    """What waits is not begun, what runs is ended, and the others go on."""
    go_on = place.folder / "go-on"
    script = wait_for(go_on)
    place.test("tuned", f"[ $v = a ] || {{ {script}; }}", parameters={"v": ["a", "b", "c", "d"]})
    with place.start_run("--name", "t", "--together") as driving:
        driving.until(lambda: place.count(JobStarted) == 2, "the second has started")
        driving.until(lambda: place.count(RunJudged) == 1, "the first is judged")
        runs = [event.run_id for event in place.events("t", RunSubmitted)]
        for run in runs[2], runs[1]:
            assert place.seatrial("cancel", f"t/{run}").code == 0
        driving.until(lambda: place.count(JobStarted) == 3, "the last has started")
        go_on.touch()
        assert driving.end().code == 1
    place.audit()
    assert set(place.ran()) == {runs[0], runs[1], runs[3]}
    found = {name[-2]: verdict for name, verdict in place.verdicts().items()}
    assert found == {"a": "pass", "b": "cancelled", "c": "cancelled", "d": "pass"}


def killed_and_resumed(place: Workplace, driving: Driving) -> None:
    """Kill the driver at a few moments, and resume the trial each time."""
    for _ in range(3):
        driving.until(place.ran_more(len(place.ran())), "a run has started")
        driving.kill()
        driving = place.start("resume", "t")
    with driving:
        done = driving.end()
    assert done.code == 0, done.said
    place.audit()
    assert set(place.verdicts().values()) == {"pass"}


def test_a_driver_that_is_killed_loses_and_doubles_no_run(place: Workplace) -> None:
    place.test("tuned", "sleep 0.1", parameters=VARIANTS, repeat=6)
    killed_and_resumed(place, place.start_run("--name", "t", "--together"))
    one_job(place)
    assert len(place.ran()) == 18


def test_what_did_not_begin_is_run_again_when_the_job_dies(place: Workplace) -> None:
    quick = place.folder / "quick"
    place.test("tuned", waits_unless(quick), parameters=VARIANTS, repeat=2)
    with place.start_run("--name", "t", "--together") as driving:
        driving.until(quick.with_name("waiting").exists, "a script waits")
        pid = bundle_process(place)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        quick.touch()
        done = driving.end()
    assert done.code == 0, done.said
    place.audit()
    verdicts = Counter(event.verdict for event in place.events("t", RunJudged))
    assert verdicts == {"pass": 6, "lost": 1}
    assert len({event.submission for event in place.events("t", RunSubmitted)}) == 3


PIECES = '[ $((PIECE % 8)) != 0 ] || exit 1; [ "$PIECE" = "$piece" ]'


def each_eighth_fails(place: Workplace, pieces: int) -> None:
    place.audit()
    one_job(place)
    failed = {name for name, verdict in place.verdicts().items() if verdict == "failed"}
    assert failed == {f"packed{{piece={n}}}" for n in range(8, pieces + 1, 8)}
    verdicts = Counter(event.verdict for event in place.events("t", RunJudged))
    assert verdicts == {"pass": pieces - pieces // 8, "failed": pieces // 8}


def test_of_packed_pieces_those_that_fail_fail(place: Workplace) -> None:
    place.test("packed", PIECES, run={"pieces": "5 * 5", "at_once": "node.cores"})
    assert place.run("--name", "t").code == 1
    each_eighth_fails(place, 25)


@pytest.mark.slurm
def test_on_slurm_of_packed_pieces_those_that_fail_fail(
    slurm_place: Workplace, cluster: SlurmCluster
) -> None:
    """Two steps at a time have cores of their own."""
    launch = "$LAUNCH true || exit 2; "
    run = {"pieces": 10, "at_once": 2, "launcher": "srun", "tasks": 2}
    slurm_place.test("packed", launch + PIECES, run=run)
    assert slurm_place.run("--name", "t").code == 1
    each_eighth_fails(slurm_place, 10)


def test_a_test_can_ask_for_an_allocation_for_all_its_runs(place: Workplace) -> None:
    place.test("tuned", parameters=VARIANTS, repeat=2, run={"within": "allocation"})
    place.test("other", repeat=2)
    assert place.run("--name", "t").code == 0
    place.audit()
    bundles = Counter((event.test, event.bundle != "") for event in place.events("t", RunSubmitted))
    assert bundles == {("tuned", True): 6, ("other", False): 2}


def test_what_cannot_be_pieces_is_told(place: Workplace) -> None:
    place.test("many", run={"pieces": 4, "at_once": 3, "threads_per_task": 2})
    place.test("wide", run={"pieces": 0})
    place.test("twice", parameters={"piece": [1]}, run={"pieces": 2})
    place.test("alone", run={"at_once": 2})
    said = place.seatrial("list", "suite", "-m", str(place.machine)).said
    for expected in (
        "0 is not from 1 to 100000",
        "each run of `run.pieces` has the parameter piece: rename this one",
        "goes with `pieces`: how many runs are there?",
    ):
        assert expected in said
    for name in ("wide", "twice", "alone"):
        (place.suite / name / "test.yaml").unlink()
    said = place.seatrial("list", "suite", "-m", str(place.machine)).said
    assert "at_once: 3 pieces of 2 cores do not fit a node, which has 2" in said


@pytest.mark.slurm
def test_on_slurm_variants_take_turns_on_the_same_nodes(
    slurm_place: Workplace, cluster: SlurmCluster
) -> None:
    place = slurm_place
    place.test("tuned", "sleep 0.2", parameters=VARIANTS, repeat=4, run={"nodes": 2})
    killed_and_resumed(place, place.start_run("--name", "t", "--together"))
    one_job(place)
    assert len({event.nodes for event in place.events("t", JobStarted)}) == 1
    ran = order(place)
    assert all(sorted(ran[start : start + 3]) == ["a", "b", "c"] for start in range(0, 12, 3))


@pytest.mark.slurm
def test_on_slurm_a_dead_node_takes_one_run_with_it(
    slurm_place: Workplace, cluster: SlurmCluster
) -> None:
    place = slurm_place
    quick = place.folder / "quick"
    place.test("tuned", waits_unless(quick), parameters=VARIANTS, repeat=2)
    with place.start_run("--name", "t", "--together") as driving:
        driving.until(lambda: place.count(JobStarted) > 0, "a run has started")
        driving.until(quick.with_name("waiting").exists, "its script waits")
        (node,) = {event.nodes for event in place.events("t", JobStarted)}
        quick.touch()
        cluster.kill_node(node, declare_down=True)
        try:
            done = driving.end()
        finally:
            cluster.start_node(node, booted=True)
    assert done.code == 1, done.said
    verdicts = Counter(event.verdict for event in place.events("t", RunJudged))
    assert verdicts == {"pass": 5, "node failure": 1}
    place.audit()


@pytest.mark.slurm
def test_on_slurm_a_run_of_a_bundle_that_writes_nothing_is_hung_and_the_others_go_on(
    slurm_place: Workplace,
) -> None:
    place = slurm_place
    run = {"walltime": "2m", "quiet_for": "1s"}
    place.test("tuned", "[ $v != b ] || sleep 985.25", parameters=VARIANTS, run=run)
    assert place.run("--name", "t", "--together").code == 1
    one_job(place)
    found = {name[-2]: verdict for name, verdict in place.verdicts().items()}
    assert found == {"a": "pass", "b": "hung", "c": "pass"}
    (why,) = {event.reason for event in place.events("t", RunJudged) if event.verdict == "hung"}
    assert why == "no output for 1 s; 1 sleep in hrtimer_nanosleep"


@pytest.mark.slurm
def test_on_slurm_a_bundle_that_a_person_cancels_goes_on_in_another(
    slurm_place: Workplace, cluster: SlurmCluster
) -> None:
    place = slurm_place
    quick = place.folder / "quick"
    place.test("tuned", waits_unless(quick), parameters=VARIANTS)
    with place.start_run("--name", "t", "--together") as driving:
        driving.until(lambda: place.count(JobStarted) > 0, "a run has started")
        driving.until(quick.with_name("waiting").exists, "its script waits")
        quick.touch()
        cluster.run("scancel", place.events("t", JobQueued)[0].job_id)
        done = driving.end()
    assert done.code == 1, done.said
    verdicts = Counter(event.verdict for event in place.events("t", RunJudged))
    assert verdicts == {"pass": 2, "cancelled": 1}
    place.audit()
    until(lambda: bundle_process(place) is None, "nothing is left of the bundle")
