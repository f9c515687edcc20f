"""Watchdogs: what people must be told though nobody asked.

Each looks at the fold of what happened and at the time, and gives findings with the time from which
they hold. The same is not told again for a while; that it was told is an event, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from msgspec import Struct

from seatrial.conduct.admission import Shape
from seatrial.conduct.expected_runs import expected_runs
from seatrial.conduct.policy import Policy
from seatrial.suite.model import Case
from seatrial.units import SECOND_NS, count, show_seconds


class PendingAlert(Struct, frozen=True):
    """Something to tell from ``time`` on, if nothing changes. Its text is made when it is told: by
    ``say``, of what it is ``about``."""

    time: int
    kind: str
    subject: str
    say: Callable[..., str]
    about: tuple[object, ...]

    def text(self) -> str:
        return self.say(*self.about)


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
            dues.append(Due(runs, min(runs, 1), _ns(gap)))
    return dues


class Watchdogs:
    """What the watchdogs remember. Times in ns; ``due`` has what each entry is due to have in
    flight; the queued runs are kept oldest first."""

    def __init__(self, policy: Policy, due: Sequence[Due]) -> None:
        self._policy = policy
        self._watch = policy.watch
        self._due = due
        self._short_for, self.silent_for = _ns(self._watch.short_for), _ns(self._watch.silent_for)
        self._again, self._wait_least = _ns(self._watch.again), _ns(self._watch.wait_least)
        self._short_since: dict[int, int] = {}  # entry -> since when it is short
        self._told: dict[tuple[str, str], int] = {}
        self.untold: dict[tuple[str, str], str] = {}  # what is told one time only
        self._latest = 0
        self._queue: dict[str, tuple[int, int]] = {}  # run -> (when it was queued, entry)
        self._waits = 0  # ns, of those that started
        self._started = 0

    # ---- events in ------------------------------------------------------------------------

    def seen(self, time: int) -> None:
        """Something happened to a run or a build."""
        if time > self._latest:
            self._latest = time

    def start(self, time: int, in_flight: Sequence[int]) -> None:
        """The trial starts or goes on: what is short is so from here."""
        self.seen(time)
        for entry, runs in enumerate(in_flight):
            self.restart(entry, runs, time)

    def restart(self, entry: int, in_flight: int, time: int) -> None:
        """What an entry lacks, it lacks from now."""
        self._short_since.pop(entry, None)
        self.count(entry, in_flight, time)

    def count(self, entry: int, in_flight: int, time: int) -> None:
        """The number in flight of an entry has changed."""
        if in_flight < self._due[entry].least:
            self._short_since.setdefault(entry, time)
        elif self._short_since:
            self._short_since.pop(entry, None)

    def queued(self, run_id: str, entry: int, time: int) -> bool:
        """A run waits at the scheduler; whether it is the one that waits longest."""
        if not self._watch.wait_factor:
            return False
        self._queue[run_id] = (time, entry)
        return len(self._queue) == 1

    def unqueued(self, run_id: str, time: int, started: bool) -> None:
        """A queued run has started, or ended without that."""
        since = self._queue.pop(run_id, None) if self._queue else None
        if since is not None and started:
            self._waits += max(0, time - since[0])
            self._started += 1

    def tell_once(self, kind: str, subject: str, text: str) -> None:
        """Something is to be told, one time only."""
        self.untold[kind, subject] = text

    def told(self, kind: str, subject: str, time: int) -> None:
        if self.untold.pop((kind, subject), None) is None:
            self._told[kind, subject] = time

    # ---- findings out ---------------------------------------------------------------------

    def once(self) -> list[PendingAlert]:
        """What is told one time only, and was not yet."""
        told = self.untold.items()
        return [PendingAlert(0, kind, subject, str, (text,)) for (kind, subject), text in told]

    @property
    def any_short(self) -> bool:
        """Whether a test has too few in flight."""
        return bool(self._short_since) and self._short_for > 0

    def short(
        self,
        in_flight: Sequence[int],
        stopped: Collection[int],
        quiet: Callable[[int], Collection[tuple[int, int]]],
    ) -> list[PendingAlert]:
        """Tests that have too few in flight. ``quiet`` gives the times in which an entry may not
        run: it is short from their end."""
        found: list[PendingAlert] = []
        for number, since in sorted(self._short_since.items()):
            if number not in stopped:
                span = self._short_for + self._due[number].gap
                name = self._policy.entries[number].name
                time = self.later("short", name, _after(since, span, quiet(number)))
                about = number, in_flight[number], span
                found.append(PendingAlert(time, "short", name, self._short_text, about))
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
        """Nothing has happened for long, though something is under way or, with ``why``, though
        runs are wanted, which that holds back."""
        if not self.silent_for or not (runs or builds or why):
            return None
        time = self.later("silent", "", _after(self._latest, self.silent_for, quiet))
        if why is not None:
            return PendingAlert(time, "silent", "", self._idle_text, (why,))
        return PendingAlert(time, "silent", "", self._silent_text, (runs, builds))

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
        """The oldest queued run waits out of proportion."""
        if not self._started or not self._queue:
            return None
        run_id, (since, entry) = next(iter(self._queue.items()))
        usual = self._waits / self._started
        longest = max(round(usual * self._watch.wait_factor), self._wait_least)
        name = self._policy.entries[entry].name
        time = self.later("wait", name, _after(since, longest, quiet))
        return PendingAlert(time, "wait", name, self._wait_text, (entry, run_id, longest, usual))

    def _wait_text(self, entry: int, run_id: str, longest: int, usual: float) -> str:
        return (
            f"{self._policy.entries[entry].name}: run {run_id} has waited in the queue for more "
            f"than {show_seconds(longest / SECOND_NS)}; usual is {show_seconds(usual / SECOND_NS)}"
        )

    def later(self, kind: str, subject: str, time: int = 0) -> int:
        """When something is told that holds from ``time`` on: that was told before, after a while
        again."""
        if not self._told or (told := self._told.get((kind, subject))) is None:
            return time
        return max(time, told + self._again)


def _after(since: int, span: int, quiet: Collection[tuple[int, int]]) -> int:
    """When something has lasted for ``span`` since then, beside the quiet times."""
    if not quiet:
        return since + span
    for start, end in sorted(quiet):
        if start < since + span and since < end:
            since = end
    return since + span


def _ns(seconds: float) -> int:
    return round(seconds * SECOND_NS)
