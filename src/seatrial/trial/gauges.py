"""Reads the gauges of a trial's throttles and metadata targets, in the background."""

import asyncio
import contextlib
import math

from seatrial.conduct.policy import Policy
from seatrial.journal.events import GaugeRead
from seatrial.machine.model import Gauge, Machine
from seatrial.runs.shell import CommandResult, Shell
from seatrial.trial.tasks import Tasks

LONGEST_QUOTE = 60


class GaugeWatch:
    """Reads gauges of a machine, each at its interval."""

    def __init__(self, machine: Machine, tasks: Tasks) -> None:
        self._machine = machine
        self._tasks = tasks
        self._watched: set[str] = set()

    def watch(self, policy: Policy) -> None:
        """Start to read the gauges of a policy that are not read yet. Others are read on: a change
        of the policy may need them again."""
        for name in policy.gauges:
            if name not in self._watched:
                self._watched.add(name)
                self._tasks.spawn(_watch(name, self._machine.gauges.get(name), self._tasks))


async def _watch(name: str, gauge: Gauge | None, tasks: Tasks) -> None:
    if gauge is None:  # the description of the machine has changed
        tasks.put(GaugeRead(gauge=name, reason=f"the machine has no gauge {name}"))
        return
    shell = Shell(gauge.command, gauge.timeout.seconds)
    every = gauge.every.seconds
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        value, reason = reading_of(await shell.run())
        tasks.put(GaugeRead(gauge=name, value=value, reason=reason))
        await asyncio.sleep(max(0.0, began + every - loop.time()))


def reading_of(result: CommandResult) -> tuple[float | None, str]:
    """Return the number that a gauge printed, and ""; or None, and the reason."""
    if result.failure:
        return None, result.failure
    first = result.output.strip().partition("\n")[0].strip()
    with contextlib.suppress(ValueError):
        if math.isfinite(value := float(first)):
            return value, ""
    quoted = first[:LONGEST_QUOTE] + ("..." if len(first) > LONGEST_QUOTE else "")
    return None, f"it printed {quoted!r}, which is no number" if first else "it printed nothing"
