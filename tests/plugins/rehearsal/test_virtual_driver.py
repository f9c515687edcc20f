"""The driver in virtual time: what can be reckoned comes out exactly, and what goes wrong is
answered as the policy says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from seatrial.decide.conductor import Conductor, Decision, Finish
from seatrial.execute.backends import Queued
from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.events import (
    AlertRaised,
    BuildEnded,
    BuildEvent,
    BuildStarted,
    Event,
    GaugeRead,
    JobEnded,
    JobStarted,
    MetricRecorded,
    NodeDown,
    NodeUp,
    OutputQuiet,
    RunCreated,
    RunEvent,
    RunJudged,
    RunSubmitted,
    ScriptStarted,
    TestStopped,
    TrialEnded,
    TrialPaused,
)
from seatrial.model.codes import PASS, RECALLED
from seatrial.model.policy import Limits
from seatrial.plugins.rehearsal import simulated_runs
from seatrial.plugins.rehearsal.plan_rehearsal import rehearse
from tests.plugins.rehearsal.stage import SECOND, START, E, Played, Stage, since
from tests.programs import Workplace


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def sustained(stage: Stage, duration: str = "10m", reserve: int = 0, **tests: Any) -> None:
    stage.component("c", kind="sustained", duration=duration, reserve=reserve, tests=tests)


def of(events: Iterable[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def kinds(events: Sequence[Event]) -> list[type[Event]]:
    return [type(event) for event in events]


# ---- what can be reckoned -----------------------------------------------------------------


def test_copies_of_a_fixed_time_make_an_exact_number_of_jobs(stage: Stage) -> None:
    stage.test("work", nodes=2)
    stage.behave("work", elapsed="1m")
    sustained(stage, work={"copies": 4})
    played = stage.play()
    assert played.verdicts() == {"pass": 40}  # four at a time, ten times
    starts = [since(event) for event in played.of(JobStarted)]
    assert starts == [60.0 * (number // 4) for number in range(40)]
    assert played.rehearsed.utilisation == 1.0
    assert isinstance(played.events[-1], TrialEnded)
    assert since(played.events[-1]) == 600.0


def test_delays_of_the_machine_are_paid_by_each_job(stage: Stage) -> None:
    stage.machine["rehearsal"] = {"submit_delay": 1, "start_delay": 2, "poll": 0}
    stage.test("work", nodes=8)
    stage.behave("work", elapsed=55)
    sustained(stage, work={"copies": 1})
    played = stage.play()
    # 1 s until queued, 2 s until its script starts, 55 s, 2 s until its nodes are free: 60 s
    assert played.verdicts() == {"pass": 10}
    assert played.rehearsed.utilisation == pytest.approx(55 / 60)
    begins = [since(event) for event in played.of(ScriptStarted)]
    assert begins == [3.0 + 60 * number for number in range(10)]


def test_a_reserve_keeps_the_machine_full_though_ends_are_known_late(stage: Stage) -> None:
    stage.machine["rehearsal"] = {"submit_delay": 5, "start_delay": 0, "poll": 15}
    stage.test("work", nodes=8)
    stage.behave("work", elapsed="1m")
    sustained(stage, duration="1h", reserve=1, work={"weight": 1})
    used = stage.play().rehearsed.use
    assert used.share("accepted") == pytest.approx(1 - 5 / 3600)


def test_the_journal_is_the_same_byte_for_byte(stage: Stage) -> None:
    stage.machine["rehearsal"] = {"node_failures": "10h", "repair": "10m"}
    stage.test("work", nodes=2)
    stage.behave("work", elapsed={"mean": 60, "sd": 20}, fails="10%")
    sustained(stage, reserve=1, work={"weight": 1})
    journals = []
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        stage.trials = stage.folder / folder
        journals.append((stage.play(seed, "t").folder / "journal.jsonl").read_bytes())
    assert journals[0] == journals[1]
    assert journals[0] != journals[2]


def test_in_memory_comes_to_the_same_as_on_disk(stage: Stage) -> None:
    stage.test("work", nodes=3)
    stage.behave("work", elapsed={"mean": 60, "sd": 20}, fails="10%")
    sustained(stage, reserve=1, work={"weight": 1})
    plan = stage.prepare()
    (one,) = rehearse(plan, stage.run_models(plan), 1, START)
    assert one._replace(tag="") == stage.play().rehearsed._replace(tag="")


def test_a_run_tells_what_a_real_one_does_in_the_same_order(stage: Stage, place: Workplace) -> None:
    rate = {"rate": {"find": r"rate (\S+)", "unit": "1/s", "better": "higher"}}
    place.test("work", "echo rate 5", metrics=rate)
    assert place.run("--name", "real").code == 0
    (run,) = place.events("real", RunJudged)
    real = [event for event in place.events("real", RunEvent) if event.run_id == run.run_id]
    stage.test("work", metrics=rate)
    stage.behave("work", elapsed="1m", figures={"rate": {"mean": 5}})
    stage.component("c", tests=["work"])
    (rehearsed,) = stage.play().runs().values()
    assert kinds(rehearsed) == kinds(real)


def test_trials_follow_each_other(stage: Stage) -> None:
    stage.plan["phases"] = [{"phase": "half", "nodes": "n[1-4]"}, {"phase": "whole"}]
    stage.test("work", nodes=2)
    stage.behave("work", elapsed="1m")
    sustained(stage, work={"weight": 1})
    stage.component("after", tests=["work"], phases=["whole"])
    played = stage.play_all()
    assert [one.folder.name for one in played] == [
        "p-c-half-rehearsed",
        "p-c-whole-rehearsed",
        "p-after-whole-rehearsed",
    ]
    assert [one.rehearsed.nodes for one in played] == [4, 8, 8]
    for before, after in pairwise(played):
        assert after.events[0].time == before.events[-1].time
    record = TrialFolder(played[0].folder).record()
    assert (record.rehearsed, record.seed, record.phase) == (True, 1, "half")


# ---- the very same conductor --------------------------------------------------------------


def rich(stage: Stage) -> None:
    """Something of everything."""
    stage.machine["rehearsal"] = {"node_failures": "20h", "repair": "20m", "poll": 7}
    stage.machine["file_systems"] = {
        "scratch": {
            "path": "/scratch",
            "targets": ["a", "b"],
            "safe_load": 40,
            "rehearsal": {"metadata": 30, "production": [{"from": "20m", "load": 25}]},
        }
    }
    stage.machine["gauges"] = {"load": {"command": "x", "every": "1m", "rehearsal": "scratch/a"}}
    stage.test("large", nodes=4, walltime="30m")
    stage.test("small", build={"script": "make"})
    stage.behave("large", elapsed={"mean": 300, "sd": 60}, hangs="10%", metadata="50%")
    stage.behave("small", elapsed={"mean": 60, "sd": 30}, wrong="30%", build="5m")
    stage.component(
        "c",
        kind="sustained",
        duration="2h",
        reserve=2,
        file_system="scratch",
        tests={
            "large": {"weight": 2, "opens": 10, "io": "heavy", "quiet_for": "3m"},
            "small": {"weight": 1, "opens": 1, "retry": {"stop_after": 4}},
        },
        stagger={"starts": 2, "per": "1m"},
        throttles=[{"gauge": "load", "high": 45, "low": 40, "stale_after": "3m"}],
        blackouts=[{"from": "50m", "to": "1h"}],
        watch={"short_for": "5m", "silent_for": "10m", "wait_factor": 2},
    )


def test_what_is_not_decided_at_once_would_not_be_decided_otherwise(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver asks the conductor only when something may follow; asked each time, it says the
    same."""
    rich(stage)
    quick = stage.play(name="t")
    assert {"hung", "wrong answer"} <= set(quick.verdicts())
    handlers = simulated_runs._HANDLERS

    def asked(self: simulated_runs.SimulatedRuns, now: int, run: Any, update: Any) -> bool:
        handlers_before[type(update)](self, now, run, update)
        return True

    handlers_before = dict(handlers)
    for kind in handlers_before:
        monkeypatch.setitem(handlers, kind, asked)
    stage.trials = stage.folder / "again"
    slow = stage.play(name="t")
    assert Queued in handlers
    assert slow.events == quick.events


