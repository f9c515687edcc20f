"""Latency and bandwidth of pairs, by level of a machine's network and by kind of core.

    lines, machine = lines_of_trial(store, trial)
    for figures in bands_of(lines, known_topology(machine)):
        figures.name, figures.found.bands, figures.modes["router"], figures.core_bands

The pairs are those of the probe ``pingpong``.
"""

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.escaping import plain, plain_line
from seatrial.execute.trial_folder import TrialFolder
from seatrial.judge.formats import without_labels
from seatrial.judge.reading import Unreadable, head, read_text
from seatrial.judge.statistics import spread
from seatrial.judge.statistics.bands import (
    Bands,
    BandStep,
    Better,
    CoreFigure,
    CoreKinds,
    Pair,
    core_kinds,
    expected_mean,
    judge,
    median_interval,
)
from seatrial.judge.statistics.spread import Mode
from seatrial.model import machine_topology
from seatrial.model.identifiers import is_case
from seatrial.model.machine import Machine
from seatrial.model.nodes import spans
from seatrial.model.topology import NODE, SYSTEM, Topology
from seatrial.results.store import queries
from seatrial.results.store.schema import Store
from seatrial.results.store.series import MetricSeries, Point
from seatrial.results.store.tables import Filters, RunRow, TrialRow
from seatrial.units import count, show_number

LIMIT = 2**26
HEAD = 4096
QUANTILES = 101
CLASSES = 4  # of distance, on a torus


# ---- the output of the probe -------------------------------------------------------------------
#
# The figures of pairs of ranks in an output of the probe ``pingpong``.
#
# pair 0 1 nodes n1 n2 cpus 0 1 latency 0.42 us (0.41..0.44) bandwidth 921.0 MiB/s (919.2..924.1)
#
# The intervals hold the medians of a pair's repetitions with 95 % or more. They are missing for
# fewer than six repetitions, and in outputs of older versions of the probe.


END = "pingpong finished, all messages correct"
Interval = tuple[float, float]
_INTERVAL = r"(?: \((\d+\.\d+)\.\.(\d+\.\d+)\))?"
_LINE = re.compile(
    r"pair (\d+) (\d+) nodes (\S+) (\S+) cpus (-?\d+) (-?\d+) "
    rf"latency ([\d.]+) us{_INTERVAL} bandwidth ([\d.]+) MiB/s{_INTERVAL}"
)


class PairLine(NamedTuple):
    """Two ranks with their nodes and CPUs; latency in us, bandwidth in MiB/s, and their intervals
    (None where the output has none)."""

    ranks: tuple[int, int]
    nodes: tuple[str, str]
    cpus: tuple[int, int]
    latency: float
    bandwidth: float
    latency_interval: Interval | None = None
    bandwidth_interval: Interval | None = None


def pair_lines(text: str) -> list[PairLine]:
    """Return the pairs of a whole output. Raises ValueError with the line that is none, or if the
    closing line is missing."""
    pairs = []
    text, _ = without_labels(text)
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("pair "):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None or not all(float(one) > 0 for one in match.groups()[6:] if one):
            raise ValueError(f"line {number} has no figures of a pair: {plain(line)[:100]}")
        i, j, a, b, x, y, latency, *between, bandwidth, low, high = match.groups()
        ends = (int(i), int(j)), (a, b), (int(x), int(y))
        figures = float(latency), float(bandwidth)
        pairs.append(PairLine(*ends, *figures, _interval(*between), _interval(low, high)))
    if not pairs:
        raise ValueError("it has no line `pair ...` of the probe pingpong")
    if END not in text:
        raise ValueError(f"its closing line {END!r} is missing")
    return pairs


def _interval(low: str | None, high: str | None) -> Interval | None:
    return None if low is None or high is None else (float(low), float(high))


# ---- bands -------------------------------------------------------------------------------------


