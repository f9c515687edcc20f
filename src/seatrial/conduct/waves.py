"""The demand of ``isolated_then_full``: each application alone, then as many copies as fit.

The runs come in waves. A wave starts when nothing else is in flight: first each case alone, as
often as its part says, then waves of as many copies as fit on the machine or as its cap allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from seatrial.conduct.demand import Choice, Offer
from seatrial.conduct.flights import Flight
from seatrial.conduct.policy import Policy
from seatrial.suite.model import Case

ALONE, FULL = "alone", "full"


class Wave(NamedTuple):
    """Copies of one case that start together."""

    case: int
    stage: str
    copies: int


class Waves:
    """Goes through the waves in order; a case whose build failed has none."""

    def __init__(
        self, cases: Sequence[Case], policy: Policy, room: int, size: Callable[[int], int]
    ) -> None:
        self._waves: list[Wave] = []
        self._ready: set[int] = set()
        self._now = 0  # the wave that is under way
        self._launched = 0  # of its runs
        self._made_good: Counter[int] = Counter()
        self._flying = 0
        for number in range(len(cases)):
            entry = policy.entries[policy.entry_of[number]]
            copies = _copies(cases[number], policy, room, size(number), entry.most)
            self._waves += [Wave(number, ALONE, 1)] * entry.alone
            self._waves += [Wave(number, FULL, copies)] * entry.full
        self.wanted = sum(wave.copies for wave in self._waves)

    def __len__(self) -> int:
        wave = self._wave()
        return wave.copies - self._launched if wave and wave.case in self._ready else 0

    def runs_of(self, case: int) -> int:
        """How many runs of a case are wanted in all."""
        return sum(wave.copies for wave in self._waves if wave.case == case)

    def ready(self, case: int, runs: int) -> None:
        if case in self._ready:  # a run of the wave under way is made good
            self._launched -= runs
        self._ready.add(case)

    def drop(self, case: int) -> None:
        """A case cannot run."""
        self._waves = [w for i, w in enumerate(self._waves) if i < self._now or w.case != case]

    def launched(self, case: int, stage: str) -> None:
        if stage:
            self._launched += 1
            self._flying += 1

    def ended(self, flight: Flight, seconds: float, again: bool) -> None:
        if not flight.stage:
            return
        self._flying -= 1
        wave = self._wave()
        if not again and wave and self._launched >= wave.copies and not self._flying:
            self._now += 1
            self._launched = 0

    def choose(self, offer: Offer) -> Iterator[Choice]:
        wave = self._wave()
        if wave is None or wave.case not in self._ready:
            return
        for _ in range(wave.copies - self._launched):
            choice = offer.take(wave.case, wave.stage)
            if choice is None:
                return
            yield choice

    def _wave(self) -> Wave | None:
        return self._waves[self._now] if self._now < len(self._waves) else None


def _copies(case: Case, policy: Policy, room: int, size: int, most: int) -> int:
    """As many as fit, or as the caps allow."""
    fit = room // size if room else policy.nodes // case.nodes
    caps = [fit, most, policy.caps.machine]
    return max(1, min(cap for cap in caps if cap)) if any(caps) else 1