def test_replaying_the_journal_leaves_nothing_to_do(stage: Stage) -> None:
    rich(stage)
    played = stage.play()
    folder = TrialFolder(played.folder)
    record = folder.record()
    unique = f"{record.tag} {record.created}"
    limits = Limits(jobs=1000, refill=250)
    conductor = Conductor(unique, folder.cases(), limits, record.policy)
    for event in played.events:
        conductor.apply(event)
    decision = conductor.decide(played.events[-1].time)
    assert decision == Decision(finish=Finish(True, ""))


def test_every_launch_has_its_intent_and_its_verdict(stage: Stage) -> None:
    rich(stage)
    for events in stage.play().runs().values():
        said = kinds(events)
        assert said[:2] == [RunCreated, RunSubmitted]
        assert said.count(RunSubmitted) == said.count(RunJudged) == 1
        assert said[-1] == RunJudged


# ---- what goes wrong ----------------------------------------------------------------------


def test_a_hung_run_is_found_and_ended(stage: Stage) -> None:
    stage.test("work", walltime="1h")
    stage.behave("work", elapsed="10m", hangs=1)
    sustained(stage, duration="1h", work={"copies": 1, "quiet_for": "5m"})
    played = stage.play()
    assert set(played.verdicts()) == {"hung"}
    for events in played.runs().values():
        (quiet,) = of(events, OutputQuiet)
        (began,) = of(events, ScriptStarted)
        (ended,) = of(events, JobEnded)
        (judged,) = of(events, RunJudged)
        # it hung at some point of its ten minutes
        assert 300 < (quiet.time - began.time) / SECOND < 900
        assert quiet.seconds == 300
        assert ended.state == "CANCELLED"
        assert judged.reason.startswith("no output for 5 m 0 s")
        assert ended.time == quiet.time


