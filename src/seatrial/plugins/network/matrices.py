"""Read an all-pairs matrix of a network, and judge it with the machine's groups and levels.

    matrix = read(path)                # mpiGraph's output, or pairs.matrix of the probe ``pairs``
    judged(matrix, groups_of(machine)).network.senders
    judgement, findings = judged_by_level(matrix, groups, topology)

If several ranks ran on a node, the figure of two nodes is the median over their pairs of ranks;
ranks of one node share memory, which says nothing about the network. ``by_rank`` judges each rank
separately, for nodes on which each has its own network card.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.escaping import plain
from seatrial.execute.run_collector import RunReader
from seatrial.execute.runs import RunUnderWay
from seatrial.execute.trial_folder import Record
from seatrial.judge.formats import without_labels
from seatrial.judge.outputs import mpigraph
from seatrial.judge.reading import TooLarge, Unreadable, head, read_text
from seatrial.judge.statistics import all_pairs
from seatrial.judge.statistics.all_pairs import Blocks, Network, blocks
from seatrial.judge.statistics.spread import MAD_TO_SIGMA
from seatrial.lazy import Bools, Floats, Indices, np
from seatrial.model.figures import MetricValue, shown
from seatrial.model.machine import Machine
from seatrial.model.machine_topology import largest_units, topology_of
from seatrial.model.node_set import not_among
from seatrial.model.nodes import groups_of
from seatrial.model.test import Test
from seatrial.model.topology import NetworkLevel, Topology

FILE = "pairs.matrix"  # the file that the probe ``pairs`` writes into its run's directory
LIMIT = mpigraph.LIMIT
NO_GROUP = "(no group)"
GB_PER_MIB = 2**20 / 1e9
MAX_DIGITS = 16  # of a whole number that a float holds


class Matrix(NamedTuple):
    """Rates between all ranks (``host:rank``) in MiB/s, shape (n, n).

    Rows are senders, columns receivers; the diagonal is 0. ``source``: the file it was read from.
    """

    names: list[str]
    rates: Floats
    source: str

    @property
    def hosts(self) -> list[str]:
        return [name.rpartition(":")[0] or name for name in self.names]


class MatrixJudgement(NamedTuple):
    """The result for a matrix of ``ranks`` ranks.

    ``unit``: "node" or "rank", what was judged. ``grouped``: whether groups were known.
    ``ungrouped``: nodes that are in no group. ``hidden``: how many pairs of ranks could not
    communicate although others of the same two nodes could.
    """

    network: all_pairs.Network
    unit: str
    ranks: int
    grouped: bool
    ungrouped: list[str]
    hidden: int

    @property
    def average(self) -> float | None:
        """The average rate that a network card sends at, over all of them, in GB/s."""
        sent = [nic.sent for nic in self.network.nics if nic.sent is not None]
        return sum(sent) / len(sent) * GB_PER_MIB if sent else None

    @property
    def greatest(self) -> float | None:
        """The greatest rate of a pair, in GB/s."""
        rates = (nic.sent_most for nic in self.network.nics)
        return max((one * GB_PER_MIB for one in rates if one is not None), default=None)


def broken_groups(network: all_pairs.Network) -> list[all_pairs.GroupPair]:
    """Return the pairs of groups between which no link works, though each talks with others."""
    cut_off = {*network.cut_off}
    cut = [pair for pair in network.groups if pair.cut]
    return [pair for pair in cut if not {pair.sender, pair.receiver} & cut_off]


def slow_groups(network: all_pairs.Network) -> list[all_pairs.GroupPair]:
    """Return the pairs of groups that are slow, without those between which no link works."""
    return [pair for pair in network.slow_groups if not pair.cut]


def is_matrix(text: str) -> bool:
    """Return whether a text begins like a matrix of mpiGraph or of the probe ``pairs``."""
    return without_labels(text).text.startswith(("START mpiGraph", "Recv\t"))


def read(path: Path) -> Matrix:
    """Return the matrix in a file. Raises UsageError with the reason if it is incomplete."""
    try:
        text = read_text(Path(), str(path), LIMIT, "judge fewer ranks")
    except (Unreadable, TooLarge) as error:
        raise UsageError(str(error)) from None
    try:
        return parsed(text, str(path))
    except ValueError as error:
        raise UsageError(f"{path}: is not a whole matrix: {plain(str(error))[:300]}") from None


def parsed(text: str, source: str) -> Matrix:
    """Return the matrix in a text. Raises ValueError with the reason.

    A link that was measured at the sender and at the receiver has the mean of both rates.
    """
    text, _ = without_labels(text)
    if text.startswith("START mpiGraph"):
        if not text.endswith("\nEND mpiGraph\n") and not text.endswith("\nEND mpiGraph"):
            raise ValueError("its closing line 'END mpiGraph' is missing")
        names, sent = _rates(text, "Send")
        others, received = _rates(text, "Recv")
        if names != others:
            raise ValueError("its two matrices are of different ranks")
        both = (sent + received.T) / 2
        return Matrix(names, np.where((sent > 0) & (received.T > 0), both, 0.0), source)
    if not text.startswith("Recv\t"):
        raise ValueError("it is neither mpiGraph's output nor a matrix of the probe pairs")
    names, received = _rates("\n" + text, "Recv")
    return Matrix(names, received.T, source)


def _rates(text: str, way: mpigraph.Way) -> tuple[list[str], Floats]:
    """Return the names and the rates, shape (n, n), as one side measured them."""
    names: list[str] = []
    rates = np.zeros((0, 0))
    for name, line in mpigraph.lines(text, way):
        values = _numbers(name, line)
        if not names:
            rates = np.zeros((len(values), len(values)))
        rates[len(names)] = values
        names.append(name)
    if len(names) < 2:
        raise ValueError("it has fewer than two ranks: there is no pair to judge")
    for i in np.flatnonzero(rates.diagonal()):
        raise ValueError(f"its row of {shown(names[i])} has a rate of the rank with itself")
    return names, rates


def _numbers(name: str, line: bytes) -> Floats:
    """Return the figures of a row. Raises ValueError unless each cell is one number.

    Figures with three decimals, the usual format, are read as thousandths: numpy reads whole
    numbers twice as fast.
    """
    cells = line.count(b"\t") + 1
    thousandths = line.replace(b".", b"") if _in_thousandths(line, cells) else b""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # numpy's for text that is no number
        try:
            values: Floats = (
                np.fromstring(thousandths, dtype=np.int64, sep="\t") / 1000
                if thousandths
                else np.fromstring(line, sep="\t")
            )
        except (ValueError, DeprecationWarning):
            values = np.empty(0)
    if len(values) != cells:
        raise ValueError(f"its row of {shown(name)} has what is not a number")
    return values


def _in_thousandths(line: bytes, cells: int) -> bool:
    """Return whether each cell has three decimals, and digits that a float holds exactly."""
    signs = np.frombuffer(line, dtype=np.uint8)
    points = np.flatnonzero(signs == ord("."))
    if len(points) != cells or points[-1] + 4 != len(signs):
        return False
    if (signs[points[:-1] + 4] != ord("\t")).any():  # a tab follows each cell but the last
        return False
    widths = np.diff(points, prepend=-5) - 1
    return bool(widths.min() >= 5 and widths.max() <= MAX_DIGITS)


def judged(matrix: Matrix, groups: Mapping[str, str], by_rank: bool = False) -> MatrixJudgement:
    """Judge a matrix by nodes, or by ranks if there is one node or with ``by_rank``.

    ``groups``: the group of each node. If it is empty and ranks are judged, those of one node are a
    group.
    """
    hosts = matrix.hosts
    nodes = list(dict.fromkeys(hosts))
    known = [_group(node, groups) for node in nodes] if groups else None
    ungrouped = [node for node in nodes if groups and _group(node, groups) == NO_GROUP]
    several = len(nodes) < len(hosts)
    if several and (len(nodes) == 1 or by_rank):
        survey = _survey_of_ranks(matrix, groups)
        return MatrixJudgement(survey, "rank", len(hosts), bool(groups), ungrouped, 0)
    rates, hidden = _between(matrix.rates, hosts, nodes) if several else (matrix.rates, 0)
    survey = all_pairs.survey(rates, nodes, known, hosts=None)
    return MatrixJudgement(survey, "node", len(hosts), bool(groups), ungrouped, hidden)


def _survey_of_ranks(matrix: Matrix, groups: Mapping[str, str]) -> all_pairs.Network:
    hosts = matrix.hosts
    known: list[str] | None = [_group(host, groups) for host in hosts]
    if not groups:
        known = hosts if len(set(hosts)) > 1 else None
    return all_pairs.survey(matrix.rates, matrix.names, known, hosts=hosts)


def _group(host: str, groups: Mapping[str, str]) -> str:
    """Return the group of a node, by its name or the first part of its full name."""
    return groups.get(host) or groups.get(host.partition(".")[0]) or NO_GROUP


def between_nodes(matrix: Matrix) -> tuple[list[str], Floats]:
    """Return the nodes of a matrix and the rates between them, shape (n, n); 0 where none is."""
    hosts = matrix.hosts
    nodes = list(dict.fromkeys(hosts))
    if len(nodes) == len(hosts):
        return nodes, matrix.rates
    return nodes, _between(matrix.rates, hosts, nodes)[0]


def _between(rates: Floats, hosts: list[str], nodes: list[str]) -> tuple[Floats, int]:
    """Return the rates between nodes, and how many pairs of ranks are hidden in them.

    A rate is the median over the pairs of ranks that could communicate. A hidden pair could not
    although others of the same two nodes could.
    """
    number = {node: i for i, node in enumerate(nodes)}
    known = np.where(rates > 0, rates, np.nan)
    of_nodes = blocks(known, np.array([number[host] for host in hosts]), len(nodes))
    between = (of_nodes.known > 0) & ~np.eye(len(nodes), dtype=bool)
    result = np.where(between, of_nodes.median, 0.0)
    return result, int((of_nodes.cells - of_nodes.known)[between].sum())


# ---- network findings ----------------------------------------------------------------------------
#
# Figures of what a matrix of all pairs shows about the network: one for each kind of finding.
#
# findings_in(run_directory, groups) # network_findings, network_silent_nodes, ...


_HEAD_BYTES = 64


def findings_in(folder: Path, groups: Mapping[str, str], nodes: str = "") -> list[MetricValue]:
    """Return the figures of the matrix in a run's directory (``pairs.matrix``, or mpiGraph's in its
    stdout), by the groups of the machine's nodes; none where it has no whole matrix. Those of the
    run's ``nodes``, folded, that are not in it are silent."""
    for name in (FILE, "stdout"):
        beginning = head(folder / name, _HEAD_BYTES)
        if beginning is None or not is_matrix(beginning.text):
            continue
        try:
            matrix = read(folder / name)
            missing = not_among(nodes, matrix.hosts)
            return figures_of(judged(matrix, groups), len(missing))
        except UsageError:
            return []
    return []


