"""How much the tests of a trial vary: the table of an acceptance report, and its outliers.

    found = variability(store, trial, groups)
    found.rows, found.kinds, found.spans, found.suspects

A row is a metric of the runs of one kind (a case; the nodes that it is pinned to are taken
together), first of all the elapsed time. Runs without a right answer are excluded, by their
verdict; of the others those farther off than a number of robust deviations, where one is given.
What a row of numbers hides is told beside it: changes of the level, modes, defective nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from seatrial.statistics import changes, defective_nodes, modes, suspects
from seatrial.statistics.defective_nodes import Survey
from seatrial.statistics.modes import Modes
from seatrial.statistics.scan_statistic import BadSpan, spans
from seatrial.statistics.spread import Spread, spread
from seatrial.store import queries, series
from seatrial.store.queries import MEASURED
from seatrial.store.rows import Filters, RunOutcome, TrialRow
from seatrial.store.schema import Store
from seatrial.studies.evidence import NodeEvidence, RunKind, classified, jobs_of
from seatrial.studies.history import ELAPSED
from seatrial.units import SECOND_NS, Better, better_of, count, listed, unfit


class VariabilityRow(NamedTuple):
    """One metric of one kind of runs; ``excluded`` counts what was left out by its rule. Its level
    had so many confirmed ``changes``; ``modes`` are those of the figures since the last of these.
    ``defective_nodes`` judges nodes by it, where each has runs of its own."""

    test: str
    kind: str
    metric: str
    unit: str
    better: Better
    spread: Spread
    excluded: dict[str, int]
    changes: int
    modes: Modes
    nodes: Survey | None

    @property
    def hidden(self) -> list[str]:
        """Remarks on what the numbers do not show: changes, modes, defective nodes."""
        remarks = [f"its level changed {count(self.changes, 'time')}"] if self.changes else []
        if len(self.modes.modes) > 1:
            remarks.append(f"{len(self.modes.modes)} modes")
        if self.nodes is not None and self.nodes.defective:
            remarks.append(f"defective: {listed(list(self.nodes.defective), 3)}")
        return remarks


class Variability(NamedTuple):
    """``rows``: the table. ``kinds``: the outliers of each kind of runs. What outliers share:
    ``spans`` of time (s since the epoch), and ``suspects`` among nodes and groups."""

    rows: list[VariabilityRow]
    kinds: list[RunKind]
    spans: list[BadSpan]
    suspects: suspects.Suspects
    evidence: NodeEvidence


def variability(
    store: Store,
    trial: TrialRow,
    groups: Mapping[str, str],
    test: str = "",
    metric: str = "",
    deviations: float | None = None,
) -> Variability:
    """The variability of a trial's tests; ``test`` and ``metric`` choose."""
    filters = Filters(trial=trial.path, test=test)
    outcomes = series.outcomes(store, filters)
    kinds = classified(outcomes)
    evidence = jobs_of(kinds)
    timed = sorted(
        (start / SECOND_NS, job.bad)
        for job, start in zip(evidence.jobs, evidence.starts, strict=True)
        if start is not None
    )
    of_nodes = {node: [group] for node, group in groups.items()}
    found = suspects.find(evidence.jobs, of_nodes)
    rows = _rows(store, filters, outcomes, metric, deviations)
    return Variability(rows, kinds, spans(timed), found, evidence)


def _rows(
    store: Store,
    filters: Filters,
    outcomes: Sequence[RunOutcome],
    metric: str,
    deviations: float | None,
) -> list[VariabilityRow]:
    runs = queries.runs(store, filters)
    figures = queries.figures(store, runs)
    by_run: dict[str, list[tuple[str, str, str, float]]] = {}
    for run in runs:
        found = [(m.name, m.unit, m.better, m.value) for m in figures.get(run.row, ())]
        if run.elapsed is not None and not any(name == ELAPSED for name, *_ in found):
            found.insert(0, (ELAPSED, "s", "lower", run.elapsed))
        by_run[run.run_id] = found
    values: dict[tuple[str, str], dict[_Metric, list[_Value]]] = {}
    wrong: dict[tuple[str, str], Counter[str]] = {}
    for one in outcomes:
        key = (one.test, one.kind)
        mine = values.setdefault(key, {})
        if one.code not in MEASURED:
            wrong.setdefault(key, Counter())[one.verdict] += 1
            continue
        for name, unit, better, value in by_run.get(one.run_id, ()):
            direction = better_of(better)
            figures_of = mine.setdefault(_Metric(name, unit, direction), [])
            figures_of.append(_Value(value, one.node))
    rows = []
    for (test, kind), metrics in values.items():
        excluded = wrong.get((test, kind), Counter())
        if not metrics and metric in ("", ELAPSED):
            metrics[_Metric(ELAPSED, "s", "lower")] = []
        rows += [
            _row(test, kind, each, found, excluded, deviations)
            for each, found in metrics.items()
            if metric in ("", each.name)
        ]
    return rows


class _Metric(NamedTuple):
    name: str
    unit: str
    better: Better


class _Value(NamedTuple):
    """A figure, and the node that its case is pinned to, if it is."""

    value: float
    node: str


def _row(
    test: str,
    kind: str,
    metric: _Metric,
    found: list[_Value],
    wrong: Counter[str],
    deviations: float | None,
) -> VariabilityRow:
    values = [one.value for one in found]
    table = spread(values, deviations)
    fit = [value for value in values if not unfit(value)]
    excluded = Counter(wrong)
    for one in table.excluded:
        excluded[one.rule] += 1
    by_node: dict[str, list[float]] = {}
    for value, node in found:
        if node:
            by_node.setdefault(node, []).append(value)
    changed = [] if by_node else [c for c in changes.find(fit) if c.tier == "confirmed"]
    latest = fit[changed[-1].index :] if changed else fit
    return VariabilityRow(
        *(test, kind, metric.name, metric.unit, metric.better),
        *(table, dict(excluded), len(changed), modes.find(latest)),
        defective_nodes.survey(by_node, metric.better) if by_node else None,
    )
