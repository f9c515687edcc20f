"""All numbers of the results of all criteria, of one trial that has something of everything.

``data/results.txt`` has a line for each result; its sentences are left out. After a change that is
meant write it anew, and read each line of the difference:
SEATRIAL_REGENERATE=1 pytest tests/results/criteria/test_result.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.journal.events import NodeDown, NodeUp, TestStopped, TrialEnded
from seatrial.judge.references import loads
from seatrial.model.codes import (
    CANCELLED,
    FAILED,
    KNOWN,
    NODE_FAILURE,
    PERFORMANCE,
    RECALLED,
    TIMEOUT,
    WRONG_ANSWER,
)
from seatrial.model.file_model import typed
from seatrial.model.kinds import criterion_kinds
from seatrial.model.plan import Criterion, Waiver
from seatrial.model.policy import Entry, Policy, Window
from seatrial.results.criteria.view import Result
from seatrial.results.status import judge
from tests.judge.helpers import only_golden
from tests.results.stories import Story, cases_of, sustained

GOLDEN = Path(__file__).parent / "data" / "results.txt"
FIGURES = {
    "triad": 95.0,
    "findings": 2.0,
    "findings_of_memory": 1.0,
    "findings_of_clock": 1.0,
    "network_findings": 1.0,
    "network_slow_links": 1.0,
}
REFERENCES = loads(
    """\
references:
  - {test: a, metric: triad, unit: MB/s, value: 100}
  - {test: b, metric: triad, unit: MB/s, value: 90, lower: -0.01}
  - {test: c, metric: triad, unit: MB/s, min: 10, max: 200}
  - {test: a, metric: elapsed, unit: s, value: 3600}
""",
    Path("references.yaml"),
)
BOUNDS: dict[str, list[dict[str, Any]]] = {
    "accepted_runs": [{"at_least": 2}, {"at_most": 3}],
    "variability": [{"at_most": "5%"}],
    "slowdown": [{"at_most": "5%"}, {"at_least": "-50%", "metric": "triad"}],
    "figure_of_merit": [{"metric": "triad"}, {"metric": "triad", "at_least": "90%"}],
    "availability": [{"at_least": "99%"}],
    "mtbf": [{"at_least": "2h"}],
    "jobs_in_flight": [{"at_least": 2}, {"at_most": 2}],
    "mix": [{"at_most": "5 points"}],
    "within_expected": [
        {"within": "5%", "at_least": "50%"},
        {"within": "5%", "at_least": "50%", "of": "reference", "two_sided": True},
    ],
    "network": [{"at_most": 0}, {"at_most": 1, "tests": ["c"]}],
    "findings": [{"at_most": 0}, {"at_most": 2, "tests": ["a", "c"]}],
    "every_test": [{}],
    # nothing reads one in these stories
    "gauge": [{"gauge": "mds", "at_most": 400}, {"gauge": "mds", "at_most": 400, "share": "90%"}],
}
SHARES: list[dict[str, Any]] = [{"at_least": "90%"}, {"at_least": "20%", "tests": ["a"]}]


def a_day() -> Story:
    """A mix of three tests for ten hours, in which most things go wrong once."""
    cases = cases_of(2, 1, 1)
    cases.append(replace(cases[1], id="more", parameters={"size": 2}))
    policy = sustained(cases[:3], 10, outages=[Window(start=32400, end=34200)])
    story = Story(cases, replace(policy, entry_of=[0, 1, 2, 1]))
    for hour, length in enumerate((1.0, 1.1, 0.9, 1.0, 1.0, 1.2)):
        story.run(0, hour, hour + length, figures=FIGURES)
    story.run(0, 7, 8.5, PERFORMANCE, figures=FIGURES | {"triad": 80.0}, before=0.1, kept=0.2)
    story.run(1, 0, 1, figures={"triad": 90.5}, queued=0)
    for hour, code in enumerate((WRONG_ANSWER, TIMEOUT, CANCELLED, RECALLED, KNOWN), 1):
        story.run(1, hour, hour + 1, code)
    story.run(2, 1, 2, NODE_FAILURE, again=True, nodes="n4")
    story.run(2, 2, 4, figures={"triad": 50.0, "findings": 0.0, "network_findings": 0.0})
    story.run(3, 6, 7)
    story.tell(1.9, NodeDown, nodes="n4")
    story.tell(2.4, NodeUp, nodes="n4")
    story.tell(6, TestStopped, test="c", reason="wrong twice")
    return story


def in_stages() -> Story:
    """Two tests alone and at full machine; the second has no run alone."""
    cases = cases_of(1, 1)
    entries = [Entry(name=case.test, alone=2, full=True) for case in cases]
    story = Story(cases, Policy(kind="isolated_then_full", entries=entries, entry_of=[0, 1]))
    for hour, figure in ((0, 100.0), (2, 104.0)):
        story.run(0, hour, hour + 1, stage="alone", figures={"triad": figure})
    for hour in (10, 20):
        for length, figure in ((1.0, 90.0), (1.1, 80.0)):
            story.run(0, hour, hour + length, stage="full", figures={"triad": figure})
    story.run(1, 10, 11, stage="full", figures={"triad": 7.0})
    story.run(1, 12, 13, FAILED, stage="full")
    return story


def results_of(story: Story, *waivers: Waiver) -> Iterator[Result]:
    view = story.view(references=REFERENCES)
    for name in criterion_kinds():
        for keys in BOUNDS.get(name, SHARES):
            yield from judge(typed({"criterion": name, **keys}, Criterion), view, waivers)


def line_of(one: Result) -> str:
    value = "none" if one.value is None else f"{one.value:.6g}"
    numbers = ", ".join(
        f"{name} {number if isinstance(number, str) else format(number, '.6g')}"
        for name, number in one.numbers.items()
    )
    head = f"{one.criterion}, {one.label}, {one.subject or 'all'}: {one.words}, {value} {one.unit}"
    return f"{head.strip()} ({one.bound}), n {one.n}{'; ' if numbers else ''}{numbers}\n"


def test_each_result_has_its_numbers() -> None:
    day, stages = a_day(), in_stages()
    told = {"under way": [*results_of(day)]}
    day.tell(10, TrialEnded, failed=1)
    waiver = Waiver(reason="bug 7", by="both", on="2026-05-01", tests=["b"])
    told["ended"] = [*results_of(day)]
    told["waived"] = [one for one in results_of(day, waiver) if one not in told["ended"]]
    stages.tell(22, TrialEnded, failed=1)
    told["in stages"] = [*results_of(stages)]
    text = "".join(
        f"{title}\n{''.join(map(line_of, results))}\n" for title, results in told.items()
    )
    only_golden(text.encode(), GOLDEN)
