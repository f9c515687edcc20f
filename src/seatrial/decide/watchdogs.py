"""Watchdogs: conditions of which people are alerted.

Each looks at the fold of events and at the time, and returns alerts with the time from which they
hold. The same alert is raised again only after a while; an alert is itself an event.
"""

import math
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct

from seatrial.decide.in_flight import Requests, RunInFlight, expected_runs
from seatrial.model import codes
from seatrial.model.codes import code_of
from seatrial.model.node_set import fold, unfold_or_empty
from seatrial.model.policy import Policy, WatchLimits, fitting
from seatrial.model.test import Case
from seatrial.units import SECOND_NS, count, ns, show_seconds, show_share

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


class Due(Struct, frozen=True):
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


# ---- failing more often than is usual ------------------------------------------------------------
#
# Tests, nodes or whole trials that fail more often than is usual.
#
#     watch = FailureWatch(["cm4", "ufs"], nodes=1920)
#     watch.started("k3v9", entry=0)                            # in the order of the starts
#     watch.ended("k3v9", entry=0, code=FAILED.number, nodes="n[1-48]", reason="exit code 3")
#     watch.subjects((), ())                                    # subject -> text of the alert
#
# The runs of a test are taken in the order in which they started, as runs that fail often end
# early. Of the latest runs those that go on count as right. Let k of the latest n have ended badly,
# and s of the m before them. If a test goes on as before, the number of bad ones of n has the
# beta-binomial distribution with the parameters a + s and b + m - s, where the prior Beta(a, b)
# stands for a test of which nothing is known (Gelman et al., Bayesian Data Analysis, 2013, section
# 2.4). People are alerted if the chance of k or more is less than ``UNLIKELY``, for any n up to
# ``WINDOW``, of all causes together or of one. The bound is far below 0.001, as it is looked at
# after each bad end: docs/explanations/quality.md has the rate of false alarms. A stretch in which
# a test failed does not become what is usual.


UNLIKELY = 3e-7
WINDOW = 64  # runs; the latest ones, among which a change is looked for
MIN_BAD = 4
UNLIKELY_LAUNCHES = 1e-5  # that fail hardly ever, so that it is hardly ever looked at
MIN_LAUNCHES = 2
RECENT = 16  # runs; where these are as usual, a test fails no more
USUAL_AGAIN = 0.05
ANY = (2.0, 38.0)  # the prior of bad ends of all causes: 5 %, worth 40 runs
ONE = (1.0, 49.0)  # of one cause: 2 %, worth 50 runs
LAUNCHES = (0.5, 499.5)  # of failed launches: 0.1 %, worth 500 runs
MOST_OF_ONE = 0.75  # of the bad ends of all tests, at most, are of one test: else that one fails
MAX_NODES = 16  # of a run that speaks against each of its nodes; larger: see `seatrial suspects`
ELSEWHERE = 32  # runs of a test by which a failure on a node is judged
_PASS = codes.PASS.number
_LAUNCH = codes.LAUNCH_FAILED.number
_NOT_COUNTED = codes.UNCOUNTED | codes.CUT_OFF | {codes.GIVEN.number}


def is_watched(watch: WatchLimits) -> bool:
    """Return whether people are alerted of what fails: where any watch is on, unless the plan says
    otherwise."""
    if watch.failing is not None:
        return watch.failing
    return bool(watch.short_for or watch.silent_for or watch.wait_factor)


def chance(
    bad: int, runs: int, before: tuple[int, int], prior: tuple[float, float], enough: float = 1.0
) -> float:
    """Return the probability that ``bad`` or more of so many runs end badly, if as many do as
    ``before`` (bad ones, runs). Of one above ``enough`` a part above it is returned."""
    a, b = prior[0] + before[0], prior[1] + before[1] - before[0]
    term = math.exp(
        math.lgamma(runs + 1)
        - math.lgamma(bad + 1)
        - math.lgamma(runs - bad + 1)
        + math.lgamma(a + bad)
        + math.lgamma(b + runs - bad)
        - math.lgamma(a + b + runs)
        + math.lgamma(a + b)
        - math.lgamma(a)
        - math.lgamma(b)
    )
    total = 0.0
    for k in range(bad, runs + 1):
        total += term
        if total > enough:
            break
        if k < runs:
            term *= (runs - k) / (k + 1) * (a + k) / (b + runs - k - 1)
    return total


class StartedRun:
    """A run that started; ``code`` is its verdict, None while it has none."""

    __slots__ = ("code", "entry")

    def __init__(self, entry: int) -> None:
        self.entry = entry
        self.code: int | None = None


class FailingStretch(Struct, frozen=True):
    """Of the latest ``runs`` these ``bad`` ended badly; ``before`` are the number of bad ones of
    the runs before them and of all of these. ``level`` is the ``chance`` below which it is told."""

    bad: list[StartedRun]
    runs: int
    before: tuple[int, int]
    chance: float
    level: float

    @property
    def of_one(self) -> float:
        """The share of the test that has most of the bad runs."""
        return max(Counter(run.entry for run in self.bad).values()) / len(self.bad)


