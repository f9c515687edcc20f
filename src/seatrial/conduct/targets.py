"""Which metadata target a run is placed on."""

from __future__ import annotations

from seatrial.conduct.flights import Counts
from seatrial.conduct.policy import Caps, Entry, Placement, Target


class Targets:
    """The targets of each file system. ``round_robin`` takes turns, ``weighted`` as often as the
    weights say, ``least_loaded`` where the fewest files are open."""

    def __init__(self, targets: list[Target], placement: Placement, caps: Caps) -> None:
        self._placement = placement
        self._per_target = caps.per_target
        self._placed: dict[str, float] = {}  # runs placed, each counted as 1 / weight
        self._by_file_system: dict[str, list[Target]] = {}
        self._weights = {target.name: target.weight for target in targets}
        for target in targets:
            self._by_file_system.setdefault(target.file_system, []).append(target)

    def place(self, target: str) -> None:
        """A run was placed there."""
        weight = self._weights.get(target, 1.0) if self._placement == "weighted" else 1.0
        self._placed[target] = self._placed.get(target, 0.0) + 1 / weight

    def copy(self) -> Targets:
        """One to try things out on."""
        other = object.__new__(Targets)
        vars(other).update(vars(self))
        other._placed = self._placed.copy()
        return other

    def has(self, file_system: str) -> bool:
        return file_system in self._by_file_system

    def choose(self, entry: Entry, counts: Counts) -> str | None:
        """The target for a run, or None where none can take it now."""
        free = [
            target
            for target in self._by_file_system[entry.file_system]
            if self._can_take(target, entry, counts)
        ]
        if not free:
            return None
        return min(free, key=lambda target: self._order(target, counts)).name

    def _can_take(self, target: Target, entry: Entry, counts: Counts) -> bool:
        if self._per_target and counts.on_target[target.name] >= self._per_target:
            return False
        return not target.safe or counts.opens[target.name] + entry.opens <= target.safe

    def _order(self, target: Target, counts: Counts) -> float:
        if self._placement == "least_loaded":
            return counts.opens[target.name] / target.weight
        return self._placed.get(target.name, 0.0)
