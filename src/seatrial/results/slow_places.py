"""Whether the times of runs go with where their nodes were in the network.

    found = slow_places(outcomes, topology, beside)
    found.trends[0].covariate, found.trends[0].ratio     # "groups touched", 1.11

Of each run: how many units of each level its nodes touch, the mean hops between two of them, and
how many of its smallest units (routers, leaf switches) had nodes of other runs of its trial while
it ran. Each run is compared with the median of its case. Runs of a case on the same nodes are one
figure, the median of theirs, so that many runs on few nodes are no more evidence than these are.
"""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.grouping import grouped
from seatrial.judge.statistics import outliers
from seatrial.judge.statistics.outliers import Outlier, Outliers
from seatrial.judge.statistics.trends import Correlation, CorrelationSample, correlations, theil_sen
from seatrial.model import codes, machine_topology
from seatrial.model.machine import Machine
from seatrial.model.node_set import unfold_or_empty
from seatrial.model.topology import Topology
from seatrial.results.store.queries import MEASURED
from seatrial.results.store.tables import RunOutcome
from seatrial.units import SECOND_NS

LEVEL = 0.05  # of causes of slow runs
LEAST = 0.005  # a smaller difference is not told, however certain it is
MIN_RUNS = 4  # of a case
PLACES_LEVEL = (
    0.001  # stricter than for other causes: covariates of places are many and go together
)
MIN_FIGURES = 6  # of a test: with fewer no order of them is rare
MAX_FIGURES = 2000  # of a test, the latest

HOPS = "mean hops"


class PlaceTrend(Struct, frozen=True):
    """The times of a test's runs rise (``ratio`` above 1) or fall with a covariate."""

    test: str
    covariate: str
    #: as far as the covariate goes among the runs of one case
    start: float
    end: float
    #: how many times as long runs take at ``end`` as at ``start``, with its interval of 95 %
    ratio: float
    low: float
    high: float
    #: that were compared
    runs: int
    #: corrected
    p: float
    #: other covariates with which the times rise or fall, less surely
    also: list[str]

    @property
    def sentence(self) -> str:
        """The trend in words: ``elapsed of milc rises with groups touched: 1 -> 3: +11 % ...``"""
        how = "rises" if self.ratio > 1 else "falls"
        percent = [100 * (ratio - 1) for ratio in (self.ratio, self.low, self.high)]
        said = f"{percent[0]:+.2g} % ({percent[1]:.2g}..{percent[2]:.2g})"
        more = f"; so it does with {', '.join(self.also)}" if self.also else ""
        return (
            f"elapsed of {self.test} {how} with {self.covariate}: {self.start:.3g} -> "
            f"{self.end:.3g}: {said}, {self.runs} runs; p = {self.p:.2g}, corrected{more}"
        )


class SlowPlaces(NamedTuple):
    """The trends, the surest first, and how many covariates of tests were compared."""

    trends: list[PlaceTrend]
    questions: int


def slow_places(
    outcomes: Sequence[RunOutcome], topology: Topology, beside: Sequence[RunOutcome]
) -> SlowPlaces:
    """Return what of the places of runs explains their times better than chance, the surest
    covariate of each test. ``beside``: all runs of their trials."""
    of_tests = _figures(outcomes, topology, shared_units(beside, topology))
    samples = [_sample(figures) for figures in of_tests.values()]
    found, questions = [], 0
    for (test, figures), sample, told in zip(
        of_tests.items(), samples, correlations(samples), strict=True
    ):
        names = [*figures[0].covariates]
        known = {name: one for name, one in zip(names, told, strict=True) if one is not None}
        questions += len(known)
        if trend := _trend(test, figures, sample, known):
            found.append(trend)
    return SlowPlaces(sorted(found, key=lambda one: one.p), questions)


def places_of(
    outcomes: Sequence[RunOutcome], machine: "Machine | None", beside: Sequence[RunOutcome]
) -> SlowPlaces:
    """Return the same of the runs of a machine; nothing where its network is not known."""
    topology = machine_topology.topology_of(machine) if machine else None
    return slow_places(outcomes, topology, beside) if topology else SlowPlaces([], 0)


# ---- times of runs beside those of their case ----------------------------------------------------