class BadEnds(Struct, frozen=True):
    """How bad ends of some kind are judged: the ``least`` number that is told, their ``prior``, and
    the ``level`` below which a chance is told."""

    least: int
    prior: tuple[float, float]
    level: float

    def unlikely(
        self, bad: Sequence[StartedRun], runs: int, before: tuple[int, int]
    ) -> Iterator[FailingStretch]:
        """Yield the stretch of these bad runs of so many, if it is to be told; ``before`` as in
        `FailingStretch`."""
        if len(bad) < self.least:
            return
        likely = chance(len(bad), runs, before, self.prior, self.level)
        if likely < self.level:
            yield FailingStretch(list(bad), runs, before, likely, self.level)


OF_ANY = BadEnds(MIN_BAD, ANY, UNLIKELY)
OF_ONE = BadEnds(MIN_BAD, ONE, UNLIKELY)
OF_LAUNCHES = BadEnds(MIN_LAUNCHES, LAUNCHES, UNLIKELY_LAUNCHES)


class LatestRuns:
    """The latest runs of a test, or of all, and what was usual before them. ``stretch`` is set
    while they fail."""

    def __init__(self) -> None:
        self.runs: deque[StartedRun] = deque()
        self.stretch: FailingStretch | None = None
        self.reason = ""  # of the latest bad end
        self._bad: Counter[int] = Counter()  # by code, of the runs before
        self._ended = 0

    def start(self, run: StartedRun, skip: Collection[int] = ()) -> None:
        """Add a run. What leaves the window is usual from now on, unless this or its test (one of
        the entries in ``skip``) fails."""
        self.runs.append(run)
        if len(self.runs) > WINDOW:
            first = self.runs.popleft()
            if self.stretch is None and first.code is not None and first.entry not in skip:
                self._ended += 1
                if first.code != _PASS:
                    self._bad[first.code] += 1

    def drop(self, run: StartedRun) -> None:
        """Leave out a run that says nothing of its test."""
        if run in self.runs:
            self.runs.remove(run)

    def look(
        self, code: int, reason: str, skip: Collection[int] = (), of_all: bool = False
    ) -> None:
        """Look at a bad end with this verdict; ``of_all``: what fails is no test alone."""
        self.reason = reason or self.reason
        stretches = self._stretches(code, skip)
        if of_all:
            stretches = (each for each in stretches if each.of_one <= MOST_OF_ONE)
        rarest = min(stretches, key=lambda each: each.chance / each.level, default=None)
        if rarest is not None:
            self.stretch = rarest

    def _stretches(self, code: int, skip: Collection[int]) -> Iterator[FailingStretch]:
        """Yield the stretches up to now that begin with a bad run, of all causes and of one, and
        are unlikely."""
        runs = [run for run in self.runs if run.entry not in skip]
        verdicts = [run.code for run in runs if run.code is not None]
        ended = self._ended + len(verdicts)
        all_bad = self._bad.total() + len(verdicts) - verdicts.count(_PASS)
        all_same = self._bad[code] + verdicts.count(code)
        bad: list[StartedRun] = []
        same: list[StartedRun] = []
        of_cause = OF_LAUNCHES if code == _LAUNCH else OF_ONE
        for number, run in enumerate(reversed(runs), 1):
            ended -= run.code is not None
            if run.code is None or run.code == _PASS:
                continue
            bad.append(run)
            yield from OF_ANY.unlikely(bad, number, (all_bad - len(bad), ended))
            if run.code == code:
                same.append(run)
                yield from of_cause.unlikely(same, number, (all_same - len(same), ended))

    def recover(self) -> None:
        """Forget the stretch if the latest runs are as usual again."""
        if self.stretch is None:
            return
        ended = [run for run in self.runs if run.code is not None][-RECENT:]
        bad = sum(run.code != _PASS for run in ended)
        before = self._bad.total(), self._ended
        if chance(bad, len(ended), before, ANY) > USUAL_AGAIN:
            self.stretch = None
            self.runs = deque(ended)


class NodeStreak(Struct, frozen=True):
    """The runs in a row that ended badly on a node: how many, and the logarithm of the chance of
    that, by what the same tests did elsewhere."""

    runs: int = 0
    log_chance: float = 0.0


