"""Watchdogs: conditions of which people are alerted.

Each looks at the fold of events and at the time, and returns alerts with the time from which they
hold. The same alert is raised again only after a while; an alert is itself an event.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import NamedTuple

from msgspec import Struct

from seatrial.conduct.admission import Shape
from seatrial.conduct.expected_runs import expected_runs
from seatrial.conduct.policy import Policy
from seatrial.suite.model import Case
from seatrial.units import SECOND_NS, count, ns, show_seconds


class PendingAlert(Struct, frozen=True):
    """An alert to raise from ``time`` (ns) on, if nothing changes before. ``says`` is its text, or
    makes it when it is raised."""

    time: int
    kind: str
    subject: str
    says: str | Callable[[], str]

    def text(self) -> str:
        return self.says if isinstance(self.says, str) else self.says()


class Due(NamedTuple):
    """When people are told that an entry is short: fewer than ``least`` of its ``expected`` runs
    are in flight for longer than the policy's ``short_for`` and ``gap`` (ns)."""

    expected: int
    least: int
    gap: int = 0


def dues_of(cases: Sequence[Case], shapes: Sequence[Shape], policy: Policy, room: int) -> list[Due]:
    """Return what each entry is due. Of an entry with copies all must be in flight. Of one with a
    part of the machine a single run is enough, as others may have their turn; where its part holds
    less than two runs, gaps of two walltimes over that number are usual. ``room`` is the cores of a
    shared node, 0 where there is none."""
    entries = policy.entries
    widest, walltime = [1] * len(entries), [0.0] * len(entries)
    for case, shape in zip(cases, shapes, strict=True):
        widest[shape.entry] = max(widest[shape.entry], shape.width)
        walltime[shape.entry] = max(walltime[shape.entry], case.walltime)
    dues = []
    for number, (runs, share) in enumerate(expected_runs(policy, widest, room or policy.nodes)):
        if entries[number].copies:
            dues.append(Due(runs, runs))
        else:
            gap = 2 * walltime[number] / share if 0 < share < 2 else 0.0
            dues.append(Due(runs, min(runs, 1), ns(gap)))
    return dues