def test_without_a_watch_on_its_output_a_hung_run_ends_at_its_walltime(stage: Stage) -> None:
    stage.test("work", walltime="30m")
    stage.behave("work", elapsed="10m", hangs=1)
    sustained(stage, duration="1h", work={"copies": 1})
    played = stage.play()
    assert played.verdicts() == {"timeout": 2}
    assert [since(event) for event in played.of(JobEnded)] == [1800.0, 3600.0]


def test_wrong_answers_in_a_row_stop_the_test(stage: Stage) -> None:
    stage.test("bad")
    stage.test("good")
    stage.behave("bad", elapsed="1m", wrong=1)
    stage.behave("good", elapsed="1m")
    sustained(
        stage, bad={"copies": 1, "retry": {"stop_after": 3}}, good={"copies": 1}, duration="1h"
    )
    played = stage.play()
    (stop,) = played.of(TestStopped)
    assert (stop.test, since(stop)) == ("bad", 180.0)
    assert max(e.time for e in played.of(RunSubmitted) if e.test == "bad") <= stop.time
    assert set(played.verdicts("bad")) == {"wrong answer"}
    assert played.verdicts("good") == {"pass": 60}
    assert any(event.kind == "stopped" for event in played.of(AlertRaised))


def test_a_failed_run_is_made_good_as_often_as_the_plan_says(stage: Stage) -> None:
    stage.test("work")
    stage.behave("work", elapsed="1m", fails=1)
    stage.component("c", tests=["work"], retry={"answers": {"failed": "again"}, "attempts": 3})
    played = stage.play()
    assert [event.will_rerun for event in played.of(RunJudged)] == [True, True, False]
    (end,) = played.of(TrialEnded)
    assert end.failed == 1


