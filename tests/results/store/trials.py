"""Small trials for tests, made as the driver makes them: ``trial.folder.create`` and a Journal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, TypeVar

from seatrial.execute.creation import create
from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.journal.events import (
    BuildEnded,
    BuildStarted,
    CheckStarted,
    Event,
    JobEnded,
    JobQueued,
    JobStarted,
    MetricRecorded,
    RunCreated,
    RunJudged,
    RunSubmitted,
    ScriptEnded,
    ScriptStarted,
    SubmitEnded,
    TrialEnded,
    TrialStarted,
    UnknownEvent,
)
from seatrial.journal.journal import Journal, read
from seatrial.model.codes import BUILD_FAILED, CANCELLED, PASS, RECALLED, WRONG_ANSWER, Code
from seatrial.model.machine import Machine, NodeGroup
from seatrial.model.test import Build, Case, RunSpec, Test, TrialOptions

NOON = 1_795_262_400_000_000_000  # 2026-11-21 12:00:00 UTC, in ns
SECOND = 1_000_000_000

E = TypeVar("E", bound=Event)


def a_case(number: int, test: str = "stream", **changes: Any) -> Case:
    given: dict[str, Any] = {
        "id": f"c{number:015x}",
        "test": test,
        "parameters": {"touch": "all", "threads": number},
        "toolchain": "gcc",
        "nodes": 1,
        "tasks": 2,
        "tasks_per_node": 2,
        "threads": number,
        "walltime": 300.0,
    }
    return Case(**(given | changes))


class TrialMaker:
    """One trial: its folder, and a journal that grows by events at a clock of its own."""

    def __init__(
        self,
        trials: Path,
        tag: str,
        cases: list[Case],
        created: int = NOON,
        machine: str = "frontier",
        tags: tuple[str, ...] = ("node",),
        expected: str = "",
        defaults: Mapping[str, Any] = MappingProxyType({}),
        **of_plan: Any,
    ) -> None:
        names = dict.fromkeys(case.test for case in cases)
        tests = {
            name: Test(
                app=f"{name}-app",
                tags=list(tags),
                run=RunSpec(script=f"echo {name}"),
                build=Build(script=f"make {name}"),
                name=name,
                folder=f"/suite/{name}",
                defaults=dict(defaults),
            )
            for name in names
        }
        record = Record(
            tag=tag,
            created=created,
            version="0.1.0",
            user="tester",
            host="login1",
            asked=TrialOptions(suites=["/suite"]),
            machine=Machine(machine=machine, nodes=[NodeGroup(names="n[001-004]", cores=8)]),
            references="references.yaml",
            tests=tests,
            expected=expected,
            **of_plan,
        )
        self.tag = tag
        self.machine = machine
        self.folder = create(trials, record, cases)
        self.now = created
        self.cases = cases
        self.events: list[Event] = []

    @classmethod
    def of(cls, folder: TrialFolder) -> Self:
        """Go on with a trial that was made otherwise, behind its last event."""
        record = folder.record()
        maker = cls.__new__(cls)
        maker.tag, maker.machine, maker.folder = record.tag, record.machine.machine, folder
        maker.cases, maker.events = folder.cases(), []
        maker.now = max(event.time for event in read(folder.journal))
        return maker

    def event(self, kind: type[E], /, **fields: Any) -> E:
        """Keep an event of a kind a second after the one before; ``write`` puts it into the
        journal."""
        self.now += SECOND
        given: dict[str, Any] = {"time": self.now, "trial": self.tag, "machine": self.machine}
        event = kind(**(given | fields))
        self.events.append(event)
        return event

    def line(self, name: str, **members: Any) -> None:
        """Keep an event as something else may have written it: with any members, by their names
        on disk."""
        time = self.now + SECOND
        written = {"event": name, "time": time, "trial": self.tag, "machine": self.machine}
        self.event(UnknownEvent, kind=name, raw=json.dumps(written | members).encode())

    def write(self) -> None:
        with Journal.take(self.folder.journal) as journal:
            for event in self.events:
                journal.append(event)
        self.events.clear()

    def start(self) -> None:
        self.event(TrialStarted)

    def run(
        self,
        case: Case,
        run_id: str,
        verdict: Code | None = PASS,
        why: str = "",
        figures: Mapping[str, float] | None = None,
        files: Mapping[str, bytes] | None = None,
        again: bool = False,
        target: str = "",
        stage: str = "",
    ) -> None:
        """The events of a run: to its verdict, or with None until its script has started."""
        path = self.folder.run(case.test, run_id)
        if files is not None:
            path.mkdir(parents=True)
            for name, data in files.items():
                (path / name).write_bytes(data)
        of = {"app": f"{case.test}-app", "test": case.test, "case": case.id, "run_id": run_id}
        self.event(RunCreated, path=str(path), **of)
        self.event(RunSubmitted, submission="s1", target=target, stage=stage, **of)
        self.event(SubmitEnded, refused=0, **of)
        self.event(JobQueued, job_id="4711", **of)
        self.event(ScriptStarted, nodes="n001", **of)
        if verdict is None:
            return
        self.event(ScriptEnded, exit_code=0 if verdict == PASS else 3, **of)
        self.event(JobEnded, code=0, state="COMPLETED", **of)
        self.event(CheckStarted, **of)
        for name, value in (figures or {}).items():
            self.event(MetricRecorded, metric=name, value=value, unit="MB/s", better="higher", **of)
        said = {"verdict": verdict.name, "reason": why, "will_rerun": again}
        self.event(RunJudged, code=verdict.number, **said, **of)

    def recalled_run(
        self, case: Case, run_id: str, again: bool = True, as_0_1: bool = False
    ) -> None:
        """The events of a run that Seatrial recalled while it waited; ``as_0_1``: as version 0.1
        wrote them."""
        of = {"app": f"{case.test}-app", "test": case.test, "case": case.id, "run_id": run_id}
        self.event(RunCreated, path=str(self.folder.run(case.test, run_id)), **of)
        self.event(RunSubmitted, submission="s1", **of)
        self.event(SubmitEnded, refused=0, **of)
        self.event(JobQueued, job_id="4712", **of)
        code = CANCELLED if as_0_1 else RECALLED
        if as_0_1:
            self.line("job_end", value=code.number, alias="taken back before it started", **of)
        else:
            self.event(JobEnded, code=code.number, recalled=True, **of)
        self.event(CheckStarted, **of)
        said = {"verdict": code.name, "reason": code.meaning, "will_rerun": again}
        self.event(RunJudged, code=code.number, **said, **of)

    def timed_run(self, case: Case, run_id: str) -> dict[str, int]:
        """The events of a run that passed, each of its times by its name (ns)."""
        of = {"app": f"{case.test}-app", "test": case.test, "case": case.id, "run_id": run_id}
        kinds: dict[str, tuple[type[Event], dict[str, Any]]] = {
            "created": (RunCreated, {"path": str(self.folder.run(case.test, run_id))}),
            "submitted": (RunSubmitted, {"submission": "s1"}),
            "queued": (JobQueued, {"job_id": "4711"}),
            "job_started": (JobStarted, {"nodes": "n001"}),
            "script_started": (ScriptStarted, {"nodes": "n001"}),
            "script_ended": (ScriptEnded, {"exit_code": 0}),
            "job_ended": (JobEnded, {"code": 0, "state": "COMPLETED"}),
            "judged": (RunJudged, {"code": PASS.number, "verdict": PASS.name}),
        }
        return {
            name: self.event(kind, **members, **of).time for name, (kind, members) in kinds.items()
        }

    def end(self, passed: bool = True) -> None:
        self.event(TrialEnded, failed=0 if passed else 1)
        self.write()


def a_trial(trials: Path, tag: str = "nightly", **changes: Any) -> TrialMaker:
    """Three cases: one passed, one with a wrong answer, one with a build that failed; ended."""
    cases = [a_case(1), a_case(2), a_case(3, test="hpl")]
    trial = TrialMaker(trials, tag, cases, **changes)
    trial.start()
    build: dict[str, Any] = {"key": "b1", "path": "/builds/b1", "test": "hpl"}
    trial.event(BuildStarted, **build)
    trial.event(BuildEnded, code=1, log="no compiler", **build)
    trial.run(
        cases[0],
        f"aaaa1111{tag}",
        figures={"triad": 5694.0, "copy": 5000.5},
        files={"job.sh": b"#!/bin/bash\n./stream\n", "stdout": b"Triad: 5694\n", "stderr": b""},
    )
    trial.run(
        cases[1],
        f"aaaa2222{tag}",
        WRONG_ANSWER,
        why="verify[0]: \x1b[31mSolution\x07 was not found",
        figures={"triad": 17.0},
        files={"stdout": b"bad\x1b[2J\xff <&> ]]>\x00end\n", "stderr": b"x\r\ny\n"},
    )
    of = {"app": "hpl-app", "test": "hpl", "case": cases[2].id, "run_id": f"bbbb3333{tag}"}
    trial.event(RunCreated, path="/nowhere", **of)
    trial.event(RunJudged, code=31, verdict=BUILD_FAILED.name, reason="no compiler", **of)
    trial.end(passed=False)
    return trial
