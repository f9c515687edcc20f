"""Which of Slurm's commands do not answer, as people are told it.

troubles.failed("squeue", "squeue failed: ...; waiting")     # told, unless squeue's is told already
troubles.answered("squeue")                                  # told when it is calm for a minute
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from seatrial.backends.protocol import Trouble

CALM_SECONDS = 60.0


class SlurmOutages:
    """The trouble with a command is told once, whatever it says each time, until it is over: when
    the command has answered and has not failed since for ``CALM_SECONDS``. So a command that comes
    and goes is told as one trouble. To be used in an event loop."""

    def __init__(self, report: Callable[[Trouble], None]) -> None:
        self._report = report
        self._told: set[str] = set()
        self._ending: dict[str, asyncio.TimerHandle] = {}

    def failed(self, command: str, text: str) -> None:
        """It gave no answer that can be relied on."""
        if ending := self._ending.pop(command, None):
            ending.cancel()
        if command not in self._told:
            self._told.add(command)
            self._report(Trouble(f"Slurm: {text}", command))

    def answered(self, command: str) -> None:
        if command in self._told and command not in self._ending:
            loop = asyncio.get_running_loop()
            self._ending[command] = loop.call_later(CALM_SECONDS, self._end, command)

    def _end(self, command: str) -> None:
        del self._ending[command]
        self._told.discard(command)
        but = f"; {', '.join(sorted(self._told))} not yet" if self._told else ""
        self._report(Trouble(f"Slurm: {command} answers again{but}", command, over=True))
