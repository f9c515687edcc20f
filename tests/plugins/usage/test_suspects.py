"""``seatrial suspects --jobs``: nodes that the jobs of everybody accuse, by the real command."""

from __future__ import annotations

import json
import random
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from seatrial.journal.events import ScriptStarted
from seatrial.model.codes import FAILED, PASS
from seatrial.model.node_set import fold
from seatrial.plugins.usage.jobs import Jobs, UserJob
from seatrial.plugins.usage.suspects import FEW_OF_KIND, NodeSpans, kinds_of, levels_of
from tests.plugins.usage.kept import keep
from tests.programs import Done, Workplace, until
from tests.results.store.trials import TrialMaker, a_case
from tests.slurm.cluster import ClusterOptions, SlurmCluster

DAY, HOUR = 86400, 3600
NODES = 60


class Log:
    """Jobs of users on frost in the last two weeks, on one to six of its nodes."""

    def __init__(self, place: Workplace) -> None:
        self.place = place
        self.now = int(time.time())
        self.source = random.Random(1)
        self.jobs: list[UserJob] = []

    def add(self, nodes: list[int], state: str = "completed", **more: Any) -> UserJob:
        number = len(self.jobs)
        took = more.pop("took", self.source.randint(600, 7200))
        ended = more.pop("ended", self.now - self.source.randint(60, 14 * DAY - HOUR))
        limit = took if state == "timeout" else 4 * HOUR
        cores = 24 * len(nodes)
        job: dict[str, Any] = {
            "user": f"user{number % 9}",
            "name": f"climate_{number}",
            "cpu_s": cores * took * 9 // 10,
            "limit_s": limit,
            "node_list": fold([f"n{node:02d}" for node in nodes]),
            **more,
        }
        made = UserJob(
            machine="frost",
            job=str(5000 + number),
            submitted=ended - took - 60,
            started=ended - took,
            ended=ended,
            state=state,
            nodes=len(nodes),
            cores=cores,
            **job,
        )
        self.jobs.append(made)
        return made

    def some(self, count: int, bad: int = -1, states: tuple[str, ...] = ("failed",)) -> None:
        """Add jobs of which all fail that touch the bad node, and 2 % of the others."""
        for _ in range(count):
            nodes = self.source.sample(range(NODES), self.source.randint(1, 6))
            failed = bad in nodes
            state = self.source.choice(states) if failed else "completed"
            if not failed and self.source.random() < 0.02:
                state = "failed"
            self.add(nodes, state, limit_s=4 * HOUR)

    def ask(self, *words: str) -> Done:
        keep(self.place.trials, self.jobs, (self.now - 15 * DAY, self.now))
        return self.place.seatrial("suspects", "--jobs", "14d", *words)

    def answer(self, *words: str) -> dict[str, Any]:
        done = self.ask(*words, "--json")
        assert done.code == 0, done.said
        told: dict[str, Any] = json.loads(done.out)["frost"]["jobs"]
        return told


@pytest.fixture
def log(place: Workplace) -> Log:
    return Log(place)


def accused(told: dict[str, Any]) -> list[str]:
    return [name for one in told["suspects"] for name in one["names"]]


def test_the_bad_node_is_named_with_its_evidence(log: Log) -> None:
    log.some(400, bad=7, states=("failed", "node_fail"))
    log.add([1, 2], "cancelled")
    log.add([1], "unknown")
    log.add([], "failed", node_list="")
    log.add([1], "failed", took=-600)
    log.jobs.append(UserJob(machine="frost", job="1", submitted=log.now - 60, state="pending"))
    done = log.ask("-m", "frost")
    assert done.code == 0, done.said
    assert "n07 " in done.out and "failed" in done.out and "< 1e-12" in done.out
    assert "1 ended by a person or the batch system" in done.out
    assert "1 without a known end" in done.out and "1 without known nodes" in done.out
    assert "1 that ended before they started" in done.out
    assert "a bad node that ruins all of its jobs would be found (9 times in 10) on " in done.out
    assert "no file describes this machine" in done.out
    told = log.answer()
    assert accused(told) == ["n07"]
    (one,) = told["suspects"]
    assert set(one["evidence"]) == {"failed", "node failed"}
    bad = {job.job for job in log.jobs if "07" in job.node_list and job.state != "completed"}
    assert set(one["bad"]) <= bad and len(one["bad"]) == one["jobs"] == sum(
        one["evidence"].values()
    )
    assert one["p"] < 1e-12 and one["since"] is None
    for said in (done.out, json.dumps(told)):  # whoever ran them is nobody's business
        assert "user" not in said.replace("by users", "").replace("of many users", "").replace(
            "the user's", ""
        ).replace("users do", "")


def test_without_a_bad_node_nobody_is_accused(log: Log) -> None:
    log.some(300)
    done = log.ask()
    assert "no node or group explains that better than chance and users do" in done.out
    assert log.answer()["suspects"] == []


