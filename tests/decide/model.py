"""A trial without a machine: it carries out what a conductor decides and checks every step."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

from seatrial.decide.conductor import Conductor, Decision, Launch
from seatrial.decide.state import MAX_LOSSES
from seatrial.journal.encoding import decode_block, encode_lines
from seatrial.journal.events import (
    BuildEnded,
    BuildStarted,
    Event,
    JobEnded,
    RunJudged,
    RunSubmitted,
    TrialCancelled,
    TrialPaused,
    TrialResumed,
)
from seatrial.model.codes import CANCELLED, LOST, PASS
from seatrial.model.policy import Limits
from seatrial.model.test import Case, JobOptions


def a_case(
    number: int,
    cores: int = 1,
    *,
    repeat: int = 1,
    build: str = "",
    exclusive: bool = False,
    gpus: int = 0,
) -> Case:
    return Case(
        id=f"case{number}",
        test="t",
        parameters={"n": number},
        toolchain="gcc",
        nodes=1,
        tasks=cores,
        tasks_per_node=cores,
        threads=1,
        walltime=60.0,
        repeat=repeat,
        build=build,
        exclusive=exclusive,
        job=JobOptions(gpus_per_node=gpus),
    )


class Model:
    """The events of a trial, a conductor that lived through them, and what must hold of both."""

    def __init__(self, cases: Sequence[Case], limits: Limits) -> None:
        self.cases = cases
        self.limits = limits
        self.conductor = Conductor("tag", cases, limits)
        self.events: list[Event] = []
        self.running: dict[str, int] = {}  # run id -> case, of runs without a job_end
        self.unjudged: dict[str, int] = {}  # and of those that have one, but no verdict
        self.building: set[str] = set()
        self.doomed: set[str] = set()  # in flight when the trial was cancelled
        self.launched: set[str] = set()
        self.built: Counter[str] = Counter()
        self.losses: Counter[int] = Counter()
        self.done: Counter[int] = Counter()
        self.failures = 0  # since the trial was last taken up
        self.held = False
        self._clock = itertools.count(1)

    # ---- what the driver does -------------------------------------------------------------

    def step(self) -> Decision:
        """Ask, check, and carry out."""
        decision = self.conductor.decide()
        assert self.conductor.decide() == decision
        self._check_finish(decision)
        for command in decision.by_build:
            assert not self.held
            self._verdict(command.run_id, command.case, command.code)
        for key in decision.builds:
            assert not self.held
            assert key not in self.building, "built twice"
            self.building.add(key)
            self.built[key] += 1
            self.note(BuildStarted, key=key)
        for launch in decision.launches:
            self._launch(launch)
        assert self.running.keys() | self.unjudged.keys() >= set(decision.cancels)
        self.check()
        return decision

    def _launch(self, launch: Launch) -> None:
        assert not self.held
        assert launch.run_id not in self.launched, "launched twice"
        self.launched.add(launch.run_id)
        self.running[launch.run_id] = launch.case
        self.note(RunSubmitted, launch.run_id, launch.case)

    def note(
        self, kind: type[Event], /, run_id: str = "", case: int | None = None, **more: Any
    ) -> None:
        if case is not None:
            more |= {"run_id": run_id, "case": self.cases[case].id}
        event = kind(time=next(self._clock), **more)
        self.events.append(event)
        self.conductor.apply(event)

    # ---- what happens to it ---------------------------------------------------------------

    def end_job(self, run_id: str) -> None:
        number = self.running.pop(run_id)
        self.unjudged[run_id] = number
        self.note(JobEnded, run_id, number, code=0)

    def judge(self, run_id: str, code: int) -> None:
        """A verdict, for a run whose job may not have been seen to end."""
        number = self.unjudged.pop(run_id, None)
        if number is None:
            number = self.running.pop(run_id)
        self._verdict(run_id, number, code)

    def _verdict(self, run_id: str, number: int, code: int) -> None:
        again = code == CANCELLED.number and run_id in self.doomed
        if code == LOST.number and self.losses[number] < MAX_LOSSES:
            self.losses[number] += 1
            again = True
        if not again:
            self.done[number] += 1
            self.failures += code != PASS.number
            if 0 < self.limits.max_failures <= self.failures:
                self.held = True
        assert self.conductor.state.will_rerun(number, run_id, code) == again
        self.note(RunJudged, run_id, number, code=code)

    def end_build(self, key: str, code: int) -> None:
        self.building.remove(key)
        self.note(BuildEnded, key=key, code=code, log="log")

    def pause(self) -> None:
        self.held = True
        self.note(TrialPaused)

    def cancel(self) -> None:
        self.held = True
        self.doomed |= self.running.keys() | self.unjudged.keys()
        self.building.clear()  # the driver ends them, and records nothing of it
        self.note(TrialCancelled)

    def resume(self) -> None:
        """The driver died, or ended; another one takes the trial up from its journal."""
        self.held = False
        self.failures = 0
        self.building.clear()
        self.conductor = replayed(self)
        self.note(TrialResumed)

    # ---- what must hold -------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        return not (self.running or self.unjudged or self.building)

    @property
    def wanted(self) -> int:
        return sum(case.repeat for case in self.cases)

    def check(self) -> None:
        if self.limits.cores:
            requests = self.conductor.state.requests
            used = sum(requests[number].cores for number in self.running.values())
            assert used <= self.limits.cores
        if self.limits.gpus:
            assert sum(self.cases[n].gpus for n in self.running.values()) <= self.limits.gpus
        if self.limits.jobs:
            assert len(self.running) <= self.limits.jobs
        assert len(self.building) <= self.limits.builds
        for number, case in enumerate(self.cases):
            assert self.done[number] <= case.repeat

    def _check_finish(self, decision: Decision) -> None:
        complete = self.done.total() == self.wanted
        due = self.idle and (self.held or complete)
        finish = decision.finish
        if due:
            assert finish is not None
            assert decision == Decision(finish=finish)
            assert finish.complete == complete
            assert complete or finish.reason
        else:
            assert finish is None
            waits = decision.wake is not None or not self.idle
            assert waits or not decision.idle, "nothing to do, and nothing to wait for"

    def check_complete(self) -> None:
        assert {n: case.repeat for n, case in enumerate(self.cases)} == dict(self.done)


def replayed(model: Model) -> Conductor:
    """A conductor that has read the journal, from bytes as they are on the disk."""
    conductor = Conductor("tag", model.cases, model.limits)
    events, damaged = decode_block(encode_lines(model.events))
    assert not damaged
    for event in events:
        conductor.apply(event)
    return conductor