def figures_of(judged: MatrixJudgement, missing: int = 0) -> list[MetricValue]:
    """Return the number of findings of each kind, then of all; so many nodes are ``missing``."""
    net = judged.network
    numbers = {
        "silent_nodes": len(net.silent) + missing,
        "cut_groups": len(net.cut_off) + len(net.apart),
        "mute_pairs": net.mute_pairs + judged.hidden,
        "slow_nodes": len({slow.name for slow in (*net.senders, *net.receivers)}),
        "slow_links": net.slow_links,
        "slow_groups": len(slow_groups(net)) if judged.grouped else 0,
    }
    figures = [_figure(f"{PREFIX}{name}", number) for name, number in numbers.items()]
    return [*figures, _figure(FINDINGS, sum(numbers.values()))]


def _figure(name: str, number: int) -> MetricValue:
    return MetricValue(name, float(number), "1", "lower")


# ---- network metrics -----------------------------------------------------------------------------
#
# The names of the metrics of what a matrix of all pairs shows about the network.


PREFIX: Final = "network_"
FINDINGS: Final = "network_findings"  # of all kinds together
WORDS: Final[dict[str, str]] = {
    "silent_nodes": "silent node",
    "cut_groups": "cut-off group",
    "mute_pairs": "mute pair",
    "slow_nodes": "slow node",
    "slow_links": "slow link",
    "slow_groups": "slow group pair",
}