def test_jobs_that_time_out_unlike_those_like_them_are_evidence(log: Log) -> None:
    log.some(300, bad=7, states=("timeout",))
    for number in range(60):  # these run until they are stopped, wherever they are
        how: dict[str, Any] = {"user": "long", "name": "until_the_end", "limit_s": HOUR}
        log.add([number % 5], "timeout", **how)
        if number < 5:
            log.add([number], **how)
    told = log.answer()
    assert accused(told) == ["n07"]
    assert set(told["suspects"][0]["evidence"]) == {"timed out"}
    assert told["left_out"] == {"at their time limit, where too few like them ended well": 60}


def test_jobs_that_use_no_cpu_hang_where_their_like_use_much(log: Log) -> None:
    log.some(300)
    for number in range(8):  # a person ends what hangs
        log.add([7], "cancelled", cpu_s=30, user=f"user{number}", name="climate_1")
        log.add([8], "cancelled", user=f"user{number}", name="climate_1")
        log.add([number], "completed", cpu_s=10, user="idle", name="sleeps")
        log.add([9], "cancelled", cpu_s=10, user="idle", name="sleeps")
    told = log.answer()
    assert accused(told) == ["n07"]
    (suspect,) = told["suspects"]
    assert set(suspect["evidence"]) == {"hung"}
    assert 6 <= suspect["evidence"]["hung"] <= 8  # those that have three like them


def test_no_hung_job_is_told_where_no_cpu_is_measured(log: Log) -> None:
    for number in range(60):
        log.add([number % NODES], "failed" if number % 9 == 0 else "completed", cpu_s=None)
    assert "hung jobs cannot be told: no job says how much CPU it used" in log.ask().out


def test_kinds_are_the_jobs_of_a_user_of_one_name() -> None:
    def kinds(*jobs: tuple[str, str, str]) -> list[int]:
        told = [
            UserJob(machine="m", job="1", submitted=1, user=user, name=name, executable=program)
            for user, name, program in jobs
        ]
        found = kinds_of(Jobs.of(told * FEW_OF_KIND + [told[-1]]))[: len(told)].tolist()
        return [found.index(kind) for kind in found]

    names = ["cm4-01", "cm4-17", "cm-5"]
    assert kinds(*(("ann", name, "") for name in names)) == [0, 0, 2]
    assert kinds(*((user, "cm4", "") for user in ("ann", "bob"))) == [0, 1]
    assert kinds(("ann", "cm", ""), ("ann", "om", "")) == [0, 1]
    assert kinds(("ann", "", "g09"), ("ann", "", "vasp"), ("ann", "", "g16")) == [0, 1, 0]
    rare = [UserJob(machine="m", job="1", submitted=1, user="ann", name=name) for name in "abcd"]
    assert len(set(kinds_of(Jobs.of(rare)).tolist())) == 1


def test_a_user_who_fails_everywhere_is_no_bad_node(log: Log) -> None:
    log.some(300)
    for number in range(150):
        log.add(
            [7 if number % 2 else number % NODES], "failed", user="novice", name=f"try_{number}"
        )
    done = log.ask()
    assert "no node or group explains that" in done.out
    assert "accuse no node: the user's jobs of that name failed wherever they ran" in done.out
    assert "novice" not in done.out


def test_a_bad_group_of_the_machine_is_told_as_such(log: Log) -> None:
    log.place.machine.write_text(
        "machine: frost\nscheduler: slurm\n"
        f"nodes: [{{names: 'n[00-{NODES - 1}]', cores: 24}}]\n"
        "groups: {r0: 'n[00-09]', r1: 'n[10-19]', r2: 'n[20-29]', r3: 'n[30-59]'}\n"
    )
    for _ in range(400):
        nodes = log.source.sample(range(NODES), log.source.randint(1, 3))
        bad = any(10 <= node < 20 for node in nodes) and log.source.random() < 0.7
        log.add(nodes, "failed" if bad or log.source.random() < 0.02 else "completed")
    told = log.answer("-m", str(log.place.machine))
    assert [(one["names"], one["level"]) for one in told["suspects"]] == [(["group r1"], "group")]


def test_few_jobs_are_told_to_be_few_and_what_is_missing_is_said(log: Log) -> None:
    log.add([1], "failed")
    done = log.ask("-m", "frost")
    assert "no node can be accused: 1 jobs: chance cannot be told from cause" in done.out
    keep(log.place.trials, log.jobs, (log.now - 2 * DAY, log.now - DAY))
    done = log.place.seatrial("suspects", "--jobs", "30d", "-m", "frost")
    assert done.out.count("no jobs were imported of") == 1


def test_what_cannot_be_asked_is_refused_with_a_remedy(log: Log) -> None:
    done = log.place.seatrial("suspects", "--jobs", "14d")
    assert done.code == 2 and "`seatrial usage import` brings them in" in done.err
    log.some(30)
    for words, message in (
        (("--jobs", "14d", "-m", "forst"), "no jobs of others of forst"),
        (("--jobs", "ages"), "'ages' is no time"),
        (("--jobs", "2026-03-02..2026-03-01"), "it begins after its end"),
        (("--jobs", "2026-03-02.."), "is no time"),
        ((), "no run of these trials has ended"),
    ):
        keep(log.place.trials, log.jobs)
        done = log.place.seatrial("suspects", *words)
        assert done.code == 2, done.said
        assert message in done.err


