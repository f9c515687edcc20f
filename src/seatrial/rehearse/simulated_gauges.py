"""Gauges of a rehearsal: what they read is the load of a simulated file system."""

from collections.abc import Callable

from seatrial.conduct.targets import STALE_NS
from seatrial.trial.record import Record
from seatrial.units import ns, seconds

Load = Callable[[str, str], float]
"""The load of a file system's target, "" for its highest."""


class RehearsedGauge:
    """A gauge that a throttle is about. Times in ns. One of which the machine's file does not say
    ``what`` it reads is taken to read ``usual``."""

    def __init__(self, name: str, every: int, stale: int, what: str, usual: float) -> None:
        self.name = name
        self.every = every
        self._usual = None if what else usual
        self._fresh = stale // 2
        self._file_system, _, self._target = what.partition("/")
        self._noted: float | None = None  # the value that was noted last
        self._noted_at = 0

    def read(self, now: int, load: Load) -> float | None:
        """Its value now, to be noted; None where it is the one that was noted last, and that is
        still fresh when it is next read."""
        value = self._usual
        if value is None:
            value = load(self._file_system, self._target)
        if value == self._noted and now - self._noted_at + self.every < self._fresh:
            return None
        self._noted, self._noted_at = value, now
        return value


def gauges_of(record: Record) -> list[RehearsedGauge]:
    """The gauges of the trial's throttles and metadata targets. Those that do not say what they
    read in a rehearsal read what opens a throttle: of what they measure there is nothing in it."""
    found = []
    throttles = record.policy.throttles
    for name in dict.fromkeys(each.gauge for each in throttles):
        gauge = record.machine.gauges[name]
        mine = [each for each in throttles if each.gauge == name]
        every = ns(seconds(gauge.every))
        stale = ns(min(each.stale_after for each in mine))
        low = min(each.low for each in mine)
        found.append(RehearsedGauge(name, every, stale, gauge.rehearsal, low))
    of_throttles = {each.gauge for each in throttles}
    for name in record.policy.gauges:
        gauge = record.machine.gauges[name]
        if name not in of_throttles and gauge.rehearsal:
            found.append(
                RehearsedGauge(name, ns(seconds(gauge.every)), STALE_NS, gauge.rehearsal, 0.0)
            )
    return found


def remarks_on_gauges(record: Record) -> list[str]:
    """What people must know of gauges that read nothing in a rehearsal."""
    gauges = record.machine.gauges
    names = dict.fromkeys(each.gauge for each in record.policy.throttles)
    silent = [name for name in names if not gauges[name].rehearsal]
    if not silent:
        return []
    verb = "do" if len(silent) > 1 else "does"
    text = f"taken as open: throttles by {', '.join(silent)}, which {verb} not say in the "
    return [f"{text}machine's file (gauges: rehearsal) what to read in a rehearsal"]
