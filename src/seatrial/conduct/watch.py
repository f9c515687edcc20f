"""Watchdogs: what people must be told though nobody asked.

Each looks at the fold of what happened and at the time, and gives alerts with the time from which
they hold. The same is not told again for a while; that it was told is an event, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from seatrial.conduct.policy import Policy
from seatrial.units import SECOND_NS, show_seconds


class Finding(NamedTuple):
    """Something to tell from ``time`` on, if nothing changes."""

    time: int
    kind: str
    subject: str
    text: str


class Watchdogs:
    """What the watchdogs remember. Times in ns; ``queue`` are the queued runs, oldest first."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._watch = policy.watch
        self._short_since: list[int | None] = [None] * len(policy.entries)
        self._told: dict[tuple[str, str], int] = {}
        self._latest = 0
        self._queue: dict[str, tuple[int, int]] = {}  # run -> (when it was queued, entry)
        self._waits = 0  # ns, of those that started
        self._started = 0

    # ---- events in ------------------------------------------------------------------------

    def seen(self, time: int) -> None:
        """Something happened to a run or a build."""
        self._latest = max(self._latest, time)

    def start(self, time: int) -> None:
        """The trial starts or goes on: what was short before is counted from here."""
        self.seen(time)
        self._short_since = [
            time if self._expected(number) else None for number in range(len(self._short_since))
        ]

    def count(self, entry: int, in_flight: int, time: int) -> None:
        """The number in flight of an entry has changed."""
        if in_flight >= self._expected(entry):
            self._short_since[entry] = None
        elif self._short_since[entry] is None:
            self._short_since[entry] = time

    def queued(self, run_id: str, entry: int, time: int) -> None:
        self._queue[run_id] = (time, entry)

    def unqueued(self, run_id: str, time: int, started: bool) -> None:
        """A queued run has started, or ended without that."""
        since = self._queue.pop(run_id, None)
        if since is not None and started:
            self._waits += max(0, time - since[0])
            self._started += 1

    def told(self, kind: str, subject: str, time: int) -> None:
        self._told[kind, subject] = time

    # ---- findings out ---------------------------------------------------------------------

    def findings(self, in_flight: list[int], stopped: dict[int, str]) -> Iterator[Finding]:
        """All that is or will be to tell if nothing changes."""
        yield from self._short(in_flight, stopped)
        if self._watch.silent_for and any(in_flight):
            span = show_seconds(self._watch.silent_for)
            text = f"nothing has happened for {span}, though {sum(in_flight)} runs are in flight"
            yield self._again("silent", "", text, self._latest + _ns(self._watch.silent_for))
        yield from self._waiting()

    def due(self, finding: Finding, now: int) -> bool:
        return finding.time <= now

    def _short(self, in_flight: list[int], stopped: dict[int, str]) -> Iterator[Finding]:
        if not self._watch.short_for:
            return
        span = show_seconds(self._watch.short_for)
        for number, since in enumerate(self._short_since):
            if since is None or number in stopped:
                continue
            name = self._policy.entries[number].name
            text = (
                f"{name}: {in_flight[number]} in flight instead of {self._expected(number)} "
                f"for more than {span}"
            )
            yield self._again("short", name, text, since + _ns(self._watch.short_for))

    def _waiting(self) -> Iterator[Finding]:
        """The oldest queued run waits out of proportion."""
        if not self._watch.wait_factor or not self._queue or not self._started:
            return
        run_id, (since, entry) = next(iter(self._queue.items()))
        usual = self._waits / self._started
        longest = max(usual * self._watch.wait_factor, _ns(self._watch.wait_least))
        name = self._policy.entries[entry].name
        text = (
            f"{name}: run {run_id} has waited in the queue for more than "
            f"{show_seconds(longest / SECOND_NS)}; usual is {show_seconds(usual / SECOND_NS)}"
        )
        yield self._again("wait", name, text, since + round(longest))

    def _again(self, kind: str, subject: str, text: str, time: int) -> Finding:
        """Told from ``time`` on, but not sooner than a while after it was told."""
        told = self._told.get((kind, subject))
        later = time if told is None else max(time, told + _ns(self._watch.again))
        return Finding(later, kind, subject, text)

    def once(self, kind: str, subject: str, text: str) -> Iterator[Finding]:
        """Told one time only."""
        if (kind, subject) not in self._told:
            yield Finding(0, kind, subject, text)

    def repeatedly(self, kind: str, subject: str, text: str) -> Finding:
        """Told at once, and again after a while as long as it holds."""
        return self._again(kind, subject, text, 0)

    def _expected(self, entry: int) -> int:
        """How many of an entry are to be in flight at any time."""
        about = self._policy.entries[entry]
        if self._policy.kind != "sustained":
            return 0
        return about.copies or (1 if about.weight > 0 else 0)


def _ns(seconds: float) -> int:
    return round(seconds * SECOND_NS)
