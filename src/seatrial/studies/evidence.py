"""What runs say for or against nodes: which were bad, which good, which say nothing.

    kinds = classified(outcomes)          # outliers of each kind of runs
    jobs_of(kinds).jobs                   # for statistics.suspects

Runs of one kind (a case, whatever node it is pinned to, on one machine) should go alike. What a
person or the scheduler ended, and what never started on a node, is evidence of nothing.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.journal import codes
from seatrial.machine.node_sets import unfold_or_empty
from seatrial.statistics import outliers, suspects
from seatrial.statistics.outliers import Outlier, Outliers
from seatrial.store.queries import MEASURED
from seatrial.store.rows import RunOutcome

# Ended by a person's or the scheduler's will: no outlier, and no evidence.
WILLED = {
    code.number
    for code in (
        *(codes.CANCELLED, codes.PREEMPTED, codes.REQUEUED, codes.REVOKED, codes.DEADLINE),
        codes.SPECIAL_EXIT,
    )
}
# Failed, but no node had a part in it.
NOT_OF_NODES = {
    code.number
    for code in (
        *(codes.BUILD_FAILED, codes.LAUNCH_FAILED, codes.REFUSED),
        *(codes.CHECK_ERROR, codes.TOO_LARGE),
    )
}


NOBODY: Mapping[int, Collection[str]] = {}


class RunKind(NamedTuple):
    """The runs of one kind and those of them that are outliers; ``willed`` are not among them."""

    name: str
    test: str
    machine: str
    runs: list[RunOutcome]
    found: Outliers
    willed: int

    @property
    def outlying(self) -> list[tuple[Outlier, RunOutcome]]:
        """The outliers, each with its run."""
        runs = {_name(one): one for one in self.runs}
        return [(outlier, runs[outlier.run]) for outlier in self.found.outliers]


def classified(outcomes: Sequence[RunOutcome]) -> list[RunKind]:
    """The outliers of each kind of runs, in the order in which the kinds first ran."""
    groups: dict[tuple[str, ...], list[RunOutcome]] = {}
    for one in outcomes:
        key = (one.machine, *one.case_key)
        groups.setdefault(key, []).append(one)
    return [_kind(group) for group in groups.values()]


def _kind(group: list[RunOutcome]) -> RunKind:
    runs = [one for one in group if one.code not in WILLED]
    first = group[0]
    found = outliers.classify([_run(one) for one in runs])
    by_run = {outlier.run: outlier for outlier in found.outliers}
    for one in runs:
        name = _name(one)
        if one.code == codes.TIMEOUT.number:  # by the scheduler's word, whatever the clock says
            by_run[name] = Outlier(name, "walltime", by_run[name].why)
        elif one.code == codes.PERFORMANCE.number and name not in by_run:
            by_run[name] = Outlier(name, "slow", one.why)
    ordered = [by_run[name] for one in runs if (name := _name(one)) in by_run]
    found = replace(found, outliers=ordered)
    return RunKind(first.kind, first.test, first.machine, runs, found, len(group) - len(runs))


def _name(one: RunOutcome) -> str:
    return f"{one.trial}/{one.run_id}"


def _run(one: RunOutcome) -> outliers.RunSample:
    cause = "" if one.code in MEASURED else one.verdict
    return outliers.RunSample(_name(one), one.elapsed, cause, one.walltime)


# ---- evidence -----------------------------------------------------------------------------


class NodeEvidence(NamedTuple):
    """Runs as evidence for or against nodes: those of ``jobs`` with their starts (ns, None where
    not known), and how many were left out, by the reason."""

    jobs: list[suspects.RunOnNodes]
    starts: list[int | None]
    left_out: dict[str, int]


def jobs_of(
    kinds: Sequence[RunKind], failed: Mapping[int, Collection[str]] = NOBODY
) -> NodeEvidence:
    """The runs of these kinds as evidence. A kind that never went well says nothing of nodes: it
    would accuse whatever it ran on. ``failed``: the nodes on which a run, by its row, found
    something; it speaks against each of these, and for its other nodes."""
    jobs: list[suspects.RunOnNodes] = []
    starts: list[int | None] = []
    left_out: Counter[str] = Counter()
    for kind in kinds:
        if kind.willed:
            left_out["ended by a person or the scheduler"] += kind.willed
        bad = {outlier.run for outlier in kind.found.outliers}
        if len(bad) == len(kind.runs) > 1:
            left_out[f"of {kind.name}, which never went well"] += len(kind.runs)
            continue
        for one in kind.runs:
            nodes = unfold_or_empty(one.nodes)
            if one.code in NOT_OF_NODES:
                left_out["failed before or after its nodes' part"] += 1
            elif not nodes:
                left_out["without known nodes"] += 1
            elif one.row in failed:
                own = [node for node in nodes if node in failed[one.row]]
                rest = [node for node in nodes if node not in failed[one.row]]
                told = [suspects.RunOnNodes([node], True) for node in own]
                told += [suspects.RunOnNodes(rest, False)] if rest else []
                jobs += told
                starts += [one.script_started] * len(told)
            else:
                jobs.append(suspects.RunOnNodes(nodes, _name(one) in bad))
                starts.append(one.script_started)
    return NodeEvidence(jobs, starts, dict(left_out))
