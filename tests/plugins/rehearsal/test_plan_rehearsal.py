"""A plan rehearsed: its trials, many seeds, what is assumed of its tests."""

from __future__ import annotations

import pytest

from seatrial.errors import UsageError
from seatrial.execute.plan.prepare import prepare_plan
from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.events import NodeDown, RunJudged
from seatrial.judge.statistics.significance import wilson
from seatrial.plugins.rehearsal.plan_rehearsal import lasting, over_seeds, rehearse, run_models_of
from seatrial.plugins.rehearsal.report import odds_of, rehearse_plan
from seatrial.plugins.rehearsal.simulated_runs import Quantity
from seatrial.results.status import status
from tests.plugins.rehearsal.stage import SECOND, START, Played, Stage


def chancy(stage: Stage) -> None:
    """A plan whose criterion is met with some seeds, and not with others."""
    stage.test("work", nodes=4)
    stage.behave("work", elapsed="1m", fails="5%")
    stage.component(
        "c",
        kind="sustained",
        duration="10m",
        tests={"work": {"copies": 2}},
        criteria=[{"criterion": "pass_rate", "at_least": "95%"}],
    )


def test_many_seeds_on_all_cores_are_the_same_as_one_by_one(stage: Stage) -> None:
    chancy(stage)
    plan = stage.prepare()
    run_models = stage.run_models(plan)
    seeds = range(1, 7)
    alone = [rehearse(plan, run_models, seed, START) for seed in seeds]
    with over_seeds(plan, run_models, seeds, START) as together:
        assert list(together) == alone
    assert len({trials[0].utilisation for trials in alone}) > 1


def test_odds_count_what_each_seed_said(stage: Stage) -> None:
    chancy(stage)
    plan = stage.prepare()
    rehearsals = [rehearse(plan, stage.run_models(plan), seed, START) for seed in range(1, 31)]
    odds, every = odds_of(rehearsals)
    assert (every.label, every.met) == ("every test", 30)
    met = [trials[0].criteria[0].result.state == "met" for trials in rehearsals]
    assert (odds.met, odds.of) == (sum(met), 30)
    assert 0 < odds.met < 30
    assert odds.low < odds.met / 30 < odds.high
    (miss,) = odds.causes
    assert (miss.seeds, miss.first) == (30 - odds.met, 1 + met.index(False))
    first = rehearsals[miss.first - 1][0].criteria[0].result
    assert miss.why == first.reason
    assert "did not pass" in miss.why
    values = [trials[0].criteria[0].result.value or 0.0 for trials in rehearsals]
    assert (odds.least.value, odds.most.value) == (min(values), max(values))


@pytest.mark.parametrize(
    ("met", "of", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (100, 100, 0.9630, 1.0), (0, 0, 0.0, 1.0)],
)
def test_the_interval_of_a_share_is_wilsons(met: int, of: int, low: float, high: float) -> None:
    assert list(wilson(met, of)) == pytest.approx([low, high], abs=1e-4)


def test_tags_are_free_ones(stage: Stage) -> None:
    chancy(stage)
    tags = [stage.play().rehearsed.tag for _ in range(3)]
    assert tags == ["p-c-rehearsed", "p-c-rehearsed-2", "p-c-rehearsed-3"]
    assert stage.play(name="mine").rehearsed.tag == "mine"
    with pytest.raises(UsageError, match="a trial of this tag exists"):
        stage.play(name="mine")


def test_days_are_those_of_sustained_components_alone(stage: Stage) -> None:
    chancy(stage)
    stage.component("once", tests=["work"])
    long = lasting(stage.prepare(), 0.5)
    assert [part.policy.duration for part in long.parts] == [43200.0, 0.0]
    assert [part.component.duration for part in long.parts] == ["0.5d", None]
    only = stage.prepare()
    with pytest.raises(UsageError, match="no component of p is sustained"):
        lasting(only._replace(parts=only.parts[1:]), 1)


def test_the_summary_adds_up(stage: Stage) -> None:
    stage.test("work", nodes=4)
    stage.behave("work", elapsed="1m", wrong="20%")
    stage.component("c", kind="sustained", duration="10m", tests={"work": {"copies": 2}}, reserve=0)
    played = stage.play()
    (tally,) = played.rehearsed.tests
    assert tally.accepted + tally.others == len(played.runs()) == 20
    assert 0 < tally.others == played.verdicts()["wrong answer"]
    assert tally.node_hours == pytest.approx(tally.accepted * 4 / 60)
    assert (tally.elapsed, tally.wait, tally.long_wait) == (60.0, 0.0, 0.0)
    assert played.rehearsed.use.available == 8 * 600 * 10**9
    assert played.rehearsed.utilisation == pytest.approx(tally.accepted / 20)
    over_time = sum(one.use.accepted for one in played.rehearsed.bins)
    assert over_time == played.rehearsed.use.accepted


