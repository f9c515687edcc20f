"""The outages of a scheduler's commands, each reported once.

outages.failed("squeue", "squeue failed: ...; waiting")     # reports, unless it has already
outages.answered("squeue")                                  # reports after a calm minute
"""

import asyncio
from collections.abc import Callable

from seatrial.backends.protocol import Trouble

CALM_SECONDS = 60.0


class CommandOutages:
    """Reports the outage of a command once, whatever the command says each time, until it is over:
    the command has answered and then not failed for ``CALM_SECONDS``. So a command that fails now
    and then is one outage. Used within an event loop."""

    def __init__(self, report: Callable[[Trouble], None]) -> None:
        self.scheduler = "Slurm"
        self._report = report
        self._reported: set[str] = set()
        self._ending: dict[str, asyncio.TimerHandle] = {}

    def failed(self, command: str, text: str) -> None:
        """Record that a command gave no reliable answer."""
        if ending := self._ending.pop(command, None):
            ending.cancel()
        if command not in self._reported:
            self._reported.add(command)
            self._report(Trouble(f"{self.scheduler}: {text}", command))

    def answered(self, command: str) -> None:
        """Record that a command answered."""
        if command in self._reported and command not in self._ending:
            loop = asyncio.get_running_loop()
            self._ending[command] = loop.call_later(CALM_SECONDS, self._end, command)

    def recovered(self) -> list[Trouble]:
        """Return the ends of outages whose commands answer and are not calm yet: at the end of a
        trial nobody waits for that."""
        for ending in self._ending.values():
            ending.cancel()
        return [self._over(command) for command in list(self._ending)]

    def _end(self, command: str) -> None:
        self._report(self._over(command))

    def _over(self, command: str) -> Trouble:
        del self._ending[command]
        self._reported.discard(command)
        but = f"; {', '.join(sorted(self._reported))} not yet" if self._reported else ""
        return Trouble(f"{self.scheduler}: {command} answers again{but}", command, over=True)