class FailureWatch:
    """A fold over the starts and ends of runs. ``tests`` are the names of the entries; ``nodes`` is
    the number of nodes of the trial (0: unknown)."""

    def __init__(self, tests: Sequence[str], nodes: int, watched: bool = True) -> None:
        self.watched = watched
        self._tests = tests
        self._nodes = nodes
        self._of_test = [LatestRuns() for _ in tests]
        self._of_all = LatestRuns()
        self._started: dict[str, StartedRun] = {}
        self._failing: set[int] = set()  # tests that fail
        self._streaks: dict[str, NodeStreak] = {}
        #: by test, the latest runs: their nodes, and whether they ended badly
        self._elsewhere: list[deque[tuple[frozenset[str], bool]]] = [
            deque(maxlen=ELSEWHERE) for _ in tests
        ]
        self.nodes: set[str] = set()  # nodes that fail

    # ---- events in ------------------------------------------------------------------------

    def started(self, run_id: str, entry: int) -> None:
        if self.watched and run_id not in self._started:
            self._start(run_id, entry)

    def _start(self, run_id: str, entry: int) -> StartedRun:
        run = self._started[run_id] = StartedRun(entry)
        self._of_test[entry].start(run)
        self._of_all.start(run, self._failing)
        return run

    def ended(
        self, run_id: str, entry: int, code: int, nodes: str, reason: str, size: int = 1
    ) -> None:
        """Record the verdict of a run on so many nodes. A launch that failed has not started. Runs
        that somebody withdrew, that were cut off from outside, or whose failure is known, count as
        nothing."""
        run = self._started.pop(run_id, None)
        if not self.watched:
            return
        own = self._of_test[entry]
        if code in _NOT_COUNTED:
            if run is not None:
                own.drop(run)
                self._of_all.drop(run)
            return
        if run is None:
            run = self._start(run_id, entry)
            del self._started[run_id]
        run.code = code
        if self._nodes > 1 and nodes and (size <= MAX_NODES or self._streaks):
            self._on_nodes(entry, code != _PASS, nodes)
        if code == _PASS:
            own.recover()
            self._follow(entry)
            self._of_all.recover()
        else:
            self._look(entry, code, reason)

    def _look(self, entry: int, code: int, reason: str) -> None:
        """Find out whether a test, or all of them, fails, as a run of it ended badly."""
        if self._of_all.stretch is None:
            self._of_test[entry].look(code, reason)
            self._follow(entry)
        if len(self._tests) > 1:
            self._of_all.look(code, reason, self._failing, of_all=True)

    def forget(self, entry: int) -> None:
        """Forget the latest runs of a test that people admitted again."""
        self._of_test[entry] = LatestRuns()
        self._follow(entry)

    def _follow(self, entry: int) -> None:
        """Record whether a test fails, after a change of its latest runs."""
        if self._of_test[entry].stretch is None:
            self._failing.discard(entry)
        else:
            self._failing.add(entry)

    def _on_nodes(self, entry: int, bad: bool, folded: str) -> None:
        """Record the end of a run on nodes. One that passed clears them."""
        nodes = frozenset(unfold_or_empty(folded))
        if not bad:
            for node in nodes.intersection(self._streaks):
                del self._streaks[node]
                self.nodes.discard(node)
        elif len(nodes) <= MAX_NODES and 2 * len(nodes) <= self._nodes:
            self._hold_against(entry, nodes)
        self._elsewhere[entry].append((nodes, bad))

    def _hold_against(self, entry: int, nodes: Collection[str]) -> None:
        """Add a run that ended badly to the streak of each of its nodes."""
        latest = self._elsewhere[entry]
        for node in nodes:
            others = [was_bad for there, was_bad in latest if node not in there]
            share = (sum(others) + 1) / (len(others) + 2)
            before = self._streaks.get(node, NodeStreak())
            streak = NodeStreak(before.runs + 1, before.log_chance + math.log(share))
            self._streaks[node] = streak
            unlikely = streak.log_chance + math.log(self._nodes) < math.log(UNLIKELY)
            if unlikely and streak.runs >= MIN_BAD:
                self.nodes.add(node)

    # ---- findings out ---------------------------------------------------------------------

    def subjects(self, stopped: Collection[int], excluded: Collection[str]) -> dict[str, str]:
        """Return what fails: the text of the alert of each test by its name, of all tests as "",
        of nodes by their node set. Tests that are stopped and excluded nodes are told otherwise."""
        texts: dict[str, str] = {}
        if self._of_all.stretch is not None:
            by_test = Counter(self._tests[run.entry] for run in self._of_all.stretch.bad)
            words = ", ".join(f"{number} of {test}" for test, number in by_test.most_common(3))
            texts[""] = f"{self._words(self._of_all, 'runs of all tests')}; {words}"
        elif self._failing:
            for number in sorted(self._failing.difference(stopped)):
                name = self._tests[number]
                texts[name] = f"{name}: {self._words(self._of_test[number], 'runs')}"
        if self.nodes and (nodes := sorted(self.nodes.difference(excluded))):
            least = min(self._streaks[node].runs for node in nodes)
            texts[fold(nodes)] = (
                f"{fold(nodes)}: the latest {count(least, 'run')} there ended badly, and hardly "
                "any of the same tests on other nodes"
            )
        return texts

    def _words(self, latest: LatestRuns, noun: str) -> str:
        stretch = latest.stretch
        assert stretch is not None
        bad, before = stretch.bad, stretch.before
        verdicts = Counter(code_of(run.code or 0).name for run in bad)
        listed = ", ".join(f"{number} {name}" for name, number in verdicts.most_common(3))
        usual = f"usual is {show_share(before[0] / before[1])}" if before[1] else "and none before"
        reason = f"; the latest: {latest.reason}" if latest.reason else ""
        of = f"{len(bad)} of the latest {stretch.runs} {noun}"
        return f"{of} ended badly ({listed}), {usual}{reason}"
