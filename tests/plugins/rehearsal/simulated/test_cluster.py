"""The cluster in virtual time: what is told when, and what never happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from seatrial.execute.backends import NodesDown, NodesUp, Queued, Refused, Started
from seatrial.model import codes
from seatrial.model.file_model import Duration, Share
from seatrial.model.node_set import unfold
from seatrial.model.policy import Window
from seatrial.plugins.rehearsal.cluster import SimulatedUpdate
from seatrial.plugins.rehearsal.keys import Background
from seatrial.plugins.rehearsal.queue import FinishedJob, Hangs, SimulatedJob
from tests.plugins.rehearsal.simulated.helpers import (
    START,
    S,
    cluster,
    ends,
    free_nodes,
    machine,
    placed,
    starts,
    to_the_end,
)


def job(run_id: str = "a", nodes: int = 1, walltime: float = 100, **more: object) -> SimulatedJob:
    return SimulatedJob(run_id, nodes, walltime, **{"elapsed": 50.0, **more})  # type: ignore[arg-type]


def test_a_job_is_told_from_its_submission_to_its_end() -> None:
    described = machine(4, submit_delay=1, start_delay=2, poll=15)
    told = to_the_end(cluster(described), [(0, job(nodes=3, exit_code=7, keeps=5.0))])
    assert told == [
        (1, Queued("a", "1")),
        (15, Started("a", "n[001-003]")),
        # It was over at once, just at a poll.
        (
            60,
            FinishedJob("a", None, "FAILED", 7, "n[001-003]", None, START + 3 * S, START + 53 * S),
        ),
    ]


def test_an_end_is_known_at_the_next_poll_but_the_nodes_are_free_at_once() -> None:
    told = to_the_end(cluster(machine(1, poll=15)), [(0, job()), (1, job("b"))])
    assert ends(told)["a"][0] == 60
    assert starts(told)["b"] == 60
    assert ends(told)["b"][1].script_started == START + 50 * S


def test_a_job_ends_at_its_walltime() -> None:
    jobs = [
        (0.0, job("slow", elapsed=101.0)),
        (0.0, job("hung", hangs=True)),
        (0.0, job("kept", keeps=60.0)),
    ]
    told = to_the_end(cluster(machine(3)), jobs)
    for run_id in ("slow", "hung", "kept"):
        time, update = ends(told)[run_id]
        assert (time, update.code, update.state) == (100, codes.TIMEOUT.number, "TIMEOUT")
    left = {run_id: update.script_ended for run_id, (_, update) in ends(told).items()}
    assert left == {"slow": 0, "hung": 0, "kept": START + 50 * S}
    assert [(time, update) for time, update in told if isinstance(update, Hangs)] == [
        (0, Hangs("hung"))
    ]


def test_jobs_are_cancelled_wherever_they_are() -> None:
    simulated = cluster(machine(1, submit_delay=1))
    simulated.submit(START, [job("runs"), job("waits"), job("last")])
    told = simulated.advance(START + 10 * S)
    simulated.submit(simulated_now := START + 10 * S, [job("on its way")])
    simulated.cancel(simulated_now, ["runs", "waits", "on its way", "nobody"])
    told += simulated.advance(simulated_now)
    cancelled = {update.run_id for _, update in told if isinstance(update, FinishedJob)}
    assert cancelled == {"runs", "waits", "on its way"}
    assert all(f.code == codes.CANCELLED.number for _, f in told if isinstance(f, FinishedJob))
    assert [f.run_id for _, f in told if isinstance(f, Started)] == ["runs", "last"]
    simulated.cancel(simulated_now, ["runs"])
    rest = to_the_end(simulated)
    assert [update.run_id for _, update in rest if isinstance(update, FinishedJob)] == ["last"]
    assert free_nodes(simulated) == 1


def test_when_the_first_is_cancelled_the_next_may_start() -> None:
    simulated = cluster(machine(2))
    simulated.submit(START, [job("runs"), job("first", nodes=2), job("behind", walltime=1000)])
    assert "behind" not in starts(simulated.advance(START))
    simulated.cancel(START + S, ["first"])
    assert "behind" in starts(simulated.advance(START + S))


def test_what_can_never_start_is_refused() -> None:
    described = machine(4, partitions={"a": "n[001-002]", "b": "n[003-004]"})
    jobs = [
        job("large", nodes=3),
        job("avoids", avoid="n001", nodes=2),
        job("nowhere", partition="c"),
        job("elsewhere", node="n003", partition="a"),
    ]
    told = to_the_end(cluster(described), [(0, each) for each in jobs])
    assert {f.run_id: f.reason for _, f in told if isinstance(f, Refused)} == {
        "large": "3 nodes asked for, of 2 that the job may use",
        "avoids": "2 nodes asked for, of 1 that the job may use",
        "nowhere": "no partition c; there are a, b",
        "elsewhere": "1 nodes asked for, of 0 that the job may use",
    }
    assert len(told) == 4


def test_a_job_gets_the_node_it_is_pinned_to_and_none_that_it_avoids() -> None:
    jobs = [(0.0, job("pinned", node="n003")), (0.0, job("avoids", nodes=2, avoid="n[001,004]"))]
    told = to_the_end(cluster(machine(4)), jobs)
    assert placed(told) == {"pinned": {"n003"}, "avoids": {"n002", "n003"}}
    assert starts(told) == {"pinned": 0, "avoids": 50}


def test_a_pinned_job_that_waits_holds_up_only_its_node() -> None:
    jobs = [
        (0.0, job("runs", node="n001")),
        (1.0, job("first", node="n001")),
        (2.0, job("other", nodes=3, walltime=1000)),
    ]
    assert starts(to_the_end(cluster(machine(4)), jobs)) == {"runs": 0, "first": 50, "other": 2}


def test_partitions_do_not_wait_for_each_other() -> None:
    described = machine(4, partitions={"a": "n[001-002]", "b": "n[003-004]"})
    jobs = [
        (0.0, job("one", nodes=2, partition="a")),
        (1.0, job("two", nodes=2, partition="a")),
        (2.0, job("three", nodes=2, partition="b", walltime=1000)),
    ]
    told = to_the_end(cluster(described), jobs)
    assert starts(told) == {"one": 0, "two": 50, "three": 2}
    assert placed(told)["three"] == {"n003", "n004"}


# ---- planned outages ----------------------------------------------------------------------


def test_a_job_whose_walltime_reaches_into_an_outage_waits_for_its_end() -> None:
    jobs = [
        (0.0, job("before", walltime=100)),
        (50.0, job("reaches in", walltime=51)),
        (50.0, job("just fits", walltime=50)),
    ]
    told = to_the_end(cluster(machine(4), outages=[Window(start=100, end=200)]), jobs)
    assert starts(told) == {"before": 0, "reaches in": 200, "just fits": 50}


def test_an_outage_of_some_nodes_leaves_the_others() -> None:
    window = Window(start=100, end=200, nodes="n[001-002]")
    jobs = [(90.0, job("small", nodes=2)), (90.0, job("large", nodes=3))]
    told = to_the_end(cluster(machine(4), outages=[window]), jobs)
    assert starts(told) == {"small": 90, "large": 200}
    assert placed(told)["small"] == {"n003", "n004"}


def test_the_reservation_of_the_first_sees_outages() -> None:
    """The first job cannot start before 200; what is over by then, or leaves its nodes, passes."""
    jobs = [
        (0.0, job("runs", nodes=3, walltime=90, elapsed=90.0)),
        (1.0, job("first", nodes=4, walltime=20)),  # could start at 90, but reaches into 100
        (2.0, job("passes", nodes=1, walltime=98, elapsed=98.0)),
    ]
    told = to_the_end(cluster(machine(4), outages=[Window(start=100, end=200)]), jobs)
    assert starts(told) == {"runs": 0, "first": 200, "passes": 2}


def test_an_outage_by_the_calendar() -> None:
    window = Window(start=START / S + 100, end=START / S + 200, absolute=True)
    told = to_the_end(cluster(machine(1), outages=[window]), [(50.0, job())])
    assert starts(told) == {"a": 200}


# ---- chance -------------------------------------------------------------------------------


def test_a_failed_node_takes_its_job_with_it_and_comes_back() -> None:
    described = machine(2, node_failures=1000, repair=500, poll=10)
    jobs = [(float(t), job(str(t), nodes=2, walltime=90)) for t in range(0, 20_000, 100)]
    told = to_the_end(cluster(described, horizon_s=20_000), jobs)
    failed = [
        update for _, update in told if isinstance(update, FinishedJob) and update.code is not None
    ]
    assert failed
    for update in failed:
        assert (update.code, update.state) == (codes.NODE_FAILURE.number, "NODE_FAIL")
    down = [(time, update.nodes) for time, update in told if isinstance(update, NodesDown)]
    up = [(time, update.nodes) for time, update in told if isinstance(update, NodesUp)]
    assert Counter(name for _, name in down) == Counter(name for _, name in up)
    assert all(time % 10 == 0 for time, _ in down + up)
    assert len(ends(told)) == len(jobs)


def test_nodes_fail_at_the_rate_that_is_given() -> None:
    """On 100 nodes of 1000 s between failures and 250 s to repair: 100 / 1250 failures a second,
    nodes up 80 % of the time; within four standard deviations of 80,000 s."""
    told = to_the_end(cluster(machine(100, node_failures=1000, repair=250), horizon_s=80_000))
    down = {(t, f.nodes) for t, f in told if isinstance(f, NodesDown)}
    assert len(down) == pytest.approx(6400, abs=4 * 80)
    total, since = 0.0, {}
    for time, update in told:
        if isinstance(update, NodesDown):
            since[update.nodes] = time
        elif isinstance(update, NodesUp):
            total += time - since.pop(update.nodes)
    assert total / 8_000_000 == pytest.approx(0.2, abs=4 * 0.2 / 80)


def test_nothing_happens_by_chance_after_the_horizon() -> None:
    described = machine(
        10, node_failures=100, background=Background(load=Share(0.5), elapsed=Duration(60))
    )
    simulated = cluster(described, horizon_s=1000)
    told = to_the_end(simulated)
    assert max(time for time, update in told if isinstance(update, NodesDown)) <= 1000
    assert simulated.next_time() is None


@pytest.mark.parametrize("start_delay", [0, 3])
def test_news_by_news_it_tells_the_same(start_delay: int) -> None:
    """In portions, each of one time, and of all that is told at that time."""
    described = machine(10, node_failures=2000, repair=100, start_delay=start_delay, poll=15)
    jobs = [job(f"{n}", nodes=1 + n % 4, elapsed=20 + n, hangs=n % 7 == 0) for n in range(40)]
    whole, stepwise = (cluster(described, horizon_s=1000) for _ in range(2))
    for simulated in (whole, stepwise):
        simulated.submit(START, jobs[:30])
        simulated.submit(START + 7 * S, jobs[30:])
    told, news, times = whole.advance(START + 10_000 * S), [], []
    while stepwise.next_time() is not None:
        portion = stepwise.advance(START + 10_000 * S, to_news=True)
        happened = [time for time, update in portion if not isinstance(update, Queued)]
        assert set(happened) <= {stepwise.now}
        assert happened or stepwise.next_time() is None, "that a job is queued is no news"
        times += happened[:1]
        news += portion
    assert news == told
    assert times == sorted(set(times))
    assert {"0", "7"} <= ends([(t / S, f) for t, f in told]).keys()


def test_jobs_start_after_all_that_happens_at_a_time() -> None:
    simulated = cluster(machine(1))
    simulated.submit(START, [job("a"), job("b"), job("c")])
    told = simulated.advance(START + 10 * S)
    simulated.cancel(START + 50 * S, ["b"])  # just as the first one ends
    told += simulated.advance(None)
    assert starts(told) == {"a": START, "c": START + 50 * S}


def test_its_time_is_that_to_which_it_was_advanced() -> None:
    simulated = cluster(machine(1))
    simulated.submit(START, [job("a")])
    for until, news, now in ((20, True, 0), (20, True, 20), (10, False, 20), (70, True, 50)):
        simulated.advance(START + until * S, to_news=news)
        assert simulated.now == START + now * S
    simulated.advance(None)
    assert simulated.now == START + 100 * S


def test_a_run_is_as_slow_as_its_slowest_node() -> None:
    described = machine(10, slow_nodes="30%", slow_by=1.5)
    jobs = [(0.0, job(f"{n}", node=f"n{n:03}", walltime=100)) for n in range(1, 11)]
    jobs.append((200.0, job("all", nodes=10)))
    told = to_the_end(cluster(described), jobs)
    began = starts(told)
    length = {run_id: time - began[run_id] for run_id, (time, _) in ends(told).items()}
    assert Counter(length.values()) == {75.0: 4, 50.0: 7}
    assert length["all"] == 75
    other = ends(to_the_end(cluster(described, seed=2), jobs))
    assert {run_id: end for run_id, (end, _) in other.items()} != {
        run_id: end for run_id, (end, _) in ends(told).items()
    }


def test_the_same_seed_gives_the_same_and_streams_are_apart() -> None:
    def failures_of(seed: int, **model: Any) -> list[tuple[float, SimulatedUpdate]]:
        described = machine(20, node_failures=5000, poll=10, **model)
        told = to_the_end(cluster(described, seed, horizon_s=20_000), [(5.0, job(nodes=20))])
        return [pair for pair in told if isinstance(pair[1], NodesDown | NodesUp)]

    others = Background(load=Share(0.8), nodes=[1, 5], elapsed=Duration(100))
    assert failures_of(1)
    assert failures_of(1) == failures_of(1)
    assert failures_of(1) == failures_of(1, background=others, slow_nodes=0.5)
    assert failures_of(1) != failures_of(2)


# ---- what holds whatever happens ----------------------------------------------------------

AVOIDED = ("", "", "n001", "n[002-004]")


@st.composite
def jobs_of_all_kinds(draw: st.DrawFn) -> list[tuple[float, SimulatedJob]]:
    jobs = []
    for number in range(draw(st.integers(1, 30))):
        walltime = float(draw(st.integers(1, 60)))
        jobs.append(
            (
                float(draw(st.integers(0, 60))),
                SimulatedJob(
                    str(number),
                    nodes=draw(st.integers(1, 4)),
                    walltime=walltime,
                    elapsed=float(draw(st.integers(1, 70))),
                    hangs=draw(st.booleans()),
                    keeps=float(draw(st.sampled_from([0, 0, 3]))),
                    avoid=draw(st.sampled_from(AVOIDED)),
                    node=draw(st.sampled_from(["", "", "", "n002", "n007"])),
                    partition=draw(st.sampled_from(["a", "b", "c"])),
                ),
            )
        )
    return [(t, replace(each, nodes=1) if each.node else each) for t, each in jobs]


PARTITIONS = {"a": "n[001-005]", "b": "n[004-007]", "c": "n[008-010]"}
OUTAGE = Window(start=80, end=110, nodes="n[003-008]")


@settings(max_examples=60, deadline=None)
@given(jobs_of_all_kinds(), st.integers(0, 5), st.booleans(), st.booleans())
def test_no_node_is_used_twice_and_no_job_is_lost(
    jobs: list[tuple[float, SimulatedJob]], seed: int, failing: bool, outage: bool
) -> None:
    described = machine(
        10, partitions=PARTITIONS, node_failures=300 if failing else 0, repair=20, start_delay=1
    )
    outages = [OUTAGE] if outage else []
    simulated = cluster(described, seed, outages, horizon_s=600)
    told = to_the_end(simulated, jobs)
    by_id = {each.run_id: each for _, each in jobs}
    submitted = {each.run_id: time for time, each in jobs}
    check_nodes(told, by_id, outages)
    refused = {update.run_id for _, update in told if isinstance(update, Refused)}
    assert refused | set(ends(told)) == set(by_id)
    assert len(refused) + sum(isinstance(f, FinishedJob) for _, f in told) == len(by_id)
    for run_id, began in starts(told).items():
        assert began >= submitted[run_id]
        assert ends(told)[run_id][0] <= began + by_id[run_id].walltime + 1e-6
    assert free_nodes(simulated) == 10
    assert [time for time, _ in told] == sorted(time for time, _ in told)


def check_nodes(
    told: Sequence[tuple[float, SimulatedUpdate]],
    jobs: dict[str, SimulatedJob],
    outages: Sequence[Window],
) -> None:
    """Follow every node: who runs there, whether it is down."""
    busy: dict[str, str] = {}
    down: set[str] = set()
    for time, update in told:
        if isinstance(update, Started):
            asked, nodes = jobs[update.run_id], set(unfold(update.nodes))
            assert len(nodes) == asked.nodes
            assert not nodes & (set(busy) | down)
            assert nodes <= set(unfold(PARTITIONS[asked.partition]))
            assert not asked.avoid or not nodes & set(unfold(asked.avoid))
            assert asked.node in ("", *nodes)
            for window in outages:
                apart = time + asked.walltime <= window.start or time >= window.end
                assert apart or not nodes & set(unfold(window.nodes))
            busy.update(dict.fromkeys(nodes, update.run_id))
        elif isinstance(update, FinishedJob):
            for name in unfold(update.nodes) if update.nodes else ():
                assert busy.pop(name) == update.run_id
        elif isinstance(update, NodesDown):
            down.add(update.nodes)
        elif isinstance(update, NodesUp):
            down.remove(update.nodes)
    assert not busy


@settings(max_examples=40, deadline=None)
@given(jobs_of_all_kinds())
def test_the_first_of_a_queue_starts_as_soon_as_its_nodes_are_free(
    jobs: list[tuple[float, SimulatedJob]],
) -> None:
    """Partitions a and b overlap and so share a queue; c has its own."""
    told = to_the_end(cluster(machine(10, partitions=PARTITIONS)), jobs)
    began, ended, where = starts(told), ends(told), placed(told)
    refused = {update.run_id for _, update in told if isinstance(update, Refused)}
    order = [each for _, each in sorted(jobs, key=lambda p: p[0]) if each.run_id not in refused]
    submitted = {each.run_id: time for time, each in jobs}
    for queue in ("ab", "c"):
        lined = [each for each in order if each.partition in queue]
        for place, asked in enumerate(lined):
            first = max([submitted[asked.run_id], *(began[e.run_id] for e in lined[:place])])
            usable = set(unfold(PARTITIONS[asked.partition]))
            usable &= {asked.node} if asked.node else usable
            usable -= set(unfold(asked.avoid)) if asked.avoid else set()
            for time in {first, *(end for end, _ in ended.values())}:
                if first <= time < began[asked.run_id]:
                    taken = {
                        name
                        for run_id, nodes in where.items()
                        if began[run_id] <= time < ended[run_id][0]
                        for name in nodes
                    }
                    assert len(usable - taken) < asked.nodes