def test_a_node_that_runs_accuse_too_is_marked(log: Log) -> None:
    case = a_case(1)
    trial = TrialMaker(log.place.trials, "t", [case], machine="frost")
    trial.start()
    for number in range(48):
        run, node = f"r{number:02}", number % 12
        trial.run(case, run, FAILED if node == 7 else PASS)
        trial.events = [
            replace(event, nodes=f"n{node:02}")
            if isinstance(event, ScriptStarted) and event.run_id == run
            else event
            for event in trial.events
        ]
    trial.end()
    log.some(300, bad=7)
    done = log.ask("-m", "frost")
    assert done.code == 0, done.said
    runs, jobs = done.out.split("Jobs of everybody on frost")
    assert "Runs of trials on frost" in runs and "n07: 4 of 4 runs" in runs
    row = next(line for line in jobs.splitlines() if line.startswith("n07"))
    assert row.rstrip().endswith("runs")
    told = json.loads(log.ask("--json").out)["frost"]
    assert told["suspects"][0]["names"] == ["n07"] == told["jobs"]["suspects"][0]["names"]
    assert "jobs" not in json.loads(log.place.seatrial("suspects", "--json").out)["frost"]


@given(st.lists(st.sets(st.integers(0, 130), min_size=1, max_size=20), min_size=1, max_size=8))
def test_spans_have_the_nodes_of_their_lists(lists: list[set[int]]) -> None:
    for form in ("n{}", "n{:03}", "c0-{}n1", "r{}n{}"):
        named = [{form.format(number, number % 3) for number in each} for each in lists]
        spans = NodeSpans([fold(names) for names in named])
        job, first, last = spans.of(np.arange(len(lists)))
        for place, names in enumerate(named):
            mine = job == place
            found = [
                spans.names[node]
                for low, high in zip(first[mine], last[mine], strict=True)
                for node in range(low, high + 1)
            ]
            assert len(found) == len(names) == spans.sizes[place]
            assert set(found) == names


def test_what_is_no_list_of_nodes_has_none() -> None:
    lists = ["", "x[", "n[5-3]", "n[8-010]", "n[1-999999999]", "a,,b", "n1", "n[1-2],n2"]
    assert NodeSpans(lists).sizes.tolist() == [0, 0, 0, 0, 0, 0, 1, 2]


def test_groups_are_told_by_names_with_several_numbers() -> None:
    names = [f"c{c}-0c0s{s}n{n}" for c in range(2) for s in range(3) for n in range(4)]
    levels = levels_of(names, None)
    assert [len(level.units) for level in levels] == [6, 2]
    assert levels[0].units[0] == "c0-0c0s0*"
    assert levels[0].unit_of.tolist() == [number // 4 for number in range(24)]
    assert levels_of(["n1", "n2"], None) == []


def test_a_span_may_end_before_now(log: Log, tmp_path: Path) -> None:
    log.some(300, bad=7)
    keep(log.place.trials, log.jobs, (log.now - 15 * DAY, log.now))
    day = time.strftime("%Y-%m-%d", time.localtime(log.now - 20 * DAY))
    end = time.strftime("%Y-%m-%d", time.localtime(log.now - 16 * DAY))
    done = log.place.seatrial("suspects", "--jobs", f"{day}..{end}", "-m", "frost")
    assert "0 of 0 jobs ended badly" in done.out and "no jobs were imported of" in done.out


@pytest.mark.slurm(accounting=True)
def test_a_bad_node_of_a_real_slurm(
    place: Workplace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """120 jobs really run on eight nodes; all fail that touch one of these."""
    options = ClusterOptions(nodes=8, cores=8, accounting=True, name="frost")
    with SlurmCluster(tmp_path_factory.mktemp("frost"), options) as cluster:
        bad = cluster.node_names[4]
        script = f"! scontrol show hostnames | grep -qx {bad}"
        for number in range(20):
            size = ("-N", "2", "--ntasks-per-node=1") if number % 2 else ("-n", "1")
            about = ("-J", f"model-{'abcdefgh'[number % 8]}", "-o", "/dev/null", "--array=1-6")
            cluster.run("sbatch", *size, *about, "--spread-job", "--wrap", script)
        until(lambda: not cluster.run("squeue", "-h").strip(), "the jobs end", 180)
        states = ("sacct", "-aXDnP", "-S", "now-1days", "-o", "State")
        until(lambda: len(re.findall("COMPLETED|FAILED", cluster.run(*states))) == 120, "all told")
        place.env |= cluster.env
        done = place.seatrial("usage", "import", "sacct", "-m", "frost", "--since", "1d")
        assert done.code == 0, done.said
        done = place.seatrial("suspects", "--jobs", "1d", "-m", "frost", "--json")
    assert done.code == 0, done.said
    told = json.loads(done.out)["frost"]["jobs"]
    assert told["jobs"] == 120 and told["bad"] == len(told["suspects"][0]["bad"])
    assert accused(told) == [bad]