def deviations(outcomes: Sequence[RunOutcome]) -> Iterator[tuple[RunOutcome, float]]:
    """Yield the runs whose answer was right, each with the logarithm of its time beside the median
    of its case. Cases of few runs are left out."""
    right = (one for one in outcomes if one.code in MEASURED and one.elapsed)
    for runs in grouped(right, attrgetter("case_key")).values():
        if len(runs) >= MIN_RUNS:
            times = [math.log(one.elapsed or 1.0) for one in runs]
            middle = statistics.median(times)
            yield from zip(runs, (time - middle for time in times), strict=True)


# ---- covariates ---------------------------------------------------------------------------


class _Figure(Struct, frozen=True):
    """The runs of a case that had the same nodes and covariates: the logarithm of their time beside
    the median of their case, and how many they are."""

    case: tuple[str, ...]
    covariates: dict[str, float]
    deviation: float
    runs: int


def _figures(
    outcomes: Sequence[RunOutcome], topology: Topology, shared: Mapping[int, int]
) -> dict[str, list[_Figure]]:
    """Return the figures of each test; those on nodes that the network lacks are left out."""
    covariates_of = cache(lambda nodes: _covariates(nodes, topology))
    runs: dict[str, dict[tuple[tuple[str, ...], str, int], list[float]]] = defaultdict(dict)
    for one, deviation in deviations(outcomes):
        if covariates_of(one.nodes):
            case = (one.kind, one.parameters, one.toolchain)
            key = (case, one.nodes, shared.get(one.row, 0))
            runs[one.test].setdefault(key, []).append(deviation)
    shared_name = f"{_plural(topology.levels[0].name)} shared with other runs"
    found = {
        test: [
            _Figure(
                case,
                {**covariates_of(nodes), shared_name: float(units)},
                statistics.median(own),
                len(own),
            )
            for (case, nodes, units), own in groups.items()
        ][-MAX_FIGURES:]
        for test, groups in runs.items()
    }
    return {test: figures for test, figures in found.items() if len(figures) >= MIN_FIGURES}


def _covariates(nodes: str, topology: Topology) -> dict[str, float]:
    """Return the covariates of a node set by name; none where the network lacks one of them."""
    numbers = [topology.number_of.get(name) for name in unfold_or_empty(nodes)]
    there = [number for number in numbers if number is not None]
    if not there or len(there) < len(numbers):
        return {}
    found = {
        f"{_plural(level.name)} touched": float(len({level.unit_of[node] for node in there}))
        for level in topology.levels
    }
    return {**found, HOPS: topology.mean_hops(there)}


def _plural(level: str) -> str:
    return level if level.endswith("s") else f"{level}es" if level.endswith("ch") else f"{level}s"


def shared_units(outcomes: Sequence[RunOutcome], topology: Topology) -> dict[int, int]:
    """Return for each run, by its row, on how many units of the smallest level other runs of its
    trial had nodes while it ran."""
    unit_of, number_of = topology.levels[0].unit_of, topology.number_of
    units_of = cache(
        lambda nodes: {
            unit_of[number_of[name]] for name in unfold_or_empty(nodes) if name in number_of
        }
    )
    intervals: dict[tuple[str, int], list[tuple[int, int, int]]] = defaultdict(list)
    for one in outcomes:
        if one.script_started is not None and one.elapsed:
            end = one.script_started + int(one.elapsed * SECOND_NS)
            for unit in units_of(one.nodes):
                intervals[one.trial, unit].append((one.script_started, end, one.row))
    return Counter(row for own in intervals.values() for row in _overlapping(sorted(own)))


def _overlapping(intervals: Sequence[tuple[int, int, int]]) -> Iterator[int]:
    """Yield the rows of intervals (start, end, row) that overlap another; in order of start."""
    latest = -math.inf
    for i, (start, end, row) in enumerate(intervals):
        if start < latest or (i + 1 < len(intervals) and intervals[i + 1][0] < end):
            yield row
        latest = max(latest, end)


# ---- trends -------------------------------------------------------------------------------


def _sample(figures: Sequence[_Figure]) -> CorrelationSample:
    cases = {case: number for number, case in enumerate(dict.fromkeys(f.case for f in figures))}
    return CorrelationSample(
        [cases[one.case] for one in figures],
        [[one.covariates[name] for one in figures] for name in figures[0].covariates],
        [one.deviation for one in figures],
    )


