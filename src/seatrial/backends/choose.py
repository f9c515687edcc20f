"""Choose the backend that a machine asks for, and import that one alone."""

from __future__ import annotations

from pathlib import Path

from seatrial.backends.protocol import Backend
from seatrial.machine.model import Machine


def require_scheduler(machine: Machine) -> None:
    """Raises BackendError where this host cannot hand anything to the machine's scheduler: before a
    trial is made. One that does not answer is told by the trial, and waited for."""
    if machine.scheduler == "slurm":
        from seatrial.backends.slurm import require_commands

        require_commands()


def choose_backend(machine: Machine, submissions: Path) -> Backend:
    """Local or Slurm; ``submissions`` is where a scheduler's own files go."""
    if machine.scheduler == "slurm":
        from seatrial.backends.slurm import SlurmBackend

        return SlurmBackend(machine, submissions)
    from seatrial.backends.local import LocalBackend

    return LocalBackend(machine.nodes[0].cores)