class _PairMetric(NamedTuple):
    """A figure of pairs: its name, unit, and which is better."""

    name: str
    unit: str
    better: Better


METRICS = (_PairMetric("latency", "us", "lower"), _PairMetric("bandwidth", "MiB/s", "higher"))


class CoreBand(Struct, frozen=True):
    """Pairs of ranks of a level whose cores are of two kinds (numbers of ``CoreKinds.cpus``), with
    their ``share`` of the level; median and interval as of ``Band``."""

    level: str
    kinds: tuple[int, int]
    pairs: int
    share: float
    median: float
    low: float | None
    high: float | None


class LevelFigures(Struct, frozen=True):
    """A metric of pairs by level."""

    name: str
    unit: str
    better: Better
    found: Bands
    #: of the pairs of ranks of each level, as ``modes`` and ``quantiles``
    counts: dict[str, int]
    modes: dict[str, list[Mode]]
    #: at most 101, for a picture
    quantiles: dict[str, list[float]]
    #: None where a level that the machine has was not measured
    expected_mean: float | None
    #: the kinds of cores; None where all are alike
    cores: CoreKinds | None
    core_bands: list[CoreBand]
    #: the hops of the longest way of a torus, whose levels are classes of distance
    longest: int = 0

    def cores_text(self, band: CoreBand) -> str:
        """Return the cores at either end of the pairs of a band: ``0 to 1-3``."""
        assert self.cores is not None
        first, second = (spans(self.cores.cpus[kind]) for kind in band.kinds)
        return f"{first} to {second}"


# ---- where figures come from --------------------------------------------------------------


def lines_of_file(file: Path) -> list[PairLine]:
    """Return the pairs of an output of ``pingpong``. Raises UsageError."""
    try:
        return pair_lines(read_text(Path(), str(file), LIMIT, "judge fewer pairs"))
    except Unreadable as error:
        raise UsageError(str(error)) from None
    except ValueError as error:
        raise UsageError(f"{file}: {plain(str(error))[:300]}") from None


def runs_with_pairs(store: Store, filters: Filters) -> Iterator[tuple[RunRow, list[PairLine]]]:
    """Yield the right runs that have figures of pairs, the newest first. Raises UsageError if an
    output is not whole."""
    for run in queries.runs(store, filters):
        file = Path(run.path or "") / "stdout"
        start = head(file, HEAD) if run.path and run.code in queries.MEASURED else None
        if start is not None and "\npair " in f"\n{without_labels(start.text).text}":
            yield run, lines_of_file(file)


def lines_of_trial(store: Store, trial: TrialRow) -> "tuple[list[PairLine], Machine]":
    """Return the pairs of all right runs of a trial, and its machine. Raises UsageError if there
    are none."""
    runs = runs_with_pairs(store, Filters(trial=trial.path))
    found = [line for _, lines in runs for line in lines]
    if not found:
        raise UsageError(
            f"{trial.tag}: no run with a right answer has figures of pairs; run the probe "
            "`pingpong`: seatrial run suites/probes -k pingpong --set hosts=8,ranks=1"
        )
    return found, TrialFolder(Path(trial.path)).record().machine


# ---- judging ------------------------------------------------------------------------------


def bands_of(lines: Sequence[PairLine], topology: Topology) -> list[LevelFigures]:
    """Return the bands of each of METRICS. Raises UsageError for nodes that the topology lacks."""
    found = placed(lines, topology)
    levels = [NODE, *(level.name for level in topology.levels), SYSTEM]
    if topology.kind == "torus":
        classes = distance_classes(topology.longest)
        levels = [*levels[:-1], *classes.values()]
        found = [
            one._replace(level=classes[topology.hops(*one.ends)]) if one.level == SYSTEM else one
            for one in found
        ]
    return [_figures(found, metric, topology, list(dict.fromkeys(levels))) for metric in METRICS]


