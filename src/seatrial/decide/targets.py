"""Chooses the metadata target of a run."""

import math
from collections.abc import Iterator
from copy import copy
from typing import NamedTuple

from seatrial.decide.in_flight import InFlightCounts
from seatrial.journal.events import GaugeRead, finite
from seatrial.model.policy import Caps, Entry, Placement, PolicyTarget
from seatrial.units import SECOND_NS

STALE_NS = 600 * SECOND_NS
_ROUNDING = 1 + 1e-9  # loads are sums of floats
_LAST = (math.inf, 0.0, 0.0)


class TargetReading(NamedTuple):
    """The load of a target as a gauge read it at a time (ns), and the open files of the runs that
    were placed since."""

    time: int
    load: float
    placed: float = 0.0


class Targets:
    """The targets of each file system. ``round_robin`` takes turns, ``weighted`` takes turns in
    proportion to the weights, ``least_loaded`` takes the target with the fewest open files: by
    what the gauges of the targets read, with those of the runs that were placed since; where a
    target of the file system has no fresh reading, by the runs in flight alone.

    Turns are those of start-time fair queueing (Goyal, Vin and Cheng 1996): each target has the
    time of its next turn, which a placement delays by 1 / weight. A target that was full for long
    does not get the turns that it missed, as all runs would then go there at once.
    """

    def __init__(self, targets: list[PolicyTarget], placement: Placement, caps: Caps) -> None:
        self._placement = placement
        self._per_target = caps.per_target
        self._targets = {target.name: target for target in targets}
        self._have_gauges = any(target.gauge for target in targets)
        self._turn = dict.fromkeys(self._targets, 0.0)
        self._time: dict[str, float] = {}  # turn of the latest placement, by file system
        self._measured: dict[str, TargetReading] = {}
        self._by_file_system: dict[str, list[PolicyTarget]] = {}
        for target in targets:
            self._by_file_system.setdefault(target.file_system, []).append(target)
        self._names = {
            name: {target.name for target in members}
            for name, members in self._by_file_system.items()
        }

    def changed(self, targets: list[PolicyTarget], placement: Placement, caps: Caps) -> "Targets":
        """Return the targets by another policy; turns that were taken stay."""
        other = Targets(targets, placement, caps)
        other._turn |= {name: turn for name, turn in self._turn.items() if name in other._turn}
        other._time = self._time.copy()
        other._measured = {name: x for name, x in self._measured.items() if name in other._turn}
        return other

    def read(self, event: GaugeRead) -> None:
        """Record the reading of a gauge. One that failed, or is old, does not count."""
        if not self._have_gauges:
            return
        value = finite(event.value)
        for name, target in self._targets.items():
            if target.gauge == event.gauge:
                self._measured.pop(name, None)
                if value is not None:
                    self._measured[name] = TargetReading(event.time, value)
        oldest = event.time - STALE_NS
        self._measured = {name: x for name, x in self._measured.items() if x.time >= oldest}

    def forget(self) -> None:
        """Record that nobody read the gauges for a while."""
        self._measured.clear()

    def place(self, name: str, opens: float = 0.0) -> None:
        """Record that a run with so many open files was placed on a target."""
        target = self._targets.get(name)
        if target is not None:
            if (known := self._measured.get(name)) is not None:
                self._measured[name] = known._replace(placed=known.placed + opens)
            turn, latest = self._turn[name], self._time.get(target.file_system, 0.0)
            turn = self._time[target.file_system] = turn if turn > latest else latest
            weight = target.weight if self._placement == "weighted" else 1.0
            self._turn[name] = turn + 1 / weight

    def copy(self) -> "Targets":
        """Return a copy to try placements on."""
        other = copy(self)
        other._turn, other._time = self._turn.copy(), self._time.copy()
        other._measured = self._measured.copy()
        return other

    def has(self, file_system: str) -> bool:
        return file_system in self._by_file_system

    def has_place(self, entry: Entry, counts: InFlightCounts) -> bool:
        """Return whether a target can take a run of an entry now."""
        return next(self._open(entry, counts), None) is not None

    def _open(self, entry: Entry, counts: InFlightCounts) -> Iterator[PolicyTarget]:
        """Yield the targets that can take a run of an entry now."""
        most, on_target, opens = self._per_target, counts.on_target, counts.opens
        for target in self._by_file_system[entry.file_system]:
            name, safe = target.name, target.safe
            if most and on_target.get(name, 0) >= most:
                continue
            if not safe or opens.get(name, 0.0) + entry.opens <= safe * _ROUNDING:
                yield target

    def choose(self, entry: Entry, counts: InFlightCounts) -> str | None:
        """Return the target for a run of an entry; None where none can take it now."""
        least_loaded, measured = self._placement == "least_loaded", self._measured
        opens, on_target, turns = counts.opens, counts.on_target, self._turn
        latest = self._time.get(entry.file_system, 0.0)
        chosen, first = None, _LAST
        by_gauge = least_loaded and measured.keys() >= self._names[entry.file_system]
        for target in self._open(entry, counts):
            name, weight = target.name, target.weight
            turn = turns[name] if turns[name] > latest else latest
            if least_loaded:
                load = sum(measured[name][1:]) if by_gauge else opens.get(name, 0.0)
                order = load / weight, on_target.get(name, 0) / weight, turn
            else:
                order = 0.0, 0.0, turn
            if order < first:
                chosen, first = name, order
        return chosen
