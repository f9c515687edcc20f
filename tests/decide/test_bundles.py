"""Runs that share an allocation: which are launched together, and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from seatrial.decide.conductor import Conductor, Decision, Launch
from seatrial.journal.events import (
    BuildEnded,
    BuildStarted,
    Event,
    JobEnded,
    JobStarted,
    RunJudged,
    RunSubmitted,
    TrialStarted,
)
from seatrial.model.codes import FAILED, LOST, PASS, Code
from seatrial.model.policy import Entry, Limits, Policy

from .model import a_case

NS = 10**9


class Sharing:
    """A trial whose cases share allocations by the numbers of their groups."""

    def __init__(self, groups: Sequence[int], limits: Limits | None = None, **about: Any) -> None:
        repeat, at_once, cores = (about.get(key, 1) for key in ("repeat", "at_once", "cores"))
        builds = about.get("builds", [""] * len(groups))
        cases = [
            replace(
                a_case(n, cores, repeat=repeat, build=builds[n], gpus=n % 2),
                at_once=at_once,
            )
            for n in range(len(groups))
        ]
        policy = Policy(
            entries=[Entry(name="t")],
            entry_of=[0] * len(cases),
            bundle_of=[*groups],
            allocations=about.get("allocations", 1),
        )
        self.conductor = Conductor("tag", cases, limits or Limits(), policy)
        self.now = 0
        self.note(TrialStarted)

    def decide(self) -> Decision:
        self.now += NS
        return self.conductor.decide(self.now)

    def note(self, kind: type[Event], /, run: Launch | None = None, **more: Any) -> None:
        if run is not None:
            more |= {"run_id": run.run_id, "case": f"case{run.case}"}
        self.conductor.apply(kind(time=self.now, **more))

    def launch(self) -> list[list[Launch]]:
        """Launch what may start now; the launches of each allocation in their order."""
        found: dict[str, list[Launch]] = {}
        for run in self.decide().launches:
            found.setdefault(run.bundle, []).append(run)
            self.note(RunSubmitted, run, bundle=run.bundle, position=run.position)
        for bundle, runs in found.items():
            assert bundle == runs[0].run_id
            assert [run.position for run in runs] == [n + 1 for n in range(len(runs))]
        return [*found.values()]

    def end(self, *runs: Launch, code: Code = PASS) -> None:
        for run in runs:
            self.note(JobStarted, run)
            self.note(JobEnded, run, code=0)
            self.note(RunJudged, run, code=code.number)


def cases_of(allocations: list[list[Launch]]) -> list[list[int]]:
    return [[run.case for run in runs] for runs in allocations]


def test_each_group_has_an_allocation_as_far_as_there_are_places() -> None:
    trial = Sharing([1, 1, 2, 2, 3], Limits(jobs=2))
    first, second = trial.launch()
    assert cases_of([first, second]) == [[0, 1], [2, 3]]
    trial.end(*first[:1])
    assert trial.launch() == [], "its job goes on with the second run"
    trial.end(*first[1:])
    (third,) = trial.launch()
    assert cases_of([third]) == [[4]]
    trial.end(*second, *third)
    finish = trial.decide().finish
    assert finish is not None and finish.complete


def test_runs_take_turns_in_rounds_which_are_spread_over_allocations() -> None:
    trial = Sharing([1, 1, 1], repeat=4, allocations=2)
    found = cases_of(trial.launch())
    assert [len(cases) for cases in found] == [6, 6]
    for cases in found:
        assert sorted(cases[:3]) == sorted(cases[3:]) == [0, 1, 2]


def test_lost_runs_are_repeated_together_once_the_others_have_ended() -> None:
    trial = Sharing([1, 1, 1])
    (runs,) = trial.launch()
    trial.end(*runs[:2], code=LOST)
    assert trial.launch() == []
    trial.end(runs[2], code=FAILED)
    (again,) = trial.launch()
    assert cases_of([again]) == [[0, 1]]
    trial.end(*again)
    finish = trial.decide().finish
    assert finish is not None and finish.complete


def test_the_others_run_without_one_whose_build_failed() -> None:
    trial = Sharing([1, 1, 1], builds=["good", "bad", ""], repeat=2)
    assert trial.launch() == [], "it waits for the builds of all"
    for key, code in (("good", 0), ("bad", 1)):
        trial.note(BuildStarted, key=key)
        trial.note(BuildEnded, key=key, code=code)
    assert [verdict.case for verdict in trial.decide().by_build] == [1, 1]
    (cases,) = cases_of(trial.launch())
    assert sorted(cases) == [0, 0, 2, 2]


def test_on_a_shared_node_an_allocation_takes_what_runs_at_once() -> None:
    """Of cases of 2 cores two run at a time; the second allocation waits for room."""
    trial = Sharing([1, 1, 2, 2], Limits(cores=7, gpus=2), cores=2, at_once=2, repeat=2)
    free = trial.conductor.state.free
    (first,) = trial.launch()
    assert (len(first), free.cores, free.gpus, free.jobs) == (4, 3, 1, 1)
    trial.end(*first[:3])
    assert trial.launch() == []
    trial.end(first[3])
    assert (free.cores, free.gpus, free.jobs) == (7, 2, 0)
    (second,) = trial.launch()
    assert sorted({run.case for run in second}) == [2, 3]