def test_node_failures_end_runs_which_go_elsewhere(stage: Stage) -> None:
    stage.machine["rehearsal"] = {**stage.machine["rehearsal"], "node_failures": "8h"}
    stage.machine["rehearsal"]["repair"] = "1h"
    stage.test("work", nodes=2, walltime="1h")
    stage.behave("work", elapsed="30m")
    stage.component("c", tests=["work"], repeat=60, retry={"attempts": 9})
    played = stage.play()
    assert played.rehearsed.reason == ""
    assert played.verdicts()["pass"] == 60
    assert played.verdicts()["node failure"] > 2
    down = {event.nodes for event in played.of(NodeDown)}
    assert down
    assert {event.nodes for event in played.of(NodeUp)} <= down


def test_what_its_nodes_cannot_be_is_refused_and_said(stage: Stage) -> None:
    stage.machine["nodes"] = [
        {"names": "n[1-6]", "cores": 8},
        {"names": "n[7-8]", "cores": 8, "features": ["big"]},
    ]
    stage.test("work", nodes=2, requires={"features": ["big"]})
    stage.behave("work", elapsed="1m")
    sustained(stage, work={"copies": 1})
    started = stage.play().of(JobStarted)
    assert len(started) == 10
    assert {event.nodes for event in started} == {"n[7-8]"}


def test_a_build_takes_its_time_and_no_nodes(stage: Stage) -> None:
    stage.test("work", build={"script": "make"})
    stage.behave("work", elapsed="1m", build="4m")
    sustained(stage, work={"copies": 1})
    played = stage.play()
    assert [since(event) for event in played.of(BuildEvent)] == [0, 240]
    assert kinds(played.of(BuildEvent)) == [BuildStarted, BuildEnded]
    assert played.verdicts() == {"pass": 6}


def test_a_build_that_is_too_long_fails_and_its_runs_with_it(stage: Stage) -> None:
    stage.test("work", build={"script": "make", "timeout": "1m"})
    stage.behave("work", elapsed="1m", build="4m")
    stage.component("c", tests=["work"])
    played = stage.play()
    (end,) = played.of(BuildEnded)
    assert (since(end), end.code, end.log) == (60.0, 23, "ended after 1 m 0 s")
    assert played.verdicts() == {"build failed": 1}


def test_a_job_that_keeps_its_nodes_has_passed_all_the_same(stage: Stage) -> None:
    stage.test("work", nodes=8, walltime="10m")
    stage.behave("work", elapsed="2m", keeps="walltime")
    sustained(stage, duration="1h", work={"copies": 1})
    played = stage.play()
    assert played.verdicts() == {"pass": 6}
    assert played.rehearsed.utilisation == pytest.approx(0.2)
    assert played.rehearsed.use.share("kept") == pytest.approx(0.8)


def test_a_figure_below_its_reference_is_a_performance_failure(stage: Stage) -> None:
    rate = {"rate": {"find": r"rate (\S+)", "unit": "1/s", "better": "higher"}}
    stage.test("work", metrics=rate)
    stage.behave("work", elapsed="1m", figures={"rate": {"mean": 100, "sd": 5}})
    stage.component("c", tests=["work"], repeat=200)
    text = "references:\n- {test: work, metric: rate, unit: 1/s, value: 100, lower: -0.05}\n"
    (stage.folder / "toy").mkdir()
    (stage.folder / "toy" / "references.yaml").write_text(text)
    played = stage.play()
    figures = played.of(MetricRecorded)
    low = sum(float(event.value or 0) < 95 for event in figures)
    assert len(figures) == 200
    assert 0 < low < 100
    assert played.verdicts() == {"pass": 200 - low, "performance": low}


# ---- what holds launches back -------------------------------------------------------------


