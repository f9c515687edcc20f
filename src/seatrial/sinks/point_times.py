"""When an event's point is: its own time, nudged so that no two points of a trial share one.

    times = Moments()
    times.of(event)         # ns since the epoch

InfluxDB knows a point by its tags and its time alone: of two that agree in both the later one
replaces the earlier. The run's id is no tag (it would make a series of every run), so the time must
tell events apart, and the same journal must always give the same times: sent twice is sent once.

- Times of the driver never go back in a journal. Their points have even nanoseconds, each later
  than the one before: events of one instant follow each other by 2 ns, in the journal's order.
- The two events that a job writes bear a compute node's clock, and come when the job has ended.
  Their points keep the millisecond, which is more than such clocks agree in; the rest of it is an
  odd number that counts them. Two of the same millisecond differ, but where half a million
  others lie between them.
"""

from __future__ import annotations

from seatrial.journal.events import Event, ScriptEnded, ScriptStarted
from seatrial.units import SECOND_NS

_MILLISECOND = 1_000_000
_FAR = SECOND_NS  # a time that is further back than this is no tie, but a journal out of order


class Moments:
    """Is given every event of a journal, in order and from its beginning."""

    def __init__(self) -> None:
        self._last = 0
        self._of_jobs = 0

    def of(self, event: Event) -> int:
        if isinstance(event, ScriptStarted | ScriptEnded):
            place = 2 * self._of_jobs % _MILLISECOND + 1
            self._of_jobs += 1
            return event.time // _MILLISECOND * _MILLISECOND + place
        moment = event.time & ~1
        if self._last - _FAR < moment <= self._last:
            moment = self._last + 2
        self._last = moment
        return moment
