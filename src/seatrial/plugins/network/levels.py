"""What a matrix of all pairs shows about units of the network: a group that is cut off, two chassis
with a slow link between them, two groups that behave as one.

    for finding in level_findings(matrix, topology):
        finding.level, finding.units, finding.text
    judgement, findings = judged_by_level(matrix, groups, topology)

Each level is judged as a matrix of its units, whose figures are the medians of the rates between
their nodes, the largest level first. What a larger unit explains is not told again of those in it.
A slow node is left out unless most nodes of its unit are slow: then the unit is.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from seatrial.judge.statistics import all_pairs
from seatrial.judge.statistics.all_pairs import Blocks, Network, blocks
from seatrial.judge.statistics.spread import MAD_TO_SIGMA
from seatrial.lazy import Bools, Floats, Indices, np
from seatrial.model.machine import Machine
from seatrial.model.machine_topology import largest_units, topology_of
from seatrial.model.nodes import groups_of
from seatrial.model.topology import NetworkLevel, Topology
from seatrial.plugins.network.matrices import Matrix, MatrixJudgement, between_nodes, judged

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
