"""The criterion on the network: what its matrices of all pairs show."""

from seatrial.model.plan import Criterion
from seatrial.plugins.network.matrices import FINDINGS, PREFIX, WORDS
from seatrial.results.criteria.view import (
    NodeCases,
    Numbers,
    Result,
    TrialView,
    decided,
    undecided,
    unless_newer,
    with_worst,
)
from seatrial.units import count

NO_MATRIX = "no run with a right answer left a matrix, as the probe pairs and mpiGraph do"


def network(view: TrialView, criterion: Criterion) -> list[Result]:
    """The number of findings in the latest right run of each case that left a matrix of all pairs
    (``pairs.matrix`` of the probe ``pairs``, or mpiGraph's output): silent nodes, groups that
    are cut off, pairs that cannot talk, slow nodes, slow links, slow pairs of groups. The
    largest number counts; ``at_most: 0`` asks for a network without any.

    Each kind is a metric of the run, ``network_silent_nodes``, ``network_cut_groups``,
    ``network_mute_pairs``, ``network_slow_nodes``, ``network_slow_links`` and
    ``network_slow_groups``; ``network_findings`` is their sum. They are recorded where the
    component has this criterion, by the groups of the machine.

    Undecided: a case without a matrix, if ``tests`` name its test or another of its cases left
    one; a case whose latest run left none, if it would be met by an older one; a component
    without any matrix; a rehearsal.
    """
    reason = NO_MATRIX if view.over else view.goes_on
    groups = view.groups(criterion)
    measuring = {group.case.test for group in groups if group.right(FINDINGS)}
    if not measuring:
        return [undecided(criterion, reason)]
    results = [
        _of_case(view, criterion, group) or undecided(criterion, reason, subject=group.name)
        for group in groups
        if (criterion.tests or group.case.test in measuring) and (group.runs or not group.stage)
    ]
    return with_worst(results, lambda one: one.value or 0.0)


def _of_case(view: TrialView, criterion: Criterion, group: NodeCases) -> Result | None:
    runs = group.right(FINDINGS)
    if not runs:
        return None
    latest, value = runs[-1]
    figures = {name: figure for name in WORDS if (figure := latest.figure(PREFIX + name))}
    numbers: Numbers = {name.replace("_", " "): one.value for name, one in figures.items()}
    parts = [count(int(one.value), WORDS[name]) for name, one in figures.items() if one.value]
    reason = f"{', '.join(parts) or 'nothing'} in the latest of {count(len(runs), 'run')}"
    subject = group.name
    result = decided(view, criterion, value, reason, n=len(runs), subject=subject, numbers=numbers)
    return unless_newer(result, group, latest, "left no matrix")