# ---- levels of the network -----------------------------------------------------------------------


SLOW = 0.05
MIN_GAP = 0.05  # between the rates within units and those between them, for merged ones to be told
DEVIATIONS = 5.0
MIN_PAIRS = 3  # of units, of which one can differ

LevelKind = Literal["cut off", "no link", "slow sender", "slow receiver", "slow link", "merged"]


class LevelFinding(Struct, frozen=True):
    """A fault of one unit of a level, or between two (from the first to the second). ``effect`` is
    relative to the others of its class; None of what does not talk. ``nodes``: those measured."""

    level: str
    kind: LevelKind
    units: list[str]
    effect: float | None
    nodes: list[str]

    @property
    def text(self) -> str:
        """Return the finding as a sentence without its effect."""
        first = f"{self.level} {self.units[0]}"
        if self.kind == "cut off":
            return f"{first} talks with no other {self.level}"
        if self.kind in ("slow sender", "slow receiver"):
            return f"{first} {'sends' if self.kind == 'slow sender' else 'receives'} slowly"
        second = f"{self.level} {self.units[1]}"
        if self.kind == "no link":
            return f"no link from {first} to {second} works"
        if self.kind == "slow link":
            return f"slow from {first} to {second}"
        return f"{first} and {second} look merged: rates between them are as within one"


