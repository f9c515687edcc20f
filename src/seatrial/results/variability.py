"""How much the tests of a trial vary, and what goes with the failed and slow runs of a machine.

    found = variability(store, trial, machine)
    found.rows, found.kinds, found.spans, found.suspects, found.places

A row is a metric of the runs of one kind (a case; the nodes that it is pinned to are taken
together), first of all the elapsed time. Runs without a right answer are excluded, by their
verdict; of the others those farther off than a number of robust deviations, where one is given.
What a row of numbers hides is told beside it: changes of the level, modes, defective nodes.
"""

from __future__ import annotations

import math
import statistics
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.execute.trial_folder import known_machine
from seatrial.grouping import grouped
from seatrial.hooks import FactSource, load, provided
from seatrial.judge import file_use
from seatrial.judge.promises import Promised, beside
from seatrial.judge.statistics import changes, outliers
from seatrial.judge.statistics import spread as modes
from seatrial.judge.statistics.outliers import BadSpan, Survey, Suspects, find_suspects, spans
from seatrial.judge.statistics.significance import student_p
from seatrial.judge.statistics.spread import Mode, Spread, spread
from seatrial.model import nodes
from seatrial.model.figures import ELAPSED
from seatrial.model.machine import Machine
from seatrial.model.nodes import groups_of
from seatrial.results.references import promises_in
from seatrial.results.slow_places import (
    LEAST,
    LEVEL,
    NodeEvidence,
    RunKind,
    SlowPlaces,
    classified,
    deviations,
    jobs_of,
    places_of,
)
from seatrial.results.store import queries, series
from seatrial.results.store.queries import MEASURED
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import Filters, MetricRow, RunOutcome, TrialRow
from seatrial.units import SECOND_NS, Direction, count, direction_of, listed, unfit


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
    #: what was promised of the median
    promised: Promised | None = None

    @property
    def hidden(self) -> list[str]:
        """Remarks on what the numbers do not show: changes, modes, defective nodes."""
        remarks = [f"its level changed {count(self.changes, 'time')}"] if self.changes else []
        if len(self.modes) > 1:
            remarks.append(f"{len(self.modes)} modes")
        if self.nodes is not None and self.nodes.defective:
            remarks.append(f"defective: {listed(list(self.nodes.defective), 3)}")
        return remarks


class Variability(Struct, frozen=True):
    """``rows``: the table. ``kinds``: the outliers of each kind of runs. What outliers share:
    ``spans`` of time (s since the epoch), and ``suspects`` among nodes and groups. ``places``:
    where nodes were in the network, as a cause of times."""

    rows: list[VariabilityRow]
    kinds: list[RunKind]
    spans: list[BadSpan]
    suspects: outliers.Suspects
    evidence: NodeEvidence
    places: SlowPlaces


