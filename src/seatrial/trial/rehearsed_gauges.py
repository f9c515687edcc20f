"""Gauges of a rehearsal: what they read is the load of a simulated file system."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from seatrial.trial.folder import Record
from seatrial.units import SECOND_NS, seconds

Load = Callable[[str, str], float]
"""The load of a file system's target, "" for its highest."""


class Reading(NamedTuple):
    """What was read, and when (ns)."""

    value: float
    time: int


class RehearsedGauge:
    """A gauge that a throttle is about. Times in ns."""

    def __init__(self, name: str, every: int, stale: int, what: str) -> None:
        self.name = name
        self.every = every
        self._fresh = stale // 2
        self._file_system, _, self._target = what.partition("/")
        self._noted: Reading | None = None

    def read(self, now: int, load: Load) -> float | None:
        """Its value now, to be noted; None where it is the one that was noted last, and that is
        still fresh when it is next read."""
        value = load(self._file_system, self._target)
        last = self._noted
        if last is not None and value == last.value and now - last.time + self.every < self._fresh:
            return None
        self._noted = Reading(value, now)
        return value


def gauges_of(record: Record) -> list[RehearsedGauge]:
    """The gauges of the trial's throttles that say what they read in a rehearsal."""
    found = []
    stale = {each.gauge: each.stale_after for each in record.policy.throttles}
    for name, after in stale.items():
        gauge = record.machine.gauges[name]
        if gauge.rehearsal:
            every = round(seconds(gauge.every) * SECOND_NS)
            found.append(RehearsedGauge(name, every, round(after * SECOND_NS), gauge.rehearsal))
    return found
