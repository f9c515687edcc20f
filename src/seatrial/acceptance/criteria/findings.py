"""The criterion on nodes: what rules over facts, or a test's own checks, found on them."""

from collections import Counter

from seatrial.acceptance.criteria.result import (
    Numbers,
    Result,
    decided,
    undecided,
    unless_newer,
    unless_silent,
    with_worst,
)
from seatrial.acceptance.criteria.view import NodeCases, TrialView
from seatrial.plan.model import Criterion
from seatrial.units import count
from seatrial.verify.node_metrics import FINDINGS, PREFIX

MAX_TOLD = 5


def findings(view: TrialView, criterion: Criterion) -> list[Result]:
    """The number of findings on nodes in the latest right run of each case that told of its nodes,
    each finding on each node once; of cases that differ in their node alone, in the latest of
    each, together. The largest number counts; ``at_most: 0`` asks for nodes without any.

    A run tells of its nodes by ``facts.txt``, as ``facts collect`` leaves it, which the rules
    that ship and those of the site judge; or by ``nodecheck.txt``, in which one job over all
    nodes speaks for each. Its metrics are ``findings``, ``findings_of_RULE`` and
    ``failed_node{node=NAME}``.

    Undecided: no such run; a case whose latest run left neither, if it would be met by an older
    one; a rehearsal.
    """
    found = [(group, _of_case(view, criterion, group)) for group in view.groups(criterion)]
    why = (
        "no run with a right answer left facts.txt or nodecheck.txt" if view.over else view.goes_on
    )
    results = [
        result or undecided(criterion, why, subject=group.name)
        for group, result in found
        if result is not None or (criterion.tests and (group.runs or not group.stage))
    ]
    if not any(result is not None for _, result in found):
        return [undecided(criterion, why)]
    return with_worst(results, lambda one: one.value or 0.0)


def _of_case(view: TrialView, criterion: Criterion, group: NodeCases) -> Result | None:
    runs = group.right(FINDINGS)
    if not runs:
        return None
    latest = {run.case: run for run, _ in runs}
    value = sum({run.case: value for run, value in runs}.values())
    of_rule: Counter[str] = Counter()
    for run in latest.values():
        for name, figure in (run.figures or {}).items():
            if name.startswith(PREFIX):
                of_rule[name.removeprefix(PREFIX)] += int(figure.value)
    most = sorted(of_rule.items(), key=lambda item: -item[1])[:MAX_TOLD]
    parts = ", ".join(f"{name} on {count(value, 'node')}" for name, value in most)
    numbers: Numbers = {**of_rule}
    where = f" on each of {len(latest)} nodes" if len(latest) > 1 else ""
    why = f"{parts or 'nothing'} in the latest of {count(len(runs), 'run')}{where}"
    subject = group.name
    result = decided(view, criterion, value, why, n=len(runs), subject=subject, numbers=numbers)
    lacks = "left neither facts.txt nor nodecheck.txt that tells of a node"
    for run in latest.values():
        result = unless_newer(result, group, run, lacks)
    return unless_silent(result, group, view, FINDINGS)
