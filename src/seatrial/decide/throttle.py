"""Throttles: what holds starts back by a gauge of the machine.

    throttle = ThrottleState(rule)
    throttle.apply(reading)
    throttle.closed(now, since)

    limit = LoadLimit(throttle, entries)     # of a rule with a target
    limit.launch(run_id, entry); limit.started(run_id, time); limit.ended(run_id)
    limit.room(now, since)                   # what may be started besides

A rule with ``high`` and ``low`` has hysteresis: it closes above the one and opens below the other.
A rule with a ``target`` lets starts follow the load: a run starts where the latest reading, the
declared loads of all runs that the reading cannot show yet, and its own stay at or below it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from seatrial.decide.in_flight import RunInFlight
from seatrial.journal.events import GaugeRead, finite
from seatrial.model.policy import Entry, ThrottleRule
from seatrial.units import SECOND_NS, show_number, show_seconds

_ROUNDING = 1e-9  # loads are sums of floats


class ThrottleState:
    """The state of one throttle, a fold over the readings of its gauge."""

    def __init__(self, about: ThrottleRule, former: "ThrottleState | None" = None) -> None:
        """``former`` is the throttle by the same gauge that this one replaces."""
        self.about = about
        self._lowest, self._highest = about.lowest, about.highest
        self._stale_after = round(about.stale_after * SECOND_NS)
        self._closed: bool | None = None  # None before the first good reading
        self._read = 0  # time of the latest good reading
        self._began = 0  # when its command was started
        self.value: float | None = None  # the latest good reading
        self.failure = ""  # reason why the latest reading failed
        if former is not None:
            self._closed, self._read, self._began = former._closed, former._read, former._began
            self.value, self.failure = former.value, former.failure
            self._set()

    def apply(self, event: GaugeRead) -> None:
        """Record a reading of the gauge; a reading without a finite number is a failure."""
        value = finite(event.value)
        if value is None:
            self.failure = event.reason or "it gave no number"
            return
        self.failure = ""
        self._read = event.time
        self._began = event.time - round(max(0.0, event.seconds) * SECOND_NS)
        self.value = value
        self._set()

    def _set(self) -> None:
        """Close or open by the latest good reading."""
        value, about = self.value, self.about
        if value is None:
            return
        if about.target is not None:
            self._closed = value > about.target
        elif value > self._highest:
            self._closed = True
        elif value < self._lowest or self._closed is None:
            self._closed = False

    def closed(self, now: int, since: int) -> bool:
        """Return whether launches are held back, in a trial that last started or was resumed at
        ``since``."""
        if not self.is_known(now, since):
            return self.about.on_failure == "closed"
        return bool(self._closed)

    def is_known(self, now: int, since: int) -> bool:
        """Return whether the latest good reading counts. To one with a target, a reading from
        before a pause says nothing: nobody knows what was started meanwhile."""
        if self._closed is None or self.failing(now, since):
            return False
        return self.about.target is None or self._read >= since

    def failing(self, now: int, since: int) -> bool:
        """Return whether there has been no good reading for too long."""
        return now >= self.stale_at(since)

    def stale_at(self, since: int) -> int:
        """Return the time (ns) from which the latest good reading is too old. The gauge is not read
        while the trial is paused, so ``since`` counts if it is later."""
        return (self._read if self._read > since else since) + self._stale_after

    def shows(self, started: int | None) -> bool:
        """Return whether the latest reading has the load of a run whose job started then (ns; None:
        not yet): the reading began after that, and after the time that the run takes until its
        load is there."""
        if started is None or self.value is None:
            return False
        return started + round(self.about.settle * SECOND_NS) < self._began

    def trouble(self, now: int, since: int) -> str:
        """Return the alert about the gauge, "" if it works."""
        about, failing = self.about, self.failing(now, since)
        if not failing and not self.failure:
            return ""
        reason = self.failure or f"no reading for {show_seconds(about.stale_after)}"
        if failing or not self.is_known(now, since):
            follows = f"launches of what is not light are {about.on_failure} until it works"
        else:
            follows = f"what it said last holds for {show_seconds(about.stale_after)}"
        return f"gauge {about.gauge} fails: {reason}; {follows}"


# ---- targets -------------------------------------------------------------------------------------


def declared(entries: Sequence[Entry], gauge: str) -> list[float]:
    """Return what a run of each entry adds to the reading of a gauge, as its plan declares it."""
    return [entry.load_on(gauge) for entry in entries]


class LoadLimit:
    """The runs whose loads the latest reading of a throttle with a target cannot show, in the order
    of their launches: those that wait, that started since it, or that have not settled yet."""

    def __init__(self, throttle: ThrottleState, entries: Sequence[Entry]) -> None:
        self.throttle = throttle
        self.loads = declared(entries, throttle.about.gauge)
        self._light = [entry.io == "light" for entry in entries]
        self._runs: dict[str, tuple[int, int | None]] = {}  # entry, start of the job
        self._number = [0] * len(entries)  # of these runs, by entry
        self._shown: dict[str, int] = {}  # the entries of those that the reading shows
        self._others = throttle.value or 0.0  # what the reading has beside these

    def take_up(self, flights: Mapping[str, RunInFlight]) -> None:
        """Take the runs in flight for those that count, as a changed policy does."""
        for run_id, flight in flights.items():
            started = flight.job_started or flight.script_started
            if flight.has_job:
                self.launch(run_id, flight.entry)
                if started is not None:
                    self.started(run_id, started)
        self._look()

    def launch(self, run_id: str, entry: int) -> None:
        self._runs[run_id] = entry, None
        self._number[entry] += 1

    def started(self, run_id: str, time: int) -> None:
        if run_id in self._runs:
            self._runs[run_id] = self._runs[run_id][0], time

    def ended(self, run_id: str) -> None:
        self._shown.pop(run_id, None)
        self._drop(run_id)

    def _drop(self, run_id: str) -> int | None:
        entry, _ = self._runs.pop(run_id, (None, None))
        if entry is not None:
            self._number[entry] -= 1
        return entry

    def read(self) -> None:
        """Follow a reading that the throttle has applied."""
        self._look()
        own = math.fsum(self.loads[entry] for entry in self._shown.values())
        self._others = max(0.0, (self.throttle.value or 0.0) - own)

    def _look(self) -> None:
        """Find out which runs the latest reading shows."""
        shown = [run for run, (_, time) in self._runs.items() if self.throttle.shows(time)]
        for run_id in shown:
            if (entry := self._drop(run_id)) is not None:
                self._shown[run_id] = entry

    @property
    def since(self) -> float:
        """The declared load of these runs."""
        return math.fsum(
            number * load for number, load in zip(self._number, self.loads, strict=True)
        )

    def room(self, now: int, since: int) -> float:
        """Return what may be started besides: the target without the reading and the declared loads
        since; infinity where no reading counts, as then the throttle is open or closed."""
        throttle = self.throttle
        if throttle.value is None or not throttle.is_known(now, since):
            return math.inf
        assert throttle.about.target is not None
        return throttle.about.target - throttle.value - self.since

    def fits(self, entry: int, room: float) -> bool:
        """Return whether a run of an entry may start in this room. One with light I/O always
        may."""
        return self._light[entry] or fits_in(self.loads[entry], room)

    def will_fit(self, entry: int) -> bool:
        """Return whether a run of an entry would fit if it were the only one of the trial: by the
        latest reading without what the runs that it shows declare."""
        target = self.throttle.about.target or 0.0
        return self._light[entry] or fits_in(self.loads[entry], target - self._others)

    def excess(self, now: int, since: int) -> set[str]:
        """Return the runs that wait at the scheduler and no longer fit, as the reading has risen
        since they were launched: the latest of them."""
        room = self.room(now, since)
        if fits_in(0.0, room):
            return set()
        room += math.fsum(self.loads[entry] for entry in self._waiting().values())
        found = set()
        for run_id, entry in self._waiting().items():
            if fits_in(self.loads[entry], room):
                room -= self.loads[entry]
            elif self.loads[entry]:
                found.add(run_id)
        return found

    def _waiting(self) -> dict[str, int]:
        """Return the runs that wait at the scheduler, and can be held back, with their entries."""
        return {
            run_id: entry
            for run_id, (entry, started) in self._runs.items()
            if started is None and not self._light[entry]
        }


def fits_in(load: float, room: float) -> bool:
    """Return whether a load fits, within rounding."""
    return load <= room or math.isclose(load, room, rel_tol=_ROUNDING, abs_tol=_ROUNDING)


def sentence(state: ThrottleState, since: float) -> str:
    """Return how a throttle with a target stands, where ``since`` is the declared load of what the
    latest reading cannot show."""
    about = state.about
    assert about.target is not None
    shown = "no number yet" if state.value is None else f"{show_number(state.value)} read"
    return f"{shown}, {show_number(since)} started since; its target is {show_number(about.target)}"


def unseen(
    state: ThrottleState, loads: Sequence[float], runs: Iterable[tuple[int, int | None]]
) -> float:
    """Return the declared load of runs in flight (entry, start of the job in ns) that the latest
    reading cannot show."""
    return math.fsum(loads[entry] for entry, started in runs if not state.shows(started))
