"""Tests, nodes or whole trials that fail more often than is usual.

    watch = FailureWatch(["cm4", "ufs"], nodes=1920)
    watch.started("k3v9", entry=0)                            # in the order of the starts
    watch.ended("k3v9", entry=0, code=FAILED.number, nodes="n[1-48]", reason="exit code 3")
    watch.found()                                             # subject -> text of the alert

The runs of a test are taken in the order in which they started, as runs that fail often end early.
Of the latest runs those that go on count as right. Let k of the latest n have ended badly, and s of
the m before them. If a test goes on as before, the number of bad ones of n has the beta-binomial
distribution with the parameters a + s and b + m - s, where the prior Beta(a, b) stands for a test
of which nothing is known (Gelman et al., Bayesian Data Analysis, 2013, section 2.4). People are
alerted if the chance of k or more is less than ``UNLIKELY``, for any n up to ``WINDOW``, of all
causes together or of one. The bound is far below 0.001, as it is looked at after each bad end:
docs/explanations/quality.md has the rate of false alarms. A stretch in which a test failed does not
become what is usual.
"""

import math
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from msgspec import Struct

from seatrial.decide.demand import Due
from seatrial.model import codes
from seatrial.model.codes import code_of
from seatrial.model.node_set import fold, unfold_or_empty
from seatrial.model.policy import Policy, WatchLimits
from seatrial.units import SECOND_NS, count, ns, show_seconds, show_share

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


def chance(bad: int, runs: int, before: tuple[int, int], prior: tuple[float, float]) -> float:
    """Return the probability that ``bad`` or more of so many runs end badly, if as many do as
    ``before`` (bad ones, runs)."""
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
        if k < runs:
            term *= (runs - k) / (k + 1) * (a + k) / (b + runs - k - 1)
    return total


class StartedRun:
    """A run that started; ``code`` is its verdict, None while it has none."""

    __slots__ = ("code", "entry")

    def __init__(self, entry: int) -> None:
        self.entry = entry
        self.code: int | None = None


class FailingStretch(NamedTuple):
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
        found = min(stretches, key=lambda each: each.chance / each.level, default=None)
        if found is not None and found.chance < found.level:
            self.stretch = found

    def _stretches(self, code: int, skip: Collection[int]) -> Iterator[FailingStretch]:
        """Yield the stretches up to now that begin with a bad run, of all causes and of one."""
        runs = [run for run in self.runs if run.entry not in skip]
        ended = self._ended + sum(run.code is not None for run in runs)
        all_bad = self._bad.total() + sum(run.code not in (None, _PASS) for run in runs)
        all_same = self._bad[code] + sum(run.code == code for run in runs)
        bad: list[StartedRun] = []
        same: list[StartedRun] = []
        least, prior, level = MIN_BAD, ONE, UNLIKELY
        if code == _LAUNCH:
            least, prior, level = MIN_LAUNCHES, LAUNCHES, UNLIKELY_LAUNCHES
        for number, run in enumerate(reversed(runs), 1):
            ended -= run.code is not None
            if run.code is None or run.code == _PASS:
                continue
            bad.append(run)
            if len(bad) >= MIN_BAD:
                before = all_bad - len(bad), ended
                likely = chance(len(bad), number, before, ANY)
                yield FailingStretch(list(bad), number, before, likely, UNLIKELY)
            if run.code == code:
                same.append(run)
                if len(same) >= least:
                    before = all_same - len(same), ended
                    likely = chance(len(same), number, before, prior)
                    yield FailingStretch(list(same), number, before, likely, level)

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


class NodeStreak(NamedTuple):
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
        self._streaks: dict[str, NodeStreak] = {}
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
        failing = self._failing()
        self._of_test[entry].start(run)
        self._of_all.start(run, failing)
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
        if code != _PASS:
            if self._of_all.stretch is None:
                own.look(code, reason)
            if len(self._tests) > 1:
                self._of_all.look(code, reason, self._failing(), of_all=True)
        else:
            own.recover()
            self._of_all.recover()

    def forget(self, entry: int) -> None:
        """Forget the latest runs of a test that people admitted again."""
        self._of_test[entry] = LatestRuns()

    def _failing(self) -> set[int]:
        return {number for number, each in enumerate(self._of_test) if each.stretch is not None}

    def _on_nodes(self, entry: int, bad: bool, folded: str) -> None:
        """Record the end of a run on nodes. One that passed clears them."""
        on = frozenset(unfold_or_empty(folded))
        latest = self._elsewhere[entry]
        if not bad:
            for node in on.intersection(self._streaks):
                del self._streaks[node]
                self.nodes.discard(node)
        elif len(on) <= MAX_NODES and 2 * len(on) <= self._nodes:
            for node in on:
                others = [was_bad for there, was_bad in latest if node not in there]
                share = (sum(others) + 1) / (len(others) + 2)
                streak = self._streaks.get(node, NodeStreak())
                streak = NodeStreak(streak.runs + 1, streak.log_chance + math.log(share))
                self._streaks[node] = streak
                unlikely = streak.log_chance + math.log(self._nodes) < math.log(UNLIKELY)
                if unlikely and streak.runs >= MIN_BAD:
                    self.nodes.add(node)
        latest.append((on, bad))

    # ---- findings out ---------------------------------------------------------------------

    def found(self, stopped: Collection[int], excluded: Collection[str]) -> dict[str, str]:
        """Return what fails: the text of the alert of each test by its name, of all tests as "",
        of nodes by their node set. Tests that are stopped and excluded nodes are told otherwise."""
        texts: dict[str, str] = {}
        if self._of_all.stretch is not None:
            by_test = Counter(self._tests[run.entry] for run in self._of_all.stretch.bad)
            words = ", ".join(f"{number} of {test}" for test, number in by_test.most_common(3))
            texts[""] = f"{self._words(self._of_all, 'runs of all tests')}; {words}"
        else:
            for number, latest in enumerate(self._of_test):
                if latest.stretch is not None and number not in stopped:
                    name = self._tests[number]
                    texts[name] = f"{name}: {self._words(latest, 'runs')}"
        if nodes := sorted(self.nodes.difference(excluded)):
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


# ---- watchdogs -----------------------------------------------------------------------------------
#
# Watchdogs: conditions of which people are alerted.
#
# Each looks at the fold of events and at the time, and returns alerts with the time from which
# they hold. The same alert is raised again only after a while; an alert is itself an event.


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
        told = self.untold.items()
        return [PendingAlert(0, kind, subject, text) for (kind, subject), text in told]

    def short(
        self,
        since: Mapping[int, int],
        in_flight: Sequence[int],
        stopped: Collection[int],
        quiet: Callable[[int], Collection[tuple[int, int]]],
    ) -> list[PendingAlert]:
        """Return alerts for tests that have too few runs in flight ``since`` a time. ``quiet``
        returns the times in which an entry must not run: it is short from the end of these."""
        found: list[PendingAlert] = []
        if not self._short_for:
            return found
        for number, start in sorted(since.items()):
            if number not in stopped:
                span = self._short_for + self._dues[number].gap
                name = self._policy.entries[number].name
                says = partial(self._short_text, number, in_flight[number], span)
                found.append(self.pending("short", name, says, _after(start, span, quiet(number))))
        return found

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
        found: list[PendingAlert] = []
        if not self._started or not self._queue:
            return found
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
            found.append(self.pending("wait", name, says, _after(since, longest, quiet)))
            if found[-1].time > now:
                break
        return found

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
