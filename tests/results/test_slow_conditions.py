"""A metadata target, or a gauge that is high, that goes with slow runs is named; others are not."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from msgspec.structs import replace

from seatrial.journal.events import (
    GaugeRead,
    JobEnded,
    RunCreated,
    RunJudged,
    RunSubmitted,
    ScriptEnded,
    ScriptStarted,
)
from seatrial.model.codes import PASS
from seatrial.results.store.tables import RunOutcome
from seatrial.results.variability import slow_conditions
from seatrial.units import SECOND_NS
from tests.programs import Workplace
from tests.results.store.trials import TrialMaker, a_case

HOUR = 3600 * SECOND_NS


def outcome(number: int, elapsed: float, target: str = "", start: int | None = None) -> RunOutcome:
    started = number * HOUR if start is None else start
    return RunOutcome(
        number, f"r{number}", "t", "m", "io", "io", "{}", "gcc", "", 300.0, PASS.number, "",
        False, started, elapsed, "n1", "", target,
    )  # fmt: skip


def test_the_slow_target_is_named_and_no_other() -> None:
    chance = random.Random(3)
    runs = []
    for number in range(120):
        target = f"mdt{number % 4}"
        slower = 1.2 if target == "mdt2" else 1.0
        runs.append(outcome(number, 100 * slower * chance.lognormvariate(0, 0.02), target))
    found = slow_conditions(runs, {}, {})
    one = found.conditions[0]
    assert (one.kind, one.name, one.runs, one.of) == ("target", "mdt2", 30, 120)
    assert one.ratio == pytest.approx(1.2, abs=0.02) and one.p < 1e-6 and found.questions == 4
    assert [each.name for each in found.conditions if each.ratio > 1] == ["mdt2"]


def test_runs_that_open_more_files_than_their_case_are_named() -> None:
    chance = random.Random(5)
    runs, opens, locks = [], {}, {}
    for number in range(80):
        many = chance.random() < 0.5
        opens[number] = 1000 * (number % 2) + (90 if many else 10) + chance.randrange(5)
        locks[number] = chance.randrange(100)
        elapsed = 100 * (1.1 if many else 1.0) * chance.lognormvariate(0, 0.02)
        run = outcome(number, elapsed * (1 + number % 2))
        runs.append(replace(run, parameters=f"{number % 2}"))
    found = slow_conditions(runs, {}, {"lustre_opens": opens, "locks": locks})
    (one,) = found.conditions
    assert (one.kind, one.name, one.of, found.questions) == ("figure", "lustre_opens", 80, 2)
    assert one.ratio == pytest.approx(1.1, abs=0.03) and one.p < 1e-6


def test_a_gauge_that_is_high_goes_with_slow_runs() -> None:
    chance = random.Random(4)
    runs, opens, other = [], [], []
    for number in range(80):
        load = chance.uniform(0, 100)
        start = number * HOUR
        opens += [(start + i * SECOND_NS, load + chance.uniform(-1, 1)) for i in range(0, 90, 30)]
        other.append((start - SECOND_NS, chance.uniform(0, 100)))
        slower = 1.15 if load > 50 else 1.0
        runs.append(outcome(number, 100 * slower * chance.lognormvariate(0, 0.02)))
    found = slow_conditions(runs, {"opens": opens, "other": other, "never": []}, {})
    (one,) = found.conditions
    assert (one.kind, one.name, one.of) == ("gauge", "opens", 80) and found.questions == 2
    assert one.ratio > 1.08 and one.above == pytest.approx(50, abs=15)


def test_runs_of_one_quarter_of_an_hour_are_one_figure() -> None:
    """A machine that was slow once, while one target was in use, accuses nobody."""
    runs = [outcome(n, 100 + n % 3, f"mdt{n % 2}") for n in range(40)]
    once = 99 * HOUR
    runs += [outcome(100 + n, 300.0, "mdt1", once + n * SECOND_NS) for n in range(30)]
    assert slow_conditions(runs, {}, {}).conditions == []


def test_few_runs_and_old_readings_say_nothing() -> None:
    runs = [outcome(n, 100.0 + n, f"mdt{n % 2}") for n in range(6)]
    assert slow_conditions(runs, {"g": [(0, 1.0)]}, {}).questions == 0
    assert slow_conditions([], {}, {}).questions == 0


def test_chance_alone_names_a_condition_in_few_of_a_hundred_trials() -> None:
    accused = 0
    for seed in range(60):
        chance = random.Random(seed)
        runs = [
            outcome(n, 100 * chance.lognormvariate(0, 0.05), f"mdt{chance.randrange(3)}")
            for n in range(60)
        ]
        gauge = [(n * HOUR, chance.uniform(0, 9)) for n in range(60)]
        accused += bool(slow_conditions(runs, {"g": gauge}, {}).conditions)
    assert accused <= 7  # 3 are expected at 5 %


def test_suspects_tells_what_it_compared(tmp_path: Path) -> None:
    """The events of 24 runs, an hour each; a gauge was high while every second one ran."""
    (case,) = cases = [a_case(1)]
    trial = TrialMaker(tmp_path / "trials", "t", cases)
    trial.start()
    chance = random.Random(5)
    for number in range(24):
        high = number % 2 == 0
        of = {"app": "stream", "test": "stream", "case": case.id, "run_id": f"r{number}"}
        trial.event(GaugeRead, gauge="opens", value=90.0 if high else 10.0)
        trial.event(RunCreated, path=str(tmp_path), **of)
        trial.event(RunSubmitted, submission="s", **of)
        trial.event(ScriptStarted, nodes="n001", **of)
        trial.now += int((130 if high else 100) * SECOND_NS * chance.uniform(1, 1.02))
        trial.event(ScriptEnded, exit_code=0, **of)
        trial.event(JobEnded, code=0, state="COMPLETED", **of)
        trial.event(RunJudged, code=PASS.number, verdict="pass", **of)
        trial.now += HOUR
    trial.event(GaugeRead, gauge="opens", reason="it gave no number")
    trial.event(GaugeRead, gauge="never", reason="it gave no number")
    trial.end()
    trial.write()
    done = Workplace(tmp_path).seatrial("suspects")
    assert done.code == 0, done.said
    assert "runs while opens was above 50 took 30 % longer: 12 of 24 runs; p = " in done.out
    done = Workplace(tmp_path).seatrial("suspects", "--json")
    (record,) = json.loads(done.out).values()
    (one,) = record["conditions"]
    assert (one["kind"], one["name"], one["runs"]) == ("gauge", "opens", 12)
