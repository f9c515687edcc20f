"""Give each event's point a time of its own, close to that of the event.

    times = Moments()
    times.of(event)         # ns since the epoch

InfluxDB identifies a point by its tags and its time: a later point with the same ones replaces the
earlier. The run's id is not a tag, because that would make a series of every run, so times must
differ. The same journal must always give the same times, so that sending twice changes nothing.

- The driver's times never decrease in a journal. Their points have even nanoseconds; events of the
  same instant follow each other by 2 ns in the order of the journal.
- The two events that a job writes have the time of a compute node's clock, and are recorded after
  the job has ended. Their points keep the millisecond, which is more precise than such clocks
  agree; below it is an odd number that counts them. So two events of the same millisecond differ
  unless half a million others lie between them. So have the figures that a second judgement adds,
  which have the time of the run's verdict.
"""

from seatrial.journal.events import Event, JobsOwnEvent, MetricRecorded
from seatrial.units import SECOND_NS

_MILLISECOND = 1_000_000
_FAR = SECOND_NS  # a time further back than this is kept: the journal is out of order


class Moments:
    """The times of points. Pass it every event of a journal, in order, from the beginning."""

    def __init__(self) -> None:
        self._last = 0
        self._of_jobs = 0

    def of(self, event: Event) -> int:
        """Return the time of an event's point in ns since the epoch."""
        late = isinstance(event, MetricRecorded) and event.time <= self._last - _FAR
        if late or isinstance(event, JobsOwnEvent):
            place = 2 * self._of_jobs % _MILLISECOND + 1
            self._of_jobs += 1
            return event.time // _MILLISECOND * _MILLISECOND + place
        moment = event.time & ~1
        if self._last - _FAR < moment <= self._last:
            moment = self._last + 2
        self._last = moment
        return moment
