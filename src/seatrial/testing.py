"""What tests of suites, plans and plug-ins need: a machine, a case, and a scheduler without a
cluster.

    trial = seatrial.Trial.create(["suite"], trials=tmp_path)
    outcome = trial.run(scheduler=SimulatedScheduler(["COMPLETED", "NODE_FAIL"]))
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from seatrial.errors import UsageError
from seatrial.execute.backends import JobEnd, Started, Submission
from seatrial.execute.batch.scheduler_client import ENDED
from seatrial.execute.environment import inherited
from seatrial.execute.local import LocalBackend
from seatrial.model.machine import Machine, NodeGroup, Toolchain
from seatrial.model.test import Case

COMPLETED = "COMPLETED"


def a_machine(name: str = "here", cores: int = 2, **keys: Any) -> Machine:
    """Return a machine of one node, this host. ``keys``: those of a machine file."""
    given = {"nodes": [NodeGroup(names="localhost", cores=cores)], "toolchains": _SYSTEM, **keys}
    return Machine(machine=name, **given)


_SYSTEM = {"system": Toolchain()}


def a_case(test: str = "test", **fields: Any) -> Case:
    """Return a case of one task. ``fields``: those of a Case that are not usual."""
    usual: dict[str, Any] = {
        "id": "0" * 16,
        "test": test,
        "toolchain": "system",
        "parameters": {},
        "nodes": 1,
        "tasks": 1,
        "tasks_per_node": 1,
        "threads": 1,
        "walltime": 60.0,
    }
    return Case(**usual | fields)


class SimulatedScheduler:
    """A scheduler without a cluster, for ``Trial.run(scheduler=...)``.

    ``ends`` says what becomes of the first runs, in the order in which they are submitted: a state
    of Slurm's jobs, such as NODE_FAIL, TIMEOUT or OUT_OF_MEMORY. The script of a run that is
    COMPLETED, and of all that ``ends`` does not name, runs on this host; of others none does.
    """

    def __init__(self, ends: Iterable[str] = ()) -> None:
        self._ends = list(ends)
        if unknown := [state for state in self._ends if state not in ENDED]:
            raise UsageError(f"{unknown[0]!r} is no end of a job; there are {', '.join(ENDED)}")

    def __call__(self, machine: Machine, submissions: Path) -> _SimulatedBackend:
        """Return what runs the jobs of one trial."""
        return _SimulatedBackend(self._ends, machine, submissions)


class _SimulatedBackend(LocalBackend):
    """Runs jobs on this host, but for those whose end is given."""

    def __init__(self, ends: Iterable[str], machine: Machine, submissions: Path) -> None:
        super().__init__(machine.nodes[0].cores, inherited(machine), 0, submissions)
        self._ends = iter(ends)

    async def submit(self, submission: Submission) -> None:
        states = {job.run_id: next(self._ends, COMPLETED) for job in submission.jobs}
        run = tuple(job for job in submission.jobs if states[job.run_id] == COMPLETED)
        if run:
            await super().submit(submission._replace(jobs=run))
        for run_id, state in states.items():
            if state != COMPLETED:
                self._report(Started(run_id))
                self._report(JobEnd(run_id, ENDED[state], state, None))
