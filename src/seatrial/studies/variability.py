"""How much the tests of a trial vary: the table of an acceptance report, and its outliers.

    found = variability(store, trial, machine)
    found.rows, found.kinds, found.spans, found.suspects, found.places

A row is a metric of the runs of one kind (a case; the nodes that it is pinned to are taken
together), first of all the elapsed time. Runs without a right answer are excluded, by their
verdict; of the others those farther off than a number of robust deviations, where one is given.
What a row of numbers hides is told beside it: changes of the level, modes, defective nodes.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import astuple

from seatrial.machine.facts import groups_of
from seatrial.statistics import changes, defective_nodes, modes, suspects
from seatrial.statistics.defective_nodes import Survey
from seatrial.statistics.modes import Mode
from seatrial.statistics.scan_statistic import BadSpan, spans
from seatrial.statistics.spread import Spread, spread
from seatrial.store import queries, series
from seatrial.store.queries import MEASURED
from seatrial.store.rows import Filters, MetricRow, RunOutcome, TrialRow
from seatrial.store.schema import Store
from seatrial.studies.evidence import NodeEvidence, RunKind, classified, jobs_of
from seatrial.studies.slow_places import SlowPlaces, places_of
from seatrial.units import SECOND_NS, Direction, count, direction_of, listed, unfit
from seatrial.verify.figures import ELAPSED

if TYPE_CHECKING:
    from seatrial.machine.model import Machine


class VariabilityRow(NamedTuple):
    """One metric of one kind of runs; ``excluded`` counts what was left out by its rule. Its level
    had so many confirmed ``changes``; ``modes`` are those of the figures since the last of these.
    ``defective_nodes`` judges nodes by it, where each has runs of its own."""

    test: str
    kind: str
    metric: str
    unit: str
    better: Direction
    spread: Spread
    excluded: dict[str, int]
    changes: int
    modes: list[Mode]
    nodes: Survey | None

    @property
    def hidden(self) -> list[str]:
        """Remarks on what the numbers do not show: changes, modes, defective nodes."""
        remarks = [f"its level changed {count(self.changes, 'time')}"] if self.changes else []
        if len(self.modes) > 1:
            remarks.append(f"{len(self.modes)} modes")
        if self.nodes is not None and self.nodes.defective:
            remarks.append(f"defective: {listed(list(self.nodes.defective), 3)}")
        return remarks


class Variability(NamedTuple):
    """``rows``: the table. ``kinds``: the outliers of each kind of runs. What outliers share:
    ``spans`` of time (s since the epoch), and ``suspects`` among nodes and groups. ``places``:
    where nodes were in the network, as a cause of times."""

    rows: list[VariabilityRow]
    kinds: list[RunKind]
    spans: list[BadSpan]
    suspects: suspects.Suspects
    evidence: NodeEvidence
    places: SlowPlaces


def variability(
    store: Store,
    trial: TrialRow,
    machine: "Machine | None",
    test: str = "",
    metric: str = "",
    deviations: float | None = None,
) -> Variability:
    """The variability of a trial's tests; ``test`` and ``metric`` choose. ``machine``: the trial's,
    None if it is not known."""
    outcomes = series.outcomes(store, Filters(trial=trial.path, test=test))
    beside = series.outcomes(store, Filters(trial=trial.path)) if test else outcomes
    kinds = classified(outcomes)
    evidence = jobs_of(kinds)
    timed = sorted(
        (start / SECOND_NS, job.bad)
        for job, start in zip(evidence.jobs, evidence.starts, strict=True)
        if start is not None
    )
    groups = groups_of(machine) if machine else {}
    of_nodes = {node: [group] for node, group in groups.items()}
    found = suspects.find(evidence.jobs, of_nodes)
    rows = _rows(store, outcomes, metric, deviations)
    places = places_of(outcomes, machine, beside)
    return Variability(rows, kinds, spans(timed), found, evidence, places)


def _rows(
    store: Store,
    outcomes: Sequence[RunOutcome],
    metric: str,
    deviations: float | None,
) -> list[VariabilityRow]:
    figures = queries.figures(store, [one.row for one in outcomes if one.code in MEASURED])
    groups: dict[tuple[str, str], list[RunOutcome]] = {}
    for one in outcomes:
        groups.setdefault((one.test, one.kind), []).append(one)
    rows = []
    for (test, kind), runs in groups.items():
        right = [one for one in runs if one.code in MEASURED]
        wrong = Counter(one.verdict for one in runs if one.code not in MEASURED)
        found: dict[_Metric, list[tuple[float, str]]] = {}
        for one in right:
            own = figures.get(one.row, [])
            if one.elapsed is not None and not any(figure.name == ELAPSED for figure in own):
                own = [MetricRow(ELAPSED, one.elapsed, "s", "lower"), *own]
            for name, value, unit, better in map(astuple, own):
                kept = found.setdefault(_Metric(name, unit, direction_of(better)), [])
                kept.append((value, one.node))
        if not found:
            found[_Metric(ELAPSED, "s", "lower")] = []
        rows += [
            _row(test, kind, each, values, wrong, deviations)
            for each, values in found.items()
            if metric in ("", each.name)
        ]
    return rows


def _survey(by_node: dict[str, list[float]], better: Direction) -> Survey | None:
    if not by_node or better == "none":
        return None
    return defective_nodes.survey(by_node, better)


class _Metric(NamedTuple):
    name: str
    unit: str
    better: Direction


def _row(
    test: str,
    kind: str,
    metric: _Metric,
    found: list[tuple[float, str]],
    wrong: Counter[str],
    deviations: float | None,
) -> VariabilityRow:
    """Return a row from the figures, each with the node that its case is pinned to, if it is."""
    values = [value for value, _ in found]
    table = spread(values, deviations)
    fit = [value for value in values if not unfit(value)]
    excluded = wrong + Counter(one.rule for one in table.excluded)
    by_node: dict[str, list[float]] = {}
    for value, node in found:
        if node:
            by_node.setdefault(node, []).append(value)
    changed = [] if by_node else [c for c in changes.find(fit) if c.tier == "confirmed"]
    latest = fit[max((c.settled for c in changed), default=0) :]
    return VariabilityRow(
        *(test, kind, metric.name, metric.unit, metric.better),
        *(table, dict(excluded), len(changed), modes.find(latest)),
        _survey(by_node, metric.better),
    )