def network_groups(machine: Machine) -> dict[str, str]:
    """Return the group of each node by which a matrix is judged: that of the machine's file, else
    its unit of the largest level, by its name (``group 3``)."""
    return groups_of(machine) or largest_units(machine)


def level_findings(matrix: Matrix, topology: Topology | None) -> list[LevelFinding]:
    """Return the findings of each level, the largest level first. Nodes without a place are left
    out; there are no findings of fewer than two units with two nodes each."""
    if topology is None:
        return []
    names, rates = between_nodes(matrix)
    places = _places(names, topology)
    kept = [row for row, place in enumerate(places) if place >= 0]
    if len(kept) < 4:
        return []
    rates_of_kept = rates[np.ix_(kept, kept)]
    judge = _Levels(
        [names[i] for i in kept], rates_of_kept, [places[i] for i in kept], topology.levels
    )
    return [one for height in reversed(range(len(topology.levels))) for one in judge.level(height)]


def _places(hosts: Sequence[str], topology: Topology) -> list[int]:
    """Return the number of each host in a topology, by its name or the first part of its full name;
    -1 for one without a place."""
    number = topology.number_of
    return [number.get(host, number.get(host.partition(".")[0], -1)) for host in hosts]


def judged_by_level(
    matrix: Matrix, groups: Mapping[str, str], topology: Topology | None, by_rank: bool = False
) -> tuple[MatrixJudgement, list[LevelFinding]]:
    """Judge a matrix by nodes (as ``matrices.judged``) and by levels. What two units have between
    them (a slow link, one network) is told of these, and of no node or pair in them."""
    levels = level_findings(matrix, topology)
    judgement = judged(matrix, groups, by_rank)
    between = [one for one in levels if one.kind in ("slow link", "merged") and one.effect]
    if topology is None or not between:
        return judgement, levels
    factors = _factors(matrix, topology, between)
    rest = judged(matrix._replace(rates=matrix.rates / factors), groups, by_rank).network
    row = {name: i for names in (matrix.hosts, matrix.names) for i, name in enumerate(names)}
    network = replace(
        judgement.network,
        senders=rest.senders,
        receivers=rest.receivers,
        links=[
            replace(link, value=link.value * float(factors[row[link.sender], row[link.receiver]]))
            for link in rest.links
        ],
        slow_links=rest.slow_links,
        noise=rest.noise,
    )
    return judgement._replace(network=network), levels


def judged_on(
    matrix: Matrix, machine: Machine | None, by_rank: bool = False
) -> tuple[MatrixJudgement, list[LevelFinding] | None]:
    """Judge a matrix by the groups and the levels of a machine. There are no findings by level,
    None, where it has no topology."""
    groups = network_groups(machine) if machine is not None else {}
    topology = topology_of(machine) if machine is not None and machine.topology else None
    judgement, levels = judged_by_level(matrix, groups, topology, by_rank)
    return judgement, levels if topology is not None else None


