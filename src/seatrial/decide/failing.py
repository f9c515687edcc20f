"""Tests, nodes or whole trials that fail more often than is usual.

    watch = FailureWatch(["cm4", "ufs"], nodes=1920)
    watch.started("k3v9", entry=0)                            # in the order of the starts
    watch.ended("k3v9", entry=0, code=FAILED.number, nodes="n[1-48]", reason="exit code 3")
    watch.subjects((), ())                                    # subject -> text of the alert

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
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from seatrial.model import codes
from seatrial.model.codes import code_of
from seatrial.model.node_set import fold, unfold_or_empty
from seatrial.model.policy import Answer, Entry, WatchLimits
from seatrial.units import count, show_share

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
        rarest = min(stretches, key=lambda each: each.chance / each.level, default=None)
        if rarest is not None and rarest.chance < rarest.level:
            self.stretch = rarest

    def _stretches(self, code: int, skip: Collection[int]) -> Iterator[FailingStretch]:
        """Yield the stretches up to now that begin with a bad run, of all causes and of one."""
        runs = [run for run in self.runs if run.entry not in skip]
        verdicts = [run.code for run in runs if run.code is not None]
        ended = self._ended + len(verdicts)
        all_bad = self._bad.total() + len(verdicts) - verdicts.count(_PASS)
        all_same = self._bad[code] + verdicts.count(code)
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


# ---- retry policy --------------------------------------------------------------------------------
#
# The consequences of a failed run: whether and where it is retried, and when its test is stopped.


MAX_LOSSES = 3
MAX_REFUSED = 10  # failed launches in a row, where launches never end

_NOT_STARTED = (codes.LAUNCH_FAILED.number, codes.REFUSED.number)
_RIGHT = (codes.PASS.number, codes.PERFORMANCE.number)  # the answer was right


_NOT_ITS_FAULT = codes.CUT_OFF | codes.UNCOUNTED


class RetryPolicy:
    """Counts the retries of each case. Counts, for each entry, wrong answers and failures in a row
    and, if its runs are ``endless``, refused launches in a row."""

    def __init__(self, entries: list[Entry], endless: bool = False) -> None:
        self._entries = entries
        self._endless = endless
        self._retried: Counter[int] = Counter()  # by case
        self._wrong = [0] * len(entries)
        self._failed = [0] * len(entries)
        self._refused = [0] * len(entries)
        self.to_stop: dict[int, str] = {}  # entries to stop, with reasons

    def change(self, entries: list[Entry]) -> None:
        """Follow other rules for the same tests; what was counted stays."""
        self._entries = entries

    def answer(self, entry: int, code: int) -> Answer:
        """Return the policy's answer to a verdict; by default lost runs are retried."""
        default: Answer = "again" if code == codes.LOST.number else "never"
        return self._entries[entry].answers.get(codes.code_of(code).name, default)

    def will_rerun(self, case: int, entry: int, code: int, repeat: int) -> bool:
        """Return whether the run is launched again; ``repeat`` is how many runs its case has in
        all."""
        if self.answer(entry, code) == "never":
            return False
        rules, max_retries = self._entries[entry], MAX_LOSSES
        if rules.answers:
            max_retries = (rules.attempts - 1) * max(1, repeat)
        return self._retried[case] < max_retries

    def retried(self, case: int) -> None:
        self._retried[case] += 1

    def verdict(self, entry: int, code: int, reason: str = "") -> None:
        """Record a verdict. A run without a result (such as launch failed) does not reset the count
        of consecutive wrong answers. A run that was cut off from outside, or whose failure is
        known, neither counts as a failure nor ends a row of them."""
        self._count_failure(entry, code, reason)
        self._count_refused_launch(entry, code, reason)
        self._count_wrong_answer(entry, code)

    def _count_failure(self, entry: int, code: int, reason: str) -> None:
        if code in _RIGHT:
            self._failed[entry] = 0
        elif code not in _NOT_ITS_FAULT:
            self._failed[entry] += 1
            limit = self._entries[entry].stop_failures
            if limit and self._failed[entry] >= limit:
                last = f", the last: {codes.code_of(code).name}{reason and f': {reason}'}"
                self.to_stop[entry] = f"{count(self._failed[entry], 'failure')} in a row{last}"

    def _count_refused_launch(self, entry: int, code: int, reason: str) -> None:
        if code not in _NOT_STARTED:
            self._refused[entry] = 0
            return
        self._refused[entry] += 1
        if self._endless and self._refused[entry] >= MAX_REFUSED:
            last_words = f": {reason}" if reason else ""
            self.to_stop[entry] = f"{self._refused[entry]} launches in a row failed{last_words}"

    def _count_wrong_answer(self, entry: int, code: int) -> None:
        if code in _RIGHT:
            self._wrong[entry] = 0
        elif code == codes.WRONG_ANSWER.number:
            self._wrong[entry] += 1
            limit = self._entries[entry].stop_after
            if limit and self._wrong[entry] >= limit:
                self.to_stop[entry] = f"{self._wrong[entry]} wrong answers in a row"

    def forgive(self, entry: int) -> None:
        """Reset the counts of an entry, as a person admitted its test again."""
        self._wrong[entry] = self._refused[entry] = self._failed[entry] = 0
        self.to_stop.pop(entry, None)
