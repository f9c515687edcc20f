"""The replay of a machine's jobs: what it takes from their record, and how near it comes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from seatrial.errors import UsageError
from seatrial.lazy import Ints
from seatrial.plugins.usage.jobs import Jobs, UserJob
from seatrial.plugins.usage.replay import Asked, Record, fitted, record_of, replays
from seatrial.plugins.usage.simulation import UNFORESEEN, Backfill, Closure
from tests.plugins.usage.made_queue import DAY, HOUR, START, MadeQueue


def record(queue: MadeQueue, days: int = 60) -> Record:
    jobs = Jobs.of(queue.jobs())
    return record_of(jobs, queue.name, START, START + days * DAY, Asked(size=queue.nodes))


# ---- records ------------------------------------------------------------------------------------


def job(number: int, **more: Any) -> UserJob:
    usual = {"submitted": 100, "started": 200, "ended": 500, "nodes": 2, "cores": 8, "queue": "q"}
    told = {**usual, "limit_s": 600, "state": "completed", "user": "ann", **more}
    return UserJob(machine="franklin", job=str(number), **told)


def recorded(*jobs: UserJob, since: int = 0, **asked: Any) -> Record:
    return record_of(Jobs.of(jobs), "franklin", since, 10_000, Asked(**asked))


def test_a_record_is_of_jobs_that_started_and_names_what_it_leaves_out() -> None:
    found = recorded(
        job(1),
        job(2, started=None, ended=900, state="cancelled"),
        job(3, ended=150),
        job(4, ended=None),
        job(5, nodes=0, cores=0),
        job(6, submitted=120, ended=None, state="running"),
    )
    assert [found.jobs.words["job"].names[code] for code in found.jobs.words["job"].codes] == [
        *("1", "6")
    ]
    assert found.load.work.run.tolist() == [300, 9800]  # the running one: to the end of the time
    assert found.remarks[:4] == (
        "1 job never started: not replayed",
        "1 job said to be over without the time of the end: not replayed",
        "1 job said to have ended before the start: not replayed",
        "1 job with no known number of nodes: not replayed",
    )
    with pytest.raises(UsageError, match="franklin: no job that started is known in this time"):
        recorded(job(1, started=None))


def test_jobs_are_eligible_when_the_batch_system_says() -> None:
    found = recorded(
        job(1, eligible=150),
        job(2, submitted=101, eligible=300),  # which cannot be: it started before
        job(3, submitted=102),
        job(3, submitted=102, attempt=1, started=700, ended=800),
        job(4, submitted=103, started=900, ended=950, reservation="demo"),
    )
    by_job = dict(zip(found.load.work.eligible.tolist(), found.starts.tolist(), strict=True))
    assert by_job == {102: 200, 150: 200, 200: 200, 500: 700, 900: 900}
    assert found.load.reserved.tolist() == [False, False, False, False, True]
    assert not found.counted[-1]


def test_nodes_are_counted_unless_jobs_share_them() -> None:
    whole = [job(number, submitted=100 + number) for number in range(9)]
    assert (recorded(*whole).unit, recorded(*whole).peak) == ("nodes", 18)
    shared = [job(number, nodes=1, cores=1 + number % 4) for number in range(20)]
    found = recorded(*shared)
    assert (found.unit, found.per_node, found.peak) == ("cores", 4, 50)
    without = [job(number, nodes=0, cores=3) for number in range(9)]
    assert recorded(*without).unit == "cores"
    assert recorded(*whole, unit="cores").load.work.units.tolist() == [8] * 9


def test_its_size_is_what_is_told_or_the_most_in_use() -> None:
    jobs = [job(1), job(2, started=400, ended=900), job(3, started=500, ended=600)]
    assert recorded(*jobs).size == (4, "the most in use at once")
    assert recorded(*jobs, size=10).size == (10, "--size")
    with pytest.raises(UsageError, match="--size 3: franklin had 4 nodes in use at once"):
        recorded(*jobs, size=3)


def test_jobs_that_ran_before_the_time_are_not_started_again() -> None:
    found = recorded(job(1), job(2, started=400), job(3, submitted=350, started=450), since=300)
    assert found.load.work.fixed.tolist() == [200, -1, -1]
    assert found.counted.tolist() == [False, True, True]


def test_a_job_without_a_limit_has_the_longest_of_its_queue() -> None:
    found = recorded(
        job(1), job(2, limit_s=None), job(3, limit_s=None, queue="other"), job(4, ended=900)
    )
    assert sorted(found.load.work.limit.tolist()) == [300, 600, 700, 700]
    assert "2 jobs without a time limit: the longest of the queue is taken" in found.remarks


# ---- pauses -------------------------------------------------------------------------------------

PAUSE = Closure(START + 20 * DAY, START + 20 * DAY + 9 * HOUR, UNFORESEEN)
OUTAGE = Closure(START + 40 * DAY, START + 41 * DAY, 1000)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_times_in_which_nothing_starts_are_found(seed: int) -> None:
    queue = MadeQueue(seed=seed, load=1.0, closures=(PAUSE, OUTAGE))
    pause, outage = record(queue).load.work.closures
    assert pause.end == PAUSE.end and pause.units == UNFORESEEN
    assert abs(pause.begin - PAUSE.begin) < 6 * HOUR
    assert outage.end == OUTAGE.end and outage.units == 1000
    assert abs(outage.begin - OUTAGE.begin) < 12 * HOUR


@pytest.mark.parametrize("backfill", ["none", "easy", "any"])
def test_a_machine_that_drains_for_large_jobs_has_no_pause(backfill: Backfill) -> None:
    for seed in range(3):
        for load in (0.7, 1.1):
            queue = MadeQueue(seed=seed, load=load, backfill=backfill, jobs=2500, shares=3 * HOUR)
            assert record(queue).load.work.closures == ()


# ---- policies -----------------------------------------------------------------------------------


@pytest.mark.parametrize("backfill", ["none", "easy", "any"])
def test_the_policy_is_found(backfill: Backfill) -> None:
    for seed in range(3):
        assert fitted(
            record(MadeQueue(seed=seed, load=1.0, backfill=backfill))
        ).policy.backfill == (backfill)


def test_priorities_are_learned_from_who_was_passed_over() -> None:
    queue = MadeQueue(seed=3, load=1.05, days=60)
    queue.boost = 8 * HOUR
    found = fitted(record(queue)).policy
    assert "queue" in found.by
    premium, regular = (np.array(row) for row in found.boosts)  # queues are in order
    assert 6 * HOUR < np.median(premium - regular) <= 8 * HOUR


def test_a_replay_comes_near_and_starts_no_job_early() -> None:
    queue = MadeQueue(seed=5, load=1.0, shares=HOUR)
    queue.boost = 4 * HOUR
    found = record(queue)
    starts = replays(found.load, fitted(found).policy, 6)
    assert (starts >= found.load.work.eligible).all()
    assert [most_in_use(course, found) <= 1000 for course in starts] == [True] * 6
    replayed = (starts - found.load.work.eligible).mean()
    assert replayed == pytest.approx(found.waits.mean(), rel=0.2)
    assert (replays(found.load, fitted(found).policy, 6) == starts).all()


def most_in_use(starts: Ints, found: Record) -> int:
    ends, units = starts + found.load.work.run, found.load.work.units
    return max(int(units[(starts <= now) & (ends > now)].sum()) for now in starts[::7])


def test_too_few_jobs_are_said() -> None:
    few = recorded(*(job(number, submitted=100 + number) for number in range(12)))
    with pytest.raises(UsageError, match="12 jobs of this time had a wait"):
        fitted(few)
    at_once = recorded(*(job(number) for number in range(100)))
    with pytest.raises(UsageError, match="40, at different times, are needed"):
        fitted(at_once)


def test_jobs_of_no_time_and_of_impossible_times() -> None:
    found = recorded(
        job(1, ended=200, nodes=7, cores=28), job(2, asked=600), job(3, asked=600, ended=10**13)
    )
    assert (len(found.starts), found.peak) == (2, 7)
    assert found.remarks == (
        "1 job said to have ended after the records were asked for: not replayed",
    )
