"""The backend that a machine asks for."""

from __future__ import annotations

from pathlib import Path

from seatrial.backends.protocol import Backend
from seatrial.machine.model import Machine


def choose_backend(machine: Machine, submissions: Path) -> Backend:
    """Local or Slurm; ``submissions`` is where a scheduler's own files go."""
    if machine.scheduler == "slurm":
        from seatrial.backends.slurm import SlurmBackend

        return SlurmBackend(machine, submissions)
    from seatrial.backends.local import LocalBackend

    return LocalBackend(machine.nodes[0].cores)
