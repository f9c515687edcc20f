"""The clock of a trial, which gives the times of its events.

    clock = TrialClock(last=0)          # tied to the wall clock, and not before ``last``
    clock.now()                         # ns since the epoch, by the uninterrupted clock
    clock.step()                        # ns by which the wall clock was set since; mostly 0

It is tied to the wall clock once, and then follows the time since boot (CLOCK_BOOTTIME), which
nobody can set. So durations are right, and a sustained trial ends when its time has passed,
whatever happens to the wall clock. A driver that goes on in the same boot keeps the tie of the one
before.
"""

import time
from pathlib import Path

from seatrial.journal.events import ClockStepped, Event, TrialOpened
from seatrial.units import SECOND_NS

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
SMALLEST_STEP_NS = 2 * SECOND_NS  # less is a clock that is being adjusted


def boot_id() -> str:
    """Return the id of this boot of the host; "" where the kernel tells none."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


def uptime_ns() -> int:
    """Return the time since boot, suspended time included."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def present(opened: TrialOpened | None) -> int:
    """Return the present in ns by the clock of a trial that was opened last in this boot; by the
    wall clock for any other."""
    if opened is None or not opened.boot or opened.boot != boot_id():
        return time.time_ns()
    return opened.time - opened.uptime + uptime_ns()


class TrialClock:
    """Gives times that never go back, and notices where the wall clock is set."""

    def __init__(self, last: int = 0) -> None:
        self._last = last
        self._wall = _wall_epoch()
        self._epoch = max(self._wall, last - uptime_ns())  # the time at which the host booted

    def go_on(self, boot: str, time_ns: int, uptime: int) -> None:
        """Keep the tie of an earlier process, if it was of this boot: at ``time_ns`` by its clock
        the host had been up for ``uptime`` ns."""
        if boot and boot == boot_id():
            self._epoch = max(time_ns - uptime, self._last - uptime_ns())
            self._wall = time_ns - uptime

    def note_step(self, step: int) -> None:
        """Take note of a step (ns) that an earlier process of this boot told."""
        self._wall += step

    def follow(self, event: Event) -> None:
        """Take from an event of the journal what it tells of the clock."""
        if isinstance(event, TrialOpened):
            self.go_on(event.boot, event.time, event.uptime)
        elif isinstance(event, ClockStepped):
            self.note_step(round(event.seconds * SECOND_NS))

    def now(self) -> int:
        """Return the time for the next event."""
        return self._epoch + uptime_ns()

    def step(self) -> int:
        """Return by how many ns the wall clock was set since a step was last returned: positive
        for forward, 0 where it was not."""
        wall = _wall_epoch()
        step = wall - self._wall
        if abs(step) < SMALLEST_STEP_NS:
            return 0
        self._wall = wall
        return step


def _wall_epoch() -> int:
    return time.time_ns() - uptime_ns()
