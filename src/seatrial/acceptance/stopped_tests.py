"""The runs that were not made because their test was stopped, so that a stop improves no rate.

    shield = StopShield(history, now, tests)
    shield.unmade["cm4"], shield.weights(runs)

A test that is stopped makes no more failed runs, and the other tests get its nodes. So the runs
that it would have made count as not passed, and those that the others made meanwhile count for
less.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from seatrial.acceptance.outages import Span
from seatrial.acceptance.trial_history import RunHistory, TrialHistory
from seatrial.conduct.shares import planned_for
from seatrial.journal.trial_life import end_by


class StopShield:
    """The stops of some tests of a trial up to ``now`` (ns). ``unmade``: the number of runs that
    each of them was kept from making, by test; those that were never stopped have none."""

    def __init__(
        self,
        history: TrialHistory,
        now: int,
        tests: Collection[str],
        counted: Collection[RunHistory],
    ) -> None:
        self._history = history
        self._spans = {
            test: [(start, end_by(end, now)) for start, end in spans]
            for test, spans in history.stops.items()
            if test in tests
        }
        self._parts = self._planned() if self._spans else {}
        ended = Counter(history.test_of(run) for run in counted)
        self.unmade = {test: self._unmade(test, ended[test], now) for test in self._spans}

    def _planned(self) -> dict[str, float]:
        history = self._history
        if history.policy.kind != "sustained":
            return {}
        shares = planned_for(history.cases, history.policy, history.room).shares
        return {
            entry.name: share for entry, share in zip(history.policy.entries, shares, strict=True)
        }

    def _unmade(self, test: str, ended: int, now: int) -> int:
        """Return how many runs a test was kept from making: at the pace of the time in which it was
        not stopped, or those that are planned for it where it has a number of runs."""
        history = self._history
        if history.policy.kind != "sustained":
            planned = self._planned_runs(test) if test in history.stopped else 0
            return max(0, planned - ended)
        window = history.window(now)
        whole = sum(end - start for start, end in window)
        stopped = sum(_overlap(span, each) for span in self._spans[test] for each in window)
        return math.ceil(ended * stopped / max(1, whole - stopped))

    def _planned_runs(self, test: str) -> int:
        """Return how many runs a test has in a component that is not sustained, with one a wave."""
        cases, policy = self._history.cases, self._history.policy
        if policy.kind == "once":
            return sum(case.repeat for case in cases if case.test == test)
        entries = [policy.entries[number] for number in policy.entry_of]
        return sum(
            entry.alone + entry.full
            for case, entry in zip(cases, entries, strict=True)
            if case.test == test
        )

    def weights(self, runs: Iterable[RunHistory]) -> Iterator[float]:
        """Yield how much each run that passed counts in a rate of several tests."""
        return (self._weight(run) if self._spans else 1.0 for run in runs if run.passed)

    def _weight(self, run: RunHistory) -> float:
        """Return less than 1 for a run that started while another test was stopped: that test's
        planned share of the machine is taken off."""
        start = run.job_started or run.submitted or run.judged or 0
        own = self._history.test_of(run)
        lent = sum(
            self._parts.get(test, 0.0)
            for test, spans in self._spans.items()
            if test != own and any(begin <= start < end for begin, end in spans)
        )
        return max(0.0, 1.0 - lent)


def _overlap(one: Span, other: Span) -> int:
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))
