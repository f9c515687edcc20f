"""Watchdogs: conditions of which people are alerted.

Each looks at the fold of events and at the time, and returns alerts with the time from which they
hold. The same alert is raised again only after a while; an alert is itself an event.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from msgspec import Struct

from seatrial.decide.in_flight import Requests, RunInFlight, expected_runs
from seatrial.model.policy import Policy, fitting
from seatrial.model.test import Case
from seatrial.units import SECOND_NS, count, ns, show_seconds

# ---- shortages -----------------------------------------------------------------------------------
#
# The tests that have too few runs in flight, and since when.
#
#     shortages = Shortages(dues, excused)
#     shortages.count(entry, in_flight, time)     # after each event that changes what is in flight
#     shortages.since                             # entry -> time (ns)
#
# Of a test with copies all are due. Of one with a part of the machine half of the runs that its
# part holds are due: others may have their turn. It is not short while that is normal for the mix,
# which ``excused`` says: its build goes on, a throttle or a person holds it back, one of its runs
# waits at the scheduler, or no nodes are free for it and none of the others was launched out of
# turn.


class Due(NamedTuple):
    """When people are told that an entry is short: fewer than ``least`` of its ``expected`` runs
    are in flight for longer than the policy's ``short_for`` and ``gap`` (ns)."""

    expected: int
    least: int
    gap: int = 0


