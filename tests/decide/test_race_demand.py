"""The runs of a tuning, as its race wants them: one allocation at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from seatrial.decide.conductor import Conductor, Launch
from seatrial.decide.race import LargestSearch, Race, RaceDemand
from seatrial.journal.events import (
    BuildEnded,
    BuildStarted,
    Event,
    JobEnded,
    JobStarted,
    MetricRecorded,
    RunJudged,
    RunSubmitted,
    ScriptEnded,
    ScriptStarted,
    TrialStarted,
)
from seatrial.model.codes import FAILED, LOST, NODE_FAILURE, PASS, PERFORMANCE, TIMEOUT, Code
from seatrial.model.policy import Entry, Limits, Policy, RaceRules

from .world import NS, a_run

Outcome = Code | float | None  # a verdict, or the figure of a run that passed
RULES = RaceRules(
    levels=[[0], [1], [2]], default=0, metric="t", search="grid", rounds=2, allocations=2, runs=12
)


class Tuning:
    """A tuning that was seen through. ``outcome`` is asked with a setting, and how many runs it has
    had. ``allocations`` has the launches of each decision."""

    def __init__(
        self,
        outcome: Callable[[int, int], Outcome],
        rules: RaceRules = RULES,
        *,
        together: bool = True,
        unbuilt: int | None = None,
        room: int = 0,
    ) -> None:
        numbers = range(len(rules.levels))
        cases = [a_run(n, "app", build=f"k{n}", cores=1 + n) for n in numbers]
        policy = Policy(
            kind="race",
            entries=[Entry(name="app")],
            entry_of=[0] * len(cases),
            bundle_of=[1] * len(cases) if together else [],
            nodes=0 if room else 4,
            race=replace(rules, runs=rules.runs or rules.grid),
        )
        self.conductor = Conductor("tag", cases, Limits(cores=room), policy)
        self.allocations: list[list[Launch]] = []
        self.now = 0
        had = [0] * len(cases)
        self.note(TrialStarted)
        for _ in range(40):
            decision = self.decide()
            if decision.finish is not None:
                break
            for key in decision.builds:
                self.note(BuildStarted, key=key)
                self.note(BuildEnded, key=key, code=int(key == f"k{unbuilt}"))
            for verdict in decision.by_build:
                self.note(RunJudged, verdict.run_id, verdict.case, code=verdict.code)
            if decision.launches:
                self.allocations.append(decision.launches)
            for launch in decision.launches:
                about = {"bundle": launch.bundle, "position": launch.position}
                self.note(RunSubmitted, launch.run_id, launch.case, **about)
            for launch in decision.launches:
                assert not self.decide().launches, "nothing runs beside a block"
                self.run(launch, outcome(launch.case, had[launch.case]))
                had[launch.case] += 1
        assert decision.finish is not None, "it comes to an end"
        self.finish = decision.finish
        demand = self.conductor.state.demand
        assert isinstance(demand, RaceDemand)
        assert not demand.left() and demand.wanted == self.conductor.state.finished
        self.race = demand.race

    def decide(self) -> Any:
        self.now += NS
        return self.conductor.decide(self.now)

    def note(self, kind: type[Event], /, run_id: str = "", case: int = 0, **more: Any) -> None:
        if run_id:
            more |= {"run_id": run_id, "case": f"case{case}"}
        self.conductor.apply(kind(time=self.now, **more))

    def run(self, launch: Launch, outcome: Outcome) -> None:
        of = (launch.run_id, launch.case)
        self.note(JobStarted, *of, nodes="n1")
        start = self.now + NS
        end = start + (1 + launch.case) * NS
        self.now = end + 4 * NS  # the job takes longer than its script, and is seen later
        self.note(JobEnded, *of, code=0)
        for kind, time in ((ScriptStarted, start), (ScriptEnded, end)):
            self.conductor.apply(kind(time=time, run_id=of[0], case=f"case{of[1]}"))
        if isinstance(outcome, float):
            self.note(MetricRecorded, *of, metric="other", value=99.0)
            self.note(MetricRecorded, *of, metric="t", value=outcome)
        code = outcome if isinstance(outcome, Code) else PASS
        self.note(RunJudged, *of, code=code.number, reason="why" if code is FAILED else "")


def figures(tuning: Tuning) -> Any:
    """The figures of each setting by round, 0 where there is none."""
    assert isinstance(tuning.race, Race)
    return np.round(np.nan_to_num(np.exp(tuning.race.figures)), 6).tolist()


@pytest.mark.parametrize("room", [0, 3])
def test_each_block_has_one_allocation_in_the_order_of_its_rounds(room: int) -> None:
    tuning = Tuning(lambda case, run: 10.0 * (case + 1) + run, room=room)
    assert figures(tuning) == [[10.0 * case + n for n in range(4)] for case in (1, 2, 3)]
    assert len(tuning.race.blocks) == 2 and tuning.finish.complete
    for block, launches in zip(tuning.race.blocks, tuning.allocations, strict=True):
        assert [launch.case for launch in launches] == [*block[0], *block[1]]
        assert [launch.position for launch in launches] == [1, 2, 3, 4, 5, 6]
        assert {launch.bundle for launch in launches} == {launches[0].run_id}


def test_settings_that_share_no_allocation_run_one_after_the_other() -> None:
    tuning = Tuning(lambda case, run: 10.0 * (case + 1) + run, together=False)
    assert figures(tuning) == [[10.0 * case + n for n in range(4)] for case in (1, 2, 3)]
    assert [len(launches) for launches in tuning.allocations] == [1] * 12
    ran = [case for block in tuning.race.blocks for order in block for case in order]
    assert [launch.case for (launch,) in tuning.allocations] == ran


def test_the_time_of_a_script_is_its_figure_where_the_race_goes_by_that() -> None:
    """Not that of its job, which is waited for, and seen late."""
    assert figures(Tuning(lambda case, run: 5.0, replace(RULES, metric="elapsed"))) == [
        [1.0 + case] * 4 for case in range(3)
    ]


def test_what_gave_no_figure_is_told_with_its_cause() -> None:
    """A lost run runs again, in place of the one of its round."""
    bad: dict[tuple[int, int], Outcome] = {
        (0, 0): LOST,
        (1, 0): None,
        (1, 1): TIMEOUT,
        (2, 1): FAILED,
    }
    tuning = Tuning(lambda case, run: bad.get((case, run), 1.0 + run))
    race = tuning.race
    assert race.failures == [[], ["no figure of t", "timeout"], ["failed: why"]]
    assert race.cuts == [[], [], []]
    assert figures(tuning)[0] == [3, 2]
    assert [len(launches) for launches in tuning.allocations] == [6, 1]
    assert sorted(race.dropped) == [1, 2]


def test_a_run_that_was_cut_off_for_good_is_no_failure_of_its_setting() -> None:
    tuning = Tuning(lambda case, run: NODE_FAILURE if case == 1 else 2.0)
    assert tuning.race.failures == [[], [], []]
    assert tuning.race.cuts[1] and set(tuning.race.cuts[1]) == {"node failure"}
    assert 1 not in tuning.race.dropped


def test_a_slow_answer_is_right_and_without_a_figure_a_failure() -> None:
    tuning = Tuning(lambda case, run: PERFORMANCE)
    assert [set(each) for each in tuning.race.failures] == [{"no figure of t"}] * 3


def test_a_setting_that_is_not_built_gets_its_verdict_and_the_others_run() -> None:
    tuning = Tuning(lambda case, run: 1.0 + case, unbuilt=1)
    assert tuning.finish.complete
    assert tuning.race.dropped[1].cause == "build failed"
    assert {launch.case for block in tuning.allocations for launch in block} == {0, 2}
    assert tuning.conductor.state.finished == 9


def test_a_search_for_the_largest_size_needs_no_figure() -> None:
    rules = replace(RULES, levels=[[n] for n in range(6)], search="largest", runs=6)
    tuning = Tuning(lambda case, run: None if case < 4 else FAILED, rules)
    assert isinstance(tuning.race, LargestSearch)
    assert tuning.race.largest == 3
    assert {len(launches) for launches in tuning.allocations} == {1}
