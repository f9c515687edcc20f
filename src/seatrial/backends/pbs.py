"""The backend for OpenPBS and PBS Pro: batch.py with the commands of PBS."""

from __future__ import annotations

from pathlib import Path

from seatrial.backends.batch import BatchBackend, require_programs
from seatrial.backends.pbs_client import PbsClient
from seatrial.machine.model import Machine


def require_commands() -> None:
    """Raise BackendError where this host does not have the commands of PBS."""
    require_programs("PBS", "qsub", "qstat", "qselect", "qdel", "pbsnodes")


class PbsBackend(BatchBackend):
    """Runs jobs through PBS."""

    def __init__(self, machine: Machine, submissions: Path) -> None:
        super().__init__(machine, machine.pbs, PbsClient, submissions)

    async def open(self) -> None:
        require_commands()
        await super().open()