def dues_of(cases: Sequence[Case], requests: Requests, policy: Policy, cores: int) -> list[Due]:
    """Return what each entry is due. Where the part of an entry holds less than two runs, gaps of
    two walltimes over that number are usual. ``cores`` is the cores of a shared node, 0 where there
    is none."""
    entries = policy.entries
    widest, walltime = [1] * len(entries), [0.0] * len(entries)
    fit = [0] * len(entries)  # the nodes that its cases can use
    for case, request in zip(cases, requests, strict=True):
        entry = request.entry
        widest[entry] = max(widest[entry], request.width)
        walltime[entry] = max(walltime[entry], case.walltime)
        fit[entry] = max(fit[entry], fitting(policy, request.unfit))
    dues = []
    for number, (runs, share) in enumerate(expected_runs(policy, widest, cores or policy.nodes)):
        if entries[number].copies:
            dues.append(Due(runs, runs))
            continue
        if not cores and 0 < fit[number] < policy.nodes:
            runs = min(runs, fit[number] // widest[number])
        gap = 2 * walltime[number] / share if 0 < share < 2 else 0.0
        dues.append(Due(runs, (runs + 1) // 2, ns(gap)))
    return dues


class Shortages:
    """``since`` has the time (ns) since which an entry is short, and may not be."""

    def __init__(self, dues: Sequence[Due], excused: Callable[[int, int], bool]) -> None:
        self._dues = dues
        self._excused = excused
        self.low: set[int] = set()  # entries with fewer runs than are due, excused or not
        self.passed_over: set[int] = set()
        self.since: dict[int, int] = {}

    def count(self, entry: int, in_flight: int, time: int) -> None:
        """Record the number of runs in flight of an entry."""
        if in_flight < self._dues[entry].least:
            self.low.add(entry)
        elif self.low:
            self.low.discard(entry)
            self.since.pop(entry, None)

    def look(self, time: int) -> bool:
        """Find out which entries are excused now. Returns whether one is no longer."""
        before = len(self.since)
        for entry in self.low:
            if self._excused(entry, time):
                before -= self.since.pop(entry, None) is not None
            else:
                self.since.setdefault(entry, time)
        return len(self.since) > before

    def change(self, dues: Sequence[Due], in_flight: Sequence[int], time: int) -> None:
        """Follow other dues: an entry that is short by both was short before, too."""
        self._dues = dues
        for entry, runs in enumerate(in_flight):
            self.count(entry, runs, time)
        self.look(time)

    def restart(self, entry: int, in_flight: int, time: int) -> None:
        """Count from now how long an entry is short."""
        self.since.pop(entry, None)
        self.count(entry, in_flight, time)
        self.look(time)


class RunTimes:
    """The time (ns) within which runs of an entry end: that of its longest run that passed, its
    longest walltime before one has."""

    def __init__(self, cases: Sequence[Case], requests: Requests, entries: int) -> None:
        self._walltime = [0] * entries
        for case, request in zip(cases, requests, strict=True):
            self._walltime[request.entry] = max(self._walltime[request.entry], ns(case.walltime))
        self._longest = [0] * entries

    def passed(self, flight: RunInFlight) -> None:
        """Record a run that passed."""
        time = ns(flight.seconds)
        if time > self._longest[flight.entry]:
            self._longest[flight.entry] = time

    def of(self, entry: int) -> int:
        return self._longest[entry] or self._walltime[entry]

    def next_end(self, runs: Iterable[RunInFlight], latest: int) -> int:
        """Return when a run should be over next, of those that should not have been at ``latest``;
        0: there is none."""
        ends = (run.job_started + self.of(run.entry) for run in runs if run.job_started)
        return min((end for end in ends if end > latest), default=0)

    def longest(self, runs: Iterable[RunInFlight]) -> int:
        """Return the longest time of the runs that have started."""
        return max((self.of(run.entry) for run in runs if run.job_started), default=0)


# ---- alerts --------------------------------------------------------------------------------------


STOPPED = "stopped"  # the kind of alert that is raised at once, and again while it holds


class PendingAlert(Struct, frozen=True):
    """An alert to raise from ``time`` (ns) on, if nothing changes before. ``says`` is its text, or
    makes it when it is raised."""

    time: int
    kind: str
    subject: str
    says: str | Callable[[], str]

    def text(self) -> str:
        return self.says if isinstance(self.says, str) else self.says()


class Watchdogs:
    """The state of the watchdogs. Times in ns; ``dues`` has what each entry is due to have in
    flight; the queued runs are kept oldest first."""

    def __init__(self, policy: Policy, dues: Sequence[Due]) -> None:
        self.change(policy, dues)
        self._told: dict[tuple[str, str], int] = {}
        self.untold: dict[tuple[str, str], str] = {}  # alerts that are raised once
        self.latest = 0  # the time at which something happened to a run or a build
        self._queue: dict[str, tuple[int, int]] = {}  # run -> (time queued, entry)
        self._waits = 0  # ns, of the runs that started
        self._started = 0

    # ---- events in ------------------------------------------------------------------------

    def change(self, policy: Policy, dues: Sequence[Due]) -> None:
        """Follow another policy; what was told and what waits stay."""
        self._policy = policy
        self._watch = policy.watch
        self._dues = dues
        self._short_for, self.silent_for = ns(self._watch.short_for), ns(self._watch.silent_for)
        self._again, self._wait_least = ns(self._watch.again), ns(self._watch.wait_least)

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
            if time > since[0]:
                self._waits += time - since[0]
            self._started += 1

    def tell_once(self, kind: str, subject: str, text: str) -> None:
        """Raise an alert one time only."""
        self.untold[kind, subject] = text

    def told(self, kind: str, subject: str, time: int) -> None:
        """Record that an alert was raised."""
        if self.untold.pop((kind, subject), None) is None or kind == STOPPED:
            self._told[kind, subject] = time

    # ---- findings out ---------------------------------------------------------------------

    def once(self) -> list[PendingAlert]:
        """Return the alerts that are raised one time only, and have not been."""
        untold = self.untold.items()
        return [PendingAlert(0, kind, subject, text) for (kind, subject), text in untold]

    def short(
        self,
        since: Mapping[int, int],
        in_flight: Sequence[int],
        stopped: Collection[int],
        quiet: Callable[[int], Collection[tuple[int, int]]],
    ) -> list[PendingAlert]:
        """Return alerts for tests that have too few runs in flight ``since`` a time. ``quiet``
        returns the times in which an entry must not run: it is short from the end of these."""
        alerts: list[PendingAlert] = []
        if not self._short_for:
            return alerts
        for number, start in sorted(since.items()):
            if number not in stopped:
                span = self._short_for + self._dues[number].gap
                name = self._policy.entries[number].name
                says = partial(self._short_text, number, in_flight[number], span)
                alerts.append(self.pending("short", name, says, _after(start, span, quiet(number))))
        return alerts

    def _short_text(self, number: int, in_flight: int, span: int) -> str:
        name, expected = self._policy.entries[number].name, self._dues[number].expected
        span_text = show_seconds(span / SECOND_NS)
        return f"{name}: {in_flight} in flight instead of {expected} for more than {span_text}"

    def silent(
        self,
        runs: int,
        quiet: Collection[tuple[int, int]],
        reason: Callable[[], str] | None = None,
        until: int = 0,
    ) -> PendingAlert | None:
        """Return an alert if nothing has happened for long, though runs are under way, the first of
        which should be over at ``until``. With ``reason``: though runs are wanted; it returns what
        holds them back."""
        if not self.silent_for or not (runs or reason):
            return None
        since = until if until > self.latest else self.latest
        time = _after(since, self.silent_for, quiet)
        says = partial(self._silent_text, time, runs, reason)
        return self.pending("silent", "", says, time)

    def _silent_text(self, time: int, runs: int, reason: Callable[[], str] | None) -> str:
        span = show_seconds((time - self.latest) / SECOND_NS)
        if reason is None:
            under_way = f"{count(runs, 'run')} {'is' if runs == 1 else 'are'} under way"
            return f"nothing has happened for {span}, though {under_way}"
        held = reason() or "caps, or a lack of nodes, hold them back"
        return f"nothing has happened for {span}, though runs are wanted: {held}"

    def waiting(
        self, now: int, quiet: Collection[tuple[int, int]], patience: Callable[[], int]
    ) -> list[PendingAlert]:
        """Return an alert for each test whose oldest queued run has waited much longer than is
        usual; the last may be to come. ``patience`` returns how long (ns) waits are normal while
        the nodes are taken."""
        alerts: list[PendingAlert] = []
        if not self._started or not self._queue:
            return alerts
        usual = self._waits / self._started
        longest = max(round(usual * self._watch.wait_factor), self._wait_least)
        seen: set[int] = set()
        for run_id, (since, entry) in self._queue.items():
            if entry in seen:
                continue
            seen.add(entry)
            if _after(since, longest, quiet) <= now and len(seen) == 1:
                longest = max(longest, patience())
            name = self._policy.entries[entry].name
            says = partial(self._wait_text, name, run_id, longest, usual)
            alerts.append(self.pending("wait", name, says, _after(since, longest, quiet)))
            if alerts[-1].time > now:
                break
        return alerts

    def _wait_text(self, name: str, run_id: str, longest: int, usual: float) -> str:
        return (
            f"{name}: run {run_id} has waited in the queue for more "
            f"than {show_seconds(longest / SECOND_NS)}; usual is {show_seconds(usual / SECOND_NS)}"
        )

    def still_stopped(self, number: int, since: int, reason: str) -> PendingAlert:
        """Return an alert for a test that was stopped ``since`` a time, which was told at once."""
        name = self._policy.entries[number].name
        remedy = f"let it back in: `seatrial accept admit PLAN {name}`"
        says = f"{name} is still stopped: {reason}; {remedy}"
        return self.pending(STOPPED, name, says, since + self._again)

    def pending(
        self, kind: str, subject: str, says: str | Callable[[], str], time: int = 0
    ) -> PendingAlert:
        """Return an alert to raise from ``time`` on, or later if it was raised recently."""
        if self._told and (last := self._told.get((kind, subject))) is not None:
            time = max(time, last + self._again)
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
