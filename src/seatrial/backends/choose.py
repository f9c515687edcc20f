"""Choose the backend that a machine asks for, and import that one alone."""

from __future__ import annotations

from pathlib import Path

from seatrial.backends.protocol import Backend
from seatrial.machine.model import Machine


def require_scheduler(machine: Machine) -> None:
    """Raise BackendError where this host does not have the commands of the machine's scheduler.
    Call it before a trial is created. A trial waits for a scheduler that does not answer."""
    if machine.scheduler == "slurm":
        from seatrial.backends.slurm import require_commands

        require_commands()
    elif machine.scheduler == "pbs":
        from seatrial.backends.pbs import require_commands

        require_commands()


def choose_backend(machine: Machine, submissions: Path) -> Backend:
    """Return the backend of a machine; ``submissions`` is the folder for the files of a
    scheduler."""
    if machine.scheduler == "slurm":
        from seatrial.backends.slurm import SlurmBackend

        return SlurmBackend(machine, submissions)
    if machine.scheduler == "pbs":
        from seatrial.backends.pbs import PbsBackend

        return PbsBackend(machine, submissions)
    from seatrial.backends.local import LocalBackend
    from seatrial.runs.environment import inherited

    node = machine.nodes[0]
    return LocalBackend(node.cores, inherited(machine), node.gpus, submissions)