def test_a_throttle_closes_and_opens_again(stage: Stage) -> None:
    levels = [{"from": "10m", "load": 100}, {"from": "30m", "load": 5}]
    stage.machine["file_systems"] = {
        "scratch": {"path": "/s", "targets": ["a"], "rehearsal": {"production": levels}}
    }
    stage.machine["gauges"] = {"load": {"command": "x", "every": "30s", "rehearsal": "scratch"}}
    for name in ("heavy", "light"):
        stage.test(name)
        stage.behave(name, elapsed="1m")
    stage.component(
        "c",
        kind="sustained",
        duration="1h",
        tests={"heavy": {"copies": 1, "io": "heavy"}, "light": {"copies": 1, "io": "light"}},
        throttles=[{"gauge": "load", "high": 50, "low": 10, "stale_after": "5m"}],
    )
    played = stage.play()
    started = [since(e) for e in played.of(RunSubmitted) if e.test == "heavy"]
    assert max(time for time in started if time < 1800) <= 600
    assert min(time for time in started if time > 600) == 1800.0
    assert played.verdicts("light") == {"pass": 60}
    gauges = played.of(GaugeRead)
    assert {event.value for event in gauges} == {0.0, 100.0, 5.0}
    assert max(b.time - a.time for a, b in pairwise(gauges)) <= 150 * SECOND


def test_nothing_is_started_in_a_blackout(stage: Stage) -> None:
    stage.test("work")
    stage.behave("work", elapsed="1m")
    stage.component(
        "c",
        kind="sustained",
        duration="1h",
        tests={"work": {"copies": 1}},
        blackouts=[{"from": "10m", "to": "25m"}],
    )
    started = [since(event) for event in stage.play().of(RunSubmitted)]
    assert started == [*range(0, 600, 60), *range(1500, 3600, 60)]


def test_what_waits_is_recalled_when_a_blackout_begins(stage: Stage) -> None:
    stage.machine["rehearsal"] = {"submit_delay": 1, "start_delay": 0, "poll": 10}
    stage.test("work", nodes=8)
    stage.behave("work", elapsed="1m")
    stage.component(
        "c",
        kind="sustained",
        duration="1h",
        reserve=3,
        tests={"work": {"weight": 1}},
        blackouts=[{"from": "10m", "to": "25m"}],
        criteria=[{"criterion": "pass_rate", "at_least": "100%"}],
    )
    played = stage.play()
    started = [since(event) for event in played.of(JobStarted)]
    assert not [time for time in started if 600 < time < 1500]
    assert [time for time in started if 1500 <= time < 1560]
    recalled = [event for event in played.of(RunJudged) if event.code != PASS.number]
    assert 1 <= len(recalled) <= 4
    assert all(event.will_rerun and event.code == RECALLED.number for event in recalled)
    ends = {event.run_id: event for event in played.of(JobEnded)}
    assert all(ends[event.run_id].recalled for event in recalled)
    assert [event.failed for event in played.of(TrialEnded)] == [0]
    assert isinstance(played.events[-1], TrialEnded)


def test_what_nothing_will_ever_start_is_given_up(stage: Stage) -> None:
    stage.machine["file_systems"] = {
        "s": {"path": "/s", "targets": ["a"], "rehearsal": {"production": [{"from": 0, "load": 9}]}}
    }
    stage.machine["gauges"] = {"load": {"command": "x", "every": "10m", "rehearsal": "s"}}
    stage.test("work")
    stage.behave("work", elapsed="1m")
    throttle = {"gauge": "load", "high": 5, "low": 1, "stale_after": "1h"}
    stage.component("c", tests=["work"], throttles=[throttle])
    played = stage.play()
    assert played.rehearsed.reason == "nothing was started for 30 d 0 h"
    assert isinstance(played.events[-1], TrialPaused)
    assert not played.of(RunSubmitted)


def test_it_makes_no_run_directories(stage: Stage) -> None:
    stage.test("work")
    stage.behave("work", elapsed="1m")
    stage.component("c", tests=["work"])
    played: Played = stage.play()
    assert list((played.folder / "runs").iterdir()) == []
    assert [event.path for event in played.of(RunCreated)] == [""]