def _trend(
    test: str,
    figures: Sequence[_Figure],
    sample: CorrelationSample,
    known: Mapping[str, Correlation],
) -> PlaceTrend | None:
    """Return the trend of a test with its surest covariate; None if chance explains it."""
    sure = {name: one for name, one in known.items() if one.p < PLACES_LEVEL}
    names = sorted(sure, key=lambda name: -abs(sure[name].deviate))
    if not names:
        return None
    x = [one.covariates[names[0]] for one in figures]
    found = theil_sen(x, sample.figures, sample.strata)
    assert found is not None  # it differs within a case, or it were not known
    start, end = _reach(x, sample.strata)
    ratio, low, high = (math.exp(each * (end - start)) for each in found)
    if abs(math.log(ratio)) < LEAST:
        return None
    runs = sum(one.runs for one in figures)
    return PlaceTrend(
        test, names[0], start, end, ratio, low, high, runs, sure[names[0]].p, names[1:]
    )


def _reach(x: Sequence[float], strata: Sequence[int]) -> tuple[float, float]:
    """Return the least and the largest value of the stratum in which they are farthest apart."""
    of: dict[int, list[float]] = defaultdict(list)
    for stratum, value in zip(strata, x, strict=True):
        of[stratum].append(value)
    return max(((min(own), max(own)) for own in of.values()), key=lambda ends: ends[1] - ends[0])


# ---- evidence ------------------------------------------------------------------------------------
#
# What runs say for or against nodes: which were bad, which good, which say nothing.
#
#     kinds = classified(outcomes)          # outliers of each kind of runs
#     jobs_of(kinds).jobs                   # for statistics.suspects
#
# Runs of one kind (a case, whatever node it is pinned to, on one machine) should go alike. What a
# person or the scheduler ended, and what never started on a node, is evidence of nothing.


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
    return list(map(_kind, grouped(outcomes, attrgetter("machine", "case_key")).values()))


def _kind(group: list[RunOutcome]) -> RunKind:
    runs = [one for one in group if one.code not in WILLED]
    first = group[0]
    found = outliers.classify([_run(one) for one in runs])
    found = replace(found, outliers=list(_with_verdicts(runs, found.outliers)))
    return RunKind(first.kind, first.test, first.machine, runs, found, len(group) - len(runs))


def _with_verdicts(runs: Sequence[RunOutcome], outliers: Sequence[Outlier]) -> Iterator[Outlier]:
    """Yield the outliers in the order of their runs, with those that only their verdicts tell."""
    by_run = {outlier.run: outlier for outlier in outliers}
    for one in runs:
        name = _name(one)
        if one.code == codes.TIMEOUT.number:  # by the scheduler's word, whatever the clock says
            yield Outlier(name, "walltime", by_run[name].reason)
        elif name in by_run:
            yield by_run[name]
        elif one.code == codes.PERFORMANCE.number:
            yield Outlier(name, "slow", one.why)


def _name(one: RunOutcome) -> str:
    return f"{one.trial}/{one.run_id}"


def _run(one: RunOutcome) -> outliers.RunSample:
    cause = "" if one.code in MEASURED else one.verdict
    return outliers.RunSample(_name(one), one.elapsed, cause, one.walltime)


# ---- evidence -----------------------------------------------------------------------------


class NodeEvidence(NamedTuple):
    """Runs as evidence for or against nodes: those of ``jobs`` with their starts (ns, None where
    not known), and how many were left out, by the reason."""

    jobs: list[outliers.RunOnNodes]
    starts: list[int | None]
    left_out: dict[str, int]


def _evidence_of(
    nodes: Sequence[str], failed: Collection[str] | None, *, is_bad: bool
) -> list[outliers.RunOnNodes]:
    """Return a run as evidence; where it names the nodes that ``failed``, for each by itself."""
    if failed is None:
        return [outliers.RunOnNodes(nodes, is_bad)]
    rest = [node for node in nodes if node not in failed]
    told = [outliers.RunOnNodes([node], True) for node in nodes if node in failed]
    return [*told, outliers.RunOnNodes(rest, False)] if rest else told


def jobs_of(
    kinds: Sequence[RunKind], failed: Mapping[int, Collection[str]] = NOBODY
) -> NodeEvidence:
    """The runs of these kinds as evidence. A kind that never went well says nothing of nodes: it
    would accuse whatever it ran on. ``failed``: the nodes on which a run, by its row, found
    something; it speaks against each of these, and for its other nodes."""
    jobs: list[outliers.RunOnNodes] = []
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
            else:
                told = _evidence_of(nodes, failed.get(one.row), is_bad=_name(one) in bad)
                jobs += told
                starts += [one.script_started] * len(told)
    return NodeEvidence(jobs, starts, dict(left_out))
