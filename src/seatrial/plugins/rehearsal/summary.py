"""Summarise a rehearsed trial in little memory, to keep those of many seeds and compare them."""

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from seatrial.execute.plan.component import named_beside
from seatrial.execute.plan.prepare import PreparedComponent
from seatrial.judge.references import References
from seatrial.model.codes import RECALLED, UNCOUNTED
from seatrial.plugins.rehearsal.queue import TargetLoad
from seatrial.plugins.rehearsal.virtual_driver import Ending
from seatrial.results.criteria.view import Result, TrialView
from seatrial.results.node_hours import NodeShares
from seatrial.results.status import Waits, judged, waits
from seatrial.results.trial_history import RunHistory, TrialHistory
from seatrial.results.utilisation import Bin, Use

BINS = 60  # spans of time for which utilisation is given


class TestTally(NamedTuple):
    """The runs of a test. Times are in seconds, None without runs."""

    test: str
    nodes: int
    accepted: int
    #: How many ended without being accepted, retried or not: they ``failed``, others or a person
    #: cancelled them, or Seatrial ``recalled`` them.
    others: int
    #: Of the accepted.
    node_hours: float
    #: The mean elapsed time.
    elapsed: float | None
    #: The median time in the queue, and the 95th percentile.
    wait: float | None
    long_wait: float | None
    #: The standard deviation of the elapsed times (n - 1).
    sd: float | None = None
    failed: int = 0
    recalled: int = 0

    @property
    def waits(self) -> tuple[float | None, float | None]:
        """Return the median time in the queue, and the 95th percentile."""
        return self.wait, self.long_wait

    @property
    def failure_share(self) -> float | None:
        """Return the failed runs over those that came to an end; None without any."""
        ended = self.accepted + self.failed
        return self.failed / ended if ended else None


class CriterionVerdict(NamedTuple):
    """The result of a criterion, in all and for each of its subjects."""

    label: str
    result: Result
    subjects: list[Result]


class Rehearsed(NamedTuple):
    """A rehearsed trial."""

    component: str
    phase: str
    seed: int
    #: Its tag; "" if it was not written.
    tag: str
    nodes: int
    #: Times in ns.
    start: int
    end: int
    #: Why it did not come to its end; "" if it did.
    reason: str
    use: Use
    bins: list[Bin]
    tests: list[TestTally]
    #: The planned and the achieved share of each test.
    node_shares: NodeShares | None
    criteria: list[CriterionVerdict]
    #: The number of alerts of each kind.
    alerts: dict[str, int]
    loads: list[TargetLoad]
    #: Which jobs of others were left out, and the like.
    remarks: list[str]
    #: The components that it ran beside.
    alongside: list[str]

    @property
    def name(self) -> str:
        """Return the component, with its phase if it has one."""
        return f"{self.component}, {self.phase}" if self.phase else self.component

    @property
    def utilisation(self) -> float:
        """Return accepted over available node-hours."""
        return self.use.share("accepted")

    @property
    def has_no_run(self) -> bool:
        """Return whether it is complete and no run of it has ended."""
        return not self.reason and not any(test.accepted + test.others for test in self.tests)

    @property
    def missed(self) -> bool:
        """Return whether a criterion is not met."""
        return any(each.result.state == "not met" for each in self.criteria)


def summarise(
    part: PreparedComponent,
    seed: int,
    tag: str,
    history: TrialHistory,
    ending: Ending,
    references: References,
) -> Rehearsed:
    """Return the summary of a rehearsed trial's history."""
    view = TrialView(history, ending.time, references)
    by_test: dict[str, list[RunHistory]] = {case.test: [] for case in part.cases}
    for run in history.runs:
        by_test[history.test_of(run)].append(run)
    waited = waits(history, ending.time)
    return Rehearsed(
        component=part.component.component,
        phase=part.phase,
        seed=seed,
        tag=tag,
        nodes=history.nodes,
        start=history.start or 0,
        end=ending.time,
        reason="" if ending.complete else ending.reason,
        use=view.timeline.total,
        bins=view.timeline.bins(BINS),
        tests=[_of_test(part, name, runs, waited.get(name)) for name, runs in by_test.items()],
        node_shares=view.node_shares,
        criteria=[
            CriterionVerdict(first.label, first, subjects)
            for first, *subjects in judged(part.component, view)
        ],
        alerts=dict(sorted(Counter(alert.kind for alert in history.alerts).items())),
        loads=[load for load in ending.loads if load.highest],
        remarks=ending.remarks,
        alongside=named_beside(part.component),
    )


def _of_test(
    part: PreparedComponent, name: str, runs: list[RunHistory], waited: Waits | None
) -> TestTally:
    passed = [run for run in runs if run.passed]
    elapsed = [run.elapsed or 0.0 for run in passed]
    others = [run for run in runs if not run.passed]
    spent = sum(run.size * seconds for run, seconds in zip(passed, elapsed, strict=True))
    mean, sd = _mean_and_sd(elapsed)
    wait, long_wait = (waited.median, waited.high) if waited else (None, None)
    return TestTally(
        test=name,
        nodes=max(case.nodes for case in part.cases if case.test == name),
        accepted=len(passed),
        others=len(others),
        node_hours=spent / 3600,
        elapsed=mean,
        wait=wait,
        long_wait=long_wait,
        sd=sd,
        failed=len([run for run in others if run.over and run.code not in UNCOUNTED]),
        recalled=[run.code for run in others].count(RECALLED.number),
    )


def _mean_and_sd(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the mean and the standard deviation (n - 1), None where there are too few values."""
    mean = math.fsum(values) / len(values) if values else None
    return mean, math.sqrt(statistics.variance(values)) if len(values) > 1 else None