def _factors(matrix: Matrix, topology: Topology, between: Sequence[LevelFinding]) -> Floats:
    """Return by how much the rates differ that units have between them, shape (n, n)."""
    places = _places(matrix.hosts, topology)
    factors = np.ones(matrix.rates.shape)
    levels = {level.name: level for level in topology.levels}
    for one in between:
        level = levels[one.level]
        unit = np.array([level.units[level.unit_of[n]] if n >= 0 else "" for n in places])
        first, second = (np.flatnonzero(unit == name) for name in one.units)
        factors[np.ix_(first, second)] *= 1 + (one.effect or 0.0)
        if one.kind == "merged":
            factors[np.ix_(second, first)] *= 1 + (one.effect or 0.0)
    return factors


class _Levels:
    """The rates between nodes, shape (n, n), and what was found of larger levels: nodes of units
    that are ``cut`` or ``slow``, and pairs of nodes whose units have a finding (``told``)."""

    def __init__(
        self, names: list[str], rates: Floats, places: list[int], levels: Sequence[NetworkLevel]
    ) -> None:
        self.names = names
        self.levels = levels
        self.units = np.array([[level.unit_of[place] for place in places] for level in levels])
        self.rates = np.where(np.isfinite(rates) & (rates > 0), rates, np.nan)
        np.fill_diagonal(self.rates, np.nan)
        self.told = np.zeros(rates.shape, dtype=bool)
        largest = [str(unit) for unit in self.units[-1]]
        network = all_pairs.survey(np.nan_to_num(self.rates), names, largest)
        slow = {node.name for node in (*network.senders, *network.receivers)}
        self.odd = np.array([name in slow or name in network.silent for name in names])

    def level(self, height: int) -> Iterator[LevelFinding]:
        """Yield the findings of a level by its number."""
        level = self.levels[height]
        units, first, member = np.unique(self.units[height], return_index=True, return_inverse=True)
        sizes = np.bincount(member)
        if len(units) < 2 or np.median(sizes) < 2:
            return
        share = np.bincount(member, weights=self.odd) / sizes
        usable = ~self.odd | (share[member] > 0.5)
        rates = np.where(usable[:, None] & usable[None, :], self.rates, np.nan)
        of_units = blocks(rates, member, len(units))
        labels = [level.units[unit] for unit in units]
        for kind, rows, effect in _judged(of_units, self._common(first, height), sizes):
            nodes = [np.flatnonzero(member == row) for row in rows]
            if self._is_news(nodes, both_ways=len(rows) == 1 or kind == "merged"):
                names = [self.names[i] for unit in nodes for i in unit]
                yield LevelFinding(level.name, kind, [labels[row] for row in rows], effect, names)

    def _is_news(self, nodes: Sequence[Indices], both_ways: bool) -> bool:
        """Return whether a finding about the nodes of a unit, or from those of one to those of
        another, says more than those before it, and note it."""
        others = nodes[1] if len(nodes) > 1 else np.arange(len(self.names))
        cells = np.ix_(nodes[0], others)
        if self.told[cells].mean() > 0.5:
            return False
        self.told[cells] = True
        if both_ways:
            self.told[np.ix_(others, nodes[0])] = True
        return True

    def _common(self, first: Indices, height: int) -> Indices:
        """Return the number of the smallest level that holds both of two units, for all pairs; the
        number of levels where none does. ``first``: a node of each unit."""
        common = np.full((len(first), len(first)), len(self.levels))
        for number in reversed(range(height + 1, len(self.levels))):
            unit = self.units[number, first]
            common[unit[:, None] == unit[None, :]] = number
        return common