def distance_classes(longest: int) -> dict[int, str]:
    """Return a class for each number of hops up to the longest way: four of about equal width."""
    width = max(1, -(-longest // CLASSES))
    found = {}
    for hops in range(1, longest + 1):
        first = (hops - 1) // width * width + 1
        last = min(first + width - 1, longest)
        found[hops] = f"{first} to {last} hops" if last > first else count(first, "hop")
    return found


class _PlacedLine(NamedTuple):
    """A pair of ranks, the numbers of their nodes, and their level."""

    line: PairLine
    ends: tuple[int, int]
    level: str


def placed(lines: Sequence[PairLine], topology: Topology) -> list[_PlacedLine]:
    """Return pairs with their levels. Raises UsageError for nodes that the topology lacks."""
    number = topology.number_of
    found: list[_PlacedLine] = []
    lost: dict[str, None] = {}
    for line in lines:
        a, b = (node if node in number else node.partition(".")[0] for node in line.nodes)
        if missing := [node for node in (a, b) if node not in number]:
            lost |= dict.fromkeys(missing)
            continue
        ends = number[a], number[b]
        found.append(_PlacedLine(line, ends, topology.level(*ends)))
    if lost:
        raise UsageError(
            f"{', '.join(map(plain_line, list(lost)[:8]))}: not in the topology of the machine; "
            "give these nodes a place in its file (docs/how-to/machines.md#topology), or name "
            "another machine with --machine"
        )
    return found


def _figures(
    pairs: Sequence[_PlacedLine], metric: _PairMetric, topology: Topology, levels: Sequence[str]
) -> LevelFigures:
    by_distance = topology.kind == "torus"
    found = judge(_pairs(pairs, metric.name, topology), levels, metric.better, by_distance)
    of_level: dict[str, list[float]] = {band.level: [] for band in found.bands}
    cores = []
    for line, (a, b), level in pairs:
        value = getattr(line, metric.name)
        of_level[level].append(value)
        if a != b:
            cores.append(CoreFigure(level, *line.cpus, value))
    kinds = core_kinds(cores)
    core_bands = _core_bands(cores, kinds, levels) if kinds else []
    return LevelFigures(
        *metric,
        found=found,
        counts={level: len(values) for level, values in of_level.items()},
        modes={level: spread.find(values) for level, values in of_level.items()},
        quantiles={level: _quantiles(values) for level, values in of_level.items()},
        expected_mean=_expected(found, core_bands, topology),
        cores=kinds,
        core_bands=core_bands,
        longest=topology.longest if by_distance else 0,
    )


def _pairs(pairs: Sequence[_PlacedLine], name: str, topology: Topology) -> list[Pair]:
    """Return a figure for each pair of nodes, and for each pair of ranks on a node."""
    of_pair: dict[tuple[int, int, str], list[PairLine]] = defaultdict(list)
    level_of: dict[tuple[int, int], str] = {}
    for line, ends, level in pairs:
        level_of[min(ends), max(ends)] = level
        cores = " ".join(map(str, sorted(line.cpus))) if ends[0] == ends[1] else ""
        of_pair[min(ends), max(ends), cores].append(line)
    names, found = topology.names, []
    for (a, b, _), lines in of_pair.items():
        figure = median(getattr(line, name) for line in lines)
        place = names[a], names[b], level_of[a, b], topology.hops(a, b)
        found.append(Pair(*place, figure, _median_interval(lines, name)))
    return found


def _median_interval(lines: Sequence[PairLine], name: str) -> tuple[float, float] | None:
    """Return the medians of both ends of intervals; None where a line has none."""
    intervals = [getattr(line, f"{name}_interval") for line in lines]
    if None in intervals:
        return None
    return median(low for low, _ in intervals), median(high for _, high in intervals)


def _quantiles(values: list[float]) -> list[float]:
    ordered = sorted(values)
    if len(ordered) <= QUANTILES:
        return ordered
    step = (len(ordered) - 1) / (QUANTILES - 1)
    return [ordered[round(i * step)] for i in range(QUANTILES)]


def _expected(found: Bands, core_bands: Sequence[CoreBand], topology: Topology) -> float | None:
    """Return the mean of evenly drawn pairs of different nodes of the machine, and of their cores
    where these differ; None where a level that has pairs was not measured."""
    if topology.kind == "torus":
        mean = topology.mean_hops(range(len(topology.nodes)))
        return None if found.hop is None else found.hop.start + found.hop.cost * mean
    medians = {band.level: band.median for band in found.bands} | _means_of_levels(core_bands)
    names = [*(level.name for level in topology.levels), SYSTEM]
    counts = {name: pairs for name, pairs in zip(names, topology.pairs(), strict=True) if pairs}
    if not counts or counts.keys() - medians.keys():
        return None
    return expected_mean([medians[name] for name in counts], [*counts.values()])


def _means_of_levels(core_bands: Sequence[CoreBand]) -> dict[str, float]:
    by_level: dict[str, list[CoreBand]] = defaultdict(list)
    for band in core_bands:
        by_level[band.level].append(band)
    return {
        level: expected_mean([one.median for one in bands], [one.pairs for one in bands])
        for level, bands in by_level.items()
    }


def _core_bands(
    figures: Sequence[CoreFigure], kinds: CoreKinds, levels: Sequence[str]
) -> list[CoreBand]:
    """Return the pairs of each level by the kinds of their cores, in the order of levels."""
    of = kinds.of
    groups: dict[tuple[str, int, int], list[float]] = defaultdict(list)
    for one in figures:
        if one.first in of and one.second in of:
            first, second = sorted((of[one.first], of[one.second]))
            groups[one.level, first, second].append(one.value)
    counts: dict[str, int] = defaultdict(int)
    for (level, _, _), values in groups.items():
        counts[level] += len(values)
    found = []
    for level, first, second in sorted(groups, key=lambda key: (levels.index(key[0]), key[1:])):
        values = sorted(groups[level, first, second])
        low, high = median_interval(values) or (None, None)
        share = len(values) / counts[level]
        own = CoreBand(level, (first, second), len(values), share, median(values), low, high)
        found.append(own)
    return found


# ---- in words -----------------------------------------------------------------------------


def hop_text(one: LevelFigures) -> str:
    """Return what a hop costs, in words; on a torus with the near end and the far end."""
    hop = one.found.hop
    if hop is None:
        return ""
    ends = f"{hop.low:.3g}..{hop.high:.3g}"
    if one.longest and hop.low <= 0 <= hop.high:
        return f"no cost of a hop can be told ({ends} {one.unit} a hop)"
    said = f"{hop.cost:.3g} {one.unit} a hop ({ends})"
    if not one.longest:
        return said
    near, far = (hop.start + hop.cost * hops for hops in (1, one.longest))
    way = f"{show_number(near)} at 1 hop, {show_number(far)} at {one.longest}, the longest way"
    more = "more" if far > near else "less"
    return f"{said}: {way}: {show_number(abs(far - near))} {one.unit} {more}"


def step_texts(one: LevelFigures) -> list[str]:
    """Return what is known of the steps between levels, in words; of classes of distance only where
    it is something, as the line over hops tells more."""
    found = one.found
    shown = [step for step in found.steps if step.p is not None or found.hop is None]
    return [step_text(one.name, step) for step in shown]


def step_text(name: str, step: BandStep) -> str:
    """Return what is known of a step between two levels, in words."""
    levels, p = f"{step.larger} against {step.smaller}", step.p
    if p is None:
        return f"{levels}: too few pairs for a test"
    if not step.proven:
        return f"{levels}: {name} cannot be told apart (p = {p:.2g}, corrected)"
    expected = (step.ratio > 1) == (name == "latency")
    word = "" if expected else "; this is no order of levels: the smaller one is worse"
    return f"{levels}: {step.ratio:.3g} times the {name} (p = {p:.2g}, corrected){word}"


# ---- band series ---------------------------------------------------------------------------------
#
# Latency and bandwidth by level of the network over time: a series for each case and level.
#
#     series_by_level(store, "latency_by_level", Filters(machine="franklin"))
#
# A figure is the median of the pairs of ranks of a level in one run of the test or application
# ``pingpong``.


APP = "pingpong"
BY_LEVEL = {f"{metric.name}_by_level": metric for metric in METRICS}


class _Key(NamedTuple):
    """What a series is of. ``height`` is the number of the level."""

    machine: str
    case: str
    stage: str
    height: int
    level: str


def _topology_of(trial: str) -> Topology | None:
    return machine_topology.topology_of(TrialFolder(Path(trial)).record().machine)


def series_by_level(
    store: Store, name: str, filters: Filters, case: str = "", stage: str = ""
) -> list[MetricSeries]:
    """Return the series of one of BY_LEVEL, by machine, case and level. ``case`` is a part of a
    case's name, a pattern, or a beginning of its id with the level. Raises UsageError where there
    is none."""
    metric = BY_LEVEL[name]
    topology_of = functools.cache(_topology_of)
    found: dict[_Key, list[tuple[RunRow, list[float]]]] = defaultdict(list)
    excluded: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for run in reversed(queries.runs(store, filters)):  # the oldest first
        is_right = run.code in queries.MEASURED
        if APP not in (run.app, run.test) or not is_right or stage not in ("", run.stage):
            continue
        network = topology_of(queries.trial_of(store, run).path)
        own = run.machine, run.case, run.stage
        if network is None:
            excluded[own]["of a machine without a topology"] += 1
            continue
        try:
            levels = _by_level(run, metric, network)
        except UsageError:
            excluded[own]["without figures of pairs that can be read and placed"] += 1
            continue
        for (height, level), values in levels.items():
            key = _Key(*own, height, level)
            if is_case(case, f"{run.case_name}: {level}", _case_of(key)):
                found[key].append((run, values))
    if not found:
        reasons = sum(excluded.values(), Counter[str]())
        causes = "".join(f"; {count} left out: {reason}" for reason, count in reasons.items())
        raise UsageError(
            f"{name}: no right run of the probe {APP} matches{causes}; it needs runs of {APP} on a "
            "machine whose file tells its `topology` (docs/how-to/machines.md#topology)"
        )
    return [_series(name, key, found[key], excluded[key[:3]]) for key in sorted(found)]


def _by_level(
    run: RunRow, metric: _PairMetric, network: Topology
) -> dict[tuple[int, str], list[float]]:
    """Return the figures of a run by the number and the name of their level."""
    names = [NODE, *(level.name for level in network.levels), SYSTEM]
    found: dict[tuple[int, str], list[float]] = defaultdict(list)
    for line, _, level in placed(lines_of_file(Path(run.path) / "stdout"), network):
        found[names.index(level), level].append(getattr(line, metric.name))
    return found


def _series(
    name: str, key: _Key, runs: list[tuple[RunRow, list[float]]], excluded: Counter[str]
) -> MetricSeries:
    latest = runs[-1][0]
    stage = f" [{key.stage}]" if key.stage else ""
    metric = BY_LEVEL[name]
    return MetricSeries(
        metric=name,
        machine=key.machine,
        case=_case_of(key),
        case_name=f"{latest.case_name}{stage}: {key.level}",
        test=latest.test,
        toolchain=latest.toolchain,
        stage=key.stage,
        unit=metric.unit,
        better=metric.better,
        points=[
            Point(run.script_started or run.created, median(values), run.run_id, run.trial)
            for run, values in runs
        ],
        excluded=dict(excluded),
        parts=[values for _, values in runs],
    )


def _case_of(key: _Key) -> str:
    """Return the id of a case and a level."""
    return f"{key.case}:{key.level}"