def test_each_phase_has_its_own_luck(stage: Stage) -> None:
    """In all phases the same nodes failed at the same times; whichever are rehearsed counts not."""
    stage.test("work", nodes=1)
    stage.behave("work", elapsed={"mean": "1m", "sd": "5s"})
    stage.machine["rehearsal"]["node_failures"] = "1h"
    stage.plan["phases"] = [{"phase": "one"}, {"phase": "two"}]
    stage.component("c", kind="sustained", duration="1h", tests={"work": {"copies": 8}})

    def luck(played: Played) -> tuple[list[tuple[float, str]], list[float]]:
        start = played.rehearsed.start
        down = [((each.time - start) / SECOND, each.nodes) for each in played.of(NodeDown)]
        return down, [(each.time - start) / SECOND for each in played.of(RunJudged)]

    one, two = map(luck, stage.play_all())
    assert one[0]
    assert two[0]
    assert set(one[0]).isdisjoint(two[0])
    assert one[1] != two[1]
    plan = prepare_plan(stage.write(), phases=["two"])
    (alone,) = rehearse(plan, stage.run_models(plan), 1, START, stage.trials)
    assert luck(stage.read(alone)) == two
    del stage.plan["phases"]
    assert luck(stage.play()) == one, "a plan of one trial has the luck that it had"


def test_progress_is_told_seed_by_seed(stage: Stage) -> None:
    chancy(stage)
    told: list[tuple[int, int]] = []
    store = stage.trials / "store.sqlite"

    def tell(done: int, seeds: int) -> None:
        told.append((done, seeds))

    path = stage.write()
    report = rehearse_plan(path, trials=stage.trials, store=store, seed=5, seeds=4, progress=tell)
    assert told == [(2, 4), (3, 4), (4, 4)]
    assert [trials[0].seed for trials in report.by_seed] == [5, 6, 7, 8]
    assert [trials[0].tag for trials in report.by_seed] == ["p-c-rehearsed", "", "", ""]


# ---- what is assumed ----------------------------------------------------------------------


def test_the_first_pattern_that_fits_is_taken(stage: Stage) -> None:
    for name in ("io_read", "io_write"):
        stage.test(name)
    stage.behave("io_read", elapsed="1m", keeps="30s", build="2m", wrong="1%", bandwidth=3)
    stage.behave("io_*", elapsed={"mean": "2m", "sd": "10s"}, metadata="20%", keeps="walltime")
    stage.component("c")
    run_models = stage.run_models(stage.prepare())
    read, write = run_models["io_read"], run_models["io_write"]
    assert (read.mean, read.sd, read.keeps, read.build) == (60.0, 0.0, 30.0, 120.0)
    assert (read.wrong, read.bandwidth) == (0.01, 3.0)
    assert (write.mean, write.sd, write.keeps) == (120.0, 10.0, float("inf"))
    assert write.metadata == 0.2


def test_elapsed_times_can_be_those_of_a_trial(stage: Stage) -> None:
    stage.test("work")
    stage.behave("work", elapsed={"trial": "yesterday"})
    stage.component("c", tests=["work"])
    plan = stage.prepare()
    asked = []

    def measured(trial: str, test: str) -> tuple[float, ...]:
        asked.append((trial, test))
        return (61.0, 62.5)

    run_models = run_models_of(plan.plan, plan.parts[0].tests.values(), measured)
    assert run_models["work"].values == (61.0, 62.5)
    assert asked == [("yesterday", "work")]


def test_a_figure_has_the_unit_of_its_metric(stage: Stage) -> None:
    rate = {"rate": {"find": "x(.)", "unit": "1/s", "better": "higher"}}
    stage.test("work", metrics=rate)
    stage.behave("work", elapsed="1m", figures={"rate": {"mean": 9, "sd": 1}})
    stage.component("c", tests=["work"])
    plan = stage.prepare()
    assert stage.run_models(plan)["work"].figures == (Quantity("rate", 9.0, 1.0, "1/s", "higher"),)


def test_a_test_of_which_nothing_is_said_is_named(stage: Stage) -> None:
    for name in ("known", "unknown", "other"):
        stage.test(name)
    stage.behave("known", elapsed="1m")
    stage.component("c")
    plan = stage.prepare()
    with pytest.raises(UsageError, match="how other, unknown would run; write"):
        stage.run_models(plan)


def test_availability_says_of_how_many_nodes_of_the_machine_it_is(stage: Stage) -> None:
    """Also in the status of the trial that is kept, which reads its record."""
    stage.test("work", nodes=1)
    stage.behave("work", elapsed="1m")
    stage.component(
        "production",
        kind="sustained",
        nodes="n[1-3]",
        duration="10m",
        tests={"work": {"copies": 3}},
        criteria=[{"criterion": "availability", "at_least": "75%"}],
    )
    played = stage.play()
    result = played.rehearsed.criteria[0].result
    assert (result.state, result.value) == ("met", 1.0)
    assert result.reason == "0 node-hours down in 0 failures of nodes, of 3 of 8 nodes"
    folder = TrialFolder(stage.trials / played.rehearsed.tag)
    found = status(folder.record(), folder.cases(), played.events)
    assert found.criteria[0][0].reason == result.reason
