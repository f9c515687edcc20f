"""Trials told event by event, by the hour, so that what they come to can be computed by hand."""

from __future__ import annotations

from typing import Any

from seatrial.journal.events import (
    Event,
    JobEnded,
    JobQueued,
    JobStarted,
    MetricRecorded,
    RunJudged,
    RunSubmitted,
    ScriptEnded,
    ScriptStarted,
    TrialStarted,
)
from seatrial.model.codes import PASS, Code
from seatrial.model.file_model import typed
from seatrial.model.plan import Criterion
from seatrial.model.policy import Entry, Policy
from seatrial.model.test import Case
from seatrial.results.criteria.view import Result, TrialView
from seatrial.results.status import judge
from seatrial.results.trial_history import TrialHistory
from tests.results.store.trials import NOON, SECOND, a_case

HOUR = 3600 * SECOND
NODES = ("n1", "n2", "n3", "n4")


def at(hour: float) -> int:
    """The time so many hours after the trial began, in ns."""
    return NOON + round(hour * HOUR)


def cases_of(*sizes: int) -> list[Case]:
    """A case of so many nodes for each of the tests a, b, ..."""
    names = "abcdefgh"
    return [a_case(i, test=names[i], nodes=size) for i, size in enumerate(sizes)]


def sustained(cases: list[Case], hours: float, **more: Any) -> Policy:
    entries = [
        Entry(name=case.test, copies=1, opens=10.0 * (i + 1)) for i, case in enumerate(cases)
    ]
    given: dict[str, Any] = {
        "kind": "sustained",
        "entries": entries,
        "entry_of": list(range(len(cases))),
        "duration": hours * 3600,
        "nodes": len(NODES),
    }
    return Policy(**(given | more))


class Story:
    """Events of a trial on four nodes; ``history`` folds them in the order of their times."""

    def __init__(self, cases: list[Case], policy: Policy | None = None, begin: float = 0) -> None:
        self.cases = cases
        once = Policy(
            entries=[Entry(name=case.test) for case in cases], entry_of=list(range(len(cases)))
        )
        self.policy = policy or once
        self.events: list[Event] = []
        self.number = 0
        self.tell(begin, TrialStarted)

    def tell(self, hour: float, kind: type[Event], /, **fields: Any) -> None:
        self.events.append(kind(time=at(hour), **fields))

    def run(
        self,
        case: int,
        start: float,
        end: float,
        verdict: Code | None = PASS,
        *,
        queued: float | None = None,
        before: float = 0,
        kept: float = 0,
        again: bool = False,
        figures: dict[str, float] | None = None,
        better: str = "higher",
        **of_submission: Any,
    ) -> str:
        """A run whose script ran from ``start`` to ``end``; its job held nodes ``before`` and
        ``kept`` after it. Without a verdict it still runs at the end of the story."""
        self.number += 1
        run_id = f"r{self.number}"
        nodes = of_submission.pop("nodes", "")
        of = {"run_id": run_id, "case": self.cases[case].id, "test": self.cases[case].test}
        first = start - before if queued is None else queued
        self.tell(first, RunSubmitted, **of, **of_submission)
        self.tell(first, JobQueued, **of)
        self.tell(start - before, JobStarted, nodes=nodes, **of)
        self.tell(start, ScriptStarted, **of)
        if verdict is None:
            return run_id
        self.tell(end, ScriptEnded, exit_code=0, **of)
        self.tell(end + kept, JobEnded, code=0, **of)
        for name, value in (figures or {}).items():
            self.tell(
                end + kept,
                MetricRecorded,
                metric=name,
                value=value,
                unit="MB/s",
                better=better,
                **of,
            )
        self.tell(end + kept, RunJudged, code=verdict.number, will_rerun=again, **of)
        return run_id

    def history(self, nodes: Any = NODES, **more: int) -> TrialHistory:
        names = [f"n{i + 1}" for i in range(nodes)] if isinstance(nodes, int) else nodes
        history = TrialHistory(self.cases, self.policy, names, **more)
        for event in sorted(self.events, key=lambda event: event.time):
            history.apply(event)
        return history

    def view(self, now: float | None = None, **more: Any) -> TrialView:
        history = self.history()
        return TrialView(history, history.last if now is None else at(now), **more)

    def judged(self, name: str, now: float | None = None, **bounds: Any) -> list[Result]:
        return judge(typed({"criterion": name, **bounds}, Criterion), self.view(now))

    def result(self, name: str, now: float | None = None, **bounds: Any) -> Result:
        return self.judged(name, now, **bounds)[0]
