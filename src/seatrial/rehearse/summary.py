"""Summarise a rehearsed trial in little memory, to keep those of many seeds and compare them."""

from __future__ import annotations

from collections import Counter
from statistics import fmean
from typing import NamedTuple

from seatrial.backends.simulated.sharing import TargetLoad
from seatrial.judge.accounts import Accounts, Run
from seatrial.judge.criteria import Result, View, judged
from seatrial.judge.tallies import Waits, waits
from seatrial.judge.timeline import Bin, Use
from seatrial.plan.prepare import PreparedComponent
from seatrial.trial.rehearsal import Ending
from seatrial.verify.references import References

BINS = 60  # spans of time for which utilisation is given


class Tally(NamedTuple):
    """The runs of a test.

    ``others``: how many ended without being accepted, retried or not. ``node_hours``: of the
    accepted. ``elapsed``, ``wait`` and ``long_wait``: in seconds, None without runs.
    """

    test: str
    nodes: int
    accepted: int
    others: int
    node_hours: float
    elapsed: float | None
    wait: float | None
    long_wait: float | None


class Verdict(NamedTuple):
    """The result of a criterion, in all and for each of its subjects."""

    label: str
    result: Result
    subjects: list[Result]


class Rehearsed(NamedTuple):
    """A rehearsed trial.

    ``tag``: "" if it was not written. ``start`` and ``end``: in ns. ``why``: the reason if it did
    not come to its end, or "". ``remarks``: which jobs of others were left out.
    """

    component: str
    phase: str
    seed: int
    tag: str
    nodes: int
    start: int
    end: int
    why: str
    use: Use
    bins: list[Bin]
    tests: list[Tally]
    criteria: list[Verdict]
    alerts: dict[str, int]
    loads: list[TargetLoad]
    remarks: list[str]

    @property
    def name(self) -> str:
        """Return the component, with its phase if it has one."""
        return f"{self.component}, {self.phase}" if self.phase else self.component

    @property
    def utilisation(self) -> float:
        """Return accepted over available node-hours."""
        return self.use.share("accepted")

    @property
    def missed(self) -> bool:
        """Return whether a criterion is not met."""
        return any(each.result.state == "not met" for each in self.criteria)


def summarise(
    part: PreparedComponent,
    seed: int,
    tag: str,
    accounts: Accounts,
    ending: Ending,
    references: References,
) -> Rehearsed:
    """Return the summary of a rehearsed trial's accounts."""
    view = View(accounts, ending.time, references)
    by_test: dict[str, list[Run]] = {case.test: [] for case in part.cases}
    for run in accounts.runs:
        by_test[accounts.test_of(run)].append(run)
    waited = waits(accounts, ending.time)
    return Rehearsed(
        component=part.component.component,
        phase=part.phase,
        seed=seed,
        tag=tag,
        nodes=accounts.nodes,
        start=accounts.start,
        end=ending.time,
        why="" if ending.complete else ending.why,
        use=view.timeline.total,
        bins=view.timeline.bins(BINS),
        tests=[_of_test(part, name, runs, waited.get(name)) for name, runs in by_test.items()],
        criteria=[
            Verdict(first.label, first, subjects)
            for first, *subjects in judged(part.component, view)
        ],
        alerts=dict(sorted(Counter(alert.kind for alert in accounts.alerts).items())),
        loads=[load for load in ending.loads if load.highest],
        remarks=ending.remarks,
    )


def _of_test(part: PreparedComponent, name: str, runs: list[Run], waited: Waits | None) -> Tally:
    passed = [run for run in runs if run.passed]
    spent = sum(run.size * (run.elapsed or 0.0) for run in passed)
    return Tally(
        test=name,
        nodes=max(case.nodes for case in part.cases if case.test == name),
        accepted=len(passed),
        others=len(runs) - len(passed),
        node_hours=spent / 3600,
        elapsed=fmean(run.elapsed or 0.0 for run in passed) if passed else None,
        wait=waited.median if waited else None,
        long_wait=waited.high if waited else None,
    )