def variability(
    store: Store,
    trial: TrialRow,
    machine: Machine | None,
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
    found = outliers.find_suspects(evidence.jobs, of_nodes)
    rows = _with_promises(store, trial, outcomes, _rows(store, outcomes, metric, deviations))
    places = places_of(outcomes, machine, beside)
    return Variability(rows, kinds, spans(timed), found, evidence, places)


class _Metric(Struct, frozen=True):
    name: str
    unit: str
    better: Direction


def _figures_by_metric(
    runs: Sequence[RunOutcome], figures: Mapping[int, list[MetricRow]]
) -> dict[_Metric, list[tuple[float, str]]]:
    """Return the figures of runs with a right answer, each with the node of its run; the time of
    the script is one where a run has no figure of that name."""
    found: dict[_Metric, list[tuple[float, str]]] = {}
    for one in runs:
        if one.code not in MEASURED:
            continue
        own = figures.get(one.row, [])
        if one.elapsed is not None and not any(figure.name == ELAPSED for figure in own):
            own = [MetricRow(ELAPSED, one.elapsed, "s", "lower"), *own]
        for figure in own:
            metric = _Metric(figure.name, figure.unit, direction_of(figure.better))
            found.setdefault(metric, []).append((figure.value, one.node))
    return found


def _rows(
    store: Store,
    outcomes: Sequence[RunOutcome],
    metric: str,
    deviations: float | None,
) -> list[VariabilityRow]:
    figures = queries.figures(store, [one.row for one in outcomes if one.code in MEASURED])
    rows = []
    for (test, kind), runs in grouped(outcomes, attrgetter("test", "kind")).items():
        wrong = Counter(one.verdict for one in runs if one.code not in MEASURED)
        by_metric = _figures_by_metric(runs, figures) or {_Metric(ELAPSED, "s", "lower"): []}
        rows += [
            _row(test, kind, each, values, wrong, deviations)
            for each, values in by_metric.items()
            if metric in ("", each.name)
        ]
    return rows


def _with_promises(
    store: Store, trial: TrialRow, outcomes: Sequence[RunOutcome], rows: Sequence[VariabilityRow]
) -> list[VariabilityRow]:
    """Return the rows with what was promised of their medians."""
    ids = {case.name: case.id for case in queries.cases_of(store, trial)}
    cases = {(one.test, one.kind): ids.get(one.case_name, "") for one in outcomes}
    found = []
    for row in rows:
        promises = promises_in(trial.path, row.test, cases[row.test, row.kind])
        promised = beside(promises, row.metric, row.spread.median, row.unit)
        found.append(row._replace(promised=promised))
    return found


def _survey(by_node: dict[str, list[float]], better: Direction) -> Survey | None:
    if not by_node or better == "none":
        return None
    return outliers.survey(by_node, better)


def _by_node(figures: Sequence[tuple[float, str]]) -> dict[str, list[float]]:
    """Return the figures of each node, without those that are of no one node."""
    by_node: dict[str, list[float]] = {}
    for value, node in figures:
        if node:
            by_node.setdefault(node, []).append(value)
    return by_node


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
    by_node = _by_node(found)
    changed = [] if by_node else [c for c in changes.find(fit) if c.tier == "confirmed"]
    latest = fit[max((c.settled for c in changed), default=0) :]
    return VariabilityRow(
        *(test, kind, metric.name, metric.unit, metric.better),
        *(table, dict(excluded), len(changed), modes.find(latest)),
        _survey(by_node, metric.better),
    )


# ---- slow conditions -----------------------------------------------------------------------------
#
# What else goes with slow runs: the metadata target of a run, what gauges read while it ran, and
# what the run itself did to file systems.
#
#     found = slow_conditions(outcomes, gauge_readings, figures)
#     found.conditions[0]      # gauge f5_opens, above 60000: 12 % longer, p = 2e-05
#
# Each run is compared with the median of its case. Runs on a target are compared with those on all
# others; runs under a high gauge (the mean of its readings while they ran is above the median of
# these means) with the others; runs of which a figure, such as ``lustre_opens``, is above the
# median of their case with the others. Runs of the same quarter of an hour are one figure, the
# median of theirs: what slows the machine at a time slows them all. Welch's test on logarithms; p
# is multiplied by the number of questions (Bonferroni).


SPAN_NS = 900 * SECOND_NS
MIN_FIGURES = 4  # on each side
MAX_READINGS_APART_NS = 3600 * SECOND_NS  # an older reading tells nothing of a run

Figures = Mapping[str, Mapping[int, float]]
Readings = Mapping[str, Sequence[tuple[int, float]]]
Deviation = tuple[RunOutcome, float]


class SlowCondition(Struct, frozen=True):
    """A condition under which runs take longer or shorter: on the target ``name``, while the gauge
    ``name`` was above ``above``, or with more of the figure ``name`` than their case.
    ``ratio``: how many times as long runs take; ``runs`` of ``of`` were so; ``p`` is corrected."""

    kind: Literal["target", "gauge", "figure"]
    name: str
    above: float | None
    runs: int
    of: int
    ratio: float
    p: float


class SlowConditions(NamedTuple):
    """The conditions that go with times, the surest first, and how many questions were asked."""

    conditions: list[SlowCondition]
    questions: int


def slow_conditions(
    outcomes: Sequence[RunOutcome], readings: Readings, figures: Figures
) -> SlowConditions:
    """Return the targets, gauges and figures that explain times of runs of one machine better than
    chance. ``readings``: (time in ns, value) of each gauge, oldest first; ``figures``: those of
    runs, by name and the row of the run."""
    known = list(deviations(outcomes))
    asked = [*_of_targets(known), *_of_gauges(known, readings), *_of_figures(known, figures)]
    tested = [(one, p) for one, sides in asked if (p := student_p(*sides)) is not None]
    found = [
        SlowCondition(
            one.kind, one.name, one.above, one.runs, one.of, one.ratio, min(1.0, p * len(asked))
        )
        for one, p in tested
        if p * len(asked) < LEVEL and abs(math.log(one.ratio)) >= LEAST
    ]
    return SlowConditions(sorted(found, key=lambda one: one.p), len(asked))


Question = tuple[SlowCondition, tuple[list[float], list[float]]]


def _of_targets(known: Sequence[Deviation]) -> list[Question]:
    """Return a question for each target: its runs, and those on the others."""
    placed = [(one, x) for one, x in known if one.target]
    rows: dict[str, set[int]] = {}
    for one, _ in placed:
        rows.setdefault(one.target, set()).add(one.row)
    found = (_question("target", name, None, placed, own) for name, own in sorted(rows.items()))
    return [each for each in found if each is not None]


def _of_gauges(known: Sequence[Deviation], readings: Readings) -> list[Question]:
    """Return a question for each gauge: runs while it was high, and the others."""
    found = []
    for name, readings_of_name in sorted(readings.items()):
        means = _means(known, readings_of_name)
        if not means:
            continue
        middle = statistics.median(means.values())
        read = [(one, x) for one, x in known if one.row in means]
        high = {row for row, level in means.items() if level > middle}
        found.append(_question("gauge", name, middle, read, high))
    return [each for each in found if each is not None]


def _means(known: Sequence[Deviation], series: Sequence[tuple[int, float]]) -> dict[int, float]:
    """Return what a gauge read while runs ran, by the row of the run; of those of which it is
    known."""
    levels = ((one.row, _level(one, series)) for one, _ in known)
    return {row: level for row, level in levels if level is not None}


def _of_figures(known: Sequence[Deviation], figures: Figures) -> list[Question]:
    """Return a question for each figure: runs that have more of it than their case, and the
    others."""
    questions = []
    for name, values in sorted(figures.items()):
        measured = [(one, x) for one, x in known if one.row in values]
        high = _above_their_case([one for one, _ in measured], values)
        questions.append(_question("figure", name, None, measured, high))
    return [each for each in questions if each is not None]


def _above_their_case(runs: Sequence[RunOutcome], values: Mapping[int, float]) -> set[int]:
    """Return the runs with a value above the median of their case, by row."""
    high: set[int] = set()
    for own in grouped(runs, attrgetter("case_key")).values():
        middle = statistics.median(values[one.row] for one in own)
        high |= {one.row for one in own if values[one.row] > middle}
    return high


def _level(one: RunOutcome, series: Sequence[tuple[int, float]]) -> float | None:
    """Return the mean of the readings while a run ran, else the last one before it."""
    if one.script_started is None or not one.elapsed:
        return None
    end = one.script_started + int(one.elapsed * SECOND_NS)
    first = bisect_left(series, (one.script_started, -math.inf))
    last = bisect_left(series, (end, math.inf))
    if last > first:
        return statistics.mean(value for _, value in series[first:last])
    if first and one.script_started - series[first - 1][0] <= MAX_READINGS_APART_NS:
        return series[first - 1][1]
    return None


def _question(
    kind: Literal["target", "gauge", "figure"],
    name: str,
    above: float | None,
    known: Sequence[Deviation],
    members: set[int],
) -> Question | None:
    """Return the figures of both sides; None if one of them has too few."""
    sides: tuple[dict[int, list[float]], dict[int, list[float]]] = {}, {}
    for one, x in known:
        at = (one.script_started or 0) // SPAN_NS
        sides[one.row not in members].setdefault(at, []).append(x)
    inside, outside = ([statistics.median(xs) for xs in side.values()] for side in sides)
    if min(len(inside), len(outside)) < MIN_FIGURES:
        return None
    ratio = math.exp(statistics.mean(inside) - statistics.mean(outside))
    about = SlowCondition(kind, name, above, len(members), len(known), ratio, 1.0)
    return about, ([math.exp(x) for x in inside], [math.exp(x) for x in outside])


# ---- suspects ------------------------------------------------------------------------------------
#
# What explains the failed and slow runs of a machine better than chance: nodes, conditions, facts.
#
#     found = explanations(store, trials, filters)
#     found["frontier"].suspects, found["frontier"].conditions


class Explanation(Struct, frozen=True, kw_only=True):
    """What goes with the failed and slow runs of a machine. ``told``: what else is known of nodes;
    ``facts``: None without a source of facts."""

    suspects: Suspects
    evidence: NodeEvidence
    conditions: SlowConditions
    places: SlowPlaces
    told: dict[str, list[str]]
    facts: SlowFacts | None

    @property
    def accused(self) -> set[str]:
        """The nodes, or groups of nodes, that are suspects."""
        return {name for suspect in self.suspects.suspects for name in suspect.names}


def explanations(
    store: Store, trials: Sequence[TrialRow], filters: Filters
) -> dict[str, Explanation]:
    """Return what explains the runs of each machine, by its name. Only of ``trials`` if there are
    some; else of all but rehearsals."""
    found = _outcomes(store, trials, filters)
    beside = found
    if filters.test:  # where a run was in the network is judged beside all tests
        beside = _outcomes(store, trials, replace(filters, test=""))
    machines: dict[str, list[RunOutcome]] = {}
    for one in found:
        machines.setdefault(one.machine, []).append(one)
    failed = series.failed_nodes(store)
    figures = series.figures_by_run(store, file_use.UNITS)
    return {
        name: _explanation(store, name, runs, beside, failed, figures)
        for name, runs in machines.items()
    }


def _explanation(
    store: Store,
    machine: str,
    runs: list[RunOutcome],
    beside: list[RunOutcome],
    failed: dict[int, set[str]],
    figures: Figures,
) -> Explanation:
    evidence = jobs_of(classified(runs), failed)
    site = _machine(store, machine, runs)
    groups = nodes.groups_of(site) if site else {}
    gauges = series.gauge_readings(store, {one.trial for one in runs})
    return Explanation(
        suspects=find_suspects(evidence.jobs, {node: [group] for node, group in groups.items()}),
        evidence=evidence,
        conditions=slow_conditions(runs, gauges, figures),
        places=places_of(runs, site, [one for one in beside if one.machine == machine]),
        told=told_of_nodes(store, machine, runs),
        facts=slow_facts(store, machine, runs),
    )


def _outcomes(store: Store, trials: Sequence[TrialRow], filters: Filters) -> list[RunOutcome]:
    """Return the runs of these trials, each once; of all trials but rehearsals if none is named."""
    if not trials:
        return series.outcomes(store, filters)
    paths = dict.fromkeys(trial.path for trial in trials)
    return [one for path in paths for one in series.outcomes(store, replace(filters, trial=path))]


def _machine(store: Store, machine: str, runs: Sequence[RunOutcome]) -> Machine | None:
    """Return the description of a machine, from the latest trial of these runs that has one."""
    tags = {one.trial for one in runs}
    trials = (each for each in queries.trials(store) if each.tag in tags)  # newest first
    described = (known_machine(Path(each.path)) for each in trials if each.machine == machine)
    return next(filter(None, described), None)


# ---- facts of nodes ------------------------------------------------------------------------------
#
# What plug-ins know of the nodes of slow runs.


LATELY_NS = 7 * 86_400_000_000_000


class SlowFact(Struct, frozen=True):
    """A value of facts whose nodes are slower or faster than the others."""

    #: Several facts where they divide the nodes alike.
    keys: list[str]
    value: str
    #: The nodes that have it, folded; they are ``count`` of ``of``.
    nodes: str
    count: int
    of: int
    #: How many times as long runs take there as elsewhere.
    ratio: float
    #: Multiplied by the number of questions.
    p: float


class SlowFacts(NamedTuple):
    """The facts that go with times, the surest first, and how many questions were asked."""

    facts: list[SlowFact]
    questions: int


def _sources() -> Iterator[FactSource]:
    yield from provided("seatrial_fact_sources")


def told_of_nodes(store: Store, machine: str, runs: Sequence[RunOutcome]) -> dict[str, list[str]]:
    """Return what is known of nodes of a machine beside its runs: sentences by node."""
    told: dict[str, list[str]] = {}
    for source in _sources():
        if source.nodes:
            sentences: dict[str, str] = load(source.nodes)(store, machine, runs)
            for node, sentence in sentences.items():
                told.setdefault(node, []).append(sentence)
    return told


def told_lately(store: Store, machine: str) -> dict[str, list[str]]:
    """Return what is known of nodes of a machine beside its runs of the last seven days: sentences
    by node."""
    chosen = Filters(machine=machine, since=time.time_ns() - LATELY_NS)
    return told_of_nodes(store, machine, series.outcomes(store, chosen))


def slow_facts(store: Store, machine: str, runs: Sequence[RunOutcome]) -> SlowFacts | None:
    """Return the facts of nodes that go with slow runs of a machine; None if none are known."""
    known = [load(source.slow)(store, machine, runs) for source in _sources()]
    told: list[SlowFacts] = [one for one in known if one is not None]
    if not told:
        return None
    facts = [fact for one in told for fact in one.facts]
    return SlowFacts(sorted(facts, key=lambda fact: fact.p), sum(one.questions for one in told))