class Watchdogs:
    """The state of the watchdogs. Times in ns; ``due`` has what each entry is due to have in
    flight; the queued runs are kept oldest first."""

    def __init__(self, policy: Policy, due: Sequence[Due]) -> None:
        self._follow(policy, due)
        self._short_since: dict[int, int] = {}  # entry -> time since which it is short
        self._told: dict[tuple[str, str], int] = {}
        self.untold: dict[tuple[str, str], str] = {}  # alerts that are raised once
        self.latest = 0  # the time at which something happened to a run or a build
        self._queue: dict[str, tuple[int, int]] = {}  # run -> (time queued, entry)
        self._waits = 0  # ns, of the runs that started
        self._started = 0

    def _follow(self, policy: Policy, due: Sequence[Due]) -> None:
        self._policy = policy
        self._watch = policy.watch
        self._due = due
        self._short_for, self.silent_for = ns(self._watch.short_for), ns(self._watch.silent_for)
        self._again, self._wait_least = ns(self._watch.again), ns(self._watch.wait_least)

    # ---- events in ------------------------------------------------------------------------

    def change(
        self, policy: Policy, due: Sequence[Due], in_flight: Sequence[int], time: int
    ) -> None:
        """Follow another policy: entries that are short by it are short from now."""
        self._follow(policy, due)
        for entry, runs in enumerate(in_flight):
            if runs >= due[entry].least:
                self._short_since.pop(entry, None)
            else:
                self._short_since.setdefault(entry, time)

    def start(self, time: int, in_flight: Sequence[int]) -> None:
        """Record that the trial starts or is resumed: entries that are short are short from now."""
        self.latest = max(self.latest, time)
        for entry, runs in enumerate(in_flight):
            self.restart(entry, runs, time)

    def restart(self, entry: int, in_flight: int, time: int) -> None:
        """Count from now how long an entry is short."""
        self._short_since.pop(entry, None)
        self.count(entry, in_flight, time)

    def count(self, entry: int, in_flight: int, time: int) -> None:
        """Record the number of runs in flight of an entry."""
        if in_flight < self._due[entry].least:
            self._short_since.setdefault(entry, time)
        elif self._short_since:
            self._short_since.pop(entry, None)

    def queued(self, run_id: str, entry: int, time: int) -> bool:
        """Record that a run waits at the scheduler. Returns whether it has waited longest."""
        if not self._watch.wait_factor:
            return False
        self._queue[run_id] = (time, entry)
        return len(self._queue) == 1

    def unqueued(self, run_id: str, time: int, started: bool) -> None:
        """Record that a queued run has started, or ended before it started."""
        since = self._queue.pop(run_id, None) if self._queue else None
        if since is not None and started:
            self._waits += max(0, time - since[0])
            self._started += 1

    def tell_once(self, kind: str, subject: str, text: str) -> None:
        """Raise an alert one time only."""
        self.untold[kind, subject] = text

    def told(self, kind: str, subject: str, time: int) -> None:
        """Record that an alert was raised."""
        if self.untold.pop((kind, subject), None) is None:
            self._told[kind, subject] = time

    # ---- findings out ---------------------------------------------------------------------

    def once(self) -> list[PendingAlert]:
        """Return the alerts that are raised one time only, and have not been."""
        told = self.untold.items()
        return [PendingAlert(0, kind, subject, text) for (kind, subject), text in told]

    @property
    def any_short(self) -> bool:
        """Whether an entry has too few runs in flight."""
        return bool(self._short_since) and self._short_for > 0

    def short(
        self,
        in_flight: Sequence[int],
        stopped: Collection[int],
        quiet: Callable[[int], Collection[tuple[int, int]]],
    ) -> list[PendingAlert]:
        """Return alerts for tests that have too few runs in flight. ``quiet`` returns the times in
        which an entry must not run: it is short from the end of these."""
        found: list[PendingAlert] = []
        for number, since in sorted(self._short_since.items()):
            if number not in stopped:
                span = self._short_for + self._due[number].gap
                name = self._policy.entries[number].name
                says = partial(self._short_text, number, in_flight[number], span)
                found.append(self.pending("short", name, says, _after(since, span, quiet(number))))
        return found

    def _short_text(self, number: int, in_flight: int, span: int) -> str:
        name, expected = self._policy.entries[number].name, self._due[number].expected
        span_text = show_seconds(span / SECOND_NS)
        return f"{name}: {in_flight} in flight instead of {expected} for more than {span_text}"

    def silent(
        self,
        runs: int,
        builds: int,
        quiet: Collection[tuple[int, int]],
        why: Callable[[], str] | None = None,
    ) -> PendingAlert | None:
        """Return an alert if nothing has happened for long, though runs or builds are under way.
        With ``why``: though runs are wanted; it returns what holds them back."""
        if not self.silent_for or not (runs or builds or why):
            return None
        says = partial(self._idle_text, why) if why else partial(self._silent_text, runs, builds)
        return self.pending("silent", "", says, _after(self.latest, self.silent_for, quiet))

    def _idle_text(self, why: Callable[[], str]) -> str:
        span = show_seconds(self._watch.silent_for)
        held = why() or "caps, or a lack of nodes, hold them back"
        return f"nothing has happened for {span}, though runs are wanted: {held}"

    def _silent_text(self, runs: int, builds: int) -> str:
        under_way = [count(runs, "run")] * (runs > 0) + [count(builds, "build")] * (builds > 0)
        span = show_seconds(self._watch.silent_for)
        verb = "is" if runs + builds == 1 else "are"
        return f"nothing has happened for {span}, though {' and '.join(under_way)} {verb} under way"

    def waiting(self, quiet: Collection[tuple[int, int]]) -> PendingAlert | None:
        """Return an alert if the oldest queued run has waited much longer than is usual."""
        if not self._started or not self._queue:
            return None
        run_id, (since, entry) = next(iter(self._queue.items()))
        usual = self._waits / self._started
        longest = max(round(usual * self._watch.wait_factor), self._wait_least)
        name = self._policy.entries[entry].name
        says = partial(self._wait_text, name, run_id, longest, usual)
        return self.pending("wait", name, says, _after(since, longest, quiet))

    def _wait_text(self, name: str, run_id: str, longest: int, usual: float) -> str:
        return (
            f"{name}: run {run_id} has waited in the queue for more "
            f"than {show_seconds(longest / SECOND_NS)}; usual is {show_seconds(usual / SECOND_NS)}"
        )

    def pending(
        self, kind: str, subject: str, says: str | Callable[[], str], time: int = 0
    ) -> PendingAlert:
        """Return an alert to raise from ``time`` on, or later if it was raised recently."""
        if self._told and (told := self._told.get((kind, subject))) is not None:
            time = max(time, told + self._again)
        return PendingAlert(time, kind, subject, says)


def _after(since: int, span: int, quiet: Collection[tuple[int, int]]) -> int:
    """Return the time at which a condition has held for ``span`` since ``since``, quiet times not
    counted."""
    if not quiet:
        return since + span
    for start, end in sorted(quiet):
        if start < since + span and since < end:
            since = end
    return since + span
