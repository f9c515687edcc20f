"""The backend for Slurm: batch.py with Slurm's commands."""

from __future__ import annotations

from pathlib import Path

from seatrial.backends.batch import BatchBackend, require_programs
from seatrial.backends.slurm_client import SlurmClient
from seatrial.machine.model import Machine


def require_commands() -> None:
    """Raise BackendError where this host does not have the commands of Slurm."""
    require_programs("Slurm", "sbatch", "squeue", "scancel", "scontrol")


class SlurmBackend(BatchBackend):
    """Runs jobs through Slurm."""

    def __init__(self, machine: Machine, submissions: Path) -> None:
        super().__init__(machine, machine.slurm, SlurmClient, submissions)

    async def open(self) -> None:
        require_commands()
        await super().open()
