"""Choose the backend that a machine asks for, and import that one alone."""

from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.backends.protocol import Backend
from seatrial.machine.model import Machine

if TYPE_CHECKING:
    from seatrial.backends.scheduler_client import SchedulerClient


def require_scheduler(machine: Machine) -> None:
    """Raise BackendError where this host does not have the commands of the machine's scheduler.
    Call it before a trial is created. A trial waits for a scheduler that does not answer."""
    if machine.jobs_run_elsewhere:
        _client_of(machine).require_programs()


def choose_backend(machine: Machine, submissions: Path) -> Backend:
    """Return the backend of a machine; ``submissions`` is the folder for the files of a
    scheduler."""
    if machine.jobs_run_elsewhere:
        from seatrial.backends.batch import BatchBackend

        return BatchBackend(machine, _client_of(machine), submissions)
    from seatrial.backends.local import LocalBackend
    from seatrial.runs.environment import inherited

    node = machine.nodes[0]
    return LocalBackend(node.cores, inherited(machine), node.gpus, submissions)


def _client_of(machine: Machine) -> "type[SchedulerClient]":
    if machine.scheduler == "pbs":
        from seatrial.backends.pbs_client import PbsClient

        return PbsClient
    if machine.scheduler == "gridengine":
        from seatrial.backends.gridengine_client import GridEngineClient

        return GridEngineClient
    from seatrial.backends.slurm_client import SlurmClient

    return SlurmClient