def _judged(
    of_units: Blocks, common: Indices, sizes: Indices
) -> Iterator[tuple[LevelKind, list[int], float | None]]:
    """Yield what is found of units (by their numbers), those that do not talk first. Pairs of units
    are compared with those of the same ``common`` level. Units of one node are judged as nodes, and
    skipped."""
    several = sizes > 1
    off = ~np.eye(len(sizes), dtype=bool)
    known = (of_units.known > 0) & off
    cut = ~(known.any(axis=0) | known.any(axis=1)) & several
    for unit in np.flatnonzero(cut).tolist():
        yield "cut off", [unit], None
    mute = off & ~known & several[:, None] & several[None, :] & ~cut[:, None] & ~cut[None, :]
    for a, b in np.argwhere(mute).tolist():
        yield "no link", [a, b], None
    medians = np.where(known, of_units.median, np.nan)
    relative = medians.copy()
    for those in _classes(medians, common):
        relative[those] /= np.median(medians[those])
    survey = all_pairs.survey(np.nan_to_num(relative))
    if not survey.reason:
        yield from _slow_units(survey, several)
    else:
        yield from _slow_of_few(relative, common, several)
    yield from _merged(medians, of_units.median.diagonal(), common, several)


def _slow_units(
    survey: Network, several: Bools
) -> Iterator[tuple[LevelKind, list[int], float | None]]:
    kinds: tuple[tuple[LevelKind, list[all_pairs.Slow]], ...] = (
        ("slow sender", survey.senders),
        ("slow receiver", survey.receivers),
    )
    for kind, units in kinds:
        for slow in units:
            if several[int(slow.name)] and slow.effect < -SLOW:
                yield kind, [int(slow.name)], slow.effect
    for link in survey.links:
        ends = [int(link.sender), int(link.receiver)]
        if several[ends].all() and link.effect < -SLOW:
            yield "slow link", ends, link.effect


def _slow_of_few(
    relative: Floats, common: Indices, several: Bools
) -> Iterator[tuple[LevelKind, list[int], float | None]]:
    """Yield slow links of so few units that a unit cannot be told from its links."""
    effects = relative - 1
    for those in _classes(relative, common):
        if those.sum() < 2 * MIN_PAIRS:
            continue
        noise = MAD_TO_SIGMA * float(np.median(np.abs(effects[those])))
        for a, b in np.argwhere(those & (effects < -max(SLOW, DEVIATIONS * noise))).tolist():
            if several[[a, b]].all():
                yield "slow link", [a, b], float(effects[a, b])


def _merged(
    medians: Floats, within: Floats, common: Indices, several: Bools
) -> Iterator[tuple[LevelKind, list[int], float | None]]:
    """Yield pairs of units with rates between them, both ways, that are nearer to those within
    units than to those between others of their class."""
    if not np.isfinite(within[several]).any():
        return
    inner = float(np.nanmedian(within[several]))
    for those in _classes(medians, common):
        if those.sum() < 2 * MIN_PAIRS:
            continue
        usual = float(np.median(medians[those]))
        gap = math.log(inner / usual)
        if gap < math.log1p(MIN_GAP):
            continue
        away = np.where(those, np.log(medians / usual), np.nan)
        noise = MAD_TO_SIGMA * float(np.nanmedian(np.abs(away)))
        bound = max(gap / 2, DEVIATIONS * noise)
        for a, b in np.argwhere(np.triu(those & (away > bound) & (bound < away.T))).tolist():
            if several[[a, b]].all():
                yield "merged", [a, b], float(math.expm1(away[a, b]))


def _classes(medians: Floats, common: Indices) -> Iterator[Bools]:
    """Yield the pairs of units with a figure, by their common level."""
    known = np.isfinite(medians)
    for number in np.unique(common[known]):
        yield known & (common == number)


def texts(findings: Sequence[LevelFinding]) -> list[str]:
    """Return the findings in words, with their effects."""
    return [
        one.text if one.effect is None else f"{one.text} ({100 * one.effect:+.1f} %)"
        for one in findings
    ]


# ---- figures of runs -----------------------------------------------------------------------------


class MatrixReader(RunReader):
    """Judges the matrices of runs by the groups of the machine."""

    def __init__(self, record: Record, trials: Path) -> None:
        super().__init__(record, trials)
        component = record.component
        self._is_asked = component is not None and any(
            criterion.criterion == "network" for criterion in component.criteria
        )

    @cached_property
    def _groups(self) -> dict[str, str]:
        return network_groups(self.record.machine)

    def is_slow(self, test: Test) -> bool:
        return self._is_asked  # a matrix may be large

    def figures(self, run: RunUnderWay, nodes: str, right: bool) -> Sequence[MetricValue]:
        if self._is_asked and right:
            return findings_in(run.path, self._groups, nodes)
        return ()
