"""Read an all-pairs matrix of a network, and judge it with the machine's groups.

    matrix = read(path)                # mpiGraph's output, or pairs.matrix of the probe ``pairs``
    judged(matrix, groups_of(machine)).network.senders

If several ranks ran on a node, the figure of two nodes is the median over their pairs of ranks;
ranks of one node share memory, which says nothing about the network. ``by_rank`` judges each rank
separately, for nodes on which each has its own network card.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from seatrial.errors import UsageError
from seatrial.escaping import plain
from seatrial.judge.launcher_labels import without_labels
from seatrial.judge.outputs import mpigraph
from seatrial.judge.reading import TooLarge, Unreadable, head, read_text
from seatrial.judge.statistics import all_pairs
from seatrial.judge.statistics.all_pairs import blocks
from seatrial.lazy import Floats, np
from seatrial.model.figures import MetricValue, shown
from seatrial.model.node_set import not_among

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
