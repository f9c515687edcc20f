"""Machines, tests and runs for the tests of ``runs``: scripts are really run, with bash."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec

from seatrial.execute.backends import Backend
from seatrial.execute.directory import JobEvents, job_events, prepare
from seatrial.execute.launchers import shared_host_files, write_host_files
from seatrial.execute.script import ScriptWriter
from seatrial.execute.trial_paths import TrialPaths
from seatrial.model.build import BuildKeys
from seatrial.model.machine import Machine, NodeGroup, Toolchain
from seatrial.model.test import Build, Case, RunSpec, Test
from tests.waiting import LONG_S


def a_machine(**keys: Any) -> Machine:
    usual: dict[str, Any] = {"toolchains": {"gcc": Toolchain(cc="gcc")}}
    return Machine(
        machine="here", nodes=[NodeGroup(names="localhost", cores=4)], **{**usual, **keys}
    )


def a_test(script: str = "true", build: Build | None = None, **keys: Any) -> Test:
    return Test(
        name="t", folder="/suite/t", app="t", run=RunSpec(script=script), build=build, **keys
    )


def a_case(**parameters: Any) -> Case:
    return Case(
        id="c",
        test="t",
        parameters=parameters,
        toolchain="gcc",
        nodes=1,
        tasks=2,
        tasks_per_node=2,
        threads=3,
        walltime=60.0,
    )


def built_case(test: Test, /, machine: Machine | None = None, **parameters: Any) -> Case:
    """A case that bears the key of its build, as planning gives it."""
    case = a_case(**parameters)
    key = BuildKeys().key(test, case, machine or a_machine())
    return msgspec.structs.replace(case, build=key)


class RunFolder:
    """A run that is made below a folder, and run by hand."""

    def __init__(
        self, folder: Path, test: Test, case: Case | None = None, machine: Machine | None = None
    ) -> None:
        machine, case = machine or a_machine(), case or a_case()
        self.path = folder / "run 'one'"
        trial = TrialPaths(folder / "tri'al")
        script = trial.script(test.name)
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(test.run.script.rstrip("\n") + "\n")
        self.facts = trial.facts
        if shared := shared_host_files(machine, test, case, trial.hosts):
            write_host_files(shared, "localhost", case.tasks)
        writer = ScriptWriter(machine, "trial", trial)
        build = str(folder / "build")
        self.text = writer.job_script(test, case, "abc", str(self.path), build)
        prepare(self.path, self.text, test)

    def run(self, **environment: str) -> int:
        """Run the job script; its exit code. What it says is in ``stdout`` and ``stderr``."""
        clean = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
        with (self.path / "stdout").open("ab") as out, (self.path / "stderr").open("ab") as errors:
            return subprocess.run(
                ["bash", str(self.path / "job.sh")],
                env=clean | environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                timeout=LONG_S,
                check=False,
            ).returncode

    @property
    def stdout(self) -> str:
        return (self.path / "stdout").read_text()

    @property
    def stderr(self) -> str:
        return (self.path / "stderr").read_text()

    @property
    def events(self) -> JobEvents:
        return job_events(self.path)

    def names(self) -> list[str]:
        """The events in the file, in order; each line must be JSON. The first may be the claim."""
        file = self.path / "events.jsonl"
        lines = [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]
        return [line["event"] for line in lines if "claim" not in line]


async def updates_of(backend: Backend) -> list[Any]:
    """What a backend has reported: at least one update. Raises its failure."""
    updates = [await backend.inbox.get()]
    while not backend.inbox.empty():
        updates.append(backend.inbox.get_nowait())
    for update in updates:
        if isinstance(update, BaseException):
            raise update
    return updates


def waiting_of(backend: Backend) -> list[Any]:
    """Take what a backend has reported, and put it back."""
    waiting = [backend.inbox.get_nowait() for _ in range(backend.inbox.qsize())]
    for update in waiting:
        backend.inbox.put_nowait(update)
    return waiting
